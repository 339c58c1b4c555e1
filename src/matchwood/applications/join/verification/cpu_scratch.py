"""What one thread needs to verify pairs: arrays that the host makes once (`scratch`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.applications.join.similarity.cpu_lanes import Lanes
from matchwood.applications.join.similarity.cpu_levenshtein import Pattern
from matchwood.engines.cpu import inlined

CERTIFIED, EXACT, EARLY, GREEDY, DOMINANT, STREAMING = 0, 1, 2, 3, 4, 5


class How(NamedTuple):
    """How a pair is verified, as kernels read it."""

    similarity: int  # JACCARD, EDIT, EQUAL of cpu_phi
    method: int  # CERTIFIED to STREAMING
    bound: int  # 1: the upper bound of the matching counts, for the last three methods
    scores: int  # 1: the weight must be the exact one, not only the verdict


class Sides(NamedTuple):
    """The elements that are left when equal ones are matched; rows and columns are numbered."""

    rows: np.ndarray  # int32: element of each row
    columns: np.ndarray  # int32: element of each column


class Table(NamedTuple):
    """In which columns each token occurs: a hash table of chains."""

    slots: np.ndarray  # int64, a power of two: token << 32 | its first entry, -1 = free
    entries: np.ndarray  # int64: column << 32 | the next entry of the same token
    shared: np.ndarray  # int32: tokens that a column shares with the row at work; else 0
    touched: np.ndarray  # int32: the columns that share any
    present: np.ndarray  # uint8, a power of two: 1 where some column has a token of that hash


class Edges(NamedTuple):
    """The similarities that are not 0, row by row."""

    starts: np.ndarray  # int64
    columns: np.ndarray  # int32
    weights: np.ndarray  # int64, units of 2^-40
    row_best: np.ndarray  # int64: the heaviest edge of a row
    row_choice: np.ndarray  # int32: its column
    column_best: np.ndarray  # int64
    column_choice: np.ndarray  # int32: its row


class Solver(NamedTuple):
    """A matching and dual variables; u[row] + v[column] >= weight for every edge."""

    row_mate: np.ndarray  # int32, -1 = free
    column_mate: np.ndarray  # int32, -1 = free
    row_dual: np.ndarray  # int64; before the solver starts, what a row can weigh at most
    column_dual: np.ndarray  # int64
    distance: np.ndarray  # int64: from the row that is being matched; FAR between two searches
    reached_from: np.ndarray  # int32: the row before a column on its shortest path
    reached: np.ndarray  # int32: columns with a distance; the finished ones first
    order: np.ndarray  # int32: edges by weight, for the greedy matching; else empty


class Stack(NamedTuple):
    """The edges that a streaming matching keeps."""

    rows: np.ndarray  # int32
    columns: np.ndarray  # int32
    weights: np.ndarray  # int64


class Scratch(NamedTuple):
    """All of it.  The host's arrays have a leading axis of threads; `mine` takes one thread's."""

    sides: Sides
    table: Table
    edges: Edges
    solver: Solver
    stack: Stack
    pattern: Pattern
    lanes: Lanes


@inlined
def mine(scratch: Scratch, rank: int) -> Scratch:
    """The arrays of one member of the team."""
    a, b, c, d = scratch.sides, scratch.table, scratch.edges, scratch.solver
    e, f, g = scratch.stack, scratch.pattern, scratch.lanes
    return Scratch(
        Sides(a.rows[rank], a.columns[rank]),
        Table(
            b.slots[rank],
            b.entries[rank],
            b.shared[rank],
            b.touched[rank],
            b.present[rank],
        ),
        Edges(
            c.starts[rank],
            c.columns[rank],
            c.weights[rank],
            c.row_best[rank],
            c.row_choice[rank],
            c.column_best[rank],
            c.column_choice[rank],
        ),
        Solver(
            d.row_mate[rank],
            d.column_mate[rank],
            d.row_dual[rank],
            d.column_dual[rank],
            d.distance[rank],
            d.reached_from[rank],
            d.reached[rank],
            d.order[rank],
        ),
        Stack(e.rows[rank], e.columns[rank], e.weights[rank]),
        Pattern(f.direct[rank], f.keys[rank], f.words[rank], f.steps[rank]),
        Lanes(g.table[rank], g.state[rank], g.tops[rank], g.lengths[rank], g.ratios[rank]),
    )
