"""Is this the matrix in another order?  Entries are compared one by one, both sides sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.permutation import as_permutation, inverse
from matchwood.primitives.sort import radix_sort


def check_permuted(A: Any, perm: Any, B: Any) -> None:
    """Raise `CheckFailed` unless ``B[i, j] = A[perm[i], perm[j]]``, with sorted rows.

    Parameters
    ----------
    A, perm : as given to `permute`
    B : sparse matrix in CSR format

    Raises
    ------
    CheckFailed
        If an entry is missing, too many or different, or rows are not sorted; says where.
    TypeError, ValueError
        If B is no CSR matrix, or `perm` no permutation.

    Notes
    -----
    Runs on the CPU: matrices and a permutation that live on a GPU are moved.  Values are compared
    as they are, NaN equals NaN.  Memory: some 40 bytes for each entry.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(3)
    >>> matchwood.check.check_permuted(A, [1, 0, 2], matchwood.permute(A, [1, 0, 2]))
    >>> matchwood.check.check_permuted(A, [1, 0, 2], A)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: permuted: row 0, column 2 must be 1.0, but is not stored
    """
    caller = "check_permuted"
    G = csr.as_graph(A, caller).on("cpu")
    n = G.n
    order = as_permutation(perm, n, caller, "cpu")
    found, values = _matrix(caller, B, n)
    view = G.matrix(caller)
    data = view.data if view.data is not None else np.ones(view.nnz, np.float32)
    place = inverse(order)
    # unlike numpy.argsort, Ctrl-C interrupts this sort
    bits = max(1, (n * n).bit_length())
    expected, origin = radix_sort(_keys(view, place).view(np.uint64), bits=bits)
    expected, given = expected.view(np.int64), _keys(found, np.arange(n))
    parted = answers.first_difference(expected, given)
    if parted is not None:
        k, missing = parted
        i, j = divmod(int(expected[k] if missing else given[k]), n)
        says = f"must be {data[origin[k]]}, but is not stored" if missing else (
            "is stored, but not so in A"
        )  # fmt: skip
        raise CheckFailed(f"permuted: row {i}, column {j} {says}")
    for begin, end in answers.pieces(given.size):
        right = data[origin[begin:end]]
        at = answers.first(~_equal(values[begin:end], right))
        if at is not None:
            i, j = divmod(int(given[begin + at]), n)
            raise CheckFailed(
                f"permuted: row {i}, column {j} is {values[begin + at]}, but must be {right[at]}"
            )


def _matrix(caller: str, B: Any, n: int) -> tuple[csr.View, Any]:
    """The arrays of B, if they are CSR with strictly ascending rows."""
    if not all(hasattr(B, name) for name in ("shape", "indptr", "indices", "data")):
        raise TypeError(f"{caller}: B must be a CSR matrix, got {type(B).__name__}")
    if tuple(B.shape) != (n, n):
        raise CheckFailed(f"permuted: shape must be {(n, n)}, got {B.shape}")
    indptr = answers.integers(caller, "permuted", "indptr", B.indptr, (n + 1,), "cpu")
    m = int(B.indices.size)
    indices = answers.integers(caller, "permuted", "indices", B.indices, (m,), "cpu")
    values = engines.moved(B.data, "cpu")
    if values.dtype.kind not in "biufc":
        raise TypeError(f"{caller}: B must hold numbers, got dtype {values.dtype}")
    if indptr[0] != 0 or indptr[-1] != m or (indptr[1:] < indptr[:-1]).any():
        raise CheckFailed(f"permuted: indptr must ascend from 0 to the {m} indices")
    if values.shape != (m,):
        raise CheckFailed(f"permuted: {m} values expected, got shape {values.shape}")
    at = answers.first((indices < 0) | (indices >= n))
    if at is not None:
        raise CheckFailed(f"permuted: entry {at} is in column {indices[at]} of 0..{n - 1}")
    view = csr.View(indptr, indices)
    last = -1
    for _, u, v in answers.arcs(view):
        keys = u * n + v
        k = 0 if keys[0] <= last else answers.first(np.diff(keys, prepend=last) <= 0)
        if k is not None:
            raise CheckFailed(f"permuted: row {u[k]} is not sorted, or has a column twice")
        last = int(keys[-1])
    return view, values


def _keys(view: csr.View, place: Any) -> Any:
    """row * n + column of each entry, both by their places."""
    keys = [place[u] * view.n + place[v] for _, u, v in answers.arcs(view)]
    return np.concatenate([np.empty(0, np.int64), *keys])


def _equal(one: Any, other: Any) -> Any:
    """Whether values are equal, one by one; NaN equals NaN."""
    return (one == other) | ((one != one) & (other != other))


# Shared by the checks of orders: a permutation, and keys that ascend along it.


def permutation(caller: str, problem: str, perm: Any, n: int) -> Any:
    """`perm`, or the perm of a result, as an int64 array on the CPU that holds 0..n-1 once each."""
    given = getattr(perm, "perm", perm)
    order = answers.integers(caller, problem, "perm", given, (n,), "cpu")
    at = answers.first((order < 0) | (order >= n))
    if at is not None:
        raise CheckFailed(f"{problem}: perm holds {order[at]} at {at}, which is no vertex")
    seen = np.zeros(n, bool)
    seen[order] = True
    at = answers.first(~seen)
    if at is not None:
        raise CheckFailed(f"{problem}: vertex {at} is missing")
    return order


def numbers(caller: str, answer: Any, kind: str, names: tuple[str, ...], real: str) -> list[Any]:
    """These fields of an answer: numbers, and whole ones unless the name begins with `real`."""
    if not all(hasattr(answer, name) for name in names):
        raise TypeError(f"{caller}: answer must be {kind}, got {type(answer).__name__}")
    kinds = (answers.number if name.startswith(real) else answers.whole for name in names)
    return [to(caller, name, getattr(answer, name)) for to, name in zip(kinds, names, strict=True)]


def check_ascending(problem: str, order: Any, *keys: Any) -> None:
    """Raise unless (keys of v, v) ascends along the order."""
    before, after = order[:-1], order[1:]
    right = before < after
    for key in reversed(keys):
        one, other = key[before], key[after]
        right = (one < other) | ((one == other) & right)
    at = answers.first(~right)
    if at is not None:
        raise CheckFailed(
            f"{problem}: vertex {after[at]} must come before vertex {before[at]}, "
            f"which has place {at}"
        )
