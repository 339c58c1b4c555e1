"""What ranks agree on before and after the work: equal arguments, and one error for all.

A rank that raises alone ends the communicator, and the others raise `RankFailed`.  That is for
faults.  Where an argument, a part of the input or an answer is wrong, all ranks raise the same
error, of its own class, and the communicator goes on.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from matchwood import engines, errors
from matchwood.engines.ranks.faults import listed

T = TypeVar("T")

CLASSES = {
    kind.__name__: kind
    for kind in (
        TypeError, ValueError, OverflowError, MemoryError, OSError, FileNotFoundError,
        PermissionError, IsADirectoryError, NotADirectoryError,
        errors.EngineUnavailable, errors.OutOfMemory, errors.CheckFailed, errors.FileFormatError,
    )
}  # fmt: skip


def together(comm: Any, work: Callable[[], T], *, named: bool = True) -> T:
    """``work()`` of this rank, if it succeeds on all; else all raise what the first raised.

    The first is the failing rank of the smallest number; the message names it where there are
    several ranks and `named` is True.  `work` must not use the communicator.
    """
    found, failure, cause = _tried(comm, work)
    for rank, outcome in enumerate(comm.objects(failure)):
        if outcome is not None:
            name, text = outcome
            where = f" (on rank {rank})" if comm.size > 1 and named else ""
            raise CLASSES[name](f"{text}{where}") from cause
    return found  # type: ignore[return-value]


def of_first(comm: Any, work: Callable[[], T]) -> T:
    """What ``work()`` returns on the first rank, pickled for the others; or all raise its error.

    The other ranks do not call it.  `work` must not use the communicator.
    """
    mine = _tried(comm, work) if comm.rank == 0 else (None, None, None)
    found, failure = comm.objects(mine[:2])[0]
    if failure is not None:
        name, text = failure
        raise CLASSES[name](text) from mine[2]
    return found  # type: ignore[no-any-return]


def sent_by_first(comm: Any, work: Callable[[], T]) -> T:
    """As `of_first`, for what holds large arrays: these are not pickled, and sent one by one."""
    made: list[T] = []
    buffers: list[pickle.PickleBuffer] = []

    def pickled() -> tuple[bytes, int]:
        made.append(work())
        return pickle.dumps(made[0], 5, buffer_callback=buffers.append), len(buffers)

    text, count = of_first(comm, pickled)
    arrays = [np.frombuffer(each.raw(), np.uint8) for each in buffers]
    sent = [comm.broadcast(arrays[k] if arrays else None) for k in range(count)]
    return made[0] if made else pickle.loads(text, buffers=sent)  # type: ignore[no-any-return]


def _tried(
    comm: Any, work: Callable[[], T]
) -> tuple[T | None, tuple[str, str] | None, Exception | None]:
    """What `work` returns; else the class and the text of its error, and the error."""
    try:
        return work(), None, None
    except tuple(CLASSES.values()) as error:
        return None, (_class_name(error), str(error)), error
    except BaseException as error:  # a fault: the others wait for this rank
        comm.fail(error)
        raise


def _class_name(error: BaseException) -> str:
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in CLASSES)


def same(comm: Any, caller: str, **given: Any) -> None:
    """Raise ValueError on all ranks unless each argument is the same on all; arrays by a hash."""
    mine = {name: _spoken(value) for name, value in given.items()}
    ranks = comm.objects(mine)
    for name in mine:
        texts = [each.get(name, "nothing") for each in ranks]
        others = [rank for rank, text in enumerate(texts) if text != texts[0]]
        if others:
            raise ValueError(
                f"{caller}: {name} must be the same on all ranks, got {texts[0]} on rank 0 and "
                f"{texts[others[0]]} on {listed(others)}"
            )


def _spoken(value: Any) -> str:
    if engines.location(value) == "gpu":
        value = engines.moved(value, "cpu")
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"an array of {value.dtype} {value.shape} with hash {digest}"
    try:
        return repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"


def raise_first(comm: Any, error: Exception | None, key: Any = 0) -> None:
    """Raise on all ranks the error of the rank with the smallest key; nothing where all have None.

    Of several with that key the one of the smallest rank counts.
    """
    mine = None if error is None else (key, comm.rank, error)
    wrong = [each for each in comm.objects(mine) if each is not None]
    if wrong:
        raise min(wrong, key=lambda each: each[:2])[2]


def any_of(comm: Any, here: bool) -> bool:
    return bool(comm.allreduce(np.array([here], np.bool_), "or")[0])
