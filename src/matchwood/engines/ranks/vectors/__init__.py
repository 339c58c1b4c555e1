"""Values of the vertices, spread over ranks: every rank has those of the vertices it owns."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.vectors.files import write_npy


class DistributedVector:
    """One value for each vertex; a rank has those of the vertices it owns.

    Attributes
    ----------
    grid, comm : Grid, Communicator
    local : array
        The values of own vertices, in the order of `ids`.
    n : int
        Vertices of all ranks.
    """

    def __init__(self, grid: Any, comm: Any, local: Any, order: Any = None) -> None:
        if not isinstance(getattr(local, "shape", None), tuple) or not local.shape:
            kind = type(local).__name__
            raise TypeError(f"DistributedVector: local must be an array, got {kind}")
        if local.shape[0] != grid.owned:
            raise ValueError(
                f"DistributedVector: local must have {grid.owned} values, got {local.shape[0]}"
            )
        self.grid, self.comm, self.local, self.order = grid, comm, local, order

    def __repr__(self) -> str:
        where = f"rank {self.comm.rank} of {self.comm.size} has {self.local.shape[0]}"
        return f"<DistributedVector: {self.n} values, {self.dtype}, {where}>"

    @property
    def n(self) -> int:
        """Values of all ranks."""
        return int(self.grid.n)

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return self.local.dtype

    @property
    def ids(self) -> Any:
        """The vertices that this rank owns, as the user numbers them."""
        inside = self.grid.original_owned()
        return inside if self.order is None else self.order.user(inside)

    def gather(self, root: int | None = 0) -> Any:
        """All values in the order of the vertices, on rank `root`; None on the others.

        ``root=None`` gathers on all ranks.  Every rank calls it.
        """
        self._agree("gather", root=root)
        if root is not None:
            root = checks.rank("gather", "root", root, self.comm.size)
        local = engines.moved(self.local, "cpu")
        if root is None:
            flat, _ = self.comm.allgatherv(local)
        else:
            counts = [0] * self.comm.size
            counts[root] = int(local.shape[0])
            flat, _ = self.comm.alltoallv(local, counts)
            if self.comm.rank != root:
                return None
        out = np.empty(self.n, local.dtype)
        inside = np.concatenate([self.grid.ids_of(rank) for rank in range(self.grid.p)])
        out[inside if self.order is None else self.order.user(inside)] = flat
        return out

    def save(self, path: Any) -> None:
        """Write one ordinary ``.npy`` file, of all values in the order of the vertices.

        Every rank writes a range of it, so all must see the same file system.
        """
        from matchwood.engines.ranks.exchanges.agreement import (
            together,  # not above: it imports this file
        )

        path = together(self.comm, lambda: arguments.path("save", "path", path))
        self._agree("save", path=path)
        lo, values = self._range()
        write_npy(self.comm, path, values, lo, self.n)

    def _agree(self, caller: str, **given: Any) -> None:
        """Raise on all ranks unless these arguments are the same on all of them."""
        from matchwood.engines.ranks.agreement import same  # not above: it imports this file

        same(self.comm, caller, **given)

    def _range(self) -> tuple[int, Any]:
        """The first vertex of this rank's range, and the values of the range."""
        local = np.ascontiguousarray(engines.moved(self.local, "cpu"))
        size = self.comm.size
        bounds = np.array([self.n * k // size for k in range(size + 1)])
        ids = self.ids
        by_id = np.argsort(ids)
        ids, local = ids[by_id], local[by_id]
        ends = np.searchsorted(ids, bounds)
        counts = np.diff(ends).tolist()
        places, _ = self.comm.alltoallv(ids, counts)
        values, _ = self.comm.alltoallv(local, counts)
        lo, hi = int(bounds[self.comm.rank]), int(bounds[self.comm.rank + 1])
        out = np.empty(hi - lo, local.dtype)
        out[places - lo] = values
        return lo, out
