"""A valid call of every public function with its arguments by name, for odd_options.py.

Those of public_calls.py that call the function itself are taken from there; here are the others,
and the methods of results that take arguments.  A new public function or method without a call
fails a test.
"""

from __future__ import annotations

import functools
import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import matchwood as mw
from adversarial import public_calls, sensing_calls
from adversarial.public_calls import SETS, arcs, bands, matrix, perm, vector
from matchwood import block_tridiagonal, check, generators, preconditioners, sensing, tridiagonal
from matchwood.primitives import contract, hashing, path_scan, row_reduce
from test_house_public import PUBLIC


class OptionCall(NamedTuple):
    """A call that is right as it stands: a function and its arguments by name."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    said: tuple[str, ...]  # what messages may call the function
    read: Callable[[Any], Any] = lambda answer: answer  # all of an answer that comes in pieces


@functools.cache
def folder() -> Path:
    """Where the files of the calls are, and where they write."""
    made = Path(tempfile.mkdtemp())
    mw.io.write(made / "a.mtx", matrix())
    (made / "a.graph").write_text("3 2\n2\n1 3\n2\n")
    (made / "a.hgr").write_text("2 4\n1 2\n2 3 4\n")
    (made / "a.gr").write_text("p sp 3 2\na 1 2 5\na 2 3 7\n")
    (made / "a.co").write_text("p aux sp co 2\nv 1 3 4\nv 2 5 6\n")
    (made / "names.txt").write_text("one\ntwo\n")
    mw.write_capture(made / "a.pcap", sensing_calls.sent())
    mw.write_archive(made / "a.tar", [sensing_calls.matrix()], compression=None)
    os.chdir(made)
    return made


def one(comm: Any) -> int:
    return int(comm.rank)


@functools.cache
def serial() -> Any:
    return mw.dist.Serial()


@functools.cache
def spread() -> Any:
    return mw.distribute(matrix(), comm=serial())


@functools.cache
def joined() -> Any:
    return mw.fuzzy_join(SETS, delta=0.4)


def larger(one: int, other: int) -> int:
    return max(one, other)


def operation() -> Any:
    return public_calls.largest_degree()._replace(combine=larger)


def _generators() -> dict[str, dict[str, Any]]:
    small = {"n": 6}
    return {
        "aniso": {"kind": 1, "shape": (3, 4)}, "complete": small, "cycle": small,
        "delaunay": small, "dense_random": {"n": 6, "density": 0.5},
        "erdos_renyi": {"n": 6, "m": 7}, "grid": {"shape": (3, 4)}, "mesh": {"shape": (3, 4)},
        "mycielskian": {"k": 4}, "packets": {"n": 20, "hosts": 9}, "path": small,
        "random_geometric": {"n": 9, "radius": 0.4}, "random_points": small,
        "rmat": {"scale": 4}, "star": small,
        "stencil": {"weights": np.arange(9.0).reshape(3, 3), "shape": (3, 4)},
    }  # fmt: skip


def _files() -> dict[str, dict[str, Any]]:
    here = folder()
    return {
        "io.read": {"path": here / "a.mtx"},
        "io.read_coordinates": {"path": here / "a.co"},
        "io.read_dimacs": {"path": here / "a.gr"},
        "io.read_hmetis": {"path": here / "a.hgr"},
        "io.read_metis": {"path": here / "a.graph"},
        "io.read_names": {"path": here / "names.txt"},
        "io.write": {"path": here / "b.mtx", "A": matrix()},
        "read_capture": {"path": here / "a.pcap"},
        "iter_capture": {"path": here / "a.pcap"},
        "write_capture": {"path": here / "b.pcap", "packets": sensing_calls.sent()},
        "read_archive": {"path": here / "a.tar"},
        "write_archive": {"path": here / "b.tar", "matrices": [sensing_calls.matrix()]},
        "sensing.archive_writer": {"path": here / "c.tar"},
        "new_key": {"path": here / "key"},
        "check.check_capture": {"path": here / "a.pcap", "packets": sensing_calls.sent()},
        "check.check_archive": {"path": here / "a.tar", "matrices": [sensing_calls.matrix()]},
    }


def _rest() -> dict[str, dict[str, Any]]:
    src, dst = sensing_calls.packets()
    dl, d, du = bands()
    A, labels, pair = matrix(), np.arange(12) // 4, (src, dst)
    indptr, indices, data = public_calls.csr()
    return {
        "graph": {"A": A}, "distribute": {"A": A, "comm": serial()},
        "streaming_matching": {"edges": [(*public_calls._ends(), vector(4))], "n": 12},
        "coarsening_hierarchy": {"A": A, "until": 3},
        "degree_factor": {"A": A, "n": 2}, "factor": {"A": A, "n": 2},
        "solve": {"A": A, "b": vector()},
        "reverse_cuthill_mckee": {"A": A}, "cuthill_mckee": {"A": A},
        "is_rcm_order": {"A": A, "perm": perm()},
        "refine_order": {"A": A, "order": perm()}, "pagerank": {"A": A},
        "sense": {"source": pair, "window": 20},
        "anonymize": {"addresses": src, "method": "permutation", "key": sensing_calls.KEY},
        "sum_matrices": {"matrices": [sensing_calls.matrix()] * 2},
        "traffic_statistics": {"traffic": pair}, "traffic_histograms": {"traffic": pair},
        "sliding_statistics": {"src": src, "dst": dst, "window": 20},
        "fuzzy_join": {"left": SETS, "delta": 0.4}, "iter_fuzzy_join": {"left": SETS, "delta": 0.4},
        "collection": {"data": SETS}, "explain": {"R": ["a", "b"], "S": ["b", "c"]},
        "on_progress": {"callback": lambda done, total: None}, "show_config": {},
        "warmup": {"only": "sort, uint32, int32"},
        "check.check_modularity": {"A": A, "labels": labels, "value": mw.modularity(A, labels)},
        "check.check_preconditioner": {"A": A, "M": preconditioners.jacobi(A)},
        "check.check_measures": {"A": A, "answer": mw.order_measures(A)},
        "check.check_gaps": {"A": A, "answer": mw.gaps(A)},
        "check.check_refinement": {"A": A, "answer": mw.refine_order(A)},
        "check.check_anonymized": {
            "addresses": src, "found": mw.anonymize(src, "permutation", sensing_calls.KEY),
            "method": "permutation", "key": sensing_calls.KEY,
        },
        "check.check_traffic_matrix": {"src": src, "dst": dst, "matrix": sensing_calls.matrix()},
        "check.check_statistics": {"traffic": pair, "statistics": mw.traffic_statistics(pair)},
        "check.check_histograms": {"traffic": pair, "histograms": mw.traffic_histograms(pair)},
        "check.check_sliding": {
            "src": src, "dst": dst, "found": mw.sliding_statistics(src, dst, 20)
        },
        "check.check_sensing": {
            "packets": pair, "found": mw.sense(pair, window=20), "window": 20
        },
        "check.check_fuzzy_join": {"pairs": joined(), "left": SETS, "delta": 0.4},
        "dist.world": {"kind": "serial"}, "dist.run": {"function": one, "ranks": 2},
        "dist.describe": {"mode": "dicts"},
        "preconditioners.algebraic_block_tridiagonal": {"A": A},
        "preconditioners.algebraic_tridiagonal": {"A": A},
        "preconditioners.jacobi": {"A": A}, "preconditioners.tridiagonal": {"A": A},
        "primitives.hashing.bit_barrier": {"p": 0.5},
        "primitives.hashing.round_number": {"seed": 1, "k": 2},
        "primitives.row_reduce.reduce_rows": {
            "operation": operation(), "indptr": indptr, "indices": indices, "data": data,
            "x": np.ones(12, np.int64), "out": np.zeros(12, np.int64),
        },
        "tridiagonal.factorize": {"dl": dl, "d": d, "du": du},
    }  # fmt: skip


def _methods() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Methods and classes that users call, by the names that users write."""
    A, src = matrix(), sensing_calls.packets()[0]
    here, comm, row = folder(), serial(), np.arange(3)
    factors = tridiagonal.factorize(*bands())
    blocks = block_tridiagonal.factorize(*public_calls.blocks())
    solution = mw.solve(A, vector())
    hierarchy = public_calls.hierarchy()
    seen = sensing_calls.matrix()
    fitted = mw.traffic_histograms(sensing_calls.packets()).source_packets.fit()
    return {
        "BFS.path": (mw.bfs(A, 0).path, {"v": 0}),
        "Matching.check": (public_calls.matching().check, {"A": A}),
        "Factor.check": (public_calls.factored().check, {"A": A}),
        "LinearForest.check": (public_calls.forest().check, {"A": A}),
        "Solution.check": (solution.check, {"A": A, "b": vector()}),
        "Hierarchy.project": (hierarchy.project, {"values": np.arange(hierarchy.sizes[-1])}),
        "Graph.on": (mw.graph(A).on, {"engine": "cpu"}),
        "Devices": (mw.Devices, {}),
        "DistributedGraph.vector": (spread().vector, {"local": vector()}),
        "DistributedGraph.save": (spread().save, {"folder": here / "spread"}),
        "DistributedVector.gather": (spread().vector(vector()).gather, {}),
        "DistributedVector.save": (spread().vector(vector()).save, {"path": here / "v.npy"}),
        "Packets.part": (sensing_calls.sent().part, {"start": 2, "stop": 5}),
        "Packets.empty": (mw.Packets.empty, {"count": 3}),
        "Anonymizer": (mw.Anonymizer, {"method": "permutation", "key": sensing_calls.KEY}),
        "Anonymizer.apply": (
            mw.Anonymizer("permutation", sensing_calls.KEY).apply, {"addresses": src}
        ),
        "TrafficMatrix.keys": (seen.keys, {}),
        "TrafficMatrix.source_sums": (seen.source_sums, {}),
        "TrafficMatrix.destination_sums": (seen.destination_sums, {}),
        "sensing.Fit.probability": (fitted.probability, {"values": row + 1}),
        "sensing.Ranges": (sensing.Ranges, {"given": [["10.0.0.0/8"]]}),
        "sensing.Ranges.classify": (sensing.Ranges([["10.0.0.0/8"]]).classify, {"addresses": src}),
        "Pairs.check": (joined().check, {"left": SETS}),
        "Pairs.merge": (_table_pairs().merge, {"left": _table()}),
        "Collection.record": (mw.collection(SETS).record, {"row": 1}),
        "tridiagonal.Factorization.solve": (factors.solve, {"b": vector(7)}),
        "tridiagonal.Factorization.solve_ordered": (factors.solve_ordered, {"b": vector(7)[None]}),
        "block_tridiagonal.factorize.solve": (blocks.solve, {"b": np.ones((5, 2))}),
        "dist.Serial": (mw.dist.Serial, {}),
        "dist.Serial.allgather": (comm.allgather, {"array": row}),
        "dist.Serial.allgatherv": (comm.allgatherv, {"array": row}),
        "dist.Serial.allreduce": (comm.allreduce, {"array": row}),
        "dist.Serial.alltoallv": (comm.alltoallv, {"array": row, "counts": [3]}),
        "dist.Serial.broadcast": (comm.broadcast, {"array": row}),
        "dist.Serial.reduce_scatter": (comm.reduce_scatter, {"array": row, "counts": [3]}),
        "dist.Serial.split": (comm.split, {"color": 0}),
    }  # fmt: skip


@functools.cache
def _table() -> Any:
    import pandas as pd

    return pd.DataFrame({"words": ["graph join", "graph joins", "a"]})


@functools.cache
def _table_pairs() -> Any:
    return mw.fuzzy_join(_table(), on="words", separator=" ", delta=0.3)


CHECKS = {
    "Matching.check": ("check_matching", "check_locally_dominant"),
    "Factor.check": ("check_factor",),
    "LinearForest.check": ("check_linear_forest",),
    "Solution.check": ("check_solution",),
    "Pairs.check": ("check_fuzzy_join",),
}
"""Methods that call a check, which names itself."""


@functools.cache
def own() -> dict[str, OptionCall]:
    """The calls that are written down here."""
    made: dict[str, OptionCall] = {}
    given = {**{f"generators.{k}": v for k, v in _generators().items()}, **_files(), **_rest()}
    for name, arguments in given.items():
        made[name] = OptionCall(PUBLIC[f"matchwood.{name}"], arguments, (name.split(".")[-1],))
    for name, (function, arguments) in _methods().items():
        *before, last = name.split(".")
        said = (last, *before[-1:], ".".join((*before[-1:], last)))
        made[name] = OptionCall(function, arguments, (*said, *CHECKS.get(name, ())))
    for name in ("iter_capture", "read_archive", "iter_fuzzy_join"):
        made[name] = made[name]._replace(read=list)
    return made


def names() -> list[str]:
    """All that is attacked."""
    functions = [
        name.removeprefix("matchwood.") for name, f in PUBLIC.items() if not inspect.isclass(f)
    ]
    return sorted({*functions, *_methods()})


@functools.cache
def call_of(name: str) -> OptionCall:
    """The valid call of that name."""
    if name in own():
        return own()[name]
    function = PUBLIC[f"matchwood.{name}"]
    for call in public_calls.table()[f"matchwood.{name}"]():
        found, options = call.function, {}
        while isinstance(found, functools.partial):
            found, options = found.func, {**found.keywords, **options}
        if found is function:
            bound = inspect.signature(function).bind(*call.arguments, **options)
            return OptionCall(function, dict(bound.arguments), (name.split(".")[-1],))
    raise LookupError(f"{name} has no call in option_calls.py")
