"""The layout of Mandulak's thesis (2025, chapter 6), for comparison.

Row groups and column groups are both contiguous ranges of striped numbers: of the stripes
s = v mod p, row group r has those with s div C = r, and column group c those with s div R = c.
Stripe s is in both groups of one rank, (s div C, s div R), which owns it here.  So only ranks near
the diagonal own vertices, and when R and C differ a column gets its values from several ranks.
In a mesh, neighbours are in stripes near each other: most entries lie in the blocks near the
diagonal, and other ranks have little to do.

The same methods as `Grid`.  Local ids: the row group, then the rest of the column group.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.engines.ranks.grid import Grid, positions_of


class Ranges(Grid):
    """The ranges of n vertices on R x C ranks, seen from one rank."""

    layout = "ranges"

    def _groups(self) -> None:
        self.row_counts = [self.size_of(self.r * self.C + c) for c in range(self.C)]
        self.column_counts = [self.size_of(r * self.C + self.c) for r in range(self.R)]
        self.n_rows, self.n_columns = sum(self.row_counts), sum(self.column_counts)
        self.owned_rows = self._row_parts[self.c]
        self.owned_columns = self._column_parts[self.r]

    def stripes_of(self, rank: int) -> range:
        """The stripes that a rank owns."""
        r, c = divmod(rank, self.C)
        return range(max(r * self.C, c * self.R), min((r + 1) * self.C, (c + 1) * self.R))

    def size_of(self, rank: int) -> int:
        """How many vertices a rank owns."""
        return sum((self.n - s + self.p - 1) // self.p for s in self.stripes_of(rank))

    @property
    def type(self) -> int:
        """How the thesis would number the local ids of this rank: 0, 1 or 2 (its table 6.2)."""
        if not self.stripes_of(self.rank):
            return 0
        return 1 if self.r * self.C <= self.c * self.R else 2

    @functools.cached_property
    def most_owned(self) -> int:
        """Vertices of the rank that owns most."""
        return max(self.size_of(rank) for rank in range(self.p))

    @functools.cached_property
    def _row_parts(self) -> list[Any]:
        """For each rank of the row, the row positions of its vertices."""
        first = self.r * self.C
        ranks = range(first, first + self.C)
        return [positions_of(self.n, self.p, self.C, first, self.stripes_of(k)) for k in ranks]

    @functools.cached_property
    def _column_parts(self) -> list[Any]:
        """For each rank of the column, the column positions of its vertices."""
        ranks = range(self.c, self.p, self.C)
        first = self.c * self.R
        return [positions_of(self.n, self.p, self.R, first, self.stripes_of(k)) for k in ranks]

    # Of any vertices

    def owner(self, ids: Any) -> Any:
        """The rank that owns each vertex."""
        stripes = ids % self.p
        return stripes // self.C * self.C + stripes // self.R

    def places(self, ids: Any) -> Any:
        """The place of each vertex at its owner."""
        stripes = ids % self.p
        low = np.maximum(stripes // self.C * self.C, stripes // self.R * self.R)
        high = np.minimum((stripes // self.C + 1) * self.C, (stripes // self.R + 1) * self.R)
        return ids // self.p * (high - low) + (stripes - low)

    def column_group(self, ids: Any) -> Any:
        """The column of the grid that keeps the columns of these vertices."""
        return ids % self.p // self.R

    def column_position(self, ids: Any) -> Any:
        """The position of each vertex in its column group."""
        return ids // self.p * self.R + ids % self.p % self.R

    def row_position(self, ids: Any) -> Any:
        """The position of each vertex in its row group."""
        return ids // self.p * self.C + ids % self.p % self.C

    # Of this rank's vertices

    def ids_of(self, rank: int) -> Any:
        """The ids of the vertices that a rank owns, by place."""
        stripes = self.stripes_of(rank)
        if not stripes:
            return np.empty(0, np.int64)
        places = np.arange(-(-self.n // self.p), dtype=np.int64)
        ids = (places[:, None] * self.p + np.array(stripes)).ravel()
        return ids[ids < self.n]

    def original_columns(self) -> Any:
        """The ids of the column group, by position."""
        places, stripes = np.divmod(np.arange(self.n_columns, dtype=np.int64), self.R)
        return places * self.p + (self.c * self.R + stripes)

    def original(self, local: Any) -> Any:
        """The ids of an array of local ids."""
        return self.original_local()[np.asarray(local)]

    def original_local(self) -> Any:
        """The ids of all local ids."""
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
        """For each rank of the row: its part of an array over the row group."""
        return [values[part] for part in self._row_parts]

    def join_rows(self, parts: list[Any], out: Any) -> Any:
        """`out` over the row group, filled with the part of each rank of the row."""
        for at, part in zip(self._row_parts, parts, strict=True):
            out[at] = part
        return out

    def join_columns(self, parts: list[Any], out: Any) -> Any:
        """`out` over the column group, filled with the part of each rank of the column."""
        for at, part in zip(self._column_parts, parts, strict=True):
            out[at] = part
        return out

    def row_owner(self, positions: Any) -> tuple[Any, Any]:
        """For positions of the row group: the owner's number within the row, and the place."""
        ids = positions // self.C * self.p + (self.r * self.C + positions % self.C)
        return self.owner(ids) - self.r * self.C, self.places(ids)

    def columns_of(self, r: Any, places: Any) -> Any:
        """Column positions of the places of rank r of the column."""
        return _looked_up(self._column_parts, r, places)

    def rows_of(self, c: Any, places: Any) -> Any:
        """Row positions of the places of rank c of the row."""
        return _looked_up(self._row_parts, c, places)


def _looked_up(parts: list[Any], ranks: Any, places: Any) -> Any:
    firsts = np.cumsum([0] + [part.size for part in parts])
    return np.concatenate(parts)[firsts[ranks] + places]
