"""`matchwood bench`: some problems on some graphs, beside SciPy.  The rows are the demo's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import matchwood
from matchwood.report import scenes
from matchwood.report.demo import row
from matchwood.report.problems import PROBLEMS, Problem
from matchwood.report.show import blank_table, milliseconds, times


def choose(names: Sequence[str]) -> list[Problem]:
    """The problems of these short names; all of them for none."""
    known = {problem.short: problem for problem in PROBLEMS}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no problem {name!r}; there are {', '.join(known)}")
    return [known[name] for name in names or known]


def run(
    problems: Sequence[Problem],
    places: Iterable[scenes.Scene],
    *,
    threads: int | None = None,
    repeats: int = 7,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Check, then time; the results and the machine as plain values, ready for JSON."""
    from matchwood.engines.cpu import default_threads

    results = []
    for scene in places:
        for problem in problems:
            say(f"{problem.name} on {scene.name}")
            found = row(problem, scene, threads, repeats)
            if found.verdict != "right" or not found.same:
                raise matchwood.CheckFailed(f"{problem.name} on {scene.name}: {found.verdict}")
            ratios = {
                way: None if found.scipy is None else found.scipy / getattr(found, way)
                for way in ("prepared", "raw")
            }
            results.append({**asdict(found), "times_scipy": ratios})
    results.sort(key=lambda found: [problem.name for problem in problems].index(found["problem"]))
    return {
        "config": matchwood.show_config(mode="dicts"),
        "threads": threads or default_threads(),
        "repeats": repeats,
        "results": results,
    }


def table(found: dict[str, Any]) -> Any:
    """The results as a table for the terminal."""
    from rich.text import Text

    title = f"beside SciPy, {found['threads']} threads, median of {found['repeats']}"
    result = blank_table(title)
    result.add_column("problem")
    result.add_column("graph")
    for head in ("SciPy", "one call", "faster", "prepared", "faster", "GPU"):
        result.add_column(head, justify="right")
    for r in found["results"]:
        ratios = r["times_scipy"]
        cells = [
            r["problem"],
            r["graph"],
            "" if r["scipy"] is None else milliseconds(r["scipy"]),
            milliseconds(r["raw"]),
            times(ratios["raw"]),
            milliseconds(r["prepared"]),
            times(ratios["prepared"]),
            "" if r["gpu"] is None else milliseconds(r["gpu"]),
        ]
        result.add_row(*map(Text, cells))
    return result
