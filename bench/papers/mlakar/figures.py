"""Tables, pictures and parts of pages from what bench.papers.mlakar.table1 has measured.

rcm_table_1.csv          table I, counts alone
rcm_times.txt            part of the page: milliseconds, ratios to SciPy, figures 2, 4 and 5
rcm_stages.txt           part of the page: what batches did (figure 3), shares of stages (6)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench import harness, papers
from bench.papers.mlakar.printed import PAPER

TO_CPU = "copies to the CPU"
BATCH_COUNTS = ("generated", "dequeued", "executed")
STAGES = ("discover", "sort", "rediscover", "signal", "output", "stall")
# average shares in figure 6 of the paper, as far as its text says them
PAPER_STAGES = "88 % discover with 2 threads; 48 % stall with 12, 65 % with 24; rediscover 1.3 %"

Results = dict[str, Any]


def write(results: Results, folder: Path, source: Path | None = None) -> None:
    """All that can be made of the results."""
    head = ["matrix", "rows", "entries", "largest degree", "front", "before", "after", "SciPy"]
    papers.table(folder / "rcm_table_1.csv", head, [_line(n, row) for n, row in results.items()])
    draw_bandwidths(results, folder / "rcm_table_1.svg")
    timed = {name: row for name, row in results.items() if "seconds, cpu" in row}
    if timed:
        draw_speedups(timed, folder / "rcm_figure_2.svg")
        draw_parts(timed, folder / "rcm_figure_4.svg")
        draw_threads(timed, folder / "rcm_figure_5.svg")
        text = times_page(timed, papers.machine(source, "cpu"), papers.machine(source, "gpu"))
        (folder / "rcm_times.txt").write_text(text, encoding="utf-8")
    staged = {name: row["stages"] for name, row in results.items() if row.get("stages")}
    if staged:
        draw_batches(staged, folder / "rcm_figure_3.svg")
        draw_stages(staged, folder / "rcm_figure_6.svg")
        text = stages_page(staged, papers.machine(source, "cpu"))
        (folder / "rcm_stages.txt").write_text(text, encoding="utf-8")


def _line(name: str, row: dict[str, Any]) -> list[str]:
    paper = PAPER.get(name)
    numbers = [f"{row[key]:,}" for key in ("rows", "entries", "largest degree")]
    for key in ("front", "before", "after"):
        printed = f" ({getattr(paper, key):,})" if paper else ""
        numbers.append(f"{row[key]:,.0f}{printed}")
    shown = "ecology1 (a grid instead)" if name == "ecology1" else name
    return [shown, *numbers, f"{row['scipy']:,}"]


def best(row: dict[str, Any], method: str) -> tuple[float, int]:
    """Least seconds of a method, and with how many threads, as the paper's table has it."""
    found = [
        (seconds, int(name.split(", ")[1]))
        for name, seconds in row["seconds, cpu"].items()
        if name.startswith(f"{method}, ")
    ]
    return min(found)


def times_page(timed: Results, cpu: str, gpu: str) -> str:
    """Milliseconds, and how many times faster than SciPy."""
    methods = ("serial", "leveled", "unordered", "batch_basic", "batch", "auto")
    first, second = [], []
    for name, row in timed.items():
        seconds = row["seconds, cpu"]
        scipy = seconds["scipy"]
        cells = [name, f"{1e3 * scipy:.2f}"]
        for method in methods:
            taken, count = best(row, method)
            cells.append(f"{1e3 * taken:.2f} ({count})")
        first.append(cells)
        given = best(row, "auto")[0]
        ratios = (given, seconds["default"], seconds["raw"])
        second.append([name, *(f"{scipy / one:.2f}" for one in ratios)])
    parts = [
        papers.page_table(
            "Milliseconds from a given start (threads of the best)",
            ["matrix", "SciPy", *methods],
            first,
        ),
        papers.page_table(
            "Times as fast as SciPy, which chooses the vertex of least degree",
            ["matrix", "start given", "default call, prepared graph", "default call, raw matrix"],
            second,
        ),
    ]
    if cpu:
        parts.append(f"Both are measured on {cpu}.\n\n")
    on_gpu = {name: row for name, row in timed.items() if "seconds, gpu" in row}
    if on_gpu:
        parts.append(gpu_table(on_gpu, gpu))
    parts += [
        papers.page_picture("rcm_figure_2.svg", "Speed-up of each method over SciPy"),
        papers.page_picture("rcm_figure_4.svg", "Order, search for a start, and copies"),
        papers.page_picture("rcm_figure_5.svg", "Speed-up over serial against threads"),
        "The pictures are figures 2, 4 and 5 of [5]_, with SciPy in place of HSL. In the second "
        "one, the bars *default* and *GPU default* are calls that search for their start: what "
        "they take beyond an order from a given start is the search. Of other methods the search "
        "is timed by itself. Copies are those of the graph to the other side and of the order "
        "back: for a method of the CPU if the matrix lies on the GPU, and for one of the GPU, "
        "where they were timed, if it does not.\n",
    ]
    return "".join(parts)


def gpu_table(timed: Results, machine: str) -> str:
    """Milliseconds on the GPU, and how many times faster than SciPy.

    Copies of the graph to the GPU, if they were timed, else those from there.
    """
    both = [row["seconds, gpu"] for row in timed.values()]
    copies = "copies to the GPU" if all("copies to the GPU" in one for one in both) else TO_CPU
    keys = ("gpu leveled", "gpu batch", "gpu search", "gpu default", copies)
    rows = []
    for name, row in timed.items():
        seconds, scipy, default = (
            row["seconds, gpu"],
            _scipy(row),
            row["seconds, gpu"]["gpu default"],
        )
        times = (seconds["gpu leveled"], default, default + seconds[copies])
        gains = [f"{scipy / one:.2f}" for one in times]
        rows.append([name, _ms(scipy), *(_ms(seconds[key]) for key in keys), *gains])
    head = [
        "matrix", "SciPy", "leveled, start given", "batch, start given", "search", "default call",
        copies, "SciPy / start given", "SciPy / default", "SciPy / default with copies",
    ]  # fmt: skip
    same = all("scipy" in one for one in both)
    which = "on the same machine" if same else "as in the table before"
    title = f"The GPU: milliseconds, and times as fast as SciPy, {which}"
    where = f"Measured on {machine}.\n\n" if machine else ""
    return papers.page_table(title, head, rows) + where


def _scipy(row: dict[str, Any]) -> float:
    """SciPy's seconds beside the GPU; if they were not timed there, those beside the CPU."""
    seconds: float = row["seconds, gpu"].get("scipy", row["seconds, cpu"]["scipy"])
    return seconds


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"


def stages_page(staged: Results, machine: str) -> str:
    """What became of batches at the largest number of threads."""
    rows = []
    for name, found in staged.items():
        most = found[max(found, key=int)]
        rows.append([name, *(f"{most[key]:,}" for key in (*BATCH_COUNTS, "empty"))])
    threads = max(int(count) for found in staged.values() for count in found)
    title = f"Batches of ``batch`` with {threads} threads"
    parts = [
        papers.page_table(title, ["matrix", *BATCH_COUNTS, "empty"], rows),
        papers.page_picture("rcm_figure_3.svg", "Batches generated, dequeued and executed"),
        papers.page_picture("rcm_figure_6.svg", "Shares of the time of each stage"),
        f"Measured on {machine or 'this machine'}. The pictures are figures 3 and 6 of [5]_, whose "
        f"text says: {PAPER_STAGES}.\n",
    ]
    return "".join(parts)


def _names(ax: Any, names: list[str]) -> None:
    ax.set_xticks(range(len(names)))
    ax.set_xticklabels(names, rotation=90, fontsize=7)


def draw_bandwidths(results: Results, path: Path) -> None:
    """Bandwidth after over that before, ours, SciPy's and the paper's."""
    fig, ax = harness.pyplot().subplots(figsize=(9, 3.2))
    names = list(results)
    for key, marker in (("after", "o"), ("scipy", "x")):
        label = "ours" if key == "after" else "SciPy"
        share = [results[name][key] / max(1, results[name]["before"]) for name in names]
        ax.plot(share, marker, label=label, fillstyle="none")
    known = [k for k, name in enumerate(names) if name in PAPER]
    share = [PAPER[names[k]].after / PAPER[names[k]].before for k in known]
    ax.plot(known, share, "k_", markersize=12, label="paper")
    ax.set(yscale="log", ylabel="bandwidth after / before")
    _names(ax, names)
    ax.legend(frameon=False, fontsize=8)
    harness.save(fig, path)


def draw_speedups(timed: Results, path: Path) -> None:
    """Figure 2, over SciPy where the paper has HSL."""
    fig, ax = harness.pyplot().subplots(figsize=(9, 3.6))
    names = list(timed)
    for method in ("serial", "leveled", "unordered", "batch_basic", "batch", "auto"):
        gain = [row["seconds, cpu"]["scipy"] / best(row, method)[0] for row in timed.values()]
        ax.plot(gain, "o", markersize=4, label=method)
    for method in ("gpu leveled", "gpu batch"):
        at = [k for k, name in enumerate(names) if "seconds, gpu" in timed[name]]
        rows = [timed[names[k]] for k in at]
        gain = [_scipy(row) / row["seconds, gpu"][method] for row in rows]
        if at:
            ax.plot(at, gain, "^", markersize=4, label=method)
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.set(yscale="log", ylabel="times as fast as SciPy")
    _names(ax, names)
    ax.legend(ncols=4, frameon=False, fontsize=7)
    harness.save(fig, path)


def bars(row: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Figure 4: seconds of the order, of the search for its start, and of copies, of each bar."""
    seconds, device = row["seconds, cpu"], row.get("seconds, gpu", {})
    to_cpu, to_gpu = (device.get(f"copies to the {side}", 0.0) for side in ("CPU", "GPU"))
    found = {"SciPy": (seconds["scipy"], 0.0, to_cpu)}
    for method in ("serial", "leveled", "batch"):
        found[method] = (best(row, method)[0], seconds["search"], to_cpu)
    given = min(best(row, "auto")[0], seconds["default"])
    found["default"] = (given, seconds["default"] - given, to_cpu)
    if device:
        found["GPU batch"] = (device["gpu batch"], device["gpu search"], to_gpu)
        given = min(device["gpu leveled"], device["gpu default"])
        found["GPU default"] = (given, device["gpu default"] - given, to_gpu)
    return found


def draw_parts(timed: Results, path: Path) -> None:
    """Figure 4: the order, the search for its start, and the copies between CPU and GPU."""
    plt = harness.pyplot()
    columns = 4
    lines = -(-len(timed) // columns)
    fig, axes = plt.subplots(lines, columns, figsize=(10, 2.1 * lines), squeeze=False)
    for ax in axes.flat[len(timed) :]:
        ax.set_axis_off()
    for ax, (name, row) in zip(axes.flat, timed.items(), strict=False):
        found = bars(row)
        names, parts = list(found), 1e3 * np.array(list(found.values()))
        left = np.zeros(len(names))
        for k, label in enumerate(("order", "search", "copies")):
            if parts[:, k].any():
                ax.barh(names, parts[:, k], left=left, label=label, color=f"C{k}")
            left += parts[:, k]
        ax.set_title(name, fontsize=8)
        ax.tick_params(labelsize=6)
        ax.invert_yaxis()
    axes[0, 0].legend(fontsize=6, frameon=False)
    fig.supxlabel("milliseconds", fontsize=8)
    fig.tight_layout()
    harness.save(fig, path)


def draw_threads(timed: Results, path: Path) -> None:
    """Figure 5: `auto` and ``batch`` over ``serial`` at each number of threads."""
    plt = harness.pyplot()
    fig, axes = plt.subplots(1, 2, figsize=(9, 0.28 * len(timed) + 1.4), sharey=True)
    names = sorted(timed, key=lambda name: timed[name]["entries"])
    for ax, method in zip(axes, ("auto", "batch"), strict=True):
        keys = [k for k in timed[names[0]]["seconds, cpu"] if k.startswith(f"{method}, ")]
        rows = [timed[name]["seconds, cpu"] for name in names]
        gain = np.array([[row["serial, 1"] / row[key] for key in keys] for row in rows])
        ax.imshow(np.log2(gain), cmap="RdYlGn", vmin=-2, vmax=2, aspect="auto")
        for (y, x), value in np.ndenumerate(gain):
            ax.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=7)
        ax.set_xticks(range(len(keys)), [key.split(", ")[1] for key in keys])
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.set(xlabel="threads", title=f"{method} / serial")
    fig.tight_layout()
    harness.save(fig, path)


def draw_batches(staged: Results, path: Path) -> None:
    """Figure 3: batches generated, dequeued, executed, at the largest number of threads."""
    fig, ax = harness.pyplot().subplots(figsize=(9, 3.2))
    names = list(staged)
    found = [staged[name][max(staged[name], key=int)] for name in names]
    for k, key in enumerate(BATCH_COUNTS):
        values = [max(1, row[key]) for row in found]
        ax.bar(np.arange(len(names)) + 0.27 * (k - 1), values, 0.25, label=key)
    ax.set(yscale="log", ylabel="batches")
    _names(ax, names)
    ax.legend(frameon=False, fontsize=8)
    harness.save(fig, path)


def draw_stages(staged: Results, path: Path) -> None:
    """Figure 6: the share of each stage, averaged over the matrices, for each thread count."""
    fig, ax = harness.pyplot().subplots(figsize=(8, 2.6))
    counts = sorted({count for row in staged.values() for count in row}, key=int)
    left = np.zeros(len(counts))
    for stage in STAGES:
        part = [
            np.mean([row[count][stage] for row in staged.values() if count in row])
            for count in counts
        ]
        ax.barh([f"{count} threads" for count in counts], part, left=left, label=stage)
        left += part
    ax.set(xlabel="share of the time, mean of the matrices", xlim=(0, 1))
    ax.legend(ncols=6, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8)
    harness.save(fig, path)
