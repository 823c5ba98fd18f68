"""The routers' networks, with the parameter names of the public code, and their folders (exec/model/router)."""

import json

import torch
from safetensors.torch import load_file, save_file
from torch import nn


class Block(nn.Module):
    def __init__(self, width, expanded):
        super().__init__()
        self.layer_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, expanded), nn.GELU(), nn.Dropout(0.1), nn.Linear(expanded, width),
                                 nn.Dropout(0.1))

    def forward(self, x):
        return x + self.mlp(self.layer_norm(x))


class Backbone(nn.Module):
    def __init__(self, width, blocks, expanded):
        super().__init__()
        self.input_projection = nn.Linear(width, width)
        self.blocks = nn.Sequential(*(Block(width, expanded) for _ in range(blocks)))
        self.output_layer = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, x):
        return self.output_layer(self.blocks(self.input_projection(x)))


class R2R(nn.Module):
    """HiddenStatesTokenLMHeadLogitsClassifier of "Roads to Rome" (arXiv 2505.21600): the logit that a token diverges.
    Published sizes for a small model of width 1536: top 100, width 1024, 6 blocks, expanded 4096."""

    def __init__(self, hidden, top=32, width=64, blocks=2, expanded=256):
        super().__init__()
        self.sizes = {"hidden_size": hidden, "top_logits": top, "width": width, "blocks": blocks,
                      "expanded_width": expanded}
        self.logits_projection = nn.Linear(top, hidden)
        self.combined_projection = nn.Linear(3 * hidden, width)
        self.backbone = Backbone(width, blocks, expanded)

    def forward(self, h, e, z):
        """h, e [rows][hidden], z [rows][top] largest raw logits, largest first."""
        return self.backbone(self.combined_projection(torch.cat((h, e, self.logits_projection(z)), dim=-1)))[:, 0]


class CITER(nn.Module):
    """The confidence network of CITER (arXiv 2502.01976): the logit that the small model's token is right."""

    def __init__(self, hidden):
        super().__init__()
        self.sizes = {"hidden_size": hidden, "width": 2 * hidden}
        self.mlp = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.BatchNorm1d(2 * hidden), nn.ReLU(), nn.Dropout(0.1),
                                 nn.Linear(2 * hidden, hidden), nn.Dropout(0.1))
        self.linear = nn.Linear(hidden, 1)

    def forward(self, h, e=None, z=None):
        return self.linear(self.mlp(h))[:, 0]


class CoLLM(nn.Module):
    """The row of Co-LLM's added token (arXiv 2403.03870): the logit of deferral."""

    def __init__(self, hidden):
        super().__init__()
        self.sizes = {"hidden_size": hidden}
        self.defer = nn.ParameterDict({"weight": nn.Parameter(torch.zeros(hidden))})

    def forward(self, h, e=None, z=None):
        return h @ self.defer["weight"]


NETWORKS = {"r2r": R2R, "citer": CITER, "collm": CoLLM}


def save(folder, algorithm, network, threshold, models, note):
    """Writes a router folder: router.json last, without which it is none."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "router.json").unlink(missing_ok=True)
    state = {name: t.detach().float().contiguous() for name, t in network.state_dict().items()
             if t.dtype.is_floating_point}
    save_file(state, folder / "router.safetensors", {"format": "pt"})
    (folder / "router.safetensors").chmod(0o644)
    said = {"algorithm": algorithm, **network.sizes, "threshold": threshold,
            "small_model": models.folders[0].name, "large_model": models.folders[-1].name,
            "small_model_hash": f"sha256:{models.hashes[0]}", "large_model_hash": f"sha256:{models.hashes[-1]}",
            "note": note}
    (folder / "router.json").write_text(json.dumps(said, indent=2) + "\n")


def load(folder):
    """The network of a folder that save wrote, for inference, and what router.json says."""
    said = json.loads((folder / "router.json").read_text())
    sizes = {"top_logits": "top", "width": "width", "blocks": "blocks", "expanded_width": "expanded"}
    given = {name: said[key] for key, name in sizes.items() if said["algorithm"] == "r2r"}
    network = NETWORKS[said["algorithm"]](said["hidden_size"], **given)
    missing, unexpected = network.load_state_dict(load_file(folder / "router.safetensors"), strict=False)
    if unexpected or any(not name.endswith("num_batches_tracked") for name in missing):
        raise SystemExit(f"{folder}: missing {missing}, unexpected {unexpected}")
    return network.eval(), said
