"""What a call on `Devices` reports besides its answer: data moved and seconds of each round."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

PHASES = ("pointing", "matching", "exchange", "transfer", "waiting")


@dataclass
class RoundStats:
    """One round.

    Attributes
    ----------
    pointed : int
        Vertices that chose anew.
    entries : int
        Entries of the graph that travelled to the devices.
    rows : int
        Rows that travelled again because their list had run out.
    bytes_up, bytes_down : int
        From the host to the devices, and back.
    words_exchanged : int
        Words that a device received from the others; of the device that received most.
    seconds : dict
        By phase; empty unless ``stats=True``.
    """

    pointed: int = 0
    entries: int = 0
    rows: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    words_exchanged: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class Stats:
    """What a call on `Devices` did.

    Attributes
    ----------
    devices : tuple of int
    transport : str
        How the devices exchanged data; ``"none"`` for one partition.
    pinned : str
        How rows were sent from the host: ``"registered"`` (pinned where they are) or ``"ring"``;
        ``"none"`` where they were on the device.
    vertices, entries : int
        Of the graph.
    partitions : list of (int, int)
        First vertex of each, and the first after it.
    batches : list of int
        Batches of each partition.
    lists : int
        The most edges of a row that stayed on the device.
    resident : bool
        The rows stayed on the devices too.
    memory : list of int
        Most bytes that each partition held.
    first_pass : float
        Seconds until all rows had passed for the first time; 0 unless ``stats=True``.
    notes : list of str
        What was done otherwise than asked for, and why.
    rounds : list of RoundStats
    """

    devices: tuple[int, ...] = ()
    transport: str = "none"
    pinned: str = ""
    vertices: int = 0
    entries: int = 0
    partitions: list[tuple[int, int]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    lists: int = 0
    resident: bool = False
    memory: list[int] = field(default_factory=list)
    first_pass: float = 0.0
    notes: list[str] = field(default_factory=list)
    rounds: list[RoundStats] = field(default_factory=list)

    @property
    def entries_moved(self) -> int:
        """Entries that travelled to the devices, in all rounds."""
        return sum(one.entries for one in self.rounds)

    @property
    def graph_sizes(self) -> float:
        """The same, divided by the entries of the graph; 0 without entries."""
        return self.entries_moved / self.entries if self.entries else 0.0

    @property
    def words_exchanged(self) -> int:
        """Words that a device received from the others, in all rounds."""
        return sum(one.words_exchanged for one in self.rounds)

    def seconds(self) -> dict[str, float]:
        """Seconds by phase, of all rounds; empty unless they were measured."""
        total: dict[str, float] = {}
        for one in self.rounds:
            for phase, value in one.seconds.items():
                total[phase] = total.get(phase, 0.0) + value
        return total

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, lists and dictionaries, for JSON."""
        found = asdict(self)
        found["devices"] = list(self.devices)
        found["partitions"] = [list(ends) for ends in self.partitions]
        found["graph_sizes"] = self.graph_sizes
        found["words_exchanged"] = self.words_exchanged
        return found


def new_round(stats: Stats) -> RoundStats:
    """Counts of a round, or of a step, that begins now."""
    stats.rounds.append(RoundStats())
    return stats.rounds[-1]
