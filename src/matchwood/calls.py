"""The one door to the engines: from a public function's argument to an engine, and back.

    call = calls.enter(A, "maximal_independent_set", engine)
    view = call.graph.undirected_pattern()
    members = call.load(__name__).choose(view, method, threads=threads)
    return call.back(members)

`enter` passes `A` through the gate (gate/graph.py), decides on which engine the call runs
(engines/__init__.py) and brings the graph there.  It serves all engines; the registry lists those
that a function has.  On `matchwood.Devices` the graph is on the host, the engine is "devices", and
the function passes `call.options` on to it.  A `DistributedGraph` is its own engine,
"ranks": it stays where it is, and ranks are given the graph itself instead of a view:

    if call.engine == "ranks":
        return call.load(__name__).label(call.graph)

Functions whose work no ranks share are marked `of_first_rank`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from matchwood import arguments, engines, registry
from matchwood.engines.devices import machine as machines
from matchwood.engines.devices.machine import Devices
from matchwood.errors import EngineUnavailable
from matchwood.gate import graph as csr
from matchwood.gate.inputs import is_distributed as is_distributed

T = TypeVar("T")
Public = TypeVar("Public", bound=Callable[..., Any])


class Call(NamedTuple):
    """A call of a public function.

    Attributes
    ----------
    caller : str
        The public function, for messages.
    given : Graph
        The graph where it lives.
    graph : Graph
        The same graph where the engine reads it; `given` itself where that is the same place.
    engine : {"reference", "cpu", "gpu", "devices", "ranks"}
    prepared : bool
        The user passed a Graph: what is worked out now is kept for the next call.
    machine : Machine or None
        The devices of the engine "devices".
    """

    caller: str
    given: csr.Graph
    graph: csr.Graph
    engine: str
    prepared: bool
    machine: machines.Machine | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the engine "devices" beside those of the others."""
        if self.machine is None:
            return {}
        keep = self.graph.keep if self.prepared else None
        return {"machine": self.machine, "keep": keep}

    def load(self, package: str) -> Any:
        """The module of a problem, or of one of its methods, that holds the engine."""
        return engines.load(package, self.engine)

    def load_check(self, package: str) -> Any:
        """The module that checks answers which are distributed over ranks."""
        return engines.load(f"{package}.ranks", "check")

    def here(self, array: Any) -> Any:
        """An array, or None, moved to where the engine reads it."""
        return engines.moved(array, engines.home(self.engine))

    def back(self, *arrays: Any) -> Any:
        """The array, or several as a tuple, moved to where the user's graph lives."""
        home = self.given.engine
        if len(arrays) == 1:
            return engines.moved(arrays[0], home)
        return tuple(engines.moved(array, home) for array in arrays)


def enter(
    A: Any,
    caller: str,
    engine: Any = None,
    threads: Any = None,
    *,
    may_stay: bool = False,
) -> Call:
    """Pass `A` through the gate and bring it to the engine of the call.

    `may_stay`: the engine for `Devices` reads a graph of the GPU where it is, if all of the devices
    are that one.
    """
    offered = registry.engines_of(caller)
    if "ranks" in offered and is_distributed(A):
        check_on_ranks(A, caller, engine, threads)
        return Call(caller, A, A, "ranks", True)
    if "devices" in offered and isinstance(engine, Devices):
        engines.check_threads(threads)
        machine = machines.require(engine, caller)
        given = csr.as_graph(A, caller)
        stays = may_stay and given.engine == "gpu" and machine.can_read(given.indices)
        there = given if stays else given.on("cpu")
        return Call(caller, given, there, "devices", A is given, machine)
    given = csr.as_graph(A, caller)
    chosen = engines.resolve(given.engine, engine, caller, threads)
    return Call(caller, given, given.on(chosen), chosen, A is given)


def agreed(A: Any, check: Callable[[], T]) -> T:
    """What a check of arguments returns; of a distributed graph, all ranks raise its error.

    An argument that is wrong on one rank is then the same error everywhere, before any work.
    """
    if not is_distributed(A):
        return check()
    from matchwood.engines.ranks.agreement import together

    return together(A.comm, check, named=False)


def of_first_rank(function: Public) -> Public:
    """A public function that, for a DistributedGraph, the first rank calls with the whole graph.

    All other arguments have names.  Arrays over the vertices come back spread over the ranks.
    """
    caller = function.__name__

    @functools.wraps(function)
    def called(A: Any, **options: Any) -> Any:
        if not is_distributed(A):
            return function(A, **options)
        from matchwood.engines.ranks.agreement import same
        from matchwood.gate.distributed import whole

        engine, threads = options.pop("engine", None), options.pop("threads", None)
        check_on_ranks(A, caller, engine, threads)
        if "rng" in options:
            given = options["rng"]  # a Generator draws once on every rank
            options["rng"] = agreed(A, lambda: arguments.seed(caller, given))
        same(A.comm, caller, **options)
        return whole.answer(A, caller, lambda G: function(G, threads=threads, **options))

    plain: Any = called  # errors that look for the function that was called find this name
    plain.__code__ = plain.__code__.replace(co_name=caller, co_qualname=caller)
    return called  # type: ignore[return-value]


def check_on_ranks(A: Any, caller: str, engine: Any, threads: Any) -> None:
    """`engine` must be None or where the blocks of the graph lie; all ranks raise the error."""

    def check() -> None:
        engines.check_threads(threads)
        if engine not in (None, A.engine):
            raise EngineUnavailable(
                f"{caller}: engine must be None or {A.engine!r}, where the DistributedGraph lies, "
                f"got {arguments.shown(engine)}"
            )

    agreed(A, check)
