"""record.py RUN: keeps of a results folder what notebook 02 reads where there is no run, small: in notebooks/recorded."""

import gzip
import json
import pathlib
import shutil
import sys

TARGET = pathlib.Path(__file__).parent / "recorded"
KEPT = ["point", "replicate", "id", "text", "right", "origin"]

run = pathlib.Path(sys.argv[1])
TARGET.mkdir(exist_ok=True)
for name in ["summary.csv", "environment.json", "requests.parquet", "spec.toml"]:
    shutil.copy(run / name, TARGET / name)
summary = json.loads((run / "summary.json").read_text())
(TARGET / "summary.json").write_text(json.dumps({key: summary[key] for key in ["title", "run", "models"]}) + "\n")
with gzip.GzipFile(TARGET / "answers.jsonl.gz", "wb", mtime=0) as packed:
    for line in (run / "answers.jsonl").open():
        answer = json.loads(line)
        packed.write((json.dumps({key: answer[key] for key in KEPT}) + "\n").encode())
