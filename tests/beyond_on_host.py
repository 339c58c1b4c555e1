"""CUDA's devices of `Devices` without a GPU: kernels compiled by g++, CuPy played by NumPy.

Within ``with on_host(...)`` the GPU engine's own host code runs, with one warp on the host.  Copies
and kernels run at once, so the order of streams is not tested here; the logic is.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import host_compiler
from matchwood import engines
from matchwood.engines.gpu.launch import C_NAMES

HEADER = Path(__file__).parent / "beyond" / "warp_on_host.h"
available = host_compiler.available
PTX = [  # each instruction of ours in C, and a constant
    (r'asm volatile\("ld\.[^"]*" : "=\w"\(x\) : "l"\(p\) : "memory"\);', "x = *p;"),
    (r'asm volatile\("st\.[^"]*" ::"l"\(p\), "\w"\([^;]*\) : "memory"\);', "*p = x;"),
    (r'asm volatile\("fence[^;]*;" ::: "memory"\);', ""),
    (r'asm volatile\("atom\.add[^"]*"[^;]*;', "old = *p; *p += x;"),
    (r'asm\("\{ \.reg \.pred p; setp\.lt[^"]*"[^;]*;', "less = a < b;"),
    (r'asm\("\{ \.reg \.pred p; setp\.eq[^"]*"[^;]*;', "equal = a == b;"),
    (r'asm\("add\.rn\.f32[^"]*"[^;]*;', "sum = a + b;"),
    (r'asm\("cvt\.f64\.f32[^"]*"[^;]*;', "wide = a;"),
    (r'asm\("cvt\.rn\.f32\.f64[^"]*"[^;]*;', "x = (float)a;"),
    (r"\bsqrt\(", "__builtin_sqrt("),
    (r"constexpr int WORTH_ORDER = \d+", "constexpr int WORTH_ORDER = 2"),  # for small graphs
]


def in_c(text: str) -> str:
    for pattern, replacement in PTX:
        text = re.sub(pattern, replacement, text)
    assert not re.search(r"\basm\b", text)
    return text


class Pointer:
    """`data` of an array of CuPy."""

    def __init__(self, array: Any) -> None:
        self.array, self.ptr = array, array.ctypes.data

    def memset_async(self, byte: int, nbytes: int) -> None:
        ctypes.memset(self.ptr, byte, nbytes)

    def copy_from_host_async(self, source: int, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(self.ptr, source, nbytes)

    def copy_to_host_async(self, target: int, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(target, self.ptr, nbytes)

    def copy_from_device_async(self, source: Any, nbytes: int, stream: Any = None) -> None:
        ctypes.memmove(self.ptr, source.ptr, nbytes)


class Array(np.ndarray):  # type: ignore[type-arg]
    """An array of a device that is the host."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return Pointer(self)

    def get(self, stream: Any = None) -> Any:
        return np.array(self)

    def set(self, source: Any, stream: Any = None) -> None:
        self[...] = source


class Stream:
    ptr = id = 0

    def __init__(self, **options: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


Stream.null = Stream()  # type: ignore[attr-defined]


class Event(Stream):
    done = True

    def record(self, stream: Any = None) -> None:
        pass


def empty(size: Any, dtype: Any) -> Any:
    made = np.empty(size, dtype)
    made.view(np.uint8)[...] = 0xA5  # what nobody wrote is garbage
    return made.view(Array)


def fake_cupy() -> Any:
    """As much of CuPy as the host code asks for."""
    pinned: set[int] = set()

    def register(place: int, nbytes: int, flags: int) -> None:
        if place in pinned:
            raise OSError("the memory is registered already")
        pinned.add(place)

    runtime = SimpleNamespace(
        getDeviceCount=lambda: 1,
        deviceCanAccessPeer=lambda a, b: 1,
        memGetInfo=lambda: (1 << 40, 1 << 40),
        hostRegister=register,
        hostUnregister=pinned.remove,
        CUDARuntimeError=OSError,
    )
    pool = SimpleNamespace(free_bytes=lambda: 0, get_limit=lambda: 0, used_bytes=lambda: 0)
    cuda = SimpleNamespace(
        runtime=runtime, Stream=Stream, Event=Event,
        Device=lambda number=0: Stream(), get_elapsed_time=lambda begin, end: 1.0,
        alloc_pinned_memory=bytearray,
    )  # fmt: skip
    return SimpleNamespace(
        cuda=cuda, empty=empty, asarray=lambda a: np.asarray(a).view(Array), cumsum=np.cumsum,
        asnumpy=lambda a, stream=None, blocking=True: np.array(a),
        get_default_memory_pool=lambda: pool,
    )  # fmt: skip


def with_changes(text: str, changes: dict[str, str]) -> str:
    """The text with each of them made: constants for a host that has one warp, say."""
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text


@functools.cache
def library(source: Any, types: tuple[tuple[str, str], ...]) -> Any:
    """The kernels of a Source for these types, as functions of Python."""
    chosen = {name: np.dtype(kind) for name, kind in types}
    expressions = source.expressions(**chosen)
    lines, signatures = [f'#include "{HEADER}"', in_c(source.text())], {}
    for alias, expression in expressions.items():
        name, _, rest = expression.partition("<")
        arguments = [part.strip() for part in rest.removesuffix(">").split(",")]
        signatures[alias] = source.signature(name, arguments)
        kinds = [C_NAMES[one.dtype] + ("*" if one.pointer else "") for one in signatures[alias]]
        listed = ", ".join(f"{kind} a{i}" for i, kind in enumerate(kinds))
        given = ", ".join(f"a{i}" for i in range(len(kinds)))
        lines.append(f'extern "C" void call_{alias}(int blocks, {listed})')
        lines.append(f"{{ launch(blocks, [=] {{ {expression}({given}); }}); }}")
    loaded = host_compiler.library("\n".join(lines))
    made = SimpleNamespace(set_order=loaded.set_order)
    for alias, signature in signatures.items():
        setattr(
            made, alias, functools.partial(_launch, getattr(loaded, f"call_{alias}"), signature)
        )
    return made


def _launch(function: Any, signature: Any, threads: Any, args: Any, *, block: int = 256,
            grid: Any = None, cooperative: bool = False) -> None:  # fmt: skip
    blocks = grid if grid is not None else 1 if cooperative else -(-int(threads) // 32)
    if blocks == 0:
        return
    assert len(args) == len(signature)
    converted = []
    for value, parameter in zip(args, signature, strict=True):
        if not parameter.pointer:
            converted.append(np.ctypeslib.as_ctypes_type(parameter.dtype)(value))
            continue
        if value is not None:
            assert isinstance(value, Array), parameter.name
            assert value.flags.c_contiguous
            assert value.dtype == parameter.dtype, parameter.name
        converted.append(ctypes.c_void_p(None if value is None else value.ctypes.data))
    function(ctypes.c_int(blocks), *converted)


@contextlib.contextmanager
def on_host(*modules: Any, last_first: bool = False) -> Any:
    """Within, the GPU engine for `Devices` runs on the host; `modules` have a SOURCE each."""

    def kernels(source: Any, **types: Any) -> Any:
        found = library(source, tuple(sorted((n, np.dtype(k).name) for n, k in types.items())))
        found.set_order(int(last_first))
        return found

    fake = fake_cupy()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(engines, "cupy", return_value=fake))
        for module in modules:
            made = functools.partial(kernels, module.SOURCE)
            stack.enter_context(mock.patch.object(module.SOURCE, "kernels", made))
            if hasattr(module, "mapped"):
                seen = mock.patch.object(module, "mapped", lambda array: array.view(Array))
                stack.enter_context(seen)
        yield
