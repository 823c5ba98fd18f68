"""Routed answers of the program against those of routed.py: same tokens, made by the same models?

    python routers/compare.py r2r --small FOLDER --large FOLDER --router FOLDER [--threshold X] \
        --tokenrouter ../../bin/tokenrouter

Both answer validation problems greedily. Where they part, the first difference is printed with its reason: two tokens
that are nearly equally likely, or a signal beside the threshold; both compute in bf16 and round differently. The exit
is 1 if a difference has no such reason.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch

import networks
import pair  # finds the modules of the folder above
import routed

import evaluate
from model import END

# How far what bf16 rounds may be off: logits in standard deviations of their row (exec/model/transformers measures
# 0.11 between two ways to compute a model in bf16), scores in logits, entropies as a share.
MARGIN, SCORE, ENTROPY = 0.11, 0.3, 0.35
SIGNALS = ("r2r", "citer", "collm", "rstitch")


def program_answers(options, problems, threshold):
    """Tokens and origins of `generate --json`."""
    command = [options.tokenrouter, "generate", "--small", options.small, "--large", options.large, "--json",
               "--algorithm", options.algorithm, "--max-tokens", str(evaluate.ANSWER_MAX)]
    if options.algorithm in SIGNALS:
        command += ["--threshold", repr(threshold)]
    if options.router:
        command += ["--router", options.router]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps({"prompt": p["prompt"]}) + "\n" for p in problems))
        file.flush()
        command = [*map(str, command), "--prompts", file.name]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [(a["tokens"], a["origin"]) for a in json.loads(out.stdout)["answers"]]


def rule_of(options, models):
    """The rule and its threshold."""
    if options.algorithm in networks.NETWORKS:
        network, said = networks.load(options.router)
        threshold = said["threshold"] if options.threshold is None else options.threshold
        return routed.Scored(options.algorithm, network, threshold, models.small.model.embed_tokens.weight), threshold
    if options.algorithm == "rstitch":
        return routed.RStitch(options.threshold), options.threshold
    return routed.Alone(0 if options.algorithm == "small" else 1), None


def distance(algorithm, signal, threshold):
    """How far a signal is from the threshold, as a share of what rounding explains."""
    if algorithm == "rstitch":
        return abs(math.log(max(signal, 1e-9) / max(threshold, 1e-9))) / ENTROPY
    logit = lambda x: math.log(max(x, 1e-12) / max(1 - x, 1e-12))
    return abs(logit(signal) - logit(threshold)) / SCORE


def difference(algorithm, threshold, ours, theirs):
    """Where two answers part: place, text, and whether rounding explains it; None if they do not."""
    tokens, origins = theirs
    tokens = tokens + [END]  # which the program leaves out
    for place, (token, origin) in enumerate(zip(ours.tokens, ours.origins)):
        other = tokens[place] if place < len(tokens) else None
        other_origin = origins[place] if place < len(origins) else origin
        if token == other and origin == other_origin:
            continue
        signal, margin = ours.signals[place], ours.margins[place]
        near_tie = margin < MARGIN
        beside = algorithm in SIGNALS and distance(algorithm, signal, threshold) < 1
        reason = (f"near tie, {margin:.3f} deviations apart" if near_tie and token != other else
                  f"signal {signal:.5g} beside threshold {threshold:.5g}" if beside else
                  f"NO REASON: margin {margin:.3f}, signal {signal:.5g}, threshold {threshold}")
        return place, f"token {token} of model {origin} here, {other} of model {other_origin} there: {reason}", \
            near_tie or beside
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithm", choices=(*SIGNALS, "small", "large"))
    parser.add_argument("--small", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--large", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--router", type=pathlib.Path, help="router folder")
    parser.add_argument("--threshold", type=float, help="default: the router folder's")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--task", default="arith")
    parser.add_argument("--count", type=int, default=20, help="problems")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    models = pair.Models((options.small, options.large))
    problems = pair.made(options.tokenrouter, options.task, "validation", options.count, 1)
    rule, threshold = rule_of(options, models)
    theirs = program_answers(options, problems, threshold)
    ours = routed.walk(models, models.prompts(problems), rule, evaluate.ANSWER_MAX).answers
    differences = [difference(options.algorithm, threshold, a, b) for a, b in zip(ours, theirs)]
    for problem, d in zip(problems, differences):
        if d:
            print(f"{problem['id']} token {d[0]}: {d[1]}")
    parted = [d for d in differences if d]
    tokens = sum(len(a.tokens) for a in ours)
    large = sum(sum(a.origins) for a in ours)
    print(f"{options.algorithm}: {len(problems) - len(parted)} of {len(problems)} answers the same, {tokens} tokens, "
          f"{large} by the large model; {sum(d[2] for d in parted)} of {len(parted)} differences by rounding")
    sys.exit(any(not d[2] for d in parted))


if __name__ == "__main__":
    main()
