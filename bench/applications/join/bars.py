"""The bars of the join, one row each: what was measured, and what it had to be.

    MATCHWOOD_PYTOKENJOIN=/tmp/tokenjoin/bin/python python -m bench.applications.join.bars

Ratios of times are of calls in turns within this process; pytokenjoin runs in its own (speed.py).
"""

from __future__ import annotations

import functools
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import matchwood
from bench.applications.join import data as sets
from bench.applications.join import generated
from bench.applications.join.edits import all_pairs
from bench.applications.join.listed import listed
from bench.applications.join.speed import Peer
from matchwood.applications.join.verification import share_of
from matchwood.applications.join.verification.cpu.pairs import verify
from matchwood.applications.join.verification.cpu.rows import how

ALL = 1 << 62
DEBIAN = 4_079_751  # pairs of Debian's dependencies at 0.7
COLLECTIONS = ("Yelp sample", "TREC titles", "TREC abstracts", "Abt-Buy")


def row(title: str, value: float, bar: float, *, most: bool = False) -> dict[str, Any]:
    """`most`: the bar is an upper one."""
    met = value <= bar if most else value >= bar
    shown = {"title": title, "value": round(value, 3), "bar": bar, "met": bool(met)}
    print(f"{title}: {value:.3g} ({'at most' if most else 'at least'} {bar:g})"
          f" {'ok' if met else 'NOT MET'}", flush=True)  # fmt: skip
    return shown


def in_turns(calls: list[Callable[[], Any]], seconds: float = 4.0, turns: int = 7) -> list[float]:
    """Best time of each call, called in turns after a first one."""
    for call in calls:
        call()
    best = [np.inf] * len(calls)
    began = time.perf_counter()
    for turn in range(turns):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
        if turn >= 1 and time.perf_counter() - began > seconds:
            break
    return best


def verifier(prepared: Any, pairs: np.ndarray, delta: float, method: str) -> Callable[[], Any]:
    one, other = prepared.records[0], prepared.records[-1]
    plan = how("bench", prepared.similarity, method, "weight", True)
    return lambda: verify(prepared.elements, one, other, pairs, share_of(delta), plan, threads=1)


def verification(yelp: Any) -> Iterator[dict[str, Any]]:
    """Verification alone, beside pytokenjoin's."""
    long = generated.clustered(600, 108, 1)
    for name, rows, deltas, algorithms, bar in (
        ("Yelp sample", yelp, (0.6, 0.7, 0.8), (0, 1, 2), 100.0),
        ("600 sets of 108", long, (0.6,), (0,), 300.0),
    ):
        prepared = matchwood.collection(rows).alone()
        with tempfile.TemporaryDirectory() as folder:
            peer = Peer(rows, folder)
            if peer.reason:
                print(f"pytokenjoin is left out: {peer.reason}")
                return
            for delta in deltas:
                pairs = listed(prepared, delta, ALL)
                (ours,) = in_turns([verifier(prepared, pairs, delta, "certified")])
                theirs = min(peer.verification(delta, algorithm) for algorithm in algorithms)
                yield row(f"verification beside pytokenjoin's, {name}, {delta}", theirs / ours, bar)


def certified(yelp: Any) -> Iterator[dict[str, Any]]:
    """Certified beside exact: verification alone, and whole joins."""
    long = {"4,000 sets of 147": sets.Data(generated.clustered(4000, 147, 1))}
    known = {**{name: sets.read(name) for name in COLLECTIONS}, **long}
    for name, data in known.items():
        if data is None:
            continue
        delta = 0.6 if name in long else 0.7
        sides = [matchwood.collection(x) for x in (data.left, data.right) if x is not None]
        prepared = sides[0].alone() if len(sides) == 1 else sides[0].beside(sides[1])
        pairs = listed(prepared, delta, ALL)
        fast, slow = in_turns([verifier(prepared, pairs, delta, m) for m in ("certified", "exact")])
        bar = 2.0 if name in long else 1 / 1.05
        yield row(f"certified beside exact, verification alone, {name}", slow / fast, bar)
        calls = [
            functools.partial(matchwood.fuzzy_join, *sides, delta=delta, verify=m, threads=1)
            for m in ("certified", "exact")
        ]
        fast, slow = in_turns(calls)
        yield row(f"certified beside exact, whole join, {name}", slow / fast, 1 / 1.05)


def threads(debian: Any) -> Iterator[dict[str, Any]]:
    prepared = matchwood.collection(debian)
    found = matchwood.fuzzy_join(prepared, delta=0.7)
    yield row("pairs of Debian dependencies at 0.7", len(found), DEBIAN)
    del found
    one, two = in_turns(
        [functools.partial(matchwood.fuzzy_join, prepared, delta=0.7, threads=t) for t in (1, 2)]
    )
    yield row("two threads beside one, Debian dependencies", one / two, 1.7)
    print(f"one thread takes {one:.2f} s from a collection")


def best_pairs(yelp: Any, debian: Any) -> Iterator[dict[str, Any]]:
    """k = 1000 beside the join at the score of the k-th pair."""
    tags = generated.tagged(20_000, 1)
    for name, rows in (("Yelp sample", yelp), ("Debian dependencies", debian), ("tags", tags)):
        for options in ({}, {"exclude_equal": True}):
            if rows is None:
                continue
            prepared = matchwood.collection(rows)
            join = functools.partial(matchwood.fuzzy_join, prepared, threads=1, **options)
            last = float(join(k=1000).score[-1])
            calls = [functools.partial(join, k=1000), functools.partial(join, delta=last)]
            best, whole = in_turns(calls)
            told = f"k = 1000 beside the join at its last score {last:.3f}, {name} {options or ''}"
            yield row(told, best / whole, 2.0, most=True)


def edits(yelp: Any) -> Iterator[dict[str, Any]]:
    try:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    except ImportError:
        print("rapidfuzz is left out: it is not installed")
        return
    prepared = matchwood.collection(yelp, similarity="edit").alone()
    words = list(prepared.values)
    call = functools.partial(
        cdist, words, words, scorer=Levenshtein.distance, dtype=np.uint8, workers=1
    )
    ours, theirs = in_turns([all_pairs(prepared), call])
    yield row("all edit similarities beside rapidfuzz' distances", theirs / ours, 1.0)


def traced(call: Callable[[], Any]) -> tuple[int, Any]:
    """Bytes at the peak of a call above those before it, and what it returns."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    answer = call()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return peak, answer


def occurrences(prepared: Any) -> int:
    """Tokens of all elements of all records."""
    counts = np.diff(prepared.elements.starts)
    return sum(int(counts[records.elements].sum()) for records in prepared.records)


def memory(yelp: Any, debian: Any) -> Iterator[dict[str, Any]]:
    for name, rows, delta in (("Yelp sample", yelp, 0.7), ("Debian dependencies", debian, 0.7),
                              ("Debian dependencies", debian, 1.0)):  # fmt: skip
        if rows is None:
            continue
        for count in (1, 2):
            # kernels of a team are loaded by its first join: they are no memory of the join
            matchwood.fuzzy_join(rows, delta=delta, threads=count)
            prepared = matchwood.collection(rows)
            join = functools.partial(matchwood.fuzzy_join, prepared, delta=delta, threads=count)
            peak, answer = traced(join)
            own = sum(array.nbytes for array in answer)
            allowed = 64 * occurrences(prepared.alone()) + count * 16e6
            del answer
            yield row(
                f"memory beyond input and answer by what is allowed, {name}, {delta}, {count} "
                "threads", (peak - own) / allowed, 1.0, most=True,
            )  # fmt: skip
    rng = np.random.default_rng(1)
    words = generated.vocabulary(rng, 150_000)
    sides = words[:100_000], words[50_000:]
    join = functools.partial(
        matchwood.fuzzy_join, [sides[0]], [sides[1]], delta=0.2, verify="streaming"
    )
    peak, answer = traced(join)
    if len(answer) != 1:
        raise AssertionError("the two large sets share half of their elements")
    yield row("MB of streaming, two sets of 100,000 elements", peak / 1e6, 200.0, most=True)


def run() -> list[dict[str, Any]]:
    """All bars that can be measured here."""
    known = [sets.read(name) for name in ("Yelp sample", "Debian dependencies")]
    yelp, debian = (None if data is None else data.left for data in known)
    found: list[dict[str, Any]] = []
    if yelp is not None:
        found += [*verification(yelp), *certified(yelp), *edits(yelp)]
        found += [*best_pairs(yelp, debian), *memory(yelp, debian)]
    if debian is not None:
        found += threads(debian)
    return found


if __name__ == "__main__":
    run()
