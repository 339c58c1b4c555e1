"""What every benchmark uses: standard graphs, verified and alternating timing, tables, JSON.

peers.py: graphs in the form of other libraries.  gpu.py: times of GPU work.

A benchmark file holds one function `run()` that returns what its calls of `compare` returned:

    from bench import harness

    def run() -> list[harness.Result]:
        results = []
        for name, A in harness.standard_graphs().items():
            G = matchwood.graph(A)
            results.append(harness.compare(
                f"breadth-first search, {name}",
                {
                    "matchwood": lambda: matchwood.bfs(G, 0),
                    "matchwood, raw matrix": lambda: matchwood.bfs(A, 0),
                    "scipy": lambda: csgraph.breadth_first_order(A, 0),
                },
                verify=lambda who, answer: check(A, answer) if who != "scipy" else None,
                bars={"matchwood": 9.0},
            ))
        return results

    if __name__ == "__main__":
        harness.main(run)

An absolute time says nothing on a shared machine; the ratio to the baseline in the same run does.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import EngineUnavailable

Result = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5  # at least; the median of fewer is noise
MOST_ROUNDS = 31  # quick functions get more rounds, up to this many ...
BUDGET_SECONDS = 4.0  # ... while a comparison stays below this
SEED = 20240607
DATA = Path(os.environ.get("MATCHWOOD_DATA", ROOT.parent / "shared" / "data"))  # real graphs

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "networkx", "networkit", "igraph")
CUPY = ("cupy-cuda12x", "cupy-cuda13x")


def compare(
    title: str,
    functions: Mapping[str, Callable[[], Any]],
    *,
    verify: Callable[[str, Any], Any] | None = None,
    baseline: str = "scipy",
    rounds: int = ROUNDS,
    bars: Mapping[str, float] | None = None,
    sync: Callable[[], Any] | None = None,
    quiet: bool = False,
) -> Result:
    """Time functions against each other: verify first, then median of alternating rounds.

    Parameters
    ----------
    title : str
        What is compared, on what.
    functions : mapping of names to callables without arguments
        Each is called once before timing, which also compiles it.
    verify : callable (name, answer), optional
        Raises when the answer of that first call is wrong; then nothing is timed.
    baseline : str
        Name of the function whose time is divided by the others'; no ratios if it is absent.
    rounds : int
        Least number of rounds.  Every round runs all functions, in alternating order, so that a
        slow spell of the machine falls on all of them.
    bars : mapping of names to ratios, optional
        Ratios that are to be reached; shown beside those that were.
    sync : callable, optional
        Called after each function and inside its time: waits for a GPU.
    quiet : bool
        Print nothing.

    Returns
    -------
    result : dict
        ``title``, ``baseline``, ``rounds`` and ``rows``: for each name ``median``, ``best`` and
        ``times`` in seconds, and ``ratio`` and ``bar`` where there are such.
    """
    wait = sync or (lambda: None)
    slowest = 0.0
    for name, function in functions.items():
        answer = function()
        if verify is not None:
            verify(name, answer)
        del answer
    for function in functions.values():  # how long it takes once everything is compiled
        slowest += _seconds(function, wait)
    count = max(rounds, min(MOST_ROUNDS, int(BUDGET_SECONDS / max(slowest, 1e-9))))
    times: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for number in range(count):
        for name in names if number % 2 == 0 else reversed(names):
            times[name].append(_seconds(functions[name], wait))
    rows: dict[str, Any] = {}
    for name, taken in times.items():
        rows[name] = {"median": statistics.median(taken), "best": min(taken), "times": taken}
    for name, row in rows.items():
        if baseline in rows:
            row["ratio"] = rows[baseline]["median"] / row["median"]
        if bars and name in bars:
            row["bar"] = bars[name]
    result: Result = {"title": title, "baseline": baseline, "rounds": count, "rows": rows}
    if not quiet:
        show(result)
    return result


def _seconds(function: Callable[[], Any], wait: Callable[[], Any]) -> float:
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        answer = function()
        wait()
        end = time.perf_counter()
    finally:
        if enabled:
            gc.enable()
    del answer
    return end - start


def show(result: Result) -> None:
    """Print one comparison as a table."""
    from rich.console import Console
    from rich.table import Table

    baseline, rows = result["baseline"], result["rows"]
    with_bars = any("bar" in row for row in rows.values())
    table = Table(title=result["title"], title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("median", justify="right")
    table.add_column("best", justify="right")
    table.add_column(f"{baseline} / this", justify="right")
    if with_bars:
        table.add_column("bar", justify="right")
    for name, row in rows.items():
        ratio = f"{row['ratio']:.2f}x" if "ratio" in row else ""
        cells = [name, in_words(row["median"]), in_words(row["best"]), ratio]
        if with_bars:
            cells.append(_bar(row))
        table.add_row(*cells)
    Console().print(table)


def _bar(row: Mapping[str, float]) -> str:
    if "bar" not in row or "ratio" not in row:
        return ""
    return f"{row['bar']:g}x {'met' if row['ratio'] >= row['bar'] else '[red]missed[/red]'}"


def in_words(seconds: float) -> str:
    """A time with a fitting unit: 1.23 s, 4.56 ms, 7.8 us."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.1f} us"


def environment() -> dict[str, Any]:
    """Machine, versions, threads and commit: what a number needs beside it."""
    from matchwood.engines.cpu import available_cpus, default_threads

    versions = {"python": platform.python_version()}
    for package in ("matchwood", *PACKAGES, *CUPY):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.platform(),
            "architecture": platform.machine(),
            "processor": _processor(),
            "cpus": available_cpus(),
            "gpu": _gpu(),
        },
        "threads": default_threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": versions,
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    for line in text.splitlines():
        if line.lower().startswith(("model name", "cpu model")):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _gpu() -> str | None:
    try:
        import cupy

        if not cupy.is_available():
            return None
        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except ImportError:
        return None


def _commit() -> str | None:
    """The commit that is checked out, with "+" when files were changed since."""
    try:
        sha = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return sha + ("+" if changed else "")


def write(results: Iterable[Result], path: str | os.PathLike[str]) -> None:
    """Write results as JSON, together with `environment()`."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    content = {"environment": environment(), "results": list(results)}
    target.write_text(json.dumps(content, indent=1) + "\n")


def main(run: Callable[[], list[Result]]) -> None:
    """Run one benchmark file from the command line: ``--json FILE`` also writes the results."""
    parser = argparse.ArgumentParser(prog=Path(sys.argv[0]).name)
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    options = parser.parse_args()
    try:
        results = run()
    except EngineUnavailable as error:
        raise SystemExit(f"left out: {error}") from None
    if options.json:
        write(results, options.json)


def peer(name: str) -> Any | None:
    """The module of a peer, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def pyplot() -> Any:
    """Matplotlib without a display; an error that says so where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("pictures need matplotlib: pip install 'matchwood[plot]'") from None
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "matchwood"  # so that the same picture is the same file
    return plt


def save(fig: Any, path: Path) -> None:
    """The picture, an SVG without a date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    fig.savefig(path, bbox_inches="tight", metadata=metadata)
    pyplot().close(fig)


# The graphs.  Made with NumPy and SciPy alone, so that no change of ours changes them.


@functools.cache
def rmat(scale: int, edge_factor: int = 16) -> sp.csr_array:
    """Graph500's R-MAT, undirected: no self loops, no duplicates, vertices not renumbered."""
    rng = np.random.default_rng(SEED)
    m = edge_factor << scale
    u, v = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for _ in range(scale):
        draw = rng.random(m, dtype=np.float32)
        down = draw >= 0.76
        right = (draw >= 0.95) | ((draw >= 0.57) & ~down)
        u, v = 2 * u + down, 2 * v + right
    return undirected(1 << scale, u, v)


@functools.cache
def grid(side: int) -> sp.csr_array:
    """2-D grid, side x side, 5-point."""
    at = np.arange(side * side).reshape(side, side)
    u = np.concatenate((at[:, :-1].ravel(), at[:-1].ravel()))
    v = np.concatenate((at[:, 1:].ravel(), at[1:].ravel()))
    return undirected(side * side, u, v)


@functools.cache
def mesh(side: int) -> sp.csr_array:
    """3-D grid, side x side x side, 27-point."""
    at = np.arange(side**3).reshape(side, side, side)
    starts, ends = [], []
    for dx, dy, dz in np.ndindex(3, 3, 3):
        if (dx, dy, dz) <= (1, 1, 1):  # half of the neighbours; `undirected` adds the others
            continue
        near = tuple(slice(max(0, 1 - d), side - max(0, d - 1)) for d in (dx, dy, dz))
        far = tuple(slice(max(0, d - 1), side - max(0, 1 - d)) for d in (dx, dy, dz))
        starts.append(at[near].ravel())
        ends.append(at[far].ravel())
    return undirected(side**3, np.concatenate(starts), np.concatenate(ends))


@functools.cache
def delaunay(points: int) -> sp.csr_array:
    """Delaunay triangulation of random points in the unit square, numbered as drawn."""
    from scipy.spatial import Delaunay

    triangles = Delaunay(np.random.default_rng(SEED).random((points, 2))).simplices
    u = np.concatenate((triangles[:, 0], triangles[:, 1], triangles[:, 2]))
    v = np.concatenate((triangles[:, 1], triangles[:, 2], triangles[:, 0]))
    return undirected(points, u, v)


def undirected(n: int, u: Any, v: Any) -> sp.csr_array:
    """Symmetric CSR of ones, int32 indices, sorted rows, no loops, no duplicates."""
    key = np.minimum(u, v).astype(np.int64) * n + np.maximum(u, v)
    key = np.unique(key[u != v])
    u, v = (key // n).astype(np.int32), (key % n).astype(np.int32)
    half = sp.csr_array((np.ones(u.size), (u, v)), shape=(n, n))
    A = sp.csr_array(half + half.T)
    A.sort_indices()
    return A


def standard_graphs() -> dict[str, sp.csr_array]:
    """The four CPU graphs: skewed degrees, a long thin graph, a dense mesh, no locality."""
    return {
        "R-MAT 18": rmat(18),
        "grid 1000^2": grid(1000),
        "mesh 64^3": mesh(64),
        "Delaunay 300k": delaunay(300_000),
    }
