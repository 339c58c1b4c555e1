"""The primitives and the gate on a GPU: against CuPy and cuSPARSE, and against copy bandwidth.

``python -m bench.engines.gpu.primitives [--quick] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.gpu import Table, device_ms, host_us
from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.assemble import gpu as assemble
from matchwood.primitives.compact import gpu as compact
from matchwood.primitives.inspect import gpu as inspect
from matchwood.primitives.row_reduce import gpu as row_reduce
from matchwood.primitives.scan import gpu as scan
from matchwood.primitives.sort import gpu as sort
from matchwood.primitives.union_find import gpu as union_find

SEED = 20240607


def stencil(sides: tuple[int, ...], *, full: bool, diagonal: bool) -> tuple[Any, Any]:
    """CSR pattern of a grid on the GPU: all neighbours (9-point, 27-point) or along axes."""
    cp = engines.cupy()
    at = cp.arange(int(np.prod(sides)), dtype=np.int32).reshape(sides)
    rows, cols = [], []
    for step in np.ndindex(*(3,) * len(sides)):
        moves = [s - 1 for s in step]
        if (not full and sum(map(abs, moves)) > 1) or (not diagonal and not any(moves)):
            continue
        near = tuple(slice(max(0, -d), n - max(0, d)) for d, n in zip(moves, sides, strict=True))
        far = tuple(slice(max(0, d), n - max(0, -d)) for d, n in zip(moves, sides, strict=True))
        rows.append(at[near].ravel())
        cols.append(at[far].ravel())
    n = at.size
    return assemble.assemble(n, n, cp.concatenate(rows), cp.concatenate(cols))[:2]


def rmat_edges(scale: int, edge_factor: int = 16) -> tuple[Any, Any]:
    """Graph500's edges, directed, duplicates and loops left in."""
    cp = engines.cupy()
    draw = cp.random.RandomState(SEED)
    m = edge_factor << scale
    u, v = cp.zeros(m, np.int32), cp.zeros(m, np.int32)
    for _ in range(scale):
        x = draw.random_sample(m, dtype=np.float32)
        down = x >= 0.76
        right = (x >= 0.95) | ((x >= 0.57) & ~down)
        u, v = 2 * u + down, 2 * v + right
    return u.astype(np.int32), v.astype(np.int32)


def bandwidth() -> float:
    """Copy bandwidth in TB/s, bytes read and written."""
    cp = engines.cupy()
    a = cp.ones(1 << 28, np.float32)
    b = cp.empty_like(a)
    return 2 * a.nbytes / device_ms(lambda: cp.copyto(b, a)) / 1e9


def row_reductions(name: str, indptr: Any, indices: Any, peak: float) -> Table:
    """SpMV against cuSPARSE, and the other instances, on one matrix."""
    import cupyx.cusparse
    import cupyx.scipy.sparse

    cp = engines.cupy()
    n, nnz = indptr.size - 1, indices.size
    table = Table(f"row reduction, {name}: {n:,} rows, {nnz:,} entries")
    table.add("tiles", device_ms(lambda: row_reduce.Tiles(indptr), calls=2))
    tiles = row_reduce.Tiles(indptr)
    draw = cp.random.RandomState(SEED)
    for kind in (np.float32, np.float64):
        width = np.dtype(kind).itemsize
        data, x = draw.random_sample(nnz).astype(kind), draw.random_sample(n).astype(kind)
        floor = (nnz * (4 + width) + n * (4 + 2 * width)) / peak / 1e9
        A = cupyx.scipy.sparse.csr_matrix((data, indices, indptr), shape=(n, n))
        y, ours = cp.empty(n, kind), cp.empty(n, kind)
        types = dict.fromkeys("MXYAPS", kind)
        cut = row_reduce.Tiles(indptr, 1024 if width == 8 else 2048)
        k = row_reduce.SOURCE.kernels("spmv", I=np.int32, T=str(cut.size), **types)

        args, kernel = (data, x, ours), k.spmv

        def run(cut: Any = cut, kernel: Any = kernel, args: Any = args, w: int = width) -> None:
            cut.launch(kernel, w, indices, args)

        def peer(A: Any = A, x: Any = x, y: Any = y) -> None:
            cupyx.cusparse.spmv(A, x, y, alpha=1.0, beta=0.0)

        run()
        peer()
        error = float(cp.abs(ours - y).max() / cp.abs(y).max())
        assert error < (1e-4 if kind is np.float32 else 1e-10), error
        theirs, mine = device_ms(peer), device_ms(run)
        label = np.dtype(kind).name
        table.add(f"cuSPARSE SpMV {label}", theirs)
        table.add(f"SpMV {label}", mine, ratio=theirs / mine, of_peak=floor / mine)
    weights = draw.random_sample(nnz).astype(np.float32)
    for best in (1, 2, 4):
        columns, chosen = cp.empty((n, best), np.int32), cp.empty((n, best), np.float32)
        k = row_reduce.SOURCE.kernels(
            f"strongest{best}", I=np.int32, W=np.float32, V=np.float32, T="2048"
        )
        kernel = getattr(k, f"strongest{best}")
        args = (weights, best, columns, chosen)
        each = (2 * best + 1) * 4
        ms = device_ms(lambda: tiles.launch(kernel, each, indices, args))  # noqa: B023
        table.add(f"strongest {best} float32", ms)
    label = cp.arange(n, dtype=np.int32)
    table.add(
        "minimum label",
        device_ms(lambda: row_reduce.minimum_label(indptr, indices, label, tiles=tiles)),
    )
    table.add(
        "inspect structure", device_ms(lambda: inspect.structure(indptr, indices, n), calls=2)
    )
    table.add(
        "inspect values", device_ms(lambda: inspect.values(indptr, indices, weights), calls=2)
    )
    return table


def device_wide(peak: float, size: int) -> Table:
    """Scan, compaction, sort and union-find on arrays of `size`."""
    cp = engines.cupy()
    draw = cp.random.RandomState(SEED)
    table = Table(f"device-wide, {size:,} elements")
    counts = draw.randint(0, 10, size).astype(np.int32)
    offsets = cp.empty(size + 1, np.int64)
    ms = device_ms(lambda: scan.scan_into(counts, offsets))
    table.add("scan int32 to int64", ms, of_peak=12 * size / peak / 1e9 / ms)
    offsets32 = cp.empty(size + 1, np.int32)
    status = gpu.Status()
    ms = device_ms(lambda: scan.scan_into(counts, offsets32, status))
    theirs = device_ms(lambda: cp.cumsum(counts, dtype=np.int32))
    table.add("scan int32", ms, of_peak=8 * size / peak / 1e9 / ms, cupy_ms=theirs)
    mask = draw.random_sample(size, dtype=np.float32) < 0.3
    theirs = device_ms(lambda: cp.flatnonzero(mask), calls=2)
    table.add("compact", device_ms(lambda: compact.compact(mask), calls=2), cupy_ms=theirs)
    small = size // 10
    keys = draw.randint(0, 1 << 31, small).astype(np.uint32)
    table.add(f"sort {small:,} uint32 pairs", device_ms(lambda: sort.sort_pairs(keys), calls=2))
    u, v = (
        draw.randint(0, small, small).astype(np.int32),
        draw.randint(0, small, small).astype(np.int32),
    )
    ms = device_ms(lambda: union_find.union_find(small, u, v), calls=1)
    table.add(f"union-find, {small:,} vertices and edges", ms)
    return table


def launches() -> Table:
    """What a launch costs, from Python and captured."""
    cp = engines.cupy()
    table = Table("launches of a small kernel")
    indptr = cp.arange(101, dtype=np.int32)
    rows = cp.empty(100, np.int32)
    from matchwood.primitives.transpose.gpu import SOURCE

    k = SOURCE.kernels("expand_rows", I=np.int32)

    def launch() -> None:
        k.expand_rows(100, (100, indptr, 1, rows))

    table.add("from Python", host_us(launch) / 1e3)
    many = gpu.capture(lambda: [launch() for _ in range(100)])
    table.add("captured, each of 100", device_ms(many.launch) / 100)
    return table


def run(quick: bool = False) -> list[Table]:
    """All tables; `quick` takes a tenth of the sizes."""
    peak = bandwidth()
    print(f"copy bandwidth {peak:.2f} TB/s")
    tables = [launches(), device_wide(peak, 10_000_000 if quick else 100_000_000)]
    side = 800 if quick else 2500
    tables.append(
        row_reductions("9-point grid", *stencil((side, side), full=True, diagonal=True), peak)
    )
    side = 640 if quick else 2048
    tables.append(
        row_reductions("5-point grid", *stencil((side, side), full=False, diagonal=False), peak)
    )
    side = 48 if quick else 128
    tables.append(
        row_reductions("27-point mesh", *stencil((side,) * 3, full=True, diagonal=False), peak)
    )
    scale = 18 if quick else 22
    u, v = rmat_edges(scale)
    n = 1 << scale
    table = Table(f"assemble, R-MAT {scale}")

    def assembled() -> Any:
        return assemble.assemble(n, n, u, v, symmetric=True, loops=False)

    table.add("edges to symmetric CSR", device_ms(assembled, calls=1, rounds=3), edges=u.size)
    tables.append(table)
    indptr, indices, _ = assembled()
    tables.append(row_reductions(f"R-MAT {scale}", indptr, indices, peak))
    return tables


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    tables = run(options.quick)
    if options.json:
        content = [{"title": table.title, "rows": table.rows} for table in tables]
        Path(options.json).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
