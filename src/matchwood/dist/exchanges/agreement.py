"""What ranks agree on before they work: an error on one is the same error on all.

A rank that raises alone leaves the others waiting in their next collective.  The communicators
end that wait with RankFailed; but where a rank can know beforehand, from its part of the input,
everyone raises the error itself, of its own class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from matchwood import errors

T = TypeVar("T")

CLASSES = {
    kind.__name__: kind
    for kind in (
        TypeError, ValueError, OverflowError, MemoryError, OSError, FileNotFoundError,
        PermissionError, IsADirectoryError, NotADirectoryError,
        errors.EngineUnavailable, errors.OutOfMemory, errors.CheckFailed, errors.FileFormatError,
    )
}  # fmt: skip


def together(comm: Any, work: Callable[[], T]) -> T:
    """``work()`` of this rank, if it succeeds on all; else all raise what the first raised.

    The first is the failing rank of the smallest number; the message names it where there are
    several ranks.  `work` must not use the communicator.
    """
    found, failure, cause = None, None, None
    try:
        found = work()
    except tuple(CLASSES.values()) as error:
        cause = error
        failure = (_class_name(error), str(error))
    outcomes = comm.objects(failure)
    raise_first(comm, outcomes, cause)
    return found  # type: ignore[return-value]


def raise_first(comm: Any, outcomes: list[Any], cause: BaseException | None = None) -> None:
    """Raise the first of these failures, (class, message) or None, one of each rank."""
    for rank, outcome in enumerate(outcomes):
        if outcome is not None:
            name, text = outcome
            where = f" (on rank {rank})" if comm.size > 1 else ""
            raise CLASSES[name](f"{text}{where}") from cause


def _class_name(error: BaseException) -> str:
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in CLASSES)


def same(comm: Any, caller: str, **arguments: Any) -> None:
    """Raise ValueError on all ranks unless all were given the same arguments.

    They are compared by `repr`, so they should be numbers, texts or small tuples.
    """
    mine = {name: repr(value) for name, value in arguments.items()}
    everyone = comm.objects(mine)
    for name in mine:
        for rank, theirs in enumerate(everyone):
            if theirs.get(name) != everyone[0].get(name):
                raise ValueError(
                    f"{caller}: {name} must be the same on all ranks, "
                    f"got {everyone[0].get(name)} on rank 0 and {theirs.get(name)} on rank {rank}"
                )
