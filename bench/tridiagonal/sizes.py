"""Tridiagonal solvers on the GPU from small systems to large ones, beside a copy and cuSPARSE.

``python -m bench.tridiagonal.sizes [--json FILE] [--draw FILE --plot FILE]``: float32 and float64,
rows for each second by the number of rows.  `--draw` only draws what a JSON file has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from bench.harness.gpu import device_ms
from bench.tridiagonal.solve_gpu import copy_all, gtsv2
from matchwood import engines
from matchwood.tridiagonal.plain import gpu

POWERS = range(10, 27)  # of two: numbers of rows


def measure(n: int, dtype: Any) -> dict[str, float]:
    """Milliseconds of a copy of the five arrays, of ours and of cuSPARSE with pivoting."""
    cupy = engines.cupy()
    rng = cupy.random.default_rng(1)
    arrays = [rng.standard_normal(n, dtype=dtype) for _ in range(5)]
    others = [cupy.empty_like(array) for array in arrays]
    dl, d, du, b, _ = arrays
    dl[0], du[-1] = 0, 0
    solver = gpu.Solver(n, dtype)
    return {
        "copy": device_ms(lambda: copy_all(arrays, others)),
        "matchwood": device_ms(lambda: solver.solve(dl, d, du, b, others[4])),
        "gtsv2": device_ms(gtsv2(dl, d, du, others[3])),
    }


def draw(found: dict[str, Any], path: Path) -> None:
    """Rows for each second: one panel a type."""
    plt = harness.pyplot()
    labels = {
        "copy": "copy of the five arrays",
        "matchwood": "matchwood",
        "gtsv2": "cuSPARSE gtsv2",
    }
    fig, axes = plt.subplots(1, len(found), figsize=(8, 3.2), sharey=True)
    for ax, (name, sizes) in zip(axes, found.items(), strict=True):
        n = np.array([int(size) for size in sizes])
        for kind, label in labels.items():
            ms = np.array([row[kind] for row in sizes.values()])
            ax.loglog(n, n / ms * 1e3, "o-", ms=3, lw=1.2, label=label)
        ax.set(title=name, xlabel="rows")
    axes[0].set_ylabel("rows a second")
    axes[0].legend(fontsize=8, frameon=False)
    fig.tight_layout()
    harness.save(fig, path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.tridiagonal.sizes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.draw:
        draw(json.loads(options.draw.read_text())["results"], options.plot)
        return
    found: dict[str, Any] = {}
    for dtype in ("float32", "float64"):
        found[dtype] = {}
        for power in POWERS:
            found[dtype][1 << power] = row = measure(1 << power, np.dtype(dtype))
            ratios = f"{row['matchwood'] / row['copy']:6.2f} copies, gtsv2 "
            ratios += f"{row['gtsv2'] / row['matchwood']:.2f} times ours"
            print(f"{dtype} 2^{power:2}: {row['matchwood']:8.4f} ms, {ratios}", flush=True)
    if options.json:
        made = {"environment": harness.environment(), "results": found}
        options.json.write_text(json.dumps(made, indent=1))
    if options.plot:
        draw(found, options.plot)


if __name__ == "__main__":
    main()
