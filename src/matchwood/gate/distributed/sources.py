"""The sources of the entries of a distributed graph, and how its vertices are renumbered.

A `Source` is one rank's part: arrays that it has, a part of a file, a part of a random stream.  It
can be read more than once, batch after batch, so that a graph need never be in memory as a list.

What a user passes on a rank is a `Share`: a part of a list of edges, a slab of rows, or all of the
graph.  `read` makes entries (u, v, value) of it, as the user numbers vertices, in the order in
which they were given.  The entries of all ranks, rank 0 first, are then what one machine would be
given.  `Agreed` compares the shares before anything is sent, and makes a `Source` of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.agreement import together
from matchwood.gate import graph as csr
from matchwood.gate import inputs
from matchwood.gate.distributed import collecting
from matchwood.primitives.hashing import GOLDEN, mix64
from matchwood.primitives.hashing.reference import mix64_number

EXPECTED = (
    "edges of shape (m, 2), (n, edges[, weights]), a sparse matrix with this rank's rows, "
    "a whole graph on one rank, or None"
)
NOTHING = np.empty(0, np.int64)
MOST_UNEVEN = 1.5  # largest part over the mean of the entries, from which vertices are renumbered
NEAR_PART = 0.75  # of the entries, with both ends in one range, from which ranges stay together
FEW_ENTRIES = 1024  # of a rank, on average; with fewer an uneven share costs nothing
SAMPLED_ENTRIES = 1 << 21  # of a rank that are counted; of longer sources, batches evenly spaced
ROUNDS = 6
KEY = 0x6D617463_68776F6F  # any number: all ranks and all runs use the same permutation


class Source(NamedTuple):
    """The entries of one rank, in the user's ids, within 0 .. n - 1."""

    parts: Callable[..., Iterable[collecting.Entry]]  # parts(k): every k-th batch; parts(): all
    rounds: int  # number of batches
    entries: int  # of all batches together, about
    kind: Any = None  # type of the values, the same on all ranks; None: none have values


def of_arrays(u: Any, v: Any, data: Any, kind: Any) -> Source:
    rounds = -(-int(u.shape[0]) // collecting.BATCH)
    return Source(
        lambda stride=1: collecting.batches(u, v, data, stride=stride),
        rounds,
        int(u.shape[0]),
        kind,
    )


def chosen_order(comm: Any, grid: Any, source: Source, order: str) -> Order:
    """How vertices are renumbered; "auto" looks how the entries would lie on the ranks."""
    if order == "auto":
        order = _best_order(comm, grid, source)
    return order_of(order, grid.n, grid.p)


def order_of(name: str | None, n: int, p: int) -> Order:
    """The renumbering of that name for n vertices on p ranks; None: they keep their numbers."""
    if name == "hashed":
        return HashedOrder(n)
    return ContiguousOrder(n, p) if name == "contiguous" and p > 1 else None


def _best_order(comm: Any, grid: Any, source: Source) -> str:
    """Where most entries stay within ranges "contiguous"; where parts are uneven "hashed"."""
    if comm.size == 1:
        return "given"
    whole = comm.allreduce(np.array([source.entries], np.int64), "sum")
    if int(whole[0]) < FEW_ENTRIES * comm.size:
        return "given"
    ranges = ContiguousOrder(grid.n, grid.p) if grid.layout == "stripes" else None
    counts = comm.allreduce(_sampled(comm, grid, source, ranges), "sum")
    total = max(int(counts[0].sum()), 1)
    if counts[2, 0] >= NEAR_PART * total and counts[1].max() * comm.size <= MOST_UNEVEN * total:
        return "contiguous"
    return "hashed" if counts[0].max() * comm.size > MOST_UNEVEN * total else "given"


def _sampled(comm: Any, grid: Any, source: Source, ranges: ContiguousOrder | None) -> Any:
    """How many entries of this rank go to each rank: as they are numbered, and by ranges.

    In the third row how many have both ends in one range.
    """
    counts = np.zeros((3, comm.size), np.int64)
    step = max(source.entries // SAMPLED_ENTRIES, 1)
    count = engines.load("matchwood.engines.ranks.exchanges", "cpu").count_by_destination
    for u, v, _ in source.parts(step):
        if u.shape[0]:
            to, _, _ = collecting.routes(grid, u, v, comm.threads)
            counts[0] += count(np.ascontiguousarray(to), comm.size, comm.threads)
            if ranges is not None:
                u, v = ranges.inside(u), ranges.inside(v)
                to, _, _ = collecting.routes(grid, u, v, comm.threads)
                counts[1] += count(np.ascontiguousarray(to), comm.size, comm.threads)
                counts[2, 0] += np.count_nonzero(grid.owner(u) == grid.owner(v))
    return counts


class ContiguousOrder:
    """Every rank owns a range of the user's vertices, for graphs whose numbers lie near each other.

    The grid deals vertices out one by one.  So the vertices of range q, from its first on, are
    numbered q, q + p, q + 2 p, ..., for p ranks.  The lengths of ranges differ by one at most.
    """

    name = "contiguous"

    def __init__(self, n: int, p: int) -> None:
        self.n, self.p = int(n), int(p)
        self.each, self.longer = divmod(self.n, self.p)  # `longer` ranges have one vertex more

    def inside(self, ids: Any, threads: int | None = 1) -> Any:
        """The grid's numbers of these vertices."""
        xp, middle = engines.xp(ids), self.longer * (self.each + 1)
        after = self.longer + (ids - middle) // max(self.each, 1)
        rank = xp.where(ids < middle, ids // (self.each + 1), after)
        return ((ids - self._first(rank)) * self.p + rank).astype(ids.dtype, copy=False)

    def user(self, ids: Any, threads: int | None = 1) -> Any:
        """The user's numbers of the grid's."""
        rank = ids % self.p
        return (self._first(rank) + ids // self.p).astype(ids.dtype, copy=False)

    def _first(self, rank: Any) -> Any:
        """The first vertex of each of these ranges."""
        return rank * self.each + engines.xp(rank).minimum(rank, self.longer)


class TableOrder:
    """Ranges of vertices that were put in another order first: neighbours near each other.

    `perm[new] = old`.  Every rank has this table and its inverse.  Orders of one rule, such as
    "rcm", have one name only if their tables are equal.
    """

    def __init__(self, rule: str, perm: Any, p: int) -> None:
        self.rule, self.n, self.perm = rule, int(perm.size), perm
        digest = hashlib.sha256(perm.astype(np.int64).tobytes()).hexdigest()[:16]
        self.name = f"{rule} {digest}"
        self.ranges = ContiguousOrder(self.n, p)
        self.place = np.empty_like(perm)
        self.place[perm] = np.arange(self.n, dtype=perm.dtype)

    def inside(self, ids: Any, threads: int | None = 1) -> Any:
        """The grid's numbers of these vertices."""
        place = engines.moved(self.place, engines.location(ids))
        return self.ranges.inside(place[ids]).astype(ids.dtype, copy=False)

    def user(self, ids: Any, threads: int | None = 1) -> Any:
        """The user's numbers of the grid's."""
        perm = engines.moved(self.perm, engines.location(ids))
        return perm[self.ranges.user(ids)].astype(ids.dtype, copy=False)

    def of_part(self, ids: Any) -> TableOrder:
        """The same order of some vertices, which are renumbered by their places in `ids`."""
        number = np.full(self.n, -1, self.perm.dtype)
        number[ids] = np.arange(ids.size)
        numbers = number[self.perm]
        return TableOrder(self.rule, numbers[numbers >= 0], self.ranges.p)


class HashedOrder:
    """A permutation of 0 .. n - 1, for graphs whose numbers have structure.

    `inside` numbers are those of the grid, whose stripes they decide; users see only their own.  A
    Feistel network of the next even number of bits, applied again while its result is outside of
    0 .. n - 1.  Both directions are computed, so no rank keeps a table of n numbers.
    """

    name = "hashed"

    def __init__(self, n: int) -> None:
        self.n = n
        self.half = max(1, ((max(n, 2) - 1).bit_length() + 1) // 2)
        self.keys = np.array(
            [mix64_number(KEY + k * GOLDEN & (2**64 - 1)) for k in range(ROUNDS)], np.uint64
        )

    def inside(self, ids: Any, threads: int | None = 1) -> Any:
        """The grid's numbers of these vertices."""
        return self._mapped(ids, self.keys, threads)

    def user(self, ids: Any, threads: int | None = 1) -> Any:
        """The user's numbers of the grid's."""
        return self._mapped(ids, self.keys[::-1].copy(), threads, back=True)

    def _mapped(self, ids: Any, keys: Any, threads: int | None, back: bool = False) -> Any:
        if engines.location(ids) == "gpu":
            return self.mapped_arrays(ids, keys, back)
        ids = np.ascontiguousarray(ids)
        out = np.empty_like(ids)
        engine = engines.load(__package__, "cpu")
        engine.permute(ids, self.n, self.half, keys, back, out, threads)
        return out

    def mapped_arrays(self, ids: Any, keys: Any, back: bool) -> Any:
        """The same by operations on whole arrays, NumPy's or CuPy's; the steps: cpu.py."""
        xp = engines.xp(ids)
        half, mask = np.uint64(self.half), np.uint64((1 << self.half) - 1)
        found = ids.astype(np.uint64)
        left = xp.arange(found.shape[0])  # which of them are not below n yet
        while left.shape[0]:
            high, low = found[left] >> half, found[left] & mask
            for key in keys:
                if back:
                    high, low = low ^ (mix64(high + key) & mask), high
                else:
                    high, low = low, high ^ (mix64(low + key) & mask)
            found[left] = (high << half) | low
            left = left[found[left] >= np.uint64(self.n)]
        return found.astype(ids.dtype)


Order = HashedOrder | ContiguousOrder | TableOrder | None


# What users pass


class Share(NamedTuple):
    """The part of one rank."""

    kind: str  # "edges", "rows", "graph" or "none"
    n: int | None  # vertices; of rows, the columns
    rows: int  # of a slab; they follow those of the ranks before
    u: Any
    v: Any
    data: Any
    edges: bool = False  # edges of a list, not entries of a matrix
    duplicates: str | None = None  # the rule of a Graph
    place: str = "cpu"  # where the arrays lie


def read(A: Any, n: Any, weights: Any, caller: str) -> Share:
    """The share of one rank, checked as far as that is possible without the other ranks."""
    if A is None:
        return Share("none", None, 0, NOTHING, NOTHING, None)
    if isinstance(A, csr.Graph):
        return _from_graph(A, caller)
    if inputs.is_sparse(A):
        return _from_rows(A, caller)
    if inputs.is_networkx(A):
        return _from_graph(csr.as_graph(A, caller), caller)
    if isinstance(A, tuple) and len(A) in (2, 3) and isinstance(A[0], (int, np.integer)):
        if weights is not None and len(A) == 3:
            raise TypeError(f"{caller}: weights must be given once, got two arrays")
        return _from_edges(int(A[0]), A[1], A[2] if len(A) == 3 else weights, caller)
    if isinstance(A, tuple):
        return _from_graph(csr.as_graph(A, caller), caller)
    if isinstance(A, (np.ndarray, list)) or inputs.is_foreign_array(A):
        return _from_edges(None, A, weights, caller)
    raise TypeError(f"{caller}: A must be {EXPECTED}, got {type(A).__name__}")


def _from_edges(n: int | None, edges: Any, weights: Any, caller: str) -> Share:
    ends, data = inputs.edge_arrays(edges, weights, caller)
    place, ends = engines.location(ends), engines.moved(ends, "cpu")
    u, v = (inputs.as_indices(ends[:, k], "edges", caller) for k in (0, 1))
    return Share("edges", n, 0, u, v, _numbers(data, caller), True, place=place)


def _from_rows(A: Any, caller: str) -> Share:
    raw = inputs.read_sparse(A, caller, square=False)
    shape = raw.shape
    slab = csr.Rectangle(raw, None, caller)
    there = slab.on("cpu")
    u, v = _coordinates(there.entries(), shape[0])
    data = _numbers(there.given_values(caller), caller)
    return Share("rows", shape[1], shape[0], u, v, data, place=slab.engine)


def _from_graph(G: csr.Graph, caller: str) -> Share:
    there = G.on("cpu")
    u, v = _coordinates(there.entries(), G.n)
    data = _numbers(there.given_values(caller), caller)
    return Share("graph", G.n, G.n, u, v, data, there.raw().edges, G.duplicates, G.engine)


def _coordinates(view: Any, rows: int) -> tuple[Any, Any]:
    lengths = np.diff(view.indptr)
    return np.repeat(np.arange(rows, dtype=view.indices.dtype), lengths), view.indices


def _numbers(data: Any, caller: str) -> Any:
    """Values that can be sent: numbers of at most 16 bytes."""
    if data is None:
        return None
    data = engines.moved(data, "cpu")
    if inputs.carried(data) is not data:
        raise TypeError(f"{caller}: weights must be real numbers, got dtype {data.dtype}")
    return np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("="))


class Agreed:
    """The facts of all ranks' shares: all ranks have the same, or all raise the same error.

    They are named as in `Share`; `kind` is the type of the values, `engine` where the shares lie.
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
            got = " and ".join(f"{value} on {self._ranks(name, value)}" for value in values[:2])
            raise ValueError(f"{self.caller}: {what} must be the same on all ranks, got {got}")
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
        if not 0 <= size <= inputs.MOST_VERTICES:
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
