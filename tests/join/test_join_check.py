"""The check of a join sees what is wrong, and explain agrees with the join."""

from __future__ import annotations

import random

import numpy as np
import pytest

from join_sets import random_sets
from matchwood.applications.join.check import check_fuzzy_join
from matchwood.applications.join.fuzzy import fuzzy_join
from matchwood.applications.join.verification.check import explain
from matchwood.errors import CheckFailed

SETS = random_sets(random.Random(11), 40, letters="abcd")


@pytest.fixture(scope="module")
def answer():
    left, right, score = fuzzy_join(SETS, delta=0.4)
    assert len(left) > 20
    return left, right, score


@pytest.mark.slow
def test_right_answers_pass(answer):
    check_fuzzy_join(answer, SETS, delta=0.4)
    check_fuzzy_join((answer[0], answer[1], None), SETS, delta=0.4)
    check_fuzzy_join(answer, SETS, delta=0.4, sample=7)
    others = random_sets(random.Random(12), 25, letters="abcd") + SETS[:4]
    for options in (
        {"delta": 0.5},
        {"k": 9},
        {"k": 10_000, "delta": 0.3},
        {"per_left": 2},
        {"delta": 0.3, "exclude_equal": True},
        {"delta": 0.4, "similarity": "edit"},
        {"delta": 0.4, "similarity": "edit_padded", "q": 2},
        {"delta": 0.2, "similarity": "equal"},
        {"delta": 0.4, "verify": "exact"},
        {"delta": 0.4, "verify": "early"},
        {"delta": 0.4, "verify": "greedy"},
        {"delta": 0.4, "verify": "greedy", "mode": "bound"},
        {"delta": 0.4, "verify": "streaming", "mode": "bound"},
        {"delta": 0.4, "scores": False},
    ):
        for right in (None, others):
            check_fuzzy_join(fuzzy_join(SETS, right, **options), SETS, right, **options)
    by = [i % 3 for i in range(len(SETS))]
    check_fuzzy_join(fuzzy_join(SETS, delta=0.4, by=by), SETS, delta=0.4, by=by)


def test_every_missing_pair_is_seen(answer):
    left, right, score = answer
    for k in range(0, len(left), 3):
        kept = np.delete(np.arange(len(left)), k)
        with pytest.raises(CheckFailed, match=rf"\({left[k]}, {right[k]}\).* is missing"):
            check_fuzzy_join((left[kept], right[kept], score[kept]), SETS, delta=0.4)


def test_false_pairs_are_seen(answer):
    left, right, _ = answer
    there = set(zip(left.tolist(), right.tolist(), strict=True))
    absent = next((0, j) for j in range(1, len(SETS)) if (0, j) not in there)
    wrong = [np.concatenate(([x], y)) for x, y in zip((*absent, 0.5), answer, strict=True)]
    wrong = [wrong[0].astype(int), wrong[1].astype(int), wrong[2]]
    with pytest.raises(CheckFailed, match="is no pair"):
        check_fuzzy_join(wrong, SETS, delta=0.4)
    with pytest.raises(CheckFailed, match="is no pair"):  # right pairs of another threshold
        check_fuzzy_join(answer, SETS, delta=0.9)
    with pytest.raises(CheckFailed, match="is no pair"):
        check_fuzzy_join(answer, SETS, delta=0.4, exclude_equal=True)


def test_wrong_scores_are_seen_to_the_last_bit(answer):
    left, right, score = answer
    for k in (0, len(left) // 2, len(left) - 1):
        for other in (np.nextafter(score[k], 0), np.nextafter(score[k], 2), 0.0):
            wrong = score.copy()
            wrong[k] = other
            with pytest.raises(CheckFailed, match="has the score"):
                check_fuzzy_join((left, right, wrong), SETS, delta=0.4)


def test_order_repeats_and_rows_are_seen(answer):
    left, right, score = answer
    swapped = np.arange(len(left))
    swapped[[0, 1]] = [1, 0]
    for wrong, message in [
        ((left[swapped], right[swapped], score[swapped]), "out of order"),
        ((right, left, score), "not left < right"),
        (tuple(np.concatenate((a[:1], a)) for a in answer), "comes twice"),
        ((left, np.where(np.arange(right.size) == 2, 99, right), score), "not a row of 40"),
    ]:
        with pytest.raises(CheckFailed, match=message):
            check_fuzzy_join(wrong, SETS, delta=0.4)


def test_the_best_pairs_are_the_best():
    left, right, score = fuzzy_join(SETS, k=8)
    check_fuzzy_join((left, right, score), SETS, k=8)
    for gone in range(8):
        kept = np.delete(np.arange(8), gone)
        with pytest.raises(CheckFailed, match="is missing"):
            check_fuzzy_join((left[kept], right[kept], score[kept]), SETS, k=7 if gone < 7 else 8)
    best = fuzzy_join(SETS, per_left=1)
    worse = fuzzy_join(SETS, per_left=2)
    second = np.flatnonzero(np.concatenate(([False], worse.left[1:] == worse.left[:-1])))
    k = int(np.searchsorted(best.left, worse.left[second[0]]))
    wrong = [best.left.copy(), best.right.copy(), best.score.copy()]
    wrong[1][k], wrong[2][k] = worse.right[second[0]], worse.score[second[0]]
    with pytest.raises(CheckFailed, match="is missing"):
        check_fuzzy_join(wrong, SETS, per_left=1)


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.4, "similarity": "edit"},
        {"delta": 0.4, "similarity": "edit_padded", "q": 2},
        {"delta": 0.2, "similarity": "equal"},
        {"delta": 0.4, "verify": "exact"},
        {"delta": 0.4, "by": [i % 2 for i in range(len(SETS))]},
        {"delta": 0.3, "exclude_equal": True},
        {"k": 12},
        {"per_left": 1},
        {"delta": 0.4, "right": SETS[20:]},
        {"per_left": 2, "right": SETS[20:]},
    ],
    ids=str,
)
def test_every_kind_of_join_is_checked(options):
    """A missing, a false and a wrongly scored pair, each in the middle of a right answer."""
    options = dict(options)
    right = options.pop("right", None)
    good = [part.copy() for part in fuzzy_join(SETS, right, **options)]
    check_fuzzy_join(good, SETS, right, **options)
    middle = len(good[0]) // 2
    there = set(zip(good[0].tolist(), good[1].tolist(), strict=True))
    columns = len(SETS if right is None else right)
    row = int(good[0][middle])
    other = next(j for j in range(columns - 1, -1, -1) if (row, j) not in there and j != row)
    spoiled = {
        "missing": [np.delete(part, middle) for part in good],
        "false": [good[0], np.where(np.arange(len(good[0])) == middle, other, good[1]), good[2]],
        "wrongly scored": [good[0], good[1], good[2].copy()],
    }
    spoiled["wrongly scored"][2][middle] = np.nextafter(good[2][middle], 0)
    for kind, wrong in spoiled.items():
        with pytest.raises(CheckFailed):
            check_fuzzy_join(wrong, SETS, right, **options)
            raise AssertionError(f"{kind}: not seen")


def test_what_cannot_be_an_answer(answer):
    with pytest.raises(TypeError, match="left must hold integers"):
        check_fuzzy_join((answer[0] + 0.5, answer[1], answer[2]), SETS, delta=0.4)
    with pytest.raises(CheckFailed, match="right must have"):
        check_fuzzy_join((answer[0], answer[1][1:], answer[2]), SETS, delta=0.4)
    with pytest.raises(TypeError, match="unknown argument 'threshold'"):
        check_fuzzy_join(answer, SETS, threshold=0.4)


def test_explain_agrees_with_the_join():
    for similarity in ("jaccard", "edit", "edit_padded", "equal"):
        pairs = fuzzy_join(SETS, delta=0.3, similarity=similarity)
        for i, j, score in list(zip(*pairs, strict=True))[:60]:
            why = explain(SETS[i], SETS[j], similarity=similarity)
            assert why.score == score
            assert why.lower <= why.weight <= why.upper
            assert len(why.matched) + len(why.left_only) == len(set(SETS[i]))
            assert len(why.matched) + len(why.right_only) == len(set(SETS[j]))
            assert sum(x for *_, x in why.matched) == pytest.approx(why.weight)
            assert {r for r, *_ in why.matched} | set(why.left_only) == set(SETS[i])


def test_explain_of_the_metric_trap():
    """With edits the same element on both sides is not matched with itself."""
    a, b, x = "mnoabc", "abcpqr", "mnoabcpqr"
    why = explain([a, x], [b, x], similarity="edit")
    assert sorted(pair[:2] for pair in why.matched) == [(a, x), (x, b)]
    assert why.score == pytest.approx(0.5)
    assert (why.lower, why.upper) == (pytest.approx(1.0), pytest.approx(5 / 3))


def test_explain_refuses_what_is_no_record():
    for wrong in (None, 3, [None], [b"x"], ["a", 1]):
        with pytest.raises(TypeError, match="explain: "):
            explain(wrong if wrong is not None else [None], ["a"])
    with pytest.raises(ValueError, match="explain: similarity must be one of"):
        explain(["a"], ["b"], similarity="nonsense")
    assert explain([], ["a"]).score == 0.0
    assert explain(["a", "a", ""], ["a"]).score == 1.0
