"""What a rank sends and receives, counted."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Count:
    """The traffic of one kind of operation."""

    calls: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    messages: int = 0


@dataclass
class Traffic:
    """What one rank received from others and sent to others through a communicator.

    Bytes are those of the arrays, as an exchange without detours moves them: whatever a library
    does in between, the numbers are the same on every machine.

    ==================  ==================================================================
    reduce_scatter      (size - 1) x the rank's own elements
    allgather(v)        what the others had
    alltoallv           what the others had for this rank
    allreduce           2 (size - 1) / size x the elements
    broadcast           the elements, on all ranks but the root
    objects             the bytes of the pickled objects of the others
    ==================  ==================================================================

    Messages are those that the rank sends: one to each other rank it has something for, and one
    more to each where lengths are exchanged beforehand (alltoallv, allgatherv, objects).

    Attributes
    ----------
    bytes_received, bytes_sent, messages : int
        Sums over all operations, those of communicators that were split off included.
    by_operation : dict
        The same for each operation: a `Count`.
    """

    parent: Traffic | None = None
    bytes_received: int = 0
    bytes_sent: int = 0
    messages: int = 0
    by_operation: dict[str, Count] = field(default_factory=dict)

    def add(self, operation: str, received: int, sent: int, messages: int) -> None:
        """Count a call of `operation`, here and in the communicator this one was split from."""
        self.bytes_received += received
        self.bytes_sent += sent
        self.messages += messages
        count = self.by_operation.get(operation)
        if count is None:
            count = self.by_operation[operation] = Count()
        count.calls += 1
        count.bytes_received += received
        count.bytes_sent += sent
        count.messages += messages
        if self.parent is not None:
            self.parent.add(operation, received, sent, messages)

    def clear(self) -> None:
        """Count from zero again; what a split has counted in its parent is not taken back."""
        self.bytes_received = self.bytes_sent = self.messages = 0
        self.by_operation.clear()
