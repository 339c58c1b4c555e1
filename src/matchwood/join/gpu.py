"""The join on a GPU: prepared as on the CPU, probed and verified there (candidates/gpu.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.errors import EngineUnavailable
from matchwood.join import cpu
from matchwood.join.candidates import gpu as probing
from matchwood.join.candidates.cpu_run import Raw
from matchwood.join.choice import Choice

SIMILARITIES = ("jaccard", "equal")


def blocks(prepared: Any, choice: Choice, whole: bool) -> Iterator[Raw]:
    """See cpu.blocks."""
    _require(prepared, choice)
    return cpu.blocks(prepared, choice, whole, _run)


def above(
    prepared: Any, choice: Choice, delta: float, raise_to: Any, sample: int
) -> Iterator[Raw]:
    """See cpu.above."""
    _require(prepared, choice)
    return cpu.above(prepared, choice, delta, raise_to, sample, _run)


def _run(
    task: Any, how: Any, threads: int | None, costs: np.ndarray, room: int = 0
) -> Iterator[Raw]:
    return probing.run(task, how)


def _require(prepared: Any, choice: Choice) -> None:
    """Say which calls the GPU has no kernels for."""
    why = ""
    if prepared.similarity not in SIMILARITIES:
        why = f"similarity {prepared.similarity!r}"
    elif choice.verify != "certified":
        why = f"verify {choice.verify!r}"
    elif choice.per_left is not None:
        why = "per_left"
    if why:
        raise EngineUnavailable(f"{choice.caller}: {why} has no 'gpu' engine; use engine='cpu'")
