"""Memory of one GPU that the ranks of a graph use together.

Ranks that share a GPU need not send letters: what one writes, the others read where it lies.  They
read when they have heard, by a collective, that its GPU has done so (`settle`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

ALIGNMENT = 512  # bytes
LENT = "lent"  # kept in a graph: what its ranks lent each other, by communicator


def lent(G: Any, name: str, make: Callable[[], Sequence[Any]]) -> Any:
    """What the ranks of G lend each other under that name: see `Communicator.lend`.

    Mapped at the first call, which asks `make` for the arrays of this rank.  The graph keeps it as
    long as it has this communicator.
    """
    of_comm = G.keep(LENT, weakref.WeakKeyDictionary).setdefault(G.comm, {})
    if name not in of_comm:
        of_comm[name] = G.comm.lend(make())
    return of_comm[name]


def common(G: Any, caller: str, **arrays: tuple[int, Any]) -> Any:
    """Arrays of these sizes and types which all ranks of G have in common, with these names.

    None where the ranks do not see each other's memory.  It is that of the first rank.  What is in
    it stays there from one call to the next.
    """
    starts, total = [], 0
    for size, kind in arrays.values():
        starts.append(total)
        total += -(-size * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT

    def make() -> list[Any]:
        return [gpu.empty(total, np.uint8, caller)] if G.comm.rank == 0 else []

    found = lent(G, f"{caller}: {arrays}", make)
    if found is None:
        return None
    whole = found.arrays[0][0]
    made = SimpleNamespace()
    for (name, (size, kind)), start in zip(arrays.items(), starts, strict=True):
        end = start + size * np.dtype(kind).itemsize
        setattr(made, name, whole[start:end].view(kind))
    return made


def settle() -> None:
    """Wait until the GPU of this rank has done what it was asked for."""
    engines.cupy().cuda.get_current_stream().synchronize()
