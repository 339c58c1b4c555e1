"""Tridiagonal solvers on the GPU against a copy of their arrays, and cuSPARSE's gtsv2.

``python -m bench.tridiagonal.solve_gpu [--json FILE]``: n = 2^25, float32 and float64; blocks.
"solve" looks at every row of its answer, "no check" does not.  The bars:
at most 1.6 times the time of copying the five arrays once, and half of gtsv2's, in float32.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from bench import harness
from bench.harness.gpu import milliseconds
from matchwood import engines, tridiagonal
from matchwood.tridiagonal.block import gpu as blocks
from matchwood.tridiagonal.plain import gpu as plain

N = 1 << 25  # rows


def gtsv2(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """cuSPARSE's solver with pivoting; the answer takes the place of b.  Returns what runs it."""
    cupy = engines.cupy()
    from cupy_backends.cuda.libs import cusparse

    letter = "s" if d.dtype == np.float32 else "d"
    n = d.size
    handle = cupy.cuda.device.get_cusparse_handle()
    pointers = [array.data.ptr for array in (dl, d, du, b)]
    size = getattr(cusparse, f"{letter}gtsv2_bufferSizeExt")(handle, n, 1, *pointers, n)
    buffer = cupy.empty(size, np.uint8)
    run = getattr(cusparse, f"{letter}gtsv2")
    return lambda: run(handle, n, 1, *pointers, n, buffer.data.ptr)


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    pool = engines.cupy().get_default_memory_pool()
    for dtype in (np.float32, np.float64):
        for measure in (_plain, _blocks):
            results.append(measure(dtype))
            pool.free_all_blocks()
    return results


def _plain(dtype: Any) -> harness.Result:
    cupy = engines.cupy()
    rng = cupy.random.default_rng(1)
    dl, d, du, b = (rng.standard_normal(N, dtype=dtype) for _ in range(4))
    dl[0], du[-1] = 0, 0
    x = tridiagonal.solve(dl, d, du, b)
    off = d * x - b
    off[1:] += dl[1:] * x[:-1]
    off[:-1] += du[:-1] * x[1:]
    assert float(abs(off).max()) < 100 * np.finfo(dtype).eps * float(abs(x).max())
    del off
    solver = plain.Solver(N, dtype)
    five = (dl, d, du, b, x)
    others = [cupy.empty_like(array) for array in five]
    functions = {
        "copy of five arrays": lambda: copy_all(five, others),
        "solve": lambda: tridiagonal.solve(dl, d, du, b),
        "solve, no check": lambda: solver.solve(dl, d, du, b, others[4]),
        "cuSPARSE gtsv2": gtsv2(dl, d, du, others[3]),
    }
    title = f"tridiagonal, n = 2^25, {np.dtype(dtype)}"
    print(title)
    rows = _times(functions)
    copy, ours, bare, theirs = (row["median"] for row in rows.values())
    print(f"    {ours / copy:.2f} copies (bar 1.6); gtsv2 {theirs / ours:.1f} times ours (bar 2)")
    print(f"    the kernels, which do not look at the answer: {bare / copy:.2f} copies")
    return {"title": title, "rows": rows}


def copy_all(sources: Any, targets: Any) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.data.copy_from_device_async(source.data, source.nbytes)


def _blocks(dtype: Any) -> harness.Result:
    cupy = engines.cupy()
    n = N // 8
    rng = cupy.random.default_rng(1)
    dl, d, du = (rng.standard_normal(4 * n, dtype=dtype).reshape(n, 2, 2) for _ in range(3))
    b = rng.standard_normal(2 * n, dtype=dtype)
    x = cupy.empty_like(b)
    solver = blocks.Solver(n, dtype)
    five = (dl, d, du, b, x)
    others = [cupy.empty_like(array) for array in five]
    right = b.reshape(n, 2)
    functions = {
        "copy of five arrays": lambda: copy_all(five, others),
        "solve": lambda: tridiagonal.block_tridiagonal.solve(dl, d, du, right),
        "solve, no check": lambda: solver.solve(dl, d, du, b, x),
    }
    print(f"block tridiagonal, n = 2^22, {np.dtype(dtype)}")
    rows = _times(functions)
    copy, ours, unchecked = (row["median"] for row in rows.values())
    print(f"    solve is {ours / copy:.2f} copies, without its check {unchecked / copy:.2f}")
    return {"title": f"block tridiagonal, n = 2^22, {np.dtype(dtype)}", "rows": rows}


def _times(functions: dict[str, Any]) -> dict[str, Any]:
    rows = {}
    for name, function in functions.items():
        times = milliseconds(function)
        rows[name] = {"median": statistics.median(times) / 1e3, "best": min(times) / 1e3}
        print(f"    {name:24} {statistics.median(times):8.3f} ms, best {min(times):8.3f}")
    return rows


if __name__ == "__main__":
    harness.main(run)
