"""Trains the networks of R2R, CITER and Co-LLM on the labels of label.py.

    python routers/learn.py r2r --small FOLDER --large FOLDER --work DIR --out ../models/arith-r2r

The models stay as they are. A tenth of the problems is held out: it says when to stop, and gives R2R's threshold. What
is published and what is not: R2R's loss (cross-entropy, positives weighted by n0 / n1), AdamW with weight decay 5e-4,
batches of 1024, and its threshold are; its learning rate of 5e-5 is for a network 500 times as large. CITER's labels,
loss and second round are, its rate of 1e-7 is not of this scale. Co-LLM's loss, start, rate and two epochs are; there
the small model learns along, here only the added row does, so that all algorithms run the same small model. With more
epochs the row saturates: the large model is the likelier one everywhere, so the loss says to defer everywhere.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

import label
import networks
import pair  # finds the modules of the folder above
import routed

HELD_EVERY = 10  # one problem in so many is held out
RECALL = 0.95  # of divergent tokens, at R2R's threshold
CITER_ROLL_OUT = 0.95  # CITER's threshold in the roll-outs of its second round
CITER_FIRST, COLLM_FIRST = 0.95, 0.5  # thresholds until calibrate.py finds better ones
DEFER_WEIGHT = 8.0  # of positives when Co-LLM's row is started
RATES = {"r2r": 1e-3, "citer": 3e-4, "collm, start": 3e-3, "collm": 2e-5}
EPOCHS, PATIENCE, BATCH, SEED = 50, 5, 1024, 1


@torch.no_grad()
def r2r_places(models, labels, top):
    """A row a token of the large model's answers: hidden state, the small model's token, its largest logits, label."""
    rows = {"h": [], "token": [], "z": [], "wanted": [], "problem": []}
    for i, (h, logits) in enumerate(label.along(models, models.small, labels.prompts, labels.own)):
        rows["h"].append(h)
        rows["token"].append(models.best(logits))
        rows["z"].append(logits.topk(top, dim=-1).values)
        rows["wanted"].append(torch.from_numpy(labels.r2r[i] == label.DIVERGENT).float())
        rows["problem"].append(torch.full((len(h),), i))
    return {name: torch.cat(parts) for name, parts in rows.items()}


@torch.no_grad()
def gold_places(models, labels):
    """A row a token of the problems' answers: hidden state, CITER's label, what Co-LLM needs."""
    rows = {"h": [], "problem": []}
    for i, (h, _) in enumerate(label.along(models, models.small, labels.prompts, labels.gold)):
        rows["h"].append(h)
        rows["problem"].append(torch.full((len(h),), i))
    places = {name: torch.cat(parts) for name, parts in rows.items()}
    joined = lambda lists: torch.from_numpy(np.concatenate(lists))
    both = [np.zeros(len(x), dtype=bool) for x in labels.citer]
    for i, t, _ in labels.both_wrong:
        both[i][t] = True
    right = joined(labels.citer)
    return places | {"wanted": right.float(), "large_only": ((right == 0) & ~joined(both)).float(),
                     "small_log": joined(labels.small_logs), "large_log": joined(labels.large_logs)}


def fit(name, network, places, loss, rate, decay=0.0, epochs=EPOCHS):
    """Learns until the loss on held-out problems has not fallen for PATIENCE epochs. Returns the curve; the network is
    left as it was at its best."""
    held = places["problem"] % HELD_EVERY == HELD_EVERY - 1
    training, test = (~held).nonzero()[:, 0], held.nonzero()[:, 0]
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=decay)
    draw, curve, best = torch.Generator().manual_seed(SEED), [], (float("inf"), None)
    torch.manual_seed(SEED)
    for epoch in range(epochs):
        began, total = time.monotonic(), 0.0
        network.train()
        for rows in training[torch.randperm(len(training), generator=draw)].split(BATCH):
            if len(rows) < 2:
                continue  # BatchNorm wants two
            value = loss(network, {k: v[rows] for k, v in places.items()})
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            total += value.item() * len(rows)
        network.eval()
        with torch.no_grad():
            tested = sum(loss(network, {k: v[rows] for k, v in places.items()}).item() * len(rows)
                         for rows in test.split(16 * BATCH)) / len(test)
        curve.append((total / len(training), tested))
        print(f"{name} epoch {epoch + 1}: loss {curve[-1][0]:.5f}, held out {tested:.5f}, "
              f"{time.monotonic() - began:.0f} s", flush=True)
        if tested < best[0]:
            best = (tested, {k: v.clone() for k, v in network.state_dict().items()}, epoch)
        elif epoch - best[2] >= PATIENCE:
            break
    network.load_state_dict(best[1])
    return curve


@torch.no_grad()
def scores(network, embeddings, places):
    """The network's scores of places, in order."""
    rows = torch.arange(len(places["h"])).split(16 * BATCH)
    return torch.cat([forward(network, embeddings, {k: v[r] for k, v in places.items()}).sigmoid() for r in rows])


def forward(network, embeddings, batch):
    if "z" not in batch:
        return network(batch["h"].float())
    return network(batch["h"].float(), embeddings[batch["token"]].float(), batch["z"])


def separated(score, wanted):
    """The area under the curve of true against false positives."""
    order = score.argsort()
    ranks = torch.empty_like(score)
    ranks[order] = torch.arange(1, len(score) + 1, dtype=score.dtype)
    positives = wanted.sum()
    return float((ranks[wanted > 0].double().sum() - positives * (positives + 1) / 2)
                 / (positives * (len(wanted) - positives)))


def recall_threshold(score, wanted):
    """Of 0.01 to 0.99, the threshold with the fewest positives of those that find RECALL of the divergent tokens, as
    published; with that share of positives and that recall."""
    best = None
    for threshold in torch.linspace(0.01, 0.99, 99).tolist():
        positive = score >= threshold
        recall = float((positive & (wanted > 0)).sum() / wanted.sum().clamp(min=1))
        if best is None or recall >= RECALL:
            best = (round(threshold, 2), float(positive.float().mean()), recall)
    return best


def learn_r2r(models, labels):
    embeddings = models.small.model.embed_tokens.weight.detach()
    network = networks.R2R(models.small.shape.hidden)
    places = r2r_places(models, labels, network.sizes["top_logits"])
    positives = places["wanted"].mean()
    weight = (1 - positives) / positives.clamp(min=1e-6)
    loss = lambda n, batch: F.binary_cross_entropy_with_logits(forward(n, embeddings, batch), batch["wanted"],
                                                               pos_weight=weight)
    curve = fit("r2r", network, places, loss, RATES["r2r"], decay=5e-4)
    held = places["problem"] % HELD_EVERY == HELD_EVERY - 1
    score, wanted = scores(network, embeddings, {k: v[held] for k, v in places.items()}), places["wanted"][held]
    threshold, share, recall = recall_threshold(score, wanted)
    return network, threshold, {"places": len(held), "divergent": float(positives), "curve": curve,
                                "held_out_auc": separated(score, wanted), "positive_share": share, "recall": recall}


def rolled_again(models, labels, network, places):
    """CITER's second round: where both models are wrong, the label is what a routed roll-out comes to."""
    rule = routed.Scored("citer", network, CITER_ROLL_OUT, None)
    cases = [(i, t, token) for i, t, token in labels.both_wrong if token != pair.END]
    walked = routed.walk(models, [labels.prompts[i] + labels.gold[i][:t] + [token] for i, t, token in cases], rule,
                         max((len(labels.gold[i]) - t + label.ROOM for i, t, _ in cases), default=1))
    starts = np.cumsum([0] + [len(a) for a in labels.gold])
    wanted = places["wanted"].clone()
    for (i, t, token), answer in zip(cases, walked.answers):
        text = models.text(labels.gold[i][:t] + [token] + answer.tokens)
        wanted[starts[i] + t] = float(pair.final(text) == labels.finals[i])
    return wanted


def learn_citer(models, labels):
    network, places = networks.CITER(models.small.shape.hidden), gold_places(models, labels)
    loss = lambda n, batch: F.binary_cross_entropy_with_logits(n(batch["h"].float()), batch["wanted"])
    first = fit("citer, first round", network, places, loss, RATES["citer"])
    wanted = rolled_again(models, labels, network, places)
    changed = int((wanted != places["wanted"]).sum())
    places["wanted"] = wanted
    print(f"citer: {changed} of {len(labels.both_wrong)} roll-outs end differently", flush=True)
    second = fit("citer, second round", network, places, loss, RATES["citer"] / 3)
    held = places["problem"] % HELD_EVERY == HELD_EVERY - 1
    score = scores(network, None, {k: v[held] for k, v in places.items()})
    return network, CITER_FIRST, {"places": len(held), "right": float(wanted.mean()), "curve": first + second,
                                  "changed_labels": changed, "held_out_auc": separated(score, places["wanted"][held])}


def learn_collm(models, labels):
    network, places = networks.CoLLM(models.small.shape.hidden), gold_places(models, labels)
    start = lambda n, batch: F.binary_cross_entropy_with_logits(
        n(batch["h"].float()), batch["large_only"], pos_weight=torch.tensor(DEFER_WEIGHT))

    def loss(n, batch):
        z = n(batch["h"].float())
        return -torch.logaddexp(F.logsigmoid(-z) + batch["small_log"], F.logsigmoid(z) + batch["large_log"]).mean()
    begin = fit("collm, start", network, places, start, RATES["collm, start"], epochs=4)
    curve = fit("collm", network, places, loss, RATES["collm"], epochs=2)
    held = places["problem"] % HELD_EVERY == HELD_EVERY - 1
    score = scores(network, None, {k: v[held] for k, v in places.items()})
    return network, COLLM_FIRST, {"places": len(held), "large_only": float(places["large_only"].mean()),
                                  "curve": begin + curve,
                                  "held_out_auc": separated(score, places["large_only"][held])}


LEARN = {"r2r": learn_r2r, "citer": learn_citer, "collm": learn_collm}


def learn(algorithm, models, labels, out):
    """Trains one network and writes its folder, with what came of it in training.json."""
    torch.manual_seed(SEED)
    began = time.monotonic()
    network, threshold, said = LEARN[algorithm](models, labels)
    note = f"trained on {len(labels.prompts)} problems of the training split of arith and symbols"
    networks.save(out, algorithm, network, threshold, models, note)
    said |= {"threshold": threshold, "problems": len(labels.prompts), "minutes": (time.monotonic() - began) / 60,
             "labels": labels.counts}
    (out / "training.json").write_text(json.dumps(said, indent=1) + "\n")
    print(f"{out}: {algorithm}, held-out AUC {said['held_out_auc']:.4f}, {said['minutes']:.1f} minutes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithm", choices=LEARN)
    parser.add_argument("--small", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--large", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder that label.py wrote")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="router folder to write")
    parser.add_argument("--parts", type=int, default=12, help="of the labels")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    models = pair.Models((options.small, options.large))
    learn(options.algorithm, models, label.Labels(options.work, options.parts), options.out)


if __name__ == "__main__":
    main()
