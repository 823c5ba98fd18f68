"""Matrix factorisation (RouteLLM): a model's score for a prompt q is w (P[model] / |P[model]| * W q), and the large
model's chance to win is the logistic of the difference. Names, widths and training are the published ones; as q is the
embedding of embedding.py, W is narrower.

RouteLLM learns from wins and losses alone. Here the large model hardly ever loses, so that a tie counts for the small
model, as it does in RouteLLM's BERT classifier: no need for the large one.
"""

import torch
from torch import nn

import fitting
from preferences import WIN

WIDTH, NOISE, EPOCHS, ROWS, RATE, DECAY = 128, 0.1, 100, 64, 3e-4, 1e-5
SMALL, LARGE = 0, 1  # rows of P


class Factorisation(nn.Module):
    def __init__(self, size, width=WIDTH):
        super().__init__()
        self.P = nn.Embedding(2, width)
        self.text_proj = nn.Sequential(nn.Linear(size, width, bias=False))
        self.classifier = nn.Sequential(nn.Linear(width, 1, bias=False))

    def forward(self, q):
        """Logits of the large model's win."""
        models = nn.functional.normalize(self.P.weight, dim=1)
        return self.classifier((models[LARGE] - models[SMALL]) * self.text_proj(q))[:, 0]


def fit(preferences, embedding, seed):
    torch.manual_seed(seed)
    q = embedding(preferences.prompts)
    wins = torch.from_numpy(preferences.labels() == WIN).float()
    network = Factorisation(q.shape[1])

    def loss(part, training):
        x = q[part]
        if training:
            x = x + NOISE * torch.randn_like(x)
        return nn.functional.binary_cross_entropy_with_logits(network(x), wins[part])

    fitting.fit(network, loss, preferences, EPOCHS, ROWS, RATE, DECAY, seed)
    return router(network, embedding)


def router(network, embedding):
    """Tensors, sizes, and what scores prompts."""
    return ({**embedding.tensors(), **network.state_dict()}, {**embedding.sizes(), "width": network.P.weight.shape[1]},
            lambda prompts: network(embedding(prompts)).sigmoid())
