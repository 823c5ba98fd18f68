"""Compares an exported model, and the answers that the program's device gives with it, with Hugging Face transformers.

    python check.py FOLDER --tokenrouter ../../bin/tokenrouter [--count 25]

Fails if ids of a chat prompt differ, if float32 logits of this folder's own model differ from those of transformers by
more than rounding, or if a greedy answer of the program is not that of transformers in float32. The device computes in
bf16: its log-probabilities may be off by TOLERANCE, and where two tokens are within MARGIN of each other either may be
taken. Such answers are listed; what follows the token is compared with transformers' own continuation of it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

import data
import evaluate
from model import END

FLOAT32_TOLERANCE = 1e-4  # of a float32 run against another, in standard deviations of the logits
# Of a bf16 run against a float32 one, in standard deviations of a row of logits; exec/model/transformers measures 0.11
# between two ways to compute a model in bf16.
TOLERANCE = MARGIN = 0.11


def prompts_of(folder, problems):
    """Ids of chat prompts, which are transformers' own."""
    own_tokens, tokens, prompts = data.tokenizer(), AutoTokenizer.from_pretrained(folder), []
    for p in problems:
        ids = tokens.apply_chat_template([{"role": "user", "content": p["prompt"]}], add_generation_prompt=True,
                                         return_dict=False)
        if ids != own_tokens.encode(data.prompt_text(p["prompt"])).ids:
            raise SystemExit(f"{p['id']}: transformers gives the prompt other ids")
        prompts.append(ids)
    return prompts


def answers_of(program, folder, problems):
    """Tokens and log-probabilities of the device's greedy answers, the end of each included if it was reached."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps({"prompt": p["prompt"]}) + "\n" for p in problems))
        file.flush()
        out = subprocess.run([program, "generate", "--small", folder, "--json", "--temperature", "0", "-n", "8",
                              "--max-tokens", str(evaluate.ANSWER_MAX), "--prompts", file.name],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(a["tokens"] + [END] * (a["finish_reason"] == "stop"), a["logprobs"]) for a in json.loads(out)["answers"]]


@torch.no_grad()
def compared(model, prompt, answer, logs):
    """The places at which transformers' most likely token is another, as (place, token, how far behind, in deviations),
    and how far log-probabilities are apart at most, in deviations."""
    logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1:-1]
    wanted, deviation = torch.tensor(answer), logits.std(dim=-1)
    best = logits.max(dim=-1)
    behind = (best.values - logits.gather(1, wanted[:, None])[:, 0]) / deviation
    places = [(i, int(best.indices[i]), float(behind[i])) for i in (best.indices != wanted).nonzero()[:, 0].tolist()]
    theirs = logits.log_softmax(dim=-1).gather(1, wanted[:, None])[:, 0][:len(logs)]
    apart = (theirs - torch.tensor(logs)).abs() / deviation[:len(logs)]
    return places, apart.max().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="a model that export.py wrote")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--count", type=int, default=25, help="validation problems of a task")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.disable_progress_bar()
    problems = [p for task in data.TASKS
                for p in data.problems(options.tokenrouter, task, "validation", options.count, 1)]
    prompts = prompts_of(options.folder, problems)
    own = evaluate.loaded(options.folder).float()
    published = AutoModelForCausalLM.from_pretrained(options.folder, dtype=torch.float32).eval()
    with torch.no_grad():
        whole = torch.tensor([prompts[-1] + data.tokenizer().encode(problems[-1]["answer"]).ids])
        ours, theirs = own.logits(own.hidden(whole)), published(whole).logits
        worst = ((ours - theirs).abs().max() / theirs.std()).item()
    print(f"{options.folder.name}: float32 logits are {worst:.1e} of their deviation apart")
    if not worst < FLOAT32_TOLERANCE:
        raise SystemExit(f"want at most {FLOAT32_TOLERANCE:g}")
    same, apart, wrong = 0, 0.0, 0
    for p, prompt, (answer, logs) in zip(problems, prompts, answers_of(options.tokenrouter, options.folder, problems)):
        places, off = compared(published, prompt, answer, logs)
        apart, same = max(apart, off), same + (not places)
        for place, token, behind in places:
            wrong += behind > MARGIN
            print(f"{p['id']}: token {place} of {len(answer)} is {answer[place]}; transformers has {token}, which leads "
                  f"by {behind:.3f} deviations{', too much' if behind > MARGIN else ''}")
    print(f"{options.folder.name}: {same} of {len(problems)} greedy answers of the device are those of transformers, "
          f"log-probabilities at most {apart:.3f} deviations apart")
    if wrong or not apart < TOLERANCE:
        raise SystemExit(f"want at most {MARGIN:g}")


if __name__ == "__main__":
    main()
