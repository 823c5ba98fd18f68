"""What each threshold gives on validation problems: the share of tokens by the large model, and the accuracy.

    python routers/calibrate.py --small FOLDER --large FOLDER [--mid FOLDER] --work DIR --out ../models \
        --tokenrouter ../../bin/tokenrouter

Reads the router folders OUT/arith-r2r, -citer and -collm, writes their cards (README.md) and, where an algorithm has
no published rule for it, the default threshold, and OUT/arith-thresholds.toml. Answers are greedy, made in lockstep
(routed.py). A point that is in WORK already is not run again. No test problem is looked at.
"""

import argparse
import functools
import hashlib
import json
import pathlib
import tempfile
import time

import torch

import label
import networks
import pair  # finds the modules of the folder above
import routed

import evaluate

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)  # of places to the large model, at which thresholds are set
WEIGHTS = {2: ((0.95, 0.05), (0.8, 0.2), (0.65, 0.35), (0.5, 0.5), (0.3, 0.7), (0.1, 0.9)),
           3: ((0.9, 0.05, 0.05), (0.7, 0.15, 0.15), (0.5, 0.3, 0.2), (0.4, 0.3, 0.3), (0.2, 0.3, 0.5),
               (0.1, 0.1, 0.8))}  # of ME, the third of three is the paper's
TRAINED = ("r2r", "citer", "collm")
BELOW = ("citer",)  # go to the large model where the signal is below the threshold


class Calibration:
    """A pair on the validation problems of a family."""

    def __init__(self, models, mixture, out, work, program, task, count):
        self.models, self.mixture, self.out, self.program = models, mixture, out, program
        self.work = work / "calibrated"
        self.work.mkdir(parents=True, exist_ok=True)
        self.task, self.problems = task, pair.made(program, task, "validation", count, 1)
        self.prompts = models.prompts(self.problems)

    def rule(self, algorithm, value):
        """The rule of an algorithm at a threshold, or of ME with weights."""
        if algorithm in TRAINED:
            network, _ = networks.load(self.out / f"arith-{algorithm}")
            return routed.Scored(algorithm, network, value, self.models.small.model.embed_tokens.weight)
        if algorithm == "rstitch":
            return routed.RStitch(value)
        if algorithm == "me":
            return routed.ME(value)
        return routed.Alone(value)

    def key(self, algorithm, value):
        """Names a point: everything that its numbers depend on."""
        weights = self.out / f"arith-{algorithm}" / "router.safetensors"
        digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else ""
        said = [algorithm, value, digest, self.mixture.hashes if algorithm == "me" else self.models.hashes,
                self.task, len(self.problems)]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def point(self, algorithm, value):
        """Accuracy, shares and hand-offs of a routing at a threshold; from the work folder where they are there."""
        path, began = self.work / f"{self.key(algorithm, value)}.json", time.monotonic()
        if path.exists():
            return json.loads(path.read_text())
        models = self.mixture if algorithm == "me" else self.models
        walked = routed.walk(models, self.prompts, self.rule(algorithm, value), evaluate.ANSWER_MAX)
        shares = walked.shares(len(models.models))
        texts = [models.text(a.tokens) for a in walked.answers]
        found = self.scored(texts) | {"value": value, "shares": shares, "large_share": shares[-1], "p": walked.p()}
        path.write_text(json.dumps(found))
        print(f"{self.task} {algorithm} at {value}: accuracy {found['accuracy']:.3f}, large model "
              f"{found['large_share']:.3f}, p {found['p']:.3f}, {time.monotonic() - began:.0f} s", flush=True)
        return found

    def scored(self, texts):
        """What the program says of answers."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            rows = evaluate.score(self.program, self.problems, texts, folder / "problems", folder / "answers")
        row = next(r for r in rows if not r["level"])
        return {k: row[k] for k in ("accuracy", "accuracy_low", "accuracy_high")}

    @functools.cached_property
    @torch.no_grad()
    def places(self):
        """What the small model says along the large one's answers."""
        own = pair.continued(self.models, self.models.large, self.prompts, [evaluate.ANSWER_MAX] * len(self.prompts))
        said = list(label.along(self.models, self.models.small, self.prompts, own))
        hidden, logits = (torch.cat(parts) for parts in zip(*said))
        return routed.Output(hidden, logits, self.models.best(logits))

    @torch.no_grad()
    def thresholds(self, algorithm):
        """Thresholds at which SHARES of the places would go to the large model, were all before them its own."""
        if algorithm == "rstitch":
            signals = routed.entropy(self.places.logits)
        else:
            signals = self.rule(algorithm, None).scores(self.places)
        ordered = signals.double().sort(descending=algorithm not in BELOW).values
        return [rounded(float(ordered[int(share * len(ordered))])) for share in SHARES]

    def points(self, algorithm):
        """All points of a routing, by rising share of the large model."""
        if algorithm == "me":
            return [self.point("me", list(w)) for w in WEIGHTS[len(self.mixture.models)]]
        wanted = self.thresholds(algorithm)
        folder = self.out / f"arith-{algorithm}"
        if algorithm == "r2r":
            wanted.append(json.loads((folder / "training.json").read_text())["threshold"])
        return sorted((self.point(algorithm, t) for t in dict.fromkeys(wanted)), key=lambda p: p["large_share"])


def rounded(x, digits=5):
    """x with so many digits, of its distance from 1 where it is near that."""
    return float(f"{x:.{digits}g}") if x < 0.5 else round(1 - float(f"{1 - x:.{digits}g}"), 12)


def best(points):
    """The point of the highest accuracy, of several that with the least of the large model."""
    return max(points, key=lambda p: (p["accuracy"], -p["large_share"]))


def table(points):
    """Rows of a card."""
    rows = ["| threshold | large model's share | p | accuracy | 95 % interval |", "|---|---|---|---|---|"]
    for p in points:
        rows.append(f"| {p['value']} | {100 * p['large_share']:.1f} % | {p['p']:.4f} | {100 * p['accuracy']:.1f} % | "
                    f"{100 * p['accuracy_low']:.1f} to {100 * p['accuracy_high']:.1f} % |")
    return "\n".join(rows)


TITLES = {"r2r": "R2R (\"Roads to Rome\", arXiv 2505.21600): the probability that the small model's token diverges;"
                 " the large model makes the token where it is at least the threshold.",
          "citer": "CITER (arXiv 2502.01976): the confidence that the small model's token is right; the large model"
                   " makes the token where it is below the threshold.",
          "collm": "Co-LLM (arXiv 2403.03870): the probability of deferral, of one added row of the small model's head;"
                   " the large model makes the token where it is above the threshold. The small model itself was not"
                   " trained along."}


def card(models, algorithm, folder, tables, alone, count):
    """README.md of a router folder."""
    said = json.loads((folder / "training.json").read_text())
    metadata = json.loads((folder / "router.json").read_text())
    network, _ = networks.load(folder)
    digest = hashlib.sha256((folder / "router.safetensors").read_bytes()).hexdigest()
    small, large = models.folders[0].name, models.folders[-1].name
    counts = "; ".join(f"{name}: {n:,}" for name, n in said["labels"].items())
    held = {k: v for k, v in said.items() if k in ("held_out_auc", "positive_share", "recall", "divergent", "right",
                                                   "large_only", "changed_labels")}
    rule = ("the highest of 0.01 to 0.99 that finds 95 % of the divergent tokens of held-out training problems"
            if algorithm == "r2r" else "that of the best validation accuracy below, the least of the large model first")
    sections = "\n\n".join(f"## Thresholds on {count} validation problems of {task}\n\nAlone: {small} "
                           f"{100 * alone[task][0]:.1f} %, {large} {100 * alone[task][1]:.1f} %.\n\n{table(points)}"
                           for task, points in tables.items())
    return f"""---
license: apache-2.0
---

# arith-{algorithm}

{TITLES[algorithm]}

For {small} (SHA-256 `{models.hashes[0]}`) with {large} (`{models.hashes[-1]}`), and no other pair.

- Sizes: {json.dumps(network.sizes)}; {sum(p.numel() for p in network.parameters()):,} parameters.
- Trained by experiments/train/routers on {said['problems']:,} problems of the training split (arith and symbols),
  {said['places']:,} tokens, {said['minutes']:.0f} minutes; a tenth of the problems was held out.
- Labels: {counts}.
- Held out: {json.dumps(held)}.
- Default threshold {metadata['threshold']}: {rule}.
- router.safetensors: SHA-256 `{digest}`.

{sections}

Greedy answers. A share is of committed tokens; p is hand-offs a step of the small model.
"""


def toml(models, mixture, found, alone, count):
    """arith-thresholds.toml."""
    lines = [f"# What thresholds give on {count} validation problems of each family, greedy, by",
             "# experiments/train/routers/calibrate.py. Lists go together, by rising share of the large model.",
             "# large_share: of committed tokens. p: hand-offs a step of the small model.", "",
             f"models = {json.dumps([f.name for f in mixture.folders])} # of me; the others have the first and last",
             f"hashes = {json.dumps(mixture.hashes)}", f"problems = {count}", ""]
    for task, routings in found.items():
        lines += [f"[{task}]", f"small_accuracy = {alone[task][0]:.4f}", f"large_accuracy = {alone[task][1]:.4f}", ""]
        for algorithm, points in routings.items():
            lines.append(f"[{task}.{algorithm}]")
            lines.append(f"{'weights' if algorithm == 'me' else 'thresholds'} = "
                         f"{json.dumps([p['value'] for p in points])}")
            for name in ("large_share", "p", "accuracy", "accuracy_low", "accuracy_high"):
                lines.append(f"{name} = [{', '.join(format(p[name], '.4f') for p in points)}]")
            lines.append("")
    return "\n".join(lines)


def calibrate(models, mixture, out, work, program, count, tasks):
    """Runs all points, and writes defaults, cards and the file of thresholds."""
    found, alone = {}, {}
    for task in tasks:
        c = Calibration(models, mixture, out, work, program, task, count)
        alone[task] = [c.point("alone", m)["accuracy"] for m in (0, len(models.models) - 1)]
        found[task] = {a: c.points(a) for a in (*TRAINED, "rstitch", "me")}
    for algorithm in TRAINED:
        folder = out / f"arith-{algorithm}"
        if algorithm != "r2r":
            metadata = json.loads((folder / "router.json").read_text())
            metadata["threshold"] = best(found[tasks[0]][algorithm])["value"]
            (folder / "router.json").write_text(json.dumps(metadata, indent=2) + "\n")
        tables = {task: routings[algorithm] for task, routings in found.items()}
        (folder / "README.md").write_text(card(models, algorithm, folder, tables, alone, count))
    (out / "arith-thresholds.toml").write_text(toml(models, mixture, found, alone, count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--large", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--mid", type=pathlib.Path, help="model folder, the second of ME's three")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for what has been run")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder with the router folders")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--count", type=int, default=200, help="validation problems of a family")
    parser.add_argument("--tasks", nargs="+", default=["arith", "symbols"], help="the first sets defaults")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    models = pair.Models((options.small, options.large))
    mixture = pair.Models([f for f in (options.small, options.mid, options.large) if f])
    calibrate(models, mixture, options.out, options.work, options.tokenrouter, options.count, options.tasks)


if __name__ == "__main__":
    main()
