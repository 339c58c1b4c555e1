"""How many of a GPU's warps are active in each round of a matching that streams its rows.

``python -m bench.papers.mandulak.occupancy [--scale 20] [--mesh 64] [--json FILE]``

Figure 4.11 of the thesis: the occupancy of the kernels that point and of those that match, by
round, every batch passing in every round (``lists=0``).  Measured by NVIDIA's ncu, which starts
this module again for each graph; without ncu there is nothing to measure.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import harness

METRIC = "sm__warps_active.avg.pct_of_peak_sustained_active"
POINTING, MATCHING = ("pack_rows", "point_next"), ("settle_mutual", "requeue_own")
BATCHES = 10
Row = dict[str, Any]


def rounds_of(launches: Iterable[tuple[str, float]]) -> list[dict[str, float]]:
    """Mean per cent of each phase in each round, from (kernel, per cent) as they were launched.

    A round ends with the last launch that matches.
    """
    rounds: list[dict[str, list[float]]] = [{"pointing": [], "matching": []}]
    for kernel, per_cent in launches:
        phase = "pointing" if kernel in POINTING else "matching"
        if phase == "pointing" and rounds[-1]["matching"]:
            rounds.append({"pointing": [], "matching": []})
        rounds[-1][phase].append(per_cent)
    return [
        {phase: statistics.mean(values) for phase, values in one.items() if values}
        for one in rounds
    ]


def read_launches(lines: Iterable[str]) -> list[tuple[str, float]]:
    """(kernel, per cent) of what ncu writes as CSV; the line below the heads has the units."""
    table = csv.DictReader(line for line in lines if line.startswith('"'))
    found = []
    for row in table:
        if row["ID"]:
            name = row["Kernel Name"].removeprefix("void ").partition("<")[0].partition("(")[0]
            found.append((name, float(row[METRIC].replace(",", ""))))
    return found


def profiled(graph: str, size: int) -> list[tuple[str, float]]:
    """The launches of a matching, seen by ncu."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "launches.csv"
        kernels = "|".join((*POINTING, *MATCHING))
        command = [
            "ncu", "--csv", "--page", "raw", "--log-file", str(log), "--profile-from-start", "off",
            "--metrics", METRIC, "--kernel-name", f"regex:^({kernels})", "--target-processes",
            "all", sys.executable, "-m", __spec__.name if __spec__ else __name__,
            "--profiled", graph, "--size", str(size),
        ]  # fmt: skip
        subprocess.run(command, check=True)
        return read_launches(log.read_text().splitlines())


def match(graph: str, size: int) -> None:
    """What ncu looks at: the second of two calls."""
    import matchwood
    from bench.engines.devices import timed
    from matchwood import Devices, engines

    G = timed.on_host((timed.rmat if graph == "R-MAT" else timed.mesh)(size))
    profiler = engines.cupy().cuda.profiler
    for seen in (False, True):
        if seen:
            profiler.start()
        matchwood.weighted_matching(G, engine=Devices(batches=BATCHES, lists=0))
    profiler.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=int, default=20, help="of the R-MAT graph")
    parser.add_argument("--mesh", type=int, default=64, help="vertices of a side of the mesh")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profiled", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.profiled:
        return match(given.profiled, given.size)
    if shutil.which("ncu") is None:
        parser.error("there is no ncu")
    rows: list[Row] = []
    for graph, size in (("R-MAT", given.scale), ("mesh", given.mesh)):
        rounds = rounds_of(profiled(graph, size))
        rows.append({"graph": f"{graph} {size}{'^3' if graph == 'mesh' else ''}", "rounds": rounds})
        print(rows[-1], flush=True)
        if given.json:
            found = {"machine": harness.environment(), "occupancy": rows}
            given.json.write_text(json.dumps(found, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
