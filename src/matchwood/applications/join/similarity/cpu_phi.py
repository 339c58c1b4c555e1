"""The similarity of two elements as an integer in units of 2^-40, inside kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join.arrays import Elements
from matchwood.applications.join.similarity.cpu_levenshtein import Pattern, levenshtein
from matchwood.engines.cpu import Team, device

JACCARD, EDIT, EQUAL = 0, 1, 2

BITS = 40
ONE = 1 << BITS  # the similarity 1
SHORT = 1 << 21  # below it, part << 41 stays within 63 bits


@device
def fixed(part: int, whole: int) -> Any:
    """part / whole in units of 2^-40, rounded to the nearest."""
    if whole < SHORT:
        # unsigned: a signed division in Python's sense looks at signs and remainders as well
        twice = np.uint64(2 * whole)
        return np.int64(np.uint64((part << (BITS + 1)) + whole) // twice)
    # the same division in two steps of half the digits, for texts of millions of characters
    half = BITS // 2
    high = (part << half) // whole
    rest = (part << half) - high * whole
    return (high << half) + ((rest << (half + 1)) + whole) // (2 * whole)


@device
def jaccard(elements: Elements, a: int, b: int) -> Any:
    """Tokens in common / tokens of both together."""
    if a == b:
        return ONE
    tokens = elements.tokens
    i, last = elements.starts[a], elements.starts[a + 1]
    j, end = elements.starts[b], elements.starts[b + 1]
    whole = (last - i) + (end - j)
    shared = 0
    while i < last and j < end:
        left, right = tokens[i], tokens[j]
        shared += left == right
        i += left <= right
        j += right <= left
    return fixed(shared, whole - shared)


@device
def text_of(elements: Elements, a: int) -> Any:
    """Where the text of an element begins and ends."""
    return elements.text_starts[a], elements.text_starts[a + 1]


@device
def most_edits(longer: int, least: int) -> Any:
    """No pair of that longer length has more edits and a similarity of `least` or more.

    One more than there can be, rather than one less, where rounding decides.
    """
    return longer - max(0, (((least >> 10) * longer) >> (BITS - 10)) - 1)


@device
def edit(team: Team, elements: Elements, a: int, b: int, least: int, pattern: Pattern) -> Any:
    """1 - Levenshtein / longer length; any number below `least` where it is below `least`."""
    if a == b:
        return ONE
    first, second = text_of(elements, a), text_of(elements, b)
    longer = max(first[1] - first[0], second[1] - second[0])
    most = most_edits(longer, least)
    edits = levenshtein(team, pattern, elements.text, first, second, most)
    return fixed(longer - edits, longer) if edits <= most else np.int64(-1)


@device
def phi(team: Team, elements: Elements, a: int, b: int, similarity: int, pattern: Pattern) -> Any:
    """The similarity of the elements a and b."""
    if similarity == JACCARD:
        return jaccard(elements, a, b)
    if similarity == EDIT:
        return edit(team, elements, a, b, 0, pattern)
    return ONE if a == b else np.int64(0)
