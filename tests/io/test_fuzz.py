"""Whatever a file holds: a graph, or a FileFormatError that names file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.errors import FileFormatError
from matchwood.io.formats import adjacency, dimacs, edge_list, matrix_market
from matchwood.io.options import Options
from matchwood.io.text import Text


def _dimacs(kind: str) -> Callable[..., Any]:
    return lambda text, **how: dimacs.read(text, dimacs.KINDS[kind], None, **how)


READERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "mtx": (
        "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 5\n2 3 1.5\n3 1 7\n",
        matrix_market.read,
    ),
    "metis": ("% c\n3 2 11\n1 2 5\n1 1 5 3 6\n1 2 6\n", adjacency.read_metis_text),
    "hgr": ("2 3 11\n5 1 2\n6 3\n7\n8\n9\n", adjacency.read_hmetis_text),
    "graph-txt": ("3\n1 2\n\n0\n", adjacency.read_graph_txt),
    "gr": ("c x\np sp 3 2\na 1 2 5\na 2 3 6\n", _dimacs("gr")),
    "col": ("p edge 3 2\nn 1 5\ne 1 2\ne 2 3\n", _dimacs("col")),
    "max": ("p max 3 2\nn 1 s\nn 3 t\na 1 2 5\na 2 3 6\n", _dimacs("max")),
    "co": ("p aux sp co 2\nv 1 5 6\nv 2 7 8\n", dimacs.read_coordinates),
    "edges": (
        "# Nodes: 3 Edges: 2\n0 1 5\n1 2 6\n",
        lambda text, **how: edge_list.read(text, Options(**how)),
    ),
}

PIECES = st.one_of(
    st.sampled_from(["0", "1", "2", "3", "4", "12", "-1", "1.5", "1e9", "x", ".", "-", "\0", "é"]),
    st.sampled_from([" ", "\t", "\n", "\n\n", "\r\n", "%", "#", "c ", "a ", "e ", "p ", "n ", ","]),
)


def attempt(kind: str, content: bytes, strict: bool, threads: int) -> None:
    _, read = READERS[kind]
    message = ""
    try:
        read(Text.of(f"file.{kind}", content), strict=strict, threads=threads)
    except FileFormatError as error:
        message = str(error)
    if message:
        found = re.match(rf"file\.{kind}, line (\d+): ", message)
        assert found, message
        assert 1 <= int(found[1]) <= content.count(b"\n") + 1


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_a_damaged_file(kind: str, data: st.DataObject) -> None:
    """A good file with a part replaced, removed or doubled."""
    sample, _ = READERS[kind]
    start = data.draw(st.integers(0, len(sample)))
    end = data.draw(st.integers(start, min(len(sample), start + 6)))
    piece = "".join(data.draw(st.lists(PIECES, max_size=3)))
    content = (sample[:start] + piece + sample[end:]).encode()
    attempt(kind, content, data.draw(st.booleans()), data.draw(st.integers(1, 3)))


@pytest.mark.parametrize("kind", READERS)
@given(pieces=st.lists(PIECES, max_size=30), head=st.booleans(), threads=st.integers(1, 3))
def test_a_heap_of_pieces(kind: str, pieces: list[str], head: bool, threads: int) -> None:
    sample, _ = READERS[kind]
    first = sample.split("\n", 1)[0] + "\n" if head else ""
    attempt(kind, (first + "".join(pieces)).encode(), True, threads)


@pytest.mark.parametrize("kind", READERS)
@given(content=st.binary(max_size=50))
def test_any_bytes(kind: str, content: bytes) -> None:
    attempt(kind, content, False, 1)
