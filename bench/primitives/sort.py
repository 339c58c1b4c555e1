"""Radix sort against NumPy's stable argsort: 10 M random keys, and keys that need fewer passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import harness
from matchwood.primitives.sort import radix_sort
from matchwood.primitives.sort.check import check_radix_sort

SIZE = 10_000_000  # keys


def run() -> list[harness.Result]:
    """32-bit keys have the bar: at least 4 times NumPy's speed with 2 threads."""
    rng = np.random.default_rng(harness.SEED)
    payload = np.arange(SIZE, dtype=np.int32)
    cases: dict[str, Any] = {
        "uint32": rng.integers(0, 2**32, SIZE, dtype=np.uint32),
        "uint32 below 2^20": rng.integers(0, 2**20, SIZE, dtype=np.uint32),
        "uint64": rng.integers(0, 2**64, SIZE, dtype=np.uint64),
        "float64": rng.standard_normal(SIZE),
    }
    results = []
    for name, keys in cases.items():

        def verify(who: str, answer: Any, keys: Any = keys) -> None:
            if who.startswith(
                "matchwood"
            ):  # the payload is the positions, which are quick to check
                check_radix_sort(keys, None, *answer)

        results.append(
            harness.compare(
                f"sort 10 M {name} keys with an int32 payload",
                {
                    "matchwood, 2 threads": lambda keys=keys: radix_sort(keys, payload, threads=2),
                    "matchwood, 1 thread": lambda keys=keys: radix_sort(keys, payload, threads=1),
                    "np.argsort stable": lambda keys=keys: np.argsort(keys, kind="stable"),
                },
                verify=verify,
                baseline="np.argsort stable",
                bars={"matchwood, 2 threads": 4.0} if name == "uint32" else None,
            )
        )
    return results


if __name__ == "__main__":
    harness.main(run)
