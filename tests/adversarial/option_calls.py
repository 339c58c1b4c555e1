"""A valid call of every public function with its arguments by name, for odd_options.py.

Those of public_calls.py that call the function itself are taken from there; here are the others,
and the methods of results that take arguments.  A new public function or method without a call
fails a test.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import matchwood as mw
from adversarial import listed, public_calls
from adversarial.public_calls import SETS, bands, csr, matrix, perm, vector
from adversarial.sensing_calls import KEY, files, packets, sent
from adversarial.sensing_calls import matrix as seen
from matchwood import preconditioners, sensing, tridiagonal
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
    (made / "a.part.2").write_text("0\n1\n1\n")
    os.chdir(made)  # so that names which are accepted do no harm
    return made


LABELS = np.arange(12) // 4
ROW = np.arange(3)
PRIVATE = [["10.0.0.0/8"]]


def one(comm: Any) -> int:
    return int(comm.rank)


def serial() -> Any:
    return mw.dist.Serial()


def spread() -> Any:
    return mw.distribute(matrix(), comm=serial())


@functools.cache
def joined() -> Any:
    return mw.fuzzy_join(SETS, delta=0.4)


def larger(one: int, other: int) -> int:
    return max(one, other)


def operation() -> Any:
    return public_calls.largest_degree()._replace(combine=larger)


SMALL = {"n": 6}
ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    **listed.arguments(),
    "generators.aniso": lambda: {"kind": 1, "shape": (3, 4)},
    "generators.complete": lambda: SMALL,
    "generators.cycle": lambda: SMALL,
    "generators.delaunay": lambda: SMALL,
    "generators.dense_random": lambda: {"n": 6, "density": 0.5},
    "generators.erdos_renyi": lambda: {"n": 6, "m": 7},
    "generators.grid": lambda: {"shape": (3, 4)},
    "generators.mesh": lambda: {"shape": (3, 4)},
    "generators.mycielskian": lambda: {"k": 4},
    "generators.packets": lambda: {"n": 20, "hosts": 9},
    "generators.path": lambda: SMALL,
    "generators.random_geometric": lambda: {"n": 9, "radius": 0.4},
    "generators.random_points": lambda: SMALL,
    "generators.rmat": lambda: {"scale": 4},
    "generators.star": lambda: SMALL,
    "generators.stencil": lambda: {"weights": np.arange(9.0).reshape(3, 3), "shape": (3, 4)},
    "io.read": lambda: {"path": folder() / "a.mtx"},
    "io.read_coordinates": lambda: {"path": folder() / "a.co"},
    "io.read_dimacs": lambda: {"path": folder() / "a.gr"},
    "io.read_hmetis": lambda: {"path": folder() / "a.hgr"},
    "io.read_metis": lambda: {"path": folder() / "a.graph"},
    "io.read_names": lambda: {"path": folder() / "names.txt"},
    "io.read_partition": lambda: {"path": folder() / "a.part.2"},
    "io.write_partition": lambda: {"path": folder() / "b.part.2", "labels": [0, 0, 1]},
    "io.write": lambda: {"path": folder() / "b.mtx", "A": matrix()},
    "read_capture": lambda: {"path": files()[0]},
    "iter_capture": lambda: {"path": files()[0]},
    "write_capture": lambda: {"path": folder() / "b.pcap", "packets": sent()},
    "read_archive": lambda: {"path": files()[1]},
    "write_archive": lambda: {"path": folder() / "b.tar", "matrices": [seen()]},
    "sensing.archive_writer": lambda: {"path": folder() / "c.tar"},
    "new_key": lambda: {"path": folder() / "key"},
    "check.check_capture": lambda: {"path": files()[0], "packets": sent()},
    "check.check_archive": lambda: {"path": files()[1], "matrices": [seen()]},
    "graph": lambda: {"A": matrix()},
    "distribute": lambda: {"A": matrix(), "comm": serial()},
    "streaming_matching": lambda: {"edges": [(*public_calls._ends(), vector(4))], "n": 12},
    "coarsening_hierarchy": lambda: {"A": matrix(), "until": 3},
    "degree_factor": lambda: {"A": matrix(), "n": 2},
    "factor": lambda: {"A": matrix(), "n": 2},
    "solve": lambda: {"A": matrix(), "b": vector()},
    "solve_laplacian": lambda: {"A": matrix(), "b": vector()},
    "reverse_cuthill_mckee": lambda: {"A": matrix()},
    "cuthill_mckee": lambda: {"A": matrix()},
    "is_rcm_order": lambda: {"A": matrix(), "perm": perm()},
    "refine_order": lambda: {"A": matrix(), "order": perm()},
    "pagerank": lambda: {"A": matrix()},
    "minimum_degree": lambda: {"A": matrix()},
    "vertex_separator": lambda: {"A": matrix()},
    "anonymize": lambda: {"addresses": packets()[0], "method": "permutation", "key": KEY},
    "sum_matrices": lambda: {"matrices": [seen()] * 2},
    "fuzzy_join": lambda: {"left": SETS, "delta": 0.4},
    "iter_fuzzy_join": lambda: {"left": SETS, "delta": 0.4},
    "collection": lambda: {"data": SETS},
    "explain": lambda: {"R": ["a", "b"], "S": ["b", "c"]},
    "on_progress": lambda: {"callback": lambda done, total: None},
    "show_config": dict,
    "warmup": lambda: {"only": "mailboxes:wait"},
    "check.check_modularity": lambda: {
        "A": matrix(), "labels": LABELS, "value": mw.modularity(matrix(), LABELS)
    },
    "check.check_multilevel": lambda: {"A": matrix(), "M": preconditioners.multilevel(matrix())},
    "check.check_preconditioner": lambda: {"A": matrix(), "M": preconditioners.jacobi(matrix())},
    "check.check_measures": lambda: {"A": matrix(), "answer": mw.order_measures(matrix())},
    "check.check_gaps": lambda: {"A": matrix(), "answer": mw.gaps(matrix())},
    "check.check_refinement": lambda: {"A": matrix(), "answer": mw.refine_order(matrix())},
    "check.check_anonymized": lambda: {
        "addresses": packets()[0], "found": mw.anonymize(packets()[0], "permutation", KEY),
        "method": "permutation", "key": KEY,
    },
    "check.check_fuzzy_join": lambda: {"pairs": joined(), "left": SETS, "delta": 0.4},
    "dist.world": lambda: {"kind": "serial"},
    "dist.run": lambda: {"function": one, "ranks": 2},
    "dist.describe": lambda: {"mode": "dicts"},
    "preconditioners.algebraic_block_tridiagonal": lambda: {"A": matrix()},
    "preconditioners.algebraic_tridiagonal": lambda: {"A": matrix()},
    "preconditioners.jacobi": lambda: {"A": matrix()},
    "preconditioners.multilevel": lambda: {"A": matrix()},
    "preconditioners.tridiagonal": lambda: {"A": matrix()},
    "primitives.hashing.bit_barrier": lambda: {"p": 0.5},
    "primitives.hashing.round_number": lambda: {"seed": 1, "k": 2},
    "primitives.row_reduce.reduce_rows": lambda: {
        "operation": operation(), **dict(zip(("indptr", "indices", "data"), csr(), strict=True)),
        "x": np.ones(12, np.int64), "out": np.zeros(12, np.int64),
    },
    "tridiagonal.factorize": lambda: dict(zip(("dl", "d", "du"), bands(), strict=True)),
}  # fmt: skip
"""The arguments of functions that public_calls.py does not call by themselves."""


def _table() -> Any:
    made = sensing.AddressTable()
    made.numbers(np.arange(6, dtype=np.uint64).reshape(3, 2))
    return made


METHODS: dict[str, Callable[[], tuple[Callable[..., Any], dict[str, Any]]]] = {
    "BFS.path": lambda: (mw.bfs(matrix(), 0).path, {"v": 0}),
    "Partition.check": lambda: (mw.partition(matrix(), 2).check, {"A": matrix()}),
    "Partition.sets": lambda: (mw.partition(matrix(), 2).sets, {"names": list(range(12))}),
    "Matching.check": lambda: (public_calls.matching().check, {"A": matrix()}),
    "Factor.check": lambda: (public_calls.factored().check, {"A": matrix()}),
    "LinearForest.check": lambda: (public_calls.forest().check, {"A": matrix()}),
    "Solution.check": lambda: (
        mw.solve(matrix(), vector()).check, {"A": matrix(), "b": vector()}
    ),
    "Hierarchy.project": lambda: (
        public_calls.hierarchy().project, {"values": np.arange(public_calls.hierarchy().sizes[-1])}
    ),
    "Graph.on": lambda: (mw.graph(matrix()).on, {"engine": "cpu"}),
    "Devices": lambda: (mw.Devices, {}),
    "DistributedGraph.vector": lambda: (spread().vector, {"local": vector()}),
    "DistributedGraph.save": lambda: (spread().save, {"folder": folder() / "spread"}),
    "DistributedVector.gather": lambda: (spread().vector(vector()).gather, {}),
    "DistributedVector.save": lambda: (
        spread().vector(vector()).save, {"path": folder() / "v.npy"}
    ),
    "Packets.part": lambda: (sent().part, {"start": 2, "stop": 5}),
    "Packets.empty": lambda: (mw.Packets.empty, {"count": 3}),
    "Anonymizer": lambda: (mw.Anonymizer, {"method": "permutation", "key": KEY}),
    "Anonymizer.apply": lambda: (
        mw.Anonymizer("permutation", KEY).apply, {"addresses": packets()[0]}
    ),
    "TrafficMatrix.keys": lambda: (seen().keys, {}),
    "TrafficMatrix.source_sums": lambda: (seen().source_sums, {}),
    "TrafficMatrix.destination_sums": lambda: (seen().destination_sums, {}),
    "sensing.Fit.probability": lambda: (
        mw.traffic_histograms(packets()).source_packets.fit().probability, {"values": ROW + 1}
    ),
    "TrafficMatrix.top_talkers": lambda: (seen().top_talkers, {}),
    "Sensing.top_talkers": lambda: (mw.sense(packets()).top_talkers, {}),
    "sensing.AddressTable.numbers": lambda: (
        sensing.AddressTable().numbers, {"addresses": np.ones((3, 2), np.uint64)}
    ),
    "sensing.AddressTable.texts": lambda: (_table().texts, {"numbers": np.arange(2)}),
    "sensing.Ranges": lambda: (sensing.Ranges, {"given": PRIVATE}),
    "sensing.Ranges.classify": lambda: (
        sensing.Ranges(PRIVATE).classify, {"addresses": packets()[0]}
    ),
    "Pairs.check": lambda: (joined().check, {"left": SETS}),
    "Pairs.merge": lambda: (table_pairs().merge, {"left": words()}),
    "Collection.beside": lambda: (mw.collection(SETS).beside, {"other": mw.collection(SETS)}),
    "Collection.record": lambda: (mw.collection(SETS).record, {"row": 1}),
    "tridiagonal.Factorization.solve": lambda: (
        tridiagonal.factorize(*bands()).solve, {"b": vector(7)}
    ),
    "tridiagonal.Factorization.solve_ordered": lambda: (
        tridiagonal.factorize(*bands()).solve_ordered, {"b": vector(7)[None]}
    ),
    "dist.Serial": lambda: (mw.dist.Serial, {}),
    "dist.Serial.allgather": lambda: (serial().allgather, {"array": ROW}),
    "dist.Serial.allgatherv": lambda: (serial().allgatherv, {"array": ROW}),
    "dist.Serial.allreduce": lambda: (serial().allreduce, {"array": ROW}),
    "dist.Serial.alltoallv": lambda: (serial().alltoallv, {"array": ROW, "counts": [3]}),
    "dist.Serial.broadcast": lambda: (serial().broadcast, {"array": ROW}),
    "dist.Serial.reduce_scatter": lambda: (
        serial().reduce_scatter, {"array": ROW, "counts": [3]}
    ),
    "dist.Serial.split": lambda: (serial().split, {"color": 0}),
}  # fmt: skip
"""Methods and classes that users call with arguments, by the names that users write."""


@functools.cache
def words() -> Any:
    import pandas as pd

    return pd.DataFrame({"words": ["graph join", "graph joins", "a"]})


@functools.cache
def table_pairs() -> Any:
    return mw.fuzzy_join(words(), on="words", separator=" ", delta=0.3)


CHECKS = {
    "Matching.check": ("check_matching", "check_locally_dominant"),
    "Factor.check": ("check_factor",),
    "LinearForest.check": ("check_linear_forest",),
    "Solution.check": ("check_solution",),
    "Partition.check": ("check_partition",),
    "Pairs.check": ("check_fuzzy_join",),
    "tridiagonal.Factorization.solve": ("tridiagonal.factorize",),
    "DistributedGraph.vector": ("DistributedVector",),
    "factor": ("degree_factor",),
}
"""Methods that call a function which names itself."""


IN_PIECES = ("iter_capture", "read_archive", "iter_fuzzy_join")


def names() -> list[str]:
    """All that is attacked."""
    functions = [
        name.removeprefix("matchwood.") for name, f in PUBLIC.items() if not inspect.isclass(f)
    ]
    return sorted({*functions, *METHODS})


def call_of(name: str) -> OptionCall:
    """The valid call of that name; a communicator is a new one each time, for errors end it."""
    return _made(name) if re.match(r"distribute|Distributed|dist\.Serial", name) else _kept(name)


@functools.cache
def _kept(name: str) -> OptionCall:
    return _made(name)


def _made(name: str) -> OptionCall:
    *before, last = name.split(".")
    if name in METHODS:
        function, arguments = METHODS[name]()
        said = (last, *before[-1:], ".".join((*before[-1:], last)), *CHECKS.get(name, ()))
        return OptionCall(function, arguments, said)
    function = PUBLIC[f"matchwood.{name}"]
    if name in ARGUMENTS:
        made = OptionCall(function, ARGUMENTS[name](), (last, name, *CHECKS.get(name, ())))
        return made._replace(read=list) if name in IN_PIECES else made
    for call in public_calls.table()[f"matchwood.{name}"]():
        found, options = call.function, {}
        while isinstance(found, functools.partial):
            found, options = found.func, {**found.keywords, **options}
        if found is function:
            bound = inspect.signature(function).bind(*call.arguments, **options)
            return OptionCall(function, dict(bound.arguments), (last, name))
    raise LookupError(f"{name} has no call in option_calls.py")
