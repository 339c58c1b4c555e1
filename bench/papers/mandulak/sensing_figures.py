"""Tables and pictures of sensing.py: the thesis' numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.papers.mandulak.sensing import BATCHES, FUNCTIONS, PACKETS, THESIS

Run = dict[str, Any]
REFERENCE_NAMES = {  # what the reference of the Anonymized Network Sensing Graph Challenge says
    "valid_packets": "n_packets",
    "unique_links": "n_links",
    "max_link_packets": "max_packets",
    "unique_sources": "n_sources",
    "max_source_packets": "max_source_packets",
    "max_source_fan_out": "max_fan_out",
    "unique_destinations": "n_destinations",
    "max_destination_packets": "max_destination_packets",
    "max_destination_fan_in": "max_fan_in",
}


def show(result: dict[str, Any]) -> None:
    for run in result["runs"]:
        machine = run["environment"]["machine"]
        where = machine["gpu"] if run["engine"] == "gpu" else machine["processor"]
        print(f"\n2^{run['exponent']} packets, {where}, {machine['cpus']} cores")
        table_quantities(run)
        table_times(run)
    table_rates(result)


def table_quantities(run: Run) -> None:
    print("Table 3.1, all nine quantities")
    for name, value in run["quantities"].items():
        theirs = FUNCTIONS.get(name, "not listed")
        print(f"  {REFERENCE_NAMES[name]:24} {value:>14,}   in the thesis: {theirs}")


def table_times(run: Run) -> None:
    """Figures 3.4 to 3.6 as numbers."""
    print("Figures 3.4, 3.5, 3.6: seconds, least of five runs (times the peer's)")
    print("  where                       batches  analysis         from packets     "
          "from a capture   from archives")  # fmt: skip
    peer = peer_of(run)
    for row in run["rows"]:
        cells = []
        for name in ("analysis_s", "packets_to_quantities_s", "end_to_end_s",
                     "archives_to_quantities_s"):  # fmt: skip
            if name in row:
                times = f"({peer[name] / row[name]:.1f}x)" if peer else ""
                cells.append(f"{row[name]:8.4f} {times:8}")
        print(f"  {row['where']:28} {row['batches']:6}  " + "".join(cells))
    sequential, best = THESIS["sequential reference"], THESIS["8 GPUs, 10 batches"]
    gain = sequential["analysis_s"] / best["analysis_s"]
    print(f"  the thesis, 2^30 packets: analysis {sequential['analysis_s']} s by the reference, "
          f"{best['analysis_s']} s on 8 GPUs with 10 batches ({gain:.0f}x)")  # fmt: skip


def peer_of(run: Run) -> dict[str, Any] | None:
    found = [row for row in run["rows"] if row["engine"] == "peer"]
    return found[0] if found else None


def table_rates(result: dict[str, Any]) -> None:
    """Table 3.2: the best rate of each number of batches."""
    print("\nTable 3.2, packets a second, end to end")
    print("  batches        thesis, 8 GPUs     ours   where")
    sequential = THESIS["sequential reference"]["packets_per_s"]
    peers = [row for run in result["runs"] if (row := peer_of(run))]
    rate = max((row["packets_per_s"] for row in peers), default=None)
    told = "not installed" if rate is None else f"{rate:,.0f}"
    print(f"  sequential  {sequential:>16,}  {told:>14}  python-graphblas, 1 thread")
    for batches in BATCHES:
        rows = [
            row
            for run in result["runs"]
            for row in run["rows"]
            if row["batches"] == batches and row["engine"] != "peer"
        ]
        best = max(rows, key=lambda row: row["packets_per_s"])
        (theirs,) = (t["packets_per_s"] for t in THESIS.values() if t.get("batches") == batches)
        ours = f"{best['packets_per_s']:>14,.0f}  {best['where']}"
        print(f"  {batches:10}  {theirs:>16,}  {ours}")


def draw(result: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "matchwood"
    analysis = {
        "reference, sequential": PACKETS / THESIS["sequential reference"]["analysis_s"],
        "8 GPUs, 10 batches": PACKETS / THESIS["8 GPUs, 10 batches"]["analysis_s"],
    }
    whole = {
        "reference, sequential": THESIS["sequential reference"]["packets_per_s"],
        "8 GPUs, 1 batch": THESIS["8 GPUs, 1 batch"]["packets_per_s"],
    }
    sorted_too = "packets, sorting included"
    analysed = {"prepared matrix": _rate("analysis_s")}
    analysed |= _by_batches(_rate("packets_to_quantities_s"), sorted_too)
    _bars(result, folder / "sensing_analysis.svg", "packets a second", analysis, analysed)
    gains = {"prepared matrix": _gain("analysis_s")}
    gains |= _by_batches(_gain("packets_to_quantities_s"), sorted_too)
    best = analysis["8 GPUs, 10 batches"] / analysis["reference, sequential"]
    theirs = {"8 GPUs, 10 batches, times the reference": best}
    _bars(result, folder / "sensing_speedup.svg", "times python-graphblas", theirs, gains)
    ends = _by_batches(_rate("end_to_end_s"), "capture")
    ends["archives"] = _rate("archives_to_quantities_s")
    _bars(result, folder / "sensing_end_to_end.svg", "packets a second", whole, ends)


def _rate(name: str) -> Any:
    return lambda run, row: row["packets"] / row[name] if name in row else None


def _gain(name: str) -> Any:
    def gain(run: Run, row: dict[str, Any]) -> float | None:
        peer = peer_of(run)
        return peer[name] / row[name] if peer else None

    return gain


def _by_batches(value: Any, words: str) -> dict[str, Any]:
    """A bar for each number of batches."""

    def of(batches: int) -> Any:
        return lambda run, row: value(run, row) if row["batches"] == batches else None

    return {f"{words}, {k} batch{'es' if k > 1 else ''}": of(k) for k in BATCHES}


def _bars(
    result: dict[str, Any], path: Path, label: str, thesis: dict[str, float], series: dict[str, Any]
) -> None:
    """A group of bars for each place, a bar for each series, and the thesis as lines."""
    import matplotlib.pyplot as plt

    groups: dict[str, list[tuple[Run, dict[str, Any]]]] = {}
    for run in result["runs"]:
        for row in run["rows"]:
            if any(value(run, row) is not None for value in series.values()):
                place = row["where"].replace(", ", ",\n")
                groups.setdefault(f"{place}\n2^{run['exponent']}", []).append((run, row))
    fig, ax = plt.subplots(figsize=(8, 3.8))
    width = 0.8 / len(series)
    for k, (name, value) in enumerate(series.items()):
        at, heights = [], []
        for number, rows in enumerate(groups.values()):
            found = [height for run, row in rows if (height := value(run, row)) is not None]
            if found:
                at.append(number + (k - (len(series) - 1) / 2) * width)
                heights.append(max(found))
        ax.bar(at, heights, width, label=name)
    for (name, value), style in zip(thesis.items(), ("--", ":"), strict=False):
        ax.axhline(value, color="0.3", linestyle=style, linewidth=1, label=f"thesis: {name}")
    ax.set(xticks=range(len(groups)), ylabel=label, yscale="log")
    ax.set_xticklabels(groups)
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8)
    fig.tight_layout()
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
