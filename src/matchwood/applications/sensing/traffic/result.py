"""A traffic matrix: who sent how many packets to whom, by rows, without empty rows."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, engines
from matchwood.applications.sensing.packets import ADDRESSES
from matchwood.arguments import count, integers, same_size
from matchwood.errors import CheckFailed

PACKAGE = __name__.rpartition(".")[0]
WRITTEN = 1 << 20  # numbers scattered at once; Ctrl-C takes effect in between
MOST_PACKETS = (1 << 63) - 1  # packets of a matrix: then every sum of counts fits into int64


class Run(NamedTuple):
    """Links in order: keys (source above destination) and how many packets each has."""

    keys: Any  # uint64
    counts: Any  # int64


def add_run(levels: list[Any], run: Any, merge: Callable[[Any, Any], Any]) -> None:
    """Add to a binary tree: runs of the same level are merged as soon as there are two.

    So each link is moved once for each level, and about as many runs as levels are kept.
    """
    level = 0
    while level < len(levels) and levels[level] is not None:
        run, levels[level] = merge(levels[level], run), None
        level += 1
    levels[level : level + 1] = [run]


class MatrixRows(NamedTuple):
    """The arrays of a matrix, as engines make them."""

    sources: Any  # uint32
    indptr: Any  # int64
    destinations: Any  # uint32
    counts: Any  # int64


class DestinationSums(NamedTuple):
    """Destinations in order, the links to each and the packets to each."""

    destinations: Any  # uint32
    fan_in: Any  # int64
    packets: Any  # int64


class TrafficMatrix:
    """Packets from source i to destination j, as a hypersparse matrix of 2^32 x 2^32.

    Links are ordered by (source, destination), and every link has at least one packet.  All links
    together have at most 2^63 - 1, so that every sum of them fits into 64 bits.  A matrix does not
    change: it copies the arrays that it is given, and its own cannot be written to (on a GPU, where
    no array can be protected, they must not be).

    Parameters
    ----------
    sources : (rows,) uint32 array
        Addresses that sent packets, ascending.
    indptr : (rows + 1,) int64 array
        The links of ``sources[r]`` are ``indptr[r] .. indptr[r + 1] - 1``, one at least.
    destinations : (links,) uint32 array
        Ascending within a row.
    counts : (links,) int64 array
        Packets of each link, one at least.

    Raises
    ------
    TypeError, ValueError
        If an array is of another kind, or does not hold what is said here; also when a matrix
        is unpickled.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import traffic_matrix
    >>> A = traffic_matrix(np.array([7, 7, 9]), np.array([8, 8, 7]))
    >>> A
    TrafficMatrix(3 packets, 2 links, 2 sources)
    >>> (A + A).counts.tolist()
    [4, 2]
    """

    def __init__(self, sources: Any, indptr: Any, destinations: Any, counts: Any) -> None:
        self._hold(*_copied(sources, indptr, destinations, counts))
        fault = _fault(*self._arrays)
        if fault is not None:
            raise ValueError(f"TrafficMatrix: {fault}")

    def _hold(self, sources: Any, indptr: Any, destinations: Any, counts: Any) -> None:
        self.sources = engines.frozen(sources)
        self.indptr = engines.frozen(indptr)
        self.destinations = engines.frozen(destinations)
        self.counts = engines.frozen(counts)
        self._lock = threading.Lock()
        self._sums: Any = None
        self._source_sums: Any = None
        self._packets: int | None = None
        self._owner: Any = None
        self._time: int | None = None

    @property
    def time(self) -> int | None:
        """The time of its first packet (nanoseconds since 1970), where an archive says it."""
        return self._time

    @property
    def _arrays(self) -> tuple[Any, Any, Any, Any]:
        return self.sources, self.indptr, self.destinations, self.counts

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name in self.__dict__:
            raise AttributeError(f"TrafficMatrix: {name} cannot be changed")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> Any:
        return TrafficMatrix, self._arrays, {"_time": self._time}

    @property
    def engine(self) -> str:
        """Where the arrays live: "cpu" or "gpu"."""
        return engines.location(self.counts)

    @property
    def links(self) -> int:
        """The number of links."""
        return int(self.counts.size)

    @property
    def packets(self) -> int:
        """The number of packets."""
        if self._packets is None:
            self._packets = int(self.counts.sum())
        return self._packets

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self._arrays)

    def keys(self, *, threads: int | None = None) -> Any:
        """Links as 64-bit keys in order, the source above the destination."""
        return engines.load(PACKAGE, self.engine).keys_of_rows(self, threads=threads)

    def destination_sums(self, *, threads: int | None = None) -> Any:
        """(destinations, fan_in, packets): what goes to each destination.  Kept for later calls."""
        engines.check_threads(threads)
        with self._lock:
            if self._sums is None:
                engine = engines.load(PACKAGE, self.engine)
                sums = engine.destination_sums(self.destinations, self.counts, threads=threads)
                self._sums = type(sums)(*map(engines.frozen, sums))
            return self._sums

    def source_sums(self, *, threads: int | None = None) -> Any:
        """Packets of each source.  Kept for later calls."""
        engines.check_threads(threads)
        with self._lock:
            if self._source_sums is None:
                engine = engines.load(PACKAGE, self.engine)
                sums = engine.source_sums(self.indptr, self.counts, threads=threads)
                self._source_sums = engines.frozen(sums)
            return self._source_sums

    def maxima(self) -> dict[str, Any]:
        """The addresses that attain each maximum of `traffic_statistics`, on the CPU, ascending.

        Of `max_link_packets` rows of (source, destination), of the others vectors.
        """
        sources, indptr, destinations, counts = (engines.moved(x, "cpu") for x in self._arrays)
        into = [engines.moved(x, "cpu") for x in self.destination_sums()]
        sent = engines.moved(self.source_sums(), "cpu")
        most = np.flatnonzero(counts == counts.max(initial=0))
        owner = np.searchsorted(indptr, most, "right") - 1
        links = np.stack((sources[owner], destinations[most]), axis=1)
        return {
            "max_link_packets": links,
            "max_source_packets": _largest(sources, sent),
            "max_source_fan_out": _largest(sources, np.diff(indptr)),
            "max_destination_packets": _largest(into[0], into[2]),
            "max_destination_fan_in": _largest(into[0], into[1]),
        }

    def top_talkers(self, k: int = 10) -> tuple[Any, Any, Any]:
        """(sources, packets, fan-out) of the k sources that sent most packets, on the CPU.

        Most packets first, and the smaller address first where they are as many.

        Examples
        --------
        >>> import numpy as np
        >>> from matchwood.sensing import traffic_matrix
        >>> A = traffic_matrix(np.array([7, 7, 9, 9, 5]), np.array([8, 8, 7, 8, 9]))
        >>> [part.tolist() for part in A.top_talkers(2)]
        [[7, 9], [2, 2], [1, 2]]
        """
        k = count("top_talkers", "k", k)
        sent = engines.moved(self.source_sums(), "cpu")
        most = np.argsort(-sent, kind="stable")[:k]
        fan_out = np.diff(engines.moved(self.indptr, "cpu"))
        return engines.moved(self.sources, "cpu")[most], sent[most], fan_out[most]

    def __add__(self, other: Any) -> TrafficMatrix:
        if not isinstance(other, TrafficMatrix):
            return NotImplemented
        return added([self, other])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrafficMatrix):
            return NotImplemented
        xp = engines.xp(self.counts)
        return self.engine == other.engine and all(
            bool(xp.array_equal(a, b)) for a, b in zip(self._arrays, other._arrays, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # as arrays

    def __repr__(self) -> str:
        return (
            f"TrafficMatrix({self.packets} packets, {self.links} links, "
            f"{self.sources.size} sources)"
        )

    def tocoo(self) -> tuple[Any, Any, Any]:
        """(source, destination, packets) of every link, in order."""
        keys = self.keys()
        return (keys >> np.uint64(32)).astype(np.uint32), self.destinations, self.counts

    def toscipy(self) -> Any:
        """A `scipy.sparse.coo_array` of 2^32 x 2^32; arrays on a GPU are copied to the host."""
        import scipy.sparse as sp

        source, destination, packets = (engines.moved(x, "cpu") for x in self.tocoo())
        where = (source.astype(np.int64), destination.astype(np.int64))
        return sp.coo_array((packets, where), shape=(ADDRESSES, ADDRESSES))

    def graph(self) -> tuple[Any, Any]:
        """(Graph, addresses): vertex v is addresses[v], an arc is a link, its weight the packets.

        So components, matchings or a breadth-first search run on traffic.  Functions that read the
        weights raise ValueError where one is above 2^53: they are exact in float64 up to there.
        """
        import scipy.sparse as sp

        from matchwood.gate import graph as csr
        from matchwood.primitives.sort import radix_sort

        sources, indptr, destinations, packets = (engines.moved(x, "cpu") for x in self._arrays)
        found, places = radix_sort(np.concatenate([sources, destinations]))
        heads = np.append(True, found[1:] != found[:-1])[: found.size]
        addresses, vertex = found[heads], np.cumsum(heads) - 1
        vertices = np.empty(found.size, np.int64)
        for start in range(0, found.size, WRITTEN):  # see WRITTEN
            part = slice(start, start + WRITTEN)
            vertices[places[part]] = vertex[part]
        n = addresses.size
        degrees = np.zeros(n + 1, np.int64)
        degrees[vertices[: sources.size] + 1] = np.diff(indptr)
        indices = vertices[sources.size :]
        made = sp.csr_array((packets, indices, np.cumsum(degrees)), shape=(n, n))
        return csr.graph(made).on(self.engine), engines.moved(addresses, self.engine)

    def check(self) -> None:
        """Raise `CheckFailed` unless the arrays are a traffic matrix."""
        kinds = ("uint32", "int64", "uint32", "int64")
        names = ("sources", "indptr", "destinations", "counts")
        for name, array, kind in zip(names, self._arrays, kinds, strict=True):
            if array.ndim != 1 or array.dtype != kind:
                raise CheckFailed(f"traffic matrix: {name} must be a vector of {kind}")
        if self.indptr.size != self.sources.size + 1:
            raise CheckFailed(
                f"traffic matrix: {self.sources.size} sources and {self.indptr.size} starts"
            )
        if self.destinations.size != self.counts.size:
            raise CheckFailed(
                f"traffic matrix: {self.destinations.size} destinations, {self.counts.size} counts"
            )
        fault = _fault(*self._arrays)
        if fault is not None:
            raise CheckFailed(f"traffic matrix: {fault}")


def _largest(addresses: Any, values: Any) -> Any:
    return addresses[values == values.max(initial=0)]


def trusted(
    sources: Any, indptr: Any, destinations: Any, counts: Any, *,
    owner: Any = None, packets: int | None = None,
) -> TrafficMatrix:  # fmt: skip
    """A matrix from arrays that an engine made, neither checked nor copied.

    `owner` is kept as long as the matrix (mapped files).  `packets` is their number where known.
    """
    made = TrafficMatrix.__new__(TrafficMatrix)
    made._hold(sources, indptr, destinations, counts)
    made._owner, made._packets = owner, packets
    return made


def with_time(matrix: TrafficMatrix, time: int | None) -> TrafficMatrix:
    """The matrix, which now knows the time of its first packet."""
    matrix._time = time
    return matrix


def moved(matrix: TrafficMatrix, home: str) -> TrafficMatrix:
    """The matrix, with its arrays on "cpu" or "gpu"."""
    if matrix.engine == home:
        return matrix
    arrays = (engines.moved(array, home) for array in matrix._arrays)
    return with_time(trusted(*arrays), matrix.time)


def added(
    matrices: Iterable[TrafficMatrix], engine: str | None = None, threads: int | None = None
) -> TrafficMatrix:
    """The sum of matrices, where the first one lives; without matrices an empty one."""
    given = iter(matrices)
    first = next(given, None)
    where = "cpu" if first is None else first.engine
    chosen = engines.resolve(where, engine, "sum_matrices", threads)
    home, load = engines.home(chosen), engines.load(PACKAGE, chosen)
    packets = 0

    def runs() -> Iterator[Run]:
        nonlocal packets
        for matrix in itertools.chain(() if first is None else (first,), given):
            packets += matrix.packets
            require_sum("sum_matrices", "matrices", packets)
            keys = engines.moved(matrix.keys(threads=threads), home)
            yield Run(keys, engines.moved(matrix.counts, home))

    rows = load.rows_of_run(load.sum_runs(runs(), threads=threads), threads=threads)
    return trusted(*(engines.moved(part, where) for part in rows), packets=packets)


def _fault(sources: Any, indptr: Any, destinations: Any, counts: Any) -> str | None:
    """What is wrong with the form of a matrix; None where nothing is."""
    rows, links = int(sources.size), int(counts.size)
    ends = (int(indptr[0]), int(indptr[-1]))
    if ends != (0, links):
        return f"indptr must go from 0 to {links}, got {ends[0]} and {ends[1]}"
    at = answers.first(indptr[1:] <= indptr[:-1])
    if at is not None:
        return f"every source must have a link, got none at row {at}"
    at = answers.first(sources[1:] <= sources[:-1])
    if at is not None:
        return f"sources must ascend, got {sources[at]} and {sources[at + 1]} at {at}"
    falls = destinations[1:] <= destinations[:-1]
    falls[indptr[1:-1] - 1] = False  # from a row to the next
    at = answers.first(falls)
    if at is not None:
        here, there = destinations[at], destinations[at + 1]
        return f"destinations must ascend within a row, got {here} and {there} at {at}"
    at = answers.first(counts < 1)
    if at is not None:
        return f"every link must have a packet, got {counts[at]} at {at}"
    if (packets := packets_of(counts)) > MOST_PACKETS:
        return f"counts must be at most 2^63 - 1 packets in all, got {packets}"
    if rows == 0 and links:
        return "links must have sources, got none"
    return None


def packets_of(counts: Any) -> int:
    """The exact sum of counts that are not negative, also where it does not fit into int64."""
    if not counts.size or int(counts.max()) <= MOST_PACKETS // counts.size:
        return int(counts.sum())
    low = counts & 0xFFFFFFFF
    return (int((counts >> 32).sum()) << 32) + int(low.sum(dtype=np.uint64))


def require_sum(caller: str, name: str, total: int, unit: str = "packets") -> None:
    """Raise ValueError if `total` is beyond 2^63 - 1: sums would leave int64."""
    if total > MOST_PACKETS:
        raise ValueError(f"{caller}: {name} must have at most 2^63 - 1 {unit} in all, got {total}")


def _copied(sources: Any, indptr: Any, destinations: Any, counts: Any) -> tuple[Any, ...]:
    """Copies of the user's arrays, so that they cannot change after the checks."""
    caller = "TrafficMatrix"
    found = []
    for name, value, kind in (
        ("sources", sources, np.uint32),
        ("indptr", indptr, np.int64),
        ("destinations", destinations, np.uint32),
        ("counts", counts, np.int64),
    ):
        array = integers(caller, name, value)
        if array.dtype != kind:
            limits = np.iinfo(kind)
            integers(caller, name, array, low=limits.min, high=limits.max)
        found.append(engines.xp(array).array(array, dtype=kind, order="C"))
    same_size(caller, "counts", found[3], "destinations", found[2])
    if found[1].size != found[0].size + 1:
        raise ValueError(
            f"{caller}: indptr must have {found[0].size + 1} elements, got {found[1].size}"
        )
    if len({engines.location(array) for array in found}) > 1:
        raise TypeError(f"{caller}: all arrays must live on one engine, got CPU and GPU arrays")
    return tuple(found)
