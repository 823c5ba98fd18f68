"""Labels for the routers: what happens where the small model would go another way.

    python routers/label.py --small FOLDER --large FOLDER --work DIR --tokenrouter ../../bin/tokenrouter

Writes DIR/labels-N.npz, one file a part of the problems; parts that are there are not made again. The problems are of
the training split, of a seed of their own: hardly any was trained on.

R2R ("Roads to Rome", arXiv 2505.21600), along the large model's greedy answers: a place where the small model's most
likely token is another is neutral if the large model, going on greedily from the small one's token, comes to the same
final answer as from its own, and divergent otherwise. (Published: to the end of the sentence, and a language model
judges; here the rest of the answer is a few lines, and its last line decides exactly.)

CITER (arXiv 2502.01976), along the problems' own answers: 1 where the small model's token is that of the answer, 0
where only the large model's is; where neither is, what a roll-out from the small model's token comes to: 1 if the
final answer is right.

Co-LLM (arXiv 2403.03870), along the same: the logarithms of the probability that both models give to the token.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch

import pair  # finds the modules of the folder above

import evaluate
from model import END

SEED = 7  # of the problems
PART = 500  # problems of a file
SYMBOLS_EVERY = 4  # one problem in so many is of symbols
SAME, NEUTRAL, DIVERGENT = 0, 1, 2  # R2R
ROOM = 48  # tokens by which a continuation may be longer than what it takes the place of


def problems_of(program, part):
    """The problems of a part, both families mixed."""
    symbols = PART // SYMBOLS_EVERY
    counts = {"arith": PART - symbols, "symbols": symbols}
    return [p for task, count in counts.items()
            for p in pair.made(program, task, "train", count, SEED, first=part * count)]


def joined(lists, kind):
    return np.concatenate([np.asarray(x, dtype=kind) for x in lists])


def along(models, model, prompts, answers):
    """Logits [length of the answer][vocabulary] of a model before each token of the answers, and hidden states."""
    states = pair.whole(model, [p + a for p, a in zip(prompts, answers)])
    for p, a, h in zip(prompts, answers, states):
        h = h[len(p) - 1:len(p) - 1 + len(a)]
        yield h, pair.logits(model, h)


def r2r(models, prompts, counts):
    """The large model's answers and, for each of their tokens, the label."""
    own = pair.continued(models, models.large, prompts, [evaluate.ANSWER_MAX] * len(prompts))
    labels, branches = [np.zeros(len(a), dtype=np.int8) for a in own], []
    for i, (_, logits) in enumerate(along(models, models.small, prompts, own)):
        best = models.best(logits).tolist()
        branches += [(i, t, best[t]) for t in range(len(own[i])) if best[t] != own[i][t]]
    ends = pair.continued(models, models.large,
                          [prompts[i] + own[i][:t] + [token] for i, t, token in branches if token != END],
                          [len(own[i]) - t + ROOM for i, t, token in branches if token != END])
    ends = iter(ends)
    finals = [pair.final(models.text(a)) for a in own]
    for i, t, token in branches:
        rest = next(ends) if token != END else []
        same = pair.final(models.text(own[i][:t] + [token] + rest)) == finals[i]
        labels[i][t] = NEUTRAL if same else DIVERGENT
        counts["neutral" if same else "divergent"] += 1
        counts["neutral, other steps"] += same and own[i][t + 1:] != rest
    return own, labels


def gold(models, problems, prompts, answers, counts):
    """CITER's labels, where both models are wrong, and Co-LLM's probabilities, along the problems' answers."""
    right, both, small_logs, large_logs = [], [], [], []
    passes = zip(along(models, models.small, prompts, answers), along(models, models.large, prompts, answers))
    for i, ((_, small), (_, large)) in enumerate(passes):
        wanted = torch.tensor(answers[i])
        small_right, large_right = models.best(small) == wanted, models.best(large) == wanted
        right.append(small_right.numpy().astype(np.int8))
        for t in (~small_right & ~large_right).nonzero()[:, 0].tolist():
            both.append((i, t, int(models.best(small[t]))))
        for logs, logits in ((small_logs, small), (large_logs, large)):
            logs.append(logits.log_softmax(dim=-1).gather(1, wanted[:, None])[:, 0].numpy())
    rolled = pair.continued(models, models.small,
                            [prompts[i] + answers[i][:t] + [token] for i, t, token in both if token != END],
                            [len(answers[i]) - t + ROOM for i, t, token in both if token != END])
    rolled = iter(rolled)
    for i, t, token in both:
        rest = next(rolled) if token != END else []
        good = pair.final(models.text(answers[i][:t] + [token] + rest)) == problems[i]["final"]
        right[i][t] = good
        counts["both wrong"] += 1
        counts["both wrong, roll-out right"] += good
    return right, both, small_logs, large_logs


@torch.no_grad()
def part_of(models, problems, counts):
    """The arrays of a file."""
    prompts, answers = models.prompts(problems), models.answers(problems)
    own, labels = r2r(models, prompts, counts)
    right, both, small_logs, large_logs = gold(models, problems, prompts, answers, counts)
    counts["problems"] += len(problems)
    counts["tokens"] += sum(map(len, own))
    counts["large right"] += sum(pair.final(models.text(a)) == p["final"] for a, p in zip(own, problems))
    return {
        "prompts": joined(prompts, np.uint16), "prompt_lengths": np.array([len(p) for p in prompts]),
        "own": joined(own, np.uint16), "own_lengths": np.array([len(a) for a in own]), "r2r": joined(labels, np.int8),
        "gold": joined(answers, np.uint16), "gold_lengths": np.array([len(a) for a in answers]),
        "citer": joined(right, np.int8), "both_wrong": np.array(both, dtype=np.int64).reshape(-1, 3),
        "small_logs": joined(small_logs, np.float32), "large_logs": joined(large_logs, np.float32),
        "finals": np.array([p["final"] for p in problems]), "hashes": np.array(models.hashes),
    }


def path_of(work, part):
    return work / f"labels-{part:04d}.npz"


def make(models, work, program, parts):
    """Writes the files that are missing, with a line for each."""
    work.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        path, began = path_of(work, part), time.monotonic()
        if path.exists():
            with np.load(path) as file:
                if list(file["hashes"]) != models.hashes:
                    raise SystemExit(f"{path} is of other models; take another --work")
            continue
        counts = dict.fromkeys(("problems", "tokens", "large right", "neutral", "neutral, other steps", "divergent",
                                "both wrong", "both wrong, roll-out right"), 0)
        arrays = part_of(models, problems_of(program, part), counts)
        new = path.with_suffix(".new.npz")
        np.savez_compressed(new, counts=json.dumps(counts), **arrays)
        new.replace(path)
        print(f"labels {part + 1} of {parts}: {json.dumps(counts)}, {time.monotonic() - began:.0f} s", flush=True)


class Labels:
    """All files together: lists with an entry a problem."""

    def __init__(self, work, parts):
        self.prompts, self.own, self.gold = [], [], []
        self.r2r, self.citer, self.both_wrong, self.small_logs, self.large_logs = [], [], [], [], []
        self.finals, self.counts = [], {}
        for part in range(parts):
            with np.load(path_of(work, part)) as file:
                self.add(file)

    def add(self, file):
        first = len(self.prompts)
        for into, values, lengths in ((self.prompts, "prompts", "prompt_lengths"), (self.own, "own", "own_lengths"),
                                      (self.gold, "gold", "gold_lengths"), (self.r2r, "r2r", "own_lengths"),
                                      (self.citer, "citer", "gold_lengths"),
                                      (self.small_logs, "small_logs", "gold_lengths"),
                                      (self.large_logs, "large_logs", "gold_lengths")):
            pieces = np.split(file[values], np.cumsum(file[lengths])[:-1])
            into += [p.tolist() if p.dtype == np.uint16 else p for p in pieces]
        self.both_wrong += [(first + i, t, token) for i, t, token in file["both_wrong"].tolist()]
        self.finals += file["finals"].tolist()
        for name, count in json.loads(str(file["counts"])).items():
            self.counts[name] = self.counts.get(name, 0) + count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--large", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for the labels")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--parts", type=int, default=12, help=f"of {PART} problems")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    make(pair.Models((options.small, options.large)), options.work, options.tokenrouter, options.parts)


if __name__ == "__main__":
    main()
