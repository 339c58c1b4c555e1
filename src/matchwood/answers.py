"""How answers are printed, what checks require of them, and how checks read a graph.

An answer of the wrong kind cannot be an answer at all: floats, truth values or text where vertices
are numbered.  That is a TypeError, and nothing is rounded.  What is of the right kind and wrong,
by its shape too, is a `CheckFailed`.

Passes over the arcs take a block at a time, so that Ctrl-C takes effect between two of them and the
memory that they need does not grow with the graph.  Arrays may be NumPy's or CuPy's: `module` says
which functions belong to them.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.errors import CheckFailed

BLOCK = 1 << 18  # entries of a block on the CPU: some 5 ms of a check's pass
GPU_BLOCK = 1 << 24  # entries of a block on the GPU, where a pass is a few launches


def with_public_signature(made: type) -> type:
    """Leave fields that start with an underscore out of a dataclass's signature."""
    whole = inspect.signature(made)
    public = [p for name, p in whole.parameters.items() if not name.startswith("_")]
    made.__signature__ = whole.replace(parameters=public)  # type: ignore[attr-defined]
    return made


def module(array: Any) -> Any:
    """NumPy or CuPy, whose array it is."""
    return engines.cupy() if engines.location(array) == "gpu" else np


def array(caller: str, name: str, value: Any) -> Any:
    """`value` as a NumPy or CuPy array; its own memory where it has one."""
    if engines.location(value) == "gpu":
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return engines.cupy().asarray(value)
    return arguments.plain(caller, name, value)


def integers(
    caller: str, problem: str, name: str, value: Any, shape: tuple[int, ...], place: str
) -> Any:
    """`value` as an int64 array of that shape on the engine `place`.

    TypeError unless it holds integers, `CheckFailed` unless it has the shape.
    """
    found = array(caller, name, value)
    if found.size == 0 and not hasattr(value, "dtype"):
        found = found.astype(np.int64)  # an empty list has no type of its own
    if found.dtype.kind not in "iu":
        raise TypeError(f"{caller}: {name} must hold integers, got dtype {found.dtype}")
    if found.shape != shape:
        size = f"{shape[0]} elements" if len(shape) == 1 else f"shape {shape}"
        raise CheckFailed(f"{problem}: {name} must have {size}, got shape {found.shape}")
    if found.dtype.kind == "u" and found.dtype.itemsize == 8 and found.size:
        most = int(found.max())
        if most > np.iinfo(np.int64).max:
            raise CheckFailed(f"{problem}: {name} holds {most}, more than any number of a vertex")
    native = found.astype(found.dtype.newbyteorder("="), copy=False)
    moved = engines.moved(native, place)
    return module(moved).ascontiguousarray(moved, dtype=np.int64)


def of_kind(caller: str, kinds: str, **arrays: Any) -> None:
    """TypeError unless the arrays are of one of NumPy's kinds, "iu" for integers."""
    for name, value in arrays.items():
        if value.dtype.kind not in kinds:
            what = "integers" if kinds == "iu" else f"values of kind {' or '.join(kinds)}"
            raise TypeError(f"{caller}: {name} must hold {what}, got dtype {value.dtype}")


def reals(
    caller: str, problem: str, name: str, value: Any, shape: tuple[int, ...], place: str
) -> Any:
    """`value` as an array of real numbers of that shape on `place`, of the type that it has."""
    found = array(caller, name, value)
    if found.dtype.kind not in "iuf":
        raise TypeError(f"{caller}: {name} must hold real numbers, got dtype {found.dtype}")
    if found.shape != shape:
        raise CheckFailed(
            f"{problem}: {name} must have {shape[0]} elements, got shape {found.shape}"
        )
    return engines.moved(found, place)


def matrix(caller: str, problem: str, value: Any, n: int) -> tuple[Any, Any, Any]:
    """The arrays of a square CSR matrix of an answer, on the CPU: SciPy trusts them as addresses.

    TypeError unless it is such a matrix of integers and real numbers, `CheckFailed` unless the
    arrays fit each other.  Entries may be in any order, and stored twice.
    """
    if getattr(value, "format", None) != "csr" or not hasattr(value, "indptr"):
        raise TypeError(f"{caller}: matrix must be a CSR matrix, got {type(value).__name__}")
    if tuple(value.shape) != (n, n):
        raise CheckFailed(f"{problem}: the matrix must have {n} rows, got shape {value.shape}")
    indptr = integers(caller, problem, "indptr", value.indptr, (n + 1,), "cpu")
    m = int(getattr(value.indices, "size", 0))
    indices = integers(caller, problem, "indices", value.indices, (m,), "cpu")
    data = reals(caller, problem, "values", value.data, (m,), "cpu")
    if indptr[0] != 0 or indptr[-1] != m or bool((indptr[1:] < indptr[:-1]).any()):
        raise CheckFailed(f"{problem}: indptr must ascend from 0 to the {m} indices")
    at = first((indices < 0) | (indices >= n))
    if at is not None:
        raise CheckFailed(f"{problem}: entry {at} is in column {indices[at]} of 0..{n - 1}")
    return indptr, indices, data


def mask(caller: str, problem: str, name: str, value: Any, n: int, place: str) -> Any:
    """`value` as n truth values on `place`: booleans, integers 0 and 1, or a set of vertices."""
    if isinstance(value, (set, frozenset)):
        value = _marked(caller, problem, name, value, n)
    found = array(caller, name, value)
    if found.size == 0 and not hasattr(value, "dtype"):
        found = found.astype(bool)
    if found.dtype.kind not in "biu":
        raise TypeError(
            f"{caller}: {name} must hold truth values or integers 0 and 1, got dtype {found.dtype}"
        )
    if found.shape != (n,):
        raise CheckFailed(f"{problem}: must have {n} elements, got shape {found.shape}")
    if found.dtype.kind != "b":
        strange = found != (found != 0)
        if bool(strange.any()):
            v = int(strange.argmax())
            raise CheckFailed(
                f"{problem}: must be boolean, or integers 0 and 1, got {int(found[v])} at vertex "
                f"{v}; pass a set of vertices as a set"
            )
        found = found != 0
    return engines.moved(found, place)


def _marked(caller: str, problem: str, name: str, vertices: Any, n: int) -> Any:
    marks = np.zeros(n, bool)
    for v in vertices:
        marks[vertex(caller, problem, name, v, n)] = True
    return marks


def vertex(caller: str, problem: str, name: str, v: Any, n: int) -> int:
    """One vertex of an answer."""
    if not arguments.is_integer(v):
        raise TypeError(f"{caller}: {name} must hold vertices, got {arguments.shown(v)}")
    if not 0 <= v < n:
        raise CheckFailed(f"{problem}: {v} is no vertex of 0..{n - 1}")
    return int(v)


def whole(caller: str, name: str, value: Any) -> int:
    """A number of an answer that must be an integer; 0-dimensional arrays pass."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if not arguments.is_integer(value):
        raise TypeError(f"{caller}: {name} must be an integer, got {type(value).__name__}")
    return int(value)


def number(caller: str, name: str, value: Any) -> Any:
    """A number of an answer: a Python int or float, NaN among them."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{caller}: {name} must be a number, got {type(value).__name__}")
    return value


def first(wrong: Any) -> int | None:
    """Where the first True is; None where all are False."""
    return int(wrong.argmax()) if wrong.size and bool(wrong.any()) else None


def first_difference(expected: Any, found: Any) -> tuple[int, bool] | None:
    """(place, True) of the first number in `expected` that ascending `found` lacks, or
    (place in `found`, False) of the first surplus one; None where the lists are equal."""
    size = min(int(expected.size), int(found.size))
    for begin, end in pieces(size):
        at = first(expected[begin:end] != found[begin:end])
        if at is not None:
            k = begin + at
            return k, bool(expected[k] < found[k])
    if expected.size == found.size:
        return None
    return size, bool(expected.size > size)


def pieces(n: int, block: int = 4 * BLOCK) -> Iterator[tuple[int, int]]:
    """0..n in ranges of `block`."""
    for begin in range(0, n, block):
        yield begin, min(begin + block, n)


def arcs(view: Any, block: int | None = None) -> Iterator[tuple[int, Any, Any]]:
    """Yield (begin, u, v): arcs from u[i] to v[i], which are the entries begin, begin + 1, ...

    At most `block` entries at a time, beginning and ending anywhere in a row.  Rows without
    entries count too, so that no block has few arcs and many vertices.
    """
    if engines.location(view.indices) == "gpu":
        yield from _gpu_arcs(view, block or GPU_BLOCK)
        return
    indptr, indices, n, m = view.indptr, view.indices, view.n, view.nnz
    size = block or BLOCK
    if max(n, m) <= size:
        if m:
            yield 0, np.repeat(np.arange(n), np.diff(indptr)), indices
        return
    kind = indptr.dtype.type  # a number of another type would have the whole array cast
    begin = 0
    while begin < m:
        row = int(np.searchsorted(indptr, kind(begin), "right")) - 1
        end = min(begin + size, m, int(indptr[min(row + size, n)]))
        last = int(np.searchsorted(indptr, kind(end), "left"))
        lengths = np.diff(indptr[row : last + 1].clip(begin, end))
        yield begin, np.repeat(np.arange(row, last), lengths), indices[begin:end]
        begin = end


def _gpu_arcs(view: Any, size: int) -> Iterator[tuple[int, Any, Any]]:
    xp = engines.cupy()
    ends = view.indptr[1:]
    for begin in range(0, view.nnz, size):
        end = min(begin + size, view.nnz)
        places = xp.arange(begin, end, dtype=ends.dtype)
        yield begin, xp.searchsorted(ends, places, side="right"), view.indices[begin:end]


def holds(check: Callable[..., None], *given: Any, **options: Any) -> bool:
    """Whether the check passes; errors other than `CheckFailed` are raised.

    They name the function that was called: the one that calls this.
    """
    caller = sys._getframe(1).f_code.co_name
    require_known(caller, check, options)
    try:
        with in_the_name_of(caller):
            check(*given, **options)
    except CheckFailed:
        return False
    return True


def require_known(caller: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise unless the function has all of these options, which are passed on to it."""
    try:
        inspect.signature(function).bind_partial(**options)
    except TypeError as error:
        raise TypeError(f"{caller}: {error}") from None


@contextlib.contextmanager
def in_the_name_of(caller: str) -> Iterator[None]:
    """Errors about arguments raised inside name `caller` instead of the inner function."""
    try:
        yield
    except (TypeError, ValueError) as error:
        function, colon, text = str(error).partition(": ")
        if type(error) not in (TypeError, ValueError) or not colon or " " in function:
            raise
        raise type(error)(f"{caller}: {text}") from None


def require(caller: str, name: str, value: Any, kind: str, *attributes: str) -> None:
    """TypeError unless the value has these attributes of an answer of that kind."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise TypeError(f"{caller}: {name} must be a {kind}, got {type(value).__name__}")
