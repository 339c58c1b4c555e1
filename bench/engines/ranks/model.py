"""The time of a run on ranks, explained by what the ranks count.

    T = entries / rate  +  bytes / bandwidth  +  messages * latency

`entries` are those of the fullest rank, `bytes` what the busiest rank received.  `messages` are
those that wait for one another, log2(ranks) in each collective: the others travel meanwhile.  The
three numbers of a machine are fitted, for each algorithm, to runs on 1 to 9 ranks; the run on 16 is
then predicted (bar: within 25 %).  Where there are more ranks than CPUs, they take turns: all three
terms are longer by that factor.

    mpiexec -n 16 python -m bench.papers.mandulak.ranks bars --scale 20 --json rows.json
    python -m bench.engines.ranks.model rows.json [--plot model.svg]
    python -m bench.engines.ranks.model            only the prediction for the thesis' machine

The second part takes the counts of the algorithms, which are known without a run, to the machine of
the thesis (V100 GPUs, six of which share an EDR link) and puts the result beside what it reports.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from bench import harness

FITTED = 9  # ranks, at most, of the runs that the model is fitted to
BAR = 0.25


class Counts(NamedTuple):
    """What one rank does in a run."""

    entries: float
    bytes: float
    messages: float


class Machine(NamedTuple):
    """Entries a second, bytes a second, seconds a message."""

    rate: float
    bandwidth: float
    latency: float

    def seconds(self, counts: Counts) -> float:
        return (
            counts.entries / self.rate
            + counts.bytes / self.bandwidth
            + counts.messages * self.latency
        )


def crowding(ranks: int, cpus: int) -> float:
    """By how much longer things take where ranks share CPUs."""
    return max(1.0, ranks / cpus)


def counts_of(row: dict[str, Any]) -> Counts:
    return Counts(row["entries"], row["received"], row["steps"])


def fit(rows: Iterable[dict[str, Any]], cpus: int) -> Machine:
    """The machine that explains these rows best; relative errors count, no number is negative."""
    chosen = list(rows)
    table = np.array([counts_of(row) for row in chosen], float)
    times = np.array([row["seconds"] for row in chosen])
    table *= np.array([crowding(row["ranks"], cpus) for row in chosen])[:, None]
    scale = table.max(axis=0)
    scale[scale == 0] = 1
    found, _ = nnls(table / scale / times[:, None], np.ones(times.size))
    per_entry, per_byte, per_message = found / scale

    def inverse(value: float) -> float:
        return 1 / value if value > 0 else math.inf

    return Machine(inverse(per_entry), inverse(per_byte), float(per_message))


def predicted(machine: Machine, row: dict[str, Any], cpus: int) -> float:
    """The time of a row by the model."""
    return crowding(row["ranks"], cpus) * machine.seconds(counts_of(row))


def judge(rows: list[dict[str, Any]], cpus: int) -> list[dict[str, Any]]:
    """Each row with its predicted time; fitted are those on few ranks."""
    found = []
    for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
        own = [row for row in rows if row["algorithm"] == algorithm]
        machine = fit((row for row in own if row["ranks"] <= FITTED), cpus)
        for row in own:
            time = predicted(machine, row, cpus)
            found.append({**row, "predicted": time, "off": time / row["seconds"] - 1})
    return found


# The machine of the thesis: AiMOS, nodes with six V100 and one EDR link, staged through the host.

AIMOS = Machine(
    rate=4e9,  # entries a second: a gather of 8 bytes for each, of 900 GB/s in sectors of 32 bytes
    bandwidth=12.5e9 / 6 * 0.8,  # EDR is 100 Gbit/s; about 0.8 of it is had
    latency=30e-6,  # NCCL 2.10 from GPU to GPU through the CPU
)
FULLEST = 1.2  # entries of the fullest rank over the mean, R-MAT in the layout of the thesis
ITERATIONS = 20
VALUE = 8  # bytes of a state


class Graph(NamedTuple):
    """A graph of the thesis (table 6.4): vertices, and edges, which are stored both ways."""

    name: str
    vertices: float
    edges: float


GRAPHS = (
    Graph("twitter-2010", 41e6, 1.4e9),
    Graph("com-friendster", 65e6, 1.8e9),
    Graph("web-ClueWeb09", 1.7e9, 7.9e9),
    Graph("gsh-2015", 988e6, 33e9),
)
WDC = Graph("WDC12", 3.5e9, 128e9)


def pagerank_counts(graph: Graph, R: int, C: int, *, thesis: bool, iterations: int = 20) -> Counts:
    """Of a run of PageRank.  The thesis: an allreduce in the row, a broadcast in the column."""
    n, p = graph.vertices, R * C
    if thesis:
        words = 2 * (n / R) * (C - 1) / C + (n / C if R > 1 else 0)
    else:
        words = (n / R) * (C - 1) / C + (n / C) * (R - 1) / R
    entries = FULLEST * 2 * graph.edges / p
    return Counts(
        iterations * entries, iterations * words * VALUE, iterations * 2 * (R + C if p > 1 else 0)
    )


def push_counts(graph: Graph, R: int, C: int, rounds: int) -> Counts:
    """Of colours that are pushed, densely: an allreduce in the column, a broadcast in the row."""
    n, p = graph.vertices, R * C
    words = 2 * (n / C) * (R - 1) / R + (n / R if C > 1 else 0)
    entries = FULLEST * 2 * graph.edges / p
    return Counts(rounds * entries, rounds * words * VALUE, rounds * 2 * (R + C))


class Claim(NamedTuple):
    """What the thesis reports, from .. to, and what the model says."""

    what: str
    low: float
    high: float
    model: float

    @property
    def holds(self) -> bool:
        """Within 25 % of the reported range."""
        return self.low * (1 - BAR) <= self.model <= self.high * (1 + BAR)


def thesis_claims(machine: Machine = AIMOS) -> list[Claim]:
    """The results of sections 6.6.1 to 6.6.5 beside the model."""

    def seconds(graph: Graph, R: int, C: int) -> float:
        return machine.seconds(pagerank_counts(graph, R, C, thesis=True))

    claims = [
        Claim(f"{graph.name}: 256 ranks against 16, PageRank", 3, 4,
              seconds(graph, 4, 4) / seconds(graph, 16, 16))
        for graph in GRAPHS
    ]  # fmt: skip
    at_400 = seconds(WDC, 20, 20)
    claims.append(
        Claim("WDC12: 400 ranks against 100, PageRank", 2, 2, seconds(WDC, 10, 10) / at_400)
    )
    claims.append(
        Claim("WDC12 on 400 ranks, PageRank, G edges/s", 26, 123,
              ITERATIONS * WDC.edges / at_400 / 1e9)
    )  # fmt: skip
    square, flat = (
        machine.seconds(push_counts(GRAPHS[3], *shape, rounds=1)) for shape in ((16, 16), (32, 8))
    )
    claims.append(Claim("gsh-2015: (32, 8) against (16, 16), components", 1.4, 1.4, flat / square))
    return claims


def our_gain(machine: Machine = AIMOS) -> list[tuple[str, float]]:
    """The thesis' exchange over ours, PageRank, by the model."""
    return [
        (
            f"{graph.name}, {R}x{R}",
            machine.seconds(pagerank_counts(graph, R, R, thesis=True))
            / machine.seconds(pagerank_counts(graph, R, R, thesis=False)),
        )
        for graph, R in ((GRAPHS[0], 16), (GRAPHS[3], 16), (WDC, 10), (WDC, 20))
    ]


def plot(judged: list[dict[str, Any]], path: Path) -> None:
    """The thesis' machine; where rows were given, beside it their times and the model's."""
    count = 2 if judged else 1
    figure, places = harness.pyplot().subplots(1, count, figsize=(5 * count, 3.6), squeeze=False)
    if judged:
        _plot_rows(judged, places[0, 1])
    thesis = places[0, 0]
    for graph in (*GRAPHS, WDC):
        sides = [side for side in range(1, 21) if side > 9 or graph is not WDC]
        times = [AIMOS.seconds(pagerank_counts(graph, s, s, thesis=False)) for s in sides]
        thesis.plot([s * s for s in sides], times, label=graph.name)
    thesis.set(xscale="log", yscale="log", xlabel="V100 GPUs", ylabel="seconds, by the model")
    thesis.legend(fontsize=7)
    figure.tight_layout()
    harness.save(figure, path)


def _plot_rows(judged: list[dict[str, Any]], place: Any) -> None:
    """Measured times as points, the model as lines."""
    for algorithm in dict.fromkeys(row["algorithm"] for row in judged):
        own = [row for row in judged if row["algorithm"] == algorithm]
        ranks = [row["ranks"] for row in own]
        (line,) = place.plot(ranks, [row["predicted"] for row in own], label=algorithm)
        place.plot(ranks, [row["seconds"] for row in own], "o", color=line.get_color())
    place.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds")
    place.legend(fontsize=7)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="?", type=Path, help="what mandulak.ranks --json wrote")
    parser.add_argument("--plot", type=Path, help="draw it there (with matplotlib)")
    options = parser.parse_args()
    judged: list[dict[str, Any]] = []
    if options.rows is not None:
        content = json.loads(options.rows.read_text())
        cpus = int(content["environment"]["machine"]["cpus"])
        figures = content["figures"]
        rows = [row for name in ("strong", "complex", "bars") for row in figures.get(name, ())]
        judged = judge(rows, cpus)
        for row in judged:
            part = "within the bar" if abs(row["off"]) <= BAR else "OUTSIDE THE BAR"
            part = "fitted" if row["ranks"] <= FITTED else part
            print(
                f"{row['algorithm']:12} {row['ranks']:4} ranks  {row['seconds']:9.4f} s  model "
                f"{row['predicted']:9.4f} s  {row['off']:+7.1%}  {part}"
            )
    print("\nthe machine of the thesis")
    for claim in thesis_claims():
        reported = f"{claim.low:g}" if claim.low == claim.high else f"{claim.low:g}-{claim.high:g}"
        print(f"  {claim.what:52} reported {reported:>7}  model {claim.model:6.2f}")
    for what, gain in our_gain():
        print(f"  our exchange there, {what:32} {gain:5.2f}x")
    if options.plot is not None:
        plot(judged, options.plot)


if __name__ == "__main__":
    main()
