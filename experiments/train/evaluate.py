"""Greedy answers of an exported model to problems, scored by the program.

    python evaluate.py FOLDER --tokenrouter ../../bin/tokenrouter [--split test] [--count 500] [--out DIR]

The test problems are those that results are given for; those of the other splits are for choosing. Writes
DIR/SPLIT-problems.jsonl and DIR/SPLIT-answers.jsonl (default: the model's folder), and prints the scores.
"""

import argparse
import json
import pathlib
import subprocess

import torch
from safetensors.torch import load_file

import data
from model import Model, Shape

ROWS = 50  # problems at a time
ANSWER_MAX = 400  # tokens


def loaded(folder):
    """The bf16 model of a folder, of those that export.py wrote."""
    c = json.loads((folder / "config.json").read_text())
    shape = Shape(c["num_hidden_layers"], c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"],
                  c["intermediate_size"], c["vocab_size"])
    model = Model(shape).bfloat16()
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model


def answers(model, problems):
    """Texts of greedy answers, in order. Problems with prompts of nearly equal length go together."""
    tokens = data.tokenizer()
    prompts = [tokens.encode(data.prompt_text(p["prompt"])).ids for p in problems]
    order = sorted(range(len(problems)), key=lambda i: len(prompts[i]))
    texts = [""] * len(problems)
    for begin in range(0, len(order), ROWS):
        part = order[begin:begin + ROWS]
        made = model.greedy([prompts[i] for i in part], ANSWER_MAX, tokens.get_vocab_size())
        for i, ids in zip(part, made):
            texts[i] = tokens.decode(ids, skip_special_tokens=False)
    return texts


def score(program, problems, texts, problems_path, answers_path):
    """Writes both files and returns the rows that `task score --json` gives."""
    problems_path.write_text("".join(json.dumps(p) + "\n" for p in problems))
    answers_path.write_text("".join(json.dumps({"id": p["id"], "text": t}) + "\n" for p, t in zip(problems, texts)))
    out = subprocess.run([program, "task", "score", problems_path, answers_path, "--json"], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)["rows"]


def measured(model, program, split, count, folder):
    """Scores of both tasks."""
    problems = [p for task in data.TASKS for p in data.problems(program, task, split, count, 1)]
    return score(program, problems, answers(model, problems), folder / f"{split}-problems.jsonl",
                 folder / f"{split}-answers.jsonl")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="a model that export.py wrote")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--split", default="test", choices=("test", "validation", "train"))
    parser.add_argument("--count", type=int, default=500, help="problems of a task")
    parser.add_argument("--out", type=pathlib.Path, help="folder for problems and answers")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    out = options.out or options.folder
    out.mkdir(parents=True, exist_ok=True)
    rows = measured(loaded(options.folder), options.tokenrouter, options.split, options.count, out)
    print("task      level  problems  correct  accuracy  95 % interval")
    for r in rows:
        print(f"{r['task']:8} {r['level'] or 'all':>6} {r['problems']:9} {r['correct']:8} {r['accuracy']:9.3f}"
              f"  {r['accuracy_low']:.3f} to {r['accuracy_high']:.3f}")


if __name__ == "__main__":
    main()
