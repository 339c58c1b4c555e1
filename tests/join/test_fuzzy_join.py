"""The whole join against its definition, and against itself in other forms."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from join_collections import records
from matchwood.applications.join.fuzzy import estimate
from matchwood.applications.join.verification import METHODS
from matchwood.join import collection, fuzzy_join, iter_fuzzy_join

DELTAS = (1.0, 0.9, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.1, 0.01)


def triples(pairs):
    return list(zip(*(part.tolist() for part in pairs), strict=True))


@pytest.mark.parametrize(
    "similarity", ["jaccard", pytest.param("edit", marks=pytest.mark.slow), "edit_padded", "equal"]
)
def test_random_collections_equal_the_definition(similarity):
    rng = random.Random(similarity)
    for _ in range(40):
        left, right = records(rng), records(rng)
        delta, q = rng.choice(DELTAS), rng.choice((1, 2, 3, 3, 4, 5))
        right = rng.choice((None, right))
        options = {"delta": delta, "similarity": similarity, "q": q}
        wanted = triples(fuzzy_join(left, right, engine="reference", **options))
        for filters in ("basic", "positional", "joint"):
            found = fuzzy_join(left, right, filters=filters, **options)
            assert triples(found) == wanted, (left, right, options, filters)


def test_worked_examples():
    pairs = fuzzy_join([["database", "systems"], ["databases", "system"]], delta=0.1)
    assert pairs.score.tolist() == pytest.approx([0.4933333333])
    both = [["database", "systems"], ["databases", "system"]]
    plain = fuzzy_join(both, delta=0.1, similarity="edit")
    padded = fuzzy_join(both, delta=0.1, similarity="edit_padded")
    assert plain.score.tolist() == pytest.approx([0.7746478873])
    assert padded.score.tolist() == pytest.approx([0.6363636364])


TINY = [
    ["apple pie", "banana split", "cherry tart"],
    ["apple pies", "banana splits", "cherry tart"],
    ["apple", "banana"],
    ["banana", "appel"],
    ["graph", "matching", "join"],
    ["graphs", "matchings", "joins"],
    ["matching"],
]


def test_tiny_join():
    found = fuzzy_join(TINY, delta=1e-6)
    scores = {(a, b): round(s, 6) for a, b, s in triples(found)}
    assert scores == {
        (0, 1): 0.699346, (2, 3): 0.4, (4, 5): 0.389961, (4, 6): 0.333333, (5, 6): 0.230769,
        (0, 2): 0.183432, (1, 2): 0.131329, (0, 3): 0.111111, (1, 3): 0.083333,
    }  # fmt: skip
    assert len(fuzzy_join(TINY, delta=0.3)) == 4
    assert triples(fuzzy_join(TINY, k=2))[0][:2] == (0, 1)
    assert triples(fuzzy_join(TINY, k=2))[1][:2] == (2, 3)
    padded = fuzzy_join(TINY, k=3, similarity="edit_padded")
    assert [p[:2] for p in triples(padded)] == [(4, 5), (0, 1), (2, 3)]
    assert padded.score.tolist() == pytest.approx([0.741935, 0.73913, 0.714286], abs=1e-6)
    plain = fuzzy_join(TINY, k=3, similarity="edit")
    assert plain.score.tolist() == pytest.approx([0.88862, 0.72524, 0.666667], abs=1e-5)


def test_pairs_on_the_threshold_are_found():
    """The published loop stops at equality and loses them."""
    assert len(fuzzy_join([["aaa", "bbb", "ccc"], ["bbb", "ccc", "ddd"]], delta=0.5)) == 1
    four = [["aaa", "bbb", "ccc", "eee"], ["bbb", "ccc", "eee", "ddd"]]
    assert len(fuzzy_join(four, delta=0.6)) == 1
    # delta = 0.8 as a double is a little more than 4/5
    nine = [[f"w{i:02}x" for i in range(9)], [f"w{i:02}x" for i in range(1, 10)]]
    assert len(fuzzy_join(nine, delta=0.8, similarity="equal")) == 1


def test_edit_pairs_that_the_published_bounds_lose():
    r, s = "abcabcabc", "abxcabxcabxc"
    for pair in ([[r], [s]], [[s], [r]]):
        for delta in (0.55, 0.6):
            assert len(fuzzy_join(pair, delta=delta, similarity="edit")) == 1
    x, a, b = "mnoabcpqr", "mnoabc", "abcpqr"
    found = fuzzy_join([[a, x], [b, x]], delta=0.4, similarity="edit")
    assert found.score.tolist() == pytest.approx([0.5])


def test_the_answer_does_not_depend_on_how_it_is_found():
    rng = random.Random(5)
    left = [r for _ in range(30) for r in records(rng)]
    for similarity in ("jaccard", "edit"):
        prepared = collection(left, similarity=similarity)
        wanted = fuzzy_join(prepared, delta=0.4)
        for threads in (1, 2, 5):
            for filters in ("basic", "positional", "joint"):
                for verify in ("certified", "exact"):
                    again = fuzzy_join(
                        prepared, delta=0.4, threads=threads, filters=filters, verify=verify
                    )
                    assert triples(again) == triples(wanted)
        parts = [fuzzy_join(prepared, delta=0.4, shard=(i, 4)) for i in range(4)]
        assert sorted(t for part in parts for t in triples(part)) == triples(wanted)
        blocks = list(iter_fuzzy_join(prepared, delta=0.4))
        assert sorted(t for block in blocks for t in triples(block)) == triples(wanted)
        other = fuzzy_join(prepared, prepared, delta=0.4)
        upper = other.left < other.right
        assert list(zip(other.left[upper], other.right[upper], strict=True)) == [
            t[:2] for t in triples(wanted)
        ]


def test_order_of_records_and_elements_does_not_matter():
    rng = random.Random(6)
    left = [r for _ in range(8) for r in records(rng)]
    wanted = {(a, b): s for a, b, s in triples(fuzzy_join(left, delta=0.3))}
    perm = list(range(len(left)))
    rng.shuffle(perm)
    shuffled = [rng.sample(left[i], len(left[i])) for i in perm]
    found = fuzzy_join(shuffled, delta=0.3)
    back = {tuple(sorted((perm[a], perm[b]))): s for a, b, s in triples(found)}
    assert back == wanted


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["jaccard", "edit", "equal"])
def test_the_best_pairs(similarity):
    rng = random.Random(7)
    for _ in range(15):
        left, right = records(rng, 20), rng.choice((None, records(rng, 20)))
        for options in (
            {"k": 1},
            {"k": 5},
            {"k": 1000},
            {"per_left": 1},
            {"per_left": 3},
            {"k": 4, "delta": 0.5},
            {"per_left": 2, "delta": 0.4, "exclude_equal": True},
        ):
            options["similarity"] = similarity
            wanted = triples(fuzzy_join(left, right, engine="reference", **options))
            assert triples(fuzzy_join(left, right, **options)) == wanted, (left, right, options)
            if "per_left" in options:
                parts = [fuzzy_join(left, right, shard=(i, 3), **options) for i in range(3)]
                assert sorted(t for p in parts for t in triples(p)) == sorted(wanted)


@pytest.mark.slow
def test_by_joins_within_groups():
    rng = random.Random(8)
    for _ in range(15):
        left, right = records(rng, 20), records(rng, 20)
        mine = [rng.choice(("x", "y", None)) for _ in left]
        theirs = [rng.choice(("x", "y", "z", float("nan"))) for _ in right]
        for options in ({"delta": 0.3}, {"k": 5}, {"per_left": 1}):
            found = fuzzy_join(left, right, by=(mine, theirs), **options)
            wanted = fuzzy_join(left, right, by=(mine, theirs), engine="reference", **options)
            assert triples(found) == triples(wanted)
            assert all(mine[a] == theirs[b] for a, b, _ in triples(found))
            alone = fuzzy_join(left, by=mine, **options)
            wanted = fuzzy_join(left, by=mine, engine="reference", **options)
            assert triples(alone) == triples(wanted)


def test_long_records_and_full_buffers(monkeypatch):
    """Small buffers and windows: members stop and go on where they were."""
    from matchwood.applications.join import cpu

    rng = random.Random(9)
    left = [r for _ in range(20) for r in records(rng)]
    wanted = fuzzy_join(left, delta=0.2)
    assert len(wanted) > 100
    monkeypatch.setattr(cpu, "ROOM", 3)
    monkeypatch.setattr(cpu.probing, "WINDOW", 7)
    monkeypatch.setattr(cpu.Task.run, "__defaults__", (3,))
    for threads in (1, 3):
        again = fuzzy_join(left, delta=0.2, threads=threads)
        assert triples(again) == triples(wanted)
        for name in ("generated", "refined", "verified"):
            assert again.stats[name] == wanted.stats[name]
    best = fuzzy_join(left, per_left=2, threads=2)
    monkeypatch.undo()
    assert triples(best) == triples(fuzzy_join(left, per_left=2))


def test_defaults_are_those_of_the_signature():
    from matchwood.applications.join import DEFAULTS

    assert fuzzy_join.__kwdefaults__ == {**DEFAULTS, "comm": None}


def test_limit_says_how_many_were_found():
    with pytest.raises(ValueError, match="limit is 3"):
        fuzzy_join([["a"]] * 10, limit=3)
    assert len(fuzzy_join([["a"]] * 10, limit=45)) == 45
    with pytest.raises(ValueError, match="limit"):
        list(iter_fuzzy_join([["a"]] * 10, limit=3))


def test_stats_say_what_was_done():
    stats = fuzzy_join(TINY, delta=0.3).stats
    assert stats["generated"] >= stats["refined"] >= stats["verified"] >= stats["pairs"] == 4
    decided = sum(stats[n] for n in ("accepted_by_bound", "rejected_by_bound", "solved_exactly"))
    assert decided == stats["verified"]
    assert set(stats["seconds"]) == {"collection", "index", "join", "sort"}
    assert fuzzy_join(TINY, delta=0.5, similarity="edit").stats["without_prefix"] == 7
    assert fuzzy_join(TINY, delta=0.95, similarity="edit").stats["without_prefix"] == 0


def test_scores_can_be_left_out():
    left, right, score = fuzzy_join(TINY, delta=0.3, scores=False)
    assert score is None
    whole = fuzzy_join(TINY, delta=0.3)
    assert np.array_equal(left, whole.left)
    assert np.array_equal(right, whole.right)


ANAGRAMS = [
    ["xx", "yy", "abcd", "mno"],
    ["xx", "yy", "dcba", "nom"],  # the same grams for q = 1: score 1 with the first
    ["xx", "yy", "abcd", "mnz"],
    ["xx", "zz", "dcba", "omn"],
    ["xx", "yy"],
]


@pytest.mark.parametrize("similarity", ["jaccard", "edit"])
def test_equal_records_are_left_out_by_their_exact_score(similarity):
    given = {"q": 1, "similarity": similarity, "delta": 0.3}
    found = triples(fuzzy_join(ANAGRAMS, **given))
    wanted = {(i, j) for i, j, score in found if score < 1}
    assert len(wanted) == len(found) - (similarity == "jaccard")
    given["exclude_equal"] = True
    for engine in ("cpu", "reference"):
        for scores, verify in itertools.product((True, False), METHODS):
            for mode in ("weight", "bound"):
                made = fuzzy_join(
                    ANAGRAMS, scores=scores, verify=verify, mode=mode, engine=engine, **given
                )
                rows = set(zip(made.left.tolist(), made.right.tolist(), strict=True))
                if verify in ("certified", "exact", "early"):
                    assert rows == wanted
                else:
                    assert rows <= wanted if mode == "weight" else rows >= wanted
                made.check(ANAGRAMS)
        best = fuzzy_join(ANAGRAMS, verify="early", per_left=9, engine=engine, **given)
        assert {(i, j) for i, j in zip(best.left, best.right, strict=True) if i < j} == wanted


@pytest.mark.parametrize("similarity", ["jaccard", "edit", "equal"])
def test_the_best_of_collections_with_many_equal_records(similarity, monkeypatch):
    monkeypatch.setattr("matchwood.applications.join.best.MANY_EQUAL", 1)
    rng = random.Random(11)
    kinds = [["ab", "cd"], ["ab"], ["ba"], ["abc", "cd"], ["cd", "ab", "x"], [], ["q"], ["x", "q"]]
    rows, others = ([rng.choice(kinds) for _ in range(n)] for n in (22, 13))
    groups = [rng.choice((0, 1, None)) for _ in rows]
    for right, by in ((None, None), (others, None), (None, groups)):
        for k, exclude_equal in ((1, False), (7, True), (40, False), (40, True), (1000, False)):
            options = {"k": k, "exclude_equal": exclude_equal, "by": by}
            options |= {"similarity": similarity, "q": 1}
            wanted = triples(fuzzy_join(rows, right, engine="reference", **options))
            for threads in (1, 3):
                assert triples(fuzzy_join(rows, right, threads=threads, **options)) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["jaccard", "edit", "equal"])
def test_the_best_of_each_among_many_equal_records(similarity, monkeypatch):
    monkeypatch.setattr("matchwood.applications.join.best.MANY_EQUAL", 0)
    rng = random.Random(13)
    kinds = [["ab", "cd"], ["ab"], ["ba"], ["abc", "cd"], ["cd", "ab", "x"], [], ["q"], ["x", "q"]]
    for at_once in (1, 1 << 20):
        monkeypatch.setattr("matchwood.applications.join.best.AT_ONCE", at_once)
        rows, others = ([rng.choice(kinds) for _ in range(n)] for n in (22, 13))
        groups = [rng.choice((0, 1, None)) for _ in rows]
        for right, by in ((None, None), (others, None), (None, groups), ([], None)):
            for each, exclude_equal in ((1, False), (3, True), (5, False), (50, True), (50, False)):
                options = {"per_left": each, "exclude_equal": exclude_equal, "by": by}
                options |= {"similarity": similarity, "q": 1}
                wanted = fuzzy_join(rows, right, engine="reference", **options)
                found = fuzzy_join(rows, right, threads=2, **options)
                assert triples(found) == triples(wanted)
                bare = fuzzy_join(rows, right, scores=False, **options)
                assert bare.right.tolist() == wanted.right.tolist()


def test_equal_records_cost_no_pairs():
    """Each pair of 30,000 equal records was made, for the best ten of them."""
    rows = [["red", "blue"]] * 30_000
    best = fuzzy_join(rows, k=10)
    assert triples(best) == [(0, i, 1.0) for i in range(1, 11)]
    assert best.stats["generated"] == 0
    best = fuzzy_join(rows, per_left=2)
    assert triples(best)[:4] == [(0, 1, 1.0), (0, 2, 1.0), (1, 0, 1.0), (1, 2, 1.0)]
    assert len(best) == 60_000
    assert best.stats["generated"] < 100
    with pytest.raises(ValueError, match="limit is 9"):
        fuzzy_join(rows, per_left=2, limit=9)
    two = fuzzy_join(rows, [["red", "green"]] * 30_000, k=30_001)
    assert two.left.tolist() == [0] * 30_000 + [1]
    assert two.right.tolist() == [*range(30_000), 0]
    assert two.stats["generated"] < 100


def test_edit_joins_of_two_tables_start_at_the_smaller_record():
    """At 0.7 no record had a prefix against smaller ones, and all pairs were compared."""
    rng = random.Random(12)
    words = ["".join(rng.choices("abcdefghijklm", k=rng.randint(5, 12))) for _ in range(150)]
    base = [rng.sample(words, rng.randint(2, 9)) for _ in range(80)]
    left, right = ([[w[:-1] if rng.random() < 0.1 else w for w in r] for r in base] for _ in "ab")
    for options in ({}, {"verify": "streaming"}, {"exclude_equal": True}, {"k": 30}):
        pairs = fuzzy_join(left, right, similarity="edit", **options)
        both = fuzzy_join(left + right, similarity="edit", **options)
        if "k" not in options:
            assert pairs.stats["without_prefix"] <= 2  # words of few chunks
            assert pairs.stats["generated"] < 5 * both.stats["generated"]
            parts = [fuzzy_join(left, right, similarity="edit", shard=(i, 3), **options)
                     for i in range(3)]  # fmt: skip
            assert sorted(t for part in parts for t in triples(part)) == triples(pairs)
            across = [(a, b - 80, s) for a, b, s in triples(both) if a < 80 <= b]
            assert triples(pairs) == across
            blocks = [t for p in iter_fuzzy_join(left, right, similarity="edit", **options)
                      for t in triples(p)]  # fmt: skip
            assert sorted(blocks) == across
    assert estimate(left, right, similarity="edit")["pairs"] == len(
        fuzzy_join(left, right, similarity="edit")
    )
