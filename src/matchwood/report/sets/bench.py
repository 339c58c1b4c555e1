"""`matchwood bench join`: whole joins of real collections, by every method of verification.

HG solves every pair, EV stops as soon as a pair is decided, GD, LD and PS are the approximate
matchings, `certified` is the default of `fuzzy_join`.  One thread, delta 0.7.  Methods take turns,
and the best turn counts.  The whole chapter, with verification alone, samples, memory and edit
similarity, is `python -m bench.join.chapter` in a clone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import matchwood
from matchwood.report.sets import collections
from matchwood.report.show import blank_table, milliseconds

METHODS = {
    "HG": "exact", "EV": "early", "GD": "greedy", "LD": "dominant", "PS": "streaming",
    "certified": "certified",
}  # fmt: skip
APPROXIMATE = ("GD", "LD", "PS")
DELTA = 0.7


def run(repeats: int, say: Callable[[str], object] = lambda _: None) -> list[dict[str, Any]]:
    """A row for each collection that is there."""
    found = []
    for name in collections.MAKERS:
        data = collections.that_takes_part(name)
        if data is not None:
            say(f"join of {name}")
            found.append(_row(name, data, repeats))
    return found


def _row(name: str, data: collections.Data, repeats: int) -> dict[str, Any]:
    sides = [matchwood.collection(side) for side in (data.left, data.right) if side is not None]

    def join(method: str, mode: str = "weight") -> matchwood.Pairs:
        options: dict[str, Any] = {"verify": method, "mode": mode, "delta": DELTA, "threads": 1}
        return matchwood.fuzzy_join(*sides, **options)

    answers = {label: join(method) for label, method in METHODS.items()}
    _compare(name, answers)
    exact = answers["HG"]
    bounds = {label: len(join(METHODS[label], "bound")) for label in APPROXIMATE}
    seconds = dict.fromkeys(METHODS, np.inf)
    for _ in range(repeats):
        for label, method in METHODS.items():
            start = time.process_time()
            join(method)
            seconds[label] = min(seconds[label], time.process_time() - start)
    return {
        "collection": name,
        "sets": sum(map(len, sides)),
        "pairs": len(exact),
        "verified": answers["certified"].stats["verified"],
        "solved_exactly": answers["certified"].stats["solved_exactly"],
        "seconds": seconds,
        "recall": {m: _ratio(len(answers[m]), len(exact)) for m in APPROXIMATE},
        "precision": {m: _ratio(len(exact), bounds[m]) for m in APPROXIMATE},
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _compare(name: str, answers: dict[str, matchwood.Pairs]) -> None:
    """`certified` has the bits of HG, EV its pairs; approximate methods report no false pair."""
    exact, keys = answers["HG"], _keys(answers["HG"])
    if not all(map(np.array_equal, exact, answers["certified"])):
        raise matchwood.CheckFailed(f"join of {name}: certified and HG differ")
    if not np.array_equal(keys, _keys(answers["EV"])):
        raise matchwood.CheckFailed(f"join of {name}: EV and HG have other pairs")
    for label in APPROXIMATE:
        if not np.isin(_keys(answers[label]), keys).all():
            raise matchwood.CheckFailed(f"join of {name}: {label} reports a false pair")


def _keys(pairs: matchwood.Pairs) -> np.ndarray:
    return pairs.left << 32 | pairs.right


def table(found: list[dict[str, Any]]) -> Any:
    """The rows for people."""
    if not found:
        return (
            f"No collections in {collections.folder()} (MATCHWOOD_DATA names the folder above it)."
        )
    result = blank_table(f"whole joins by verification, 1 thread, delta {DELTA}")
    result.add_column("collection")
    for head in ("sets", "pairs", *METHODS, "least recall", "least precision"):
        result.add_column(head, justify="right")
    for r in found:
        result.add_row(
            r["collection"], f"{r['sets']:,}", f"{r['pairs']:,}",
            *(milliseconds(r["seconds"][label]) for label in METHODS),
            *(f"{min(r[kind].values()):.4f}" for kind in ("recall", "precision")),
        )  # fmt: skip
    return result
