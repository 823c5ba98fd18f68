"""Makes the four routers of RouteLLM (arXiv 2406.18665) for a pair of models: matrix factorisation (mf), similarity-
weighted ranking (sw), and classifiers (bert, causal).

    python query/fit.py --small DIR --large DIR --work DIR --out DIR --tokenrouter ../../bin/tokenrouter

DIR/arith-query-KIND of --out gets router.json, router.safetensors and README.md. They learn which of two greedy answers
is right, from problems of the training split drawn with another seed than the models' own; thresholds and the card are
of validation problems; no test problem is looked at. --work keeps the answers: what is there is not made again.
"""

import argparse
import pathlib
import time

import torch

import classifier
import embedding
import folder
import mf
import preferences
import sw
from preferences import pair

SEED, VALIDATION_SEED = 11, 12  # of problems; models learn from problems of seed 1
KINDS = ("mf", "sw", "bert", "causal")


def fitted(kind, small, points, training, seed):
    """Tensors, sizes and the function that scores prompts; points is the embedding."""
    if kind == "bert":
        return classifier.fit(classifier.Encoder(small.shape.vocab, seed), training, seed)
    if kind == "causal":
        return classifier.fit(classifier.Labeller(small, seed), training, seed)
    return {"mf": mf, "sw": sw}[kind].fit(training, points, seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=pathlib.Path, required=True, help="a model that export.py wrote")
    parser.add_argument("--large", type=pathlib.Path, required=True, help="another")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for answers")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for routers")
    parser.add_argument("--name", default="arith", help="what the routers' names begin with")
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--arith", type=int, default=6000, help="problems to learn from")
    parser.add_argument("--symbols", type=int, default=2000, help="problems to learn from")
    parser.add_argument("--validation", type=int, default=1000, help="problems of a task for thresholds")
    parser.add_argument("--seed", type=int, default=1, help="of weights and their training")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    models = pair.Models([options.small, options.large])
    counts = {"arith": options.arith, "symbols": options.symbols}
    training = preferences.gathered(models, options.tokenrouter, "train", counts, SEED, options.work)
    validation = preferences.gathered(models, options.tokenrouter, "validation",
                                      dict.fromkeys(counts, options.validation), VALIDATION_SEED, options.work)
    labels = training.labels().tolist()
    wins, ties, losses = (labels.count(x) for x in (preferences.WIN, preferences.TIE, preferences.LOSS))
    note = (f"Learnt from greedy answers to {len(training)} problems of the training split "
            f"({', '.join(f'{n} {t}' for t, n in counts.items())}; seed {SEED}): the large model won {wins}, tied "
            f"{ties}, lost {losses}. Seed of training {options.seed}.")
    print(note)
    small = models.small.float()
    points = embedding.Embedding(small, training.prompts)
    for kind in options.kinds:
        begin = time.monotonic()
        tensors, sizes, score = fitted(kind, small, points, training, options.seed)
        with torch.no_grad():
            scores = score(validation.prompts).double().numpy()
        path = options.out / f"{options.name}-query-{kind}"
        folder.write(path, kind, models, sizes, tensors, scores, validation, note)
        print(f"{path}: {time.monotonic() - begin:.0f} s; area under the ROC curve "
              f"{folder.shown(folder.area(scores, validation.labels() == preferences.WIN))}", flush=True)


if __name__ == "__main__":
    main()
