"""A communicator of one rank: what `world` gives a program that was started alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood.arguments import count
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import failure_of
from matchwood.engines.ranks.protocol import Communicator, Session
from matchwood.engines.ranks.traffic import Traffic


class Serial(Communicator):
    """One rank; every operation returns a copy of what it was given."""

    kind = "serial"

    def __init__(
        self, threads: int = 1, session: Session | None = None, traffic: Traffic | None = None
    ) -> None:
        count("Serial", "threads", threads, 1)
        super().__init__(0, 1, threads, Session() if session is None else session, traffic)

    def raw_compare(self, operation: str, *details: Any) -> None:
        pass

    def raw_barrier(self) -> None:
        pass

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        return [text]

    def raw_lengths(self, length: int) -> Counts:
        return np.array([length], np.int64)

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        return sends, int(sends[0])

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        return array.copy()

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        return array.copy()

    def raw_broadcast(self, array: Any, root: int) -> Any:
        return array.copy()

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        return array.copy()

    def raw_allreduce(self, array: Any, op: str) -> Any:
        return array.copy()

    def raw_fail(self, error: BaseException) -> None:
        self.session.failure = failure_of(0, error)
        self.session.closed = True

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        if color is None:
            return None
        return Serial(self.threads, self.session, Traffic(self.traffic))
