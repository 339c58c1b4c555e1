"""The grid of ranks: who owns which vertex, and what a rank calls it.

R x C ranks, rank r C + c in row r and column c.  Vertex v is in stripe s = v mod p, p = R C, at
place v div p; the rank of that number owns it.

    row group r      the stripes with s div C = r: those of the C ranks of row r
    column group c   the stripes with s mod C = c: those of the R ranks of column c

Entry (u, v) of the matrix is kept where the row group of u meets the column group of v.  For every
fixed u - v all blocks get the same share of such entries, so bands, meshes and grids are
distributed evenly.

A rank has two groups, which have its own stripe in common.  Both are numbered by position, which
is dense and ascending in v, and computed:

    row position      place * C + s mod C       of N_R vertices
    column position   place * R + s div C       of N_C vertices

Local ids: the row group by its positions, then the rest of the column group, ascending.  There are
N_T = N_R + N_C - owned of them.  Read on in cpu.py: the same for kernels.  `Ranges`, at the end, is
the layout of Mandulak's thesis (2025, chapter 6), for comparison.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import is_integer, shown


class GridShape(NamedTuple):
    """The numbers of a `Grid` that kernels take, unsigned; the arithmetic is in cpu.py."""

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


def made(layout: str, n: int, R: int, C: int, rank: int) -> Grid:
    """The grid of that layout, "stripes" or "ranges"."""
    if layout == "stripes":
        return Grid(n, R, C, rank)
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
        numbers = (self.R, self.C, self.r, self.c, max(self.R - 1, 1), self.n_rows)
        return GridShape(*map(np.uint64, numbers))

    def size_of(self, rank: int) -> int:
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


class Ranges(Grid):
    """Row groups and column groups that are both contiguous ranges of striped numbers.

    Of the stripes s = v mod p, row group r has those with s div C = r, and column group c those
    with s div R = c.  Stripe s is in both groups of one rank, (s div C, s div R), which owns it
    here.  So only ranks near the diagonal own vertices, and when R and C differ a column gets its
    values from several ranks.  In a mesh, neighbours are in stripes near each other: most entries
    lie in the blocks near the diagonal, and other ranks have little to do.

    The methods are those of `Grid`.  Local ids: the row group, then the rest of the column group.
    """

    layout = "ranges"

    def _groups(self) -> None:
        super()._groups()
        self.owned_rows = self._row_parts[self.c]
        self.owned_columns = self._column_parts[self.r]

    def stripes_of(self, rank: int) -> range:
        r, c = divmod(rank, self.C)
        return range(max(r * self.C, c * self.R), min((r + 1) * self.C, (c + 1) * self.R))

    def size_of(self, rank: int) -> int:
        return sum((self.n - s + self.p - 1) // self.p for s in self.stripes_of(rank))

    @property
    def type(self) -> int:
        """How the thesis would number the local ids of this rank: 0, 1 or 2 (its table 6.2)."""
        if not self.stripes_of(self.rank):
            return 0
        return 1 if self.r * self.C <= self.c * self.R else 2

    @functools.cached_property
    def most_owned(self) -> int:
        return max(self.size_of(rank) for rank in range(self.p))

    @functools.cached_property
    def _row_parts(self) -> list[Any]:
        """For each rank of the row, the row positions of its vertices."""
        first = self.r * self.C
        ranks = range(first, first + self.C)
        return [_positions_of(self.n, self.p, self.C, first, self.stripes_of(k)) for k in ranks]

    @functools.cached_property
    def _column_parts(self) -> list[Any]:
        """For each rank of the column, the column positions of its vertices."""
        ranks = range(self.c, self.p, self.C)
        first = self.c * self.R
        return [_positions_of(self.n, self.p, self.R, first, self.stripes_of(k)) for k in ranks]

    # Of any vertices

    def owner(self, ids: Any) -> Any:
        stripes = ids % self.p
        return stripes // self.C * self.C + stripes // self.R

    def places(self, ids: Any) -> Any:
        stripes = ids % self.p
        low = np.maximum(stripes // self.C * self.C, stripes // self.R * self.R)
        high = np.minimum((stripes // self.C + 1) * self.C, (stripes // self.R + 1) * self.R)
        return ids // self.p * (high - low) + (stripes - low)

    def column_group(self, ids: Any) -> Any:
        return ids % self.p // self.R

    def column_position(self, ids: Any) -> Any:
        return ids // self.p * self.R + ids % self.p % self.R

    # Of this rank's vertices

    def ids_of(self, rank: int) -> Any:
        stripes = self.stripes_of(rank)
        if not stripes:
            return np.empty(0, np.int64)
        places = np.arange(-(-self.n // self.p), dtype=np.int64)
        ids = (places[:, None] * self.p + np.array(stripes)).ravel()
        return ids[ids < self.n]

    def original_columns(self) -> Any:
        places, stripes = np.divmod(np.arange(self.n_columns, dtype=np.int64), self.R)
        return places * self.p + (self.c * self.R + stripes)

    def original(self, local: Any) -> Any:
        return self.original_local()[np.asarray(local)]

    def original_local(self) -> Any:
        others = np.delete(self.original_columns(), self.owned_columns)
        return np.concatenate([self.original_rows(), others])

    def _columns_to_local(self) -> Any:
        found = np.empty(self.n_columns, np.int64)
        mine = np.zeros(self.n_columns, np.bool_)
        mine[self.owned_columns] = True
        found[mine] = self.owned_rows
        found[~mine] = self.n_rows + np.arange(self.n_columns - self.owned)
        return found

    # Arrays over a group

    def split_rows(self, values: Any) -> list[Any]:
        return [values[part] for part in self._row_parts]

    def join_rows(self, parts: list[Any], out: Any) -> Any:
        for at, part in zip(self._row_parts, parts, strict=True):
            out[at] = part
        return out

    def join_columns(self, parts: list[Any], out: Any) -> Any:
        for at, part in zip(self._column_parts, parts, strict=True):
            out[at] = part
        return out

    def row_owner(self, positions: Any) -> tuple[Any, Any]:
        ids = positions // self.C * self.p + (self.r * self.C + positions % self.C)
        return self.owner(ids) - self.r * self.C, self.places(ids)

    def columns_of(self, r: Any, places: Any) -> Any:
        return _looked_up(self._column_parts, r, places)

    def rows_of(self, c: Any, places: Any) -> Any:
        return _looked_up(self._row_parts, c, places)


def _positions_of(n: int, p: int, width: int, first: int, stripes: range) -> Any:
    """Positions, by place, of the vertices of some stripes in a group.

    The group has `width` stripes, from `first` on; there are n vertices in p stripes.
    """
    if not stripes:
        return np.empty(0, np.int64)
    places = np.arange(-(-n // p), dtype=np.int64)[:, None]
    inside = (places * p + np.array(stripes)) < n
    positions = places * width + (np.array(stripes) - first)
    return positions[inside]


def _looked_up(parts: list[Any], ranks: Any, places: Any) -> Any:
    firsts = np.cumsum([0] + [part.size for part in parts])
    return np.concatenate(parts)[firsts[ranks] + places]
