"""Write the lists that are made from matchwood/registry.py: ``make lists``.

Pages for type checkers, which cannot see names that are imported when they are first used; the
table of README.md; the rows of docs/api/index.rst.  tests/test_house_registry.py compares what
stands there with what this makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from matchwood import registry

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "matchwood"
OLD = "factor"  # still there, but not for new programs
NAMED = 5  # functions in a row of README.md
SECTIONS = {"sensing": "Network traffic", "join": "Joins of sets"}  # of the API page, by family
SECTIONS |= dict.fromkeys(("tridiagonal", "preconditioners", "krylov"), "Linear systems")


# Pages for type checkers


def stub(title: str, homes: Mapping[str, str], about: Mapping[str, str]) -> str:
    """A page that imports every name from its home, with a line about it."""
    lines = [f"# {title}  Made by `make lists` from registry.py.", ""]
    for name, home in homes.items():
        module = "matchwood" if home == f"matchwood.{name}" else home
        words = f"  # {about[name]}" if name in about else ""
        lines.append(f"from {module} import {name} as {name}{words}")
    return "\n".join([*lines, "", "__all__: list[str]"]) + "\n"


def pages() -> dict[str, str]:
    """The text of each page, by the name of its module."""
    about = {name: line for entry in registry.PROBLEMS for name, line in entry.names.items()}
    about |= {name: line for part in registry.OTHERS.values() for name, _, line in part}
    index = stub("Every public name, one line each.", registry.homes(), about)
    return {
        "__init__": index + "__version__: str\n",
        "check": stub("Every check.", registry.check_homes(), {}),
        "sensing": stub("Network sensing.", registry.sensing_homes(), about),
    }


# README's table


def table() -> str:
    """A row for each problem that says what it finds, with those that follow without."""
    rows = [
        "| function | finds | CPU | GPU | GPUs | cluster |",
        "|---|---|:-:|:-:|:-:|:-:|",
    ]
    entries = list(registry.PROBLEMS)
    starts = [k for k, entry in enumerate(entries) if entry.finds]
    for start, end in zip(starts, [*starts[1:], len(entries)], strict=True):
        row = entries[start:end]
        names = [entry.function for entry in row]
        names += [name for entry in row for name in entry.also if name.islower() and name != OLD]
        told = ", ".join(f"`{name}`" for name in names[:NAMED]) + ", ..." * (len(names) > NAMED)
        marks = ("cpu", "gpu", "devices", "ranks")
        cells = ["yes" if mark in row[0].engines else "" for mark in marks]
        rows.append(f"| {told} | {row[0].finds} | {' | '.join(cells)} |")
    return "\n".join(re.sub(r"  +", " ", row) for row in rows)


def readme(text: str) -> str:
    """README.md with its table made anew."""
    return re.sub(r"(?ms)^\| function \|.*?\n(?=\n)", lambda _: table() + "\n", text)


# The API page


def section(title: str, names: Iterable[str]) -> str:
    rows = ["", ".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
    rows += [f"   {name}" for name in names]
    return "\n".join([title, "-" * len(title), *rows]) + "\n"


def api() -> str:
    parts: dict[str, list[str]] = {
        "The graph": [name for name, _, _ in registry.OTHERS["The graph"]]
    }
    for entry in registry.PROBLEMS:
        title = SECTIONS.get(entry.family, "Problems")
        parts.setdefault(title, []).extend(entry.rows or entry.names)
    pages = [section(*part) for part in parts.items()]
    pages += [_within("matchwood.check"), section("Checks", registry.check_homes())]
    pages += [_within("matchwood"), section("Clusters", [
        f"dist.{name}" for name in ("world", "run", "describe", "Communicator", "Traffic")
    ])]  # fmt: skip
    for title in ("The machine", "Errors"):
        pages.append(section(title, [name for name, _, _ in registry.OTHERS[title]]))
    pages += [_within("matchwood.networkx_backend")]
    pages += [section("NetworkX", ("convert_from_nx", "convert_to_nx", "Graph", "register"))]
    head = f"API\n===\n\nEvery public name, by family.\n\n{_within('matchwood')}"
    return "\n".join([head, *pages])


def _within(module: str) -> str:
    return f".. currentmodule:: {module}\n"


def made() -> dict[Path, str]:
    """What each file should hold."""
    page = ROOT / "README.md"
    return {
        **{PACKAGE / f"{name}.pyi": text for name, text in pages().items()},
        page: readme(page.read_text()),
        ROOT / "docs" / "api" / "index.rst": api(),
    }


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
