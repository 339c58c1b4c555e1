"""What __main__.py shows: the thesis' tables, log plots, metadata of the machine."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matchwood.report.show import blank_table

COMPARISONS = ("HOST x CPU", "GPU x CPU", "GPU x HOST")
ENGINES = ("CPU", "GPU", "HOST")  # in the order of the thesis' columns


def tables(found: dict[str, Any]) -> Iterator[Any]:
    """One table for each problem and density, and one for each problem's real graphs."""
    for problem in dict.fromkeys(row["problem"] for row in found["results"]):
        mine = [row for row in found["results"] if row["problem"] == problem]
        for density in dict.fromkeys(row["density"] for row in mine):
            rows = [row for row in mine if row["density"] == density]
            title = "real graphs" if density is None else f"density {density:g}"
            yield _table(f"{problem}, {title}", rows, found["threads"])
    notes = [f"{row['graph']}: {note}" for row in found["results"] for note in row["notes"]]
    yield from notes


def _table(title: str, rows: Sequence[dict[str, Any]], threads: int) -> Any:
    from rich.text import Text

    peers = [
        name
        for name in dict.fromkeys(name for row in rows for name in row["seconds"])
        if name not in ENGINES
    ]
    engines = [name for name in ENGINES if any(name in row["seconds"] for row in rows)]
    ratios = [name for name in COMPARISONS if any(name in row["comparison"] for row in rows)]
    table = blank_table(f"{title}: seconds, ratios, thread efficiency with {threads} threads")
    table.add_column("size" if rows[0]["density"] is not None else "graph")
    for head in (*engines, *ratios, "TE", *peers):
        table.add_column(head, justify="right")
    for row in rows:
        seconds, ratio = row["seconds"], row["comparison"]
        cells = [str(row["n"]) if row["density"] is not None else row["graph"]]
        cells += [_number(seconds.get(name)) for name in engines]
        cells += [_number(ratio.get(name)) for name in ratios]
        efficiency = row["thread_efficiency"]
        cells.append("-" if efficiency is None else f"{efficiency:.4f}")
        cells += [_number(seconds.get(name)) for name in peers]
        table.add_row(*map(Text, cells))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2e}"


def require_matplotlib() -> None:
    """Said before hours of timing, not after them."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SystemExit("--plots needs matplotlib: pip install 'matchwood[plot]'")


def plots(found: dict[str, Any], folder: Path) -> list[Path]:
    """A figure for each problem on random graphs, a panel for each density; both axes as there."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    random = [row for row in found["results"] if row["density"] is not None]
    for problem in dict.fromkeys(row["problem"] for row in random):
        mine = [row for row in random if row["problem"] == problem]
        densities = list(dict.fromkeys(row["density"] for row in mine))
        figure = Figure(figsize=(4.2 * len(densities), 3.8), layout="constrained")
        panels = figure.subplots(1, len(densities), sharey=True, squeeze=False)[0]
        for panel, density in zip(panels, densities, strict=True):
            rows = [row for row in mine if row["density"] == density]
            for name in dict.fromkeys(name for row in rows for name in row["seconds"]):
                points = [(r["n"], r["seconds"][name]) for r in rows if name in r["seconds"]]
                style = "o-" if name in ENGINES else "s--"
                panel.plot(*zip(*points, strict=True), style, markersize=3, label=name)
            panel.set(yscale="log", xlabel="vertices", title=f"{problem}, density {density:g}")
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("seconds")
        panels[-1].legend(fontsize="small")
        path = folder / f"{problem.lower().replace(' ', '_')}.svg"
        figure.savefig(path)
        written.append(path)
    return written


def machine() -> dict[str, Any]:
    """What the thesis' metadata says of a machine, as far as it can be found here."""
    facts: dict[str, Any] = {
        "architecture": platform.machine(),
        "system": platform.platform(),
        "CPU model name": platform.processor(),
    }
    facts |= _processor(Path("/proc/cpuinfo"))
    caches = _caches(Path("/sys/devices/system/cpu/cpu0/cache"))
    if caches:
        facts["CPU cache sizes"] = caches
    facts["GPU"] = _gpus()
    return facts


def _processor(path: Path) -> dict[str, Any]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = [[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]
    facts: dict[str, Any] = {}
    for key, name in (("model name", "CPU model name"), ("cpu cores", "CPU cores"),
                      ("cpu MHz", "CPU frequency (MHz)"), ("siblings", "CPU threads")):  # fmt: skip
        values = [value for label, value in pairs if label == key]
        if values:
            facts[name] = values[0]
    facts["processors"] = sum(label == "processor" for label, _ in pairs)
    return facts


def _caches(folder: Path) -> dict[str, str]:
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        found[f"L{level}{kind[0].lower() if kind != 'Unified' else ''}"] = size
    return found


def _gpus() -> list[dict[str, Any]]:
    from matchwood import engines

    if not engines.gpu_available():
        return []
    runtime = engines.cupy().cuda.runtime
    found = []
    for device in range(runtime.getDeviceCount()):
        facts = runtime.getDeviceProperties(device)
        found.append(
            {
                "name": facts["name"].decode(),
                "memory (GB)": round(facts["totalGlobalMem"] / 1e9, 1),
                "multiprocessors": facts["multiProcessorCount"],
                "compute capability": f"{facts['major']}.{facts['minor']}",
                "CUDA driver": runtime.driverGetVersion(),
            }
        )
    return found
