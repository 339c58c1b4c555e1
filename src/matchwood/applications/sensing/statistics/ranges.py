"""Blocks of traffic between ranges of addresses.

Ranges are lists of CIDR blocks ("10.0.0.0/8").  An address belongs to the first range that has it,
or to everything else, the last.  With k ranges there are (k + 1)^2 blocks: from range i to range j.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.traffic.matrix import addresses as checked_addresses
from matchwood.applications.sensing.traffic.matrix import elements
from matchwood.arguments import shown

EXPECTED = "a mapping or a list of CIDR lists"
ELSE = "else"  # the name of everything else
AT_ONCE = 1 << 18  # addresses


class Ranges:
    """Named ranges, and which of them each address belongs to.

    Parameters
    ----------
    given : mapping of name to CIDR blocks, or a sequence of lists of CIDR blocks
        A list is named by its number, from 1 on.  A single text is a list of one block.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import Ranges
    >>> ranges = Ranges({"private": ["10.0.0.0/8", "192.168.0.0/16"]})
    >>> ranges.names
    ('private', 'else')
    >>> ranges.classify(np.array([10 << 24, 8 << 24], np.uint32)).tolist()
    [0, 1]
    """

    def __init__(self, given: Any, caller: str = "Ranges") -> None:
        if isinstance(given, Ranges):
            self.names: tuple[str, ...] = given.names
            self.starts: Any = given.starts
            self.classes: Any = given.classes
            return
        if isinstance(given, Mapping):
            named = [(str(name), blocks) for name, blocks in given.items()]
        elif isinstance(given, (str, bytes)):
            kind = type(given).__name__
            raise TypeError(f"{caller}: ranges must be {EXPECTED}, got {kind}")
        else:
            listed = elements(caller, "ranges", given, EXPECTED)
            named = [(str(k + 1), blocks) for k, blocks in enumerate(listed)]
        if ELSE in dict(named):
            raise ValueError(f"{caller}: ranges must not be named {ELSE!r}, which is all the rest")
        if len(dict(named)) < len(named):
            raise ValueError(f"{caller}: ranges must have names that differ, got one twice")
        self.names = (*(name for name, _ in named), ELSE)
        parts = [(_blocks(caller, blocks), k) for k, (_, blocks) in enumerate(named)]
        self.starts, self.classes = map(engines.frozen, _table(parts, len(named)))

    def classify(self, addresses: Any) -> Any:
        """The number of the range of each address; the last number is everything else.

        In blocks, between which Ctrl-C is heard.
        """
        given = engines.moved(checked_addresses("Ranges", "addresses", addresses), "cpu")
        found = np.empty(given.size, np.int64)
        for start in range(0, given.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            found[part] = self.classes[np.searchsorted(self.starts, given[part], "right") - 1]
        return found


def _blocks(caller: str, blocks: Any) -> list[tuple[int, int]]:
    """First and last address of each block."""
    given = [blocks] if isinstance(blocks, str) else blocks
    found = []
    for text in elements(caller, "ranges", given, "lists of CIDR blocks"):
        try:
            network = ipaddress.IPv4Network(str(text).strip())
        except Exception as error:  # an object may raise what it likes when asked for its text
            got, why = shown(text), str(error)[:100]
            raise ValueError(f"{caller}: ranges must hold CIDR blocks, got {got}: {why}") from None
        found.append((int(network.network_address), int(network.broadcast_address)))
    return found


def _table(parts: list[tuple[list[tuple[int, int]], int]], others: int) -> tuple[Any, Any]:
    """Where the class changes, and the class from there on."""
    edges = sorted({0, *(x for blocks, _ in parts for lo, hi in blocks for x in (lo, hi + 1))})
    edges = [edge for edge in edges if edge < 1 << 32]
    classes = np.full(len(edges), others, np.int64)
    at = {edge: k for k, edge in enumerate(edges)}
    for blocks, number in reversed(parts):  # the first range that has an address wins
        for lo, hi in blocks:
            classes[at[lo] : at.get(hi + 1, len(edges))] = number
    return np.array(edges, np.uint32), classes
