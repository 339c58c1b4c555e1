"""Sets of words that look like real ones, from a seed.

`tagged` looks like the categories of shops: words drawn by Zipf's law from a small vocabulary, few
to a set, with near copies of earlier sets in which a word was misspelt.  `clustered` are large
sets in clusters of ten copies, of which a quarter of the words got another character.
`near_copies` are copies of sets that are given, misspelt about as much as 0.7 allows.
"""

from __future__ import annotations

import numpy as np

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def vocabulary(rng: np.random.Generator, count: int) -> list[str]:
    """Different words of 4 to 11 letters."""
    words: dict[str, None] = {}
    while len(words) < count:
        lengths = rng.integers(4, 12, count)
        letters = rng.choice(LETTERS, (count, 11))
        for row, length in zip(letters, lengths, strict=True):
            words["".join(row[:length])] = None
    return list(words)[:count]


def misspelt(word: str, rng: np.random.Generator, edits: int = 1) -> str:
    """The word with so many characters changed or dropped."""
    for _ in range(edits):
        place = int(rng.integers(len(word)))
        letter = str(rng.choice(LETTERS)) if rng.random() < 0.5 else ""
        word = word[:place] + letter + word[place + 1 :] or word
    return word


def tagged(
    count: int, seed: int, *, words: int = 1200, mean: float = 6.3, copies: float = 0.7
) -> list[list[str]]:
    """Like the sets of Yelp: `copies` of them copy an earlier set, so some sets come very often.

    A third of the copies is exact, a third has a misspelt word, a third another word.
    """
    rng = np.random.default_rng(seed)
    known = vocabulary(rng, words)
    chance = 1.0 / np.arange(1, words + 1)
    chance /= chance.sum()
    sizes = np.clip(rng.lognormal(np.log(mean) - 0.125, 0.5, count).round(), 1, 47).astype(int)
    draws = rng.choice(words, sizes.sum(), p=chance)
    ends = np.cumsum(sizes)
    near = rng.random(count) < copies
    made: list[list[str]] = []
    for i in range(count):
        if near[i] and i:
            record = list(made[int(rng.integers(i))])
            place, kind = int(rng.integers(len(record))), int(rng.integers(3))
            if kind == 1:
                record[place] = misspelt(record[place], rng, 1 + int(rng.random() < 0.5))
            elif kind == 2:
                record[place] = known[draws[ends[i] - 1]]
        else:
            record = [known[k] for k in draws[ends[i] - sizes[i] : ends[i]]]
        made.append(list(dict.fromkeys(record)))
    return made


def clustered(
    count: int,
    mean: float,
    seed: int,
    *,
    words: int = 20_000,
    edited: tuple[float, float] = (0.25, 0.25),
) -> list[list[str]]:
    """Clusters of ten copies; of their elements 25 % get an edit and 4 % are replaced.

    `edited`: the least and the most that get an edit, drawn for each cluster.
    """
    rng = np.random.default_rng(seed)
    known = vocabulary(rng, words)
    made: list[list[str]] = []
    while len(made) < count:
        size = int(np.clip(mean * rng.lognormal(-0.125, 0.5), 2, words))
        base = [known[k] for k in rng.choice(words, size, replace=False)]
        edits = edited[0] if edited[0] == edited[1] else float(rng.uniform(*edited))
        for _ in range(10):
            fate = rng.random(size)
            record = [
                misspelt(word, rng)
                if x < edits
                else known[int(rng.integers(words))]
                if x < edits + 0.04
                else word
                for word, x in zip(base, fate, strict=True)
            ]
            made.append(list(dict.fromkeys(record)))
    return made[:count]


def near_copies(
    rows: list[list[str]], seed: int, *, each: int = 3, edited: tuple[float, float] = (0.3, 0.45)
) -> list[list[str]]:
    """So many copies of each set; of their words a part got an edit, drawn for each copy."""
    rng = np.random.default_rng(seed)
    made: list[list[str]] = []
    for row in rows:
        words = list(dict.fromkeys(row))
        for _ in range(each):
            edits = rng.random(len(words)) < rng.uniform(*edited)
            made.append([
                misspelt(word, rng) if edit else word
                for word, edit in zip(words, edits, strict=True)
            ])  # fmt: skip
    return made
