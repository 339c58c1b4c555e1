"""Two pages of calls, docs/which.rst and docs/coming_from.rst: every call of ours in them works."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import secrets
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matchwood

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {"which.rst": 1, "coming_from.rst": 1}  # the column of the tables that has our calls


def cells(page: str, column: int) -> list[str]:
    """The cells of one column of all tables of a page, headers left out."""
    found = []
    for table in re.split(r"\.\. list-table::", (DOCS / page).read_text())[1:]:
        for row in re.split(r"^   \* - ", table, flags=re.MULTILINE)[2:]:
            parts = re.split(r"^     -", row.split("\n\n")[0], flags=re.MULTILINE)
            found.append(parts[column] if len(parts) > column else "")
    return found


def calls_in(text: str) -> list[str]:
    """Calls between backquotes; a role such as `name(A) <matchwood.name>` without its target."""
    quoted = re.findall(r"``([^`]+)``|`([^`<]+?)\s*(?:<[^>]*>)?`", text)
    return [
        " ".join(a.split() or b.split()) for a, b in quoted if "(" in a + b and "..." not in a + b
    ]


CALLS = sorted(
    {
        call
        for page, column in PAGES.items()
        for cell in cells(page, column)
        for call in calls_in(cell)
    }
)


@functools.cache
def names() -> dict[str, Any]:
    """What the letters of the pages stand for."""
    A = matchwood.generators.random_weights(matchwood.generators.grid((5, 6)), rng=1)
    d = np.full(6, 4.0)
    perm = matchwood.reverse_cuthill_mckee(A)
    return {
        **{name: getattr(matchwood, name) for name in matchwood.__all__},
        "A": A, "G": A, "n": 2, "s": 0, "i": 0, "start": 0, "sources": [0, 3], "perm": perm,
        "dl": np.ones(6), "d": d, "du": np.ones(6), "b": np.ones(6),
        "matching": matchwood.weighted_matching(A),
        "src": np.arange(5, dtype=np.uint32), "dst": np.arange(5, dtype=np.uint32),
        "records": [["a", "b"], ["b"]], "R": ["a", "b"], "S": ["b"],
        "key": secrets.token_bytes(32),
        "k": 3, "t": [1, 2, 3], "w": np.ones(30), "nodes": range(30), "labels": np.arange(30) // 10,
    }  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_pages_works(call, tmp_path):
    """`solve(A, b)` wants a system that fits, `list(G)` a graph that has nodes, `path` a file; the
    others take the small grid."""
    known = dict(names())
    if "list(G)" in call:
        known["G"] = nx.from_scipy_sparse_array(known["A"])
    if "path" in call:
        known["path"] = tmp_path / "graph.part.2"
        matchwood.io.write_partition(known["path"], known["labels"])
    if call.startswith("solve("):
        known["A"] = sp.csr_array(
            sp.diags_array([np.ones(5), np.full(6, 4.0), np.ones(5)], offsets=[-1, 0, 1])
        )
    if call.startswith("preconditioners."):
        known["A"] = sp.csr_array(known["A"] + sp.diags_array(np.full(30, 9.0)))
    if "=" in call.split("(")[0]:
        exec(call, known)
    elif call != "warmup()":  # takes minutes
        eval(call, known)


def test_calls_are_found():
    assert len(CALLS) > 20
    assert "bfs(A, sources)" in CALLS
    assert 'weighted_matching(G, method="exact")' in CALLS


@pytest.mark.parametrize("page", [*PAGES, "concepts.rst", "tour.rst"])
def test_names_of_the_pages_are_there(page):
    """Targets such as <matchwood.tridiagonal.solve>, and options in an example call."""
    for target in re.findall(r"<matchwood\.([\w.]+)>", (DOCS / page).read_text()):
        value: Any = matchwood
        for part in target.split("."):
            value = getattr(value, part)
        assert inspect.ismodule(value) or inspect.getdoc(value)
    for call in CALLS:
        ast.parse(call)
