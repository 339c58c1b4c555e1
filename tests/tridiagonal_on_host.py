"""The GPU engine's own host code, its kernels compiled for the host by g++: logic without a GPU.

`solve(dl, d, du, b)` is what the GPU engine's solve returns, for NumPy arrays.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import host_compiler
import matchwood
from matchwood.tridiagonal.block import gpu as blocks
from matchwood.tridiagonal.elements import gpu as gpu_elements
from matchwood.tridiagonal.plain import gpu as plain

CODE = (Path(__file__).parent / "tridiagonal" / "on_host.cpp").read_text()
LONG, PLACE, WORD = ctypes.c_longlong, ctypes.c_void_p, ctypes.c_uint
TEXTS = {1: plain.SOURCE.text(), 2: blocks.SOURCE.text()}
available = host_compiler.available


@functools.cache
def _library(p: int, kind: str) -> Any:
    source = host_compiler.written(TEXTS[p], ".cu")
    real = {"float32": "float", "float64": "double"}[kind]
    names = [f'-DSOURCE="{source}"', f"-DREAL={real}", f"-DBLOCK_SIZE={p}"]
    library = host_compiler.library(CODE, "-ffp-contract=fast", "-march=native", *names)
    number = ctypes.c_float if kind == "float32" else ctypes.c_double
    size = [ctypes.c_int, ctypes.c_int]
    level = [PLACE, LONG, LONG, LONG]
    arguments = {
        "reduce_rows": [LONG, *[PLACE] * 7, LONG, LONG, PLACE],
        "substitute_and_check": [
            *[LONG, *[PLACE] * 5, LONG, LONG, *[PLACE] * 3],
            *[number, ctypes.c_int, ctypes.c_int, PLACE, PLACE],
        ],
        "repair": [
            *[LONG, *[PLACE] * 6, LONG, *[ctypes.c_int] * 9],
            *[ctypes.c_double, ctypes.c_double, PLACE],
        ],
        "join": [*level, LONG, WORD, LONG, LONG, PLACE],
        "top": [*level, PLACE, WORD, LONG, LONG, PLACE],
        "expand": [*level, PLACE, PLACE],
    }
    made = {}
    for name, types in arguments.items():
        function = getattr(library, name + "_")
        function.argtypes, function.restype = size + types, None
        made[name] = SimpleNamespace(launch=functools.partial(_launch, function))
    return SimpleNamespace(order=library.order_, **made)


def _launch(function: Any, grid: int, threads: int, arguments: Any, shared: int) -> None:
    function(grid, threads, *(argument.item() for argument in arguments))


class _Status:
    def __init__(self) -> None:
        self.device_words = np.full(1, ~np.uint64(0), np.uint64)

    def clear(self) -> None:
        self.device_words[:] = ~np.uint64(0)

    def read(self) -> tuple[int, int]:
        word = int(self.device_words[0])
        return (0, -1) if word == 2**64 - 1 else (word >> 56, word & (2**56 - 1))


class _Layout(matchwood.engines.gpu.Layout):
    def take(self) -> Any:
        room = np.full(self.nbytes + 16, 0xFF, np.uint8)
        skip = -room.ctypes.data % 16
        return SimpleNamespace(ptr=room.ctypes.data + skip, room=room)


def _address(array: Any) -> Any:
    return np.uint64(array.ctypes.data)


@functools.cache
def _solver(n: int, p: int, kind: str) -> Any:
    module = plain if p == 1 else blocks
    known = {"constant": module.SOURCE.constant, "constants": module.SOURCE.constants}
    kernels = SimpleNamespace(kernels=lambda **_: _library(p, kind), **known)
    gpu = SimpleNamespace(Layout=_Layout, Status=_Status)
    with mock.patch.object(gpu_elements, "gpu", gpu), mock.patch.object(module, "SOURCE", kernels):
        return module.Solver(n, np.dtype(kind))


def solve(
    dl: Any, d: Any, du: Any, b: Any, *, threads: Any = None, backwards: bool = False
) -> tuple[Any, int, int]:
    """As `gpu_elements.solve`; backwards: the last block and the last thread of it come first."""
    p = 2 if d.ndim == 3 else 1
    _library(p, str(d.dtype)).order(int(backwards))
    solver = _solver(d.shape[0], p, str(d.dtype))
    x = np.empty_like(b)
    with mock.patch.object(gpu_elements, "_address", _address):
        return (x, *gpu_elements.solve_all(solver, (dl, d, du), b, x, None, _Status()))
