"""The communicator of a rank that is a thread.  Read hall.py first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import failure_of
from matchwood.engines.ranks.networks.lending import Lent
from matchwood.engines.ranks.networks.staging import settle
from matchwood.engines.ranks.protocol import Communicator, Session, collective
from matchwood.engines.ranks.threads.hall import Group, Hall
from matchwood.engines.ranks.traffic import Traffic

COPIED_BYTES = 1 << 16  # of an array that is copied so that its owner need not wait


class Threads(Communicator):
    """A rank that is a thread; `run` makes them."""

    kind = "threads"

    def __init__(
        self,
        hall: Hall,
        group: Group,
        rank: int,
        threads: int,
        session: Session,
        traffic: Traffic | None = None,
    ) -> None:
        super().__init__(rank, len(group.members), threads, session, traffic)
        self._hall = hall
        self._group = group
        self._number = 0
        self._call: tuple[Any, ...] = ()
        self._starts: Any = None  # where the runs for this rank begin; set by `raw_table`

    def raw_compare(self, operation: str, *details: Any) -> None:
        # compared when all have come; an array is no part of a comparison
        plain = tuple(d.tolist() if isinstance(d, np.ndarray) else d for d in details)
        self._call = (operation, *plain)

    def _meet(self, thing: Any) -> list[Any]:
        self._number += 1
        patience = self.session.timeout
        return self._hall.meet(self._group, self._number, self.rank, self._call, thing, patience)

    def _read(self, array: Any, read: Callable[[list[Any]], Any]) -> Any:
        """What `read` makes of the arrays of all ranks; nobody changes them meanwhile."""
        copied = array is None or array.nbytes <= COPIED_BYTES
        brought = array if array is None or not copied else array.copy()
        settle(brought)
        together = self._meet((copied, brought))
        result = read([each for _, each in together])
        if not all(each for each, _ in together):
            settle(result)
            self._meet(None)
        return result

    @collective
    def lend(self, arrays: Sequence[Any]) -> Lent | None:
        self.raw_compare("lend")
        for array in arrays:
            settle(array)
        found = self._meet(list(arrays))
        devices = {str(array.device) for each in found for array in each}
        return Lent(found) if len(devices) == 1 else None

    def raw_barrier(self) -> None:
        self._meet(None)

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        return self._meet(text)

    def raw_lengths(self, length: int) -> Counts:
        return np.array(self._meet(length), np.int64)

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        table = np.array(self._meet(sends))
        self._starts = (np.cumsum(table, axis=1) - table)[:, self.rank]
        return table[:, self.rank].copy(), int(table.sum())

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        return self._read(array, lambda arrays: _joined(array, arrays))

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        ends = self._starts + receives  # of the runs for this rank in the arrays of all

        def read(arrays: list[Any]) -> Any:
            runs = zip(arrays, self._starts.tolist(), ends.tolist(), strict=True)
            return _joined(array, [theirs[lo:hi] for theirs, lo, hi in runs])

        return self._read(array, read)

    def raw_broadcast(self, array: Any, root: int) -> Any:
        return self._read(array, lambda arrays: arrays[root].copy())

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        start = int(counts[: self.rank].sum())
        own = slice(start, start + int(counts[self.rank]))
        return self._read(array, lambda arrays: checks.reduced([a[own] for a in arrays], op))

    def raw_allreduce(self, array: Any, op: str) -> Any:
        if array.nbytes <= COPIED_BYTES:
            return self._read(array, lambda arrays: checks.reduced(arrays, op))
        counts = checks.even_shares(array.size, self.size)
        own = self.raw_reduce_scatter(array, counts, op)
        settle(own)
        return _joined(array, self._meet(own))  # nobody changes `own`: it need not be read at once

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        # all ranks of a color must hold one group: that of the first of them
        group = None
        if color is not None and ranks[0] == self.rank:
            group = Group([self._group.members[rank] for rank in ranks])
        groups = self._meet(group)
        if color is None:
            return None
        place = ranks.index(self.rank)
        traffic = Traffic(self.traffic)
        return Threads(self._hall, groups[ranks[0]], place, self.threads, self.session, traffic)

    def raw_close(self) -> None:
        self._call = ("close",)
        try:
            self._meet(None)
        finally:
            self._end()

    def raw_fail(self, error: BaseException) -> None:
        self._hall.fail(failure_of(self._group.members[self.rank], error))
        self._end()

    def _end(self) -> None:
        self.session.closed = True
        self.session.failure = self._hall.failure


def _joined(like: Any, arrays: Sequence[Any]) -> Any:
    return checks.module_of(like).concatenate(arrays)
