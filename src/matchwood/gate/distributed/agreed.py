"""What the ranks' shares must have in common, looked at before anything is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.ranks.agreement import together
from matchwood.gate.distributed.given import Share
from matchwood.gate.distributed.sources import Source, of_arrays
from matchwood.gate.inputs import MOST_VERTICES


class Agreed:
    """The facts of all ranks' shares: all ranks have the same, or all raise the same error.

    Attributes
    ----------
    n : int
    edges : bool
        Edges of a list, not entries of a matrix.
    duplicates : str or None
        The rule that a Graph came with.
    kind : dtype or None
        Of the values.
    engine : {"cpu", "gpu"}
        Where the shares lie.
    """

    def __init__(self, comm: Any, share: Share, n: int | None, caller: str) -> None:
        self.comm, self.caller = comm, caller
        mine = share._asdict()
        ends = [int(end) for a in (share.u, share.v) if a.size for end in (a.min(), a.max())]
        mine["least"], mine["most"] = min(ends, default=0), max(ends, default=-1)
        mine["entries"] = int(share.u.size)
        mine["values"] = None if share.data is None else share.data.dtype.str
        for name in ("u", "v", "data"):
            del mine[name]
        self.shares = list(comm.objects(mine))
        self.given = [each for each in self.shares if each["kind"] != "none"]
        if not self.given and n is None:
            raise ValueError(f"{caller}: A must be given on one rank at least, got None on all")
        self._one_kind()
        self.n = self._vertices(n)
        self.kind = self._values()
        self.edges = any(each["edges"] for each in self.given)
        self.duplicates = next((each["duplicates"] for each in self.given), None)
        self.first_row = sum(each["rows"] for each in self.shares[: comm.rank])

    def _ranks(self, name: str, value: Any) -> str:
        ranks = [str(k) for k, each in enumerate(self.shares) if each[name] == value]
        return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(ranks)}"

    def _one_of(self, name: str, what: str, among: list[Any]) -> Any:
        """The value of a fact that must be the same on all ranks."""
        values = list(dict.fromkeys(each[name] for each in among))
        if len(values) > 1:
            told = " and ".join(f"{value} on {self._ranks(name, value)}" for value in values[:2])
            raise ValueError(f"{self.caller}: {what} must be the same on all ranks, got {told}")
        return values[0] if values else None

    def _one_kind(self) -> None:
        kind = self._one_of("kind", "the kind of A", self.given)
        self.engine = self._one_of("place", "the device of A", self.given) or "cpu"
        if kind == "graph" and len(self.given) > 1:
            raise ValueError(
                f"{self.caller}: a whole graph must be given on one rank and None on the others, "
                f"got one on {self._ranks('kind', 'graph')}"
            )

    def _vertices(self, n: int | None) -> int:
        named = [each for each in self.given if each["n"] is not None]
        size = self._one_of("n", "the number of vertices", named)
        if size is not None and n is not None and size != n:
            raise ValueError(f"{self.caller}: n must be that of A, {size}, got {n}")
        size = n if size is None else size
        if size is None:
            size = max((each["most"] for each in self.shares), default=-1) + 1
        if not 0 <= size <= MOST_VERTICES:
            raise ValueError(
                f"{self.caller}: the number of vertices must be within 0..2**62, got {size}"
            )
        rows = sum(each["rows"] for each in self.given)
        if self.given and self.given[0]["kind"] == "rows" and rows != size:
            raise ValueError(
                f"{self.caller}: the rows of all ranks together must be as many as columns, "
                f"{size}, got {rows}"
            )
        return int(size)

    def _values(self) -> Any:
        with_entries = [each for each in self.given if each["entries"]] or self.given
        text = self._one_of("values", "the dtype of the weights", with_entries)
        return None if text is None else np.dtype(text)

    def source(self, share: Share) -> Source:
        """This rank's entries in the user's ids; all raise where one is out of range."""

        def check() -> None:
            bad = self.shares[self.comm.rank]
            if bad["least"] < 0 or bad["most"] >= self.n:
                wrong = (share.u < 0) | (share.u >= self.n) | (share.v < 0) | (share.v >= self.n)
                at = int(wrong.argmax())
                raise ValueError(
                    f"{self.caller}: edges must join vertices 0..{self.n - 1}, "
                    f"got {(int(share.u[at]), int(share.v[at]))} as edge {at}"
                )

        together(self.comm, check)
        u = share.u
        if share.kind == "rows" and self.first_row:
            u = u.astype(np.int64) + self.first_row
        data = share.data
        if self.kind is not None and (data is None or not u.size):
            data = np.empty(0, self.kind)
        return of_arrays(u, share.v, data, self.kind)
