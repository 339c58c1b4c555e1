"""The tables of R. Cichra's thesis (figures 7.2 to 7.12), beside what bench.papers.cichra measured.

python -m bench.papers.cichra.beside [thesis.json methods.json ...] --out FOLDER [--sizes 8000]

printed.csv holds all 270 lines that the thesis prints: seconds on one thread (CPU), 16 threads
(HOST: a Xeon Gold 6134, 8 cores) and a V100 (GPU).  Files are those of ``python -m
bench.papers.cichra [--methods] -o FILE``; without any only the thesis' numbers are written.
Written are

    thesis_printed.csv    the thesis' seconds for the sizes asked for
    thesis_times.txt      part of the page: ours beside them, and thesis_times.svg
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from bench import harness, papers

PRINTED = Path(__file__).with_name("printed.csv")
ENGINES = ("CPU", "HOST", "GPU")
# what the thesis calls an implementation, the same algorithm here, and the default here
SAME = {
    "CC_base": ("CC fastsv", "CC"),
    "CC_opt2": ("CC fastsv", "CC"),
    "SCC": ("SCC forward_backward", "SCC"),
    "MIS_base": ("MIS luby_sampling", "MIS"),
    "MIS_lex3": ("MIS lexicographic", "MIS"),
    "MIS_opt3": ("MIS luby_sampling", "MIS"),
}
BASELINES = {"CC": "SciPy", "SCC": "SciPy", "MIS": "NetworKit"}

Key = tuple[str, float, int]  # implementation or problem, density, vertices


def printed() -> dict[Key, dict[str, float]]:
    """The thesis' seconds by implementation, density and size."""
    with PRINTED.open(encoding="utf-8") as source:
        return {
            (row["implementation"], float(row["density"]), int(row["vertices"])): {
                engine: float(row[engine]) for engine in ENGINES
            }
            for row in csv.DictReader(source)
        }


def measured(files: list[Path]) -> dict[Key, dict[str, float]]:
    """Our seconds, and those of other libraries, by problem (and method), density and size."""
    found: dict[Key, dict[str, float]] = {}
    for path in files:
        for row in json.loads(path.read_text(encoding="utf-8"))["results"]:
            if row["density"] is not None:
                key = (row["problem"], float(row["density"]), int(row["n"]))
                found.setdefault(key, {}).update(row["seconds"])
    return found


def machines(files: list[Path]) -> str:
    """On what ours were measured."""
    said = []
    for path in files:
        whole = json.loads(path.read_text(encoding="utf-8"))
        gpus = [gpu["name"] for gpu in whole["machine"]["GPU"][:1]]
        processor = whole["machine"]["CPU model name"]
        said.append(", ".join((f"{processor}, {whole['threads']} threads", *gpus)))
    return "; ".join(dict.fromkeys(said))


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def printed_rows(sizes: list[int]) -> list[list[str]]:
    rows = []
    for (name, density, n), seconds in printed().items():
        if n in sizes:
            cells = [_seconds(seconds[engine]) for engine in ENGINES]
            rows.append([name, f"{density:g}", f"{n:,}", *cells])
    return rows


def beside_rows(found: dict[Key, dict[str, float]], sizes: list[int]) -> list[list[str]]:
    """The thesis, the same algorithm here, the default here, and a sequential baseline."""
    rows = []
    for (name, density, n), theirs in printed().items():
        same, problem = SAME[name]
        ours = found.get((same, density, n), {})
        default = found.get((problem, density, n), {})
        if n not in sizes or not (ours or default):
            continue
        cells = [name, f"{density:g}", f"{n:,}"]
        for seconds in (theirs, ours, default):
            cells += [_seconds(seconds.get(engine)) for engine in ENGINES]
        cells.append(_seconds(default.get(BASELINES[problem])))
        rows.append(cells)
    return rows


HEAD = [
    "implementation", "density", "vertices", *(f"thesis, {engine}" for engine in ENGINES),
    *(f"same algorithm, {engine}" for engine in ENGINES),
    *(f"default, {engine}" for engine in ENGINES), "SciPy (CC, SCC) or NetworKit (MIS)",
]  # fmt: skip


def draw(found: dict[Key, dict[str, float]], path: Path) -> None:
    """Seconds against vertices, a panel for each implementation; density 0.65, else the densest."""
    theirs = printed()
    densest = max((density for _, density, _ in found), default=0.65)
    plt = harness.pyplot()
    fig, axes = plt.subplots(2, 3, figsize=(10, 5.6), sharex=True)
    for ax, (name, (same, _)) in zip(axes.flat, SAME.items(), strict=True):
        for engine, colour in zip(ENGINES, ("C0", "C1", "C2"), strict=True):
            for lines, who, style in ((theirs, name, "--"), (found, same, "o-")):
                points = sorted(
                    (n, seconds[engine])
                    for (which, density, n), seconds in lines.items()
                    if (which, density) == (who, densest) and engine in seconds
                )
                if points:
                    label = f"{'thesis' if style == '--' else 'here'}, {engine}"
                    ax.plot(
                        *zip(*points, strict=True), style, color=colour, markersize=3, label=label
                    )
        ax.set(yscale="log", title=f"{name}, density {densest:g}")
    axes[0, 0].legend(fontsize=6, frameon=False)
    fig.supxlabel("vertices", fontsize=9)
    fig.supylabel("seconds", fontsize=9)
    fig.tight_layout()
    harness.save(fig, path)


def write(files: list[Path], sizes: list[int], folder: Path) -> None:
    head = ["implementation", "density", "vertices", *ENGINES]
    papers.table(folder / "thesis_printed.csv", head, printed_rows(sizes))
    found = measured(files)
    draw(found, folder / "thesis_times.svg")
    if found:
        text = papers.page_table("Seconds", HEAD, beside_rows(found, sizes))
        text += (
            f"Measured on {machines(files)}; the graph is prepared, for the GPU it lies there.\n"
        )
        (folder / "thesis_times.txt").write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="results of bench.papers.cichra")
    parser.add_argument("--sizes", type=int, nargs="*", default=[8000])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    write(given.files, given.sizes, given.out)


if __name__ == "__main__":
    main()
