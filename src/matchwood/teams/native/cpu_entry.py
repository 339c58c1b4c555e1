"""From a kernel's signature to a record that members can call.

Numba flattens the arguments of a compiled function: a record of three arrays is 3 x 7 numbers.
Each gets a slot, a word of 64 bits.  The way in is a piece of code that loads the slots and calls
the kernel; it depends on the types of the slots alone, and kernels with the same types share it.
No array has an owner here: kernels count no references, and the caller keeps the arrays alive.

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

from matchwood.teams.native.cpu_posts import FUNCTION, OVER, SLOTS, WAY_IN

_WORD = ir.IntType(64)
_EXCEPTION = "{i8*, i32, i8*, i8*, i32}**"  # where Numba puts what was raised
_ways: dict[str, tuple[int, Any]] = {}  # by types of slots: the address, and what keeps it alive


class Entry(NamedTuple):
    """What is the same in all runs of a kernel with arguments of the same kinds."""

    record: np.ndarray[Any, Any]  # with the slots that do not change
    plan: np.ndarray[Any, Any]  # for each value (see `start`): dimensions or -1, first slot
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
    wanted, plan, takes, sizes = [], [], [], []
    kinds = [leaf for kind in code.fndesc.argtypes for leaf in _leaf_kinds(kind)]
    for kind, value in zip(kinds, leaves(values), strict=True):
        slots, take = _slots(kind)
        if take is None:
            return None
        dimensions = kind.ndim if isinstance(kind, types.Array) else -1
        if dimensions >= 0:
            sizes.append((SLOTS + len(wanted) + 3, value.itemsize))
        plan.append((dimensions, len(wanted)))
        takes.append(take)
        wanted += slots
    context = code.target_context
    function = context.call_conv.get_function_type(code.fndesc.restype, code.fndesc.argtypes)
    found = ["pointer" if isinstance(slot, ir.PointerType) else str(slot) for slot in function.args]
    if found[2:] != wanted or str(function.args[1]) != _EXCEPTION:
        return None
    record = np.zeros(SLOTS + len(wanted), np.int64)
    record[WAY_IN] = _way_in(context, function)
    record[FUNCTION] = code.library.get_pointer_to_function(code.fndesc.llvm_func_name)
    record[OVER] = 1
    for slot, size in sizes:
        record[slot] = size
    return Entry(record, np.array(plan, np.int64), tuple(takes))


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


def _way_in(context: Any, function: ir.FunctionType) -> int:
    """The address of ``int64 way_in(record, rank, detail)`` for kernels of this type."""
    key = str(function)
    if key not in _ways:
        name = f"matchwood_way_in_{len(_ways)}"
        library = context.codegen().create_library(name)
        module = library.create_ir_module(name)
        kind = ir.FunctionType(_WORD, [_WORD.as_pointer(), _WORD, _WORD.as_pointer()])
        _build(ir.Function(module, kind, name), function)
        library.add_ir_module(module)
        library.finalize()
        _ways[key] = library.get_pointer_to_function(name), library
    return _ways[key][0]


def _build(way: ir.Function, function: ir.FunctionType) -> None:
    builder = ir.IRBuilder(way.append_basic_block())
    record, rank, detail = way.args
    result, raised = (builder.alloca(kind.pointee) for kind in function.args[:2])
    builder.store(function.args[1].pointee(None), raised)
    arguments = [_cast(builder, rank, function.args[2])]  # the first slot is the rank
    for slot, kind in enumerate(function.args[3:], SLOTS + 1):
        word = builder.load(builder.gep(record, [_WORD(slot)]))
        arguments.append(_cast(builder, word, kind))
    address = builder.load(builder.gep(record, [_WORD(FUNCTION)]))
    kernel = builder.inttoptr(address, function.as_pointer())
    status = builder.call(kernel, [result, raised, *arguments])
    builder.store(builder.ptrtoint(builder.load(raised), _WORD), detail)
    builder.ret(builder.sext(status, _WORD))


def _cast(builder: Any, word: Any, kind: Any) -> Any:
    """The value of a slot; small numbers are its lowest bits."""
    if isinstance(kind, ir.PointerType):
        return builder.inttoptr(word, kind)
    if isinstance(kind, ir.FloatType):
        return builder.bitcast(builder.trunc(word, ir.IntType(32)), kind)
    if isinstance(kind, ir.DoubleType):
        return builder.bitcast(word, kind)
    return word if kind.width == 64 else builder.trunc(word, kind)
