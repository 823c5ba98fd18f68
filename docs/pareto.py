"""Writes the results in docs/pareto.md anew, of the newest runs of the three experiments, and the table of all points in
the README. It keeps these runs, small, in docs/pareto: what notebook 02 reads where there is no other run."""

import csv
import gzip
import json
import pathlib
import re
import shutil
import subprocess

DOCS = pathlib.Path(__file__).parent
ROOT = DOCS.parent
KEPT = ["id", "point", "replicate", "right", "origin", "text"]  # of an answer
EXPERIMENTS = {
    "pareto": ("pareto", "Arithmetic"),
    "pareto-symbols": ("pareto", "Symbols"),
    "pareto-threshold": ("threshold", "The large model's threshold"),
}


def newest(experiment):
    """The newest finished run of an experiment."""
    runs = [f.parent for f in (ROOT / "experiments" / "results" / experiment).glob("*/summary.json")]
    return max(runs, key=lambda folder: folder.stat().st_mtime)


def keep(run, folder):
    """Copies what is small; answers without what can be had of the problems, like ones side by side."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ["summary.csv", "environment.json", "requests.parquet", "spec.toml"]:
        shutil.copy(run / name, folder / name)
    for file in run.glob("calibration-*.toml"):
        shutil.copy(file, folder / file.name)
    summary = json.loads((run / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({key: summary[key] for key in ["title", "run", "models"]}) + "\n")
    answers = [json.loads(line) for line in (run / "answers.jsonl").open()]
    answers.sort(key=lambda a: (a["id"], a["text"], a["origin"], a["point"], a["replicate"]))
    with gzip.GzipFile(folder / "answers.jsonl.gz", "wb", mtime=0) as packed:
        for answer in answers:
            packed.write((json.dumps({key: answer[key] for key in KEPT}) + "\n").encode())


def means(run):
    """The rows of a run's points, over all replicates."""
    with (run / "summary.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["row"] == "mean"]


def errors(run):
    """How far the simulator is from the measured throughput, in a sentence."""
    rows = means(run)
    said = []
    for column, by in [("simulated_order_error", "the run's own steps in order"),
                       ("simulated_own_error", "a law of the run's own steps"),
                       ("simulated_error", "steps that were calibrated before")]:
        found = [abs(float(row[column])) for row in rows if row.get(column)]
        if found:
            within = sum(error <= 0.1 for error in found)
            said.append(f"with {by} within 10 % at {within} of {len(found)} points, {100 * max(found):.1f} % off at worst")
    return "The simulator's throughput is, " + "; ".join(said) + "."


def section(experiment):
    """The results of an experiment, in Markdown."""
    figure, title = EXPERIMENTS[experiment]
    run = newest(experiment)
    environment = json.loads((run / "environment.json").read_text())
    keep(run, DOCS / "pareto" / experiment)
    image = f"{experiment}.png"
    shutil.copy(run / f"{figure}.png", DOCS / "pareto" / image)
    about = (f"Measured on {environment['processor']}, {environment['cores']} cores, at commit"
             f" {environment['commit'][:12]}: [pareto/{experiment}](pareto/{experiment}) has"
             f" all points in `summary.csv`.")
    if figure == "pareto":
        found = (run / "pareto.md").read_text().strip()
    else:
        text = subprocess.run([ROOT / "bin" / "tokenrouter", "compare", run], capture_output=True, text=True, check=True).stdout
        found = "```\n" + text[re.search(r"^best thresholds", text, re.M).start():].strip() + "\n```"
    return f"## {title}\n\n{about}\n{errors(run)}\n\n![{title}](pareto/{image})\n\n{found}\n"


def points(experiment):
    """All points of a run that is kept, in Markdown: a line a routing and threshold."""
    rows = means(DOCS / "pareto" / experiment)
    policies = ["eager", "delayed"]
    places = [(n, policy) for policy in policies for n in sorted({row["concurrency"] for row in rows}, key=int)]
    lines = ["| routing | threshold | right, % (95 % interval) | made by the large model, % | p | "
             + " | ".join(f"{policy}, N = {n}" for n, policy in places) + " |", "|" + "---|" * (5 + len(places))]
    found = {}
    for row in rows:
        found.setdefault((row["routing"], row["routing_threshold"]), {})[row["concurrency"], row["policy"]] = row
    for (routing, threshold), at in found.items():
        row = at.get((places[0][0], "eager")) or next(iter(at.values()))
        low, high, right = (f"{100 * float(row[key]):.1f}" for key in ["accuracy_low", "accuracy_high", "accuracy"])
        p = f"{float(row['p']):.3f}" if row["p"] else ""
        speeds = [f"{float(at[place]['throughput_tok_s']):,.0f}" if place in at else "" for place in places]
        lines.append(f"| {routing} | {threshold} | {right} ({low} to {high}) | {100 * float(row['large_share']):.1f} | {p} | "
                     + " | ".join(speeds) + " |")
    return "\n".join(lines)


page = DOCS / "pareto.md"
head = page.read_text().split("<!-- results -->")[0]
page.write_text(head + "<!-- results -->\n\n" + "\n".join(map(section, EXPERIMENTS)))

readme = ROOT / "README.md"
begin, end = "<!-- all points -->\n", "<!-- end of all points -->\n"
before, after = readme.read_text().split(begin)
readme.write_text(before + begin + "\n" + points("pareto") + "\n\n" + end + after.split(end)[1])
