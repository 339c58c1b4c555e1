"""From the name of a format to the file that reads it."""

from __future__ import annotations

import os

import numpy as np

from matchwood.io import dimacs, edge_list, graph_txt, hmetis, matrix_market, metis, named, npz
from matchwood.io.build import Matrix
from matchwood.io.edge_list import Compacted
from matchwood.io.files import PathLike, format_of
from matchwood.io.options import Options
from matchwood.io.text import Array, Text


def read(path: PathLike, format: str | None, options: Options) -> Matrix | Compacted:
    """The matrix of a file; options that its format does not have are errors."""
    name = format_of(path, format, "read")
    if name == "edges":
        reader = named.read if options.names else edge_list.read
        return reader(Text.load(path), options)
    wrong = options.only_for_edge_lists()
    if options.duplicates is not None and name not in dimacs.KINDS:
        wrong.append("duplicates")
    if wrong:
        raise ValueError(
            f"read: {', '.join(wrong)} cannot be set for a file of format {name}: {os.fspath(path)}"
        )
    strict, threads = options.strict, options.threads
    if name == "npz":
        return npz.read(path)
    text = Text.load(path)
    if name == "mtx":
        return matrix_market.as_sparse(matrix_market.read(text, strict=strict, threads=threads))
    if name == "metis":
        return metis.read(text, strict=strict, threads=threads).matrix
    if name == "hgr":
        return hmetis.read(text, strict=strict, threads=threads).matrix
    if name == "graph-txt":
        return graph_txt.read(text, strict=strict, threads=threads)
    if name == "co":
        points = dimacs.read_coordinates(text, strict=strict, threads=threads)
        return matrix_market.as_sparse(points)
    kind = dimacs.KINDS[name]
    return dimacs.read(text, kind, options.duplicates, strict=strict, threads=threads).matrix


def read_coordinates(
    path: PathLike, format: str | None, strict: bool, threads: int | None
) -> Array:
    """The coordinates in a .co or Matrix Market file."""
    name = format_of(path, format, "read_coordinates")
    if name not in ("co", "mtx"):
        raise ValueError(f"read_coordinates: format must be co or mtx, got {name}")
    text = Text.load(path)
    if name == "co":
        return dimacs.read_coordinates(text, strict=strict, threads=threads)
    A = matrix_market.read(text, strict=strict, threads=threads)
    return A if isinstance(A, np.ndarray) else A.toarray()
