"""What the scripts that repeat the papers share: matrices of a folder, results, tables of pages.

A script that repeats a paper takes ``--data DIR``, where it looks for the paper's matrices by name
(``DIR/**/NAME.mtx`` or ``.mtx.gz``), and any further files.  Its results are kept in one JSON file,
to which each run adds what it measured, and in CSV files that the pages show.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp

import matchwood
from bench import harness

SUFFIXES = (".mtx", ".mtx.gz")


def files(folder: Path) -> dict[str, Path]:
    """The matrices of a folder and of those in it, by their names in small letters."""
    found = {}
    for path in sorted(folder.rglob("*.mtx*")) if folder.is_dir() else ():
        if path.name.endswith(SUFFIXES):
            found[stem(path).lower()] = path
    return found


def stem(path: Path) -> str:
    """The name of a matrix: that of its file up to ``.mtx``."""
    return path.name.partition(".mtx")[0]


def read(path: Path) -> Any:
    """A square matrix as CSR."""
    A = sp.csr_array(matchwood.io.read(path))
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{path}: a square matrix is needed, got shape {A.shape}")
    return A


def options(parser: argparse.ArgumentParser) -> None:
    """The arguments that all such scripts have."""
    parser.add_argument("files", nargs="*", type=Path, metavar="A.mtx", help="further matrices")
    parser.add_argument("--data", type=Path, default=harness.DATA, help="folder with matrices")
    parser.add_argument("--only", nargs="*", help="of the paper's matrices just these")
    parser.add_argument("--json", type=Path, help="add the results to this file")
    parser.add_argument("--draw", type=Path, help="measure nothing, show what this file has")
    parser.add_argument("--out", type=Path, help="write tables and pictures for pages there")


def matrices(
    given: argparse.Namespace, names: Iterable[str], made: dict[str, Callable[[], Any]]
) -> dict[str, Callable[[], Any]]:
    """Makers of the paper's matrices: from files, else generated; and of the further files."""
    there = files(given.data)
    found: dict[str, Callable[[], Any]] = {}
    for name in names:
        if given.only and name not in given.only:
            continue
        if name.lower() in there:
            found[name] = lambda name=name: read(there[name.lower()])
        elif name in made:
            found[name] = made[name]
    for path in given.files:
        found[stem(path)] = lambda path=path: read(path)
    return found


def add(path: Path, results: dict[str, Any], label: str = "counts") -> dict[str, Any]:
    """What the file has and the new results, which take the place of older ones; written there.

    `label` says of what `harness.environment` is kept: times of several machines may come together.
    """
    whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = whole.get("results", {})
    for key, value in results.items():
        both = isinstance(value, dict) and isinstance(known.get(key), dict)
        known[key] = {**known[key], **value} if both else value
    environments = whole.get("environments", {}) | {label: harness.environment()}
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {"environments": environments, "results": known}
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return dict(known)


def load(path: Path) -> dict[str, Any]:
    """The results of such a file."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return results


def machine(path: Path | None, label: str) -> str:
    """On what the results with this label were measured, in words."""
    if path is None or not path.exists():
        return ""
    known = json.loads(path.read_text(encoding="utf-8"))["environments"].get(label)
    if known is None:
        return ""
    where = known["machine"]
    parts = [where["processor"], f"{where['cpus']} cores"]
    parts += [where["gpu"]] if label.endswith("gpu") and where.get("gpu") else []
    load = known.get("load")
    parts += [f"load {load:.1f}"] if load is not None else []
    return ", ".join((*parts, known["time"][:10]))


def table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for a page; what is not known is empty there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([["" if cell is None else cell for cell in row] for row in rows])


def page_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as a part of a page."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([head, *([("" if cell is None else cell) for cell in row] for row in rows)])
    lines = "".join(f"   {line}\n" for line in text.getvalue().splitlines())
    return f".. csv-table:: {title}\n   :header-rows: 1\n\n{lines}\n"


def page_picture(name: str, alt: str) -> str:
    """A measured picture as a part of a page."""
    folder = "/_static/measured"
    return f".. image:: {folder}/{name}\n   :alt: {alt}\n   :width: 90%\n   :class: drawing\n\n"
