"""Path scans on CPU threads, beside a copy of the table and a sequential cumulative sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import harness
from matchwood.primitives.path_scan import path_scan
from matchwood.primitives.path_scan.check import check_path_scan

N = 1_000_000  # vertices


def tables() -> dict[str, Any]:
    """One path as numbered and in random order, pairs, and one cycle."""
    name = np.random.default_rng(harness.SEED).permutation(N).astype(np.int32)
    straight = np.stack((np.arange(-1, N - 1), np.arange(1, N + 1)), axis=1).astype(np.int32)
    straight[-1, 1] = -1
    shuffled = np.full((N, 2), -1, np.int32)
    shuffled[name[1:], 0], shuffled[name[:-1], 1] = name[:-1], name[1:]
    pairs = np.full((N, 2), -1, np.int32)
    pairs[:, 0] = np.arange(N) ^ 1
    cycle = np.empty((N, 2), np.int32)
    cycle[name, 0], cycle[name, 1] = np.roll(name, 1), np.roll(name, -1)
    return {
        "a path in order": straight,
        "a path in random order": shuffled,
        "pairs": pairs,
        "a cycle in random order": cycle,
    }


def run() -> list[harness.Result]:
    values = np.ones(N, np.int32)
    results = []
    for name, table in tables().items():

        def verify(who: str, answer: Any, table: Any = table) -> None:
            if "threads" in who:
                check_path_scan(table, values, "add", answer)

        functions: dict[str, Any] = {
            "copy of the table": table.copy,
            "cumsum (in order, one way)": lambda: np.cumsum(values),
        }
        for method in ("splitters", "doubling"):
            functions[f"{method}, 2 threads"] = lambda table=table, method=method: path_scan(
                table, values, "add", method=method, threads=2
            )
        title = f"path scan of {N:,}, {name}"
        baseline = "copy of the table"
        results.append(harness.compare(title, functions, verify=verify, baseline=baseline))
    return results


if __name__ == "__main__":
    harness.main(run)
