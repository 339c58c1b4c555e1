"""Records and elements as the kernels read them, made in plain Python from lists of texts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

from matchwood.applications.join import Elements, Records
from matchwood.applications.join.reference import in_order
from matchwood.applications.join.similarity.reference import padded, tokens

Texts = Sequence[Sequence[str]]
PADDING_CODE = 0x110000  # one above the last code point


def arrays(
    left: Texts, right: Texts | None = None, *, similarity: str = "jaccard", q: int = 3
) -> tuple[Elements, Records, Records]:
    """Both sides with one dictionary; right=None: the left one twice."""
    sides = [left] if right is None else [left, right]
    texts = in_order([e for side in sides for record in side for e in record], similarity, q)
    grams = [tokens(text, q) for text in texts]
    used = Counter(
        gram for side in sides for r in side for e in set(r) if e for gram in tokens(e, q)
    )
    rank = {gram: k for k, gram in enumerate(sorted(used, key=lambda g: (used[g], repr(g))))}
    ids = {text: k for k, text in enumerate(texts)}
    lists = [sorted(rank[gram] for gram in found) for found in grams]
    codes: list[list[int]] = []
    if similarity.startswith("edit"):
        for text in texts:
            characters = padded(text, q) if similarity == "edit_padded" else list(text)
            codes.append([PADDING_CODE if c is None else ord(str(c)) for c in characters])
    elements = Elements(
        *_rows(lists, np.int32),
        *(_rows(codes, np.uint32) if codes else (np.zeros(1, np.int64), np.zeros(0, np.uint32))),
    )
    made = [
        Records(
            *_rows(
                [sorted({ids[e] for e in r if e}) for r in side],
                np.int32,
            )
        )
        for side in sides
    ]
    return elements, made[0], made[-1]


def _rows(lists: Sequence[Sequence[int]], kind: type) -> tuple[np.ndarray, np.ndarray]:
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(row) for row in lists], out=starts[1:])
    return starts, np.array([x for row in lists for x in row], kind)


def changed(word: str, rng: random.Random, letters: str = "abcdefgh") -> str:
    """The word with one character changed, dropped or put in."""
    place = rng.randrange(len(word) + 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:place] + rng.choice(letters) + word[place:]
    return word[:place] + (rng.choice(letters) if kind == 1 else "") + word[place + 1 :] or "a"


def random_sets(
    rng: random.Random, count: int, *, most: int = 6, letters: str = "abc", longest: int = 7
) -> list[list[str]]:
    """Small sets over a small alphabet, many of them near copies of others."""
    made: list[list[str]] = []
    for _ in range(count):
        if made and rng.random() < 0.5:
            base = [w if rng.random() < 0.6 else changed(w, rng, letters) for w in rng.choice(made)]
            if base and rng.random() < 0.3:
                base.pop()
        else:
            base = []
        for _ in range(rng.randrange(0 if base else 1, max(2, most - len(base)))):
            base.append("".join(rng.choice(letters) for _ in range(rng.randint(1, longest))))
        made.append(list(dict.fromkeys(base))[:most])
    return made
