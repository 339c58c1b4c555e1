"""A distributed graph whose views lie on the GPU of each rank.

The block is made on the CPU, where entries are sent and sorted; a view is brought to the device
when it is first asked for, and kept there.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.gate.distributed import DistributedGraph
from matchwood.gate.views import View

VIEWS = (
    "entries", "directed_pattern", "directed_weights", "heaviest_weights", "undirected_pattern",
    "undirected_weights", "finite_weights", "transposed_pattern", "transposed_weights", "joined",
)  # fmt: skip

FACTS = ("symmetry", "value_facts", "refuse_negative", "save")


class OnDevice(DistributedGraph):
    """The same graph, its views on the GPU; `host` is the one on the CPU."""

    def __init__(self, host: DistributedGraph) -> None:
        engines.cupy()
        self.__dict__.update(host.__dict__)
        super(DistributedGraph, self).__init__()  # keeps what lies on the device
        self.host = host
        self.engine = "gpu"

    def on(self, engine: str) -> DistributedGraph:
        """The same graph with its views on that engine."""
        return self if engine == "gpu" else self.host.on(engine)

    def mirrored(self, view: View) -> View:
        """The block of the transpose of the matrix of which `view` is a block."""
        return _on_gpu(self.host.mirrored(_on_cpu(view)))

    def canonical(self, data: Any, rule: str = "sum") -> View:
        """The entries with these values, one for each of `entries`; duplicates joined."""
        return _on_gpu(self.host.canonical(engines.moved(data, "cpu"), rule))

    def diagonal(self, caller: str = "graph") -> Any:
        """The values a_ii of own vertices, by place; 0 where none is stored."""
        return engines.moved(self.host.diagonal(caller), "gpu")

    def given_values(self, caller: str = "graph") -> Any:
        """The values as they were given, by `entries`; or None."""
        return engines.moved(self.host.given_values(caller), "gpu")


def _view(name: str) -> Any:
    def view(self: OnDevice, *args: Any, **options: Any) -> View:
        there = getattr(self.host, name)(*args, **options)
        return self.keep(f"{name} {args} {options}", lambda: _on_gpu(there))

    view.__name__ = name
    view.__doc__ = f"`{name}` of the host's block, on the device."
    return view


def _fact(name: str) -> Any:
    def fact(self: OnDevice, *args: Any, **options: Any) -> Any:
        return getattr(self.host, name)(*args, **options)

    fact.__name__ = name
    fact.__doc__ = f"`{name}`, found on the host."
    return fact


def _on_gpu(view: View) -> View:
    return View(*(engines.moved(array, "gpu") for array in view))


def _on_cpu(view: View) -> View:
    return View(*(engines.moved(array, "cpu") for array in view))


for _name in VIEWS:
    setattr(OnDevice, _name, _view(_name))
for _name in FACTS:
    setattr(OnDevice, _name, _fact(_name))
