"""Where the limits of `louvain` and `leiden` come from: modularity and time as they change.

python -m bench.communities.limits

FEW_MOVERS, FEW_MOVERS_LEIDEN and FEW_MOVERS_BACK: a round that moves at most one in so many
vertices is the last one of its level.  ALONE: entries and vertices of a level below which one
member moves them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matchwood
from bench.communities.moving import THREADS, graphs
from matchwood.communities import louvain_leiden
from matchwood.communities.louvain_leiden import cpu

TRIED: dict[str, tuple[Any, str, tuple[int, ...]]] = {
    "FEW_MOVERS": (louvain_leiden, "moving", (2, 4, 16, 256)),
    "FEW_MOVERS_BACK": (louvain_leiden, "moving", (16, 256, 4096)),
    "FEW_MOVERS_LEIDEN": (louvain_leiden, "leiden", (2, 5, 16, 256)),
    "ONE_MEMBER_SIZE": (cpu, "moving", (0, 1 << 15, 1 << 17, 1 << 19)),
}
RUNS = 5


@contextmanager
def changed(module: Any, name: str, value: int) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def find(G: Any, method: str) -> Any:
    if method == "leiden":
        return matchwood.leiden(G, threads=THREADS)
    return matchwood.louvain(G, method=method, threads=THREADS)


def best(G: Any, method: str) -> tuple[float, Any]:
    taken = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        found = find(G, method)
        taken.append(time.perf_counter() - begun)
    return min(taken), found


def main() -> None:
    for graph, A in graphs().items():
        G = matchwood.graph((A.indptr, A.indices))
        for name, (module, method, values) in TRIED.items():
            for value in values:
                with changed(module, name, value):
                    seconds, found = best(G, method)
                print(
                    f"{graph:24}{name:18}{value:8}{1e3 * seconds:9.1f} ms"
                    f"{found.modularity:9.4f}{found.rounds:5} rounds"
                )


if __name__ == "__main__":
    main()
