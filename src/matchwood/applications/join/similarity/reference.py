"""Element similarity from the definition, in plain Python, slow on purpose."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from matchwood.applications.join import ONE

PADDING = None  # stands after a text; no text has it as a character

Token = tuple[tuple[Hashable, ...], int]


def fixed(part: int, whole: int) -> int:
    """part / whole in units of 2^-40, rounded to the nearest."""
    return ((part << 41) + whole) // (2 * whole)


def padded(text: str, q: int) -> list[Hashable]:
    """The characters of a text and padding, up to the next multiple of q."""
    return [*text, *[PADDING] * (-len(text) % q)]


def tokens(text: str, q: int) -> set[Token]:
    """The q-grams of a text; the k-th repeat of a gram is a token of its own."""
    characters = padded(text, q)
    grams = [tuple(characters[i : i + q]) for i in range(len(characters) - q + 1)]
    return {(gram, grams[:i].count(gram)) for i, gram in enumerate(grams)}


def jaccard(r: set[Token], s: set[Token]) -> int:
    """|r and s| / |r or s|."""
    return fixed(len(r & s), len(r | s))


def levenshtein(r: Sequence[Hashable], s: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and changes of one character that make s of r."""
    above = list(range(len(s) + 1))
    for i, a in enumerate(r):
        row = [i + 1]
        for j, b in enumerate(s):
            row.append(min(above[j] + (a != b), above[j + 1] + 1, row[j] + 1))
        above = row
    return above[-1]


def edit(r: Sequence[Hashable], s: Sequence[Hashable]) -> int:
    """1 - levenshtein / length of the longer."""
    longer = max(len(r), len(s))
    return fixed(longer - levenshtein(r, s), longer)


def phi(r: str, s: str, similarity: str, q: int = 3) -> int:
    """The similarity of two elements that are not empty, in units of 2^-40."""
    if similarity == "jaccard":
        return jaccard(tokens(r, q), tokens(s, q))
    if similarity == "edit":
        return edit(r, s)
    if similarity == "edit_padded":
        return edit(padded(r, q), padded(s, q))
    return ONE if r == s else 0
