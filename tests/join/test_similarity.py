"""Similarities of elements: kernels, reference and check agree; any length, any text."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from join_sets import arrays, changed
from matchwood.applications.join.similarity import cpu, reference
from matchwood.applications.join.similarity.check import Similarities
from matchwood.applications.join.similarity.cpu import EDIT, EQUAL, JACCARD
from matchwood.engines.cpu.team import WORDS, Team
from support import from_python

ONE = reference.ONE
ALONE = Team(0, 1, np.zeros(WORDS, np.int64))
fits_lane, set_lane = from_python(cpu.fits_lane), from_python(cpu.set_lane)
clear_lane, sweep = from_python(cpu.clear_lane), from_python(cpu.sweep)
set_pattern, clear_pattern = from_python(cpu.set_pattern), from_python(cpu.clear_pattern)
distance_to, long_distance = from_python(cpu.distance_to), from_python(cpu.long_distance)
open_pattern, edit_to = from_python(cpu.open_pattern), from_python(cpu.edit_to)
jaccard, fixed = from_python(cpu.jaccard), from_python(cpu.fixed)
most_edits = from_python(cpu.most_edits)
KINDS = {"jaccard": JACCARD, "edit": EDIT, "edit_padded": EDIT, "equal": EQUAL}


def new_pattern(longest):
    return cpu.Pattern(
        np.zeros(cpu.DIRECT, np.uint64),
        np.zeros(cpu.SLOTS, np.uint32),
        np.zeros(cpu.SLOTS, np.uint64),
        np.zeros(longest, np.int8),
    )


def distance(r, s, most=1 << 30):
    codes = np.array([ord(c) for c in r + s], np.uint32)
    pattern = new_pattern(max(len(r), len(s)))
    ends = len(r), len(r) + len(s)
    if 0 < len(r) <= cpu.WORD:
        set_pattern(pattern, codes, 0, len(r))
        found = distance_to(pattern, len(r), codes, *ends, most)
        clear_pattern(pattern, codes, 0, len(r))
    else:
        found = long_distance(ALONE, pattern, codes, (0, len(r)), ends, most)
    assert not any(part.any() for part in (pattern.direct, pattern.keys, pattern.words))
    return found


def edit(elements, a, b, least, pattern):
    short = open_pattern(elements, a, pattern)
    found = edit_to(ALONE, elements, a, b, np.int64(least), pattern, short)
    if short:
        clear_pattern(pattern, elements.text, *elements.text_starts[a : a + 2])
    return found


def phi(elements, a, b, similarity, pattern):
    if similarity == EDIT:
        return edit(elements, a, b, 0, pattern)
    return jaccard(elements, a, b) if similarity == JACCARD else ONE * (a == b)


def random_texts(rng, count):
    for _ in range(count):
        letters = rng.choice(["ab", "abcdefgh", "ä€\U0001f600", "a\u0000\U0010ffff\u00ff\u0100"])
        length = rng.choice([1, 2, 5, 20, 63, 64, 65, 128, 129, 200])
        r = "".join(rng.choice(letters) for _ in range(length))
        s = r
        for _ in range(rng.choice([0, 1, 3, 30, 200])):
            s = changed(s, rng, letters)
        yield r, s


@pytest.mark.slow
def test_levenshtein_of_any_length_and_any_text():
    rng = random.Random(1)
    for r, s in random_texts(rng, 60):
        expected = reference.levenshtein(r, s)
        assert distance(r, s) == distance(s, r) == expected, (r, s)
        for most in {0, 1, expected - 1, expected, expected + 1} - {-1}:
            found = distance(r, s, most)
            assert found == expected if expected <= most else found > most, (r, s, most)
    assert distance("", "abc") == 3
    assert distance("abc", "") == 3
    assert distance("", "") == 0


def row_by_row(r, s):
    """The table of distances, a row at a time."""
    pattern, text = (np.array([ord(c) for c in one]) for one in (r, s))
    places = np.arange(text.size + 1)
    row = places.copy()
    for i, code in enumerate(pattern.tolist()):
        best = np.minimum(row[1:] + 1, row[:-1] + (text != code))
        row = np.minimum.accumulate(np.append(i + 1, best) - places) + places
    return int(row[-1])


@pytest.mark.slow
def test_long_texts_that_are_alike():
    """Few edits are found in a band; at its edge, and beyond it, the whole table is."""
    rng = random.Random(6)
    for _ in range(10):
        letters = rng.choice(["ab", "abcdefgh", "ä€\U0001f600"])
        r = "".join(rng.choice(letters) for _ in range(rng.choice([4095, 4096, 4200, 9000])))
        edits = rng.choice([0, 1, 40, 63, 64, 65, 100, 200])
        if rng.random() < 0.5:  # all at one end: the band is used on one side alone
            s = rng.choice([r[edits:], r[: len(r) - edits], "z" * edits + r])
        else:
            s = r
            for _ in range(edits):
                s = changed(s, rng, letters)
        expected = row_by_row(r, s)
        assert distance(r, s) == distance(s, r) == expected, (r, s)
        for most in {0, expected - 1, expected, expected + 1, 64} - {-1}:
            found = distance(r, s, most)
            assert found == expected if expected <= most else found > most, (r, s, most)


@pytest.mark.slow
def test_sixteen_at_a_time():
    """Lanes with and without a pattern, texts with characters that no pattern can have."""
    rng = random.Random(4)
    table = np.zeros((cpu.DIRECT + 1, cpu.LANES), np.uint32)
    state, one = np.zeros(3 * cpu.LANES, np.uint32), np.ones(cpu.LANES, np.uint32)
    made = cpu.Lanes(table, state, one.copy(), one.copy(), cpu.ratios())
    for _ in range(20):
        letters = rng.choice(["ab", "abcdefghijkl", "a\u00ff"])
        words = ["".join(rng.choices(letters, k=rng.choice([1, 2, 7, 31, 32]))) for _ in range(15)]
        texts = [*(changed(word, rng, letters + "\u20ac") for word in words), "", "\U0001f600" * 70]
        texts.append("".join(rng.choices(letters, k=200)))
        codes = np.array([ord(c) for text in words + texts for c in text], np.uint32)
        ends = np.cumsum([0, *map(len, words + texts)])
        for k in range(len(words)):
            assert fits_lane(codes, ends[k], ends[k + 1])
            set_lane(made, k, codes, ends[k], ends[k + 1])
        for j, text in enumerate(texts, len(words)):
            sweep(made, codes, ends[j], ends[j + 1])
            found = state[2 * cpu.LANES :][: len(words)].tolist()
            assert found == [reference.levenshtein(word, text) for word in words]
        for k in range(len(words)):
            clear_lane(made, k, codes, ends[k], ends[k + 1])
        assert not table.any()
    wide = np.array([ord("a"), 256], np.uint32)
    assert fits_lane(wide, 0, 1)
    assert not fits_lane(wide, 0, 2)
    assert not fits_lane(np.full(33, 97, np.uint32), 0, 33)


@pytest.mark.slow
def test_all_ways_agree():
    rng = random.Random(2)
    words = list(dict.fromkeys(w for pair in random_texts(rng, 12) for w in pair if len(w) < 70))
    for similarity, kind in KINDS.items():
        for q in (1, 3):
            elements, records, _ = arrays([words], similarity=similarity, q=q)
            ids = records.elements
            order = sorted(range(len(words)), key=lambda i: words[i])
            by_id = {}
            for value in words:  # the id of each word: from a record of its own
                _, alone, _ = arrays([words, [value]], similarity=similarity, q=q)
                by_id[value] = int(alone.elements[-1])
            other_way = Similarities(words, similarity, q)
            pattern = new_pattern(int(np.diff(elements.text_starts).max(initial=1)))
            for i in order[::2]:
                row = other_way.row(i)
                for j in order:
                    expected = reference.phi(words[i], words[j], similarity, q)
                    a, b = by_id[words[i]], by_id[words[j]]
                    assert phi(elements, a, b, kind, pattern) == expected == row[j]
            assert ids.size == len(words)


@pytest.mark.slow
def test_a_cut_off_never_hides_what_reaches_it():
    rng = random.Random(3)
    words = [w for pair in random_texts(rng, 15) for w in pair]
    words = list(dict.fromkeys(words))
    elements, records, _ = arrays([words], similarity="edit")
    pattern = new_pattern(int(np.diff(elements.text_starts).max()))
    for a in records.elements[::3]:
        for b in records.elements:
            exact = phi(elements, a, b, EDIT, pattern)
            for least in (exact - 1, exact, exact + 1, ONE // 2, ONE):
                found = edit(elements, a, b, max(least, 0), pattern)
                assert found == exact if exact >= least else found < max(least, 1)


def test_fixed_point_is_rounded_to_the_nearest():
    for part, whole in [(0, 1), (1, 1), (1, 3), (2, 3), (37, 75), (6, 8), (12345, 67890)]:
        expected = reference.fixed(part, whole)
        assert fixed(part, whole) == expected
        assert abs(Fraction(expected, ONE) - Fraction(part, whole)) <= Fraction(1, 2 * ONE)
    for part, whole in [(10**6, 3 * 10**6), (2**24 - 1, 2**24), (1, 2**24), (2**30, 2**30)]:
        assert fixed(part, whole) == reference.fixed(part, whole)
    for longer in (1, 7, 100, 10**6, 2**24):
        for least in (0, 1, ONE // 3, ONE):
            most = most_edits(longer, least)
            assert most == longer or reference.fixed(longer - most - 1, longer) < max(least, 1)


@pytest.mark.parametrize("text", ["$", "a$", "$$$", "ab$$"])
def test_padding_is_no_character(text):
    """A text that ends with what others pad with is not the shorter text."""
    assert reference.phi(text, text[:-1] or "a", "edit_padded") < ONE
    assert reference.phi(text, text[:-1] or "a", "jaccard") < ONE


def test_worked_example_of_grams():
    assert len(reference.tokens("database", 3)) == 7
    assert len(reference.tokens("system", 3)) == 4
    assert len(reference.tokens("aaaaaa", 3)) == 4  # repeats are tokens of their own
    assert reference.phi("database", "databases", "jaccard") == reference.fixed(6, 8)
    assert reference.phi("systems", "system", "jaccard") == reference.fixed(4, 7)
    assert reference.phi("systems", "system", "edit") == reference.fixed(6, 7)
    assert reference.phi("systems", "system", "edit_padded") == reference.fixed(6, 9)
