"""Work that every rank does on its own part: an error on one is the same error on all.

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


def together(comm: Any, work: Callable[[], T], *, told: bool = True) -> T:
    """``work()`` of this rank, if it succeeds on all; else all raise what the first raised.

    The first is the failing rank of the smallest number; the message names it where there are
    several ranks and `told` is True.  `work` must not use the communicator.
    """
    found, failure, cause = _tried(work)
    for rank, outcome in enumerate(comm.objects(failure)):
        if outcome is not None:
            name, text = outcome
            where = f" (on rank {rank})" if comm.size > 1 and told else ""
            raise CLASSES[name](f"{text}{where}") from cause
    return found  # type: ignore[return-value]


def of_first(comm: Any, work: Callable[[], T]) -> T:
    """What ``work()`` returns on the first rank, pickled for the others; or all raise its error.

    The other ranks do not call it.  `work` must not use the communicator.
    """
    mine = _tried(work) if comm.rank == 0 else (None, None, None)
    found, failure = comm.objects(mine[:2])[0]
    if failure is not None:
        name, text = failure
        raise CLASSES[name](text) from mine[2]
    return found  # type: ignore[no-any-return]


def _tried(work: Callable[[], T]) -> tuple[T | None, tuple[str, str] | None, Exception | None]:
    """What `work` returns; else the class and the text of its error, and the error."""
    try:
        return work(), None, None
    except tuple(CLASSES.values()) as error:
        return None, (_class_name(error), str(error)), error


def _class_name(error: BaseException) -> str:
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in CLASSES)
