"""Rounds of proposals on graphs larger than a device, and on several devices.

Rows travel once.  While they pass, the k strongest edges of each are packed into a list.  In a
later round a vertex proposes to those of its list that have room, and are of the other charge where
charges are on.  Where its list holds fewer than it may propose to, its row travels again: the new
list has the strongest neighbours with room.

Each device has the proposals and the numbers of neighbours of all vertices, and the lists and
weights of its own ones.  A round, for all partitions:

    propose    vertices with room take the admissible ones of their list
    fetch      rows of vertices whose list does not hold enough travel, and are packed again
    exchange   every device receives the proposals of the others
    confirm    edges that both ends propose are in the factor, on every device

In the first round all rows travel, and proposals are made while they pass.

The steps: gpu.py and gpu.cu.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.devices import machine as machines
from matchwood.engines.devices.plan import SCAN_PART, Sizes, make_plan, vertex_type
from matchwood.engines.devices.plan import Plan as Layout
from matchwood.engines.devices.stats import Stats
from matchwood.factors.result import FactorArrays, Plan
from matchwood.primitives.hashing import round_number

CALLER = "degree_factor"
ARRAYS = 20  # arrays of a worker, at most: each is rounded up to whole units of memory
CONTROL_BYTES = 1024  # bytes of counters


class Problem(NamedTuple):
    """What the workers of a call share."""

    view: Any  # the graph, on the host
    kind: Any  # the type of vertices on the devices
    rule: Plan
    layout: Layout
    threads: int | None
    keep: Any  # the cache of a prepared Graph, else None


class Charge(NamedTuple):
    on: bool
    r: Any  # the number of the round, for the hash
    barrier: Any


def sizes_of(view: Any, n: int) -> Sizes:
    """The bytes of the arrays that a `Worker` makes."""
    vertex, weight = vertex_type(view.n).itemsize, view.data.dtype.itemsize
    place = view.indptr.dtype.itemsize
    return Sizes(
        every=n * vertex + 1,  # proposals; how many neighbours are confirmed
        own=n * (vertex + 2 * weight) + 2 * vertex + place + 1,
        listed=vertex + weight,
        streamed=vertex + weight,
        row=2 * place + vertex,
        fixed=CONTROL_BYTES + view.n // SCAN_PART,
        arrays=ARRAYS,
    )


def find(
    view: Any, plan: Plan, *, threads: int | None = None, machine: machines.Machine,
    keep: Any = None,
) -> FactorArrays:  # fmt: skip
    if plan.n > 255:
        raise ValueError(f"{CALLER}: n must be at most 255 on Devices, got {plan.n}")
    stats = Stats(machine.devices.devices, vertices=view.n, entries=view.nnz)
    sizes = sizes_of(view, plan.n)
    layout = make_plan(CALLER, view.indptr, machine.devices, sizes, machine.limits, keep)
    stats.partitions = [(part.lo, part.hi) for part in layout.partitions]
    stats.batches = [len(batches) for batches in layout.batches]
    stats.lists, stats.resident = layout.length, layout.resident
    stats.notes += layout.notes
    problem = Problem(view, vertex_type(view.n), plan, layout, threads, keep)
    steps = machine.steps(__name__)
    with contextlib.closing(steps.Workers(problem, machine, stats)) as team:
        rounds, maximal = _run(team, problem, stats, machine.devices.lists == 0)
        neighbours, weights = team.result()
        stats.memory = team.memory()
    neighbours = neighbours.astype(view.indices.dtype, copy=False)
    return FactorArrays(neighbours, weights, rounds, maximal, stats)


def _run(team: Any, problem: Problem, stats: Stats, no_lists: bool) -> tuple[int, bool]:
    """Run the rounds of Algorithm 2; returns their number, and whether the factor is maximal."""
    rule, rounds, idle = problem.rule, 0, 0
    for k in itertools.count():
        if k == rule.limit or (rule.limit < 0 and idle == rule.period):
            break
        rounds = k + 1
        team.begin_round(stats)
        number = np.uint32(round_number(rule.seed, k))
        charge = Charge(rule.charged(k), number, np.uint64(rule.barrier))
        for worker in team.workers:
            if k == 0 or no_lists:
                worker.stream_all(charge)
            else:
                worker.propose(charge)
                worker.fetch(charge)
        proposed = team.proposed()
        if not charge.on and proposed == 0:
            team.end_round()
            return rounds, True
        team.exchange()
        for worker in team.workers:
            worker.confirm()
        team.end_round()
        idle = 0 if team.confirmed() else idle + 1
    return rounds, False
