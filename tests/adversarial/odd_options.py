"""Odd values for every parameter of every public function, drawn from the signatures.

A call of option_calls.py gets an odd value for one of its arguments, or for several at once.  What
may come of it: an error of ours that names function and argument, or an answer.  A value of a kind
that the annotation does not have must not be accepted, and what is accepted gets the answer of the
reference engine, where there is one.

Run as a program: ``odd_options.py FIRST END SEED [ONLY]``, as children.py says.  Seed 0 begins with
one odd value for each function, then others; any order is drawn from the seed.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
import fractions
import inspect
import itertools
import math
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adversarial.children import Attack, make
from adversarial.option_calls import OptionCall, call_of, names
from adversarial.wrong_arrays import contents, digest

SLOW_SECONDS = 10.0
HANG_SECONDS = 60.0  # kernels may have to be compiled, on a busy machine
LONGEST_MESSAGE = 1000  # characters
MEMORY = 3 << 30  # bytes that a call may take: what asks for more gets our error at once


class Index:
    """Not an integer, but can stand for one in Python's own functions."""

    def __index__(self) -> int:
        return 3

    __int__ = __index__

    def __float__(self) -> float:
        return 3.0


class Unequal:
    """Nothing can be asked of it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("this cannot be compared")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError("this is neither true nor false")

    def __repr__(self) -> str:
        raise RuntimeError("this cannot be printed")


class Two(enum.IntEnum):
    TWO = 2


class Text(str):
    """Text of another class."""


WHOLE = (-(10**30), -(2**63), -1, 0, 1, 2, 3, 9, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**30,
         10**5000, np.int8(3), np.int64(-1), np.uint64(2**63), np.int32(2), Two.TWO)  # fmt: skip
REAL = (0.0, -0.0, 3.0, 3.5, -0.5, 1.0, 5e-324, 1e-310, 1e-30, 1e308, math.nan, math.inf, -math.inf,
        np.float32(0.5), np.float16(2), np.longdouble("1e4000"), np.float64(1e-300))  # fmt: skip
OTHER = (
    True, False, np.bool_(True), None, 3j, "", "3", "nonsense", "auto", "a\0b", "\udcff",
    "x" * 5000,
    Text("cpu"), b"cpu", [], [3], (3,), (1, 2, 3), (-1, 2.5), [None], {}, {"a": 1}, set(), range(3),
    np.array(3), np.array([3]), np.array([1, 2, 3]), np.zeros(0), np.array(["a"]),
    np.array([None]), np.ma.masked_array([1, 2], [0, 1]), np.timedelta64(3, "s"), object(), Index(),
    Unequal(), int, len, lambda *given: None, fractions.Fraction(1, 2), decimal.Decimal("0.5"), ...,
    np.dtype("int8"), np.random.default_rng(1), Path("/nonsense/file"), iter([1, 2]),
)  # fmt: skip
VALUES = (*WHOLE, *REAL, *OTHER)


def told(value: Any) -> str:
    """The value for a report."""
    try:
        text = repr(value)
    except Exception:
        return f"a value of {type(value).__name__}"
    return f"{type(value).__name__} {text[:60]}"


# What an annotation allows

KINDS: dict[str, Callable[[Any], bool]] = {
    "int": lambda v: isinstance(v, (int, np.integer)) and not isinstance(v, (bool, np.timedelta64)),
    "float": lambda v: isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(
        v, (bool, np.timedelta64)
    ),
    "bool": lambda v: isinstance(v, (bool, np.bool_)),
    "str": lambda v: isinstance(v, str),
    "None": lambda v: v is None,
    "Progress": callable,
    "Found": callable,
}  # fmt: skip


def allowed(annotation: str, value: Any) -> bool:
    """Whether a value is of a kind that the annotation has; True where that is not known."""
    if annotation.startswith("Callable["):
        return callable(value) or (value is None and annotation.endswith("| None"))
    kinds = [kind.strip() for kind in annotation.split("|")]
    return not all(kind in KINDS for kind in kinds) or any(KINDS[kind](value) for kind in kinds)


NOT_DRAWN = {
    ("matching_bound", "sweeps"): "each is done: two thousand million take a minute",
    ("primitives.row_reduce.reduce_rows", "x"): "the user's own function reads it",
    ("primitives.row_reduce.reduce_rows", "out"): "the user's own function writes to it",
    ("warmup", "only"): "any text is allowed, and takes minutes",
    ("dist.run", "args"): "they go to the user's function as they are",
    ("sensing.Ranges", "caller"): "a name for messages",
    ("Anonymizer", "caller"): "a name for messages",
    ("Anonymizer.apply", "caller"): "a name for messages",
    ("dist.Serial", "session"): "of ours alone",
    ("dist.Serial", "traffic"): "of ours alone",
    ("dist.Serial.allgather", "borrowed"): "of ours alone",
}
NOT_COMPARED = {
    "maximum_matching",  # of largest matchings the reference may find another
    "primitives.frontier.bitmap_from_queue",  # of 2**31 bits it takes seconds
}
CALLED = {"normalise", "on_chunk", "on_window", "op", "report"}
"""Functions of the user: what they raise, or that they cannot be compiled, is theirs."""
WRITES = {"primitives.row_reduce.reduce_rows"}  # to an array that it is given for that


def drawn_parameters(name: str) -> list[inspect.Parameter]:
    """The parameters that get odd values."""
    found = inspect.signature(call_of(name).function).parameters.values()
    return [parameter for parameter in found if (name, parameter.name) not in NOT_DRAWN]


# What came of it


def misnamed(error: Exception, call: OptionCall, given: dict[str, Any]) -> str:
    """Why an error is not one of ours that names function and argument; "" when it is one."""
    from matchwood import CheckFailed, EngineUnavailable, FileFormatError, OutOfMemory, RankFailed

    text = str(error)
    if isinstance(error, (OSError, RankFailed)):
        return ""  # of a file, whose name it says; of the user's own function
    if type(error) not in (
        TypeError, ValueError, EngineUnavailable, OutOfMemory, CheckFailed, FileFormatError,
        np.linalg.LinAlgError,
    ):  # fmt: skip
        return f"{type(error).__name__}: {text}"
    if any(callable(given[name]) for name in CALLED & given.keys()):
        return ""
    if "has no form for arguments" in text:
        return f"a kernel's error: {text}"
    if len(text) > LONGEST_MESSAGE:
        return f"a message of {len(text)} characters: {text[:200]}"
    if isinstance(error, (OutOfMemory, CheckFailed, FileFormatError)):
        return ""
    if not text.startswith(tuple(f"{said}:" for said in call.said)):
        return f"without the function's name: {type(error).__name__}: {text}"
    wrong = [name for name, value in given.items() if refusable(call, name, value)]
    if len(wrong) == len(given) and not any(
        re.search(rf"\b{re.escape(name)}\b", text) for name in given
    ):
        return f"without the argument's name: {type(error).__name__}: {text}"
    return ""


def refusable(call: OptionCall, name: str, value: Any) -> bool:
    """Whether a value is of a kind that this parameter does not take, or nobody knows the name."""
    parameters = inspect.signature(call.function).parameters
    return name not in parameters or not allowed(str(parameters[name].annotation), value)


def outcome(name: str, given: dict[str, Any]) -> str:
    """What is wrong with what happened; "" when nothing is."""
    call = call_of(name)
    for _ in range(2):  # a busy machine, or a kernel that compiles, is not our fault
        began = time.monotonic()
        why = _answered(name, call, given)
        if time.monotonic() - began < SLOW_SECONDS:
            return why
    return f"{time.monotonic() - began:.0f} seconds; {why}"


def _answered(name: str, call: OptionCall, given: dict[str, Any]) -> str:
    arguments = {**call.arguments, **given}
    before = contents(list(arguments.values()))
    try:
        answer = call.read(call.function(**arguments))
    except Exception as error:
        why = misnamed(error, call, given)
    else:
        wrong = [key for key, value in given.items() if refusable(call, key, value)]
        why = f"accepted {wrong}" if wrong else ""
        if not wrong and name not in NOT_COMPARED:
            why = _compared(call, arguments, answer)
    if name not in WRITES and contents(list(arguments.values())) != before:
        why += "; the input was changed"
    return why


def _compared(call: OptionCall, arguments: dict[str, Any], answer: Any) -> str:
    """Whether the reference engine says the same."""
    if "engine" not in inspect.signature(call.function).parameters or "engine" in arguments:
        return ""
    if any(isinstance(value, (np.random.Generator, Iterator)) for value in arguments.values()):
        return ""  # they give something else the next time
    try:
        expected = call.function(**arguments, engine="reference")
    except Exception as error:
        if "reference" in str(error):
            return ""  # there is none
        return f"the reference refuses it: {type(error).__name__}: {error}"
    ours, theirs = (digest(results(one)) for one in (answer, expected))
    return (
        "" if alike(ours, theirs) else f"{str(ours)[:150]}, the reference says {str(theirs)[:150]}"
    )


HOW = {"rounds", "method", "stats", "counters", "iterations", "error", "levels", "tried"}


def results(answer: Any) -> Any:
    """What does not say how an engine found it."""
    if not dataclasses.is_dataclass(answer) or isinstance(answer, type):
        return answer
    public = [f.name for f in dataclasses.fields(answer) if f.name not in HOW and f.name[0] != "_"]
    return [results(getattr(answer, name)) for name in public if "seconds" not in name]


def alike(one: Any, other: Any) -> bool:
    """Equal, or floats that differ by rounding."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or bool(np.isclose(one, other, rtol=1e-6, atol=0, equal_nan=True))
    return bool(one == other)


# The attacks


def attack(name: str, given: dict[str, Any]) -> Attack:
    what = ", ".join(f"{key}={told(value)}" for key, value in given.items())
    return f"{name} | {what}".replace("\n", " "), lambda: outcome(name, given)


def unknown(parameter: inspect.Parameter) -> str:
    """The name by which a value is passed; an option that nobody knows, where any name is taken."""
    return "nonsense" if parameter.kind is inspect.Parameter.VAR_KEYWORD else parameter.name


def systematic(chosen: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in chosen:
        for parameter, value in itertools.product(drawn_parameters(name), VALUES):
            yield name, {unknown(parameter): value}


def one_each(chosen: list[str], rng: np.random.Generator) -> Iterator[tuple[str, dict[str, Any]]]:
    """One to three odd values for each function in turn, without end."""
    while True:
        for name in chosen:
            parameters = drawn_parameters(name)
            if not parameters:
                continue
            count = min(len(parameters), int(rng.choice([1, 1, 1, 2, 3])))
            some = rng.choice(len(parameters), count, replace=False)
            yield (
                name,
                {unknown(parameters[k]): VALUES[int(rng.integers(len(VALUES)))] for k in some},
            )


def all_attacks(end: float, seed: int, only: str) -> Iterator[Attack]:
    chosen = [name for name in names() if re.search(only, name)]
    rng = np.random.default_rng(abs(seed))
    rng.shuffle(chosen)
    found = systematic(chosen) if seed < 0 else one_each(chosen, rng)
    for name, given in found:
        if time.time() > end:
            return
        yield attack(name, given)


def limit_memory() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))


if __name__ == "__main__":
    first, end, seed, only = [*sys.argv[1:], ""][:4]
    if sys.platform == "linux":
        limit_memory()
    make(all_attacks(float(end), int(seed), only), int(first), HANG_SECONDS)
