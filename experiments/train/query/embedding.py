"""What a prompt looks like to the small model: a point for mf and sw.

The embedding of a prompt is the mean over its tokens of the small model's hidden states after its first layer, less
their mean over the training prompts and divided by their deviation, number by number; and a 1 after them, from which
mf, which has no biases, learns how often the large model wins at all. All layers would take three times as long, and
told wins no better where that was tried.
"""

import torch

import fitting
import preferences  # noqa: F401: before model: it says where that is
from model import rope_table

LAYERS = 1


def states(model, prompts):
    """[prompts][hidden] of a float32 model."""
    def mean(part):
        tokens, lengths = fitting.filled(part)
        x = model.model.embed_tokens(tokens)
        turn = rope_table(tokens.shape[1], x.dtype)
        for layer in model.model.layers[:LAYERS]:
            x = layer(x, turn)
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        return (x * real[..., None]).sum(dim=1) / lengths[:, None]
    return fitting.in_batches(prompts, 64, mean)


class Embedding:
    def __init__(self, model, prompts):
        """As the prompts of training are spread."""
        self.model, self.prompts, self.states = model, prompts, states(model, prompts)
        self.mean = self.states.mean(dim=0)
        self.deviation = self.states.std(dim=0, correction=0).clamp(min=1e-3)

    def __call__(self, prompts):
        raw = self.states if prompts is self.prompts else states(self.model, prompts)
        scaled = (raw - self.mean) / self.deviation
        return torch.cat([scaled, torch.ones(len(prompts), 1)], dim=1)

    def sizes(self):
        return {"embedding_layers": LAYERS}

    def tensors(self):
        return {"embedding.mean": self.mean, "embedding.deviation": self.deviation}
