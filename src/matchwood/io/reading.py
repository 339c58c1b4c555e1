"""From the name of a format to the file that reads it."""

from __future__ import annotations

import os

import numpy as np

from matchwood.gate.resources import require_memory
from matchwood.io.build import Matrix
from matchwood.io.files import PathLike, format_of
from matchwood.io.formats import (
    dimacs,
    edge_list,
    graph_txt,
    hmetis,
    matrix_market,
    metis,
    named,
    npz,
)
from matchwood.io.formats.edge_list import Compacted
from matchwood.io.limits import Limits
from matchwood.io.options import Options
from matchwood.io.text import Array, Text

EXACT = ("mtx", "npz")  # formats whose whole numbers are read as such, all others as float64


def read(
    path: PathLike, format: str | None, options: Options, limits: Limits
) -> Matrix | Compacted:
    """The matrix of a file; options that its format does not have are errors."""
    name = format_of(path, format, "read")
    if name == "edges":
        reader = named.read if options.names else edge_list.read
        return reader(Text.load(path, limits), options)
    wrong = options.only_for_edge_lists()
    if options.duplicates is not None and name not in dimacs.KINDS:
        wrong.append("duplicates")
    if wrong:
        raise ValueError(
            f"read: {', '.join(wrong)} cannot be set for a file of format {name}: {os.fspath(path)}"
        )
    strict, threads = options.strict, options.threads
    if name == "npz":
        return npz.read(path, limits)
    text = Text.load(path, limits)
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
    path: PathLike, format: str | None, strict: bool, threads: int | None, limits: Limits
) -> Array:
    """The coordinates in a .co or Matrix Market file."""
    name = format_of(path, format, "read_coordinates")
    if name not in ("co", "mtx"):
        raise ValueError(f"read_coordinates: format must be co or mtx, got {name}")
    text = Text.load(path, limits, "read_coordinates", strict, threads)
    if name == "co":
        return dimacs.read_coordinates(text, strict=strict, threads=threads)
    A = matrix_market.read(text, strict=strict, threads=threads)
    if isinstance(A, np.ndarray):
        return A
    require_memory(
        "read_coordinates", 16 * A.shape[0] * A.shape[1], f"the coordinates of {text.path}"
    )
    return A.toarray()
