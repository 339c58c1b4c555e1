"""The bars of the join that need many cores or a GPU; each answer is compared before it is timed.

MATCHWOOD_DATA=DIR python -m bench.join.large [--json FILE]
"""

from __future__ import annotations

import argparse
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.join import data as sets
from bench.join import generated
from bench.join.bars import DEBIAN, in_turns, row
from matchwood import engines

CORES = 16
RECORDS = 160_000


def cores(debian: Any) -> Iterator[dict[str, Any]]:
    """Debian's dependencies with more and more threads beside one."""
    prepared = matchwood.collection(debian)
    counts = [t for t in (1, 2, 4, 8, CORES) if t <= (os.cpu_count() or 1)]
    calls = [
        functools.partial(matchwood.fuzzy_join, prepared, delta=0.7, threads=t) for t in counts
    ]
    yield row("pairs of Debian dependencies at 0.7", len(calls[-1]()), DEBIAN)
    times = in_turns(calls, seconds=20.0)
    for count, seconds in zip(counts[1:], times[1:], strict=True):
        bar = {2: 1.7, CORES: 10.0}.get(count, 0.0)
        yield row(f"{count} threads beside one, Debian dependencies", times[0] / seconds, bar)


def gpu() -> Iterator[dict[str, Any]]:
    """Generated sets, prepared and resident, on the GPU beside all cores."""
    prepared = matchwood.collection(generated.tagged(RECORDS, 1))
    for delta in (0.6, 0.7, 0.8):
        on = {
            engine: functools.partial(matchwood.fuzzy_join, prepared, delta=delta, engine=engine)
            for engine in ("cpu", "gpu")
        }
        ours, theirs = (on[engine]() for engine in ("gpu", "cpu"))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
        pairs = len(ours)
        del ours, theirs
        slow, fast = in_turns(list(on.values()), seconds=6.0)
        title = f"GPU beside {os.cpu_count()} cores, {RECORDS} sets at {delta}, {pairs} pairs"
        print(f"GPU {1e3 * fast:.1f} ms, CPU {1e3 * slow:.1f} ms")
        yield row(title, slow / fast, 4.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    debian = sets.read("Debian dependencies")
    if debian is not None:
        found += list(cores(debian.left))
    if engines.gpu_available():
        found += list(gpu())
    if options.json:
        content = {"environment": harness.environment(), "rows": found}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
