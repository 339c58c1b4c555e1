"""What ranks agree on before and after the work: equal arguments, and one error for all.

An error that one rank alone raises ends the communicator, and the others raise `RankFailed`.  That
is for faults.  Where an argument or an answer is wrong, all ranks are told and raise the same
error, and the communicator goes on.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.faults import listed
from matchwood.engines.ranks.vectors import DistributedVector


def same(comm: Any, caller: str, **given: Any) -> None:
    """Raise ValueError on all ranks unless each argument is the same on all of them.

    Arrays are compared by a hash of their contents.
    """
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
    told = None if error is None else (key, comm.rank, error)
    wrong = [each for each in comm.objects(told) if each is not None]
    if wrong:
        raise min(wrong, key=lambda each: each[:2])[2]


def any_of(comm: Any, here: bool) -> bool:
    """Whether it holds on any rank."""
    return bool(comm.allreduce(np.array([here], np.bool_), "or")[0])


def own_part(G: Any, caller: str, name: str, value: Any) -> Any:
    """The own values of a vector, which must be spread over the ranks as the graph is.

    All ranks raise TypeError or ValueError where on one of them it is not.
    """
    error: Exception | None = None
    if not isinstance(value, DistributedVector):
        kind = type(value).__name__
        error = TypeError(f"{caller}: {name} must be a DistributedVector, got {kind}")
    elif _layout(value) != _layout(G):
        error = ValueError(
            f"{caller}: {name} must be spread as the graph is, over {_layout(G)}, "
            f"got {_layout(value)}"
        )
    raise_first(G.comm, error)
    return value.local


def _layout(spread: Any) -> str:
    order = "" if spread.order is None else ", hashed"
    return f"{spread.grid.name} {spread.grid.layout} of {spread.n} vertices{order}"
