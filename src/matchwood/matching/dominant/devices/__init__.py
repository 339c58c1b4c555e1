"""Locally dominant matching of graphs larger than a device, and on several devices.

LD-GPU (M. Mandulak, S. Ghosh, S. M. Ferdous, M. Halappanavar, G. Slota. Efficient weighted graph
matching on GPUs. SC 2024. doi:10.1109/SC41406.2024.00068) sends all rows to the devices in every
round, in batches, and exchanges two arrays of n words.  Here the rows travel once.  While they
pass, the first k edges of each are packed into a list, in the order of primitives/edge_order.  A
vertex whose pointer became invalid takes the next free neighbour in its list.  Only when the list
is used up does its row travel again; the new list holds free neighbours only.

On one device vertices are matched while the rows pass, as soon as the rows of both have passed.
So rows that pass later have fewer free neighbours, and fewer lists run out.  The mates are the
same: these vertices would otherwise be matched in a later round.

Each device has the pointers of all vertices and the lists of its own.  After a round the devices
send each other the changed pointers, from which each finds the new mates.

A round, for all partitions:

    point      the vertices of the queue take the next free neighbour of their list
    fetch      rows of vertices whose list has run out travel, and are packed again
    exchange   every device learns the changed pointers of the others
    settle     two vertices that point at each other are mates, on every device; the vertices of a
               partition that pointed at one of them are its next queue

In the first round the queue is all vertices, after their rows have passed.  The steps are methods
of a worker, one for each partition: gpu.py and gpu.cu.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.cpu import tell_progress
from matchwood.engines.devices import machine as machines
from matchwood.engines.devices.pinned import rings_of
from matchwood.engines.devices.plan import SCAN_PART, Plan, Sizes, make_plan
from matchwood.engines.devices.sending import received
from matchwood.engines.devices.stats import Stats, new_round
from matchwood.matching.methods import EngineMatching

CALLER = "weighted_matching"
STAGED_PART = 64  # pairs of a partition that travel at a time: 1 / STAGED_PART of all vertices,
LEAST_STAGED = 256  # pairs, and at least this number
ARRAYS = 22  # arrays of a worker, at most: each is rounded up to whole units of memory
WHOLE_ARRAYS = 4  # arrays of n that the usual engine needs beside the graph
RESIDENT_LIST = 4  # edges of a list where all rows stay on the device, ready to be read again
CONTROL_BYTES = 8192  # counters and partial sums, which are no array of vertices


class Problem(NamedTuple):
    """What the workers of a call share."""

    view: Any  # the graph, on the host
    kind: Any  # the type of vertices on the devices: int32 where n fits, else int64
    seed: int
    by_hash: bool
    plan: Plan
    threads: int | None
    keep: Any  # the cache of a prepared Graph, else None
    rows: Any  # kept: buffers by (device, partition, partitions); whole graphs by (device,)
    stays: bool = False  # the rows are on the device already, and the answer stays there


class Kept(NamedTuple):
    """A graph that stays on the only device."""

    view: Any
    nbytes: int


def vertex_type(n: int) -> Any:
    """The type of a vertex on a device; columns travel in it."""
    return np.dtype(np.int32 if n < 1 << 31 else np.int64)


def sizes_of(view: Any, partitions: int) -> Sizes:
    """The bytes of the arrays that a `Worker` makes."""
    vertex, weight = vertex_type(view.n).itemsize, view.data.dtype.itemsize
    place = view.indptr.dtype.itemsize
    staged = 2 * staged_pairs(view.n) * vertex if partitions > 1 else 0
    return Sizes(
        every=2 * vertex,  # state, waiting
        own=3 * vertex + place + 2,  # following, two queues; start, size and head of its list
        listed=vertex + weight,
        streamed=vertex + weight,
        row=2 * place + vertex,  # where it begins and ends; whose it is
        fixed=CONTROL_BYTES + staged + view.n // SCAN_PART,
        arrays=ARRAYS,
    )


def staged_pairs(n: int) -> int:
    """The number of pairs (vertex, pointer) that fit the exchange table of a device."""
    return max(LEAST_STAGED, n // STAGED_PART)


def match(
    view: Any,
    seed: int,
    by_hash: bool,
    threads: int | None = None,
    *,
    machine: machines.Machine,
    keep: Any = None,
) -> EngineMatching:
    """See matchwood.matching.weighted_matching; `keep` is that of a prepared Graph."""
    stats = Stats(machine.devices.devices, vertices=view.n, entries=view.nnz)
    if view.nnz == 0:
        return EngineMatching(np.full(view.n, -1, view.indices.dtype), 0.0, 0, stats=stats)
    if engines.xp(view.indices) is not np:
        return _on_device(view, seed, by_hash, threads, machine, keep, stats)
    rows = {} if keep is None else keep("rows on devices", dict)
    machine.count_again(_kept_bytes(rows, machine.devices.devices))
    plan = _planned(view, machine, keep, stats)
    if _fits_whole(view, plan, machine):
        return _resident(view, seed, by_hash, threads, machine, keep, rows, stats)
    problem = Problem(view, vertex_type(view.n), seed, by_hash, plan, threads, keep, rows)
    return _match(problem, machine, stats)


def _planned(view: Any, machine: machines.Machine, keep: Any, stats: Stats) -> Plan:
    sizes = sizes_of(view, machine.devices.size)
    plan = make_plan(
        CALLER, view.indptr, machine.devices, sizes, machine.limits, keep,
        resident_list=RESIDENT_LIST,
    )  # fmt: skip
    stats.partitions = [(part.lo, part.hi) for part in plan.partitions]
    stats.batches = [len(batches) for batches in plan.batches]
    stats.lists = 0 if machine.devices.lists == 0 else plan.length
    stats.resident = plan.resident
    stats.notes += plan.notes
    return plan


def _match(problem: Problem, machine: machines.Machine, stats: Stats) -> EngineMatching:
    plan, steps = problem.plan, machine.steps(__package__)
    with contextlib.ExitStack() as stack:
        team = steps.Workers(problem, machine, stats)
        stack.callback(team.close)
        run = _without_lists if machine.devices.lists == 0 else _with_lists
        rounds = run(team, plan, stats)
        mate, weight = team.result()
        stats.memory = team.memory()
    kind = problem.view.indices.dtype
    return EngineMatching(mate.astype(kind, copy=False), weight, rounds, stats=stats)


def _on_device(
    view: Any,
    seed: int,
    by_hash: bool,
    threads: int | None,
    machine: machines.Machine,
    keep: Any,
    stats: Stats,
) -> EngineMatching:
    """Match a graph that is on a device already: its rows are read there, and the mates stay."""
    cupy, numbers = engines.cupy(), machine.devices.devices
    nbytes, parts = sum(array.nbytes for array in view), len(numbers)
    if parts == 1:
        stats.partitions, stats.batches, stats.resident = [(0, view.n)], [1], True
        new_round(stats).pointed = view.n
        with cupy.cuda.Device(numbers[0]):
            usual = engines.load(__package__.rpartition(".")[0], "gpu")
            found = usual.match(view, seed, by_hash)
        stats.memory = [nbytes + WHOLE_ARRAYS * found.mate.nbytes]
        return EngineMatching(found.mate, found.weight, found.rounds, stats=stats)
    places = view.indptr.get() if keep is None else keep("places on the host", view.indptr.get)
    machine.count_again(Counter({numbers[0]: nbytes}))
    there = view._replace(indptr=places)
    plan = _planned(there, machine, keep, stats)
    if not plan.resident:  # no room beside the graph
        host = type(view)(*(array.get() for array in view))
        machine = machines.require(machine.devices, CALLER)
        return match(host, seed, by_hash, threads, machine=machine)
    rows = {}
    for p, (part, batches) in enumerate(zip(plan.partitions, plan.batches, strict=True)):
        lo, hi = (batches[0].lo, batches[0].hi) if batches else (part.lo, part.lo)
        rows[numbers[0], p, parts] = SimpleNamespace(
            ids=view.indices[:0], places=view.indptr[lo : hi + 1], free=None, filled=True, nbytes=0,
            columns=view.indices[part.first : part.last], weights=view.data[part.first : part.last],
        )  # fmt: skip
    kind = vertex_type(view.n)
    problem = Problem(there, kind, seed, by_hash, plan, threads, None, rows, stays=True)
    return _match(problem, machine, stats)


def _fits_whole(view: Any, plan: Plan, machine: machines.Machine) -> bool:
    """Whether the only device can hold the whole graph and the arrays of the usual engine."""
    arrays = [array.nbytes for array in (view.indptr, view.indices, view.data)]
    work = WHOLE_ARRAYS * view.n * view.indices.dtype.itemsize
    fits = sum(arrays) + work + CONTROL_BYTES <= machine.limits[0]
    return plan.resident and fits and machine.usual_engines and machine.devices.size == 1


def _kept_bytes(rows: dict[Any, Any], devices: tuple[int, ...]) -> Counter[int]:
    """Bytes of rows that earlier calls have left on each device."""
    found: Counter[int] = Counter()
    for p, number in enumerate(devices):
        kept = rows.get((number, p, len(devices)))
        found[number] += 0 if kept is None else kept.nbytes
    if len(devices) == 1 and devices in rows:
        found[devices[0]] += rows[devices].nbytes
    return found


def _resident(
    view: Any,
    seed: int,
    by_hash: bool,
    threads: int | None,
    machine: machines.Machine,
    keep: Any,
    rows: Any,
    stats: Stats,
) -> EngineMatching:
    """The usual engine of this method, on a copy that a prepared Graph keeps."""
    cupy, number, one = engines.cupy(), machine.devices.devices[0], new_round(stats)
    nbytes = sum(array.nbytes for array in view)
    with cupy.cuda.Device(number):
        kept = rows.get((number,))
        if kept is None:
            one.entries, one.bytes_up = view.nnz, nbytes
            there = type(view)(*(cupy.asarray(array) for array in view))
            kept = rows.setdefault((number,), Kept(there, nbytes))
        found = engines.load(__package__.rpartition(".")[0], "gpu").match(kept.view, seed, by_hash)
        mate = received(found.mate, rings_of(keep), threads)
    one.pointed, one.bytes_down = view.n, mate.nbytes
    stats.memory = [nbytes + WHOLE_ARRAYS * mate.nbytes]
    return EngineMatching(mate, found.weight, found.rounds, stats=stats)


def _stream(team: Any, plan: Plan, only_free: bool) -> None:
    """All rows pass; the partitions take turns, so that all devices are busy."""
    turns = max(len(batches) for batches in plan.batches)
    for worker, batches in zip(team.workers, plan.batches, strict=True):
        worker.foresee(batches)
    for turn in range(turns):
        tell_progress(turn, turns)
        for worker, batches in zip(team.workers, plan.batches, strict=True):
            if turn < len(batches):
                worker.stream(batches[turn], only_free)


def _with_lists(team: Any, plan: Plan, stats: Stats) -> int:
    """Rounds until nothing changes; returns how many matched a vertex."""
    rounds, settled, first = 0, 0, True
    team.begin_round(stats)
    if team.alone:
        team.workers[0].settle_early()
    _stream(team, plan, only_free=team.alone)
    team.workers[0].expect_answer()
    stats.first_pass = team.passed()
    if team.alone:
        return _run_on(team, stats)
    for worker in team.workers:
        worker.queue_own(only_free=False)
    while True:
        for worker in team.workers:
            worker.point()
        for worker in team.workers:
            worker.fetch()
        for worker in team.workers:
            worker.fetched()
        team.exchange(whole=first)
        for worker in team.workers:
            worker.settle(everyone=first)
        for worker in team.workers:
            worker.settled()
        team.end_round()
        settled += 2 * team.matched()
        tell_progress(settled, plan.n)
        if team.matched() == 0:
            return rounds
        rounds, first = rounds + 1, False
        if not team.any_queued():
            return rounds
        team.begin_round(stats)


def _run_on(team: Any, stats: Stats) -> int:
    """As `_with_lists` on one device, which goes on by itself until the host has to send rows."""
    rounds = 0
    team.end_round()
    team.begin_round(stats)
    while True:
        rounds += team.run_on()
        team.end_round()
        if team.finished():
            return rounds
        team.begin_round(stats)
        team.workers[0].fetch()
        team.workers[0].fetched()


def _without_lists(team: Any, plan: Plan, stats: Stats) -> int:
    """LD-GPU's rounds: all rows pass in each, and the pointers and mates of all are exchanged."""
    rounds = 0
    while True:
        team.begin_round(stats)
        for worker in team.workers:
            worker.forget_lists()
        _stream(team, plan, only_free=True)
        for worker in team.workers:
            worker.queue_own(only_free=True)
            worker.point()
        team.share_all()
        for worker in team.workers:
            worker.settle(everyone=True)
        for worker in team.workers:
            worker.settled()
        team.share_all()
        team.end_round()
        if team.matched() == 0:
            return rounds
        rounds += 1
