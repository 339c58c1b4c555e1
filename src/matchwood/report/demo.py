"""The demo: every problem on a few graphs, checked, timed beside SciPy, and drawn."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import matchwood
from matchwood.engines.cpu import available_cpus, cache_folder, default_threads
from matchwood.engines.cpu.code import seconds_compiling
from matchwood.report import pictures, scenes
from matchwood.report.problems import PROBLEMS, Problem, same
from matchwood.report.sketches import Sketch
from matchwood.report.svg import Svg
from matchwood.report.timing import clock, take_turns

# Compiling takes longer than everything else in a first demo, and one process compiles on one core.
# So a second process runs the problems from the last one on, and leaves the code in the cache
# folder.  A process takes a problem by making a file of its number; when they meet, one waits.


@contextlib.contextmanager
def helped(size: str, every: bool, threads: int | None) -> Iterator[Callable[[int], None]]:
    """What to call with the number of a problem before it is run.

    The second process is started once this one had to compile, where there is a core for it and a
    folder that keeps the code.
    """
    possible = available_cpus() > 1 and cache_folder() is not None
    before, other = seconds_compiling(), None

    def reach(number: int) -> None:
        nonlocal other
        mine = _taken(folder, number)
        if other is None and possible and seconds_compiling() > before:
            other = _start_other(folder, size, every, threads)
        while not mine and other is not None and other.poll() is None:
            if os.path.exists(_done(folder, number)):
                break
            time.sleep(0.05)

    with tempfile.TemporaryDirectory() as folder:
        try:
            yield reach
        finally:
            if other is not None:
                other.kill()
                with other:  # closes the pipe, and waits
                    pass


def _start_other(folder: str, *how: Any) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, folder, json.dumps(how)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None  # then this process compiles everything


def _help(folder: str, size: str, every: bool, threads: int | None) -> None:
    """What the second process does."""
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    made = list(scenes.demo(size, every))
    for number, problem in reversed(list(enumerate(PROBLEMS))):
        if not _taken(folder, number):
            return
        with contextlib.suppress(Exception):  # the first will meet it, and tell
            for scene in _scenes_of(problem, made, every):
                answered(problem, scene, threads)
            if problem.picture is not None:
                problem.picture()
        open(_done(folder, number), "x").close()


def _end_with_the_first() -> None:
    os.read(0, 1)  # nothing is written: it returns when the first process has ended
    os._exit(1)


def _taken(folder: str, number: int) -> bool:
    """Take a problem; False where the other process has it."""
    try:
        open(os.path.join(folder, str(number)), "x").close()
    except FileExistsError:
        return False
    return True


def _done(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number} done")


# The run


@dataclass(frozen=True)
class Row:
    """One problem on one graph."""

    problem: str
    graph: str
    answer: str
    verdict: str  # "right", or what the check said
    same: bool  # at one thread, at all threads and on the GPU
    prepared: float = 0.0  # seconds, on a prepared graph; as the others 0 until it is timed
    raw: float = 0.0  # seconds, from a SciPy matrix
    scipy: float | None = None  # seconds; None where SciPy has nothing like it
    gpu: float | None = None  # seconds, on a graph that lives on the GPU


@dataclass(frozen=True)
class Place:
    """One graph on the page."""

    name: str
    about: str
    n: int
    entries: int
    seconds: float  # to make it, without compilation
    drawings: tuple[Svg, Svg]


@dataclass(frozen=True)
class Demo:
    """All that was found; `tables` and `html` show it."""

    config: dict[str, Any]
    threads: int
    load: float | None  # load average of the minute before
    places: list[Place]
    rows: list[Row]
    sketches: list[tuple[str, Sketch]]
    compiling: float
    seconds: float


def run(
    *,
    size: str = "full",
    every: bool = False,
    threads: int | None = None,
    say: Callable[[str], object] = lambda _: None,
    show: Callable[[Row], object] = lambda _: None,
) -> Demo:
    """Make the graphs, run every problem on one of them or on `every` one, check, time and draw.

    `show` gets a row as soon as there is an answer.  Times are taken when nothing is left to
    compile, so that all cores are free.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    with clock() as taken:
        with helped(size, every, threads) as reach:
            say("making graphs")
            places, made = _made(size, every)
            rows, drawn = [], []
            for number, problem in enumerate(PROBLEMS):
                say(f"compiling {problem.name}")
                reach(number)
                for scene in _scenes_of(problem, made, every):
                    rows.append((answered(problem, scene, threads), problem, scene))
                    show(rows[-1][0])
                if problem.picture is not None:
                    drawn.append((problem.name, problem.picture()))
        say("timing")
        timed_rows = [timed(*row, threads, at_most=TIMING) for row in rows]
    return Demo(
        config=matchwood.show_config(mode="dicts") or {},
        threads=threads or default_threads(),
        load=load,
        places=places,
        rows=timed_rows,
        sketches=drawn,
        compiling=taken.compiling,
        seconds=taken.seconds,
    )


TIMING = 0.25  # seconds; what took longer is not timed again


def _made(size: str, every: bool) -> tuple[list[Place], list[scenes.Scene]]:
    """The graphs, and what the page says about them."""
    places: list[Place] = []
    made: list[scenes.Scene] = []
    left = scenes.demo(size, every)
    while True:
        with clock() as taken:
            scene = next(left, None)
        if scene is None:
            return places, made
        places.append(_place(scene, taken.seconds - taken.compiling))
        made.append(scene)


def _scenes_of(
    problem: Problem, made: Sequence[scenes.Scene], every: bool
) -> Sequence[scenes.Scene]:
    return made if every else [made[problem.place]]


def row(problem: Problem, scene: scenes.Scene, threads: int | None, repeats: int = 3) -> Row:
    """Run, check and time one problem on one graph."""
    return timed(answered(problem, scene, threads), problem, scene, threads, repeats)


def answered(problem: Problem, scene: scenes.Scene, threads: int | None) -> Row:
    """Run and check one problem on one graph."""
    A, G = scene.matrix, scene.graph
    answer = problem.ours(G, threads)
    verdict = "right"
    try:
        problem.check(A, answer)
    except matchwood.CheckFailed as error:
        verdict = str(error)
    alike = same(answer, problem.ours(G, 1)) and same(answer, problem.ours(A, threads))
    on_gpu = _gpu_call(problem, G)
    if on_gpu is not None:
        alike = alike and same(answer, on_gpu())
    return Row(problem.name, scene.name, problem.say(answer), verdict, alike)


def timed(
    row: Row, problem: Problem, scene: scenes.Scene, threads: int | None, repeats: int = 3,
    at_most: float = 10.0,
) -> Row:  # fmt: skip
    """The row with its times; everything was called before."""
    A, G, peer = scene.matrix, scene.graph, problem.scipy
    B = A.astype(np.float64, copy=False)  # what SciPy would make of it at each call
    calls = {
        "prepared": lambda: problem.ours(G, threads),
        "raw": lambda: problem.ours(A, threads),
    }
    if peer is not None:
        calls["scipy"] = lambda: peer(B)
    on_gpu = _gpu_call(problem, G)
    if on_gpu is not None:
        on_gpu()
        calls["gpu"] = on_gpu
    seconds: dict[str, Any] = take_turns(calls, repeats=repeats, at_most=at_most)
    return replace(row, **seconds)


def _gpu_call(problem: Problem, graph: matchwood.Graph) -> Callable[[], Any] | None:
    """The same call on a graph that lives on the GPU, waiting for its end; None without a GPU."""
    from matchwood import engines

    if not engines.gpu_available():
        return None
    cupy = engines.cupy()
    G = graph.on("gpu")

    def call() -> Any:
        answer = problem.ours(G, None)
        cupy.cuda.get_current_stream().synchronize()
        return answer

    return call


def _place(scene: scenes.Scene, seconds: float) -> Place:
    A = scene.matrix
    shape = pictures.distribution(
        np.diff(A.indptr), "entries in a row", "rows", "how many rows have how many entries"
    )
    return Place(
        name=scene.name,
        about=scene.about,
        n=int(A.shape[0]),
        entries=int(A.nnz),
        seconds=seconds,
        drawings=(pictures.spy(A), shape),
    )


def wrong(found: Demo) -> list[Row]:
    """Rows whose answer the check refused, or that differ between engines or thread counts."""
    return [row for row in found.rows if row.verdict != "right" or not row.same]


def summary(found: Demo) -> str:
    """One sentence on the whole run."""
    bad = wrong(found)
    state = f"{len(bad)} of them WRONG" if bad else "all of them right"
    return (
        f"{len(found.rows)} answers, {state}, in {found.seconds:.0f} s, "
        f"of which {found.compiling:.0f} s compiling."
    )


def machine(found: Demo) -> str:
    """Where the times were taken."""
    config = found.config
    gpu = ", ".join(device["name"] for device in config["gpu"]["devices"]) or "no GPU"
    cpus = config["cpu"]["cpus"]
    text = (
        f"matchwood {config['matchwood']}, {found.threads} threads on {cpus} CPUs "
        f"({config['cpu']['architecture']}), {gpu}; Python {config['python']}; "
        f"SciPy {config['versions']['scipy']}, which uses one thread."
    )
    if found.load is not None and found.load > 0.5 * cpus:
        text += f" Other programs were running (load {found.load:.1f}), so threads had to wait."
    return text


def as_dict(found: Demo) -> dict[str, Any]:
    """The run without its pictures, for JSON."""
    places = [{k: v for k, v in vars(p).items() if k != "drawings"} for p in found.places]
    return {
        "config": found.config,
        "threads": found.threads,
        "load": found.load,
        "graphs": places,
        "results": [asdict(row) for row in found.rows],
        "seconds": {"compiling": found.compiling, "total": found.seconds},
        "all_right": not wrong(found),
    }


if __name__ == "__main__":
    _help(sys.argv[1], *json.loads(sys.argv[2]))
