"""What chapter 5 measures, for one collection: sizes, times, accuracy, memory.

HG solves every pair, EV stops as soon as a pair is decided, GD, LD and PS are the approximate
matchings, `certified` is ours.  One thread.  Methods take turns, and the best turn counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import matchwood
from bench.applications.join import data as sets
from bench.applications.join import generated
from bench.applications.join.listed import listed
from matchwood.applications.join.verification import share_of
from matchwood.applications.join.verification.cpu.pairs import verify
from matchwood.applications.join.verification.cpu.rows import how

METHODS = {
    "HG": "exact", "EV": "early", "GD": "greedy", "LD": "dominant", "PS": "streaming",
    "certified": "certified",
}  # fmt: skip
APPROXIMATE = ("GD", "LD", "PS")
DELTA = 0.7
DELTAS, ENOUGH = (0.7, 0.6, 0.5), 100  # of accuracy; pairs of a sample
TURNS = 3
SECONDS = 3.0  # no further turns after this, for all methods together
MOST_LISTED = 1_000_000  # pairs on which verification is timed; of more, so many are drawn
SEEDS = (1, 2, 3)
MOST_PAIRS = 2_000_000  # pairs of records of which edit similarity is worked out for all


def in_turns(
    calls: dict[str, Callable[[], Any]], turns: int = TURNS
) -> dict[str, tuple[float, Any]]:
    """(best seconds, answer) of each call.  The first turn may compile, and does not count.

    Seconds of the processor: one thread works, and other programs may be at work beside it.
    """
    best: dict[str, tuple[float, Any]] = {}
    for name, call in calls.items():
        best[name] = (np.inf, call())
    began = time.process_time()
    for turn in range(turns):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = (min(best[name][0], time.process_time() - start), best[name][1])
        if turn + 1 < turns and time.process_time() - began > SECONDS:
            break
    return best


def sizes(data: sets.Data) -> dict[str, Any]:
    """Table 5.1: sets, distinct elements, average and largest size."""
    sides = (data.left, data.right or [])
    counts = [len(set(row)) for side in sides for row in side]
    words = {word for side in sides for row in side for word in row}
    return {
        "sets": len(counts),
        "elements": len(words),
        "average": float(np.mean(counts)),
        "largest": max(counts),
    }


def made(data: sets.Data, similarity: str) -> tuple[Any, ...]:
    sides = (data.left,) if data.right is None else (data.left, data.right)
    return tuple(matchwood.collection(side, similarity=similarity) for side in sides)


def times(data: sets.Data, similarity: str = "jaccard") -> dict[str, Any]:
    """Figures 5.3 and 5.4: seconds in all, and of verification of the pairs that reach it."""
    sides = made(data, similarity)
    prepared = sides[0].alone() if len(sides) == 1 else sides[0].beside(sides[1])
    pairs = listed(prepared, DELTA, MOST_LISTED)
    records = prepared.records

    def join(method: str) -> Any:
        return matchwood.fuzzy_join(*sides, delta=DELTA, verify=method, threads=1)

    def alone(method: str) -> Any:
        return verify(
            prepared.elements, records[0], records[-1], pairs, share_of(DELTA),
            how("bench", similarity, method, "weight", True), threads=1,
        )  # fmt: skip

    total = in_turns({name: lambda m=m: join(m) for name, m in METHODS.items()})
    alone_ = in_turns({name: lambda m=m: alone(m) for name, m in METHODS.items()})
    stats = total["certified"][1].stats
    return {
        "sets": sum(map(len, sides)),
        "verified": int(stats["verified"]),
        "timed": len(pairs),
        "solved_exactly": int(stats["solved_exactly"]),
        "methods": {
            name: {
                "total": total[name][0],
                "verification": alone_[name][0],
                "pairs": len(total[name][1]),
            }
            for name in METHODS
        },
    }


def cost_of_bounds(data: sets.Data) -> dict[str, float]:
    """Seconds of a join by bounds over those by weights, for each approximate matching.

    The join by weights is there twice: what "again" is away from 1 is noise.
    """
    sides = made(data, "jaccard")

    def join(method: str, mode: str) -> Any:
        return matchwood.fuzzy_join(*sides, delta=DELTA, verify=method, mode=mode, threads=1)

    modes = {"weight": "weight", "bound": "bound", "again": "weight"}
    best = in_turns(
        {f"{name}, {label}": lambda n=name, m=mode: join(METHODS[n], m)
         for name in APPROXIMATE for label, mode in modes.items()}, turns=9,
    )  # fmt: skip
    found = {}
    for name in APPROXIMATE:
        weight = best[f"{name}, weight"][0]
        found[name] = best[f"{name}, bound"][0] / weight
        found[f"{name}, again"] = best[f"{name}, again"][0] / weight
    return found


def accuracy(data: sets.Data, percent: int) -> dict[str, Any]:
    """Table 5.2: lowest recall by weight and precision by bound of three samples.

    At the highest of DELTAS at which the samples have ENOUGH pairs: of none, any recall is 1.
    Where there is no such threshold, all records are joined with near copies of them.
    """
    for copies in (False, True):
        given = with_copies(data) if copies else data
        samples = [made(sets.sample(given, percent, seed), "jaccard") for seed in SEEDS]
        for delta in DELTAS:
            exact = [
                _keys(matchwood.fuzzy_join(*sides, delta=delta, scores=False)) for sides in samples
            ]
            if min(keys.size for keys in exact) >= ENOUGH:
                return {"delta": delta, "copies": copies, **_compared(samples, exact, delta)}
    raise ValueError("there are not enough pairs even with copies")


def with_copies(data: sets.Data) -> sets.Data:
    """The records of both sides, and near copies of them."""
    rows = data.left + (data.right or [])
    return sets.Data(rows, generated.near_copies(rows, SEEDS[0]))


def _compared(samples: list[Any], truths: list[Any], delta: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for sides, exact in zip(samples, truths, strict=True):
        for name in APPROXIMATE:
            for mode in ("weight", "bound"):
                answer = matchwood.fuzzy_join(
                    *sides, delta=delta, verify=METHODS[name], mode=mode, scores=False
                )
                keys = _keys(answer)
                shared = np.intersect1d(keys, exact, assume_unique=True).size
                of = exact.size if mode == "weight" else keys.size
                if shared != (keys if mode == "weight" else exact).size:
                    raise AssertionError(f"{name} by {mode} broke its promise")
                ratio = shared / of if of else float("nan")
                row = found.get(f"{name}, {mode}")
                if row is None or ratio < row["ratio"]:
                    found[f"{name}, {mode}"] = {
                        "ratio": ratio,
                        "difference": int(keys.size - exact.size),
                        "pairs": int(exact.size),
                    }
    return found


def _keys(pairs: Any) -> np.ndarray:
    return pairs.left << 32 | pairs.right


def against_truth(data: sets.Data) -> dict[str, Any]:
    """Recall and precision of the best partner of each left record, by similarity and delta."""
    assert data.truth is not None
    found: dict[str, Any] = {}
    # without a threshold edit similarity has no filter: all pairs are compared
    few = len(data.left) * len(data.right or []) <= MOST_PAIRS
    for similarity in ("jaccard", "equal", *(("edit",) if few else ())):
        best = matchwood.fuzzy_join(data.left, data.right, per_left=1, similarity=similarity)
        right = np.array([(a, b) in data.truth for a, b, _ in zip(*best, strict=True)])
        for delta in (0.0, 0.1, 0.2, 0.3, 0.5):
            kept = best.score >= delta
            found[f"{similarity}, {delta}"] = {
                "recall": float(right[kept].sum() / len(data.truth)),
                "precision": float(right[kept].mean()) if kept.any() else 1.0,
            }
    return found


def profile(runs: dict[str, Any]) -> dict[str, list[float]]:
    """Figure 5.2: seconds that each method takes above the best one, sorted."""
    above: dict[str, list[float]] = {name: [] for name in METHODS}
    for run in runs.values():
        best = min(row["total"] for row in run["methods"].values())
        for name, row in run["methods"].items():
            above[name].append(row["total"] - best)
    return {name: sorted(values) for name, values in above.items()}


MEMORY = """
import json, sys, threading, time
import matchwood
from bench.papers.mandulak import join as chapter
data = chapter.part_of(sys.argv[1], int(sys.argv[2]))
method, seen, stop = sys.argv[3], [], threading.Event()
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def look():
    while not stop.is_set():
        seen.append((time.perf_counter(), resident()))
        stop.wait(0.005)
few = [None if side is None else side[:50] for side in (data.left, data.right)]
matchwood.fuzzy_join(*few, delta=0.7, verify=method, threads=1)
before = resident()
watcher = threading.Thread(target=look)
watcher.start()
start = time.perf_counter()
pairs = matchwood.fuzzy_join(data.left, data.right, delta=0.7, verify=method, threads=1)
whole = time.perf_counter() - start
stop.set()
watcher.join()
print(json.dumps({
    "before": before,
    "seconds": whole,
    "phases": pairs.stats["seconds"],
    "curve": [(at - start, size - before) for at, size in seen],
}))
"""


def memory(name: str, percent: int) -> dict[str, Any]:
    """Figure 5.5: bytes over the run of four methods, each in a process of its own."""
    found = {}
    for label in ("HG", "EV", "PS", "certified"):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, name, str(percent), METHODS[label]],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        run = json.loads(done.stdout)
        run["curve"] = _thinned(run["curve"])
        found[label] = run
    return found


def _thinned(curve: list[list[float]], most: int = 200) -> list[list[float]]:
    """At most so many points, each the largest of its stretch; the last one is kept."""
    step = -(-len(curve) // most)
    kept = [
        max(curve[i : i + step], key=lambda point: point[1]) for i in range(0, len(curve), step)
    ]
    return [[round(at, 4), size] for at, size in (*kept, curve[-1])]
