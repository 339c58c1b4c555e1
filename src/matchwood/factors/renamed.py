"""Old names of arguments: accepted for one release, with a warning that says the new name."""

from __future__ import annotations

import warnings
from typing import Any

# The letters of the paper, and the words that stand for them now.
LETTERS = {"M": "rounds", "m": "period", "k_m": "uncharged", "p": "charge_probability"}


def in_words(caller: str, given: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The arguments `known`, with what is `given` by its old letter put in.

    TypeError for a name that is neither old nor new.
    """
    for name, value in given.items():
        if name not in LETTERS:
            raise TypeError(f"{caller}: unknown argument {name!r}")
        word = LETTERS[name]
        warnings.warn(
            f"{caller}: {name} is called {word} now, and {name} will go with the next release",
            DeprecationWarning,
            stacklevel=3,
        )
        known = {**known, word: value}
    return known
