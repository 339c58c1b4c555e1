"""Union-find over an edge list against SciPy's components of the finished matrix.

Ours starts from the list; SciPy's time does not count the making of its CSR matrix.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import csgraph

from bench import harness
from matchwood.primitives.union_find import union_find
from matchwood.primitives.union_find.check import check_union_find


def run() -> list[harness.Result]:
    """One comparison for each graph."""
    results = []
    for name, A in harness.standard_graphs().items():
        edges = A.tocoo()
        u, v = edges.row.astype("int32"), edges.col.astype("int32")
        n = A.shape[0]

        def join(threads: int, parts: Any = (n, u, v)) -> Any:
            return union_find(*parts, threads=threads)

        def verify(who: str, answer: Any, parts: Any = (n, u, v)) -> None:
            if who != "scipy":
                check_union_find(*parts, answer)

        results.append(
            harness.compare(
                f"union-find, {name}",
                {
                    "matchwood, 2 threads": lambda join=join: join(2),
                    "matchwood, 1 thread": lambda join=join: join(1),
                    "scipy": lambda A=A: csgraph.connected_components(A, directed=False),
                },
                verify=verify,
            )
        )
    return results


if __name__ == "__main__":
    harness.main(run)
