"""The bars of the join that need many cores or a GPU; each answer is compared before it is timed.

MATCHWOOD_DATA=DIR python -m bench.applications.join.large [--part cores|gpu] [--json FILE]
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.applications.join import data as sets
from bench.applications.join import generated
from bench.applications.join.bars import DEBIAN, row
from matchwood import engines

CORES = 16
RECORDS = 160_000
WARM_UP = 2000  # records of the first join: kernels are compiled, or loaded


def said(what: str, call: Callable[[], Any]) -> Any:
    """What the call returns; a line says how long it took."""
    start = time.perf_counter()
    found = call()
    print(f"{what}: {time.perf_counter() - start:.1f} s", flush=True)
    return found


def by_phase(pairs: Any) -> str:
    return ", ".join(f"{name} {1e3 * s:.1f}" for name, s in pairs.stats["seconds"].items())


def best_of(calls: dict[Any, Callable[[], Any]], seconds: float) -> dict[Any, float]:
    """The best time of each call, in turns: at least twice, then until the time is up.

    A line says where the best one of each spent its time.
    """
    best: dict[Any, float] = {}
    phases: dict[Any, str] = {}
    began = time.perf_counter()
    turn = 0
    while turn < 2 or time.perf_counter() - began < seconds:
        for name, call in calls.items():
            start = time.perf_counter()
            found = call()
            taken = time.perf_counter() - start
            if taken < best.get(name, np.inf):
                best[name], phases[name] = taken, by_phase(found)
        turn += 1
    for name, taken in best.items():
        print(f"{name}: {1e3 * taken:.1f} ms; {phases[name]}", flush=True)
    return best


def cores(debian: Any, counts: list[int], seconds: float) -> Iterator[dict[str, Any]]:
    """Debian's dependencies with more and more threads beside one."""
    many = [["a", "b"]] * 400  # pairs enough for every kernel to run
    said("warm up", lambda: matchwood.fuzzy_join(debian[:WARM_UP] + many, threads=2))
    prepared = said("collection", lambda: matchwood.collection(debian))
    calls = {
        t: functools.partial(matchwood.fuzzy_join, prepared, delta=0.7, threads=t)
        for t in counts
        if t <= (os.cpu_count() or 1)
    }
    for t, call in calls.items():
        yield row(f"pairs of Debian dependencies at 0.7, {t} threads", len(call()), DEBIAN)
    times = best_of(calls, seconds)
    for count, taken in list(times.items())[1:]:
        bar = {2: 1.7, CORES: 10.0}.get(count, 0.0)
        yield row(f"{count} threads beside one, Debian dependencies", times[1] / taken, bar)


def gpu(deltas: list[float], seconds: float) -> Iterator[dict[str, Any]]:
    """Generated sets, prepared and resident, on the GPU beside all cores."""
    some = generated.tagged(WARM_UP, 2)
    for engine in ("cpu", "gpu"):
        said(f"warm up, {engine}", lambda e=engine: matchwood.fuzzy_join(some, engine=e))
    rows = said("generated", lambda: generated.tagged(RECORDS, 1))
    prepared = said("collection", lambda: matchwood.collection(rows))
    said("dictionary", prepared.alone)
    for delta in deltas:
        on = {
            engine: functools.partial(matchwood.fuzzy_join, prepared, delta=delta, engine=engine)
            for engine in ("gpu", "cpu")
        }
        ours, theirs = (said(f"{engine}, {delta}", call) for engine, call in on.items())
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
        pairs = len(ours)
        del ours, theirs
        times = best_of(on, seconds)
        title = f"GPU beside {os.cpu_count()} cores, {RECORDS} sets at {delta}, {pairs} pairs"
        yield row(title, times["cpu"] / times["gpu"], 4.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=("cores", "gpu"))
    parser.add_argument("--seconds", type=float, default=6.0, help="for each comparison, about")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, CORES])
    parser.add_argument("--deltas", type=float, nargs="+", default=[0.7, 0.8, 0.6])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: list[dict[str, Any]] = []

    def note(rows: Iterator[dict[str, Any]]) -> None:
        for one in rows:  # written after each row: a run that is ended early has left something
            found.append(one)
            if options.json:
                content = {"environment": harness.environment(), "rows": found}
                options.json.write_text(json.dumps(content, indent=1) + "\n")

    debian = sets.read("Debian dependencies") if options.part != "gpu" else None
    if debian is not None:
        note(cores(debian.left, options.threads, options.seconds))
    if options.part != "cores" and engines.gpu_available():
        note(gpu(options.deltas, options.seconds))


if __name__ == "__main__":
    main()
