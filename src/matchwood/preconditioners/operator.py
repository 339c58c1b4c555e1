"""What all preconditioners share: the matrix on its engine, the operator, the timing of the setup.

`Core` describes a preconditioner; `operator` makes SciPy's or CuPy's LinearOperator of it.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from matchwood import arguments, calls, engines
from matchwood._lazy import import_whole
from matchwood.errors import EngineUnavailable
from matchwood.gate.graph import Graph
from matchwood.preconditioners.definite import is_definite, made_definite
from matchwood.tridiagonal.system import trusted_solve_ordered


def matrix_on(A: Any, caller: str, engine: str | None, threads: int | None, **flags: bool) -> Graph:
    """The Graph of A on the engine of the call; complex and rectangular matrices are refused.

    So are `flags`, arguments by name, that are neither True nor False.
    """
    for name, value in flags.items():
        arguments.flag(caller, name, value)
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "reference":
        raise EngineUnavailable(f"{caller} has no 'reference' engine")
    call.graph.directed_weights(caller)
    return call.graph


@dataclass(frozen=True)
class Core:
    """A preconditioner, independent of the interface (SciPy's or CuPy's)."""

    name: str
    n: int
    dtype: Any
    engine: str
    apply: Callable[[Any, bool], Any]  # (rows (k, n) of dtype, transpose) -> (k, n)
    coverage: Callable[[], float]
    seconds: Callable[[], dict[str, float]]
    definite: Callable[[], bool | None]

    def settled(self) -> Core:
        """A copy in which all values are computed that otherwise are when first read.

        It can be pickled: it holds no functions of the setup.
        """
        return dataclasses.replace(
            self,
            coverage=Known(self.coverage()),
            seconds=Known(self.seconds()),
            definite=Known(self.definite()),
        )


@dataclass(frozen=True)
class Known:
    """A function that returns a value computed before."""

    value: Any

    def __call__(self) -> Any:
        return self.value


@dataclass(frozen=True, eq=False)
class Scaled:
    """Multiplies each unknown by a number."""

    inverse: Any

    def __call__(self, rows: Any, transpose: bool) -> Any:
        return rows * self.inverse


@dataclass(frozen=True, eq=False)
class Solved:
    """Solves with a tridiagonal matrix whose rows are in the order given by `order`."""

    made: Any
    order: Any = None

    def __call__(self, rows: Any, transpose: bool) -> Any:
        return trusted_solve_ordered(self.made, rows, self.order, transpose=transpose)


def solving_operator(
    G: Graph, caller: str, clock: SetupClock, factorize: Callable[..., Any], system: Any,
    coverage: Callable[[], float], *, order: Any = None, what: str = "rows", definite: bool,
    allow_singular: bool, threads: int | None, **extra: Any,
) -> Any:  # fmt: skip
    """The operator that solves with `system`, dl, d and du: the end of every tridiagonal setup.

    `order` holds the vertex of each row, or the two of each pair; `what` names those in errors.
    What is computed later needs the matrix as it is now.
    """
    G = G.watched()
    if definite:
        system = made_definite(G, system, caller, threads)
        clock.lap("definite")
    try:
        made = factorize(*system, allow_singular=allow_singular, threads=threads)
    except np.linalg.LinAlgError as error:
        if order is None:
            raise
        where = f"{caller}, {what} in the order of the forest"
        raise np.linalg.LinAlgError(f"{where}: {error}") from None
    clock.lap("solver")
    core = Core(
        caller, G.n, system[1].dtype, G.engine, Solved(made, order),
        lambda: _unchanged(G, caller) and coverage(), clock.seconds,
        lambda: _unchanged(G, caller) and is_definite(G, system, threads),
    )  # fmt: skip
    return operator(core, **extra)


def _unchanged(G: Graph, caller: str) -> Literal[True]:
    G.require_unchanged(caller)
    return True


class SetupClock:
    """Seconds of a setup by phase.  On the GPU events are recorded; only `seconds` waits."""

    def __init__(
        self, engine: str, before: Callable[[], Mapping[str, float]] | None = None
    ) -> None:
        self._engine = engine
        self._marks: list[tuple[str, Any]] = [("", self._now())]
        self._others = [before] if before is not None else []

    def _now(self) -> Any:
        if self._engine == "cpu":
            return time.perf_counter()
        event = engines.cupy().cuda.Event()
        event.record()
        return event

    def lap(self, phase: str) -> None:
        """Add the time since the last mark to `phase`."""
        self._marks.append((phase, self._now()))

    def skip(self, known: Callable[[], Mapping[str, float]]) -> None:
        """Take the phases since the last mark from `known`, which measured them itself."""
        self._others.append(known)
        self._marks.append(("", self._now()))

    def seconds(self) -> dict[str, float]:
        """All phases."""
        found: dict[str, float] = {}
        for other in self._others:
            for phase, taken in other().items():
                found[phase] = found.get(phase, 0.0) + taken
        for (_, start), (phase, end) in zip(self._marks[:-1], self._marks[1:], strict=True):
            if phase:
                found[phase] = found.get(phase, 0.0) + self._between(start, end)
        return found

    def _between(self, start: Any, end: Any) -> float:
        if self._engine == "cpu":
            return float(end - start)
        end.synchronize()
        return float(engines.cupy().cuda.get_elapsed_time(start, end)) / 1e3


def operator(core: Core, **extra: Any) -> Any:
    """A LinearOperator; `extra` become its attributes."""
    made = _class(core.engine)(core)
    made._extra = extra
    for name, value in extra.items():
        setattr(made, name, value)
    return made


def _restored(core: Core, extra: dict[str, Any]) -> Any:
    return operator(core, **extra)


@functools.cache
def _class(engine: str) -> Any:
    if engine == "gpu":
        engines.cupy()
        from cupyx.scipy.sparse.linalg import LinearOperator
    else:
        LinearOperator = import_whole("scipy.sparse.linalg").LinearOperator

    class Preconditioner(LinearOperator):  # type: ignore[misc]
        """A preconditioner, with `name`, `coverage`, `definite` and `seconds`."""

        def __init__(self, core: Core) -> None:
            super().__init__(np.dtype(core.dtype), (core.n, core.n))
            self._core = core
            self.name = core.name

        def __repr__(self) -> str:
            return f"<preconditioner {self.name}: {self.shape[0]} rows, {self.dtype}, {engine}>"

        @functools.cached_property
        def coverage(self) -> float:
            """Fraction of the weight off the diagonal that the preconditioner contains."""
            return self._core.coverage()

        @functools.cached_property
        def definite(self) -> bool | None:
            """Is it symmetric and positive definite?  None where the matrix is not symmetric.

            Computed when first read, from the pivots along the paths.  On the GPU the coefficients
            are copied to the host for that.
            """
            return self._core.definite()

        def __reduce__(self) -> Any:
            return _restored, (self._core.settled(), self._extra)

        @property
        def seconds(self) -> dict[str, float]:
            """Time of the setup by phase."""
            return self._core.seconds()

        def _apply(self, columns: Any, transpose: bool) -> Any:
            """Apply to a vector (n,) or (n, 1), or columns (n, k); returns the wider type."""
            columns = arguments.plain(self.name, "vectors", columns)
            if columns.dtype.kind not in "fiub":
                raise TypeError(f"{self.name}: vectors must be real, got {columns.dtype}")
            if columns.ndim == 1 and columns.dtype == self.dtype and columns.flags.c_contiguous:
                return self._core.apply(columns.reshape(1, -1), transpose).reshape(-1)
            xp = engines.cupy() if engine == "gpu" else np
            rows = (columns[:, None] if columns.ndim == 1 else columns).T
            rows = rows.astype(self.dtype, copy=False)
            if engine == "gpu":  # the CPU's solvers take columns as they lie
                rows = xp.ascontiguousarray(rows)
            answer = self._core.apply(rows, transpose).T.reshape(columns.shape)
            return answer.astype(np.result_type(self.dtype, columns.dtype), copy=False)

        def _matvec(self, x: Any) -> Any:
            return self._apply(x, False)

        def _rmatvec(self, x: Any) -> Any:
            return self._apply(x, True)

        def _matmat(self, X: Any) -> Any:
            return self._apply(X, False)

        def _rmatmat(self, X: Any) -> Any:
            return self._apply(X, True)

    return Preconditioner
