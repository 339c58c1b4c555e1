"""What the kernels of all methods share: arrays that belong together, limits, and facts.

Numba takes these records as it takes their parts, at no cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device

Array = np.ndarray[Any, Any]

FREE = np.uint8(255)
PLACED = np.uint8(0)
"""What `mark[v]` says of a vertex; the leveled method uses the numbers between for claims."""

WHOLE, CUT, WIDE = 0, 1, 2
"""How an order of a component ended: complete, given up, or in front of a level that is wide."""

EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)
"""A limit that is never reached."""

BROKEN = 1
"""What kernels fail with when a search from another vertex of a component does not reach all of it:
the pattern is not symmetric.  Going on would place vertices twice, and write past the end."""


class Csr(NamedTuple):
    """The symmetric pattern; `indices` are unsigned."""

    indptr: Array
    indices: Array
    guessable: bool  # the processor guesses well which neighbours are placed: see `follow`
    loops: Any  # 1 where every vertex is its own neighbour, 0 where none is: see `Run`


class Sorter(NamedTuple):
    """Scratch buffers to sort children in; of a team, with a row for each member."""

    shift: Any  # bits of a vertex, below its degree, in a key
    keys: Array
    other: Array
    bins: Array


@device
def own_sorter(sorters: Sorter, rank: int) -> Sorter:
    """The buffers of one member."""
    return Sorter(sorters.shift, sorters.keys[rank], sorters.other[rank], sorters.bins[rank])


class Limits(NamedTuple):
    """When an order of a component ends early; see `serial.cpu.follow`."""

    places: Any  # all places up to this one are filled
    width: Any  # two neighbouring levels have so many vertices
    band: Any  # the bandwidth comes to this
    arcs: Any  # more arcs than this were followed
    wide: Any  # at least so many arcs leave the next level ...
    row: Any  # ... which is checked only if rows of this length would have them


@device
def up_to(places: Any) -> Limits:
    """The whole component, which ends at the latest at this place."""
    return Limits(places, EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING, np.uint64(1))


class Facts(NamedTuple):
    """Words of `facts`, which the methods leave about the component that was ordered last."""

    end: int = 0  # the place behind it
    levels: int = 1  # how many
    width: int = 2  # most vertices in two neighbouring levels
    last: int = 3  # the place where the last level begins
    code: int = 4  # WHOLE or CUT
    tried: int = 5  # starts


FACT = Facts()
