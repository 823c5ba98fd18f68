"""One way to learn for all routers that have parameters: AdamW, the epoch that is best on held-out prompts is kept."""

import copy
import math

import numpy as np
import torch

HELD = 10  # one of so many prompts for training is held out


def filled(prompts):
    """Tokens [rows][length], filled up on the right, and lengths."""
    lengths = torch.tensor([len(p) for p in prompts])
    tokens = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.long)
    for row, p in enumerate(prompts):
        tokens[row, :len(p)] = torch.as_tensor(p)
    return tokens, lengths


def batches(prompts, rows, draw=None):
    """Indices of prompts of nearly the same length, rows at a time; in random order if there is a generator."""
    lengths = np.array([len(p) for p in prompts])
    order = np.arange(len(prompts)) if draw is None else draw.permutation(len(prompts))
    parts = []
    for begin in range(0, len(order), 32 * rows):
        pool = order[begin:begin + 32 * rows]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        parts += [pool[at:at + rows] for at in range(0, len(pool), rows)]
    if draw is not None:
        draw.shuffle(parts)
    return parts


@torch.no_grad()
def in_batches(prompts, rows, function):
    """What function gives for prompts, taken rows at a time, a row each, in order."""
    made = [None] * len(prompts)
    for part in batches(prompts, rows):
        for i, row in zip(part, function([prompts[i] for i in part])):
            made[i] = row
    return torch.stack(made)


def fit(network, loss, preferences, epochs, rows, rate, decay, seed):
    """Fits the parameters of a network that want gradients. loss(indices, training) is the mean over prompts."""
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(preferences))
    held, rest = order[:len(order) // HELD], order[len(order) // HELD:]
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
    steps, step, best = epochs * math.ceil(len(rest) / rows), 0, (math.inf, None)
    for epoch in range(epochs):
        network.train()
        for part in batches([preferences.prompts[i] for i in rest], rows, draw):
            for group in optimiser.param_groups:
                group["lr"] = rate * min(1, (step + 1) / 50) * (1 - step / steps)
            optimiser.zero_grad()
            loss(rest[part], True).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            step += 1
        network.eval()
        with torch.no_grad():
            parts = batches([preferences.prompts[i] for i in held], 256)
            now = sum(loss(held[part], False).item() * len(part) for part in parts) / len(held)
        if now < best[0]:
            best = now, copy.deepcopy(network.state_dict())
    network.load_state_dict(best[1])
    return best[0]
