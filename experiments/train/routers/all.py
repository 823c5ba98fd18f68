"""Everything about the token-level routers of a pair: labels, networks, thresholds, cards.

    python routers/all.py --small ../models/arith-small --mid ../models/arith-mid --large ../models/arith-large \
        --work ../../.training/routers --out ../models --tokenrouter ../../bin/tokenrouter

What WORK and OUT have already, of these models, is not made again; a stopped run goes on.
"""

import argparse
import json
import pathlib

import torch

import calibrate
import label
import learn
import pair


def learnt(models, folder, parts):
    """Whether a folder has a network for these models, of as many labels."""
    try:
        said = json.loads((folder / "router.json").read_text())
        problems = json.loads((folder / "training.json").read_text())["problems"]
    except FileNotFoundError:
        return False
    hashes = [said["small_model_hash"], said["large_model_hash"]]
    return hashes == [f"sha256:{h}" for h in models.hashes] and problems == parts * label.PART


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--mid", type=pathlib.Path, help="model folder, the second of ME's three")
    parser.add_argument("--large", type=pathlib.Path, required=True, help="model folder")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for labels and what has been run")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the router folders")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--parts", type=int, default=12, help=f"of the labels, {label.PART} problems each")
    parser.add_argument("--count", type=int, default=200, help="validation problems of a family")
    parser.add_argument("--tasks", nargs="+", default=["arith", "symbols"], help="the first sets defaults")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    models = pair.Models((options.small, options.large))
    work = options.work / "-".join(h[:8] for h in models.hashes)
    label.make(models, work, options.tokenrouter, options.parts)
    for algorithm in learn.LEARN:
        folder = options.out / f"arith-{algorithm}"
        if not learnt(models, folder, options.parts):
            learn.learn(algorithm, models, label.Labels(work, options.parts), folder)
    mixture = pair.Models([f for f in (options.small, options.mid, options.large) if f])
    calibrate.calibrate(models, mixture, options.out, work, options.tokenrouter, options.count, options.tasks)


if __name__ == "__main__":
    main()
