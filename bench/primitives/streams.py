"""Scan, compaction, bitmaps and hashes against NumPy: passes over 10 M elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench import harness
from matchwood.primitives.compact import compact
from matchwood.primitives.compact.check import check_compact
from matchwood.primitives.frontier import bitmap_from_queue, queue_from_bitmap
from matchwood.primitives.frontier.check import check_bitmap, check_queue
from matchwood.primitives.hashing import hash2, quarter_md5, reference
from matchwood.primitives.scan import exclusive_scan
from matchwood.primitives.scan.check import check_exclusive_scan

SIZE = 10_000_000  # elements


def run() -> list[harness.Result]:
    """Ours with 1 and 2 threads, and the same in NumPy."""
    rng = np.random.default_rng(harness.SEED)
    counts = rng.integers(0, 50, SIZE).astype(np.int32)
    vertices = np.arange(SIZE, dtype=np.int32)
    results = [
        versus_numpy(
            "exclusive scan of 10 M int32",
            lambda threads: exclusive_scan(counts, threads=threads),
            lambda: np.concatenate((np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32))),
            lambda answer: check_exclusive_scan(counts, answer),
        )
    ]
    for share in (0.01, 0.5, 0.99):
        mask = rng.random(SIZE) < share
        results.append(
            versus_numpy(
                f"positions of {share:.0%} of 10 M flags",
                lambda threads, mask=mask: compact(mask, threads=threads),
                lambda mask=mask: np.flatnonzero(mask),
                lambda answer, mask=mask: check_compact(mask, None, answer),
            )
        )
    queue = rng.permutation(SIZE)[: SIZE // 10].astype(np.int32)
    bitmap = bitmap_from_queue(queue, SIZE)
    results += [
        versus_numpy(
            "bitmap of 1 M among 10 M vertices",
            lambda threads: bitmap_from_queue(queue, SIZE, threads=threads),
            lambda: _packed(queue),
            lambda answer: check_bitmap(queue, SIZE, answer),
        ),
        versus_numpy(
            "queue from that bitmap",
            lambda threads: queue_from_bitmap(bitmap, SIZE, threads=threads),
            lambda: np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little")),
            lambda answer: check_queue(bitmap, SIZE, answer),
        ),
        versus_numpy(
            "hash2 of 10 M pairs",
            lambda threads: hash2(vertices, counts, 1, threads=threads),
            lambda: reference.hash2_array(vertices, counts, 1),
            lambda answer: _equal(answer, reference.hash2_array(vertices, counts, 1)),
        ),
        versus_numpy(
            "quarter_md5 of 10 M vertices",
            lambda threads: quarter_md5(vertices, 12345, threads=threads),
            lambda: reference.quarter_md5_array(vertices, 12345),
            lambda answer: _equal(answer, reference.quarter_md5_array(vertices, 12345)),
        ),
    ]
    return results


def versus_numpy(
    title: str,
    ours: Callable[[int], Any],
    theirs: Callable[[], Any],
    check: Callable[[Any], None],
) -> harness.Result:
    """Compare; the check sees our answers."""
    return harness.compare(
        title,
        {
            "matchwood, 2 threads": lambda: ours(2),
            "matchwood, 1 thread": lambda: ours(1),
            "numpy": theirs,
        },
        verify=lambda who, answer: check(answer) if who != "numpy" else None,
        baseline="numpy",
    )


def _packed(queue: Any) -> Any:
    marked = np.zeros(SIZE, np.bool_)
    marked[queue] = True
    return np.packbits(marked, bitorder="little")


def _equal(answer: Any, right: Any) -> None:
    np.testing.assert_array_equal(answer, right)


if __name__ == "__main__":
    harness.main(run)
