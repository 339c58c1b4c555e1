"""Launching: arguments checked against the kernel's text, grids that cover the work.

A wrong scalar width or array type is no error to CUDA: the kernel reads garbage.  The text says
what each parameter is, so the launch converts numbers and refuses arrays of another type.
"""

from __future__ import annotations

import functools
import operator
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines

BLOCK = 256  # threads; every kernel of the package reaches full occupancy with it
STATIC_SHARED = 48 * 1024  # bytes of shared memory that a kernel has without a request for more
_NULL = np.uint64(0)
_ON_THE_HOST = (np.ndarray, np.generic)

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
# 16-bit floats and complex numbers have no entry: no kernel takes them.

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEMPLATE = re.compile(r"template\s*<([^<>]*)>\s*$")
_QUALIFIERS = re.compile(r"\b(const|volatile|__restrict__|__grid_constant__)\b")


class Parameter(NamedTuple):
    """One parameter: its name, its type where it is one of `C_NAMES`, and whether it points."""

    name: str
    dtype: np.dtype | None  # type: ignore[type-arg]
    pointer: bool


class Kernel:
    """One compiled kernel.  Call it to launch it on the current stream.

    ``k(threads, args)`` launches a 1-D grid that covers `threads`, and nothing when it is 0.

    Numbers are converted to the type that the kernel's text gives: a Python or NumPy integer is
    right for any integer parameter (OverflowError when it does not fit), a float for a floating
    one.  Arrays must be C-contiguous and of the parameter's type (bool and uint8 are the same);
    None is the null pointer; a `Flag` or `Status` stands for its device words.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        signature: Sequence[Parameter],
        arguments: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.arguments = tuple(arguments)  # of the template, as C++ text
        self._function = function
        self._signature = tuple(signature)
        self._expected = [_expected(parameter) for parameter in signature]
        self._shared_allowed = STATIC_SHARED
        self._lock = threading.Lock()
        self._resident: dict[tuple[int, int], int] = {}

    def __repr__(self) -> str:
        return f"Kernel({self.name})"

    def __call__(
        self,
        threads: int | None,
        args: Sequence[Any],
        *,
        block: int = BLOCK,
        grid: int | tuple[int, ...] | None = None,
        shared_mem: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Launch on the current stream.

        Parameters
        ----------
        threads : int or None
            Threads needed; the grid is rounded up to whole blocks.  None when `grid` is given.
        args : sequence
            The kernel's arguments.
        block : int
            Threads of a block.
        grid : int or tuple of int, optional
            Blocks, instead of `threads`.
        shared_mem : int
            Dynamic shared memory of a block, in bytes.
        cooperative : bool
            Launch so that all blocks are resident at once, as `grid_barrier` needs.  The grid is
            then at most `resident` blocks (the kernel strides over the work).
        """
        if grid is None:
            if threads is None:
                raise TypeError(f"{self.name}: give threads or grid")
            blocks = -(-int(threads) // block)
            if cooperative:
                blocks = min(blocks, self.resident(block, shared_mem))
            if blocks == 0:
                return
            shape: tuple[int, ...] = (blocks,)
        else:
            shape = grid if isinstance(grid, tuple) else (grid,)
        if shared_mem > self._shared_allowed:
            self._allow_shared(shared_mem)
        self._function(
            shape,
            (block,),
            self._converted(args),
            shared_mem=shared_mem,
            enable_cooperative_groups=cooperative,
        )
        if _debug():
            self._wait()

    def launch(self, grid: int, block: int, args: Sequence[Any], shared_mem: int = 0) -> None:
        """Launch with arguments as the driver takes them: nothing is checked or converted.

        Numbers are NumPy's of the kernel's types, arrays their addresses as `numpy.uint64`.  For
        calls that take a GPU less time than checking would take Python.
        """
        if shared_mem > self._shared_allowed:
            self._allow_shared(shared_mem)
        self._function((grid,), (block,), args, shared_mem=shared_mem)
        if _debug():
            self._wait()

    def prepared(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, checked, in the form that `launch` takes.  Keep the arrays alive."""
        converted = self._converted(args)
        return tuple(
            value if isinstance(value, np.generic) else np.uint64(value.data.ptr)
            for value in converted
        )

    def resident(self, block: int = BLOCK, shared_mem: int = 0) -> int:
        """Blocks of this kernel that the device runs at the same time."""
        known = self._resident.get((block, shared_mem))
        if known is None:
            if shared_mem > self._shared_allowed:
                self._allow_shared(shared_mem)
            driver = engines.cupy().cuda.driver
            each = driver.occupancyMaxActiveBlocksPerMultiprocessor(
                self._function.ptr, block, shared_mem
            )
            known = self._resident[block, shared_mem] = max(1, each) * multiprocessors()
        return known

    def _converted(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments as the launch takes them.  The usual kinds first: every launch does it."""
        if len(args) != len(self._signature):
            raise TypeError(f"{self.name} takes {len(self._signature)} arguments, got {len(args)}")
        converted = []
        for value, (letters, number, parameter) in zip(args, self._expected, strict=True):
            kind = type(value)
            if number is not None:
                if kind is int:
                    value = number(value)
                elif kind is not number:
                    value = self._number(parameter, number, value)
            elif parameter.pointer and not (
                letters is not None
                and not isinstance(value, _ON_THE_HOST)
                and hasattr(value, "dtype")
                and value.dtype.char in letters
                and _is_contiguous(value)
            ):
                value = self._pointer(parameter, letters, value)
            converted.append(value)
        return tuple(converted)

    def _number(self, parameter: Parameter, number: Any, value: Any) -> Any:
        if isinstance(value, (int, float, np.generic)):
            plain = value.item() if isinstance(value, np.generic) else value
            if issubclass(number, np.floating):
                return number(plain)
            if not isinstance(plain, float):
                return number(operator.index(plain))
        raise TypeError(
            f"{self.name}: {parameter.name} is {parameter.dtype}, got {type(value).__name__}"
        )

    def _pointer(self, parameter: Parameter, letters: Any, value: Any) -> Any:
        if value is None:
            return _NULL
        value = getattr(value, "device_words", value)
        dtype = getattr(value, "dtype", None)
        if dtype is None or isinstance(value, _ON_THE_HOST):
            raise TypeError(
                f"{self.name}: {parameter.name} must be a GPU array, got {type(value).__name__}"
            )
        if letters is not None and dtype.char not in letters:
            raise TypeError(f"{self.name}: {parameter.name} is {parameter.dtype}*, got {dtype}")
        if not _is_contiguous(value):
            raise ValueError(f"{self.name}: {parameter.name} is not contiguous")
        return value

    def _allow_shared(self, nbytes: int) -> None:
        """Allow blocks `nbytes` bytes of shared memory, or more where another thread needs more."""
        driver = engines.cupy().cuda.driver
        with self._lock:
            if nbytes <= self._shared_allowed:
                return
            driver.funcSetAttribute(
                self._function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes
            )
            self._shared_allowed = nbytes

    def _wait(self) -> None:
        cupy = engines.cupy()
        try:
            cupy.cuda.get_current_stream().synchronize()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise RuntimeError(f"{self.name} failed: {error}") from error


class Kernels:
    """The kernels of a `Source` for one choice of types, as attributes."""

    def __init__(
        self, package: str, built: Mapping[str, Kernel], missing: Mapping[str, Sequence[str]]
    ) -> None:
        self._package = package
        self._missing = missing
        self.__dict__.update(built)

    def __getattr__(self, name: str) -> Kernel:
        missing = self.__dict__.get("_missing", {})
        if name not in missing:
            raise AttributeError(f"{name} is no kernel of this source")
        why = f"needs a type for {missing[name][0]}" if missing[name] else "was not asked for"
        raise AttributeError(f"{self._package}: kernel {name} {why}")


def multiprocessors() -> int:
    device = engines.cupy().cuda.runtime.getDevice()
    return _multiprocessors(device)


@functools.cache
def _multiprocessors(device: int) -> int:
    return int(engines.cupy().cuda.Device(device).attributes["MultiProcessorCount"])


@functools.cache
def _debug() -> bool:
    """MATCHWOOD_GPU_DEBUG=1: wait after every launch, so that an error names its kernel."""
    return os.environ.get("MATCHWOOD_GPU_DEBUG", "0") not in ("", "0")


def _is_contiguous(array: Any) -> bool:
    # CuPy's private attribute where it has one: `flags` takes ten times as long
    return getattr(array, "_c_contiguous", False) or bool(array.flags.c_contiguous)


def _expected(parameter: Parameter) -> tuple[Any, Any, Parameter]:
    """For a pointer, the type letters of fitting arrays; for a number, the NumPy type.

    None where anything will do, because the text has a type that NumPy lacks.
    """
    dtype = parameter.dtype
    if dtype is None:
        return None, None, parameter
    if not parameter.pointer:
        return None, dtype.type, parameter
    if dtype.kind in "b" or dtype == np.uint8:
        return frozenset("?B"), None, parameter
    same = (np.dtype(char) for char in "bhilqBHILQfd")
    return frozenset(other.char for other in same if other == dtype), None, parameter


# The parameters of a kernel, read from its CUDA text


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
