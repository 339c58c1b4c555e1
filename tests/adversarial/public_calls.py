"""A valid call of every public function, for the attacks of wrong_arrays.py.

`table()` makes those of each function.  A public name that is neither here nor in NO_ARRAYS
fails a test, so that a new function is attacked from its first day.
"""

from __future__ import annotations

import functools
import inspect
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood as mw
from adversarial import sensing_calls
from adversarial.join_cases import LEAST, verify_matrix
from adversarial.wrong_arrays import Call
from matchwood import block_tridiagonal, check, preconditioners, tridiagonal
from matchwood.primitives import (
    assemble,
    compact,
    contract,
    edge_order,
    frontier,
    hashing,
    number,
    path_scan,
    row_reduce,
    scan,
    sort,
    union_find,
)

NO_ARRAYS = {
    "matchwood.on_progress", "matchwood.show_config", "matchwood.warmup",
    "matchwood.CheckFailed", "matchwood.EngineUnavailable", "matchwood.OutOfMemory",
    "matchwood.FileFormatError", "matchwood.Measures", "matchwood.Gaps",
    "matchwood.generators.aniso", "matchwood.generators.complete", "matchwood.generators.cycle",
    "matchwood.generators.delaunay", "matchwood.generators.dense_random",
    "matchwood.generators.erdos_renyi", "matchwood.generators.grid", "matchwood.generators.mesh",
    "matchwood.generators.mycielskian", "matchwood.generators.path",
    "matchwood.generators.random_geometric", "matchwood.generators.random_points",
    "matchwood.generators.rmat", "matchwood.generators.star",
    "matchwood.io.Compacted", "matchwood.io.DimacsFile", "matchwood.io.HmetisFile",
    "matchwood.io.MetisFile", "matchwood.io.read", "matchwood.io.read_coordinates",
    "matchwood.io.read_dimacs", "matchwood.io.read_hmetis", "matchwood.io.read_metis",
    "matchwood.io.read_names", "matchwood.io.read_partition",
    "matchwood.primitives.hashing.bit_barrier", "matchwood.primitives.hashing.round_number",
    "matchwood.primitives.contract.Contracted",
    "matchwood.primitives.path_scan.Operation", "matchwood.primitives.row_reduce.Operation",
    "matchwood.Devices", "matchwood.DistributedGraph", "matchwood.DistributedVector",
    "matchwood.RankFailed", "matchwood.dist.Communicator", "matchwood.dist.Serial",
    "matchwood.dist.Traffic", "matchwood.dist.describe", "matchwood.dist.run",
    "matchwood.dist.world",
    "matchwood.Collection", "matchwood.Explanation", "matchwood.Pairs", "matchwood.explain",
    *sensing_calls.NO_ARRAYS,
}  # fmt: skip
"""They take no array, or are made by us and read by the user alone."""


@functools.cache
def matrix() -> sp.csr_array:
    """A symmetric matrix with a dominant diagonal, 12 rows, of two components."""
    rng = np.random.default_rng(5)
    A = sp.random_array((9, 9), density=0.3, rng=rng, format="csr")
    A = sp.block_diag([A + A.T, sp.csr_array([[0, 1.5, 0], [1.5, 0, 2.5], [0, 2.5, 0]])])
    made = sp.csr_array(A + 9 * sp.eye_array(12))
    made.sum_duplicates()
    return sp.csr_array((made.data, made.indices.astype(np.int32), made.indptr.astype(np.int32)))


@functools.cache
def arcs() -> sp.csr_array:
    """A directed graph with cycles."""
    edges = np.array([[0, 3], [3, 0], [3, 1], [1, 2], [2, 4], [4, 1], [4, 5]])
    return sp.csr_array((np.ones(7), (edges[:, 0], edges[:, 1])), shape=(6, 6))


def csr() -> tuple[Any, Any, Any]:
    A = matrix()
    return A.indptr, A.indices, A.data


def parents() -> Any:
    """A forest of two trees, one of whose roots has no parent."""
    return np.array([3, 0, 0, -1, 1, 5, 5, 2])


def upper() -> tuple[int, Any, Any]:
    """The same as a list of edges."""
    upper = sp.triu(matrix(), 1).tocoo()
    return 12, np.stack([upper.row, upper.col], 1).astype(np.int64), upper.data


def vector(n: int = 12) -> Any:
    return np.linspace(1.0, 2.0, n)


def bands() -> tuple[Any, Any, Any]:
    return vector(7), 5 * vector(7), vector(7)


def blocks() -> tuple[Any, Any, Any]:
    made = np.ones((5, 2, 2)) + np.arange(20).reshape(5, 2, 2) / 10
    return made, made + 9 * np.eye(2), made


@functools.cache
def matching() -> Any:
    return mw.weighted_matching(matrix(), method="greedy")


@functools.cache
def factored() -> Any:
    return mw.degree_factor(matrix(), 2)


@functools.cache
def forest() -> Any:
    return mw.linear_forest(matrix())


@functools.cache
def hierarchy() -> Any:
    return mw.coarsening_hierarchy(matrix(), until=3)


def perm() -> Any:
    return mw.reverse_cuthill_mckee(matrix()).copy()


def table_of_paths() -> Any:
    return np.array([[2, 1], [-1, 0], [0, -1], [4, 5], [3, 5], [4, 3]])


def touch(value: Any) -> Any:
    """Ask a result for all it can tell without arguments."""
    told: list[Any] = []
    error: Exception | None = None
    for name, member in inspect.getmembers_static(type(value)):
        if name.startswith("_") or name == "seconds":
            continue
        try:
            if isinstance(member, (property, functools.cached_property)):
                told.append(getattr(value, name))
            elif inspect.isfunction(member) and len(inspect.signature(member).parameters) == 1:
                told.append(getattr(value, name)())
        except (TypeError, ValueError) as refused:  # ask for the others too
            error = refused
    if error is not None:
        raise error
    return told


def solved(x: Any, *system: Any) -> None:
    check.check_tridiagonal_solution(*system, x)


@functools.cache
def preconditioner(name: str) -> Any:
    return getattr(preconditioners, name)(matrix())


def written(A: Any, ids: Any = None, name: str = "a.mtx") -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        mw.io.write(path, A, **({} if ids is None else {"ids": ids}))
        return path.read_bytes().decode("latin-1")


def largest_degree() -> row_reduce.Operation:
    def nobody(i: int, degree: Any) -> int:
        return -1

    def neighbour(i: int, j: int, a: Any, degree: Any) -> int:
        return j

    def put(i: int, best: Any, out: Any) -> None:
        out[i] = best

    return row_reduce.Operation(nobody, neighbour, max, put)


def reduced(*parts: Any) -> Any:
    out = np.zeros(12, np.int64)
    options = {"engine": "reference"}
    try:
        row_reduce.reduce_rows(largest_degree(), *parts, np.ones(12, np.int64), out, **options)
    except IndexError as error:  # of the function here, which has room for 12 rows
        raise ValueError("more rows than there is room for") from error
    return out


def on_three(function: Callable[..., Any], *more: Any, **options: Any) -> list[Call]:
    """The function on a sparse matrix, on CSR arrays and on a list of edges."""
    run = functools.partial(function, **options)
    return [Call(run, (A, *more)) for A in (matrix(), csr(), upper())]


def on_one(function: Callable[..., Any], *more: Any, **options: Any) -> list[Call]:
    return [Call(functools.partial(function, **options), (matrix(), *more))]


def by_method(function: Callable[..., Any], *methods: str) -> list[Call]:
    return [Call(functools.partial(function, method=method), (matrix(),)) for method in methods]


def prepared(A: Any) -> Any:
    """All that a Graph can tell."""
    G = mw.graph(A)
    return [touch(G), G.undirected_weights(), G.transposed_pattern()]


def spread(A: Any) -> Any:
    """The views of a graph on one rank; a matrix or edges come in as on many."""
    G = mw.distribute(A, comm=mw.dist.Serial())
    return [G.undirected_weights(), G.transposed_pattern(), G.degrees.local]


def _graph_calls() -> dict[str, Callable[[], list[Call]]]:
    return {
        "matchwood.distribute": lambda: on_three(spread),
        "matchwood.graph": lambda: [call._replace(whole=True) for call in on_three(prepared)],
        "matchwood.Graph": lambda: [
            *on_one(prepared),
            *on_one(lambda A, rule: mw.graph(A, duplicates=rule).sparse().toarray(), "max"),
        ],
        "matchwood.bfs": lambda: [
            *on_three(mw.bfs, np.array([0, 5])),
            on_one(mw.bfs, np.array([0, 5]), directed=False)[0]._replace(
                verify=lambda found, A, s: check.check_bfs(A, s, found, directed=False)
            ),
        ],
        "matchwood.BFS": lambda: [Call(lambda found: found.path(5), (mw.bfs(matrix(), 0),))],
        "matchwood.forest_roots": lambda: [Call(mw.forest_roots, (parents(),))],
        "matchwood.connected_components": lambda: (
            on_three(mw.connected_components) + by_method(mw.connected_components, "fastsv", "bfs")
        ),
        "matchwood.strongly_connected_components": lambda: [
            Call(mw.strongly_connected_components, (arcs(),)),
            *by_method(mw.strongly_connected_components, "forward_backward", "multistep"),
        ],
        "matchwood.Components": lambda: [Call(touch, (mw.connected_components(matrix()),))],
        "matchwood.condensation": lambda: [Call(mw.condensation, (arcs(),))],
        "matchwood.Condensation": lambda: [Call(touch, (mw.condensation(arcs()),))],
        "matchwood.louvain": lambda: (
            on_three(mw.louvain) + by_method(mw.louvain, "moving", "joining")
        ),
        "matchwood.leiden": lambda: on_three(mw.leiden),
        "matchwood.label_propagation": lambda: on_three(mw.label_propagation),
        "matchwood.modularity": lambda: on_three(mw.modularity, np.arange(12) // 4),
        "matchwood.partition": lambda: [
            *on_three(mw.partition, 2),
            Call(lambda A, w: mw.partition(A, 3, vertex_weights=w), (matrix(), np.arange(12) % 4)),
            Call(lambda A, f: mw.partition(A, 3, fixed=f), (matrix(), np.arange(12) % 4 - 1)),
        ],
        "matchwood.refine_partition": lambda: on_three(mw.refine_partition, np.arange(12) // 4),
        "matchwood.Partition": lambda: [Call(touch, (mw.partition(matrix(), 2),))],
        "matchwood.io.write_partition": lambda: [
            Call(lambda labels: mw.io.write_partition(os.devnull, labels), (np.arange(12) // 4,))
        ],
        "matchwood.Communities": lambda: [Call(touch, (mw.louvain(matrix()),))],
        "matchwood.maximal_independent_set": lambda: by_method(
            mw.maximal_independent_set, "luby", "lexicographic", "luby_sampling"
        ),
        "matchwood.minimum_spanning_forest": lambda: (
            on_three(mw.minimum_spanning_forest)
            + by_method(mw.minimum_spanning_forest, "boruvka", "kruskal")
        ),
        "matchwood.Forest": lambda: [Call(touch, (mw.minimum_spanning_forest(matrix()),))],
        "matchwood.generators.random_weights": lambda: on_one(mw.generators.random_weights),
        "matchwood.generators.stencil": lambda: [
            Call(lambda w: mw.generators.stencil(w, (3, 4)), (np.arange(9.0).reshape(3, 3),))
        ],
        "matchwood.io.write": lambda: [
            Call(written, (matrix(),)),
            Call(functools.partial(written, name="a.csv"), (matrix(), np.arange(12) * 7)),
            *(Call(written, (matrix().asformat(kind),)) for kind in ("csc", "bsr", "coo", "dia")),
            Call(written, (matrix().toarray(),)),
        ],
    }


def chain() -> sp.csr_array:
    """A path of six vertices, which is bipartite."""
    return sp.csr_array(mw.generators.path(6))


RESULTS: dict[str, Callable[[], Any]] = {
    "Fill": lambda: mw.fill(matrix()),
    "Dissection": lambda: mw.nested_dissection(matrix(), leaf=2),
    "EliminationOrder": lambda: mw.elimination_order(matrix()),
    "Cover": lambda: mw.minimum_vertex_cover(chain()),
}


def _ordering_calls() -> dict[str, Callable[[], list[Call]]]:
    made: dict[str, Callable[[], list[Call]]] = {
        "matchwood.reverse_cuthill_mckee": lambda: [
            *on_three(lambda A, start: mw.reverse_cuthill_mckee(A, start=start), np.array([0, 9])),
        ],
        "matchwood.rcm_ordering": lambda: on_one(mw.rcm_ordering),
        "matchwood.cuthill_mckee": lambda: on_one(
            lambda A, start: mw.cuthill_mckee(A, start=start), np.array([0, 9])
        ),
        "matchwood.pseudo_peripheral_vertex": lambda: on_one(mw.pseudo_peripheral_vertex),
        "matchwood.Ordering": lambda: [Call(touch, (mw.rcm_ordering(matrix()),))],
        "matchwood.permute": lambda: on_one(mw.permute, perm()),
        "matchwood.is_rcm_order": lambda: on_one(
            lambda A, perm, start: mw.is_rcm_order(A, perm, start=start), perm(), np.array([0, 9])
        ),
    }
    measures = ("order_measures", "bandwidth", "matrix_profile", "max_wavefront", "rms_wavefront",
                "gaps", "linear_gap", "log_gap")  # fmt: skip
    for name in (*measures, "linear_arrangement", "log_arrangement"):
        made[f"matchwood.{name}"] = lambda name=name: on_one(getattr(mw, name), perm())
    for name in ("rabbit_order", "shingle_order", "layered_label_propagation_order",
                 "degree_order", "hub_order", "locality_ordering"):  # fmt: skip
        made[f"matchwood.{name}"] = lambda name=name: on_one(getattr(mw, name))
    for name in ("fill", "elimination_tree"):
        made[f"matchwood.{name}"] = lambda name=name: on_one(getattr(mw, name), perm())
    for name in ("nested_dissection", "elimination_order"):
        made[f"matchwood.{name}"] = lambda name=name: on_one(getattr(mw, name))
    made["matchwood.minimum_degree"] = lambda: on_one(
        lambda A, stages: mw.minimum_degree(A, stages=stages), np.arange(12) % 3
    )
    made["matchwood.vertex_separator"] = lambda: on_one(
        lambda A, weights, labels: mw.vertex_separator(A, vertex_weights=weights, labels=labels),
        np.arange(1, 13), np.arange(12) % 2,
    )  # fmt: skip
    made["matchwood.minimum_vertex_cover"] = lambda: [Call(mw.minimum_vertex_cover, (chain(),))]
    for name, make in RESULTS.items():
        made[f"matchwood.{name}"] = lambda make=make: [Call(touch, (make(),))]
    made["matchwood.Refinement"] = lambda: [Call(touch, (mw.refine_order(matrix()),))]
    made["matchwood.Ranking"] = lambda: [Call(touch, (mw.pagerank(matrix()),))]
    made["matchwood.LocalityOrdering"] = lambda: [
        Call(touch, (mw.locality_ordering(matrix(), "rabbit"),))
    ]
    made["matchwood.ordering.JoinTree"] = lambda: [
        Call(touch, (mw.locality_ordering(matrix(), "rabbit").tree,))
    ]
    made["matchwood.ordering.Layers"] = lambda: [
        Call(touch, (mw.locality_ordering(matrix(), "llp").layers,))
    ]
    made["matchwood.refine_order"] = lambda: on_one(
        lambda A, perm: mw.refine_order(A, perm, fraction=1.0), perm()
    )
    made["matchwood.pagerank"] = lambda: on_three(
        lambda A, p, q, x: mw.pagerank(
            A, personalization=p, dangling=q, start=x, weighted=True, max_iterations=5
        ),
        vector(12), vector(12), vector(12),
    )  # fmt: skip
    return made


def _matching_calls() -> dict[str, Callable[[], list[Call]]]:
    return {
        "matchwood.weighted_matching": lambda: (
            on_three(mw.weighted_matching)
            + by_method(mw.weighted_matching, "greedy", "dominant", "suitor", "augmented")
        ),
        "matchwood.maximum_matching": lambda: on_one(mw.maximum_matching),
        "matchwood.maximal_matching": lambda: on_one(mw.maximal_matching),
        "matchwood.streaming_matching": lambda: [
            Call(
                lambda u, v, w, n: mw.streaming_matching([(u, v, w)], n=n),
                (*_ends(), vector(4), n),
            )
            for n in (12, None)
        ],
        "matchwood.Matching": lambda: [
            Call(touch, (matching(),)),
            Call(lambda found, A: found.check(A), (matching(), matrix())),
        ],
        "matchwood.matching_bound": lambda: [
            *on_one(mw.matching_bound, matching().mate),
            *on_one(mw.matching_bound, matching()),
        ],
        "matchwood.Bound": lambda: [
            Call(check.check_bound, (matrix(), mw.matching_bound(matrix())))
        ],
        "matchwood.coarsen": lambda: [
            Call(
                lambda A, m, w: mw.coarsen(A, m, vertex_weights=w),
                (matrix(), matching().mate, np.arange(1, 13)),
            ),
            *on_one(mw.coarsen, matching()),
        ],
        "matchwood.Coarsening": lambda: [
            Call(check.check_coarsening, (matrix(), matching(), mw.coarsen(matrix(), matching())))
        ],
        "matchwood.coarsening_hierarchy": lambda: [
            Call(
                lambda A, w: mw.coarsening_hierarchy(A, until=3, vertex_weights=w),
                (matrix(), np.arange(1, 13)),
            )
        ],
        "matchwood.Hierarchy": lambda: [
            Call(touch, (hierarchy(),)),
            Call(
                lambda found, values: found.project(values),
                (hierarchy(), np.arange(hierarchy().sizes[-1])),
            ),
        ],
    }


def _ends() -> tuple[Any, Any]:
    return np.array([0, 1, 9, 10]), np.array([3, 5, 10, 11])


def _forest_calls() -> dict[str, Callable[[], list[Call]]]:
    return {
        "matchwood.degree_factor": lambda: [
            Call(lambda A: mw.degree_factor(A, 2), (csr(),)),
            Call(lambda A: mw.degree_factor(A, 3), (upper(),)),
            *on_one(lambda A: mw.degree_factor(A, 1, directed=True)),
        ],
        "matchwood.factor": lambda: on_one(lambda A: mw.factor(A, 2)),
        "matchwood.Factor": lambda: [
            Call(touch, (factored(),)),
            Call(lambda found, A: found.check(A), (factored(), matrix())),
        ],
        "matchwood.coverage_of_order": lambda: on_one(mw.coverage_of_order),
        "matchwood.linear_forest": lambda: [
            *on_three(mw.linear_forest),
            *on_one(lambda A, factor: mw.linear_forest(A, factor=factor), factored()),
        ],
        "matchwood.tridiagonal_of": lambda: on_one(mw.tridiagonal_of, forest()),
        "matchwood.LinearForest": lambda: [
            Call(touch, (forest(),)),
            Call(lambda found, A: found.check(A), (forest(), matrix())),
        ],
    }


def _system_calls() -> dict[str, Callable[[], list[Call]]]:
    made: dict[str, Callable[[], list[Call]]] = {
        "matchwood.solve": lambda: [
            Call(
                lambda A, b, x0: mw.solve(A, b, x0=x0, history=False).x,
                (matrix(), vector(), np.zeros(12)),
            )
        ],
        "matchwood.solve_laplacian": lambda: [
            Call(lambda A, b: mw.solve_laplacian(A, b, history=False).x, (matrix(), vector()))
        ],
        "matchwood.Solution": list,
        "matchwood.tridiagonal.solve": lambda: [
            Call(tridiagonal.solve, (*bands(), vector(7)), verify=solved)
        ],
        "matchwood.tridiagonal.factorize": lambda: [
            Call(lambda *parts: tridiagonal.factorize(*parts).solve(vector(7)), bands())
        ],
        "matchwood.tridiagonal.Factorization": lambda: (
            [
                Call(
                    lambda b, transpose: tridiagonal.factorize(*bands()).solve(
                        b, transpose=transpose
                    ),
                    (vector(7), transpose),
                )
                for transpose in (False, True)
            ]
            + [
                Call(made.solve_ordered, (vector(made.n * width)[None], order))
                for made, width, order in (
                    (tridiagonal.factorize(*bands()), 1, np.arange(7)[::-1].copy()),
                    (block_tridiagonal.factorize(*blocks()), 2, np.arange(10).reshape(5, 2)),
                )
            ]
        ),
        "matchwood.block_tridiagonal.solve": lambda: [
            Call(block_tridiagonal.solve, (*blocks(), np.ones((5, 2))), verify=solved)
        ],
        "matchwood.block_tridiagonal.factorize": lambda: [
            Call(
                lambda *parts: block_tridiagonal.factorize(*parts).solve(np.ones((5, 2))), blocks()
            ),
            Call(block_tridiagonal.factorize(*blocks()).solve, (np.ones((5, 2)),)),
        ],
    }
    for name in ("jacobi", "tridiagonal", "algebraic_tridiagonal", "algebraic_block_tridiagonal"):
        made[f"matchwood.preconditioners.{name}"] = lambda name=name: [
            Call(lambda A: getattr(preconditioners, name)(A) @ vector(), (matrix(),)),
            *(
                Call(lambda b, how=how: getattr(preconditioner(name), how)(b), (b,))
                for how, b in (
                    ("matvec", vector()), ("rmatvec", vector()),
                    ("matmat", np.ones((12, 3))), ("rmatmat", np.ones((12, 3))),
                )
            ),
        ]  # fmt: skip
    made["matchwood.preconditioners.multilevel"] = lambda: [
        Call(lambda A: preconditioners.multilevel(A) @ vector(), (matrix(),)),
        Call(lambda b: preconditioner("multilevel") @ b, (vector(),)),
    ]
    return made


SETS = [["graph", "join"], ["graphs", "join"], ["a"], ["graph", "join"]]


def _join_calls() -> dict[str, Callable[[], list[Call]]]:
    by = np.array([0, 0, 1, 0])
    found = mw.fuzzy_join(SETS, delta=0.4)
    numbers = [np.array([1, 2]), np.array([2, 3])]
    dense = np.random.default_rng(2).random((6, 8)) < 0.3
    matrices = [
        Call(lambda A: mw.fuzzy_join(A, similarity="equal", delta=LEAST),
             (made,), whole=made.format == "csr", verify=verify_matrix)
        for made in (kind(dense.astype(float)) for kind in
                     (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.bsr_array, sp.dia_array))
    ]  # fmt: skip
    return {
        "matchwood.fuzzy_join": lambda: [
            *matrices,
            Call(lambda by: mw.fuzzy_join(SETS, delta=0.4, by=by), (by,)),
            Call(lambda *sets: mw.fuzzy_join(list(sets), similarity="equal"), tuple(numbers)),
        ],
        "matchwood.iter_fuzzy_join": lambda: [
            Call(lambda by: list(mw.iter_fuzzy_join(SETS, delta=0.4, by=by)), (by,))
        ],
        "matchwood.collection": lambda: [
            Call(lambda *sets: mw.collection(list(sets), similarity="equal"), tuple(numbers))
        ],
        "matchwood.check.check_fuzzy_join": lambda: [
            Call(
                lambda *pairs: check.check_fuzzy_join(pairs, SETS, delta=0.4),
                (found.left, found.right, found.score),
            )
        ],
    }


def _check_calls() -> dict[str, Callable[[], list[Call]]]:
    found: dict[str, Callable[[], tuple[Any, ...]]] = {
        "check_bfs": lambda: (np.array([0, 5]), mw.bfs(matrix(), [0, 5])),
        "check_connected_components": lambda: (mw.connected_components(matrix()),),
        "check_strongly_connected_components": lambda: (mw.connected_components(matrix()),),
        "check_condensation": lambda: (mw.condensation(matrix()),),
        "check_maximal_independent_set": lambda: (mw.maximal_independent_set(matrix()),),
        "check_communities": lambda: (mw.louvain(matrix()),),
        "check_label_propagation": lambda: (mw.label_propagation(matrix()),),
        "check_partition": lambda: (mw.partition(matrix(), 3),),
        "check_spanning_forest": lambda: (mw.minimum_spanning_forest(matrix()),),
        "check_bound": lambda: (mw.matching_bound(matrix()),),
        "check_coarsening": lambda: (matching().mate, mw.coarsen(matrix(), matching())),
        "check_linear_forest": lambda: (forest(),),
        "check_rcm_order": lambda: (perm(),),
        "check_permuted": lambda: (perm(), mw.permute(matrix(), perm())),
    }
    for name in ("check_matching", "check_locally_dominant", "is_matching", "is_locally_dominant"):
        found[name] = lambda: (matching(),)
    found["check_augmented"] = lambda: (mw.weighted_matching(matrix(), method="augmented"),)
    found["check_maximum_matching"] = lambda: (mw.maximum_matching(matrix()),)
    found["check_hierarchy"] = lambda: (mw.coarsening_hierarchy(matrix(), until=2),)
    for name in ("check_maximal_matching", "is_maximal_matching"):
        found[name] = lambda: (mw.maximal_matching(matrix()),)
    for name in ("bfs", "connected_components", "strongly_connected_components", "condensation",
                 "maximal_independent_set", "spanning_forest", "communities",
                 "label_propagation", "partition"):  # fmt: skip
        found[f"is_{name}"] = found[f"check_{name}"]
    for name in ("check_rabbit_order", "is_rabbit_order"):
        found[name] = lambda: (mw.locality_ordering(matrix(), "rabbit"),)
    found["check_layered_order"] = lambda: (mw.locality_ordering(matrix(), "llp"),)
    found["check_shingle_order"] = lambda: (mw.shingle_order(matrix()),)
    for name in ("check_degree_order", "is_degree_order"):
        found[name] = lambda: (mw.degree_order(matrix()),)
    found["check_minimum_degree"] = lambda: (mw.minimum_degree(matrix()),)
    found["check_dissection"] = lambda: (mw.nested_dissection(matrix(), leaf=2),)
    found["check_separator"] = lambda: (mw.vertex_separator(matrix()),)
    found["check_hub_order"] = lambda: (mw.hub_order(matrix()),)
    for name in ("check_pagerank", "is_pagerank"):
        found[name] = lambda: (mw.pagerank(matrix()),)
    for name in ("check_factor", "is_factor"):
        found[name] = lambda: (factored(),)
    for name in ("check_maximal_factor", "is_maximal_factor"):
        found[name] = lambda: (mw.degree_factor(matrix(), 2, rounds=None),)
    made = {
        f"matchwood.check.{name}": lambda name=name, parts=parts: on_one(
            getattr(check, name), *parts()
        )
        for name, parts in found.items()
    }
    made["matchwood.check.check_modularity"] = lambda: on_one(
        lambda A, labels: check.check_modularity(A, labels, mw.modularity(matrix(), labels)),
        np.arange(12) // 4,
    )
    made["matchwood.check.check_measures"] = lambda: on_one(
        lambda A, perm: check.check_measures(A, mw.order_measures(matrix(), perm), perm), perm()
    )
    made["matchwood.check.check_fill"] = lambda: on_one(
        check.check_fill, mw.fill(matrix(), perm()), perm()
    )
    made["matchwood.check.check_elimination_tree"] = lambda: on_one(
        check.check_elimination_tree, mw.elimination_tree(matrix(), perm()), perm()
    )
    made["matchwood.check.check_vertex_cover"] = lambda: [
        Call(check.check_vertex_cover, (chain(), mw.minimum_vertex_cover(chain())))
    ]
    made["matchwood.check.check_gaps"] = lambda: on_one(
        lambda A, perm: check.check_gaps(A, mw.gaps(matrix(), perm), perm), perm()
    )
    made["matchwood.check.check_refinement"] = lambda: on_one(
        lambda A, perm: check.check_refinement(A, mw.refine_order(matrix(), perm), perm), perm()
    )
    made["matchwood.check.check_tridiagonal_solution"] = lambda: [
        Call(
            check.check_tridiagonal_solution,
            (*bands(), vector(7), tridiagonal.solve(*bands(), vector(7))),
        )
    ]
    for name in ("check_forest_roots", "is_forest_roots"):
        made[f"matchwood.check.{name}"] = lambda name=name: [
            Call(getattr(check, name), (parents(), mw.forest_roots(parents())))
        ]
    made["matchwood.check.check_solution"] = lambda: [
        Call(check.check_solution, (matrix(), matrix() @ vector(), vector()))
    ]
    made["matchwood.check.check_preconditioner"] = lambda: [
        Call(
            lambda A: check.check_preconditioner(A, preconditioners.tridiagonal(matrix())),
            (matrix(),),
        )
    ]
    made["matchwood.check.check_multilevel"] = lambda: [
        Call(lambda A: check.check_multilevel(A, preconditioners.multilevel(matrix())), (matrix(),))
    ]
    return made


def _labels_of_rows() -> Any:
    return (np.arange(12) // 3).astype(np.int32)


def _primitive_calls() -> dict[str, Callable[[], list[Call]]]:
    pair = np.array([2, 0, 2, 1]), np.array([1, 2, 1, 0])
    counts = np.array([3, 0, 2, 5])
    home = "matchwood.primitives."
    return {
        home + "assemble.assemble": lambda: [
            Call(assemble.assemble, (3, 3, *pair, vector(4))),
            Call(functools.partial(assemble.assemble, symmetric=True), (3, 3, *pair)),
        ],
        home + "assemble.canonical": lambda: [Call(assemble.canonical, (*csr(), 12))],
        home + "contract.contract": lambda: [
            Call(contract.contract, (*csr(), np.arange(12) % 3, 3)),
            Call(
                lambda labels, inner: contract.contract(
                    *csr(), labels, 4, loops=True, inner=inner, symmetric=False
                ),
                (_labels_of_rows(), vector()),
            ),
        ],
        home + "compact.compact": lambda: [Call(compact.compact, (counts > 2, counts))],
        home + "edge_order.order_edges": lambda: [Call(edge_order.order_edges, (*pair, vector(4)))],
        home + "frontier.bitmap_from_queue": lambda: [
            Call(frontier.bitmap_from_queue, (np.array([0, 3, 65, 3]), 70))
        ],
        home + "frontier.queue_from_bitmap": lambda: [
            Call(frontier.queue_from_bitmap, (np.array([9, 2], np.uint64), 70))
        ],
        home + "hashing.mix64": lambda: [Call(hashing.mix64, (counts.astype(np.uint64),))],
        home + "hashing.hash2": lambda: [Call(hashing.hash2, pair)],
        home + "hashing.quarter_md5": lambda: [Call(hashing.quarter_md5, (counts, 3))],
        home + "hashing.random_bit": lambda: [Call(hashing.random_bit, (counts, 3))],
        home + "number.number_labels": lambda: [Call(number.number_labels, (_labels_of_rows(),))],
        home + "path_scan.path_scan": lambda: [
            Call(
                functools.partial(path_scan.path_scan, method=method),
                (table_of_paths(), np.arange(6)),
            )
            for method in ("doubling", "splitters")
        ],
        home + "path_scan.PathScan": lambda: [
            Call(touch, (path_scan.path_scan(table_of_paths(), np.arange(6)),))
        ],
        home + "row_reduce.reduce_rows": lambda: [Call(reduced, csr())],
        home + "row_reduce.spmv": lambda: [Call(row_reduce.spmv, (*csr(), vector()))],
        home + "row_reduce.strongest_neighbours": lambda: [
            Call(row_reduce.strongest_neighbours, (*csr(), 2))
        ],
        home + "row_reduce.minimum_label": lambda: [
            Call(row_reduce.minimum_label, (*csr()[:2], np.arange(12)))
        ],
        home + "row_reduce.maximum_neighbour": lambda: [
            Call(row_reduce.maximum_neighbour, (*csr()[:2], vector()))
        ],
        home + "scan.exclusive_scan": lambda: [Call(scan.exclusive_scan, (counts,))],
        home + "sort.radix_sort": lambda: [
            Call(sort.radix_sort, (counts.astype(np.uint64), np.arange(4)))
        ],
        home + "sort.sort_keys": lambda: [Call(sort.sort_keys, (counts.astype(np.uint64),))],
        home + "union_find.union_find": lambda: [Call(union_find.union_find, (5, *pair))],
    }


VERIFIED: dict[str, Callable[..., Any]] = {
    "bfs": lambda found, A, sources: check.check_bfs(A, sources, found),
    "forest_roots": lambda found, parent: check.check_forest_roots(parent, found),
    "connected_components": lambda found, A: check.check_connected_components(A, found),
    "strongly_connected_components": lambda found, A: check.check_strongly_connected_components(
        A, found
    ),
    "condensation": lambda found, A: check.check_condensation(A, found),
    "maximal_independent_set": lambda found, A: check.check_maximal_independent_set(A, found),
    "minimum_spanning_forest": lambda found, A: check.check_spanning_forest(A, found),
    "weighted_matching": lambda found, A: check.check_matching(A, found),
    "maximal_matching": lambda found, A: check.check_maximal_matching(A, found),
    "maximum_matching": lambda found, A: check.check_maximum_matching(A, found),
    "matching_bound": lambda found, A, *_: check.check_bound(A, found),
    "linear_forest": lambda found, A, *factor: factor or check.check_linear_forest(A, found),
    "permute": lambda found, A, perm: check.check_permuted(A, perm, found),
    "fill": lambda found, A, perm: check.check_fill(A, found, perm),
    "elimination_tree": lambda found, A, perm: check.check_elimination_tree(A, found, perm),
    "nested_dissection": lambda found, A: check.check_dissection(A, found),
    "minimum_degree": lambda found, A, stages: check.check_minimum_degree(A, found, stages=stages),
    "minimum_vertex_cover": lambda found, A: check.check_vertex_cover(A, found),
    "order_measures": lambda found, A, perm: check.check_measures(A, found, perm),
    "cuthill_mckee": lambda found, A, start: check.check_rcm_order(A, found[::-1], start=start),
}
"""The check of an answer, where a call gives one: what is accepted must be answered rightly."""


def _verified(name: str, calls: Callable[[], list[Call]]) -> Callable[[], list[Call]]:
    verify = VERIFIED.get(name.removeprefix("matchwood."))
    return lambda: [call if call.verify else call._replace(verify=verify) for call in calls()]


@functools.cache
def table() -> dict[str, Callable[[], list[Call]]]:
    made = {
        **_graph_calls(), **_ordering_calls(), **_matching_calls(), **_forest_calls(),
        **_join_calls(), **_system_calls(), **_check_calls(), **_primitive_calls(),
        **sensing_calls.sensing_calls(),
    }  # fmt: skip
    return {name: _verified(name, calls) for name, calls in made.items()}
