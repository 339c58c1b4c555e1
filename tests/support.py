"""Small helpers of tests: cores, and scripts that run in a Python of their own."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import os
import reprlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import matchwood

SOURCES = Path(matchwood.__file__).resolve().parent.parent
"""The folder to put on the path so that `import matchwood` finds what is being tested."""


def cores() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


NO_RUSTWORKX = (
    "" if importlib.util.find_spec("rustworkx") else "method='exact' needs rustworkx here"
)
"""Why heaviest matchings of most graphs cannot be tested; empty where they can."""

THREADS = sorted({1, 2, 3, 2 * cores() + 1})
"""Team sizes to try: one, two, three, and more than there are cores."""

REST = [False, pytest.param(True, marks=pytest.mark.slow)]
"""Of tests that do half of the cases, and the other half where slow tests are asked for."""


def some(cases: Iterable[Any], slow: Iterable[Any] | None = None) -> list[Any]:
    """The cases for `pytest.mark.parametrize`; those in `slow`, or every second one, are slow."""
    every = list(cases)
    left_out = every[1::2] if slow is None else list(slow)
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else [case]),
            marks=[pytest.mark.slow] if case in left_out else [],
        )
        for case in every
    ]


def looped(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[..., Any]:
    """As `pytest.mark.parametrize`, but all cases are one test; a failure names its case.

    For many small cases: a test of its own costs more than they do.
    """
    listed = list(values)
    single = isinstance(names, str)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(**fixtures: Any) -> None:
            for value in listed:
                case = {names: value} if single else dict(zip(names, value, strict=True))
                try:
                    test(**fixtures, **case)
                except Exception as error:
                    error.add_note(f"in the case {reprlib.repr(case)}")
                    raise

        functools.update_wrapper(run, test)
        del run.__wrapped__  # pytest would ask it for its arguments
        given = inspect.signature(test)
        ours = {names} if single else set(names)
        left = [p for name, p in given.parameters.items() if name not in ours]
        run.__signature__ = given.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


PATIENCE_SECONDS = 40.0
"""How long a machine may be busy with other programs before a test blames us for it."""


def in_time(measure: Callable[[], float | None], limit: float) -> None:
    """Something takes less than `limit` seconds: `measure` returns how long, None if it came late.

    The best of some tries counts.  They go on for a while: other programs may slow each of a few.
    """
    end, taken, missed = time.monotonic() + PATIENCE_SECONDS, [], 0
    while not taken or time.monotonic() < end:
        seconds = measure()
        if seconds is None:
            missed += 1
            if missed > 5:  # what is measured ends before one can measure it
                return
        elif seconds < limit:
            return
        else:
            taken.append(seconds)
            time.sleep(0.05)
    raise AssertionError(f"never below {limit} s, at best {min(taken):.3f} of {len(taken)} tries")


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does; an error if it does not come."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)


def from_python(function: Any) -> Any:
    """A function that only kernels or teams can call, for a test to call."""
    import numba

    from matchwood.engines.cpu import jit  # noqa: F401  then Numba takes our functions for its own

    options = {"nogil": True, "error_model": "numpy", "_nrt": False}
    return numba.njit(**options)(getattr(function, "py_func", function))


def environment(sources: Path = SOURCES, **extra: str) -> dict[str, str]:
    """Environment variables of a child that imports matchwood from `sources`."""
    return {**os.environ, "PYTHONPATH": str(sources), **extra}


def run_script(
    folder: Path,
    text: str,
    *arguments: str,
    sources: Path = SOURCES,
    timeout: float = 1800,
    **extra: str,
) -> str:
    """Write a script into `folder`, run it, and return what it printed; fails if it failed."""
    done = subprocess.run(
        [sys.executable, str(write_script(folder, text)), *arguments],
        env=environment(sources, **extra),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def start_script(folder: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    """The same without waiting."""
    return subprocess.Popen(
        [sys.executable, str(write_script(folder, text)), *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def same(one: Any, other: Any) -> bool:
    """Two results are equal bit for bit, arrays, tuples and dataclasses alike."""
    if hasattr(one, "__dict__") and type(one) is type(other):
        return same(vars(one), vars(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "dtype"):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return bool(one == other)


def pattern_on_gpu(A: Any, index_dtype: Any = "int32") -> Any:
    """The pattern of a matrix, as a Graph on the GPU."""
    cupy = pytest.importorskip("cupy")
    arrays = (cupy.asarray(A.indptr), cupy.asarray(A.indices))
    return matchwood.graph(arrays, index_dtype=index_dtype)


def run_verb(*words: str) -> Any:
    """`matchwood WORDS ...`, which must end well."""
    from typer.testing import CliRunner

    from matchwood.cli import app

    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result


def run_verb_json(*words: str) -> dict[str, Any]:
    """What `matchwood WORDS ... --json` prints."""
    return json.loads(run_verb(*words, "--json").stdout)
