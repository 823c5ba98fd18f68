"""Greedy answers in which several models take turns by token, in lockstep: the reference of the executor.

All models read every committed token, so that each has what it would have had after a hand-off; who made a token is
the rule's choice. The definitions are those of core/route.
"""

import dataclasses
import math

import torch

from pair import LIVELY, Reader, logits, side_by_side
from model import END


@dataclasses.dataclass
class Output:
    """What a model says of one place, a row a request."""
    hidden: torch.Tensor  # [rows][hidden] after the last norm
    logits: torch.Tensor  # [rows][vocabulary] float32
    token: torch.Tensor  # [rows] the most likely one


@dataclasses.dataclass
class Answer:
    """One answer: its tokens with the end, who made each, and for each the small model's signal (None: none)."""
    tokens: list
    origins: list
    signals: list
    margins: list  # from the token's logit to its maker's next one, in standard deviations of the row


class Scored:
    """R2R, CITER and Co-LLM: the network's score sends a place to the large model, which makes one token."""

    def __init__(self, algorithm, network, threshold, embeddings):
        self.algorithm, self.network, self.threshold, self.embeddings = algorithm, network, threshold, embeddings

    def scores(self, out):
        if self.algorithm != "r2r":
            return self.network(out.hidden.float()).sigmoid()
        z = out.logits.topk(self.network.sizes["top_logits"], dim=-1).values
        return self.network(out.hidden.float(), self.embeddings[out.token].float(), z).sigmoid()

    def choose(self, outs, active):
        score = self.scores(outs[0])
        leaves = {"r2r": score >= self.threshold, "citer": score < self.threshold,
                  "collm": score > self.threshold}[self.algorithm]
        return leaves.long() * (len(outs) - 1), torch.zeros_like(active), score


def entropy(rows):
    """Of the distributions of rows of logits, divided by the logarithm of the width: 0 to 1."""
    return torch.special.entr(rows.softmax(dim=-1)).sum(dim=-1) / math.log(rows.shape[-1])


class RStitch:
    """The large model takes over where the small one's entropy is above the threshold, and hands back after a token
    at which its own is not."""

    def __init__(self, threshold):
        self.threshold = threshold

    def choose(self, outs, active):
        small, large = entropy(outs[0].logits), entropy(outs[-1].logits)
        origin = ((active > 0) | (small > self.threshold)).long()
        return origin, origin * (large > self.threshold).long(), small


class ME:
    """The model of every token is drawn by fixed weights. The draws are not the executor's."""

    def __init__(self, weights, seed=1):
        self.weights, self.draws = torch.tensor(weights), torch.Generator().manual_seed(seed)

    def choose(self, outs, active):
        origin = torch.multinomial(self.weights, len(active), replacement=True, generator=self.draws)
        return origin, origin, torch.zeros(len(active))


class Alone:
    """One model makes all tokens."""

    def __init__(self, model):
        self.model = model

    def choose(self, outs, active):
        return torch.full_like(active, self.model), active, torch.zeros(len(active))


@dataclasses.dataclass
class Walked:
    answers: list
    small_steps: int = 0  # places that the small model judged
    hand_offs: int = 0  # of these, those that went to another model

    def shares(self, models):
        """Of all tokens, by model."""
        origins = [o for a in self.answers for o in a.origins]
        return [origins.count(m) / max(1, len(origins)) for m in range(models)]

    def p(self):
        """Hand-offs a step of the small model."""
        return self.hand_offs / max(1, self.small_steps)


@torch.no_grad()
def walk(models, prompts, rule, most):
    """Answers of all prompts, each of at most `most` tokens. Prompts of nearly equal length go together."""
    answers = [Answer([], [], [], []) for _ in prompts]
    walked = Walked(answers)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for begin in range(0, len(order), 200):
        live = order[begin:begin + 200]
        readers = [Reader(m, [prompts[i] for i in live], most) for m in models.models]
        tokens = side_by_side([prompts[i] for i in live])
        active = torch.zeros(len(live), dtype=torch.long)
        while True:
            outs = []
            for reader in readers:
                hidden = reader.read(tokens)
                rows = logits(reader.model, hidden)
                outs.append(Output(hidden, rows, models.best(rows)))
            origin, after, signal = rule.choose(outs, active)
            going = commit(models, answers, live, outs, origin, signal, most)
            judged = torch.tensor([i is not None for i in live]) & (active == 0)
            walked.small_steps += int(judged.sum())
            walked.hand_offs += int((judged & (origin > 0)).sum())
            live = [i if row in going else None for row, i in enumerate(live)]
            if not going:
                break
            tokens = torch.stack([o.token for o in outs])[origin, torch.arange(len(origin))][:, None]
            active = after
            if len(going) < LIVELY * len(live):
                rows = torch.tensor(sorted(going))
                for reader in readers:
                    reader.keep(rows)
                live, tokens, active = [live[r] for r in rows.tolist()], tokens[rows], active[rows]
    return walked


def commit(models, answers, live, outs, origin, signal, most):
    """Adds the chosen tokens to the answers of live rows and returns the rows that go on."""
    going = set()
    margins = []
    for o in outs:
        two = o.logits[:, :models.real].topk(2, dim=-1).values
        margins.append((two[:, 0] - two[:, 1]) / o.logits.std(dim=-1))
    for row, i in enumerate(live):
        if i is None:
            continue
        m = int(origin[row])
        a, token = answers[i], int(outs[m].token[row])
        a.tokens.append(token)
        a.origins.append(m)
        a.signals.append(float(signal[row]))
        a.margins.append(float(margins[m][row]))
        if token != END and len(a.tokens) < most:
            going.add(row)
    return going
