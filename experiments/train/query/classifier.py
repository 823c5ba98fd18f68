"""Classifiers with a label for the large model's win, a tie, and its loss; the win rate is the chance of a win.

bert: an encoder over the models' tokens, from random weights: the layers of model.py, but every token sees all of
the prompt, as in ModernBERT; the mean of the last hidden states goes into a linear layer. RouteLLM's is XLM-RoBERTa.

causal: the small model itself, which answers with a label token instead of the first token of an answer. RouteLLM
trains all of Llama 3 8B; here the matrices of the layers learn a change of low rank (LoRA, arXiv 2106.09685), so that
a router is small beside its model.
"""

import copy

import torch
from torch import nn

import fitting
from preferences import WIN  # before model: it says where that is
from model import HEAD_DIM, Model, Shape, rope_table

LABELS = 3
MATRICES = {"self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}


def last(model, tokens, lengths):
    """Hidden states [rows][hidden] of each row's last token."""
    return model.hidden(tokens)[torch.arange(len(tokens)), lengths - 1]


class Encoder(nn.Module):
    """bert."""

    LAYERS, HEADS, INTERMEDIATE = 2, 2, 256
    EPOCHS, ROWS, RATE, DECAY = 12, 32, 1e-3, 0.05

    def __init__(self, vocab, seed):
        super().__init__()
        hidden = self.HEADS * HEAD_DIM
        body = Model(Shape(self.LAYERS, hidden, self.HEADS, self.HEADS, self.INTERMEDIATE, vocab))
        body.initialise(seed)
        self.model = body.model
        self.classifier = nn.Linear(hidden, LABELS)
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, prompts):
        """Logits of labels."""
        tokens, lengths = fitting.filled(prompts)
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        x = self.model.embed_tokens(tokens)
        turn = rope_table(tokens.shape[1], x.dtype)
        for layer in self.model.layers:
            x = layer(x, turn, real[:, None, None, :])
        mean = (self.model.norm(x) * real[..., None]).sum(dim=1) / lengths[:, None]
        return self.classifier(mean)

    def sizes(self):
        s = self.model.embed_tokens.weight.shape
        return {"layers": self.LAYERS, "width": s[1], "heads": self.HEADS, "intermediate": self.INTERMEDIATE,
                "vocab": s[0]}


class LowRank(nn.Module):
    """A linear layer and a change of low rank, at first none."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base.weight
        self.lora_A = nn.Parameter(torch.randn(rank, self.base.shape[1]) / self.base.shape[1] ** 0.5)
        self.lora_B = nn.Parameter(torch.zeros(self.base.shape[0], rank))

    def forward(self, x):
        return nn.functional.linear(x, self.base) + (x @ self.lora_A.T) @ self.lora_B.T


class Labeller(nn.Module):
    """causal."""

    RANK = 8
    EPOCHS, ROWS, RATE, DECAY = 4, 32, 1e-3, 0.0

    def __init__(self, small, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.body = copy.deepcopy(small).requires_grad_(False)
        for layer in self.body.model.layers:
            for part, names in MATRICES.items():
                for name in names:
                    setattr(getattr(layer, part), name, LowRank(getattr(getattr(layer, part), name), self.RANK))
        self.labels = nn.Parameter(0.02 * torch.randn(LABELS, small.shape.hidden))

    def forward(self, prompts):
        tokens, lengths = fitting.filled(prompts)
        return last(self.body, tokens, lengths) @ self.labels.T

    def sizes(self):
        return {"rank": self.RANK}


def fit(network, preferences, seed):
    """Trains all parameters that want gradients."""
    torch.manual_seed(seed)
    labels = torch.from_numpy(preferences.labels())

    def loss(part, training):
        return nn.functional.cross_entropy(network([preferences.prompts[i] for i in part]), labels[part])

    fitting.fit(network, loss, preferences, network.EPOCHS, network.ROWS, network.RATE, network.DECAY, seed)
    return router(network)


def router(network):
    """Tensors, sizes, and what scores prompts, after rounding what was learnt to bf16."""
    learnt = {name.removeprefix("body."): p for name, p in network.named_parameters() if p.requires_grad}
    with torch.no_grad():
        for p in learnt.values():
            p.copy_(p.bfloat16())
    tensors = {name if name != "labels" else "labels.weight": p.detach().bfloat16() for name, p in learnt.items()}
    return tensors, network.sizes(), lambda prompts: fitting.in_batches(
        prompts, 64, lambda part: network(part).softmax(dim=1)[:, WIN])
