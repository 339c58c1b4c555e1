"""Words for what went wrong on a rank, the same in every communicator."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Any

from matchwood.errors import RankFailed


def failure_of(rank: int | None, error: BaseException) -> RankFailed:
    """The exception of a rank as the others raise it; a RankFailed stays as it is."""
    if isinstance(error, RankFailed):
        return error
    text = "".join(traceback.format_exception(error))
    try:
        said = str(error)
    except Exception:
        said = "(an exception that cannot be printed)"
    return RankFailed(rank, type(error).__name__, said, text)


def shortened(text: str, nbytes: int, end: bool = False) -> str:
    """The beginning of a text, or its end, in at most `nbytes` bytes."""
    encoded = text.encode(errors="backslashreplace")
    kept = encoded[max(0, len(encoded) - nbytes) :] if end else encoded[:nbytes]
    return kept.decode(errors="ignore")


def listed(ranks: Sequence[int]) -> str:
    """``rank 3``, or ``ranks 3, 4 and 7``."""
    names = [str(rank) for rank in sorted(ranks)]
    if len(names) == 1:
        return f"rank {names[0]}"
    return f"ranks {', '.join(names[:-1])} and {names[-1]}"


def difference(calls: Sequence[tuple[Any, ...] | None]) -> tuple[int, str] | None:
    """Who calls something else than most, and how to say so; None where all call the same.

    Where two calls are equally frequent, that of the smaller rank counts as the usual one.
    """
    first = calls[0]
    if all(call == first for call in calls):
        return None
    usual = Counter(map(repr, calls)).most_common(1)[0][0]
    groups: dict[str, list[int]] = {}
    for rank, call in enumerate(calls):
        groups.setdefault(repr(call), []).append(rank)
    texts = {repr(call): _spoken(call) for call in calls}
    others = [key for key in groups if key != usual]
    said = ", ".join(f"{listed(groups[key])} {texts[key]}" for key in others)
    ranks = groups[others[0]]
    return ranks[0], f"ranks differ: {said}, but {listed(groups[usual])} {texts[usual]}"


def _spoken(call: tuple[Any, ...] | None) -> str:
    operation, *details = call or ("nothing",)
    return f"called {operation}({', '.join(map(str, details))})"
