"""The parameters of a kernel, read from its CUDA text, so that arguments can be checked.

A wrong scalar width or array type is no error to CUDA: the kernel reads garbage.  The text says
what each parameter is, so the launch converts numbers and refuses arrays of another type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

C_NAMES: dict[np.dtype, str] = {  # type: ignore[type-arg]
    np.dtype(np.bool_): "bool",
    np.dtype(np.int8): "signed char",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.int16): "short",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.int32): "int",
    np.dtype(np.uint32): "unsigned int",
    np.dtype(np.int64): "long long",
    np.dtype(np.uint64): "unsigned long long",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
_DTYPES = {name: dtype for dtype, name in C_NAMES.items()} | {
    "unsigned": np.dtype(np.uint32),
    "size_t": np.dtype(np.uint64),
}
# 16-bit floats and complex numbers have no entry: no kernel of ours takes them.

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEMPLATE = re.compile(r"template\s*<([^<>]*)>\s*$")
_QUALIFIERS = re.compile(r"\b(const|volatile|__restrict__|__grid_constant__)\b")


class Parameter(NamedTuple):
    """One parameter: its name, its type where it is one of `C_NAMES`, and whether it points."""

    name: str
    dtype: np.dtype | None  # type: ignore[type-arg]
    pointer: bool


def parameters(text: str, kernel: str, arguments: Sequence[str]) -> list[Parameter] | None:
    """Parameters of `kernel` with its template arguments filled in; None where it is not found."""
    text = _COMMENT.sub("", text)
    for match in re.finditer(
        r"__global__[^;{}()]*(?:__launch_bounds__\s*\([^()]*\)[^;{}()]*)?"
        rf"\b{kernel}\s*\(",
        text,
    ):
        names = _template_names(text[: match.start()])
        types = dict(zip(names, arguments, strict=False))
        listed = _until_closed(text, match.end())
        return [_parameter(part, types) for part in _split(listed)]
    return None


def _template_names(before: str) -> list[str]:
    found = _TEMPLATE.search(before)
    if found is None:
        return []
    return [part.split("=")[0].split()[-1] for part in found[1].split(",")]


def _until_closed(text: str, start: int) -> str:
    depth, at = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start : at - 1]


def _split(listed: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(listed):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(listed[last:at])
            last = at + 1
    parts.append(listed[last:])
    return [part for part in parts if part.strip()]


def _parameter(part: str, types: dict[str, str]) -> Parameter:
    words = _QUALIFIERS.sub(" ", part)
    pointer = "*" in words
    *kind, name = words.replace("*", " * ").split()
    text = " ".join(word for word in kind if word != "*")
    return Parameter(name, _DTYPES.get(types.get(text, text)), pointer)
