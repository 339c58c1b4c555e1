"""The input: packets, their addresses, and named ranges of addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.arguments import integers, shown

Array = np.ndarray[Any, Any]

ADDRESSES = 1 << 32
EXPECTED = "a mapping or a list of CIDR lists"
ELSE = "else"  # the name of everything that is in no range
MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)  # odd, of no pattern
AT_ONCE = 1 << 18  # addresses classified at once; Ctrl-C takes effect in between


class Packets(NamedTuple):
    """IPv4 packets in the order of the capture, one array for each field.

    Attributes
    ----------
    src, dst : ndarray of uint32
        Addresses as numbers: 10.0.0.1 is 167772161.  With ``compat=True`` their bytes are read the
        other way round, as pcap2grb does: 16777226.
    time : ndarray of int64
        Nanoseconds since 1970-01-01 UTC; 0 where the file has none (simple packet blocks).
    length : ndarray of uint32
        Bytes that the packet had on the wire.
    protocol : ndarray of uint8
        As in the IPv4 header: 1 ICMP, 6 TCP, 17 UDP.
    """

    src: Array
    dst: Array
    time: Array
    length: Array
    protocol: Array

    @classmethod
    def empty(cls, count: int) -> Packets:
        """Uninitialized arrays for `count` packets."""
        count = arguments.count("Packets.empty", "count", count)
        try:
            return cls(
                np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.int64),
                np.empty(count, np.uint32), np.empty(count, np.uint8),
            )  # fmt: skip
        except (MemoryError, ValueError) as error:  # the latter beyond 2^63 bytes
            raise engines.out_of_memory(MemoryError(f"{count} packets")) from error

    def part(self, start: int, stop: int) -> Packets:
        """The packets start..stop; nothing is copied."""
        for name, place in (("start", start), ("stop", stop)):
            arguments.integer("Packets.part", name, place)
        return Packets(*(field[start:stop] for field in self))


class AddressTable:
    """Numbers for 128-bit addresses, in the order in which they are first seen.

    All that is made for IPv4 addresses works on such numbers, since none of the statistics of
    traffic depends on which address is which.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import AddressTable
    >>> table = AddressTable()
    >>> one, two = (0x20010DB8 << 32, 1), (0x20010DB8 << 32, 2)
    >>> table.numbers(np.array([one, two, one], np.uint64)).tolist()
    [0, 1, 0]
    >>> table.texts([1])
    ['2001:db8::2']
    """

    def __init__(self, change: Callable[[Any], Any] | None = None) -> None:
        # what anonymizes addresses, before they are put into the table
        self._change = arguments.callback("AddressTable", "change", change)
        self._numbers: dict[bytes, int] = {}  # by the addresses of the table
        self._seen: dict[bytes, int] = {} if change else self._numbers  # by those given

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, addresses: Any) -> Array:
        """The number of each address, uint32; new ones get the next.

        `addresses` is an array of two uint64 a row, the upper half first.
        """
        given = wide_addresses("AddressTable", addresses)
        first, which = _distinct(given)
        order = np.argsort(first)  # in which they are seen
        texts = [word.tobytes() for word in _packed(given[first[order]])]
        new = [k for k, text in enumerate(texts) if text not in self._seen]
        stored = [texts[k] for k in new]
        if self._change is not None and new:
            asked = given[first[order[new]]]
            changed = wide_addresses("anonymize", self._change(asked))
            arguments.same_size("anonymize", "addresses", changed, "those it was given", asked)
            stored = [word.tobytes() for word in _packed(changed)]
        for k, text in zip(new, stored, strict=True):
            self._seen[texts[k]] = self._numbers.setdefault(text, len(self._numbers))
        if len(self._numbers) > ADDRESSES:
            raise ValueError(f"AddressTable: more than {ADDRESSES} addresses")
        known = np.empty(first.size, np.uint32)
        known[order] = [self._seen[text] for text in texts]
        return known[which]

    def addresses(self) -> Array:
        """All addresses by number, two uint64 a row."""
        found = np.frombuffer(b"".join(self._numbers), ">u8").astype(np.uint64)
        return found.reshape(-1, 2)

    def texts(self, numbers: Any) -> list[str]:
        """The addresses of these numbers as text."""
        known = list(self._numbers)
        given = integers("AddressTable.texts", "numbers", numbers, low=0, high=len(known) - 1)
        return [str(ipaddress.IPv6Address(known[number])) for number in given]


def wide_addresses(caller: str, addresses: Any) -> Array:
    """IPv6 addresses: a uint64 array of two a row."""
    if engines.location(addresses) != "cpu":
        raise TypeError(f"{caller}: addresses of IPv6 must be on the CPU")
    given = arguments.plain(caller, "addresses", addresses)
    if given.dtype != np.uint64 or given.ndim != 2 or given.shape[1] != 2:
        raise TypeError(
            f"{caller}: addresses of IPv6 must be a uint64 array of two a row, got {given.dtype} "
            f"of shape {given.shape}"
        )
    return np.ascontiguousarray(given)


def _distinct(addresses: Array) -> tuple[Array, Array]:
    """Where each distinct address is first, and the number of that place for each address.

    Words of 64 bits sort faster than those of 128 (`numbers` takes 0.6 of the time), so addresses
    are compared by a mix of their halves, and in full only where two have the same one.
    """
    mixed = addresses[:, 0] * MIX[0] ^ addresses[:, 1] * MIX[1]
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(addresses[first][which], addresses):
        _, first, which = np.unique(_packed(addresses), return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _packed(addresses: Array) -> Array:
    """The 16 bytes of each address as one element."""
    return addresses.astype(">u8").view("V16").reshape(-1)


def elements(caller: str, name: str, value: Any, expected: str) -> Iterator[Any]:
    """The elements of `value`; a zero-dimensional array is refused as not iterable."""
    try:
        return iter(value)
    except (TypeError, NotImplementedError):  # some memoryviews raise the latter
        kind = type(value).__name__
        raise TypeError(f"{caller}: {name} must be {expected}, got {kind}") from None


def addresses_of(caller: str, name: str, value: Any) -> Any:
    """`value` as a contiguous array of uint32; other integers are converted if they fit."""
    array = arguments.plain(caller, name, value)
    if array.dtype == np.uint32 and array.ndim == 1 and array.flags.c_contiguous:
        return array
    array = arguments.integers(caller, name, value, low=0, high=ADDRESSES - 1)
    return engines.xp(array).ascontiguousarray(array.astype(np.uint32))


def packet_arrays(caller: str, src: Any, dst: Any) -> tuple[Any, Any]:
    """Sources and destinations of packets as uint32 arrays of one size in one place."""
    src, dst = addresses_of(caller, "src", src), addresses_of(caller, "dst", dst)
    arguments.same_size(caller, "dst", dst, "src", src)
    if engines.location(src) != engines.location(dst):
        raise TypeError(f"{caller}: all arrays must live on one engine, got CPU and GPU arrays")
    return src, dst


class Ranges:
    """Named ranges, and which of them each address belongs to.

    Ranges are lists of CIDR blocks.  An address belongs to the first range that has it, or to
    everything else, the last.

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
        """The number of the range of each address; the last number is everything else."""
        given = engines.moved(addresses_of("Ranges", "addresses", addresses), "cpu")
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
        except Exception as error:  # str() of an object may raise anything
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
