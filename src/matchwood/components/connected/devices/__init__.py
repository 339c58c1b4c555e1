"""Connected components of graphs larger than a device, and on several devices.

Afforest ([1] in ../__init__.py), with as little traffic as possible.  First two neighbours of each
row are sent, which join most vertices to one large component.  Then only the rows of vertices
outside it are sent whole; where the pattern is not known to be symmetric, all rows are.

Each device joins the rows of its partition in a forest of all vertices.  The devices send each
other the edges of their forests, after each of the two steps.  Roots are the smallest vertices of
their trees, so the forest is the same on every device then.

Read on in gpu.py and gpu.cu; cpu.py gathers on the host what is sent first.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.devices import machine as machines
from matchwood.engines.devices.plan import SCAN_PART, Plan, Sizes, make_plan
from matchwood.engines.devices.stats import Stats
from matchwood.errors import EngineUnavailable

CALLER = "connected_components"
METHODS = ("auto", "afforest")
SENT_NEIGHBOURS = 2  # neighbours of each row, before the largest component is looked for
ARRAYS = 12  # arrays of a worker at most: each is rounded up to whole units of memory
CONTROL_BYTES = 1024  # bytes of counters


class Problem(NamedTuple):
    """What the workers of a call share."""

    view: Any  # the pattern, on the host
    kind: Any  # the type of vertices on the devices
    plan: Plan
    threads: int | None
    keep: Any  # `keep` of a prepared Graph, else None


def vertex_type(n: int) -> Any:
    """The type of a vertex on a device; columns are sent in it."""
    return np.dtype(np.int32 if n < 1 << 31 else np.int64)


def sizes_of(view: Any) -> Sizes:
    """Bytes of a worker: its arrays, as `Worker` makes them."""
    vertex, place = vertex_type(view.n).itemsize, view.indptr.dtype.itemsize
    return Sizes(
        every=3 * vertex,  # parent, numbers, labels
        own=vertex + 1,  # rows that must be sent; which have more than two entries
        listed=0,
        streamed=vertex,
        row=2 * place + vertex,
        fixed=CONTROL_BYTES + view.n // SCAN_PART,
        arrays=ARRAYS,
    )


def label(
    view: Any, symmetric: bool, method: str, *, graph: Any = None, threads: int | None = None,
    machine: machines.Machine, keep: Any = None,
) -> tuple[int, Any, int, Stats]:  # fmt: skip
    """See matchwood.components.connected_components."""
    if method not in METHODS:
        raise EngineUnavailable(f"{CALLER}: method {method!r} has no engine for Devices")
    stats = Stats(machine.devices.devices, vertices=view.n, entries=view.nnz)
    if view.nnz == 0:
        return view.n, np.arange(view.n, dtype=view.indptr.dtype), 0, stats
    sizes = sizes_of(view)
    plan = make_plan(CALLER, view.indptr, machine.devices, sizes, machine.limits, keep)
    stats.partitions = [(part.lo, part.hi) for part in plan.partitions]
    stats.batches = [len(batches) for batches in plan.batches]
    stats.notes += plan.notes
    problem = Problem(view, vertex_type(view.n), plan, threads, keep)
    steps = machine.steps(__package__)
    with contextlib.ExitStack() as stack:
        team = steps.Workers(problem, machine, stats)
        stack.callback(team.close)
        _run(team, symmetric, stats)
        count, labels = team.result()
        stats.memory = team.memory()
    return count, labels.astype(view.indptr.dtype, copy=False), SENT_NEIGHBOURS + 1, stats


def _run(team: Any, symmetric: bool, stats: Stats) -> None:
    team.begin_round(stats)
    if symmetric:
        for worker in team.workers:
            worker.join_first()
        team.workers[0].expect_answer()
        for worker in team.workers:
            worker.first_joined()
        team.exchange()
        team.end_round()
        team.begin_round(stats)
        largest = team.workers[0].largest()
        for worker in team.workers:
            worker.join_rest(largest)
    else:
        for worker in team.workers:
            worker.join_all()
        team.workers[0].expect_answer()
    team.exchange()
    team.end_round()
