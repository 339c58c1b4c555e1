"""Attacks on the join: random collections against the definition, and inputs of odd shape."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

from adversarial.children import faults_of
from adversarial.clock import attempts, seconds
from adversarial.clock import seed as attack_seed
from join_collections import records
from matchwood.join import collection, fuzzy_join, iter_fuzzy_join

DELTAS = (1.0, 0.9, 0.8, 0.75, 2 / 3, 0.7, 0.6, 0.5, 0.4, 0.3, 0.1, 1e-3, 1e-8)


def triples(pairs):
    return list(zip(*(part.tolist() for part in pairs), strict=True))


def compare(seed):
    """Any similarity, threshold, filter, side, group and best-of, against the definition."""
    rng = random.Random(seed)
    left, right = records(rng, 9), rng.choice((None, records(rng, 9)))
    options = {
        "similarity": rng.choice(("jaccard", "jaccard", "edit", "edit_padded", "equal")),
        "q": rng.choice((1, 2, 3, 3, 3, 4, 6)),
        "exclude_equal": rng.random() < 0.2,
    }
    if rng.random() < 0.2:
        sides = (left,) if right is None else (left, right)
        by = [[rng.choice((0, 1, None)) for _ in side] for side in sides]
        options["by"] = by[0] if right is None else by
    kind = rng.randrange(4)
    if kind == 0:
        options["k"] = rng.choice((1, 2, 5, 100))
    elif kind == 1:
        options["per_left"] = rng.choice((1, 2, 100))
    else:
        options["delta"] = rng.choice(DELTAS)
    wanted = triples(fuzzy_join(left, right, engine="reference", **options))
    plan = {
        "filters": rng.choice(("basic", "positional", "joint")),
        "verify": rng.choice(("certified", "exact")),
        "threads": rng.choice((1, 2)),
    }
    parts = rng.choice((1, 1, 3)) if "k" not in options else 1
    found = []
    for part in range(parts):
        found += triples(fuzzy_join(left, right, shard=(part, parts), **plan, **options))
    if parts > 1:
        order = (lambda t: (t[0], -t[2], t[1])) if kind == 1 else None
        found.sort(key=order)
    assert found == wanted, (seed, left, right, options, plan)


@pytest.mark.slow
def test_no_pair_is_lost():
    # The kernel of the best, too: both call much that one process compiles only once.
    fuzzy_join([["a", "b"], ["a"]], per_left=1)
    for seed in attempts(1):
        compare(seed)


@pytest.mark.slow
def test_no_pair_is_lost_in_ten_thousand_collections():
    for seed in range(1_000_000, 1_010_000):
        compare(seed)


@pytest.mark.slow
def test_approximate_verification_keeps_its_promise():
    """By weight no pair is false, by bound none is missing."""
    for seed in attempts(0.7):
        rng = random.Random(seed)
        left = records(rng, 12)
        for similarity in ("jaccard", "edit"):
            options = {"delta": rng.choice(DELTAS[:10]), "similarity": similarity}
            exact = {t[:2] for t in triples(fuzzy_join(left, **options))}
            for verify in ("greedy", "dominant", "streaming"):
                for mode, holds in (("weight", set.issubset), ("bound", set.issuperset)):
                    found = fuzzy_join(left, verify=verify, mode=mode, **options)
                    assert holds({t[:2] for t in triples(found)}, exact), (seed, verify, mode)
                    assert found.score.max(initial=0) <= 1


def test_a_token_in_every_record():
    rows = [["common", f"w{i}"] for i in range(3000)]
    pairs = fuzzy_join(rows, delta=0.5)
    assert len(pairs) == len(fuzzy_join(rows, delta=0.5, filters="basic"))
    assert fuzzy_join(rows, delta=0.9).stats["generated"] < 3000


@pytest.mark.slow
def test_one_long_record_and_one_long_element():
    long = [str(i) for i in range(100_000)]
    pairs = fuzzy_join([long, long[:-1], ["7"]], delta=0.9, similarity="equal")
    assert triples(pairs) == [(0, 1, 99_999 / 100_000)]
    pairs = fuzzy_join([long, long[1:]], delta=0.9)
    assert len(pairs) == 1
    text = "ab" * 500_000
    assert len(fuzzy_join([[text], [text + "c"], ["ab"]], delta=0.9)) == 1


def test_all_records_equal():
    rows = [["a", "b"]] * 2000
    assert len(fuzzy_join(rows)) == 1999 * 1000
    assert len(fuzzy_join(rows, exclude_equal=True)) == 0
    best = fuzzy_join(rows, k=5)
    assert list(zip(best.left, best.right, strict=True)) == [(0, i) for i in range(1, 6)]


def test_texts_with_equal_grams_are_similar_but_not_equal():
    """Different texts may have the same tokens: their similarity is 1."""
    a, b = "abab" + "cab", "cab" + "abab"
    pairs = fuzzy_join([[a, "x"], [b, "x"], [a, b]], delta=0.01, q=1)
    assert triples(pairs) == triples(
        fuzzy_join([[a, "x"], [b, "x"], [a, b]], delta=0.01, q=1, engine="reference")
    )


@pytest.mark.slow
def test_ctrl_c_is_heard():
    rng = random.Random(0)
    words = [f"{rng.randrange(300):03}x" for _ in range(300)]
    rows = [rng.sample(words, 12) for _ in range(6000)]
    prepared = collection(rows)
    fuzzy_join(prepared, delta=0.99)
    import _thread

    timer = threading.Timer(0.4, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while True:
            fuzzy_join(prepared, delta=0.05, threads=2)
    assert time.monotonic() - began < 10
    timer.join()
    assert len(fuzzy_join(prepared, delta=0.99)) >= 0


@pytest.mark.slow
def test_a_threshold_near_zero_takes_bounded_memory(monkeypatch):
    """Every pair shares a token: blocks come one by one, and are forgotten."""
    import tracemalloc

    from matchwood.applications.join import cpu

    monkeypatch.setattr(cpu, "BLOCK", 1 << 18)
    rows = collection([["common", f"{i:05}"] for i in range(3000)])
    list(iter_fuzzy_join(rows, delta=1.0))
    tracemalloc.start()
    total = sum(len(block) for block in iter_fuzzy_join(rows, delta=1e-9))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 3000 * 2999 // 2
    assert peak < 60_000_000  # all of them would take 100 MB and more
    with pytest.raises(ValueError, match="limit is 1000"):
        fuzzy_join(rows, delta=1e-9, limit=1000)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("script", ["join_inputs.py", "wrong_arrays.py"])
def test_what_is_not_what_it_seems_gets_an_error_or_a_right_answer(script):
    """Lists that lie or change, hostile buffers, wrong matrices, options and results."""
    only = () if script == "join_inputs.py" else ("fuzzy_join",)
    found = faults_of(script, str(time.time() + seconds(2)), str(attack_seed()), *only)
    assert not found, "\n".join(found)


def test_arrays_of_the_caller_are_left_alone():
    rows = [np.array([3, 1, 2]), np.array([1, 2, 4])]
    before = [row.copy() for row in rows]
    fuzzy_join(rows, similarity="equal", delta=0.1)
    assert all(np.array_equal(a, b) for a, b in zip(rows, before, strict=True))
