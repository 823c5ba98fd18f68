#!/usr/bin/env python3
"""Makes the router folders of this folder with PyTorch, and the scores that PyTorch gives.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors==0.8.0 numpy
    venv/bin/python make.py

    r2r/, citer/, collm/    folders as doc.go describes them: state_dicts of networks built as the papers say
    scores.json             rows of inputs and their scores, computed in float64 from the same weights
"""

import json
import os

import safetensors.torch
import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN, TOP, WIDTH, BLOCKS, EXPANDED = 12, 10, 16, 2, 64
ROWS = 8
DEVIATIONS = {"logits_projection.weight": 0.03}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, EXPANDED), nn.GELU(), nn.Dropout(0.1), nn.Linear(EXPANDED, WIDTH),
                                 nn.Dropout(0.1))

    def forward(self, x):
        return x + self.mlp(self.layer_norm(x))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_projection = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.output_layer = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1))

    def forward(self, x):
        return self.output_layer(self.blocks(self.input_projection(x)))


class R2R(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits_projection = nn.Linear(TOP, HIDDEN)
        self.combined_projection = nn.Linear(3 * HIDDEN, WIDTH)
        self.backbone = Backbone()

    def forward(self, h, e, z):
        return self.backbone(self.combined_projection(torch.cat([h, e, self.logits_projection(z)], dim=-1)))


class CITER(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(HIDDEN, 2 * HIDDEN), nn.BatchNorm1d(2 * HIDDEN), nn.ReLU(), nn.Dropout(0.1),
                                 nn.Linear(2 * HIDDEN, HIDDEN), nn.Dropout(0.1))
        self.linear = nn.Linear(HIDDEN, 1)

    def forward(self, h, e, z):
        return self.linear(self.mlp(h))


class CoLLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.defer = nn.Embedding(1, HIDDEN)

    def forward(self, h, e, z):
        return h @ self.defer.weight.T


def folder(name, network, metadata):
    for key, value in network.state_dict().items():
        if value.dtype == torch.float32:
            torch.nn.init.normal_(value, std=DEVIATIONS.get(key, 0.35 if name == "citer" else 0.7))
        if key.endswith("running_var"):
            value.abs_()
    network.eval()
    directory = os.path.join(HERE, name)
    os.makedirs(directory, exist_ok=True)
    state = {k: v.contiguous() for k, v in network.state_dict().items()}
    if name == "collm":
        state["defer.weight"] = state["defer.weight"][0].contiguous()
    safetensors.torch.save_file(state, os.path.join(directory, "router.safetensors"))
    with open(os.path.join(directory, "router.json"), "w") as file:
        json.dump({"algorithm": name, "hidden_size": HIDDEN, **metadata}, file, indent=2)
        file.write("\n")
    with torch.no_grad():
        inputs = [x.double() for x in (HIDDENS, EMBEDDINGS, LOGITS)]
        return torch.sigmoid(network.double()(*inputs))[:, 0].tolist()


torch.manual_seed(7)
HIDDENS = torch.randn(ROWS, HIDDEN)
EMBEDDINGS = 0.1 * torch.randn(ROWS, HIDDEN)
LOGITS = (15 + 5 * torch.randn(ROWS, TOP)).sort(descending=True).values
scores = {
    "source": f"PyTorch {torch.__version__}, float64",
    "hidden": HIDDENS.tolist(), "embeddings": EMBEDDINGS.tolist(), "logits": LOGITS.tolist(),
    "r2r": folder("r2r", R2R(), {"top_logits": TOP, "width": WIDTH, "threshold": 0.5}),
    "citer": folder("citer", CITER(), {"threshold": 0.95, "small_model": "none"}),
    "collm": folder("collm", CoLLM(), {}),
}
with open(os.path.join(HERE, "scores.json"), "w") as file:
    json.dump(scores, file)
    file.write("\n")
