"""The nine quantities of a traffic matrix, and how many links or addresses attain each maximum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import integers, plain


@dataclass(frozen=True)
class Statistics:
    """The nine quantities of traffic, and how often each maximum is attained.

    With A(i, j) packets from source i to destination j.  An empty matrix has zeros only.
    """

    valid_packets: int = 0  # sum of A
    unique_links: int = 0  # entries of A
    max_link_packets: int = 0  # largest A(i, j)
    unique_sources: int = 0  # rows with an entry
    max_source_packets: int = 0  # largest sum of a row
    max_source_fan_out: int = 0  # most entries of a row
    unique_destinations: int = 0  # columns with an entry
    max_destination_packets: int = 0  # largest sum of a column
    max_destination_fan_in: int = 0  # most entries of a column
    links_at_max_packets: int = 0
    sources_at_max_packets: int = 0
    sources_at_max_fan_out: int = 0
    destinations_at_max_packets: int = 0
    destinations_at_max_fan_in: int = 0

    def nine(self) -> dict[str, int]:
        """The nine quantities by name."""
        return {name: getattr(self, name) for name in NINE}

    def as_dict(self) -> dict[str, int]:
        """All numbers by name."""
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(field.name for field in fields(Statistics))
NINE = NAMES[:9]
EXTREMES = (  # a maximum, and how often it is attained
    ("max_link_packets", "links_at_max_packets"),
    ("max_source_packets", "sources_at_max_packets"),
    ("max_source_fan_out", "sources_at_max_fan_out"),
    ("max_destination_packets", "destinations_at_max_packets"),
    ("max_destination_fan_in", "destinations_at_max_fan_in"),
)
REFERENCE_NAMES = {  # what the reference of the Anonymized Network Sensing Graph Challenge says
    "valid_packets": "n_packets",
    "unique_links": "n_links",
    "max_link_packets": "max_packets",
    "unique_sources": "n_sources",
    "max_source_packets": "max_source_packets",
    "max_source_fan_out": "max_fan_out",
    "unique_destinations": "n_destinations",
    "max_destination_packets": "max_destination_packets",
    "max_destination_fan_in": "max_fan_in",
}
PLACE = {name: k for k, name in enumerate(NAMES)}


def combined(parts: Any) -> Statistics:
    """Statistics of traffic whose parts share no link, source or destination (rows of a table)."""
    table = np.asarray(parts, np.int64).reshape(-1, len(NAMES))
    values = table.sum(axis=0)
    for largest, attained in EXTREMES:
        column, many = table[:, PLACE[largest]], table[:, PLACE[attained]]
        most = column.max(initial=0)
        values[PLACE[largest]] = most
        values[PLACE[attained]] = many[column == most].sum()
    return Statistics(*values.tolist())


class Windows:
    """The nine quantities of every window: columns by name, windows by number.

    Attributes
    ----------
    table : (windows, 14) int64 array
        A row for each window, a column for each name of `Statistics`.
    first : (windows, ) int64 array
        The number of the window's first packet.
    time : (windows, ) int64 array or None
        The time of the window's first packet in nanoseconds, where packets have one.

    The arrays are copies of those given, and cannot be written to.
    """

    def __init__(self, table: Any, first: Any, time: Any = None) -> None:
        rows = plain("Windows", "table", table)
        if rows.ndim != 2 or rows.shape[1] != len(NAMES):
            raise ValueError(
                f"Windows: table must have {len(NAMES)} columns, got shape {rows.shape}"
            )
        self.table = _copied("table", rows.reshape(-1)).reshape(-1, len(NAMES))
        self.first = _copied("first", first, len(rows))
        self.time = None if time is None else _copied("time", time, len(rows))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, window: int) -> Statistics:
        return Statistics(*self.table[window].tolist())

    def __iter__(self) -> Iterator[Statistics]:
        return (self[k] for k in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if name not in PLACE:
            raise AttributeError(f"Windows has no attribute {name!r}")
        return self.table[:, PLACE[name]]

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *NAMES})

    def __repr__(self) -> str:
        return f"Windows({len(self)} windows, {sum(self.valid_packets.tolist())} packets)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Windows):
            return NotImplemented
        return np.array_equal(self.table, other.table) and np.array_equal(self.first, other.first)

    __hash__ = None  # type: ignore[assignment]  # holds arrays


def _copied(name: str, value: Any, size: int | None = None) -> Any:
    """Integers in memory of our own that nobody writes to, as int64."""
    limits = np.iinfo(np.int64)
    array = integers("Windows", name, value, size=size, low=limits.min, high=limits.max)
    return engines.frozen(engines.moved(array, "cpu").astype(np.int64))


def as_row(statistics: Statistics) -> list[int]:
    return list(astuple(statistics))
