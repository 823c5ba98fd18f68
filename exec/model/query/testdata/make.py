#!/usr/bin/env python3
"""Makes the folders of this folder with the scripts of experiments/train/query, and the scores that PyTorch gives.

    make transformers
    .transformers/bin/python exec/model/query/testdata/make.py

    small/                    a Qwen3 model of random weights
    mf/, sw/, bert/, causal/  routers of random weights for it
    scores.json               prompts as ids, and their scores: float64 from the same weights
"""

import dataclasses
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parents[3] / "experiments" / "train"
sys.path.insert(0, str(TRAIN / "query"))

import classifier  # noqa: E402
import embedding  # noqa: E402
import folder  # noqa: E402
import mf  # noqa: E402
import preferences  # noqa: E402
import sw  # noqa: E402
from model import Model, Shape  # noqa: E402

SHAPE = Shape(layers=2, hidden=24, heads=2, kv_heads=1, intermediate=40, vocab=48)


class TinyEncoder(classifier.Encoder):
    LAYERS, HEADS, INTERMEDIATE = 1, 2, 24


class TinyLabeller(classifier.Labeller):
    RANK = 2


@dataclasses.dataclass
class Models:
    """What folder.write asks of a pair."""
    small: Model
    folders: list
    hashes: list


def randomise(network, deviation):
    """Norms about 1, all else about 0."""
    with torch.no_grad():
        for name, p in network.named_parameters():
            p.normal_(1.0 if "norm" in name else 0.0, 0.2 if "norm" in name else deviation)
            p.copy_(p.bfloat16())
    return network


def small_model():
    path = HERE / "small"
    path.mkdir(exist_ok=True)
    model = randomise(Model(SHAPE), 0.3)
    save_file({n: p.detach().bfloat16() for n, p in model.named_parameters()}, path / "model.safetensors",
              {"format": "pt"})
    (path / "model.safetensors").chmod(0o644)
    (path / "config.json").write_text(json.dumps(SHAPE.config(), indent=2) + "\n")
    (path / "tokenizer.json").write_text("{}\n")  # only its hash is looked at
    return Models(model.double(), [path, pathlib.Path("none")], [folder.sha256(path / "model.safetensors"), 64 * "0"])


def main():
    torch.manual_seed(3)
    draw = np.random.default_rng(3)
    prompts = [draw.integers(0, SHAPE.vocab, size=n).tolist() for n in (1, 2, 3, 5, 8, 13, 21, 34)]
    stored = [draw.integers(0, SHAPE.vocab, size=n).tolist() for n in draw.integers(1, 30, size=20)]
    models = small_model()
    points = embedding.Embedding(models.small, stored)
    size = SHAPE.hidden + 1
    outcomes = torch.from_numpy(draw.choice([0, 0.5, 1], size=len(stored))).float()
    routers = {
        "mf": mf.router(randomise(mf.Factorisation(size, 6), 0.8).double(), points),
        "sw": sw.router(sw.Store(points(stored).bfloat16(), outcomes), points),
        "bert": classifier.router(randomise(TinyEncoder(SHAPE.vocab, 1), 0.12).double()),
        "causal": classifier.router(labeller(models.small)),
    }
    right = [draw.integers(0, 2, size=len(stored)).astype(bool) for _ in range(2)]
    tasks = np.array(["arith", "symbols"] * (len(stored) // 2))
    validation = preferences.Preferences(stored, tasks, *right)
    scores = {"source": f"PyTorch {torch.__version__}, float64", "prompts": prompts}
    for kind, (tensors, sizes, score) in routers.items():
        with torch.no_grad():
            tensors = {n: t if t.dtype == torch.bfloat16 else t.float() for n, t in tensors.items()}
            folder.write(HERE / kind, kind, models, sizes, tensors, score(stored).numpy(), validation, "random weights")
            scores[kind] = score(prompts).tolist()
        (HERE / kind / "README.md").unlink()
    (HERE / "scores.json").write_text(json.dumps(scores) + "\n")


def labeller(small):
    network = TinyLabeller(small, 1)
    learnt = [p for p in network.parameters() if p.requires_grad]
    with torch.no_grad():
        for p in learnt:
            p.normal_(0, 0.3)
    return network.double()


if __name__ == "__main__":
    main()
