"""Arrays that a caller keeps: those a graph was made of, those of a graph, those of a result.

Each attack writes hostile numbers into arrays after an object was made of them, or into the arrays
that the object shows, and then uses the object.  Arrays that are read-only are made writeable
first, if they let themselves.  A graph, and what is prepared for many calls, must then give the
answer that it gave before, or a named error.  Any other result may hold what was written into it,
but must not crash.

Run as a program: ``kept_arrays.py FIRST END SEED [ONLY]``.  children.py says how that is told.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood as mw
from adversarial.children import Attack, make, unexpected
from adversarial.public_calls import csr, matrix, table, touch, upper, vector
from adversarial.wrong_arrays import SPARSE, Call, digest, leaves
from matchwood.preconditioners.operator import Core

HOSTILE = (10**9, -1, "least")
STRICT = ("Graph", "DistributedGraph", "Factor", "LinearForest", "Factorization", "Preconditioner")
"""Classes whose objects are trusted later: they must not be changed by what is written."""

ELSEWHERE = ("matchwood.sensing.", "matchwood.fuzzy_join", "matchwood.iter_fuzzy_join",
             "matchwood.collection", "matchwood.check.check_fuzzy_join")  # fmt: skip
"""Public functions whose objects have searches of their own."""


# Arrays


def arrays_of(value: Any, seen: set[int] | None = None) -> Iterator[np.ndarray[Any, Any]]:
    """Every array that can be reached: by attributes, properties, methods, items and bases."""
    seen = set() if seen is None else seen
    if value is None or isinstance(value, (str, bytes, int, float, type)) or id(value) in seen:
        return
    seen.add(id(value))
    parts: list[Any] = []
    if isinstance(value, np.ndarray):
        yield value
        parts = [value.base]
    elif sp.issparse(value):
        parts = [getattr(value, name, None) for name in SPARSE]
    elif isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (tuple, list)):
        parts = list(value)
    elif is_ours(value) and not isinstance(value, (Core, mw.dist.Communicator)):
        parts = [v for name, v in getattr(value, "__dict__", {}).items() if name[0] != "_"]
        with contextlib.suppress(Exception):
            parts += touch(value)
    for part in parts:
        yield from arrays_of(part, seen)


@contextlib.contextmanager
def overwritten(arrays: list[np.ndarray[Any, Any]], number: Any) -> Iterator[int]:
    """With hostile numbers in all arrays that can be written to; yields how many these are."""
    before: list[tuple[Any, Any]] = []
    for array in arrays:
        with contextlib.suppress(ValueError):
            array.flags.writeable = True
        if array.flags.writeable and array.size and array.dtype.kind in "biufc":
            before.append((array, array.copy()))
    try:
        for array, _ in before:
            array[...] = _fitting(number, array.dtype)
        yield len(before)
    finally:
        for array, old in before:
            array[...] = old


def _fitting(number: Any, dtype: Any) -> Any:
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        return least if number == "least" else min(max(number, least), most)
    if dtype.kind == "b":
        return True
    return np.nan if number == "least" else number


# Uses of an object


def told(value: Any) -> Any:
    """All that a result tells, also when it comes back from a pickle."""
    return digest([value, touch(value), touch(pickle.loads(pickle.dumps(value)))])


def applied(M: Any) -> Any:
    """What a preconditioner tells, and makes of vectors."""
    n = M.shape[0]
    made = [M @ vector(n), M.T @ vector(n), M @ np.ones((n, 2)), M.coverage, M.definite]
    return digest([*made, pickle.loads(pickle.dumps(M)) @ vector(n)])


def solved(made: Any) -> Any:
    b = np.ones((made.n, *made._system.block))
    return digest([made.solve(b), made.solve(b, transpose=True)])


def spread_told(G: Any) -> Any:
    """What functions find on a graph of one rank."""
    labels, mate = mw.connected_components(G).labels, mw.weighted_matching(G).mate
    vectors = (labels, mate, mw.bfs(G, 0).level, G.degrees)
    return digest([*(v.local for v in vectors), *G.undirected_weights(), *G.transposed_pattern()])


def is_ours(value: Any) -> bool:
    return type(value).__module__.startswith("matchwood") and not isinstance(value, np.ndarray)


def use_of(value: Any) -> Callable[[Any], Any]:
    uses = {"Preconditioner": applied, "Factorization": solved, "DistributedGraph": spread_told}
    return uses.get(type(value).__name__, told)


def outcome(use: Callable[[], Any], right: Any, strict: bool) -> str:
    """What is wrong with a use after the attack; "" when nothing is."""
    try:
        answer = use()
    except Exception as error:
        return unexpected(error)
    return "another answer" if strict and repr(answer) != repr(right) else ""


# Graphs


class Tensor:
    """An array of another library, by DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def _unsorted() -> sp.csr_array:
    A = matrix().copy()
    for i in range(A.shape[0]):
        row = slice(A.indptr[i], A.indptr[i + 1])
        A.indices[row], A.data[row] = A.indices[row][::-1].copy(), A.data[row][::-1].copy()
    A.has_sorted_indices = False
    return A


WAYS: dict[str, Callable[[], Any]] = {
    "csr": lambda: matrix().copy(),
    "csc": lambda: matrix().tocsc(),
    "coo": lambda: matrix().tocoo(),
    "arrays": lambda: tuple(a.copy() for a in csr()),
    "wide arrays": lambda: (*(a.astype(np.int64) for a in csr()[:2]), csr()[2].copy()),
    "unsorted": _unsorted,
    "one way": lambda: sp.csr_array(sp.triu(matrix(), format="csr")),
    "integers": lambda: matrix().astype(np.int16),
    "edges": lambda: upper(),
    "dense": lambda: matrix().toarray(),
    "DLPack": lambda: tuple(Tensor(a.copy()) for a in csr()),
}  # fmt: skip


def given(A: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays that a graph was made of."""
    inner = [a.array if isinstance(a, Tensor) else a for a in (A if isinstance(A, tuple) else (A,))]
    return [array for _, array in leaves(inner)]


def attack_graph(way: str, copy: bool, used: bool, inside: bool, number: Any, call: Call) -> str:
    """Write into the arrays of a graph (`inside`), or into those it was made of; then call."""
    rest = call.arguments[1:]
    try:
        right = digest(call.function(mw.graph(WAYS[way]()), *rest))
    except Exception as error:  # it takes no Graph, or another kind of matrix
        return unexpected(error)
    A = WAYS[way]()
    G = mw.graph(A, copy=copy)
    if used:
        call.function(G, *rest)
    arrays = list(arrays_of(G)) if inside else given(A)
    with overwritten(arrays, number) as count:
        if inside and copy and count:
            return f"{count} arrays of the graph could be written to"
        return outcome(lambda: digest(call.function(G, *rest)), right, True)


# Results


def kept_calls() -> dict[str, Callable[[], list[Call]]]:
    """Calls that make what is prepared for many others; those of the table use it at once."""
    bands = tuple(np.linspace(k, 2, 7) for k in (1, 9, 1))
    blocks = tuple(np.ones((5, 2, 2)) + k * np.eye(2) for k in (0, 9, 0))
    spread = functools.partial(mw.distribute, comm=mw.dist.Serial())
    made = {
        "tridiagonal.factorize": [Call(mw.tridiagonal.factorize, bands)],
        "block_tridiagonal.factorize": [Call(mw.block_tridiagonal.factorize, blocks)],
        "distribute": [Call(spread, (matrix(),))],
    }
    for kind in ("jacobi", "tridiagonal", "algebraic_tridiagonal", "algebraic_block_tridiagonal"):
        made[f"preconditioners.{kind}"] = [Call(getattr(mw.preconditioners, kind), (matrix(),))]
    return {f"kept {name}": lambda calls=calls: calls for name, calls in made.items()}


@functools.cache
def all_calls() -> dict[str, Callable[[], list[Call]]]:
    own = {name: calls for name, calls in table().items() if not name.startswith(ELSEWHERE)}
    return {**kept_calls(), **own}


@functools.cache
def calls_of(name: str) -> list[Call]:
    return all_calls()[name]()


def takes_graph(name: str, call: Call) -> bool:
    """Whether the call takes a matrix first, for which it can be given a Graph."""
    other = name.startswith(("matchwood.graph", "matchwood.Graph", "matchwood.io."))
    return not other and bool(call.arguments) and call.arguments[0] is matrix()


def results(call: Call) -> list[Any]:
    """The objects of ours that a call returns."""
    made = call.function(*call.arguments)
    return [part for part in (made if type(made) in (list, tuple) else [made]) if is_ours(part)]


def attack_result(inside: bool, number: Any, call: Call) -> str:
    """Write into the arrays of what a call returned (`inside`), or into those it was given."""
    for k, first in enumerate(results(call)):
        use = use_of(first)
        try:
            right = use(first)
        except Exception as error:
            return unexpected(error)
        parts = any(map(is_ours, call.arguments))  # what comes back may be a part of them
        strict = type(first).__name__ in STRICT or not (inside or parts)
        made = results(call)[k]
        arrays = list(arrays_of(made if inside else list(call.arguments)))
        with overwritten(arrays, number):
            why = outcome(functools.partial(use, made), right, strict)
        if why:
            return f"{type(first).__name__}: {why}"
    return ""


def attack_argument(number: Any, call: Call) -> str:
    """Write into the results of ours that a call is given, in place."""
    with overwritten(list(arrays_of([a for a in call.arguments if is_ours(a)])), number):
        return outcome(lambda: digest(call.function(*call.arguments)), None, False)


# The search


def attacks(end: float, seed: int, only: str) -> Iterator[Attack]:
    """All functions, those first that make something for later; then at random, until the end."""
    names = [name for name in all_calls() if only in name]
    end = max(end, time.time() + 3)  # it may have taken long to get here
    for name in names:
        if time.time() > end:
            return
        for call in calls_of(name):
            for what, attack in worst(name, call):
                yield f"{name}, {what}", attack
    rng = np.random.default_rng(seed)
    while time.time() < end:
        name = names[rng.integers(len(names))]
        calls = calls_of(name) or calls_of(names[0])
        call = calls[rng.integers(len(calls))]
        number = HOSTILE[rng.integers(len(HOSTILE))]
        way = list(WAYS)[rng.integers(len(WAYS))]
        copy, used, inside, graph = map(bool, rng.integers(0, 2, 4))
        if graph and takes_graph(name, call):
            yield (
                f"{name}, {way}, copy {copy}, used {used}, inside {inside}, {number}",
                functools.partial(attack_graph, way, copy, used, inside, number, call),
            )
        else:
            what = functools.partial(attack_result, inside, number, call)
            yield f"{name}, inside {inside}, {number}", what


def worst(name: str, call: Call) -> Iterator[Attack]:
    """Indices beyond everything, in each way once."""
    number = HOSTILE[0]
    for inside in (False, True):
        yield f"inside {inside}", functools.partial(attack_result, inside, number, call)
    if any(map(is_ours, call.arguments)):
        yield "argument", functools.partial(attack_argument, number, call)
    if takes_graph(name, call):
        for copy in (True, False):
            attack = functools.partial(attack_graph, "csr", copy, False, False, number, call)
            yield f"copy {copy}", attack


if __name__ == "__main__":
    first, end, seed, only = [*sys.argv[1:], *("",)[len(sys.argv) - 4 :]]
    make(attacks(float(end), int(seed), only), int(first))
