"""Old names of the arguments of factors: accepted for one release, with a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchwood import arguments

# The letters of the paper, and the words that stand for them now.
LETTERS = {"M": "rounds", "m": "period", "k_m": "uncharged", "p": "charge_probability"}


def in_words(caller: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments `known`, with what is `given` by its old letter put in; called by `caller`."""
    return arguments.in_words(caller, given, known, LETTERS, stacklevel=4)


def options_in_words(
    caller: str, options: Mapping[str, Any], allowed: tuple[str, ...]
) -> dict[str, Any]:
    """Options for a factor, each under its word; TypeError unless it is among the `allowed`."""
    unknown = options.keys() - {*allowed, *LETTERS}
    if unknown:
        raise TypeError(f"{caller}: unknown argument {min(unknown)!r}")
    letters = {name: value for name, value in options.items() if name in LETTERS}
    words = {name: value for name, value in options.items() if name not in LETTERS}
    return arguments.in_words(caller, letters, words, LETTERS, stacklevel=4)
