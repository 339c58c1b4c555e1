"""Random collections that meet the filters' corners: small alphabets, near copies, all sizes."""

from __future__ import annotations

import random

ALPHABETS = ("ab", "abc", "abcdefgh", "aé\U0001f600$", "abcdefghijklmnopqrstuvwxyz")


def word(rng: random.Random, alphabet: str, longest: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, longest)))


def changed(rng: random.Random, text: str, alphabet: str) -> str:
    at = rng.randint(0, len(text))
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + rng.choice(alphabet) + text[at:]
    return text[:at] + ("" if kind == 1 else rng.choice(alphabet)) + text[at + 1 :]


def records(rng: random.Random, most: int = 12, size: int = 6) -> list[list[str]]:
    """Some records, of which some are near copies of others; empty ones and empty elements too."""
    alphabet = rng.choice(ALPHABETS)
    longest = rng.choice((1, 3, 6, 9, 12))
    vocabulary = [word(rng, alphabet, longest) for _ in range(rng.randint(1, 12))]
    made: list[list[str]] = []
    for _ in range(rng.randint(0, most)):
        if made and rng.random() < 0.5:
            base = [
                changed(rng, text, alphabet) if rng.random() < 0.3 else text
                for text in rng.choice(made)
            ]
            if base and rng.random() < 0.3:
                base.pop(rng.randrange(len(base)))
        else:
            base = [rng.choice(vocabulary) for _ in range(rng.randint(0, size))]
        rng.shuffle(base)
        made.append(base)
    return made
