"""Arrays that the kernels of breadth-first search pass together.  Read cpu.py first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """A pattern by rows; vertices are unsigned."""

    indptr: Array
    indices: Array


class Marks(NamedTuple):
    """The answer, by vertex; all ones, that is -1, where a vertex is not reached."""

    level: Array
    parent: Array


class Queues(NamedTuple):
    """The frontier and the next frontier, in blocks: see cpu.py."""

    pool: Array  # [side, place]: vertices
    blocks: Array  # [side, member, k]: the number of its k-th block
    sums: Array  # [step % 2, member]: vertices that it found
    long: Array  # vertices of the frontier whose rows all members share; empty: there are none


class Rules(NamedTuple):
    """What holds for the whole search."""

    late: bool  # parents are found at the end
    backwards: bool  # the arcs into a vertex are known
    limit: int  # levels
    few: Any  # arcs; a frontier with fewer is one member's work
    longest: Any  # entries of the longest row
    each: Any  # and of a row on average
    even: bool  # no row is much longer than others
