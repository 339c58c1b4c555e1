"""Copies of kernel modules whose members wait for random times, to meet many schedules.

A copy is the module loaded once more from its file, with slow forms of what members meet through:
barriers, chunks, atomics.  The package itself knows nothing of delays.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import cpu as teams
from matchwood.engines.cpu import device
from matchwood.engines.cpu.compiled import Function, external
from matchwood.primitives.hashing.cpu import mix64

LONG = 1 << 30  # looks of a member that has waited for long: it sleeps
_clock = external("clock", "int64")


@device
def wait(words: Any) -> None:
    """Mostly short; one in 32 sleeps, so that others overtake by several phases."""
    x = mix64(np.uint64(_clock()))
    if x & np.uint64(31) == 0:
        teams.back_off(LONG)
        return
    spins: Any = (x >> np.uint64(20)) & np.uint64(0x3F)
    for _ in range(spins):
        teams.load_relaxed(words, 0)


@device
def slow_barrier(team: Any) -> bool:
    wait(team.words)
    stop = teams.barrier(team)
    wait(team.words)
    return stop


@device
def slow_next_chunk(team: Any, n: int, size: int) -> int:
    wait(team.words)
    return teams.next_chunk(team, n, size)


@device
def slow_atomic_min(array: Any, at: Any, value: Any) -> Any:
    wait(array)
    return teams.atomic_min(array, at, value)


@device
def slow_atomic_add(array: Any, at: Any, value: Any) -> Any:
    wait(array)
    return teams.atomic_add(array, at, value)


SLOW = {
    "barrier": slow_barrier,
    "next_chunk": slow_next_chunk,
    "atomic_min": slow_atomic_min,
    "atomic_add": slow_atomic_add,
}


def delayed(names: Iterable[str], **constants: Any) -> dict[str, ModuleType]:
    """Copies of these modules, later ones with the functions of earlier ones; compiled anew.

    `constants` replace those of the same name, so that small graphs have many chunks.
    """
    made: dict[str, ModuleType] = {}
    for name in names:
        original = importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(name, original.__file__)
        assert spec is not None
        assert spec.loader is not None
        copy = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(copy)
        for key, value in vars(copy).copy().items():
            if key in SLOW:
                setattr(copy, key, SLOW[key])
            elif key in constants:
                setattr(copy, key, constants[key])
            elif isinstance(value, Function) and value.__module__ in made:
                setattr(copy, key, getattr(made[value.__module__], key))
            elif isinstance(value, ModuleType) and value.__name__ in made:
                setattr(copy, key, made[value.__name__])
            elif isinstance(value, Function) and value.__module__ == name:
                value.lasting = False  # in the cache lies the code that does not wait
        made[name] = copy
    return made


def install(patch: Any, copies: dict[str, ModuleType]) -> None:
    """Have the package take the copies; `patch` is a MonkeyPatch."""
    patch.setattr(engines, "_loaded", {})  # what was loaded before would be taken again
    for name, copy in copies.items():
        patch.setitem(sys.modules, name, copy)
