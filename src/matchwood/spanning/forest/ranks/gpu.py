"""The loops of Boruvka's rounds on the block of a rank that has a GPU: the functions of cpu.py.

The first edges of rows are found by the kernel of a single machine (boruvka/gpu.cu), and offers
are joined by gpu.cu.  All else is CuPy's sorts and gathers; these run on NumPy arrays too, which
is how they are tested.

What differs from the CPU: edges that close a cycle stay in the list until both ends are in one
component.  A pass that leaves them out at once takes one edge after the other.  The first edge of
a component never closes a cycle, so both lists lead to the same choices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.row_reduce.gpu import Tiles
from matchwood.spanning.forest.boruvka.gpu import SOURCE as ONE_MACHINE
from matchwood.spanning.forest.order import codes

CALLER = "minimum_spanning_forest"
SOURCE = gpu.Source(__package__, "gpu.cu", ("offer_edges",))
ACCUMULATOR_BYTES = 16  # bytes for a row: a code and an entry
PIECE = 1 << 25  # entries that are looked at together; their scratch arrays take some 32 bytes each


def first_entries(rows: Any, order: Any, n_rows: int, threads: int | None) -> Any:
    """The entry of each row's first edge, as far as this block has it; -1 for none."""
    xp = engines.xp(rows.indices)
    if rows.indices.shape[0] == 0:
        return xp.full(n_rows, -1, np.int64)
    kind = np.dtype(f"i{rows.indices.dtype.itemsize}")
    indices = rows.indices.view(kind)
    k = ONE_MACHINE.kernels("first_edges", I=kind, B=rows.bits.dtype, X="false")
    size = rows.indptr.shape[0] - 1
    near, entry = (gpu.empty(size, kind, CALLER) for _ in range(2))
    words = xp.asarray([int(field) for field in order[:6]], np.uint64)
    args = (rows.bits, words, near, entry)
    Tiles(rows.indptr).launch(k.first_edges, ACCUMULATOR_BYTES, indices, args)
    return entry[:n_rows].astype(np.int64)


def list_edges(
    rows: Any, order: Any, names: Any, labels: Any, sequence: Any, threads: int | None
) -> tuple[Any, Any, Any]:
    """(entries, rows, codes) of edges between labels, by their ends; `sequence`: rows by names."""
    xp = engines.xp(labels)
    entries, tails = [xp.empty(0, np.int64)], [xp.empty(0, np.int64)]
    for start in range(0, rows.indices.shape[0], PIECE):
        entry = xp.arange(start, min(start + PIECE, rows.indices.shape[0]))
        tail = xp.searchsorted(rows.indptr, entry.astype(rows.indptr.dtype), side="right") - 1
        head = rows.indices[entry].astype(np.int64)
        wanted = (names[tail] < names[head]) & (labels[tail] != labels[head])
        entries.append(entry[wanted])
        tails.append(tail[wanted])
    entry, tail = xp.concatenate(entries), xp.concatenate(tails)
    place = xp.empty(sequence.shape[0], np.int64)
    place[sequence] = xp.arange(sequence.shape[0])
    by_name = xp.argsort(place[tail], kind="stable")
    entry, tail = entry[by_name], tail[by_name]
    return entry, tail, codes(rows.bits[entry], order, xp)


def join(a: Any, b: Any, labels: int) -> tuple[Any, Any]:
    """(kept, best): the edges between different labels; and each label's first of them."""
    xp = engines.xp(a)
    kept = xp.flatnonzero(a != b)
    best = xp.full(labels, kept.shape[0], np.uint64)
    offer(a[kept], b[kept], best)
    best = best.astype(np.int64)
    best[best == kept.shape[0]] = -1
    return kept, best


def offer(a: Any, b: Any, best: Any) -> None:
    """best[label] becomes the first of the edges with that label, or stays as it is."""
    SOURCE.kernels().offer_edges(a.shape[0], (a.shape[0], a, b, best))


def first_requests(
    places: Any, code: Any, low: Any, high: Any, first: Any, threads: int | None
) -> Any:
    """The places that were asked for; `first`, which is -1 everywhere, gets the first for each."""
    xp = engines.xp(places)
    order = xp.arange(places.shape[0])
    for key in (high, low, code, places):
        order = order[xp.argsort(key[order], kind="stable")]
    sorted_places = places[order]
    begins = xp.ones(places.shape[0], np.bool_)
    begins[1:] = sorted_places[1:] != sorted_places[:-1]
    touched = sorted_places[begins]
    first[touched] = order[begins]
    return touched
