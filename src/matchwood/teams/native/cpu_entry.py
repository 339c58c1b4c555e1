"""From a kernel's signature to a record that members can call.

Numba flattens the arguments of a compiled function: a record of three arrays is 3 x 7 numbers.
Each gets a slot, a word of 64 bits, in the order in which `call_at` passes them.  No array has an
owner here: kernels count no references, and the caller keeps the arrays alive.

Everything taken from Numba is compared with what is expected.  Where it differs there is no entry,
and members call the kernel through Python.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types

from matchwood.teams.native.cpu_posts import FUNCTION, OVER, REALS, RECORD_WORDS, SLOTS
from matchwood.teams.native.cpu_words import FLOATS

_EXCEPTION = "{i8*, i32, i8*, i8*, i32}**"  # where Numba puts what was raised


class Entry(NamedTuple):
    """What is the same in all runs of a kernel with arguments of the same kinds."""

    record: np.ndarray[Any, Any]  # with the slots that do not change
    plan: np.ndarray[Any, Any]  # for each value (see `start`): dimensions or -1, first place
    takes: tuple[Callable[[Any], int], ...]  # make that value of an argument


def leaves(values: tuple[Any, ...]) -> list[Any]:
    """The values inside tuples of tuples, in the order of Numba's slots."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, tuple):
            found += leaves(value)
        else:
            found.append(value)
    return found


def values_of(entry: Entry, arguments: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """What `start` takes for these arguments."""
    pairs = zip(entry.takes, leaves(arguments), strict=True)
    return np.array([take(leaf) for take, leaf in pairs])


def entry(code: Any, values: tuple[Any, ...]) -> Entry | None:
    """How to enter a kernel's compiled code for values of these kinds; None where it is unknown."""
    described = code.fndesc
    record = np.zeros(RECORD_WORDS, np.int64)
    wanted, plan, takes = ["pointer", _EXCEPTION], [], []
    slot, real = SLOTS, REALS
    kinds = [leaf for kind in described.argtypes for leaf in _leaf_kinds(kind)]
    for kind, value in zip(kinds, leaves(values), strict=True):
        slots, take = _slots(kind)
        if take is None or slot + len(slots) > RECORD_WORDS:
            return None
        wanted += slots
        takes.append(take)
        if isinstance(kind, types.Float) and real < REALS + FLOATS:
            plan.append((-1, real))
            real += 1
            continue
        dimensions = -1
        if isinstance(kind, types.Array):
            dimensions = kind.ndim
            record[slot + 3] = value.itemsize
        plan.append((dimensions, slot))
        slot += len(slots)
    context = code.target_context
    function = context.call_conv.get_function_type(described.restype, described.argtypes)
    if described.restype != types.none or list(map(_named, function.args)) != wanted:
        return None
    record[FUNCTION] = code.library.get_pointer_to_function(described.llvm_func_name)
    record[OVER] = 1
    return Entry(record, np.array(plan, np.int64), tuple(takes))


def _named(slot: Any) -> str:
    name = str(slot)
    return "pointer" if isinstance(slot, ir.PointerType) and name != _EXCEPTION else name


def _leaf_kinds(kind: Any) -> Iterator[Any]:
    if isinstance(kind, types.BaseTuple):
        for inner in kind:
            yield from _leaf_kinds(inner)
    else:
        yield kind


def _slots(kind: Any) -> tuple[list[str], Callable[[Any], int] | None]:
    """The types of an argument's slots, and what makes its value; None where we know no way."""
    if isinstance(kind, types.Array):
        head = ["pointer", "pointer", "i64", "i64", "pointer"]
        return head + 2 * kind.ndim * ["i64"], id
    if isinstance(kind, types.Integer):
        return [f"i{kind.bitwidth}"], int if kind.signed else _signed
    simple: dict[Any, tuple[list[str], Callable[[Any], int]]] = {
        types.boolean: (["i8"], int),
        types.none: (["pointer"], _null),
        types.float64: (["double"], _bits_of_double),
        types.float32: (["float"], _bits_of_single),
    }
    return simple.get(kind, ([], None))


def _signed(value: Any) -> int:
    """The signed integer with the same 64 bits."""
    return (int(value) + 2**63) % 2**64 - 2**63


def _null(value: None) -> int:
    return 0


def _bits_of_double(value: Any) -> int:
    found: int = struct.unpack("q", struct.pack("d", value))[0]
    return found


def _bits_of_single(value: Any) -> int:
    found: int = struct.unpack("i", struct.pack("f", value))[0]
    return found
