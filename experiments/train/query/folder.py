"""Router folders as exec/model/query reads them, each with its card."""

import hashlib
import json

import numpy as np
from safetensors.torch import save_file

from preferences import LOSS, TIE, WIN

LEVELS = 100  # quantiles are of 0/LEVELS ... LEVELS/LEVELS
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the card

ABOUT = {
    "mf": "matrix factorisation",
    "sw": "similarity-weighted ranking",
    "bert": "a bidirectional classifier",
    "causal": "the small model, fine-tuned to say a label",
}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def area(scores, wins):
    """The chance that a win scores above what is none (area under the ROC curve); None without one of either."""
    order = np.argsort(scores, kind="stable")
    values, starts, counts = np.unique(scores[order], return_index=True, return_counts=True)
    ranks = np.empty(len(scores))
    ranks[order] = np.repeat(starts + (counts + 1) / 2, counts)
    n, m = wins.sum(), (~wins).sum()
    return (ranks[wins].sum() - n * (n + 1) / 2) / (n * m) if n and m else None


def routed(scores, preferences, share):
    """Accuracy of answers where prompts at or above the share's threshold go to the large model, and the share that
    does."""
    large = scores >= np.quantile(scores, 1 - share)
    return np.where(large, preferences.large, preferences.small).mean(), large.mean()


def quantiles(scores):
    """Ascending, whatever rounding does between equal scores."""
    return np.maximum.accumulate(np.quantile(scores, np.linspace(0, 1, LEVELS + 1))).tolist()


def shown(x):
    return "-" if x is None else f"{x:.3f}"


def measured(task, scores, preferences):
    """Lines of the card about one task's validation prompts."""
    p, labels = preferences, preferences.labels()
    wins = labels == WIN
    yield (f"**{task}**, {len(p)} prompts: the large model wins {wins.sum()}, ties {(labels == TIE).sum()}, loses "
           f"{(labels == LOSS).sum()}. Area under the ROC curve (a win against the rest) "
           f"{shown(area(scores, wins))}; scores from {scores.min():.3f} to {scores.max():.3f}.")
    yield ""
    yield "| share to the large model | accuracy of answers | at random | at best |"
    yield "|---|---|---|---|"
    small, large = p.small.mean(), p.large.mean()
    yield f"| 0 | {small:.3f} | {small:.3f} | {small:.3f} |"
    for share in SHARES:
        accuracy, real = routed(scores, p, share)
        # At best: wins go first, then ties.
        best = small + min(real, wins.mean()) - max(0, real - 1 + (labels == LOSS).mean())
        yield f"| {real:.3f} | {accuracy:.3f} | {small + real * (large - small):.3f} | {best:.3f} |"
    yield f"| 1 | {large:.3f} | {large:.3f} | {large:.3f} |"
    yield ""


def write(path, kind, models, sizes, tensors, scores, validation, note):
    """Writes router.json, router.safetensors and README.md."""
    path.mkdir(parents=True, exist_ok=True)
    save_file({name: t.detach().contiguous() for name, t in tensors.items()}, path / "router.safetensors",
              {"format": "pt"})
    (path / "router.safetensors").chmod(0o644)
    tasks = dict.fromkeys(validation.tasks.tolist())
    names = [f.name for f in models.folders]
    metadata = {
        "kind": kind, "hidden_size": models.small.shape.hidden, **sizes, "small_model": names[0],
        "small_model_hash": "sha256:" + models.hashes[0], "large_model": names[1],
        "large_model_hash": "sha256:" + models.hashes[1],
        "tokenizer_hash": "sha256:" + sha256(models.folders[0] / "tokenizer.json"), "note": note,
        "quantiles": {t: quantiles(scores[validation.tasks == t]) for t in tasks},
    }
    lines = [f'  {json.dumps(k)}: {json.dumps(v)}' for k, v in metadata.items()]
    (path / "router.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    about = [line for t in tasks for chosen in [np.flatnonzero(validation.tasks == t)]
             for line in measured(t, scores[chosen], validation.chosen(chosen))]
    (path / "README.md").write_text(f"""---
license: apache-2.0
---

# {path.name}

RouteLLM's router by {ABOUT[kind]} (arXiv 2406.18665), which sends a prompt to {names[0]} or {names[1]} as a whole. Its
score rises with the chance that only the large model answers rightly. `experiments/train/query` of the TokenRouter
project made it; exec/model/query reads it.

- {note}
- Parameters and stored numbers: {sum(t.numel() for t in tensors.values()):,}; sizes {json.dumps(sizes)}.
- router.json has the models that it belongs to, by the SHA-256 of their weights, and the quantiles of its scores over
  the validation prompts of a task, from which the threshold for a share of prompts follows.
- router.safetensors: SHA-256 `{sha256(path / "router.safetensors")}`.

## Validation

{chr(10).join(about)}""")
