"""What a call asks for, as integers: weights, targets and limits; and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.communities.weights import LARGEST_SUM, scaled
from matchwood.matching.methods import rows_of

DEAD_ZONE = 10  # rebalancing leaves a tenth of the slack of a block free
LARGEST_LIMIT = 1 << 60  # of a block: far above all weights together
SMALLEST_UNIT = -1074  # exponent of the smallest positive float: no unit is below
NEAREST = 10**9  # the imbalance is the nearest fraction with a denominator up to this: 0.15 is 3/20


class Level(NamedTuple):
    """A graph with integer weights; `data` is None where all edges weigh 1."""

    indptr: Any
    indices: Any
    data: Any
    weights: Any  # of vertices
    longest: int  # entries of the longest row

    @property
    def n(self) -> int:
        return int(self.indptr.shape[0]) - 1

    def on_host(self) -> Level:
        """The same level on the host; a copy of what is not there."""
        here = [engines.moved(array, "cpu") for array in self[:4]]
        return Level(here[0], here[1], here[2], here[3], self.longest)


class Plan(NamedTuple):
    """Numbers of the refinement."""

    c: Any  # temperatures, in quarters: an array for kernels
    patience: int  # iterations in a row without a gain of 0.1 % that end a temperature
    rounds: int  # of rebalancing after an iteration


class Task(NamedTuple):
    """What a call asks for."""

    weights: Any  # int64, of vertices, where the engine reads them
    unit: float  # the given weights are these times the unit
    targets: Any  # float64, weight that each block is to have
    limits: Any  # int64, weight that each block may have
    fixed: Any  # int32, a block or -1 for each vertex; or None
    effort: int
    seed: int

    @property
    def k(self) -> int:
        return int(self.limits.size)

    def ceilings(self) -> Any:
        """To which rebalancing fills a block."""
        slack = self.limits - np.ceil(self.targets).astype(np.int64)
        return self.limits - np.maximum(slack, 0) // DEAD_ZONE

    def given(self, weights: Any) -> Any:
        """Integer weights as they were given: floats only where those were."""
        return weights if self.unit == 1 else weights * self.unit


def base_level(graph: Any, caller: str, weights: Any) -> Level:
    """The finest level: undirected weights as integers, kept by the graph, and vertex weights."""
    if graph.weighted:  # at each call, since it may be another caller that is to be named
        _refuse_large(caller, graph, graph.undirected_weights(caller, negative="error"))

    def make() -> Level:
        unit = not graph.weighted or graph.weight_range in ((1.0, 1.0), (0.0, 0.0))
        if unit and not graph.weighted:
            view, data = graph.undirected_pattern(), None
        else:
            view = graph.undirected_weights(caller, negative="error")
            data = None if unit else scaled(view.data, None, lambda value, op: value)[0]
        xp, indptr, indices = engines.xp(view.indptr), view.indptr, view.indices
        if data is not None and not bool((data > 0).all()):  # rounded to 0: no edge at all
            tied = data > 0
            before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(tied, dtype=np.int64)])
            indptr, indices = before[indptr].astype(indptr.dtype), indices[tied]
            data = data[tied]
        longest = int(xp.diff(indptr).max()) if view.n else 0
        return Level(indptr, indices, data, None, longest)

    found: Level = graph.keep("whole_weights_of_edges", make)
    return found._replace(weights=weights)


def _refuse_large(caller: str, graph: Any, view: Any) -> None:
    """Raise where the weights of all entries add up to no finite number."""
    if 2.0 * graph.largest_magnitude * max(view.nnz, 1) < np.finfo(np.float64).max:
        return
    with np.errstate(over="ignore"):
        total = float(view.data.sum(dtype=np.float64))
    if not math.isfinite(total):
        raise ValueError(
            f"{caller}: the weights of all edges must add up to a finite number, got a sum that is "
            "more; divide them by a power of two"
        )


def task_of(
    caller: str, n: int, k: Any, imbalance: Any, vertex_weights: Any, block_weights: Any,
    fixed: Any, effort: Any = 1, rng: Any = 0, place: str = "cpu",
) -> Task:  # fmt: skip
    """The arguments of a call, checked, as integers; the weights of vertices at that place."""
    k = arguments.count(caller, "k", k, 1)
    if k > max(n, 1):
        most = f"{n}, the number of vertices" if n else "1 where there are no vertices"
        raise ValueError(f"{caller}: k must be at most {most}, got {k}")
    room = Fraction(arguments.real(caller, "imbalance", imbalance, 0)).limit_denominator(NEAREST)
    effort = arguments.count(caller, "effort", effort, 0, 3)
    weights, unit = _whole(caller, vertex_weights, n, place)
    total = int(weights.sum())
    shares = _shares(caller, block_weights, k)
    whole = sum(shares)
    limit_of: dict[Fraction, tuple[float, int]] = {}
    for share in set(shares):
        target = total * share / whole
        limit = math.floor((1 + room) * math.ceil(target))
        limit_of[share] = float(target), min(limit, LARGEST_LIMIT)
    targets = np.array([limit_of[share][0] for share in shares], np.float64)
    limits = np.array([limit_of[share][1] for share in shares], np.int64)
    task = Task(weights, unit, targets, limits, None, effort, arguments.seed(caller, rng))
    _refuse(caller, task)
    if fixed is None:
        return task
    return task._replace(fixed=_fixed(caller, fixed, n, task))


def _whole(caller: str, given: Any, n: int, place: str) -> tuple[Any, float]:
    """The vertex weights as int64, and the unit: 1 where they are whole numbers already."""
    if given is None:
        xp = engines.cupy() if place == "gpu" else np
        return xp.ones(n, np.int64), 1.0
    whole, unit = _whole_on_host(caller, given, n)
    return engines.moved(whole, place), unit


def _whole_on_host(caller: str, given: Any, n: int) -> tuple[Any, float]:
    array = arguments.numbers(caller, "vertex_weights", given, size=n)
    array = engines.moved(array, "cpu")
    if array.size and array.min() < 0:
        at = int((array < 0).argmax())
        raise ValueError(f"{caller}: vertex_weights must not be negative, got {array[at]} at {at}")
    if n and not array.any():
        raise ValueError(f"{caller}: vertex_weights must not all be 0")
    exact = array.astype(np.float64)
    with np.errstate(over="ignore"):
        total = float(exact.sum())
    if not math.isfinite(total):
        raise ValueError(f"{caller}: vertex_weights must add up to a finite number, got {total}")
    if bool((exact == np.rint(exact)).all()) and total <= LARGEST_SUM:
        return array.astype(np.int64), 1.0
    whole = scaled(exact, None, lambda value, op: value)[0]
    at = int(exact.argmax())
    exponent = round(math.log2(exact[at]) - math.log2(int(whole[at])))
    if exponent < SMALLEST_UNIT:
        exponent, whole = SMALLEST_UNIT, np.ldexp(exact, -SMALLEST_UNIT).astype(np.int64)
    return whole, math.ldexp(1.0, exponent)


def _shares(caller: str, block_weights: Any, k: int) -> list[Fraction]:
    """What each block is to have, in proportion."""
    if block_weights is None:
        return [Fraction(1)] * k
    array = engines.moved(arguments.numbers(caller, "block_weights", block_weights, size=k), "cpu")
    at = int((array <= 0).argmax())
    if array[at] <= 0:
        raise ValueError(f"{caller}: block_weights must be positive, got {array[at]} at {at}")
    return [Fraction(value) for value in array.tolist()]


def _refuse(caller: str, task: Task) -> None:
    """Raise where a vertex fits into no block.  All together fit: no limit is below its target."""
    if not task.weights.size:
        return
    v = int(task.weights.argmax())
    most = int(task.limits.max())
    if int(task.weights[v]) > most:
        raise ValueError(
            f"{caller}: vertex_weights must be at most {task.given(most)}, the largest limit of a "
            f"block, got {task.given(int(task.weights[v]))} at {v}; fewer blocks or a larger "
            "imbalance would do"
        )


def _fixed(caller: str, fixed: Any, n: int, task: Task) -> Any:
    array = arguments.integers(caller, "fixed", fixed, size=n, low=-1, high=task.k - 1)
    array = engines.moved(array, "cpu").astype(np.int32)
    held = array >= 0
    if not held.any():
        return None
    weight = np.zeros(task.k, np.int64)
    np.add.at(weight, array[held], engines.moved(task.weights, "cpu")[held])
    if (weight > task.limits).any():
        b = int((weight > task.limits).argmax())
        raise ValueError(
            f"{caller}: fixed vertices of block {b} must weigh at most its limit "
            f"{task.given(int(task.limits[b]))}, got {task.given(int(weight[b]))}"
        )
    return array


def cut_as_given(graph: Any, labels: Any) -> float:
    """The cut in the weights that were given, in double precision."""
    view = graph.undirected_weights()
    rows = rows_of(view)
    across = labels[rows] != labels[view.indices]
    return float(view.data[across].sum(dtype=np.float64)) / 2
