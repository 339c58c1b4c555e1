"""Compile what the demo will run, on all cores: from the first problem on, and from the last.

Compiling takes longer than everything else in a first demo, and one process compiles on one core.
So a second process runs the problems in the opposite order; each finds in the cache what the other
has compiled, so each compiles about half.  This is done on small graphs, before anything is timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import matchwood
from matchwood.report import scenes
from matchwood.report.problems import PROBLEMS, Problem


def compile_all(threads: int | None, say: Callable[[str], object] = lambda _: None) -> None:
    """Run every problem once on small graphs, with the help of a second process."""
    from matchwood.engines.cpu import available_cpus, cache_folder

    helped = available_cpus() > 1 and cache_folder() is not None
    other = _start_other() if helped else None
    try:
        _run(PROBLEMS, threads, say)
    finally:
        if other is not None:  # what it still compiles, this process has compiled by now
            other.kill()
            other.wait()


def _start_other() -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [sys.executable, "-m", __name__],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None  # then this process compiles everything


def _run(
    problems: Iterable[Problem], threads: int | None, say: Callable[[str], object] = lambda _: None
) -> None:
    small = list(scenes.demo("tiny"))
    for problem in problems:
        say(f"compiling {problem.name}")
        for scene in small:
            G = matchwood.graph(scene.matrix)
            problem.say(problem.ours(G, threads))
            problem.check(scene.matrix, problem.ours(scene.matrix, threads))


if __name__ == "__main__":
    _run(reversed(PROBLEMS), None)
