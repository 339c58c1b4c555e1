"""The GPU engine: levels set up by setup.cu, with the CPU's aggregates; cycles in cycles.py.

The functions are those of cpu/, which hierarchy.py calls.  Smoothed interpolation is multiplied by
cuSPARSE, so that its levels equal the CPU's to rounding; all others do bit for bit, unless a group
has too many neighbours for `add_groups`: then the contraction of primitives is taken, whose rows
are sorted, and sums may differ by rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.gpu.launch import BLOCK
from matchwood.preconditioners.multilevel.gpu import cycles
from matchwood.preconditioners.multilevel.reference import ROUNDS
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.contract.gpu import without_diagonal
from matchwood.primitives.scan.gpu import scan_into
from matchwood.primitives.transpose.gpu import expand_rows, transpose

cycle_of = cycles.Cycle

CAPACITIES = ((24, 64), (80, 32))  # labels of a group's row, and threads of a block for that
SOURCE = gpu.Source(
    __package__,
    "setup.cu",
    (
        "measure<I,W>", "couple<I,W>", "propose<I>", "accept<I>", "find_roots<I>", "name_groups<I>",
        *(f"count_{c} = add_groups<I,W,{c},{block},false>" for c, block in CAPACITIES),
        *(f"write_{c} = add_groups<I,W,{c},{block},true>" for c, block in CAPACITIES),
        "mirror<I,W>", "find_links<I,W>", "factorize<I>", "bound_tiles", "multiply_rows<I,W>",
        "find_strongest<I,W>", "find_strong<I,W>",
    ),
    options=("-fmad=false",),
)  # fmt: skip
SEGMENT, WARP = SOURCE.constants("SEGMENT", "WARP")
TILE, SMALL_TILE, MANY_ROWS = 4096, 256, 100_000  # rows of a tile; the large ones from MANY_ROWS on
POWER_STEPS = 10  # as on the CPU
JACOBI_STEP = 1.55  # as on the CPU


class Measured(NamedTuple):
    """Of each row: the diagonal, the sum of |others|, 1 / sqrt(diagonal) or 0, and its hash."""

    diagonal: Any
    others: Any
    scale: Any
    hash: Any


class Lines(NamedTuple):
    """Rows in the order of the paths, and the maps of each (setup.cu, `factorize`).

    Tiles of whole segments end at `bounds`, the longest has `longest` rows.
    """

    order: Any
    down: Any
    inverse: Any
    upper: Any
    bounds: Any
    longest: int


def measure(
    indptr: Any, indices: Any, data: Any, inner: Any, seed: int, threads: int | None = None
) -> tuple[Measured, Any]:
    """As on the CPU; the sums are on the host."""
    n, cupy = inner.size, engines.cupy()
    if n >= 2**31:
        raise ValueError(f"multilevel: at most {2**31 - 1} rows on the GPU, got {n}")
    out = Measured(cupy.empty(n), cupy.empty(n), cupy.empty(n), cupy.empty(n, np.uint32))
    sums = cupy.zeros((-(-n // BLOCK), 3))
    k = SOURCE.kernels("measure", I=indices.dtype, W=data.dtype)
    k.measure(n, (n, indptr, indices, data, inner, seed, *out, sums))
    return out, sums.sum(axis=0).get()


def pair(
    indptr: Any, indices: Any, data: Any, m: Measured, join: bool, threads: int | None = None
) -> tuple[Any, int]:
    """(label of each vertex, number of groups); rows that are left out have that number."""
    n, kind = m.scale.size, indices.dtype
    space = gpu.workspace(
        "multilevel", coupling=(indices.size, np.uint32), top=(n, np.uint32), starts=(n + 1, kind),
        **dict.fromkeys(("choice", "mate", "root", "leads"), (n, kind)),
    )  # fmt: skip
    label = gpu.empty(n, kind, "multilevel")
    names = ("propose", "accept", "find_roots", "name_groups")
    k = SOURCE.kernels("couple", *names, I=kind, W=data.dtype)
    args = (n, indptr, indices, data, m.scale, space.coupling, space.top, space.choice, space.mate)
    k.couple(n, args)
    rows = (indptr, indices, space.coupling, space.top, m.hash)
    for turn in range(ROUNDS):
        k.propose(n, (n, turn == 0, *rows, space.mate, space.choice))
        k.accept(n, (n, space.choice, space.mate, space.top))
    k.find_roots(n, (n, join, *rows, m.scale, space.mate, space.root, space.leads))
    scan_into(space.leads, space.starts)
    k.name_groups(n, (n, m.scale, space.root, space.starts, label))
    return label, int(space.starts[n])


def contract(
    matrix: Any, label: Any, count: int, symmetric: bool, ordered: bool, threads: int | None = None
) -> Any:
    """The matrix of the groups, without that of rows left out; None where a group has too many."""
    indptr, indices, data, inner = matrix
    kind, cupy = indices.dtype, engines.cupy()
    starts, members = cycles.members_of(label, count)
    lengths, places = cupy.empty(count, kind), cupy.empty(count + 1, kind)
    diagonal, too_many = cupy.empty(count, data.dtype), cupy.zeros(1, np.int32)
    given = (count, indptr, indices, data, inner, label, starts, members, ordered)
    for capacity, block in CAPACITIES:
        names = (f"count_{capacity}", f"write_{capacity}", "mirror")
        k = SOURCE.kernels(*names, I=kind, W=data.dtype)
        too_many.fill(0)
        counted = (*given, lengths, None, None, None, None, too_many)
        getattr(k, names[0])(count, counted, block=block)
        if int(too_many[0]):
            continue
        scan_into(lengths, places)
        total = int(places[count])
        columns = gpu.empty(total, kind, "multilevel")
        values = gpu.empty(total, data.dtype, "multilevel")
        written = (*given, None, places, columns, values, diagonal, too_many)
        getattr(k, names[1])(count, written, block=block)
        if symmetric and ordered:
            k.mirror(count, (count, places, columns, values))
        return places, columns, values, diagonal
    return None


def lines(
    indptr: Any, indices: Any, data: Any, m: Measured, path: tuple[Any, Any], damping: float,
    threads: int | None = None,
) -> tuple[Lines, float]:  # fmt: skip
    """The factorized smoother along paths (perm and position), and the weight of its links."""
    n, kind, cupy = m.scale.size, indices.dtype, engines.cupy()
    order, position = (cupy.ascontiguousarray(a.astype(kind, copy=False)) for a in path)
    below, above, kept = (cupy.empty(n) for _ in range(3))
    dominant, begins = cupy.empty(n, np.bool_), cupy.zeros(n, np.bool_)
    maps = cupy.empty(n), cupy.empty(n), cupy.empty(n)
    k = SOURCE.kernels("find_links", "factorize", "bound_tiles", I=kind, W=data.dtype)
    links, sizes = (below, above, dominant), (m.diagonal, m.others, damping)
    k.find_links(n, (n, indptr, indices, data, *sizes, order, position, *links))
    k.factorize(n, (n, order, *links, *sizes, *maps, kept, begins))
    tile = TILE if n >= MANY_ROWS else SMALL_TILE
    tiles = -(-n // tile)
    bounds = cupy.empty(tiles + 1, np.int32)
    k.bound_tiles((tiles + 1) * WARP, (n, tiles, tile, begins, bounds))
    longest = int(cupy.diff(bounds).max())
    return Lines(order, *maps, bounds, longest), float(kept.sum())


def largest(matrix: Any, m: Measured, T: Lines, threads: int | None = None) -> float:
    """An estimate, from below, of the largest eigenvalue of T^-1 A."""
    indptr, indices, data, inner = matrix
    n, cupy = inner.size, engines.cupy()
    q, x, solve = cycles.smoother(T, n)
    x[:] = (m.hash & np.uint32(1023)).astype(np.float64) - 511.5
    size = cupy.ones(1)
    k = SOURCE.kernels("multiply_rows", I=indices.dtype, W=data.dtype)
    for _ in range(POWER_STEPS):
        k.multiply_rows(n, (n, indptr, indices, data, inner, x, size, q))
        solve()
        size = (x @ x).reshape(1)
    return float(cupy.sqrt(size)[0])


# Smoothed interpolation


def interpolation(matrix: Any, label: Any, count: int, threads: int | None = None) -> Any:
    """P, as on the CPU to rounding: rows sorted."""
    indptr, indices, data, inner = matrix
    n, kind, cupy = inner.size, indices.dtype, engines.cupy()
    root, lengths = cupy.empty(n), cupy.empty(n, np.int32)
    places = cupy.empty(n + 1, kind)
    k = SOURCE.kernels("find_strongest", "find_strong", I=kind, W=data.dtype)
    k.find_strongest(n, (n, indptr, indices, data, root))
    given = (n, count, indptr, indices, data, inner, label, root, JACOBI_STEP)
    k.find_strong(n, (*given, lengths, None, None, None))
    scan_into(lengths, places)
    total = int(places[n])
    columns, values = cupy.empty(total, kind), cupy.empty(total)
    k.find_strong(n, (*given, None, places, columns, values))
    return assemble(n, count, expand_rows(places, total), columns, values)


def coarse(matrix: Any, P: Any, count: int, threads: int | None = None) -> Any:
    """(P.T A P without its diagonal, that diagonal, P.T), by cuSPARSE."""
    from cupyx.scipy import sparse

    indptr, indices, data, inner = matrix
    n = inner.size
    A = sparse.csr_matrix((data.astype(np.float64), indices, indptr), shape=(n, n))
    A = A + sparse.diags(inner.astype(np.float64), format="csr")
    Q = sparse.csr_matrix((P[2], P[1], P[0]), shape=(n, count))
    R = transpose(P[0], P[1], P[2], count)
    whole = sparse.csr_matrix((R[2], R[1], R[0]), shape=(count, n)) @ (A @ Q)
    whole.sort_indices()
    starts, columns = whole.indptr.astype(indices.dtype), whole.indices.astype(indices.dtype)
    *rows, diagonal = without_diagonal(starts, columns, whole.data)
    return tuple(rows), diagonal, R
