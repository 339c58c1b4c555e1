"""Pictures of what bench.engines.devices.traffic has counted and timed.

``python -m bench.papers.mandulak.devices_figures FILE.json [FILE.json ...] --pictures FOLDER``

    beyond_gpu_rounds     entries that travel in each round
    beyond_gpu_warps      entries that warps read in each round without lists (4.8 of the thesis)
    beyond_gpu_scaling    seconds by partitions and batches, with lists and without (4.4 and 4.6)
    beyond_gpu_phases     the parts of the time (4.5 and 4.7)
    beyond_gpu_occupancy  active warps by round, from bench.papers.mandulak.occupancy (4.11)

and the tables beyond_gpu_table_4_4.csv, edges that are matched in a second; beyond_gpu_passes.csv,
the first pass and the whole matching; beyond_gpu_others.csv, the same graph otherwise.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness

PHASES = ("pointing", "matching", "exchange", "waiting")  # they add up to the time of a call
SCHEMES = (("auto", 0), ("with lists", "every batch in every round"))
SMALLEST = 1e-7  # share of the entries that is drawn
SCALING = "scaling, words in n"
Row = dict[str, Any]


def draw_rounds(rows: list[Row], folder: Path) -> None:
    """The share of entries that travels in each round."""
    shares = {row["graph"]: row["touched_by_round"] for row in rows if "touched_by_round" in row}
    if not shares:
        return
    figure, axes = harness.pyplot().subplots(figsize=(6, 3.5))
    for graph, values in shares.items():
        drawn = np.maximum(values, SMALLEST)
        axes.semilogy(range(1, len(values) + 1), drawn, "o-", label=graph)
    axes.set_xlabel("round")
    axes.set_ylabel("entries that travel, of all")
    axes.legend()
    harness.save(figure, folder / "beyond_gpu_rounds.svg")


def draw_warps(rows: list[Row], folder: Path) -> None:
    """The share of its entries that a warp reads in each round: mean and standard deviation."""
    shares = {row["graph"]: row["shares_of_warps"] for row in rows if "shares_of_warps" in row}
    if not shares:
        return
    figure, axes = harness.pyplot().subplots(figsize=(6, 3.5))
    for graph, values in shares.items():
        means, deviations = np.array(values).T
        places = np.linspace(0, 100, len(values))
        axes.errorbar(places, 100 * means, 100 * deviations, fmt="o-", capsize=3, label=graph)
    axes.axhline(20, color="grey", linewidth=0.8)
    axes.set_xlabel("iteration, % of all")
    axes.set_ylabel("entries read by a warp, %")
    axes.legend()
    harness.save(figure, folder / "beyond_gpu_warps.svg")


def _scaling_rows(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["what"] == SCALING]


def draw_scaling(rows: list[Row], folder: Path) -> None:
    """Milliseconds by partitions, a line for each number of batches."""
    found = _scaling_rows(rows)
    if not found:
        return
    figure, both = harness.pyplot().subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for axes, lists, title in zip(both, *SCHEMES, strict=True):
        for batches in sorted({row["batches"] for row in found}):
            line = [row for row in found if (row["lists"], row["batches"]) == (lists, batches)]
            line.sort(key=lambda row: row["partitions"])
            axes.semilogy(
                [row["partitions"] for row in line], [1e3 * row["seconds"] for row in line], "o-",
                label=f"{batches} batches",
            )  # fmt: skip
        axes.set_title(f"{found[0]['graph']}, {title}")
        axes.set_xlabel("partitions of one device")
        axes.set_xticks(sorted({row["partitions"] for row in found}))
    both[0].set_ylabel("ms")
    both[0].legend()
    harness.save(figure, folder / "beyond_gpu_scaling.svg")


def draw_phases(rows: list[Row], folder: Path) -> None:
    """What the time of a matching in 10 batches is spent on; transfers run beside the rest."""
    found = [row for row in _scaling_rows(rows) if row["batches"] == 10]
    if not found:
        return
    figure, both = harness.pyplot().subplots(1, 2, figsize=(9, 3.5))
    for axes, lists, title in zip(both, *SCHEMES, strict=True):
        drawn = [row for row in found if row["lists"] == lists]
        names, height = [str(row["partitions"]) for row in drawn], np.zeros(len(drawn))
        for phase in PHASES:
            values = _milliseconds(drawn, phase)
            axes.bar(names, values, bottom=height, label=phase)
            height += values
        axes.plot(names, _milliseconds(drawn, "transfer"), "k_", markersize=24, label="transfer")
        axes.set_title(f"{found[0]['graph']}, {title}")
        axes.set_xlabel("partitions of one device")
    both[0].set_ylabel("ms")
    both[0].margins(y=0.4)  # room for the legend
    both[0].legend(ncols=2, loc="upper left")
    harness.save(figure, folder / "beyond_gpu_phases.svg")


def _milliseconds(rows: list[Row], phase: str) -> Any:
    return np.array([1e3 * row["phases"].get(phase, 0.0) for row in rows])


def draw_occupancy(rows: list[Row], folder: Path) -> None:
    """Warps that are active, of those that a device can hold, by round."""
    if not rows:
        return
    figure, axes = harness.pyplot().subplots(figsize=(6, 3.5))
    for row in rows:
        places = np.linspace(0, 100, len(row["rounds"]))
        for phase, style in (("pointing", "o-"), ("matching", "s--")):
            values = [one.get(phase, np.nan) for one in row["rounds"]]
            axes.plot(places, values, style, label=f"{row['graph']}, {phase}")
    axes.set_ylim(0, 100)
    axes.set_xlabel("iteration, % of all")
    axes.set_ylabel("active warps, %")
    axes.legend()
    harness.save(figure, folder / "beyond_gpu_occupancy.svg")


def write_matched(rows: list[Row], folder: Path) -> None:
    """Table 4.4: millions of edges that are matched in a second."""
    lines = ["graph,method,entries in millions,ms,million edges matched in a second"]
    for row in rows:
        if "matched_per_second" not in row:
            continue
        method = row["what"].partition(",")[0]
        figures = (row["entries"] / 1e6, 1e3 * row["value"], row["matched_per_second"] / 1e6)
        lines.append(f"{row['graph']},{method},{figures[0]:.0f},{figures[1]:.1f},{figures[2]:.0f}")
    _write(lines, folder, "beyond_gpu_table_4_4.csv")


def _write(lines: list[str], folder: Path, name: str) -> None:
    """A table, where it has more than its head."""
    if len(lines) > 1:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(lines) + "\n")


def write_passes(rows: list[Row], folder: Path) -> None:
    """The first pass and the whole matching of a prepared graph, in units of T."""
    first = {row["batches"]: row["value"] for row in rows if row["what"] == "first pass, in T"}
    lines = ["memory and batches,lists,batches,first pass,whole matching"]
    for row in rows:
        if row["what"] == "whole matching, in T":
            name = "a quarter of the graph" if "bar" in row else f"``batches={row['batches']}``"
            both = f"{first[row['batches']]:.3f},{row['value']:.3f}"
            lines.append(f"{name},{row['lists']},{row['batches']},{both}")
    _write(lines, folder, "beyond_gpu_passes.csv")


def write_others(rows: list[Row], folder: Path) -> None:
    """The same graph otherwise: on the host, used once, on the device."""
    value = {row["what"]: row["value"] for row in rows}
    threads = {row["what"]: row["threads"] for row in rows if "threads" in row}
    on_device, on_cpu = "dominant on the GPU, ms", "whole matching on the CPU, in T"
    once, joined = "whole matching, not pinned, in T", "components, in copies of indices"
    lines = ["what,time"]
    if once in value:
        lines.append(f'"used once, not pinned, at a quarter of the graph",{value[once]:.1f} T')
    if on_cpu in value:
        lines.append(f"on the CPU with {threads[on_cpu]} threads,{value[on_cpu]:.1f} T")
    if joined in value:
        lines.append(f"components,{value[joined]:.2f} copies of the columns")
    if on_device in value:
        lines.append(f"on the device: ``dominant``,{value[on_device]:.0f} ms")
        for partitions in (1, 4):
            engine = f"``Devices(({', '.join('0' * partitions)}{',' * (partitions == 1)}))``"
            took = value[f"{partitions} resident, of dominant"] * value[on_device]
            lines.append(f'"on the device: {engine}",{took:.0f} ms')
    _write(lines, folder, "beyond_gpu_others.csv")


def draw(found: dict[str, Any], folder: Path) -> None:
    """All pictures and tables that the figures suffice for."""
    write_matched(found.get("timed", []), folder)
    write_passes(found.get("timed", []), folder)
    write_others(found.get("timed", []), folder)
    draw_occupancy(found.get("occupancy", []), folder)
    draw_rounds(found.get("counted", []), folder)
    draw_warps(found.get("counted", []), folder)
    draw_scaling(found.get("timed", []), folder)
    draw_phases(found.get("timed", []), folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--pictures", type=Path, required=True)
    given = parser.parse_args()
    together: dict[str, Any] = {"counted": [], "timed": [], "occupancy": []}
    for file in given.files:
        read = json.loads(file.read_text())
        for part in together:
            together[part] += read.get(part, [])
    draw(together, given.pictures)


if __name__ == "__main__":
    main()
