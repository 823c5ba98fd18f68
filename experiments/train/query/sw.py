"""Similarity-weighted ranking (RouteLLM): no training. A new prompt's battles are those of the stored prompts, each
weighted by 10 * 10^(s / max s), s being the cosine of their embeddings; the win rate is that of the Bradley-Terry
ratings which fit these battles best, a tie being half a win for each.

RouteLLM finds the ratings of some 60 models by a logistic regression. For two models the best ratings are those whose
win rate is the weighted mean of the large model's wins: sum w y / sum w.
"""

import torch

from preferences import LOSS, WIN

BATTLES = 4000  # that are stored


class Store:
    def __init__(self, points, outcomes):
        self.points, self.outcomes = points, outcomes

    def __call__(self, q):
        """Win rates of the large model for embeddings [rows][size]."""
        similar = cosine(q, self.points.to(q.dtype))
        most = similar.max(dim=1, keepdim=True).values
        exponents = torch.where(most > 0, similar / most, torch.zeros_like(similar))
        weights = 10 * 10 ** exponents
        return (weights * self.outcomes).sum(dim=1) / weights.sum(dim=1)


def cosine(a, b):
    return torch.nn.functional.normalize(a, dim=1) @ torch.nn.functional.normalize(b, dim=1).T


def fit(preferences, embedding, seed):
    kept = torch.randperm(len(preferences), generator=torch.Generator().manual_seed(seed))[:BATTLES]
    labels = torch.from_numpy(preferences.labels())[kept]
    outcomes = torch.where(labels == WIN, 1.0, torch.where(labels == LOSS, 0.0, 0.5))
    return router(Store(embedding(preferences.prompts)[kept].bfloat16(), outcomes), embedding)


def router(store, embedding):
    """Tensors, sizes, and what scores prompts."""
    tensors = {**embedding.tensors(), "battles.embedding": store.points, "battles.outcome": store.outcomes}
    return tensors, {**embedding.sizes(), "battles": len(store.outcomes)}, lambda prompts: store(embedding(prompts))
