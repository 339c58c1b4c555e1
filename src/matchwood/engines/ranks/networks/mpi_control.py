"""Notices by MPI, on a communicator of their own; read control.py first.

A receive for any sender is always open.  Sends are started and forgotten: a notice is so short that
the library takes it at once.
"""

from __future__ import annotations

from typing import Any

from matchwood.engines.ranks.networks.control import NOTICE_BYTES, Control

_abandoned: list[Any] = []
"""Arrays, requests and communicators of operations that never end: MPI may still write to them."""


class MpiControl(Control):
    """Notices by `comm`, which nobody else uses."""

    def __init__(self, MPI: Any, comm: Any) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self._mpi = MPI
        self._comm = comm
        self._owned: list[Any] = []
        self._buffer = bytearray(NOTICE_BYTES)
        self._status = MPI.Status()
        self._sent: list[tuple[Any, bytes]] = []
        self._receive = self._listen()

    def own(self, comm: Any) -> None:
        """A communicator that `finish` frees."""
        self._owned.append(comm)

    def _listen(self) -> Any:
        MPI = self._mpi
        return self._comm.Irecv([self._buffer, MPI.BYTE], source=MPI.ANY_SOURCE)

    def look(self) -> None:
        while self._receive.Test(self._status):
            text = bytes(self._buffer[: self._status.Get_count(self._mpi.BYTE)])
            self._receive = self._listen()
            self.hear(text)

    def send(self, rank: int, notice: bytes) -> None:
        self._sent = [(request, text) for request, text in self._sent if not request.Test()]
        request = self._comm.Isend([notice, self._mpi.BYTE], dest=rank)
        self._sent.append((request, notice))

    def _stop_listening(self) -> None:
        if not self._receive.Test():
            self._receive.Cancel()
            self._receive.Wait()

    def finish(self) -> None:
        self._mpi.Request.Waitall([request for request, _ in self._sent])
        self._stop_listening()
        for comm in [*self._owned, self._comm]:
            comm.Free()

    def abandon(self, held: Any) -> None:
        self._stop_listening()
        _abandoned.append((held, self._sent, self._owned, self._comm))
