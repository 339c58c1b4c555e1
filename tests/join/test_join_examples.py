"""One example worked out by hand: utilities, both bounds, the prefix, the matching."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from join_sets import arrays
from matchwood.applications.join import ONE
from matchwood.applications.join.candidates import cpu as index
from matchwood.applications.join.candidates.cpu import BASIC, JOINT, Rule, can_reach
from matchwood.applications.join.reference import weight
from matchwood.applications.join.similarity.cpu import jaccard
from matchwood.applications.join.verification import METHODS, share_of
from matchwood.applications.join.verification.cpu.pairs import verify
from matchwood.applications.join.verification.cpu.rows import how
from matchwood.join import explain, fuzzy_join
from support import from_python

# With q=1 an element is the set of its letters: R = {ab, bcd, befg}, S = {abh, bcd, efgi}
R, S = ["ab", "bcd", "befg"], ["abh", "bcd", "efgi"]
PHI = {
    ("ab", "abh"): Fraction(2, 3), ("ab", "bcd"): Fraction(1, 4), ("ab", "efgi"): Fraction(0),
    ("bcd", "abh"): Fraction(1, 5), ("bcd", "bcd"): Fraction(1), ("bcd", "efgi"): Fraction(0),
    ("befg", "abh"): Fraction(1, 6), ("befg", "bcd"): Fraction(1, 6),
    ("befg", "efgi"): Fraction(3, 5),
}  # fmt: skip
WEIGHT = Fraction(34, 15)
BASIC_BOUND, JOINT_BOUND = 3.0, 29 / 12

reaches = from_python(can_reach)
end_of_prefix = from_python(index.prefix_end)
similarity_of = from_python(jaccard)


def lists():
    """Tokens a, b, ... numbered in that order; every token of c gives 1/c."""
    words = sorted({*R, *S}, key=lambda word: (len(word), word))
    starts = np.cumsum([0, *(len(word) for word in words)])
    tokens = np.array([ord(c) - ord("a") for word in words for c in word], np.int32)
    order = np.argsort(tokens, kind="stable")
    holder_starts = np.concatenate(([0], np.cumsum(np.bincount(tokens))))
    owners = np.repeat(np.arange(len(words), dtype=np.int32), np.diff(starts))[order]
    holders = index.Holders(holder_starts, owners, np.zeros(holder_starts.size - 1, np.int8))
    counts = np.diff(starts)
    utilities = index.rounded_up(1.0 / counts)
    weights = index.plain_weights(counts, utilities, np.zeros(counts.size))
    records = np.array([words.index(e) for record in (R, S) for e in record], np.int32)
    return index.lists_of(np.array([0, 3, 6]), records, holders, weights)


def rule(level, delta):
    share = share_of(delta)
    return Rule(share, 2 * share, level, 0, 1, 0, 0)


def test_utilities_of_tokens():
    made = lists()
    totals = made.totals[made.starts[0] : made.ends[0]]
    wanted = [1 / 2, 1 / 2 + 1 / 3 + 1 / 4, 1 / 3, 1 / 3, 1 / 4, 1 / 4, 1 / 4]  # a to g
    assert totals.tolist() == pytest.approx(wanted, rel=1e-6)
    totals = made.totals[made.starts[1] : made.ends[1]]
    wanted = [1 / 3, 2 / 3, 1 / 3, 1 / 3, 1 / 4, 1 / 4, 1 / 4, 1 / 3, 1 / 4]  # a to i
    assert totals.tolist() == pytest.approx(wanted, rel=1e-6)


@pytest.mark.slow
def test_bounds_of_both_filters():
    made = lists()
    for level, bound in ((BASIC, BASIC_BOUND), (JOINT, JOINT_BOUND)):
        assert reaches(made, 0, made, 1, bound, rule(level, 0.7))
        assert not reaches(made, 0, made, 1, bound + 1e-4, rule(level, 0.7))
    need = share_of(0.7) * 6
    assert need == pytest.approx(2.470588, abs=1e-6)
    assert reaches(made, 0, made, 1, need, rule(BASIC, 0.7))
    assert not reaches(made, 0, made, 1, need, rule(JOINT, 0.7))


def test_the_prefix():
    """After a, 2.5 is left, which is enough; after b 1.416667, which is not."""
    made = lists()
    assert end_of_prefix(made, 0, 3.0, 2 * share_of(0.7) * 3) == made.starts[0] + 2
    assert made.rests[:2].tolist() == pytest.approx([2.5, 17 / 12], rel=1e-6)


def test_the_matching():
    elements, one, other = arrays([R], [S], q=1)
    ids = {word: k for k, word in enumerate(sorted({*R, *S}, key=lambda w: (len(w), w)))}
    for (r, s), value in PHI.items():
        assert abs(similarity_of(elements, ids[r], ids[s]) - value * ONE) <= Fraction(1, 2)
    assert abs(weight(R, S, "jaccard", 1) - WEIGHT * ONE) <= 2
    for method in METHODS[:2]:
        plan = how("test", "jaccard", method, "weight", True)
        found, weights = verify(elements, one, other, np.zeros((1, 2)), share_of(0.6), plan)
        assert found[0] & 1
        assert weights[0] == weight(R, S, "jaccard", 1)


def test_the_join():
    for filters in ("basic", "positional", "joint"):
        found = fuzzy_join([R, S], q=1, delta=0.6, filters=filters)
        assert found.score.tolist() == pytest.approx([17 / 28])
        assert len(fuzzy_join([R, S], q=1, delta=0.7, filters=filters)) == 0
    why = explain(R, S, q=1)
    assert [pair[:2] for pair in why.matched] == [("bcd", "bcd"), ("ab", "abh"), ("befg", "efgi")]
    assert why.weight == pytest.approx(float(WEIGHT))
