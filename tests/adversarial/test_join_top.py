"""Attacks on the best pairs: ties at the k-th score, bad guesses, odd shapes, limits, Ctrl-C."""

from __future__ import annotations

import itertools
import random
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from adversarial.clock import attempts
from join_collections import records
from matchwood.applications.join import ONE, Raw, cpu
from matchwood.applications.join import best as best_pairs
from matchwood.join import collection, fuzzy_join


def triples(pairs):
    return list(zip(*(part.tolist() for part in pairs), strict=True))


@pytest.fixture
def sampled(monkeypatch):
    """Collections of any size are sampled."""
    monkeypatch.setattr(best_pairs, "LEAST_SAMPLED", 0)
    monkeypatch.setattr(best_pairs, "SAMPLE", 2)


@pytest.mark.slow
def test_the_best_k_are_the_first_of_all(sampled):
    """Few distinct elements make many ties; the sample of half the records often guesses wrong."""
    for seed in attempts(1):
        rng = random.Random(seed)
        left, right = records(rng, 14), rng.choice((None, records(rng, 14)))
        options = {
            "similarity": rng.choice(("jaccard", "equal", "edit")),
            "exclude_equal": rng.random() < 0.3,
            "delta": rng.choice((None, 0.0, 0.2, 0.55, 0.95, 1.0)),
        }
        k = rng.choice((1, 2, 3, 7, 20, 500))
        wanted = triples(fuzzy_join(left, right, k=k, engine="reference", **options))
        for threads in (1, 2):
            found = triples(fuzzy_join(left, right, k=k, threads=threads, **options))
            assert found == wanted, (seed, left, right, options, k)


def test_a_guess_that_is_too_high_loses_nothing(sampled, monkeypatch):
    """The sample holds only equal pairs, and most of the best pairs are outside of it."""
    rows = [["same", "words"]] * 6 + [[f"abcdefgh{i}", f"ijklmnop{i}"] for i in range(40)]
    wanted = triples(fuzzy_join(rows, k=200, engine="reference"))
    for first in (0, 1, 5):
        monkeypatch.setattr(
            cpu.Task, "sample", lambda task, every, first=first: task.take(slice(first, first + 8))
        )
        assert triples(fuzzy_join(rows, k=200)) == wanted


def test_ties_at_the_last_place(sampled):
    """The k-th score is shared by many pairs, found by different members in any order."""
    rows = [[f"w{i % 40}", f"v{i % 40}"] for i in range(600)]
    rows += [[f"w{i % 40}", "other", "words"] for i in range(300)]
    both = collection(rows)
    whole = fuzzy_join(both, delta=0.1)
    order = np.lexsort((whole.right, whole.left, -whole.score))
    for k in (1, 39, 4199, 4200, 4201, 5000):
        for threads in (1, 2):
            best = fuzzy_join(both, k=k, threads=threads)
            for found, array in zip(best, whole, strict=True):
                assert np.array_equal(found, array[order[:k]])


@pytest.mark.slow
def test_pairs_behind_the_last_place_are_dropped_and_no_others():
    """Part by part, with ties; records of thousands of elements, whose products do not fit."""
    for seed in range(9):
        rng = np.random.default_rng(seed)
        largest = (8, 5000, 200_000)[seed % 3]
        sizes = rng.integers(1, largest, 60), rng.integers(1, largest, 60)
        left, right = (part.ravel() for part in np.divmod(rng.permutation(3600), 60))
        least = np.minimum(sizes[0][left], sizes[1][right])
        weight = least * ONE if seed % 2 else rng.integers(1, least + 1) * (ONE // 3)
        best = best_pairs._Best(25, sizes)
        for part in np.split(np.arange(3600), 9):
            best.add(Raw(*(array[part] for array in (left, right, weight))))
            best.settle()
        ranked = sorted(
            zip(left.tolist(), right.tolist(), weight.tolist(), strict=True),
            key=lambda p: (-Fraction(p[2], int(sizes[0][p[0]] + sizes[1][p[1]])), p[0], p[1]),
        )
        found = [part.tolist() for part in (best.left, best.right, best.weight)]
        assert list(zip(*found, strict=True)) == ranked[:25], seed


def test_buffers_that_grow_keep_every_pair(monkeypatch):
    monkeypatch.setattr(cpu, "ROOM", 500)
    rows = [["a", "b"]] * 300
    for threads in (1, 2):
        best = fuzzy_join(rows, k=10, threads=threads)
        assert triples(best) == [(0, i, 1.0) for i in range(1, 11)]
        task = cpu.task_of(collection(rows).alone(), _choice(threads))
        how = cpu.how_of_choice(task.prepared, _choice(threads))
        raws = list(task.run(how, threads, task.evenly(), 7))
        keys = np.concatenate([raw.left.astype(np.int64) * 300 + raw.right for raw in raws])
        assert np.unique(keys).size == keys.size == 300 * 299 // 2


def _choice(threads):
    from matchwood.applications.join import read_choice

    return read_choice("fuzzy_join", {**fuzzy_join.__kwdefaults__, "threads": threads})


@pytest.mark.slow
def test_the_best_of_each_record_in_shards():
    for seed in attempts(0.5):
        rng = random.Random(seed)
        rows = records(rng, 12)
        each = rng.choice((1, 2, 5))
        wanted = triples(fuzzy_join(rows, per_left=each, engine="reference"))
        assert triples(fuzzy_join(rows, per_left=each, threads=2)) == wanted
        parts = [triples(fuzzy_join(rows, per_left=each, shard=(i, 3))) for i in range(3)]
        found = sorted(itertools.chain(*parts), key=lambda t: (t[0], -t[2], t[1]))
        assert found == wanted, (seed, rows, each)


def test_one_giant_record_among_small_ones():
    rng = random.Random(5)
    words = [f"{i * 7919 % 65521:x}" for i in range(20_000)]
    rows = [rng.sample(words, 4) for _ in range(150)]
    rows.insert(70, words)
    rows.append(words[:-1])
    both = collection(rows, similarity="equal")
    best = fuzzy_join(both, k=3)
    assert (best.left[0], best.right[0], best.score[0]) == (70, 151, 19_999 / 20_000)
    partners = fuzzy_join(both, per_left=1)
    of_giant = partners.left == 70
    assert partners.right[of_giant].tolist() == [151]
    assert triples(fuzzy_join(both, delta=0.9)) == [(70, 151, 19_999 / 20_000)]


def test_a_limit_holds_for_the_best_too():
    rows = [["a", "b"]] * 20
    assert len(fuzzy_join(rows, k=10, limit=10)) == 10
    assert len(fuzzy_join(rows, per_left=1, limit=20)) == 20
    for options in ({"k": 10, "limit": 9}, {"per_left": 1, "limit": 19}):
        with pytest.raises(ValueError, match=f"limit is {options['limit']}"):
            fuzzy_join(rows, **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"k": 10_000_000}, {"per_left": 3}])
def test_ctrl_c_is_heard_by_the_best(options):
    import _thread

    rng = random.Random(0)
    words = [f"{rng.randrange(300):03}x" for _ in range(300)]
    prepared = collection([rng.sample(words, 12) for _ in range(3000)])
    few = collection([["a", "b"], ["a"]])
    fuzzy_join(few, threads=2, **options)  # compiled before the clock runs
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while True:
            fuzzy_join(prepared, threads=2, **options)
    assert time.monotonic() - began < 10
    timer.join()
    assert len(fuzzy_join(prepared, k=5)) == 5
