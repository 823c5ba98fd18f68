"""What the notebooks share: where the project is, how to run an experiment, how figures look."""

import pathlib
import subprocess
import tempfile

import matplotlib.pyplot as plt
import pandas as pd

ROOT = next(f for f in [pathlib.Path.cwd(), *pathlib.Path.cwd().parents] if (f / "go.mod").exists())
BINARY = ROOT / "bin" / "tokenrouter"

# The Okabe-Ito palette ("Color universal design", 2008), in the order of the project's own figures.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
BLACK, GREY = "#222222", "#808080"
PALETTE = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BLACK, "#6B3E12"]
MARKS = ["o", "s", "^", "D", "v", "<", "p", ">", "P"]

plt.rcParams.update({
    "figure.dpi": 110, "figure.constrained_layout.use": True, "font.size": 9, "axes.grid": True,
    "grid.color": "#E4E4E4", "axes.axisbelow": True, "axes.edgecolor": GREY, "axes.titlesize": 9,
    "axes.titleweight": "bold", "legend.frameon": False, "lines.markersize": 4.5,
})


def tokenrouter(*arguments):
    """The output of a command of the binary; what it says on failure is the error."""
    if not BINARY.exists():
        raise FileNotFoundError("bin/tokenrouter is missing: run `make build`")
    done = subprocess.run([str(BINARY), *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout


def summary(folder):
    """summary.csv of a results folder: a row a point, over its seeds."""
    rows = pd.read_csv(pathlib.Path(folder) / "summary.csv", dtype={"routing_threshold": str})
    return rows[rows["row"] == "mean"].drop(columns=["row", "replicate", "seed"]).reset_index(drop=True).copy()


def run(spec):
    """Runs a spec, given as its text, and returns its summary."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "spec.toml"
        file.write_text(spec)
        tokenrouter("run", file, "--out", pathlib.Path(folder) / "results")
        return summary(pathlib.Path(folder) / "results")


def large_threshold(rows):
    """The threshold of the last model, of a column such as "1,3"."""
    return rows["thresholds"].str.split(",").str[-1].astype(int)


def newest(experiment):
    """The newest complete run of an experiment with answers, or None."""
    runs = [f.parent for f in (ROOT / "experiments" / "results" / experiment).glob("*/answers.jsonl")]
    done = [folder for folder in runs if (folder / "summary.json").exists()]
    return max(done, key=lambda folder: folder.stat().st_mtime, default=None)


def answers(folder):
    """answers.jsonl of a results folder, packed or not: a row an answer, of the first seed."""
    file = next(pathlib.Path(folder).glob("answers.jsonl*"))
    rows = pd.read_json(file, lines=True, dtype={"origin": str, "text": str, "final": str})
    return rows[rows["replicate"] == 0]
