"""Trains one model of models.toml; goes on where it was stopped.

    python train.py arith-small --data DIR --runs DIR [--minutes M] [--threads N]

RUNS/MODEL has checkpoint.pt and log.jsonl. The end of --minutes, an interrupt or SIGTERM stop it after the step that
is under way, with a checkpoint; the same command goes on from there, with the same numbers as if it had not stopped.

Forward and backward passes are in bf16, as the models are published and run. Muon for the matrices of the layers and
AdamW for the embedding and the norms keep float32 weights, from which the bf16 ones are rounded after each step. Only
answers are learnt. A step has several passes over problems of nearly equal length; padding stands to the right, where
causal attention does not see it.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import signal
import time
import tomllib

import numpy as np
import torch

import data
from model import PAD, Model, Shape

HERE = pathlib.Path(__file__).parent
LOG_EVERY, VALIDATE_EVERY = 20, 500  # steps
SAVE_SECONDS = 600
DECAY = 0.25  # share of the steps, at the end, in which the learning rate falls to nothing


def entry(name):
    """What models.toml says of a model."""
    entries = tomllib.loads((HERE / "models.toml").read_text())
    if name not in entries:
        raise SystemExit(f"model {name!r}, want one of {', '.join(entries)}")
    return entries[name]


def shape_of(settings):
    sizes = {f.name: settings[f.name] for f in dataclasses.fields(Shape) if f.name != "vocab"}
    return Shape(**sizes, vocab=data.vocabulary(data.tokenizer()))


class Run:
    """A model under training: bf16 weights for the passes, float32 ones for the optimisers."""

    PLACE = ("step", "epoch", "batch", "tokens", "seconds", "losses")  # what a checkpoint has beside the weights

    def __init__(self, settings, fingerprint, eager=False):
        self.settings, self.fingerprint = settings, fingerprint
        self.step = self.epoch = self.batch = self.tokens = self.seconds = 0
        self.losses = []  # a token, of the steps since the last line of the log
        model = Model(shape_of(settings))
        model.initialise(settings["seed"])
        self.names = [name for name, _ in model.named_parameters()]
        self.exact = [p.detach().clone() for p in model.parameters()]
        self.model = model.bfloat16()
        for p in self.exact:
            p.grad = torch.zeros_like(p)
        named = dict(zip(self.names, self.exact))
        embedding = [named.pop("model.embed_tokens.weight")]
        matrices = [p for p in named.values() if p.dim() == 2]
        vectors = [p for p in named.values() if p.dim() == 1]
        self.optimisers = (
            torch.optim.Muon(matrices, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW([{"params": embedding, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                              betas=(0.9, 0.98), eps=1e-9, fused=True))
        self.loss = self.model.loss if eager else torch.compile(self.model.loss, dynamic=True)
        self.round()

    def round(self):
        """Makes the bf16 weights of the exact ones."""
        with torch.no_grad():
            for p, exact in zip(self.model.parameters(), self.exact):
                p.copy_(exact)

    def rate(self):
        s = self.settings
        end = next((e for e in s.get("ended", []) if self.step < e), s["steps"])
        left = (end - self.step) / (DECAY * end)
        return s["rate"] * min(1, (self.step + 1) / s["warmup"], left)

    def pass_over(self, tokens, wanted, share):
        """Adds the gradient of a batch's losses, times share, to the exact weights' and returns their sum."""
        loss = self.loss(*(torch.from_numpy(np.ascontiguousarray(x))
                           for x in (tokens[:, :-1], tokens[:, 1:], wanted[:, 1:])))
        (loss * share).backward()
        for p, exact in zip(self.model.parameters(), self.exact):
            exact.grad.add_(p.grad)
            p.grad = None
        return loss.item()

    def take_step(self, batches):
        """Learns the batches, pairs of tokens and where answers are, together. Returns loss a token and the norm of
        the gradient."""
        answers = sum(int(wanted[:, 1:].sum()) for _, wanted in batches)
        total = sum(self.pass_over(tokens, wanted, 1 / answers) for tokens, wanted in batches)
        norm = torch.nn.utils.clip_grad_norm_(self.exact, 1.0).item()
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = self.rate()
            optimiser.step()
        for p in self.exact:
            p.grad.zero_()
        self.round()
        self.step += 1
        return total / answers, norm

    def state(self):
        return {"settings": self.settings, "data": self.fingerprint, "place": {k: getattr(self, k) for k in self.PLACE},
                "optimisers": [o.state_dict() for o in self.optimisers], "weights": dict(zip(self.names, self.exact))}

    def restore(self, state):
        longer = {"steps": 0, "ended": []}  # a run may be made longer
        if {**state["settings"], **longer} != {**self.settings, **longer}:
            raise SystemExit(f"the checkpoint is of {state['settings']}, models.toml says {self.settings}")
        if state["data"] != self.fingerprint:
            raise SystemExit(f"the checkpoint is of problems {state['data']}, these are {self.fingerprint}")
        for name, value in state["place"].items():
            setattr(self, name, value)
        for optimiser, kept in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(kept)
        with torch.no_grad():
            for name, p in zip(self.names, self.exact):
                p.copy_(state["weights"][name])
        self.round()


def save(run, path):
    torch.save(run.state(), path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


@torch.no_grad()
def validated(run, problems):
    """Loss a token of answers, and by task the share of problems whose answer has every token right given those
    before it: then it is the greedy answer."""
    total = tokens = 0
    right, count = [0] * len(data.TASKS), [0] * len(data.TASKS)
    for chosen in problems.batches(0, 0, run.settings["micro_tokens"]):
        rows, wanted = (torch.from_numpy(x) for x in problems.rows(chosen, PAD))
        places = wanted[:, 1:]
        logits = run.model.logits(run.model.hidden(rows[:, :-1])[places]).float()
        targets = rows[:, 1:][places]
        total += torch.nn.functional.cross_entropy(logits, targets, reduction="sum").item()
        tokens += len(targets)
        wrong = torch.zeros_like(places)
        wrong[places] = logits.argmax(dim=-1) != targets
        for task, bad in zip(problems.tasks[chosen], wrong.any(dim=1).tolist()):
            right[task] += not bad
            count[task] += 1
    return total / tokens, {task: r / max(1, c) for task, r, c in zip(data.TASKS, right, count)}


class Log:
    """Lines of JSON, cut back to a step when a run goes on from there."""

    def __init__(self, path, step):
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        path.write_text("".join(line + "\n" for line in kept))
        self.file = path.open("a")

    def write(self, **values):
        line = json.dumps({k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in values.items()})
        print(line, file=self.file, flush=True)
        print(line, flush=True)


def train(run, training, validation, log, path, ends):
    """Takes steps until all are done or ends() says so."""
    s = run.settings
    batches = training.batches(s["seed"], run.epoch, s["micro_tokens"])
    passes = max(1, s["tokens"] // s["micro_tokens"])
    saved = time.monotonic()
    begin, spent = time.monotonic(), time.process_time()
    while run.step < s["steps"] and not ends():
        if run.batch + passes > len(batches):
            run.epoch, run.batch = run.epoch + 1, 0
            batches = training.batches(s["seed"], run.epoch, s["micro_tokens"])
        taken = [training.rows(chosen, PAD) for chosen in batches[run.batch:run.batch + passes]]
        run.batch += passes
        loss, norm = run.take_step(taken)
        run.losses.append(loss)
        run.tokens += sum(tokens.size for tokens, _ in taken)
        run.seconds += time.monotonic() - begin
        begin = time.monotonic()
        if run.step % LOG_EVERY == 0 or run.step == s["steps"]:
            log.write(step=run.step, loss=sum(run.losses) / len(run.losses), norm=norm, rate=run.rate(),
                      tokens=run.tokens, seconds=run.seconds, processor_seconds=time.process_time() - spent)
            run.losses, spent = [], time.process_time()
        if run.step % VALIDATE_EVERY == 0 or run.step == s["steps"]:
            loss, right = validated(run, validation)
            log.write(step=run.step, validation_loss=loss, validation_right=right)
        if time.monotonic() - saved > SAVE_SECONDS:
            save(run, path)
            saved = time.monotonic()
    save(run, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name in models.toml")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder that data.py wrote")
    parser.add_argument("--runs", type=pathlib.Path, required=True, help="folder for checkpoints and logs")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--eager", action="store_true", help="do not compile the model first, which takes minutes")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    end = time.monotonic() + 60 * options.minutes
    stopped = []
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: stopped.append(True))
    folder = options.runs / options.model
    folder.mkdir(parents=True, exist_ok=True)
    training, validation = (data.Problems.load(options.data / f"{split}.npz") for split in ("train", "validation"))
    run, path = Run(entry(options.model), training.fingerprint(), options.eager), folder / "checkpoint.pt"
    if path.exists():
        run.restore(torch.load(path, weights_only=True))
    train(run, training, validation, Log(folder / "log.jsonl", run.step), path,
          lambda: stopped or time.monotonic() > end)
    print(f"{options.model}: {run.step} of {run.settings['steps']} steps")


if __name__ == "__main__":
    main()
