"""The grid of ranks: who owns which vertex, and what a rank calls it.

R x C ranks, rank r C + c in row r and column c.  Vertex v is in stripe s = v mod p, p = R C, at
place v div p; the rank of that number owns it.

    row group r      the stripes with s div C = r: those of the C ranks of row r
    column group c   the stripes with s mod C = c: those of the R ranks of column c

Entry (u, v) of the matrix is kept where the row group of u meets the column group of v.  For every
fixed u - v all blocks get the same share of such entries, so bands, meshes and grids are spread
evenly.

A rank has two groups, which have its own stripe in common.  Both are numbered by position, which
is dense and ascending in v, and computed:

    row position      place * C + s mod C       of N_R vertices
    column position   place * R + s div C       of N_C vertices

Local ids: the row group by its positions, then the rest of the column group, ascending.  There are
N_T = N_R + N_C - owned of them.  Read on in cpu.py (the same for kernels) and ranges.py (the
layout of the paper, for comparison).
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import is_integer, shown


class GridShape(NamedTuple):
    """What kernels take of a `Grid`, unsigned; the arithmetic is in cpu.py."""

    R: Any
    C: Any
    r: Any
    c: Any
    others: Any  # R - 1, at least 1
    rows: Any  # N_R: local ids from here on are of the column group alone


def nearest_square(p: int) -> tuple[int, int]:
    """R and C with R C = p, as close to each other as can be, R at most C."""
    R = math.isqrt(p)
    while p % R:
        R -= 1
    return R, p // R


def parsed(caller: str, grid: Any, p: int) -> tuple[int, int]:
    """R and C of "RxC", of a pair, or of None: nearest to square."""
    if grid is None:
        return nearest_square(p)
    sides: tuple[Any, ...]
    if isinstance(grid, str):
        match = re.fullmatch(r"([0-9]{1,18})x([0-9]{1,18})", grid.strip())
        if match is None:
            raise ValueError(f"{caller}: grid must be like '4x2', got {shown(grid)}")
        sides = tuple(int(side) for side in match.groups())
    elif isinstance(grid, (tuple, list)) and len(grid) == 2:
        sides = tuple(grid)
    else:
        raise TypeError(f"{caller}: grid must be like '4x2', a pair or None, got {shown(grid)}")
    for side in sides:
        if not is_integer(side):
            raise TypeError(f"{caller}: grid must hold two integers, got {shown(grid)}")
    R, C = (int(side) for side in sides)
    if R < 1 or C < 1 or R * C != p:
        got = f"{shown(R)}x{shown(C)}"
        raise ValueError(f"{caller}: grid must have as many places as ranks, {p}, got {got}")
    return R, C


def positions_of(n: int, p: int, width: int, first: int, stripes: range) -> Any:
    """Positions, by place, of the vertices of some stripes in a group.

    The group has `width` stripes, from `first` on; there are n vertices in p stripes.
    """
    if not stripes:
        return np.empty(0, np.int64)
    places = np.arange(-(-n // p), dtype=np.int64)[:, None]
    inside = (places * p + np.array(stripes)) < n
    positions = places * width + (np.array(stripes) - first)
    return positions[inside]


def made(layout: str, n: int, R: int, C: int, rank: int) -> Grid:
    """The grid of that layout, "stripes" or "ranges"."""
    if layout == "stripes":
        return Grid(n, R, C, rank)
    from matchwood.engines.ranks.grid.ranges import Ranges

    return Ranges(n, R, C, rank)


class Grid:
    """The stripes of n vertices on R x C ranks, seen from one rank.

    Attributes
    ----------
    n, R, C, rank, p, r, c : int
        `r` and `c` are this rank's row and column.
    owned, n_rows, n_columns, n_local : int
        Sizes: own vertices, row group (N_R), column group (N_C), local ids (N_T).
    owned_rows, owned_columns : slice, or an array of positions in another layout
        Where own vertices are in an array over the row group or the column group.
    """

    layout = "stripes"

    def __init__(self, n: int, R: int, C: int, rank: int) -> None:
        self.n, self.R, self.C, self.rank = int(n), int(R), int(C), int(rank)
        self.p = self.R * self.C
        self.r, self.c = divmod(self.rank, self.C)
        self.owned = self.size_of(self.rank)
        self._groups()
        self.n_local = self.n_rows + self.n_columns - self.owned
        self._to_local: Any = None

    def _groups(self) -> None:
        """Sizes of the two groups, and where own vertices are in them."""
        self.row_counts = [self.size_of(self.r * self.C + c) for c in range(self.C)]
        self.column_counts = [self.size_of(r * self.C + self.c) for r in range(self.R)]
        self.n_rows, self.n_columns = sum(self.row_counts), sum(self.column_counts)
        self.owned_rows: Any = slice(self.c, None, self.C)
        self.owned_columns: Any = slice(self.r, None, self.R)

    def __repr__(self) -> str:
        return f"<Grid {self.R}x{self.C}: {self.n} vertices, rank {self.rank} owns {self.owned}>"

    @property
    def name(self) -> str:
        """Like "4x2"."""
        return f"{self.R}x{self.C}"

    @property
    def shape(self) -> GridShape:
        """What kernels take."""
        numbers = (self.R, self.C, self.r, self.c, max(self.R - 1, 1), self.n_rows)
        return GridShape(*map(np.uint64, numbers))

    def size_of(self, rank: int) -> int:
        """How many vertices a rank owns."""
        return (self.n - rank + self.p - 1) // self.p

    @property
    def most_owned(self) -> int:
        """Vertices of the rank that owns most."""
        return self.size_of(0)

    # Of any vertices, by arithmetic on arrays or numbers

    def owner(self, ids: Any) -> Any:
        """The rank that owns each vertex."""
        return ids % self.p

    def places(self, ids: Any) -> Any:
        """The place of each vertex at its owner."""
        return ids // self.p

    def row_group(self, ids: Any) -> Any:
        """The row of the grid that keeps the rows of these vertices."""
        return ids % self.p // self.C

    def column_group(self, ids: Any) -> Any:
        """The column of the grid that keeps the columns of these vertices."""
        return ids % self.C

    def row_position(self, ids: Any) -> Any:
        """The position of each vertex in its row group."""
        return ids // self.p * self.C + ids % self.C

    def column_position(self, ids: Any) -> Any:
        """The position of each vertex in its column group."""
        return ids // self.p * self.R + ids % self.p // self.C

    def keeper(self, u: Any, v: Any) -> Any:
        """The rank that keeps entry (u, v)."""
        return self.row_group(u) * self.C + self.column_group(v)

    # Of this rank's vertices

    def original_owned(self) -> Any:
        """The ids of own vertices, by place."""
        return self.ids_of(self.rank)

    def ids_of(self, rank: int) -> Any:
        """The ids of the vertices that a rank owns, by place."""
        return np.arange(rank, self.n, self.p, dtype=np.int64)

    def original_rows(self) -> Any:
        """The ids of the row group, by position."""
        places, stripes = np.divmod(np.arange(self.n_rows, dtype=np.int64), self.C)
        return places * self.p + (self.r * self.C + stripes)

    def original_columns(self) -> Any:
        """The ids of the column group, by position."""
        places, stripes = np.divmod(np.arange(self.n_columns, dtype=np.int64), self.R)
        return places * self.p + (stripes * self.C + self.c)

    def original(self, local: Any) -> Any:
        """The ids of an array of local ids."""
        local = np.asarray(local, np.int64)
        of_rows = local < self.n_rows
        places, stripes = np.divmod(local, self.C)
        rows = places * self.p + (self.r * self.C + stripes)
        if self.R == 1:
            return rows
        places, stripes = np.divmod(local - self.n_rows, self.R - 1)
        stripes += stripes >= self.r
        return np.where(of_rows, rows, places * self.p + (stripes * self.C + self.c))

    def original_local(self) -> Any:
        """The ids of all local ids.  By stripes: NumPy divides slowly."""
        ids = np.empty(self.n_local, np.int64)
        for c in range(self.C):
            ids[c : self.n_rows : self.C] = self.ids_of(self.r * self.C + c)
        others = [r for r in range(self.R) if r != self.r]
        for k, r in enumerate(others):
            ids[self.n_rows + k :: len(others)] = self.ids_of(r * self.C + self.c)
        return ids

    @property
    def columns_to_local(self) -> Any:
        """The local id of each vertex of the column group, by position; read-only."""
        if self._to_local is None:
            self._to_local = engines.frozen(self._columns_to_local())
        return self._to_local

    def _columns_to_local(self) -> Any:
        local = np.empty(self.n_columns, np.int64)
        for r in range(self.R):
            first, step = self.n_rows + r - (r > self.r), self.R - 1
            if r == self.r:
                first, step = self.c, self.C
            part = local[r :: self.R]
            part[:] = np.arange(first, first + part.size * step, step)
        return local

    # Arrays over a group, and what each rank of the group owns of it

    def split_rows(self, values: Any) -> list[Any]:
        """For each rank of the row: its part of an array over the row group."""
        return [values[c :: self.C] for c in range(self.C)]

    def join_rows(self, parts: list[Any], out: Any) -> Any:
        """`out` over the row group, filled with the part of each rank of the row."""
        for c, part in enumerate(parts):
            out[c :: self.C] = part
        return out

    def join_columns(self, parts: list[Any], out: Any) -> Any:
        """`out` over the column group, filled with the part of each rank of the column."""
        for r, part in enumerate(parts):
            out[r :: self.R] = part
        return out

    def row_owner(self, positions: Any) -> tuple[Any, Any]:
        """For positions of the row group: the owner's number within the row, and the place."""
        return positions % self.C, positions // self.C

    def columns_of(self, r: Any, places: Any) -> Any:
        """Column positions of the places of rank r of the column."""
        return places * self.R + r

    def rows_of(self, c: Any, places: Any) -> Any:
        """Row positions of the places of rank c of the row."""
        return places * self.C + c
