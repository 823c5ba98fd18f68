"""Executes notebooks: execute.py FOLDER NOTEBOOK... writes each with its outputs into FOLDER; fails with the first error."""

import pathlib
import sys
import time

import nbformat
from nbclient import NotebookClient

CELL_SECONDS = 300


def execute(source, target):
    notebook = nbformat.read(source, as_version=4)
    client = NotebookClient(notebook, timeout=CELL_SECONDS, kernel_name="python3",
                            resources={"metadata": {"path": str(source.parent)}},
                            extra_arguments=["--log-level=ERROR"])
    start = time.monotonic()
    try:
        client.execute()
    finally:
        nbformat.write(notebook, target)
    print(f"{source.name}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        execute(pathlib.Path(name), folder / pathlib.Path(name).name)
