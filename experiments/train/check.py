"""Compares an exported model with Hugging Face transformers.

    python check.py FOLDER --tokenrouter ../../bin/tokenrouter [--count 50]

Fails if float32 logits of this folder's own model differ from those of transformers by more than rounding, or if ids
of a chat prompt differ. Greedy bf16 answers to validation problems are compared too; problems where they differ are
listed with the first token that does, since near-ties may fall either way in bf16.
"""

import argparse
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import data
import evaluate
from model import END, PAD

LOGITS_TOLERANCE = 1e-4  # of a float32 run against another, in standard deviations of the logits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="a model that export.py wrote")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--count", type=int, default=50, help="problems of a task")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    problems = [p for task in data.TASKS
                for p in data.problems(options.tokenrouter, task, "validation", options.count, 1)]
    own_tokens, tokens = data.tokenizer(), AutoTokenizer.from_pretrained(options.folder)
    prompts = []
    for p in problems:
        ids = tokens.apply_chat_template([{"role": "user", "content": p["prompt"]}], add_generation_prompt=True,
                                         return_dict=False)
        if ids != own_tokens.encode(data.prompt_text(p["prompt"])).ids:
            raise SystemExit(f"{p['id']}: transformers gives the prompt other ids")
        prompts.append(ids)
    own = evaluate.loaded(options.folder)
    published = AutoModelForCausalLM.from_pretrained(options.folder, dtype=torch.float32).eval()
    with torch.no_grad():
        whole = own_tokens.encode(data.prompt_text(problems[-1]["prompt"]) + problems[-1]["answer"]).ids
        ours, theirs = own.float(), published(torch.tensor([whole])).logits
        worst = ((ours.logits(ours.hidden(torch.tensor([whole]))) - theirs).abs().max() / theirs.std()).item()
    print(f"float32 logits: {worst:.1e} of their deviation apart")
    if not worst < LOGITS_TOLERANCE:
        raise SystemExit(f"want at most {LOGITS_TOLERANCE:g}")
    own, published = own.bfloat16(), published.bfloat16()
    differ = 0
    for p, prompt in zip(problems, prompts):
        ours = own.greedy([prompt], evaluate.ANSWER_MAX, own_tokens.get_vocab_size())[0]
        theirs = published.generate(torch.tensor([prompt]), max_new_tokens=evaluate.ANSWER_MAX, do_sample=False,
                                    eos_token_id=END, pad_token_id=PAD)[0, len(prompt):].tolist()
        theirs = theirs[:theirs.index(END)] if END in theirs else theirs
        if ours != theirs:
            differ += 1
            at = next(i for i, (a, b) in enumerate(zip(ours + [END], theirs + [END])) if a != b)
            print(f"{p['id']}: token {at} of {len(theirs)} is {(ours + [END])[at]}, transformers {(theirs + [END])[at]}")
    print(f"greedy bf16 answers: {len(problems) - differ} of {len(problems)} the same")


if __name__ == "__main__":
    main()
