"""Numbers of two, four and eight bytes at any place of an array of bytes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from matchwood.engines.cpu import device

Array = np.ndarray[Any, Any]

_LITTLE = sys.byteorder == "little"


@intrinsic
def word_at(typingctx: Any, data: Any, position: Any) -> Any:
    """The four bytes from data[position] on, in the order of this machine.

    One load at any alignment, which Numba has no words for.
    """
    signature = types.uint32(data, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        pointer = cgutils.get_item_pointer(
            context, builder, kind, view, [args[1]], wraparound=False,
            boundscheck=config.BOUNDSCHECK == 1,
        )  # fmt: skip
        pointer = builder.bitcast(pointer, ir.IntType(32).as_pointer())
        return builder.load(pointer, align=1)

    return signature, codegen


@device
def reversed_word(word: np.uint32) -> np.uint32:
    """The four bytes the other way round."""
    return np.uint32(
        (word >> np.uint32(24))
        | ((word >> np.uint32(8)) & np.uint32(0xFF00))
        | ((word << np.uint32(8)) & np.uint32(0xFF0000))
        | (word << np.uint32(24))
    )


@device
def number_at(data: Array, position: int, swapped: bool) -> np.uint32:
    """A number of four bytes in the order of the file."""
    word = word_at(data, position)
    return reversed_word(word) if swapped else word


@device
def big_at(data: Array, position: int) -> np.uint32:
    """A number of four bytes, the largest first."""
    word = word_at(data, position)
    return reversed_word(word) if _LITTLE else word


@device
def short_at(data: Array, position: int) -> Any:
    """A number of two bytes, the larger first."""
    return (np.int64(data[position]) << 8) | np.int64(data[position + 1])


@device
def half_at(data: Array, position: int, swapped: bool) -> Any:
    """A number of two bytes in the order of the file."""
    value = short_at(data, position)
    return value if swapped == _LITTLE else ((value & 0xFF) << 8) | (value >> 8)
