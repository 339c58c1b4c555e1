"""Words of memory, functions of Python's C interface, kernels that keep the interpreter lock."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matchwood.teams import device, kernel


def _loading(kind: Any, bits: int) -> Any:
    """An intrinsic that loads a number from an address; an unsigned byte becomes an int64."""

    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.DoubleType() if kind is types.float64 else ir.IntType(bits)
            loaded = builder.load(builder.inttoptr(args[0], word.as_pointer()))
            return builder.zext(loaded, ir.IntType(64)) if bits < 64 else loaded

        return kind(types.int64), codegen

    return intrinsic(load)


load_word = _loading(types.int64, 64)
load_byte = _loading(types.int64, 8)
load_float = _loading(types.float64, 64)


def _of_python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's stable C interface; objects are addresses."""
    return types.ExternalFunction(name, result(*arguments))


increment_references = _of_python("Py_IncRef", types.void, types.intp)
decrement_references = _of_python("Py_DecRef", types.void, types.intp)
list_item = _of_python("PyList_GetItem", types.intp, types.intp, types.intp)
set_list_item = _of_python("PyList_SetItem", types.intc, types.intp, types.intp, types.intp)
copy_dict = _of_python("PyDict_Copy", types.intp, types.intp)
set_dict_item = _of_python("PyDict_SetItem", types.intc, types.intp, types.intp, types.intp)
clear_error = _of_python("PyErr_Clear", types.void)
take_interrupt = _of_python("PyOS_InterruptOccurred", types.intc)
give_interrupt = _of_python("PyErr_SetInterrupt", types.void)


@intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Prefetch the memory at an address, which need not be valid."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        place = builder.inttoptr(args[0], pointer)
        builder.call(prefetch, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def holding_the_lock(function: Any) -> Any:
    """A kernel that keeps the interpreter lock, as it reads what Python code may change."""
    dispatcher = kernel(function)
    dispatcher.targetoptions["nogil"] = False
    return dispatcher


@device
def signal_waits() -> bool:
    """Has Ctrl-C been pressed?  It is put back for Python to handle."""
    if take_interrupt() == 0:
        return False
    give_interrupt()
    return True
