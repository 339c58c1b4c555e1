"""The map of the house, for the tests of the house: its files, its parts, who may import whom."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import matchwood
from support import SOURCES

PACKAGE = SOURCES / "matchwood"
FILES = sorted(PACKAGE.rglob("*.py"))
CUDA_FILES = sorted([*PACKAGE.rglob("*.cu"), *PACKAGE.rglob("*.cuh")])


# Who may import whom.  A part may import itself and the parts of lower rank; those of the same
# rank stand beside each other and do not, unless MAY_MEET says so.

RANKS = [
    {"errors", "arguments", "stopwatch", "registry", "_version", "_lazy"},
    {"engines", "answers", "memory"},
    {"primitives"},
    {"calls", "gate"},
    {"io", "generators"},
    {
        "traversal", "components", "independent", "spanning", "matching", "factors", "forests",
        "tridiagonal", "preconditioners", "krylov", "ordering", "ranking", "communities",
        "partitioning",
    },
    {"applications.join", "applications.sensing", "applications"},
    {"dist", "join", "sensing"},
    {"check", "machine"},
    {"__init__"},
    {"cli", "report", "networkx_backend"},
]  # fmt: skip
RANK = {part: rank for rank, parts in enumerate(RANKS) for part in parts}
ENGINES, PROBLEMS, OUTSIDE = 1, 5, 10
MAY_MEET = {ENGINES, 3, 4, PROBLEMS, OUTSIDE}
INNER = ("reference", "cpu", "gpu", "devices", "ranks")  # of a problem: nobody else's business


def module_of(path: Path) -> str:
    parts = ["matchwood", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """The part of the house: the name after "matchwood"; the index itself is "__init__".

    Each application is a part of its own.
    """
    names = module.split(".")
    if names[1:2] == ["applications"]:
        return ".".join(names[1:3])
    return names[1] if len(names) > 1 else "__init__"


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file: read once for all tests."""
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of that tree."""
    return tuple(ast.walk(tree_of(path)))


@functools.cache
def is_module(name: str) -> bool:
    path = SOURCES.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists() or path.is_dir()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) for every import of ours, also those inside functions."""
    here = module_of(path)
    package = here if path.name == "__init__.py" else here.rpartition(".")[0]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "matchwood":
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            if base.split(".")[0] != "matchwood":
                continue
            for alias in node.names:
                name = f"{base}.{alias.name}"
                if base == "matchwood" and not is_module(name):
                    yield node.lineno, matchwood._HOMES.get(alias.name, "matchwood")
                else:
                    yield node.lineno, name if is_module(name) else base


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) for every name of a module of ours that is written as text.

    `engines.load("matchwood.family.problem", engine)` imports as well as `import` does.  Of an
    f-string the beginning counts, up to its last full stop.
    """
    for node in nodes_of(path):
        text = node.value if isinstance(node, ast.Constant) else None
        # "matchwood." is the beginning of a name that is put together at run time
        if isinstance(text, str) and re.fullmatch(r"matchwood(\.\w+)*\.|matchwood(\.\w+)+", text):
            yield node.lineno, text.removesuffix(".")


@functools.cache
def problem_of(module: str) -> str:
    """The problem that a module belongs to: the innermost folder above it that has a check.

    A family that is one problem has its check in its own folder; the folders of a problem's
    methods have none, and that of its ranks has the check of what is spread over
    ranks.  What lies in no such folder belongs to the third name of its path.
    """
    names = module.split(".")
    for length in range(len(names), 1, -1):
        if names[length - 1] != "ranks" and PACKAGE.joinpath(*names[1:length], "check.py").exists():
            return ".".join(names[:length])
    return ".".join(names[:3])


def engine_of(module: str) -> str | None:
    """The folder whose engine this module is, or None where it is no engine."""
    names = module.split(".")
    for place in range(2, len(names)):
        if names[place] in INNER:
            return ".".join(names[:place])
    return None


def is_step(folder: str) -> bool:
    """A folder of a family that is neither a problem nor a method: it has no check."""
    return (
        len(folder.split(".")) == 3
        and not PACKAGE.joinpath(*folder.split(".")[1:], "check.py").exists()
    )


def within(module: str, folder: str) -> bool:
    return module == folder or module.startswith(folder + ".")


def fault(importer: str, imported: str) -> str | None:
    """Why this import is not allowed; None when it is."""
    mine, theirs = part_of(importer), part_of(imported)
    for part in (mine, theirs):
        if part not in RANK:
            return f"{part!r} has no place in the house: give it one in RANKS"
    if mine == theirs and RANK[mine] != PROBLEMS:
        return None
    if RANK[theirs] > RANK[mine]:
        return f"{mine} may not import {theirs}"
    if RANK[theirs] == RANK[mine] != PROBLEMS and RANK[mine] not in MAY_MEET:
        return f"{mine} may not import {theirs}, which stands beside it"
    folder = engine_of(imported)
    if RANK[theirs] != PROBLEMS or folder is None:
        return None
    # steps that the problems of a family share lie in the family's folder, above them, or in a
    # folder of their own, which has no check
    if (
        within(importer, folder)
        or problem_of(importer) == problem_of(imported)
        or (mine == theirs and is_step(folder))
    ):
        return None
    return "only a problem's public function may be called, not its engines"


def fault_of_string(importer: str, named: str) -> str | None:
    """The same for a module whose name is written as text: a problem named so is its engine.

    A name that is put together at run time, "matchwood." and something, may be any problem.
    """
    if named == "matchwood":
        is_problem = RANK.get(part_of(importer)) == PROBLEMS
        return "a problem may not put names of modules together" if is_problem else None
    if RANK.get(part_of(importer)) != PROBLEMS or RANK.get(part_of(named)) != PROBLEMS:
        return fault(importer, named)
    if within(importer, named) or problem_of(importer) == problem_of(named):
        return None
    return "a problem may not load the engines of another by their name"
