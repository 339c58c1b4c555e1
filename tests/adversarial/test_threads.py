"""Wrong `threads` get an error that names the function called, on every engine, at once."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pytest

import matchwood
from adversarial.public_calls import bands, csr, forest, largest_degree, matrix, table_of_paths
from matchwood.registry import PROBLEMS
from test_house_public import PUBLIC

WRONG = [("two", TypeError), (True, TypeError), (2.0, TypeError), (0, ValueError), (-1, ValueError),
         (200_000, ValueError), (10**30, ValueError)]  # fmt: skip
PAIR = np.array([2, 0, 2, 1]), np.array([1, 2, 1, 0])
OTHERS: dict[str, dict[str, Any]] = {
    **{f"matchwood.{entry.function}": entry.example for entry in PROBLEMS if entry.example},
    "matchwood.generators.stencil": {"weights": np.arange(9.0).reshape(3, 3)},
    "matchwood.generators.random_geometric": {"degree": 3},
    "matchwood.primitives.hashing.mix64": {"x": PAIR[0].astype(np.uint64)},
    "matchwood.primitives.compact.compact": {"values": PAIR[1]},
    "matchwood.anonymize": {"key": bytes(32)},
}
FILES = {
    "read": "a.mtx", "read_metis": "a.metis", "read_hmetis": "a.hgr", "read_dimacs": "a.gr",
    "read_coordinates": "a.co",
}  # fmt: skip


@functools.cache
def values_of() -> dict[str, Any]:
    """A right value for each parameter by its name; some are answers, for which kernels compile."""
    return {
        "A": matrix(), "sources": 0, "parent": np.zeros(5, np.int64), "n": 5, "forest": forest(),
        "matching": np.full(12, -1),
        "perm": np.arange(12), "kind": 1, "shape": (3, 4), "m": 4, "scale": 3, "edge_factor": 2,
        "density": 0.5, "n_rows": 3, "n_cols": 3, "rows": PAIR[0], "cols": PAIR[1], "columns": 12,
        "indptr": csr()[0], "indices": csr()[1], "data": csr()[2], "mask": PAIR[0] > 1,
        "u": PAIR[0], "v": PAIR[1], "w": np.ones(4), "seed": 3, "queue": PAIR[0],
        "bitmap": np.array([9], np.uint64), "x": np.ones(12), "r": 1,
        "neighbours": table_of_paths(), "values": np.arange(6),
        "operation": largest_degree(), "out": np.zeros(12, np.int64), "label": np.arange(12),
        "counts": PAIR[0], "keys": PAIR[0].astype(np.uint64), "payload": PAIR[1], "dl": bands()[0],
        "d": bands()[1], "du": bands()[2], "b": np.ones(7), "p": 0.5, "count": 12,
        "labels": np.arange(12, dtype=np.int32), "src": PAIR[0], "dst": PAIR[1], "source": PAIR,
        "traffic": PAIR, "matrices": [], "addresses": PAIR[0].astype(np.uint32),
        "method": "permutation", "left": [["a"], ["b"]], "function": len,
    }  # fmt: skip


def functions() -> dict[str, Any]:
    """The public functions that take threads."""
    return {
        name: value
        for name, value in PUBLIC.items()
        if inspect.isfunction(value) and "threads" in inspect.signature(value).parameters
    }


def arguments(name: str, parameters: Any, tmp_path: Any) -> tuple[list[Any], dict[str, Any]]:
    """What the function needs: those without a default, and `OTHERS`."""
    values = {**values_of(), **OTHERS.get(name, {})}
    file = FILES.get(name.rpartition(".")[2])
    if file is not None and name.startswith("matchwood.io."):
        values["path"] = tmp_path / file
        (tmp_path / file).write_text(TEXTS[file])
    if name.endswith("_capture"):
        values["path"] = tmp_path / "a.pcap"
        values["packets"] = matchwood.Packets(
            *(np.zeros(2, kind) for kind in (np.uint32, np.uint32, np.int64, np.uint32, np.uint8))
        )
        if "write" not in name:
            matchwood.write_capture(values["path"], values["packets"])
    if name.endswith(("_archive", "archive_writer")):
        values["path"] = tmp_path / "a.tar"
    if name.endswith("read_archive"):
        matchwood.write_archive(values["path"], [matchwood.traffic_matrix(*PAIR)], compression=None)
    needed = {
        key: values[key]
        for key, parameter in parameters.items()
        if (parameter.default is parameter.empty or key in OTHERS.get(name, {}))
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    first = [value for key, value in needed.items() if parameters[key].kind is not KEYWORD]
    return first, {key: value for key, value in needed.items() if parameters[key].kind is KEYWORD}


KEYWORD = inspect.Parameter.KEYWORD_ONLY
TEXTS = {
    "a.mtx": "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n3 1 -2e3\n",
    "a.metis": "3 2\n2\n1 3\n2\n", "a.hgr": "2 3\n1 2\n2 3\n",
    "a.gr": "p sp 3 2\na 1 2 5\na 2 3 4\n", "a.co": "p aux sp co 2\nv 1 5 6\nv 2 -7 8\n",
}  # fmt: skip


@pytest.mark.parametrize("name", functions())
def test_wrong_threads_are_refused_by_name(name, engine, tmp_path):
    function = functions()[name]
    parameters = inspect.signature(function).parameters
    if engine == "reference" and ("engine" not in parameters or name == "matchwood.dist.world"):
        pytest.skip("takes no engine")
    first, rest = arguments(name, parameters, tmp_path)
    options = {"engine": engine} if "engine" in parameters else {}
    for threads, kind in WRONG:
        try:
            with pytest.raises(kind, match=rf"^{function.__name__}: threads must be "):
                function(*first, **rest, **options, threads=threads)
        except matchwood.EngineUnavailable as error:
            pytest.skip(str(error))
