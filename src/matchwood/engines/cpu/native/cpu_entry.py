"""From a kernel's signature to a record that members can call.

Numba flattens the arguments of a compiled function: a record of three arrays is 3 x 7 numbers.
Each gets a slot, a word of 64 bits, in the order in which `call_at` passes them.  No array has an
owner here: kernels count no references, and the caller keeps the arrays alive.

What is taken from Numba is compared with what is expected.  Where it differs there is no entry,
and members call the kernel through Python.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.np.numpy_support import as_dtype

from matchwood.engines.cpu.native.cpu_posts import FUNCTION, OVER, REALS, SLOTS, VALUES
from matchwood.engines.cpu.native.cpu_words import FLOATS

_EXCEPTION = "{i8*, i32, i8*, i8*, i32}**"  # where Numba puts what was raised


class Entry(NamedTuple):
    """What is the same in all runs of a kernel with arguments of the same kinds."""

    record: np.ndarray[Any, Any]  # with the slots that do not change
    plan: np.ndarray[Any, Any]  # for each value (see `start`): dimensions or -1, first slot
    layout: struct.Struct  # of the values

    def record_of(self, arguments: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        """A record for these arguments, with values that `start` takes."""
        made = self.record.copy()
        self.layout.pack_into(made.data, 8 * VALUES, *_values(arguments))
        return made


def _values(arguments: tuple[Any, ...]) -> list[Any]:
    """What is inside tuples of tuples, in Numba's order; of an array the address of the object."""
    found: list[Any] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            found.append(id(value))
        elif isinstance(value, tuple):
            found += _values(value)
        else:
            found.append(value)
    return found


def entry(code: Any) -> Entry | None:
    """How to enter a kernel's compiled code; None where we know no way."""
    described = code.fndesc
    wanted, plan, layout, sizes = ["pointer", _EXCEPTION], [], "<", []
    slot, real = SLOTS, REALS
    for kind in _leaves(described.argtypes):
        slots, form = _slots(kind)
        if not slots or slot + len(slots) > VALUES:
            return None
        wanted += slots
        layout += form
        if isinstance(kind, types.Float) and real < REALS + FLOATS:
            plan.append((-1, real))
            real += 1
            continue
        dimensions = -1
        if isinstance(kind, types.Array):
            dimensions = kind.ndim
            sizes.append((slot + 3, as_dtype(kind.dtype).itemsize))
        plan.append((dimensions, slot))
        slot += len(slots)
    convention = code.target_context.call_conv
    function = convention.get_function_type(described.restype, described.argtypes)
    if described.restype != types.none or list(map(_named, function.args)) != wanted:
        return None
    record = np.zeros(VALUES + len(plan), np.int64)
    record[FUNCTION] = code.library.get_pointer_to_function(described.llvm_func_name)
    record[OVER] = 1
    for place, size in sizes:
        record[place] = size
    return Entry(record, np.array(plan, np.int64), struct.Struct(layout))


def _leaves(kinds: Any) -> Iterator[Any]:
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from _leaves(kind)
        else:
            yield kind


def _slots(kind: Any) -> tuple[list[str], str]:
    """The types of an argument's slots, and the form of its value, a word, for `struct`."""
    if isinstance(kind, types.Array):
        return ["pointer", "pointer", "i64", "i64", "pointer", *2 * kind.ndim * ["i64"]], "Q"
    if isinstance(kind, types.Integer):
        return [f"i{kind.bitwidth}"], "q" if kind.signed else "Q"
    known: dict[Any, tuple[list[str], str]] = {
        types.boolean: (["i8"], "?7x"),
        types.none: (["pointer"], "?7x"),
        types.float64: (["double"], "d"),
        types.float32: (["float"], "f4x"),
    }
    return known.get(kind, ([], ""))


def _named(slot: Any) -> str:
    name = str(slot)
    return "pointer" if isinstance(slot, ir.PointerType) and name != _EXCEPTION else name
