"""Problems as tokens: made by the program, encoded once, kept in a file.

    python data.py --tokenrouter ../../bin/tokenrouter --out DIR [--arith N] [--symbols N] [--seed S]

writes DIR/train.npz and DIR/validation.npz. A problem is the prompt through the chat template, its worked answer and
the end token; what a model learns is the answer.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess

import numpy as np
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent
TASKS = ("arith", "symbols")
VALIDATION = 600  # problems of a task
LENGTH_STEP = 32  # tokens; problems of one batch are filled up to a multiple of it


def tokenizer():
    return Tokenizer.from_file(str(HERE / "tokenizer" / "tokenizer.json"))


def vocabulary(tokens):
    """Rows of a model's embedding: the next multiple of 64."""
    return -(-tokens.get_vocab_size() // 64) * 64


def prompt_text(prompt):
    """What the chat template makes of a user's message."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def problems(program, task, split, count, seed):
    """Problems of the program, one after the other."""
    command = [program, "task", "make", task, "--split", split, "--count", str(count), "--seed", str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode != 0:
        raise RuntimeError(f"{command}: exit {process.returncode}")


class Problems:
    """Encoded problems: ids of all in one array, problem i from starts[i] to starts[i + 1], its answer from
    starts[i] + prompts[i], its task TASKS[tasks[i]]."""

    FIELDS = ("ids", "starts", "prompts", "tasks")

    def __init__(self, ids, starts, prompts, tasks):
        self.ids, self.starts, self.prompts, self.tasks = ids, starts, prompts, tasks

    @staticmethod
    def encoded(texts, tasks, tokens):
        """Of pairs of prompt and answer, and the index of each one's task."""
        ids, starts, prompts = [], [0], []
        for begin in range(0, len(texts), 8192):
            part = texts[begin:begin + 8192]
            asked = tokens.encode_batch_fast([prompt_text(p) for p, _ in part])
            answered = tokens.encode_batch_fast([a + "<|im_end|>" for _, a in part])
            for a, b in zip(asked, answered):
                ids.append(np.array(a.ids + b.ids, dtype=np.uint16))
                starts.append(starts[-1] + len(ids[-1]))
                prompts.append(len(a.ids))
        return Problems(np.concatenate(ids), np.array(starts), np.array(prompts, dtype=np.int32),
                        np.array(tasks, dtype=np.uint8))

    @staticmethod
    def load(path):
        with np.load(path) as file:
            return Problems(*(file[name] for name in Problems.FIELDS))

    def save(self, path):
        np.savez(path, **{name: getattr(self, name) for name in self.FIELDS})

    def __len__(self):
        return len(self.prompts)

    def fingerprint(self):
        """The first digits of a hash of all ids."""
        return hashlib.sha256(self.ids.tobytes()).hexdigest()[:16]

    def lengths(self):
        return np.diff(self.starts)

    def rows(self, chosen, pad):
        """Tokens [rows][length] of problems, filled up with pad, and where answers stand in them."""
        length = -(-int(self.lengths()[chosen].max()) // LENGTH_STEP) * LENGTH_STEP
        tokens = np.full((len(chosen), length), pad, dtype=np.int64)
        wanted = np.zeros((len(chosen), length), dtype=bool)
        for row, i in enumerate(chosen):
            size = self.starts[i + 1] - self.starts[i]
            tokens[row, :size] = self.ids[self.starts[i]:self.starts[i + 1]]
            wanted[row, self.prompts[i]:size] = True
        return tokens, wanted

    def batches(self, seed, epoch, size):
        """All problems in a new order, as batches of problems of nearly the same length: size tokens at most."""
        draw = np.random.default_rng([seed, epoch])
        order = draw.permutation(len(self))
        filled = -(-self.lengths() // LENGTH_STEP) * LENGTH_STEP
        batches = []
        for begin in range(0, len(order), 4096):
            pool = order[begin:begin + 4096]
            pool = pool[np.argsort(filled[pool], kind="stable")]
            while len(pool) > 0:
                rows = max(1, size // int(filled[pool[0]]))
                while rows > 1 and filled[pool[min(rows, len(pool)) - 1]] * min(rows, len(pool)) > size:
                    rows = min(rows, len(pool)) - 1
                batches.append(pool[:rows])
                pool = pool[rows:]
        draw.shuffle(batches)
        return batches


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("--arith", type=int, default=500_000, help="problems to train on")
    parser.add_argument("--symbols", type=int, default=150_000, help="problems to train on")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tokens = tokenizer()
    for split, counts in (("train", (options.arith, options.symbols)), ("validation", (VALIDATION, VALIDATION))):
        texts, tasks = [], []
        for i, (task, count) in enumerate(zip(TASKS, counts)):
            texts += [(p["prompt"], p["answer"])
                      for p in problems(options.tokenrouter, task, split, count, options.seed)]
            tasks += [i] * count
        made = Problems.encoded(texts, tasks, tokens)
        made.save(options.out / f"{split}.npz")
        print(f"{split}: {len(made)} problems, {len(made.ids)} tokens, longest {made.lengths().max()}")


if __name__ == "__main__":
    main()
