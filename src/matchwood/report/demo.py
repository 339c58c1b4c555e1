"""The demo: every problem on a few graphs, checked, timed beside SciPy, and drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import matchwood
from matchwood.report import pictures, scenes
from matchwood.report.problems import PROBLEMS, Problem, same
from matchwood.report.sketches import Sketch
from matchwood.report.svg import Svg
from matchwood.report.timing import clock, take_turns

# Compile what the demo will run, on all cores: from the first problem on, and from the last.
#
# Compiling takes longer than everything else in a first demo, and one process compiles on one core.
# So a second process runs the problems in the opposite order; each finds in the cache what the
# other has compiled, so each compiles about half, on small graphs, before anything is timed.


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


# The run


@dataclass(frozen=True)
class Row:
    """One problem on one graph."""

    problem: str
    graph: str
    answer: str
    prepared: float  # seconds, on a prepared graph
    raw: float  # seconds, from a SciPy matrix
    scipy: float | None  # seconds; None where SciPy has nothing like it
    gpu: float | None  # seconds, on a graph that lives on the GPU
    verdict: str  # "right", or what the check said
    same: bool  # at one thread, at all threads and on the GPU


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
    *, size: str = "full", threads: int | None = None, say: Callable[[str], object] = lambda _: None
) -> Demo:
    """Make the graphs, run every problem on them, check, time and draw."""
    from matchwood.engines.cpu import default_threads

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    with clock() as taken:
        compile_all(threads, say)
        places, rows = _all_rows(size, threads, say)
        say("drawing")
        drawn = [(p.name, p.picture()) for p in PROBLEMS if p.picture is not None]
    return Demo(
        config=matchwood.show_config(mode="dicts") or {},
        threads=threads or default_threads(),
        load=load,
        places=places,
        rows=rows,
        sketches=drawn,
        compiling=taken.compiling,
        seconds=taken.seconds,
    )


def _all_rows(
    size: str, threads: int | None, say: Callable[[str], object]
) -> tuple[list[Place], list[Row]]:
    """Every problem on every graph, ordered by problem."""
    places: list[Place] = []
    rows: list[Row] = []
    scene_list = scenes.demo(size)
    while True:
        say("making a graph")
        with clock() as taken:
            scene = next(scene_list, None)
        if scene is None:
            break
        places.append(_place(scene, taken.seconds - taken.compiling))
        for problem in PROBLEMS:
            say(f"{problem.name} on {scene.name}")
            rows.append(row(problem, scene, threads))
    rows.sort(key=lambda row: [problem.name for problem in PROBLEMS].index(row.problem))
    return places, rows


def row(problem: Problem, scene: scenes.Scene, threads: int | None, repeats: int = 3) -> Row:
    """Run, check and time one problem on one graph."""
    A = scene.matrix
    G = matchwood.graph(A)
    answer = problem.ours(G, threads)
    verdict = "right"
    try:
        problem.check(A, answer)
    except matchwood.CheckFailed as error:
        verdict = str(error)
    alike = same(answer, problem.ours(G, 1)) and same(answer, problem.ours(A, threads))
    B = A.astype(np.float64, copy=False)  # what SciPy would make of it at each call
    calls = {
        "prepared": lambda: problem.ours(G, threads),
        "raw": lambda: problem.ours(A, threads),
    }
    peer = problem.scipy
    if peer is not None:
        calls["scipy"] = lambda: peer(B)
    on_gpu = _gpu_call(problem, G)
    if on_gpu is not None:
        calls["gpu"] = on_gpu
        alike = alike and same(answer, on_gpu())
    seconds = take_turns(calls, repeats=repeats)
    return Row(
        problem=problem.name,
        graph=scene.name,
        answer=problem.say(answer),
        prepared=seconds["prepared"],
        raw=seconds["raw"],
        scipy=seconds.get("scipy"),
        gpu=seconds.get("gpu"),
        verdict=verdict,
        same=alike,
    )


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
