"""What the public functions of tridiagonal/ and tridiagonal/block/ share: argument checks, the call
of an engine, and errors."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import flag, index_type, integers, plain
from matchwood.errors import CheckFailed
from matchwood.tridiagonal import check as accuracy
from matchwood.tridiagonal.check import check_tridiagonal_solution
from matchwood.tridiagonal.repair import repaired, widened


@dataclass(frozen=True)
class System:
    """Checked coefficients: three contiguous arrays of one floating type on one engine."""

    caller: str
    package: str
    dl: Any
    d: Any
    du: Any

    @property
    def n(self) -> int:
        """Rows, or block rows."""
        return int(self.d.shape[0])

    @property
    def block(self) -> tuple[int, ...]:
        """() for plain rows, (2,) for block rows: the shape of a right-hand side at each row."""
        return tuple(self.d.shape[1:2])

    @property
    def where(self) -> str:
        return engines.location(self.d)

    @cached_property
    def transposed(self) -> System:
        """The system of the transposed matrix."""
        dl, d, du = (a.swapaxes(1, 2) if self.block else a for a in (self.dl, self.d, self.du))
        xp = engines.xp(self.d)
        lower, upper = xp.zeros_like(d), xp.zeros_like(d)
        lower[1:], upper[:-1] = du[:-1], dl[1:]
        arrays = (xp.ascontiguousarray(a) for a in (lower, d, upper))
        return System(self.caller, self.package, *arrays)

    def right_hand_side(self, b: Any) -> Any:
        """b, checked: an array of float32 or float64 on the engine of the system."""
        array = _floating(b, "b", self.caller)
        shape = (self.n, *self.block)
        if array.shape[: len(shape)] != shape or array.ndim > len(shape) + 1:
            expected = ", ".join(map(str, shape))
            raise ValueError(
                f"{self.caller}: b must have shape ({expected}) or ({expected}, k), "
                f"got {array.shape}"
            )
        if engines.location(array) != self.where:
            raise TypeError(
                f"{self.caller}: b must lie where the matrix does, on the {self.where.upper()}"
            )
        return array

    def solve(
        self, b: Any, *, allow_singular: bool = False, engine: str | None = None,
        threads: int | None = None,
    ) -> Any:  # fmt: skip
        """x with the shape of b."""
        return self.examined(b, allow_singular, engine, threads)[0]

    def examined(
        self, b: Any, allow_singular: bool, engine: str | None, threads: int | None
    ) -> tuple[Any, bool]:
        """x, and whether the matrix is too hard to be solved by the engine alone."""
        flag(self.caller, "allow_singular", allow_singular)
        b = self.right_hand_side(b)
        kind = np.result_type(self.d.dtype, b.dtype)
        chosen = engines.resolve(self.where, engine, self.caller, threads)
        home = engines.home(chosen)
        dl, d, du, given = (_brought(a, home, kind) for a in (self.dl, self.d, self.du, b))
        xp = engines.xp(d)
        columns = b.shape[-1] if b.ndim > 1 + len(self.block) else 1
        length = self.n * (self.block or (1,))[0]
        rows = given.reshape(length, columns).T
        if home == "gpu":  # the CPU's engines take columns as they lie
            rows = xp.ascontiguousarray(rows)
        package = __package__ if chosen == "reference" else self.package
        run = functools.partial(engines.load(package, chosen).solve, threads=threads)
        x, lacking, verdict = run(dl, d, du, rows)
        if verdict == accuracy.WRONG:
            self.refuse_not_finite(b)
        wrong, right = verdict == accuracy.WRONG, True
        # products beyond the range of numbers can make a pivot zero where the matrix has one
        doubtful = wrong or (lacking >= 0 and not allow_singular)
        if doubtful:
            x, lacking, right = repaired(run, xp, (dl, d, du), rows, x, lacking)
        if lacking >= 0 and not allow_singular:
            raise self.singular(lacking)
        if doubtful or wrong:
            self._refuse_overflow(x)
        x = engines.moved(xp.ascontiguousarray(x.T).reshape(b.shape), self.where)
        if not (right or allow_singular):
            self._refuse_what_no_check_accepts(b, x)
        return x, (doubtful and lacking < 0) or verdict == accuracy.HARD

    def probe(self) -> Any:
        """A right-hand side for a test of the matrix: the product of the matrix with unknowns of
        random sign, each about the inverse of its column's largest entry."""
        xp = engines.xp(self.d)
        size = abs(self.d)
        size[1:] = xp.maximum(size[1:], abs(self.du[:-1]))
        size[:-1] = xp.maximum(size[:-1], abs(self.dl[1:]))
        if self.block:
            size = size.max(axis=1)
        reach = np.finfo(self.d.dtype).maxexp - 4
        power = xp.clip(xp.frexp(size)[1], -reach, reach)
        # pseudo-random signs, the same on both engines; 0.25, so that no sum of terms overflows
        signs = 0.5 * ((xp.arange(size.size) * 2654435761 >> 13) & 1) - 0.25
        x = xp.ldexp(signs.reshape(size.shape).astype(self.d.dtype), -power)
        with np.errstate(all="ignore"):
            b = accuracy.product(self.dl, self.d, self.du, x)
        return xp.where(xp.isfinite(b), b, 0)

    def singular(self, row: int) -> np.linalg.LinAlgError:
        """The error for a row without a pivot."""
        kind = "block row" if self.block else "row"
        return np.linalg.LinAlgError(
            f"{self.caller}: the matrix is singular, the unknown of {kind} {row} has no pivot; "
            "allow_singular=True goes on with a tiny one"
        )

    def _refuse_what_no_check_accepts(self, b: Any, x: Any) -> None:
        """Raise the error for a nearly singular matrix, if the check of tridiagonal/ refuses x."""
        try:
            check_tridiagonal_solution(self.dl, self.d, self.du, b, x)
        except CheckFailed as error:
            reason = str(error).removeprefix("tridiagonal: ")
            raise np.linalg.LinAlgError(
                f"{self.caller}: the matrix is singular as far as {x.dtype} can tell: in the best "
                f"solution {reason}; allow_singular=True returns it"
            ) from None

    def refuse_not_finite(self, b: Any) -> None:
        """Raise the error that names the first number that is not finite, if there is one."""
        arrays = {"dl": self.dl[1:], "d": self.d, "du": self.du[:-1], "b": b}
        for name, array in arrays.items():
            bad = np.argwhere(~np.isfinite(np.asarray(engines.moved(array, "cpu"))))
            if bad.size:
                row = int(bad[0][0]) + (name == "dl")
                raise ValueError(f"{self.caller}: {name} must be finite, but is not at row {row}")

    def _refuse_overflow(self, x: Any) -> None:
        """Raise the error that names the first unknown beyond the range of its type, if any."""
        bad = np.argwhere(~np.isfinite(np.asarray(engines.moved(x, "cpu")).T))
        if bad.size:
            kind = "block row" if self.block else "row"
            row = int(bad[0][0]) // (self.block or (1,))[0]
            raise OverflowError(
                f"{self.caller}: the unknown of {kind} {row} is beyond the range of {x.dtype}"
            )


def _brought(array: Any, home: str, kind: Any) -> Any:
    """The array on that engine, of that type; itself if it is so already."""
    array = engines.moved(array, home)
    return array if array.dtype == kind else widened(array)


def _floating(array: Any, name: str, caller: str) -> Any:
    if engines.location(array) == "cpu":
        if hasattr(array, "__cuda_array_interface__"):
            array = engines.cupy().asarray(array)
        else:
            array = plain(caller, name, array)
    if array.dtype.kind == "c":
        raise TypeError(f"{caller}: {name} must be real, got {array.dtype}")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{caller}: {name} must hold numbers, got {array.dtype}")
    if array.dtype in (np.float32, np.float64):
        return array
    with np.errstate(over="ignore"):  # of long doubles
        return array.astype(np.float64)


def system(
    caller: str, package: str, dl: Any, d: Any, du: Any, *, block: bool, copy: bool = False
) -> System:
    """The coefficients, checked; copied for a system that outlives the call."""
    given = {"dl": dl, "d": d, "du": du}
    arrays = {name: _floating(array, name, caller) for name, array in given.items()}
    shape = arrays["d"].shape
    if len(shape) != (3 if block else 1) or (block and shape[1:] != (2, 2)):
        wanted = "(n, 2, 2)" if block else "(n,)"
        raise ValueError(f"{caller}: d must have shape {wanted}, got {shape}")
    for name, array in arrays.items():
        if array.shape != shape:
            raise ValueError(
                f"{caller}: dl, d and du must have the same shape, got {shape} for d "
                f"and {array.shape} for {name} (dl[0] and du[-1] are there but not read)"
            )
    places = {engines.location(array) for array in arrays.values()}
    if len(places) > 1:
        raise TypeError(f"{caller}: dl, d and du must lie on one engine, CPU or GPU")
    kind = np.result_type(*(array.dtype for array in arrays.values()))
    taken = (array.astype(kind, order="C", copy=copy) for array in arrays.values())
    return System(caller, package, *taken)


class Factorization:
    """A matrix prepared for many solves; made by `factorize`.

    The coefficients are kept, checked once, in the form that the engine reads.  Each solve repeats
    the elimination, which costs less than reading a stored factorization.

    Attributes
    ----------
    n : int
        Rows, or block rows.
    dtype : numpy.dtype
        Of the coefficients.  A right-hand side of a wider type is solved in that type.
    """

    def __init__(self, made: System, allow_singular: bool, threads: int | None) -> None:
        self._system = made
        self._threads = threads
        self.n, self.dtype = made.n, made.d.dtype
        self._solvers: dict[Any, Any] = {}
        # by `transpose`: is the matrix, or its transpose, too hard for the engine alone?
        self._hard = {False: self._is_hard(made, allow_singular)}

    def _is_hard(self, made: System, allow_singular: bool) -> bool:
        """Whether many rows of a solution were off.  Raises the same errors as `solve`."""
        return made.examined(made.probe(), allow_singular, None, self._threads)[1]

    def __repr__(self) -> str:
        kind = "block rows" if self._system.block else "rows"
        return f"<Factorization: {self.n} {kind}, {self.dtype}, {self._system.where}>"

    def solve(self, b: Any, *, transpose: bool = False) -> Any:
        """Solve with the matrix, or with its transpose.

        Parameters
        ----------
        b : array, one right-hand side or many, as in `solve`
        transpose : bool

        Returns
        -------
        x : array with the shape of b

        Examples
        --------
        >>> import matchwood
        >>> made = matchwood.tridiagonal.factorize([0, 1], [2, 1], [1, 0])
        >>> made.solve([3.0, 2.0]).tolist(), made.solve([3.0, 2.0], transpose=True).tolist()
        ([1.0, 1.0], [1.0, 1.0])
        """
        flag(self._system.caller, "transpose", transpose)
        made = self._system.transposed if transpose else self._system
        return made.solve(b, allow_singular=True, threads=self._threads)

    def solve_ordered(self, b: Any, order: Any = None, *, transpose: bool = False) -> Any:
        """Solve where the rows of the matrix are in another order than b and x.

        Row i has its right-hand side at ``b[order[i]]`` and its unknown at ``x[order[i]]``.
        Neither the values of `b` nor the residuals are checked, and on a GPU the call does not
        wait.  Only if a test solution with this matrix had many rows off, every solution is checked
        and repaired.

        Parameters
        ----------
        b : (k, m) contiguous array of `dtype`
            k right-hand sides.
        order : (n,) or (n, 2) integers, or None
            None is the order of the rows.  For blocks, the places of both unknowns; there -1 is a
            dummy unknown: its right-hand side is 1, and it is not returned.
        transpose : bool

        Returns
        -------
        x : (k, m) array
            0 in places that `order` does not name.

        Raises
        ------
        TypeError, ValueError
            If `b` or `order` have another type or shape, or `order` names what is no place in `b`,
            or one twice.
        """
        flag("solve_ordered", "transpose", transpose)
        b, order = _ordered_arrays(self._system, b, order)
        if not b.size:
            return b
        if order is None:
            return self._solve_ordered(b, order, transpose)
        holes, named = engines.xp(b).ones(b.shape[1], bool), order[order >= 0]
        holes[named] = False
        if int(holes.sum()) + named.size != holes.size:
            raise ValueError("solve_ordered: order must name no place twice")
        x = self._solve_ordered(b, order, transpose)
        x[:, holes] = 0
        return x

    def _solve_ordered(self, b: Any, order: Any, transpose: bool) -> Any:
        made = self._system.transposed if transpose else self._system
        if transpose not in self._hard:
            self._hard[transpose] = self._is_hard(made, True)
        if self._hard[transpose]:
            return _solve_checked(made, b, order, self._threads)
        if made.where == "cpu":
            run = engines.load(made.package, "cpu").solve
            return run(made.dl, made.d, made.du, b, order, threads=self._threads)[0]
        permuted = order is not None
        index = np.dtype(order.dtype if permuted else np.int32)
        key = (permuted, index)
        if key not in self._solvers:
            module = engines.load(made.package, "gpu")
            self._solvers[key] = module.Solver(made.n, self.dtype, index, permuted=permuted)
        x = engines.xp(b).empty_like(b)
        solve = self._solvers[key].solve
        for one, out in zip(b, x, strict=True) if b.shape[0] > 1 else ((b, x),):
            solve(made.dl, made.d, made.du, one, out, order)
        return x


def trusted_solve_ordered(made: Factorization, b: Any, order: Any, *, transpose: bool) -> Any:
    """`Factorization.solve_ordered` without checks of its arguments, for preconditioners."""
    return made._solve_ordered(b, order, transpose)


def _ordered_arrays(made: System, b: Any, order: Any) -> tuple[Any, Any]:
    """The arguments of `solve_ordered`, checked: kernels use the order as addresses."""
    caller, kind = "solve_ordered", made.d.dtype
    b = plain(caller, "b", b)
    if b.dtype != kind or engines.location(b) != made.where:
        raise TypeError(
            f"{caller}: b must be an array of {kind} on the {made.where.upper()}, got {b.dtype}"
        )
    shape = (made.n, *made.block)
    rows = int(np.prod(shape))
    if b.ndim != 2 or (order is None and b.shape[1] != rows):
        width = rows if order is None else "m"
        raise ValueError(f"{caller}: b must have shape (k, {width}), got {b.shape}")
    b = engines.xp(b).ascontiguousarray(b)
    if order is None:
        return b, None
    order = plain(caller, "order", order)
    if engines.location(order) != made.where or order.shape != shape:
        raise ValueError(
            f"{caller}: order must have shape {shape} on the {made.where.upper()}, "
            f"got {order.shape}"
        )
    least = -1 if made.block else 0  # only blocks can have dummy unknowns
    flat = integers(caller, "order", order.reshape(-1), low=least, high=int(b.shape[1]) - 1)
    index = index_type(b.shape[1])  # as forests have it
    return b, engines.xp(b).ascontiguousarray(flat.astype(index, copy=False)).reshape(shape)


def _solve_checked(made: System, b: Any, order: Any, threads: int | None) -> Any:
    """`solve_ordered` for hard matrices: gathered, solved with a check of every row, scattered."""
    shape = (made.n, *made.block)
    x = engines.xp(b).empty_like(b)
    for one, out in zip(b, x, strict=True):
        right = one if order is None else one[order.clip(0)]
        right = right.reshape(shape)
        if order is not None:
            right[order.reshape(shape) < 0] = 1  # dummy unknowns
        found = made.solve(right, allow_singular=True, threads=threads)
        if order is None:
            out[:] = found.reshape(-1)
        else:
            there = order >= 0
            out[order[there]] = found.reshape(order.shape)[there]
    return x
