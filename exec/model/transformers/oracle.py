"""What Hugging Face transformers answers for the models of cases.json: answers.json.

    python oracle.py MODELS                 compares with answers.json and fails where they differ
    python oracle.py MODELS --write         writes answers.json anew, for the prompts that it has
    python oracle.py MODELS --write --choose     with new prompts
    python oracle.py MODELS --smollm DIR    also compares with smollm.json

MODELS has a folder a case, as `go run ./exec/model/transformers/make MODELS` makes them.

Prompts are random, and chosen: greedy continuations of a model without training come to near-ties often,
where rounding decides. The first prompt is taken for which the best logit leads the second by at least LEAD
spreads at each of the STEPS tokens, in float32, and whose continuation has at least DIFFERENT different
tokens. A spread is the standard deviation of a row of logits.
"""

import argparse
import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

HERE = pathlib.Path(__file__).parent
STEPS, LEAD, DIFFERENT = 16, 0.12, 5
BATCH_TOKENS, BATCHES_MAX = 8192, 100
SMOLLM_LEAD, SMOLLM_TEXTS = 0.3, (
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "The capital of France is",
    "A B C D E F",
)

# Of a float32 run against another one on other hardware, in spreads of the logits; and of a bf16 run, whose
# products depend on the instructions of the machine.
FLOAT32_TOLERANCE, BF16_TOLERANCE = 1e-4, 0.1


def loaded(folder, dtype):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager",
                                                local_files_only=True).eval()


def numbers(row):
    return [float(f"{x:.6g}") for x in row.tolist()]


def forward(model, tokens):
    """Logits and hidden states after the last norm, in float32, of tokens [batch][length]."""
    hidden = model.model(tokens, use_cache=False).last_hidden_state
    return model.lm_head(hidden).float(), hidden.float()


def greedy(model, prompts, lead_min):
    """The prompts of a batch that keep the lead, with their continuations, and the smallest lead of each."""
    tokens, leads = prompts, torch.full((len(prompts),), float("inf"))
    for _ in range(STEPS):
        last = forward(model, tokens)[0][:, -1]
        best = last.topk(2)
        leads = leads.minimum((best.values[:, 0] - best.values[:, 1]) / last.std(dim=-1))
        kept = leads >= lead_min
        tokens, leads = torch.cat([tokens, best.indices[:, :1]], dim=1)[kept], leads[kept]
        if len(tokens) == 0:
            break
    return tokens, leads


def chosen(model, case, length):
    generator = torch.Generator().manual_seed(case["seed"] * 1000 + length)
    for _ in range(BATCHES_MAX):
        prompts = torch.randint(case["config"]["vocab_size"], (BATCH_TOKENS // length, length),
                                generator=generator)
        tokens, leads = greedy(model, prompts, LEAD)
        for row, lead in zip(tokens.tolist(), leads.tolist()):
            different = len(set(row[length:]))
            if different >= DIFFERENT:
                print(f"{case['name']}: {length} tokens: lead {lead:.3f}, {different} different", flush=True)
                return row[:length]
    sys.exit(f"{case['name']}: no prompt of {length} tokens will do")


def answer(wide, narrow, prompt):
    tokens = torch.tensor([prompt])
    logits, hidden = (x[0] for x in forward(wide, tokens))
    continuation, leads = greedy(wide, tokens, 0)
    rounded, rounded_hidden = (x[0] for x in forward(narrow, tokens))
    return {
        "prompt": prompt, "greedy": continuation[0, len(prompt):].tolist(), "lead": round(leads[0].item(), 4),
        "float32": {"logits": numbers(logits[-1]), "hidden": numbers(hidden[-1])},
        "bf16": {"logits": numbers(rounded[-1]), "hidden": numbers(rounded_hidden[-1])},
        "best": logits.argmax(dim=-1).tolist(), "best_logit": numbers(logits.max(dim=-1).values),
        "log_sum_exp": numbers(logits.logsumexp(dim=-1)),
    }


def answers(models, known, choose):
    out = {}
    for case in json.loads((HERE / "cases.json").read_text()):
        wide, narrow = (loaded(models / case["name"], dtype) for dtype in (torch.float32, torch.bfloat16))
        prompts = [chosen(wide, case, length) for length in case["lengths"]] if choose else [
            a["prompt"] for a in known[case["name"]]]
        out[case["name"]] = [answer(wide, narrow, prompt) for prompt in prompts]
    return out


def smollm_answer(folder, text):
    """A real model's logits after a text: the best 40 and every 1000th of the others, and what follows as
    long as the lead is no less than SMOLLM_LEAD."""
    model = loaded(folder, torch.float32)
    prompt = AutoTokenizer.from_pretrained(folder, local_files_only=True)(text)["input_ids"]
    last = forward(model, torch.tensor([prompt]))[0][0, -1]
    tokens, leads = torch.tensor([prompt]), []
    while len(leads) < STEPS:
        row = forward(model, tokens)[0][0, -1]
        best = row.topk(2)
        lead = ((best.values[0] - best.values[1]) / row.std()).item()
        if lead < SMOLLM_LEAD:
            break
        leads.append(lead)
        tokens = torch.cat([tokens, best.indices[None, :1]], dim=1)
    ids = sorted(set(last.topk(40).indices.tolist()) | set(range(0, len(last), 1000)))
    return {
        "text": text, "prompt": prompt, "greedy": tokens[0, len(prompt):].tolist(),
        "lead": round(min(leads), 4),
        "tokens": ids, "logits": numbers(last[ids]), "spread": float(f"{last.std().item():.6g}"),
        "log_sum_exp": float(f"{last.logsumexp(dim=-1).item():.6g}"),
    }


def differences(name, got, want):
    """Says how far an answer is off, and returns what is wrong with it."""
    spread = want.get("spread") or torch.tensor(want["float32"]["logits"]).std().item()
    rows = [(f"{part} {row}", got[part][row], want[part][row], tolerance)
            for part, tolerance in (("float32", FLOAT32_TOLERANCE), ("bf16", BF16_TOLERANCE)) if part in want
            for row in ("logits", "hidden")]
    rows += [(key, got[key], want[key], FLOAT32_TOLERANCE)
             for key in ("logits", "best_logit", "log_sum_exp") if key in want]
    name, said, wrong = f"{name}, {len(want['prompt'])} tokens", [], []
    for what, a, b, tolerance in rows:
        off = (torch.tensor(a) - torch.tensor(b)).abs().max().item() / spread
        said.append(f"{what} {off:.0e}")
        if not off <= tolerance:
            wrong.append(f"{name}: {what} off by {off:.2g} spreads, want at most {tolerance}")
    for key in ("prompt", "greedy", "best", "tokens"):
        if got.get(key) != want.get(key):
            wrong.append(f"{name}: {key} {got[key]}, want {want[key]}")
    print(f"{name}: off by spreads: {', '.join(said)}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--smollm", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--choose", action="store_true")
    arguments = parser.parse_args()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    path, smollm_path = HERE / "answers.json", HERE / "smollm.json"
    known = {} if arguments.choose else json.loads(path.read_text())
    got = answers(arguments.models, known, arguments.choose)
    smollm = [smollm_answer(arguments.smollm, text) for text in SMOLLM_TEXTS] if arguments.smollm else []
    if arguments.write:
        cases = ['"%s": [\n%s]' % (name, ",\n".join(map(json.dumps, each))) for name, each in got.items()]
        path.write_text("{\n%s\n}\n" % ",\n".join(cases))
        if smollm:
            smollm_path.write_text("[\n%s\n]\n" % ",\n".join(map(json.dumps, smollm)))
        return
    wrong = []
    for name, each in got.items():
        for one, want in zip(each, known[name], strict=True):
            wrong += differences(name, one, want)
    if smollm:
        for one, want in zip(smollm, json.loads(smollm_path.read_text()), strict=True):
            wrong += differences("SmolLM2-135M-Instruct", one, want)
    if wrong:
        sys.exit("not as in answers.json:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
