"""Which of two models a prompt needs: their greedy answers to the same problems, judged, as RouteLLM's preferences.

Answers are kept in a folder, a file a model, task and split, and are made once: what is there is not made again.
"""

import dataclasses
import json
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "routers"))

import pair  # noqa: E402
from pair import data, evaluate  # noqa: E402

PART = 500  # problems whose answers are made and kept together
WIN, TIE, LOSS = 0, 1, 2  # of the large model


@dataclasses.dataclass
class Preferences:
    """Prompts as ids, and which model answered rightly, a number a prompt."""

    prompts: list
    tasks: np.ndarray  # names
    small: np.ndarray  # the small model's greedy answer is right
    large: np.ndarray

    def __len__(self):
        return len(self.prompts)

    def labels(self):
        """WIN where only the large model is right, LOSS where only the small one is, else TIE."""
        return np.where(self.large & ~self.small, WIN, np.where(self.small & ~self.large, LOSS, TIE))

    def chosen(self, rows):
        return Preferences([self.prompts[i] for i in rows], self.tasks[rows], self.small[rows], self.large[rows])


def final(text):
    """What stands after the last "Answer:" that begins a line, or None; as the program reads answers."""
    lines = [line.strip() for line in text.split("\n")]
    finals = [line.removeprefix("Answer:").strip() for line in lines if line.startswith("Answer:")]
    return finals[-1] if finals else None


def answered(models, which, problems, path):
    """Texts of a model's greedy answers to problems, in order; made where path does not have them."""
    texts = []
    if path.exists():
        kept = path.read_text()
        kept = kept[:kept.rfind("\n") + 1]  # what was cut off is made again
        lines = [json.loads(line) for line in kept.splitlines()]
        if [line["id"] for line in lines] != [p["id"] for p in problems[:len(lines)]]:
            raise SystemExit(f"{path} has answers to other problems: remove it")
        path.write_text(kept)
        texts = [line["text"] for line in lines]
    with path.open("a") as file:
        while len(texts) < len(problems):
            part = problems[len(texts):len(texts) + PART]
            prompts = models.prompts(part)
            most = [evaluate.ANSWER_MAX] * len(part)
            made = [models.text(ids) for ids in pair.continued(models, models.models[which], prompts, most)]
            file.write("".join(json.dumps({"id": p["id"], "text": t}) + "\n" for p, t in zip(part, made)))
            file.flush()
            texts += made
            print(f"{path.name}: {len(texts)} of {len(problems)}", flush=True)
    return texts


def judged(program, problems, texts):
    """Which answers are right. The program counts them, too, and has to come to the same numbers."""
    right = np.array([final(t) == p["final"] for p, t in zip(problems, texts)])
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        rows = evaluate.score(program, problems, texts, folder / "problems.jsonl", folder / "answers.jsonl")
    for row in rows:
        own = sum(int(r) for p, r in zip(problems, right) if row["level"] in (0, p["level"]))
        if own != row["correct"]:
            raise SystemExit(f"{row['task']}, level {row['level']}: {own} answers are right, the program says "
                             f"{row['correct']}")
    return right


def gathered(models, program, split, counts, seed, folder):
    """Preferences over the problems of a split, counts by task."""
    folder.mkdir(parents=True, exist_ok=True)
    prompts, tasks, right = [], [], [[], []]
    for task, count in counts.items():
        problems = pair.made(program, task, split, count, seed)
        prompts += models.prompts(problems)
        tasks += [task] * count
        for which in range(2):
            name = f"{models.hashes[which][:16]}-{task}-{split}-{seed}.jsonl"
            right[which].append(judged(program, problems, answered(models, which, problems, folder / name)))
    return Preferences(prompts, np.array(tasks), np.concatenate(right[0]), np.concatenate(right[1]))
