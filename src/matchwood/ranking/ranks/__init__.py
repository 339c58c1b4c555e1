"""PageRank on a grid of ranks.  The rule: ranking/__init__.py; local steps of a rank: cpu.py.

    given   ->  sums of the block's rows  ->  fold  ->  own scores and own `given`  ->  expand

A rank has the part of each row of its row group whose columns are in its column group.  It adds up
what these columns give.  The fold joins the sums of a row group at the owners of its vertices; they
make scores of them, and expand what their vertices give to the column groups.  In each iteration a
rank receives (N / R)(C - 1) / C words by the fold and (N / C)(R - 1) / R by the expand, and two
numbers more: the change and what vertices without arcs hold, added up over all ranks.

Sums are added up in another order than on one machine: scores agree to rounding.  Memory: besides
the block of incoming arcs its columns once more, as positions, so that what they give lies close
together; kept by the graph.  On CPUs, where few columns have most entries, these are first.  Large
blocks without weights are kept in tiles instead: 2 bytes an entry, and 2 for each row of a tile
that has some.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.engines.ranks.agreement import any_of, raise_first, same
from matchwood.engines.ranks.exchanges import places_by_owner
from matchwood.engines.ranks.vectors import DistributedVector, own_part
from matchwood.gate.distributed import one_host
from matchwood.primitives.row_reduce import spmv
from matchwood.ranking import ranked
from matchwood.ranking.problem import Options, incoming_arcs, probabilities
from matchwood.ranking.result import Ranking
from matchwood.stopwatch import Stopwatch

GIVEN = ("personalization", "dangling", "start")


class Problem(NamedTuple):
    """What a rank knows of a call: its block, and its own vertices by place."""

    block: Any
    share: Any
    start: Any
    jump: Any  # p, or None for 1/n everywhere
    dangling: Any  # q, or None for p
    loses: bool  # some vertex of the graph has no arcs


def pagerank(G: Any, asked: Options, threads: int | None = None) -> Ranking:
    """See `matchwood.pagerank`; all ranks call it."""
    watch = Stopwatch()
    agree(G, asked, "pagerank")

    def work(graph: Any, members: int) -> Any:
        one, _ = ranked(graph, tuple(asked), None, members)
        return (one.scores,), dataclasses.replace(one, scores=None)

    spread = any(isinstance(getattr(asked, name), DistributedVector) for name in GIVEN)
    referred = None if spread else one_host.referred(G, "pagerank", work, threads, pays=False)
    if referred is not None:
        (scores,), found = referred
        G.comm.report(found.iterations, G.n)
        return dataclasses.replace(found, scores=G.vector(scores))
    threads = G.threads if threads is None else threads
    problem = problem_of(G, asked, "pagerank", threads)
    watch.lap("prepare")
    scores, iterations, error = iterate(G, asked, problem, threads)
    watch.lap("iterate")
    converged = G.n == 0 or error < asked.tol
    return Ranking(G.vector(scores), iterations, error, converged, watch.seconds)


def iterate(
    G: Any, asked: Options, problem: Problem, threads: int | None
) -> tuple[Any, int, float]:
    """Own scores, the number of iterations and the last change."""
    if G.n == 0:
        return problem.start, 0, 0.0
    module = engine_of(G)
    scorer = module.Scorer(problem.start, problem.share, problem.jump, problem.dangling, threads)
    (lost,) = added_up(G, scorer.lost)
    error, iterations = math.inf, 0
    by_owner = (
        hasattr(module, "pull_by_owner")  # the CPU's
        and G.grid.layout == "stripes"
        and G.exchange.kind != "thesis"
    )
    order = owners_order(G, problem.block) if by_owner else None
    row, counts = G.exchange.row, G.grid.row_counts
    while iterations < asked.most and not error < asked.tol:
        if by_owner:
            given = given_in_order(G, module, problem.block, scorer.given, order)
            sums = row.scratch(G.grid.n_rows, given.dtype)
            module.pull_by_owner(problem.block, given, counts, sums, threads)
            pulled = sums if row.size == 1 else row.reduce_scatter(sums, counts)
        else:
            given = G.exchange.expand_by_kind(scorer.given)
            pulled = G.exchange.fold_by_kind(module.pull(problem.block, given, threads))
        mass = asked.damping * lost
        change = scorer.step(pulled, asked.damping, mass, 1.0 / G.n, problem.loses)
        error, lost = added_up(G, change, scorer.lost)
        iterations += 1
        G.comm.report(iterations, G.n)
    return scorer.scores, iterations, error


def engine_of(G: Any) -> Any:
    """The local steps of a rank: cpu.py or gpu.py."""
    return engines.load(__name__, G.engine)


def owners_order(G: Any, block: Any) -> Any:
    """The order of a block as `Exchange.expand_at` wants it; None where it has none."""
    counts = G.grid.column_counts
    if block.order.size == 0 or min(counts) < max(counts):
        return None
    return places_by_owner(block.order, counts)


def given_in_order(G: Any, module: Any, block: Any, own: Any, order: Any) -> Any:
    """What the vertices of the column group give, in the order of the block."""
    if order is not None:
        return G.exchange.expand_at(own, order)
    return module.in_order(block, G.exchange.expand(own))


def added_up(G: Any, *numbers: float) -> list[float]:
    """The sums over all ranks, the same bits on each: along the rows, then along the columns.

    C - 1 + R - 1 messages; a reduction over all ranks would take twice as many.
    """
    sums = np.array(numbers, np.float64)
    for comm in (G.exchange.row, G.exchange.column):
        sums = comm.allgather(sums).reshape(comm.size, -1).sum(axis=0)
    found: list[float] = sums.tolist()
    return found


def problem_of(G: Any, asked: Options, caller: str, threads: int | None) -> Problem:
    """The arrays of a call on this rank."""
    jump, dangling, start = (_distribution(G, caller, name, asked) for name in GIVEN)
    share = shares(G, asked.weighted, caller)
    xp = engines.xp(share)
    sizes = np.finfo(asked.dtype)
    beyond = (share > 0) & ((share < sizes.tiny) | (share > sizes.max))
    if any_of(G.comm, bool(beyond.any())):
        raise ValueError(
            f"{caller}: weights of a row must add up to a number whose inverse {asked.dtype} "
            "holds; scale the weights"
        )
    loses = any_of(G.comm, bool((share == 0).any()))
    if start is None:
        start = xp.full(G.grid.owned, 1 / max(G.n, 1), asked.dtype)
    block = block_of(G, asked.weighted, caller, threads)
    return Problem(block, share.astype(asked.dtype), start, jump, dangling, loses)


def agree(G: Any, asked: Options, caller: str) -> None:
    """Refuse arguments that differ between ranks."""
    same(
        G.comm, caller, damping=asked.damping, tol=asked.tol, max_iterations=asked.most,
        weighted=asked.weighted, dtype=asked.dtype,
        **{name: _comparable(getattr(asked, name)) for name in GIVEN},
    )  # fmt: skip


def _comparable(value: Any) -> Any:
    """What must be the same on all ranks: not the parts of a DistributedVector."""
    return "a distributed vector" if isinstance(value, DistributedVector) else value


def block_of(G: Any, weighted: bool, caller: str, threads: int | None) -> Any:
    """The incoming arcs of the row group, with columns by position; kept by the graph."""
    reads = weighted and G.weighted

    def make() -> Any:
        view = incoming_arcs(G, weighted, caller)
        xp = engines.xp(view.indices)
        rows = xp.ascontiguousarray(view.indptr[: G.grid.n_rows + 1])
        to_position = xp.zeros(G.grid.n_local, view.indices.dtype)
        to_local = xp.asarray(G.grid.columns_to_local)
        to_position[to_local] = xp.arange(G.grid.n_columns, dtype=view.indices.dtype)
        module = engine_of(G)
        return module.block_of(
            rows, to_position[view.indices], view.data, G.grid.n_columns, threads
        )

    return G.keep("surfer block, weighted" if reads else "surfer block", make)


def shares(G: Any, weighted: bool, caller: str) -> Any:
    """1 / (sum of the row) of own vertices in float64, 0 where that is 0; kept by the graph."""
    reads = weighted and G.weighted
    rows = G.grid.n_rows

    def make() -> Any:
        if not reads:
            view = G.directed_pattern()
            parts = engines.xp(view.indptr).diff(view.indptr)[:rows].astype(np.int64)
        else:
            view = G.finite_weights(caller)
            xp = engines.xp(view.data)
            data = view.data.astype(np.float64, copy=False)
            ones = xp.ones(G.grid.n_local, np.float64)
            parts = spmv(view.indptr, view.indices, data, ones, threads=G.threads)[:rows]
        sums = G.exchange.fold(engines.xp(parts).ascontiguousarray(parts), "sum")
        sums = sums.astype(np.float64, copy=False)
        xp = engines.xp(sums)
        if any_of(G.comm, not bool(xp.isfinite(sums).all())):
            raise ValueError(f"{caller}: weights of a row must not add up to infinity")
        with np.errstate(over="ignore"):
            return xp.where(sums > 0, 1.0 / xp.where(sums > 0, sums, 1.0), 0.0)

    return G.keep("surfer shares, weighted" if reads else "surfer shares", make)


def _distribution(G: Any, caller: str, name: str, asked: Options) -> Any:
    """An array or DistributedVector as probabilities of own vertices; None stays None."""
    value = getattr(asked, name)
    if value is None:
        return None
    if isinstance(value, DistributedVector):
        return _spread_distribution(G, caller, name, value, asked.dtype)
    given = engines.moved(arguments.numbers(caller, name, value, size=G.n), "cpu")
    whole = probabilities(caller, name, given, asked.dtype)
    return engines.moved(whole[G.ids], G.engine)


def _spread_distribution(
    G: Any, caller: str, name: str, value: DistributedVector, dtype: Any
) -> Any:
    own = own_part(G, caller, name, value)
    error: Exception | None = None
    least = 0.0
    try:
        weights = arguments.numbers(caller, name, own).astype(np.float64)
        least = float(weights.min()) if weights.size else 0.0
        if least < 0:
            error = ValueError(f"{caller}: {name} must not be negative, got {least}")
    except (TypeError, ValueError) as caught:
        error = caught
    raise_first(G.comm, error)
    here = float(weights.max()) if weights.size else 0.0
    most = float(G.comm.allreduce(np.array([here]), "max")[0])
    if most == 0 and G.n:
        raise ValueError(f"{caller}: {name} must not be all zero")
    weights = weights / (most or 1.0)  # so that the sum is finite
    (total,) = added_up(G, float(weights.sum()))
    return (weights / (total or 1.0)).astype(dtype)
