"""Contraction on the GPU: which method takes which call, and the methods.

As on the CPU, with one difference: labels.cu and groups.cu add in any order, which only integers
allow.  So floating values are listed in any case, and the diagonal is taken out of the result.

    listed     entries between groups, sorted by `assemble`; no kernels of their own
    labels.cu  integers: entries inside a group are added up before the sort
    groups.cu  integers, where no group has many entries and rows may be unsorted: a vertex's
               entries go to the places of its group, as labels, and the lanes of a warp, or a block
               with a hash table, add up those with equal labels.  Nothing is sorted
    pairs.cu   pairs of mates: a row of the result is the union of two rows at most, so each is
               sorted on its own
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.assemble.gpu import assemble, rows_of_keys
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.contract import sums_type
from matchwood.primitives.scan.gpu import scan_into
from matchwood.primitives.transpose.gpu import expand_rows


def contract(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int, *, loops: bool,
    symmetric: bool, threads: int | None = None, ordered: bool = True,
) -> Any:  # fmt: skip
    if data is None or (loops and data.dtype.kind == "i"):
        found = quotient(indptr, indices, data, inner, labels, count)
        return found if loops else (*found[:3], None)
    values = data.astype(sums_type(data), copy=False)
    options: Any = {"loops": loops, "symmetric": symmetric}
    made = list_and_sort(indptr, indices, values, labels, count, **options)
    if not loops:
        return (*made, None)
    *rows, diagonal = without_diagonal(*made)
    if inner is not None:
        _, groups, sums = assemble(count, count, labels, labels, inner)  # in the order of vertices
        diagonal[groups] += sums
    return (*rows, diagonal)


def contract_measured(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int, longest: int
) -> tuple[Any, int, int]:
    """See matchwood.primitives.contract.trusted_contract_measured.

    By groups, unless a row is too long: then its group has more entries than that method takes.
    """
    if longest <= MEDIUM_ROW:
        found = contract_groups(indptr, indices, data, labels, count)
        if found is not None:
            add_inner(labels, inner, found.inner)
            return found[:4], found.longest, found.tied
    made = quotient(indptr, indices, data, inner, labels, count)
    xp = engines.cupy()
    lengths = xp.diff(made[0])
    if count == 0:
        return made, 0, 0
    longest, tied = xp.stack([lengths.max(), xp.count_nonzero(lengths)]).get().tolist()
    return made, longest, tied


def contract_pattern(
    indptr: Any, indices: Any, labels: Any, count: int, threads: int | None
) -> Any:
    return list_and_sort(indptr, indices, None, labels, count, loops=False, symmetric=False)[:2]


def without_diagonal(indptr: Any, indices: Any, data: Any) -> Any:
    """(indptr, indices, data, diagonal) of a matrix that has every entry once."""
    xp = engines.cupy()
    rows = expand_rows(indptr, indices.size)
    inside = rows == indices
    diagonal = xp.zeros(indptr.size - 1, data.dtype)
    diagonal[rows[inside]] = data[inside]
    dropped = xp.zeros_like(indptr)
    dropped[rows[inside] + 1] = 1
    kept = compact(~inside)
    return indptr - xp.cumsum(dropped, dtype=dropped.dtype), indices[kept], data[kept], diagonal


def list_and_sort(
    indptr: Any, indices: Any, data: Any, labels: Any, count: int, *, loops: bool, symmetric: bool
) -> Any:
    """Each place once, sorted; of a symmetric matrix the upper half first, then its mirror too.

    `data` may be None.  With `loops` the diagonal is part of the result.
    """
    i, j = labels[expand_rows(indptr, indices.size)], labels[indices]
    if symmetric:
        listed = i <= j if loops else i < j
    else:
        listed = None if loops else i != j
    if listed is not None:
        kept = compact(listed)
        i, j, data = i[kept], j[kept], None if data is None else data[kept]
    if symmetric and not loops:
        return assemble(count, count, i, j, data, symmetric=True)
    made = assemble(count, count, i, j, data)
    if not symmetric:
        return made
    rows = expand_rows(made[0], made[1].size)
    # a loop is its own mirror: the first of the two stays
    return assemble(count, count, rows, made[1], made[2], symmetric=True, reduce="first")


# Added up by labels: entries between labels are sorted, and equal ones added.

LABELS = gpu.Source(__package__, "labels.cu", ("label_entries<I>", "add_by_label<I>"))


def quotient(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int
) -> tuple[Any, Any, Any, Any]:
    """`quotient` of cpu.py.  Memory: about 60 bytes for each entry, most of it the sort's."""
    cupy = engines.cupy()
    kind, m = np.dtype(np.int64), int(indices.size)
    k = LABELS.kernels(I=indices.dtype)
    shift = max(count - 1, 1).bit_length()
    with gpu.guard("quotient", m * (indices.itemsize + 26)):
        diagonal = cupy.zeros(count, kind)
        rows = expand_rows(indptr, m)
        keys, between = cupy.empty(m, np.uint64), cupy.empty(m, np.bool_)
        if data is not None:
            data = data.astype(kind, copy=False)
        k.label_entries(m, (m, rows, indices, data, labels, shift, keys, between, diagonal))
        add_inner(labels, inner, diagonal)
        del rows
        keys = compact(between, keys)
        if data is not None:
            data = compact(between, data)
    how = "count" if data is None else "sum"
    found = rows_of_keys((count, count), keys, data, indices.dtype, shift, reduce=how)
    return (*found, diagonal)


def add_inner(labels: Any, inner: Any, sums: Any) -> None:
    """Add the int64 `inner` of each vertex, unless it is None, to the sum of its label."""
    if inner is not None:
        k = LABELS.kernels("add_by_label", I=labels.dtype)
        k.add_by_label(labels.size, (labels.size, labels, inner, sums))


def sums_by_label(values: Any, labels: Any, count: int, threads: int | None = None) -> Any:
    sums = engines.cupy().zeros(count, np.int64)
    add_inner(labels, values, sums)
    return sums


GROUP_WIDTHS = (8, 16, 32)  # lanes for a group
GROUPS = gpu.Source(
    __package__,
    "groups.cu",
    (
        "measure_groups<I>",
        "bring_together<I>",
        *(f"add_groups{width} = add_groups<I,{width}>" for width in GROUP_WIDTHS),
        "add_listed<I>",
        "copy_rows<I>",
    ),
)
GROUP_BLOCK, WARP, WARP_ROW, MEDIUM_ROW = GROUPS.constants(
    "BLOCK", "WARP", "WARP_ROW", "MEDIUM_ROW"
)
TOO_MANY, LONGEST, TIED, TOTAL, WORDS = GROUPS.constants(
    "TOO_MANY", "LONGEST", "TIED", "TOTAL", "WORDS"
)


class GroupRows(NamedTuple):
    """The graph of the groups, and what is known of its rows."""

    indptr: Any
    indices: Any
    data: Any
    inner: Any  # entries within each group
    longest: int
    tied: int  # rows that are not empty


def contract_groups(
    indptr: Any, indices: Any, data: Any, labels: Any, count: int
) -> GroupRows | None:
    """The rows, unsorted; None where a group has more entries than a block's table takes.

    Memory beside the result: an index and 8 bytes for each entry, three indices for each vertex.
    Waits once.
    """
    n, m, kind = labels.size, indices.size, indices.dtype
    cupy = engines.cupy()
    inner = cupy.zeros(count, np.int64)
    if count == 0:
        nothing = gpu.empty(0, kind, "contract"), gpu.empty(0, np.int64, "contract")
        return GroupRows(cupy.zeros(1, kind), *nothing, inner, 0, 0)
    k = GROUPS.kernels(I=kind)
    space = gpu.workspace(
        "contract",
        offset=(n, kind),
        sizes=(count, kind),
        starts=(count + 1, kind),
        keys=(m, kind),
        weights=(m, np.int64),
        counts=(count, kind),
        listed=(m // WARP_ROW, kind),
    )
    words = gpu.Flag(WORDS, np.uint64)
    space.sizes.data.memset_async(0, space.sizes.nbytes)
    k.measure_groups(n, (n, indptr, labels, space.sizes, space.offset))
    scan_into(space.sizes, space.starts)
    width = _lanes(n, m)
    graph = (n, indptr, indices, data, labels, space.starts, space.offset)
    k.bring_together(n * width, (*graph, width, space.keys, space.weights))
    entries = (space.starts, space.keys, space.weights, data is not None, space.counts, inner)
    width = next((width for width in GROUP_WIDTHS if m <= width * count), GROUP_WIDTHS[-1])
    add = getattr(k, f"add_groups{width}")
    add(count * width, (count, *entries, space.listed, words), block=GROUP_BLOCK)
    blocks = min(space.listed.size, 2 * gpu.multiprocessors())
    if blocks:
        k.add_listed(None, (*entries, space.listed, words), block=GROUP_BLOCK, grid=blocks)
    words.fetch()
    starts = gpu.empty(count + 1, kind, "contract")
    scan_into(space.counts, starts)
    found = words.read()
    if found[TOO_MANY]:
        return None
    total = int(found[TOTAL])
    made = gpu.empty(total, kind, "contract"), gpu.empty(total, np.int64, "contract")
    width = _lanes(count, total)
    k.copy_rows(
        count * width, (count, space.starts, space.keys, space.weights, starts, width, *made)
    )
    return GroupRows(starts, *made, inner, int(found[LONGEST]), int(found[TIED]))


def _lanes(rows: int, entries: int) -> int:
    """Lanes for a row of average length."""
    width = 1
    while width < WARP and width * rows < entries:
        width *= 2
    return width


# Pairs of mates.  They are numbered, then entries are sorted within each row of the result.  Where
# such a row is too long for a warp, all entries are listed and sorted together.  Waits for the
# device twice, to learn how many rows and how many entries there will be.

PAIR_WIDTHS = (16, 32)  # lanes for a row
PAIRS = gpu.Source(
    __package__,
    "pairs.cu",
    (
        "mark_leaders<I>",
        "number<I>",
        "add_members<I,V>",
        *(f"count_short{width} = short_rows<I,W,{width},false>" for width in PAIR_WIDTHS),
        *(f"write_short{width} = short_rows<I,W,{width},true>" for width in PAIR_WIDTHS),
        "sort_by_warps<I>",
        "count_long = long_rows<I,W,false>",
        "write_long = long_rows<I,W,true>",
    ),
    types={"V": (np.int64, np.float64)},
)

PAIR_BLOCK, LONG_BLOCK = PAIRS.constants("BLOCK", "LONG_BLOCK")


def contract_pairs(
    indptr: Any, indices: Any, data: Any, mate: Any, members: Any, caller: str,
    threads: int | None, *, ordered: bool = True,
) -> Any:  # fmt: skip
    if not ordered and mate.size and sums_type(data).kind == "i":
        return _pairs_as_groups(indptr, indices, data, mate, members, caller)
    matrix = (indptr, indices, data)
    n, nnz, kind, values = mate.size, indices.size, indices.dtype, data.dtype
    if n == 0:
        starts = engines.cupy().zeros(1, kind)
        nothing = [gpu.empty(0, dtype, caller) for dtype in (kind, values, kind, members.dtype)]
        return (starts, *nothing[:2]), nothing[2], nothing[3]
    # two fine rows to a coarse one, at most
    width = next((width for width in PAIR_WIDTHS if 2 * nnz <= width * n), PAIR_WIDTHS[-1])
    label = gpu.empty(n, kind, caller)
    capacity = nnz // PAIR_WIDTHS[0] + 1
    space = gpu.workspace(
        caller,
        leads=(n, kind),
        starts=(n + 1, kind),
        code=(n, kind),
        leaders=(n, kind),
        listed=(capacity, kind),
        places=(capacity, np.int64),
        sizes=(4, np.uint64),
    )
    names = (f"count_short{width}", f"write_short{width}", "count_long", "write_long")
    k = PAIRS.kernels(
        "mark_leaders", "number", "add_members", "sort_by_warps", *names,
        I=kind, W=values, V=members.dtype,
    )  # fmt: skip
    count_short, write_short, count_long, write_long = (getattr(k, name) for name in names)

    k.mark_leaders(n, (n, mate, space.leads))
    scan_into(space.leads, space.starts)
    space.sizes.data.memset_async(0, space.sizes.nbytes)
    k.number(
        n,
        (
            n, indptr, mate, space.starts, width, label, space.code, space.leaders,
            space.listed, space.places, space.sizes,
        ),
    )  # fmt: skip
    rows, listed, long_entries, too_long = (int(size) for size in space.sizes.get())
    weights = gpu.empty(rows, members.dtype, caller)
    k.add_members(rows, (rows, space.leaders, mate, members, weights))
    if too_long:
        del space
        made = list_and_sort(*matrix, label, rows, loops=False, symmetric=True)
        return made, label, weights

    counts = gpu.workspace(caller, counts=(rows, kind)).counts
    out_indptr = gpu.empty(rows + 1, kind, caller)
    short = (rows, *matrix, mate, space.code, space.leaders)
    blocks = -(-rows * width // PAIR_BLOCK)
    count_short(None, (*short, counts, None, None, None), block=PAIR_BLOCK, grid=blocks)
    if listed:
        keys = gpu.workspace(caller, keys=(long_entries, np.uint64)).keys
        lists = (space.listed, space.places)
        pattern = (indptr, indices, mate, space.code, space.leaders, *lists)
        k.sort_by_warps(WARP * listed, (listed, rows, *pattern, keys), block=LONG_BLOCK)
        long = (rows, *matrix, mate, space.leaders, *lists, keys)
        count_long(None, (*long, counts, None, None, None), block=LONG_BLOCK, grid=listed)
    scan_into(counts, out_indptr)
    entries = int(out_indptr[rows])
    made = (out_indptr, gpu.empty(entries, kind, caller), gpu.empty(entries, values, caller))
    write_short(None, (*short, None, *made), block=PAIR_BLOCK, grid=blocks)
    if listed:
        write_long(None, (*long, None, *made), block=LONG_BLOCK, grid=listed)
    return made, label, weights


def _pairs_as_groups(
    indptr: Any, indices: Any, data: Any, mate: Any, members: Any, caller: str
) -> Any:
    """Integers, added up by groups: rows are left unsorted."""
    cupy = engines.cupy()
    n, kind = mate.size, mate.dtype
    space = gpu.workspace(caller, leads=(n, kind), starts=(n + 1, kind))
    PAIRS.kernels("mark_leaders", I=kind).mark_leaders(n, (n, mate, space.leads))
    scan_into(space.leads, space.starts)
    first = cupy.arange(n, dtype=kind)
    label = space.starts[cupy.where(mate >= 0, cupy.minimum(mate, first), first)]
    count, longest = cupy.stack([space.starts[n], cupy.diff(indptr).max()]).get().tolist()
    found = contract_measured(indptr, indices, data, None, label, count, longest)[0]
    return found[:3], label, sums_by_label(members, label, count)
