"""Chapter 5 of the thesis on our collections: its tables and figures, as JSON and as text.

    python -m bench.join.chapter [--only "Yelp sample"] [--output chapter.json]

HG solves every pair, EV stops as soon as a pair is decided, GD, LD and PS are the approximate
matchings, `certified` is ours.  Times are the best of three, one thread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench.join import data as sets
from matchwood.join.verification import how, share_of
from matchwood.join.verification.cpu import verify

METHODS = {
    "HG": "exact", "EV": "early", "GD": "greedy", "LD": "dominant", "PS": "streaming",
    "certified": "certified",
}  # fmt: skip
APPROXIMATE = ("GD", "LD", "PS")
DELTA = 0.7
SMALLER = 0.1  # pairs down to delta minus this are verified by every method
PERCENT = (20, 40, 60, 80, 100)
SEEDS = (1, 2, 3)
REPEATS = 3
MOST_EDIT = 10_000  # records; edit similarity has weaker filters

# The thesis: hours or minutes for all sets, one thread of EPYC 7742 (HG, EV, LD, GD, PS)
THESIS_TOTAL = {
    "KOSARAK, h": (36, 14, 6, 5, 5), "FLICKR, min": (80, 55, 46, 44, 45),
    "YELP, min": (24, 14, 12, 11, 11), "BMS-POS, min": (18, 15, 14, 14, 14),
}  # fmt: skip
THESIS_VERIFICATION = {
    "KOSARAK, h": (32, 10, 2, 2, 2), "FLICKR, min": (56, 33, 24, 22, 23),
    "YELP, min": (17, 7, 4, 4, 4), "BMS-POS, min": (6, 3, 2, 2, 2),
}  # fmt: skip
THESIS_RECALL = {
    "ENRON": (0.9293, 0.9274, 0.9757), "FLICKR": (0.9994, 0.9994, 0.9995),
    "GDELT": (0.9992, 0.9992, 0.9996), "MIND": (0.9995, 0.9995, 0.9999),
    "YELP": (0.9999, 0.9999, 0.9998),
}  # fmt: skip


def best_time(call: Any) -> tuple[float, Any]:
    """Seconds of the fastest of some calls, after one that compiles."""
    answer = call()
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken), answer


def table_1(data: sets.Data) -> dict[str, Any]:
    """Table 5.1: sets, distinct elements, average and largest size."""
    sizes = [len(set(row)) for side in (data.left, data.right or []) for row in side]
    words = {word for side in (data.left, data.right or []) for row in side for word in row}
    return {
        "sets": len(sizes),
        "elements": len(words),
        "average": float(np.mean(sizes)),
        "largest": max(sizes),
    }


def made(data: sets.Data, similarity: str) -> tuple[Any, ...]:
    sides = (data.left,) if data.right is None else (data.left, data.right)
    return tuple(matchwood.collection(side, similarity=similarity) for side in sides)


def times(data: sets.Data, similarity: str = "jaccard") -> dict[str, Any]:
    """Figures 5.3 and 5.4: seconds in all, and of verification of the same pairs."""
    sides = made(data, similarity)
    prepared = sides[0].alone() if len(sides) == 1 else sides[0].beside(sides[1])
    near = matchwood.fuzzy_join(*sides, delta=DELTA - SMALLER, scores=False)
    pairs = np.stack((near.left, near.right), axis=1)
    found = {}
    records = prepared.records
    for name, method in METHODS.items():
        total, answer = best_time(
            lambda method=method: matchwood.fuzzy_join(
                *sides, delta=DELTA, verify=method, threads=1
            )
        )
        choice = how("bench", similarity, method, "weight", True)
        alone, _ = best_time(
            lambda choice=choice: verify(
                prepared.elements,
                records[0],
                records[-1],
                pairs,
                share_of(DELTA),
                choice,
                threads=1,
            )
        )
        found[name] = {"total": total, "verification": alone, "pairs": len(answer)}
    return found


def accuracy(data: sets.Data) -> dict[str, Any]:
    """Table 5.2: lowest recall by weight and precision by bound of three samples."""
    found: dict[str, Any] = {}
    for seed in SEEDS:
        sides = made(sets.sample(data, 50, seed), "jaccard")
        exact = _keys(matchwood.fuzzy_join(*sides, delta=DELTA, scores=False))
        for name in APPROXIMATE:
            for mode in ("weight", "bound"):
                answer = matchwood.fuzzy_join(
                    *sides, delta=DELTA, verify=METHODS[name], mode=mode, scores=False
                )
                keys = _keys(answer)
                shared = np.intersect1d(keys, exact).size
                of = exact.size if mode == "weight" else keys.size
                ratio = shared / of if of else 1.0
                row = found.setdefault(f"{name}, {mode}", {"ratio": 1.0, "difference": 0})
                if ratio <= row["ratio"]:
                    found[f"{name}, {mode}"] = {
                        "ratio": ratio,
                        "difference": abs(int(keys.size - exact.size)),
                    }
    return found


def _keys(pairs: Any) -> np.ndarray:
    return pairs.left << 32 | pairs.right


def against_truth(data: sets.Data) -> dict[str, Any]:
    """Recall and precision of the best partner of each left record, by similarity."""
    found = {}
    for similarity in ("jaccard", "edit", "equal"):
        best = matchwood.fuzzy_join(data.left, data.right, per_left=1, similarity=similarity)
        right = sum((a, b) in data.truth for a, b, _ in zip(*best, strict=True))
        found[similarity] = {"recall": right / len(data.truth), "precision": right / len(best)}
    return found


def profile(runs: dict[str, Any]) -> dict[str, list[float]]:
    """Figure 5.2: how far above the best each method is, sorted."""
    above: dict[str, list[float]] = {name: [] for name in METHODS}
    for run in runs.values():
        best = min(row["total"] for row in run.values())
        for name, row in run.items():
            above[name].append(row["total"] / best)
    return {name: sorted(values) for name, values in above.items()}


MEMORY = """
import sys, threading, time
from bench.join import data as sets
import matchwood
data = sets.read(sys.argv[1])
method = sys.argv[2]
page, seen, stop = 4096, [], threading.Event()
def look():
    while not stop.is_set():
        with open("/proc/self/statm") as file:
            seen.append(int(file.read().split()[1]) * page)
        time.sleep(0.01)
matchwood.fuzzy_join(data.left[:50], None if data.right is None else data.right[:50], verify=method)
watcher = threading.Thread(target=look); watcher.start()
matchwood.fuzzy_join(data.left, data.right, delta=0.7, verify=method, threads=1)
stop.set(); watcher.join()
print(*seen)
"""


def memory(name: str) -> dict[str, list[int]]:
    """Figure 5.5: bytes over the run of each of four methods, each in a process of its own."""
    found = {}
    for method in ("exact", "early", "streaming", "certified"):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, name, method], capture_output=True, text=True, check=True
        )
        found[method] = [int(word) for word in done.stdout.split()]
    return found


def run(names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"table 5.1": {}, "runs": {}, "edit": {}, "table 5.2": {},
                             "ground truth": {}, "memory": {}}  # fmt: skip
    for name in names:
        data = sets.read(name)
        if data is None:
            print(f"{name}: skipped, its file is not in {sets.DATA}")
            continue
        found["table 5.1"][name] = table_1(data)
        for percent in PERCENT:
            part = data if percent == 100 else sets.sample(data, percent, SEEDS[0])
            found["runs"][f"{name}, {percent} %"] = times(part)
        if len(data.left) <= MOST_EDIT:
            found["edit"][name] = times(sets.sample(data, 20, SEEDS[0]), "edit")
        found["table 5.2"][name] = accuracy(data)
        if data.truth is not None:
            found["ground truth"][name] = against_truth(data)
        found["memory"][name] = memory(name)
        show(name, found)
    found["figure 5.2"] = profile(found["runs"])
    found["thesis"] = {
        "total": THESIS_TOTAL, "verification": THESIS_VERIFICATION, "recall": THESIS_RECALL,
    }  # fmt: skip
    return found


def show(name: str, found: dict[str, Any]) -> None:
    """The rows of one collection."""
    facts = found["table 5.1"][name]
    print(f"\n{name}: {facts}")
    for percent in PERCENT:
        row = found["runs"][f"{name}, {percent} %"]
        cells = (f"{m} {r['total']:.3f}/{r['verification']:.3f} s" for m, r in row.items())
        print(f"  {percent:3} %", *cells)
    for method, row in found["table 5.2"][name].items():
        print(f"  {method}: {row['ratio']:.4f}, {row['difference']} pairs")
    if name in found["ground truth"]:
        print(f"  ground truth: {found['ground truth'][name]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(sets.MAKERS))
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    found = run(chosen.only or list(sets.MAKERS))
    if chosen.output:
        chosen.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
