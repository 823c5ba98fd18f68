"""Writes a trained model in the layout of Hugging Face, with a model card.

    python export.py arith-small --runs DIR --out FOLDER --tokenrouter ../../bin/tokenrouter

FOLDER gets model.safetensors (bf16), config.json, generation_config.json, tokenizer.json, tokenizer_config.json,
README.md (the card), training.jsonl (the loss curve) and scores.json (test accuracy by task and level).
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import tempfile

import torch
from safetensors.torch import save_file

import data
import evaluate
import train
from model import END, PAD

HERE = pathlib.Path(__file__).parent
CURVE_POINTS = 12  # of the card; training.jsonl has all


def write(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def export(state, folder):
    """Writes weights, configuration and tokenizer. Returns the hash of the weights' file."""
    shape = train.shape_of(state["settings"])
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: w.detach().bfloat16().contiguous() for name, w in state["weights"].items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    write(folder / "config.json", shape.config())
    write(folder / "generation_config.json",
          {"do_sample": False, "eos_token_id": [END], "pad_token_id": PAD, "max_new_tokens": evaluate.ANSWER_MAX})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(HERE / "tokenizer" / name, folder / name)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def curve(log):
    """Rows of the card: steps, tokens, loss, loss and share of right answers on validation problems."""
    entries = {}
    for line in log:
        entries.setdefault(line["step"], {}).update(line)
    checked = [e for _, e in sorted(entries.items()) if "validation_loss" in e and "loss" in e]
    every = max(1, -(-len(checked) // CURVE_POINTS))
    rows = []
    for e in checked[::-every][::-1]:
        right = [f"{100 * e['validation_right'][task]:.1f} %" for task in data.TASKS]
        cells = [str(e["step"]), f"{e['tokens'] / 1e6:.1f}", f"{e['loss']:.4f}", f"{e['validation_loss']:.4f}", *right]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def card(name, state, log, rows, digest):
    """The model card."""
    s, place, shape = state["settings"], state["place"], train.shape_of(state["settings"])
    parameters = sum(w.numel() for w in state["weights"].values())
    earlier = "".join(f" (of the first {end} steps, too: the run was made longer)" for end in s.get("ended", []))
    scores = [f"| {r['task']} | {r['level'] or 'all'} | {r['problems']} | {100 * r['accuracy']:.1f} % | "
              f"{100 * r['accuracy_low']:.1f} to {100 * r['accuracy_high']:.1f} % |" for r in rows]
    return f"""---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---

# {name}

A Qwen3 model of {parameters:,} parameters that works out expressions of whole numbers (arith) and moves letters
(symbols), step by step. It knows nothing else. It was trained from random weights for experiments on routing between
small and large models: `experiments/train` of the TokenRouter project has the scripts, `experiments/task` the problems.

- Layers {shape.layers}, width {shape.hidden}, {shape.heads} heads of 64 ({shape.kv_heads} for keys and values),
  feed-forward {shape.intermediate}, vocabulary {shape.vocab} of which {data.tokenizer().get_vocab_size()} are used.
- Data: problems that the project's generator makes (training split; the file of data.py with fingerprint
  {state['data']}), as many as steps take; no test problem is among them. Only answers were learnt.
- Training: {place['step']} of {s['steps']} steps, {place['tokens'] / 1e6:.1f} million tokens with padding, Muon and AdamW,
  learning rate {s['rate']:g} after a warm-up of {s['warmup']} steps, brought down to nothing over the last quarter{earlier},
  weight decay 0.1, seed {s['seed']}, bf16 passes with float32 master weights, {place['seconds'] / 3600:.1f} hours on a processor.
- model.safetensors: SHA-256 `{digest}`.

## Greedy accuracy on the {rows[0]['problems'] if rows else 0} test problems of a task

| task | level | problems | accuracy | 95 % interval |
|---|---|---|---|---|
{chr(10).join(scores)}

## Loss curve

Cross-entropy a token of answers, in nats, in training and on validation problems, and the share of these whose every
token is the most likely one, given those before it.

| step | million tokens | training | validation | {' | '.join(data.TASKS)} |
|---|---|---|---|{'---|' * len(data.TASKS)}
{chr(10).join(curve(log))}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name in models.toml")
    parser.add_argument("--runs", type=pathlib.Path, required=True, help="folder with checkpoints and logs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--count", type=int, default=500, help="test problems of a task")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = options.runs / options.model
    state = torch.load(run / "checkpoint.pt", weights_only=True)
    digest = export(state, options.out)
    with tempfile.TemporaryDirectory() as scratch:
        rows = evaluate.measured(evaluate.loaded(options.out), options.tokenrouter, "test", options.count,
                                 pathlib.Path(scratch))
    shutil.copyfile(run / "log.jsonl", options.out / "training.jsonl")
    write(options.out / "scores.json", rows)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    (options.out / "README.md").write_text(card(options.model, state, log, rows, digest))
    print(f"{options.out}: step {state['place']['step']}, {digest}")


if __name__ == "__main__":
    main()
