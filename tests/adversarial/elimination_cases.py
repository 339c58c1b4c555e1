"""Right answers about elimination, separators and covers, to be spoiled; judged by definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from adversarial.cases import Case, Fields, graphs, matrices, of, replaced, some_order
from matchwood import check

FILL = ("entries", "operations", "counts", "parent", "height")
DISSECTION = ("perm", "place", "tree", "starts", "separators")


def without_gpu(engine: str | None) -> str | None:
    """The engine; that of the graph in the place of a GPU, where these problems have none."""
    return None if engine == "gpu" else engine


def edges(G: Any) -> list[tuple[int, int]]:
    view = G.undirected_pattern()
    row = np.repeat(np.arange(G.n), np.diff(view.indptr))
    return list(zip(row.tolist(), view.indices.tolist(), strict=True))


def degree_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        perm = matchwood.minimum_degree(G, engine=without_gpu(engine))
        yield Case(
            G.n, G, {"perm": perm}, lambda fields: fields["perm"],
            lambda x, G=G: check.check_minimum_degree(G, x),
        )  # fmt: skip


def fill_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        perm = some_order(G.n)
        found = matchwood.fill(G, perm, engine=without_gpu(engine))
        yield Case(
            G.n, G, of(found, *FILL), replaced(found),
            lambda x, G=G, p=perm: check.check_fill(G, x, p),
        )  # fmt: skip


def tree_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        perm = some_order(G.n)
        yield Case(
            G.n, G, {"parent": matchwood.elimination_tree(G, perm, engine=without_gpu(engine))},
            lambda fields: fields["parent"],
            lambda x, G=G, p=perm: check.check_elimination_tree(G, x, p),
        )  # fmt: skip


def separator_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        found = matchwood.vertex_separator(G, engine=without_gpu(engine))
        limit = int(1.1 * ((G.n + 1) // 2))

        def right(fields: Fields, G: Any = G, limit: int = limit) -> bool:
            side = fields["side"]
            if side.shape != (G.n,) or not set(side.tolist()) <= {0, 1, 2}:
                return False
            heavy = any(np.count_nonzero(side == k) > limit for k in (0, 1))
            return not heavy and all(side[u] + side[v] != 1 for u, v in edges(G))

        yield Case(
            G.n, G, {"side": found}, lambda fields: fields["side"],
            lambda x, G=G: check.check_separator(G, x), right,
        )  # fmt: skip


def cover_cases(engine: str | None = None) -> Iterator[Case]:
    """The rows and columns of a matrix are the sides."""
    for B in matrices():
        n = B.shape[0]
        if n > 20:
            continue
        pattern = sp.csr_array((np.ones(B.nnz), B.indices, B.indptr), B.shape)
        G = matchwood.graph(sp.csr_array(sp.block_array([[None, pattern], [pattern.T, None]])))
        found = matchwood.minimum_vertex_cover(G, engine=without_gpu(engine))

        def right(fields: Fields, G: Any = G, k: int = found.matching.cardinality) -> bool:
            members, side = fields["members"], fields["side"]
            if members.shape != (G.n,) or side.shape != (G.n,):
                return False
            if not set(side.tolist()) | set(members.tolist()) <= {0, 1}:
                return False
            covers = all(members[u] or members[v] for u, v in edges(G))
            sided = all(side[u] != side[v] for u, v in edges(G))
            return bool(covers and sided and members.sum() == fields["size"] == k)

        yield Case(
            G.n, G, of(found, "members", "size", "side"), replaced(found),
            lambda x, G=G: check.check_vertex_cover(G, x), right,
        )  # fmt: skip


def dissection_cases(engine: str | None = None) -> Iterator[Case]:
    for k, (_, G) in enumerate(graphs()):
        found = matchwood.nested_dissection(G, leaf=1 + k % 4, engine=without_gpu(engine))
        yield Case(
            G.n, G, of(found, *DISSECTION), replaced(found),
            lambda x, G=G: check.check_dissection(G, x), judge_of(G, found.fill),
        )  # fmt: skip


def judge_of(G: Any, fill: Any) -> Callable[[Fields], bool]:
    """Whether fields are a dissection with that fill: parents are followed one by one."""

    def right(fields: Fields) -> bool:
        perm, place, tree, starts, cut = (fields[name] for name in DISSECTION)
        nodes = tree.size
        if perm.shape != (G.n,) or sorted(perm.tolist()) != list(range(G.n)):
            return False
        if place.shape != perm.shape or not np.array_equal(place[perm], np.arange(G.n)):
            return False
        if starts.shape != (nodes + 1,) or cut.shape != (nodes,) or cut.dtype != bool:
            return False
        if starts[0] != 0 or starts[-1] != G.n or (np.diff(starts) < 0).any():
            return False
        parent = tree.tolist()
        if any(not (k < p < nodes or (p == -1 and k == nodes - 1)) for k, p in enumerate(parent)):
            return False
        above = [{k} for k in range(nodes)]  # each node and all above it
        for k in reversed(range(nodes - 1)):
            above[k] |= above[parent[k]]
        below = [[j for j in range(nodes) if k in above[j]] for k in range(nodes)]
        if any(part != list(range(part[0], k + 1)) for k, part in enumerate(below)):
            return False
        if [len(part) > 1 for part in below] != cut.tolist():
            return False
        node = np.repeat(np.arange(nodes), np.diff(starts))[place]
        if any(node[u] not in above[node[v]] | set(below[node[v]]) for u, v in edges(G)):
            return False
        again = matchwood.fill(G, perm, engine="reference")
        return all(np.array_equal(getattr(again, name), getattr(fill, name)) for name in FILL)

    return right


CASES: dict[str, Callable[..., Iterator[Case]]] = {
    "minimum degree": degree_cases,
    "fill": fill_cases,
    "elimination tree": tree_cases,
    "separator": separator_cases,
    "vertex cover": cover_cases,
    "dissection": dissection_cases,
}
