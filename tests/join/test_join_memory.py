"""Memory beside input and answer: 64 bytes for each token of each record, and 16 MB a thread."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from matchwood.errors import OutOfMemory
from matchwood.join import collection, fuzzy_join

MB = 1_000_000


def traced(call):
    """Bytes at the peak of a call, and its answer.  Kernels take no memory of their own."""
    tracemalloc.start()
    try:
        answer = call()
        return tracemalloc.get_traced_memory()[1], answer
    finally:
        tracemalloc.stop()


def sets(count, seed, words):
    rng = random.Random(seed)
    known = ["".join(rng.choices("abcdefghij", k=rng.randint(4, 9))) for _ in range(words)]
    return [rng.sample(known, rng.randint(1, 20)) for _ in range(count)]


def allowed(prepared, threads):
    """64 bytes a token occurrence and 16 MB a thread."""
    counts = np.diff(prepared.elements.starts)
    tokens = sum(int(counts[records.elements].sum()) for records in prepared.records)
    return 64 * tokens + 16 * MB * threads


@pytest.mark.slow
@pytest.mark.parametrize("words", [3_000, 30_000])
def test_a_join_stays_within_its_bound(words):
    rows = sets(6_000, 1, words)
    for options in ({"delta": 0.6}, {"delta": 0.95}):
        fuzzy_join(rows[:50], **options)  # compiled code is not counted
        for threads in (1, 2):
            given = collection(rows)
            given.alone()
            peak, pairs = traced(
                lambda o=options, g=given, t=threads: fuzzy_join(g, threads=t, **o)
            )
            own = sum(array.nbytes for array in pairs)
            assert peak - own < allowed(given.alone(), threads), (threads, options)


def test_the_answer_is_held_few_times():
    """Many pairs of few tokens: what is held beside them is a small multiple of them."""
    rows = [[f"{i % 8}"] for i in range(5000)]
    fuzzy_join(rows[:50], threads=1)
    peak, pairs = traced(lambda: fuzzy_join(rows, threads=1))
    assert len(pairs) > 1_500_000
    assert peak < 3 * sum(array.nbytes for array in pairs) + 20 * MB


@pytest.mark.parametrize("size", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_streaming_of_two_very_large_sets(size):
    rng = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = list({"".join(rng.choices(letters, k=7)) for _ in range(size * 3 // 2)})
    sides = [words[:size]], [words[-size:]]
    fuzzy_join([["ab"]], [["ab"]], verify="streaming", threads=2)  # compiles what members need
    given = [collection(side) for side in sides]
    peak, pairs = traced(lambda: fuzzy_join(*given, delta=0.2, verify="streaming"))
    assert len(pairs) == 1
    assert peak < 2000 * size  # bytes: 200 MB for 100,000 elements


@pytest.mark.slow
def test_a_pair_that_does_not_fit_is_told_before(monkeypatch):
    """All elements of both records share their letters: every pair of them is an edge."""
    rng = random.Random(3)
    rows = [["".join(rng.choices("ab", k=13)) for _ in range(3000)] for _ in range(2)]
    monkeypatch.setattr("matchwood.memory.available_memory", lambda: 1 << 20)
    monkeypatch.setattr("matchwood.memory.SMALL", 1 << 20)
    for options in ({"delta": 0.2}, {"k": 1}):
        with pytest.raises(OutOfMemory, match=r"fuzzy_join: a pair with \d+ similar.*streaming"):
            fuzzy_join(rows, q=1, verify="exact", **options)
    assert len(fuzzy_join(rows, delta=0.2, q=1, verify="streaming")) == 1


@pytest.mark.parametrize("similarity", ["equal", "jaccard", "edit"])
def test_explain_asks_for_its_memory_first(similarity, monkeypatch):
    from matchwood import explain, memory

    monkeypatch.setattr(memory, "available_memory", lambda: 100 * MB)
    R, S = ([f"{i}{name}" for i in range(4000)] for name in "ab")
    with pytest.raises(OutOfMemory, match="explain: the matching of 4000 and 4000 elements needs"):
        explain(R, S, similarity=similarity)
    assert explain(R[:50], S[:50], similarity=similarity).weight >= 0.0
