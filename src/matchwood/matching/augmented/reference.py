"""Rounds of short augmentations, from the definition: every unit is looked at in every round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.matching.augmented import LEAST_GAIN, LIMIT, exponent_of
from matchwood.matching.methods import EngineMatching, load
from matchwood.primitives.edge_order.reference import edge_key
from matchwood.primitives.hashing.reference import mix64_number

MASK64 = (1 << 64) - 1


class Exchange(NamedTuple):
    """What a unit would do; x is the new mate of its smaller end, y that of the other one."""

    gain: int
    x: int
    y: int


class Arm(NamedTuple):
    value: int
    x: int


NO_ARM = Arm(0, -1)
NOTHING = Exchange(0, -1, -1)


class State:
    """A graph with integers for weights, and a matching."""

    def __init__(self, view: Any, mate: list[int], seed: int, by_hash: bool) -> None:
        indptr, indices, data = (array.tolist() for array in view)
        exponent = exponent_of(max(data, default=1.0))
        self.n, self.mate, self.seed, self.by_hash = view.n, mate, seed, by_hash
        self.rows = [
            {indices[k]: cut(data[k], exponent) for k in range(indptr[u], indptr[u + 1])}
            for u in range(view.n)
        ]

    def own(self, v: int) -> int:
        return self.rows[v][self.mate[v]] if self.mate[v] >= 0 else 0

    def unit(self, v: int) -> int:
        """The smaller end of the edge at v, v itself where it is free."""
        return min(v, self.mate[v]) if self.mate[v] >= 0 else v

    def arms(self, u: int) -> list[Arm]:
        """The arms of u that gain something, the best first."""
        found = [
            (w - self.own(x), x)
            for x, w in self.rows[u].items()
            if x != self.mate[u] and w > self.own(x)
        ]
        found.sort(key=lambda arm: edge_key(arm[0], u, arm[1], self.seed, self.by_hash)[1:])
        found.sort(key=lambda arm: -arm[0])
        return [Arm(*arm) for arm in found]

    def best(self, u: int) -> Exchange:
        """The best exchange of the unit whose smaller end is u."""
        if self.mate[u] < 0:
            free = [arm for arm in self.arms(u) if self.mate[arm.x] < 0]
            return Exchange(free[0].value, free[0].x, -1) if free else NOTHING
        return max(self.path(u), self.cycle(u), key=lambda exchange: exchange.gain)

    def path(self, u: int) -> Exchange:
        v = self.mate[u]
        (a, a2), (b, b2) = self.two_arms(u), self.two_arms(v)
        if a.x >= 0 and b.x >= 0 and self.unit(a.x) == self.unit(b.x):
            if a.value + b2.value >= a2.value + b.value:
                b = b2
            else:
                a = a2
        return Exchange(a.value + b.value - self.own(u), a.x, b.x)

    def two_arms(self, u: int) -> tuple[Arm, Arm]:
        """The best arm, and the best to another unit."""
        arms = self.arms(u)
        if not arms:
            return NO_ARM, NO_ARM
        others = (arm for arm in arms if self.unit(arm.x) != self.unit(arms[0].x))
        return arms[0], next(others, NO_ARM)

    def cycle(self, u: int) -> Exchange:
        """The best cycle with a matched edge that is not heavier; of equal gains the smallest x."""
        v, found = self.mate[u], NOTHING
        for x in sorted(self.rows[u]):
            y = self.mate[x]
            if x == v or y not in self.rows[v] or self.own(x) > self.own(u):
                continue
            gain = self.rows[u][x] + self.rows[v][y] - self.own(u) - self.own(x)
            if gain > found.gain:
                found = Exchange(gain, x, y)
        return found

    def key(self, u: int, exchange: Exchange) -> tuple[int, int]:
        """The key of an exchange: larger is first, and no two units have the same."""
        return exchange.gain, tie_word(u, self.seed, self.by_hash)

    def units(self) -> Iterator[int]:
        return (u for u in range(self.n) if self.unit(u) == u)

    def round(self) -> bool:
        """One round; False where no unit gains."""
        wanted = {u: self.best(u) for u in self.units()}
        wanted = {u: exchange for u, exchange in wanted.items() if exchange.gain >= LEAST_GAIN}
        touched = {
            u: [self.unit(v) for v in (u, exchange.x, exchange.y) if v >= 0]
            for u, exchange in wanted.items()
        }
        first: dict[int, tuple[int, int]] = {}
        for u, exchange in wanted.items():
            for t in touched[u]:
                first[t] = max(first.get(t, (0, 0)), self.key(u, exchange))
        made = [
            (u, exchange)
            for u, exchange in wanted.items()
            if all(first[t] == self.key(u, exchange) for t in touched[u])
        ]
        for u, exchange in made:
            self.make(u, exchange)
        return bool(made)

    def make(self, u: int, exchange: Exchange) -> None:
        v = self.mate[u]
        pairs = [(end, x) for end, x in ((u, exchange.x), (v, exchange.y)) if x >= 0]
        for end in (u, v, exchange.x, exchange.y):
            if end >= 0:
                self.free(end)
        for end, x in pairs:
            self.mate[end], self.mate[x] = x, end

    def free(self, v: int) -> None:
        if self.mate[v] >= 0:
            self.mate[self.mate[v]] = -1
            self.mate[v] = -1


def cut(w: float, exponent: int) -> int:
    """floor(w 2^exponent), exactly."""
    above, below = float(w).as_integer_ratio()
    return (above << exponent) // below if exponent >= 0 else above // (below << -exponent)


def tie_word(u: int, seed: int, by_hash: bool) -> int:
    """The word that breaks ties between units of equal gain, larger first; all are different."""
    return mix64_number(u ^ mix64_number(seed)) if by_hash else ~u & MASK64


def match(
    view: Any, seed: int, by_hash: bool, threads: int | None = None, rounds: int = LIMIT
) -> EngineMatching:
    start = load("auto", "reference").match(view, seed, by_hash)
    state = State(view, start.mate.tolist(), seed, by_hash)
    made = 0
    while made < rounds and state.round():
        made += 1
    mate = np.array(state.mate, view.indices.dtype)
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    weight = float(view.data[mate[row] == view.indices].sum(dtype=np.float64)) / 2
    return EngineMatching(mate, weight, made)
