"""Joins of the collections in $MATCHWOOD_DATA by every method, one row each.

HG solves every pair, EV stops as soon as a pair is decided, GD, LD and PS are the approximate
matchings, `certified` is the default of `fuzzy_join`.  One thread, delta 0.7.  Methods take
turns, and the best turn counts.  The whole chapter, with verification alone, samples, memory and
edit similarity, is `python -m bench.papers.mandulak.join` in a clone.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import matchwood
from matchwood.report.show import blank_table, milliseconds

# The collections of the benchmarks: real ones from $MATCHWOOD_DATA, those that are there.


SEED = 1
# sets that take part, so that all methods take minutes together: drawn once, by SEED
MOST_SETS = {"BMS-WebView-1": 20_000, "kosarak head": 20_000, "mushroom": 4_000,
             "Debian dependencies": 20_000}  # fmt: skip


class Data(NamedTuple):
    """Records of one or two sides, and pairs that are known to be the same where they are known."""

    left: list[list[str]]
    right: list[list[str]] | None = None
    truth: set[tuple[int, int]] | None = None


def folder() -> Path:
    """The folder of the collections, whether it exists or not."""
    return Path(os.environ.get("MATCHWOOD_DATA", "data")) / "sets"


def _lines(name: str) -> list[str]:
    return gzip.decompress((folder() / name).read_bytes()).decode("utf-8", "replace").splitlines()


def _items(name: str) -> list[list[str]]:
    return [line.split() for line in _lines(name)]


def yelp() -> Data:
    return Data([line.split(";") for line in _lines("tokenjoin_yelp_sample.csv.gz")])


def debian() -> Data:
    rows = _lines("debian12_depends_sets.tsv.gz")
    return Data([line.partition("\t")[2].split(";") for line in rows])


def trec(kind: str) -> Data:
    sides = [_items(f"trec{kind}{side}10Random.txt.gz") for side in "RS"]
    return Data(sides[0], sides[1])


def _table(name: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO("\n".join(_lines(name))), delimiter="|"))


def matched(tables: str, one: str, other: str) -> Data:
    """Two tables of entities: the words of all their cells, and the pairs that are the same."""
    sides, places = [], []
    for name in (one, other):
        _, *rows = _table(f"pyjedai_{tables}_{name}.csv.gz")
        sides.append([" ".join(row[1:]).lower().split() for row in rows])
        places.append({row[0]: i for i, row in enumerate(rows)})
    _, *pairs = _table(f"pyjedai_{tables}_gt.csv.gz")
    known = {(places[0][a], places[1][b]) for a, b in pairs if a in places[0] and b in places[1]}
    return Data(sides[0], sides[1], known)


MAKERS: dict[str, Any] = {
    "Yelp sample": yelp,
    "Debian dependencies": debian,
    "BMS-WebView-1": lambda: Data(_items("BMS-WebView-1.dat.gz")),
    "kosarak head": lambda: Data(_items("kosarak_head.dat.gz")),
    "mushroom": lambda: Data(_items("mushroom_closedoverlap.dat.gz")),
    "TREC titles": lambda: trec("Titles"),
    "TREC abstracts": lambda: trec("Abstracts"),
    "Abt-Buy": lambda: matched("D2", "abt", "buy"),
    "IMDB-TMDB": lambda: matched("D5", "imdb", "tmdb"),
}


def read(name: str) -> Data | None:
    """The collection, or None where its file is not there."""
    try:
        return MAKERS[name]()  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None


def that_takes_part(name: str) -> Data | None:
    """The collection, cut to the sets that take part."""
    data, most = read(name), MOST_SETS.get(name, 1 << 40)
    return data if data is None or len(data.left) <= most else cut(data, most, SEED)


def sample(data: Data, percent: int, seed: int) -> Data:
    """The given percentage of the records of each side."""
    return cut(data, max(len(data.left), len(data.right or [])) * percent // 100, seed)


def cut(data: Data, most: int, seed: int) -> Data:
    """At most `most` records of the larger side, and the same part of the other."""
    rng = np.random.default_rng(seed)
    longest = max(len(data.left), len(data.right or []))

    def part(rows: list[list[str]]) -> list[list[str]]:
        chosen = rng.permutation(len(rows))[: -(-len(rows) * most // longest)]
        return [rows[i] for i in np.sort(chosen)]

    return Data(part(data.left), None if data.right is None else part(data.right))


# The benchmark


METHODS = {
    "HG": "exact", "EV": "early", "GD": "greedy", "LD": "dominant", "PS": "streaming",
    "certified": "certified",
}  # fmt: skip
APPROXIMATE = ("GD", "LD", "PS")
DELTA = 0.7


def run(repeats: int, say: Callable[[str], object] = lambda _: None) -> list[dict[str, Any]]:
    """A row for each collection that is there."""
    found = []
    for name in MAKERS:
        data = that_takes_part(name)
        if data is not None:
            say(f"join of {name}")
            found.append(_row(name, data, repeats))
    return found


def _row(name: str, data: Data, repeats: int) -> dict[str, Any]:
    sides = [matchwood.collection(side) for side in (data.left, data.right) if side is not None]

    def join(method: str, mode: str = "weight") -> matchwood.Pairs:
        options: dict[str, Any] = {"verify": method, "mode": mode, "delta": DELTA, "threads": 1}
        return matchwood.fuzzy_join(*sides, **options)

    answers = {label: join(method) for label, method in METHODS.items()}
    _compare(name, answers)
    exact = answers["HG"]
    bounds = {label: len(join(METHODS[label], "bound")) for label in APPROXIMATE}
    seconds = dict.fromkeys(METHODS, np.inf)
    for _ in range(repeats):
        for label, method in METHODS.items():
            start = time.process_time()
            join(method)
            seconds[label] = min(seconds[label], time.process_time() - start)
    return {
        "collection": name,
        "sets": sum(map(len, sides)),
        "pairs": len(exact),
        "verified": answers["certified"].stats["verified"],
        "solved_exactly": answers["certified"].stats["solved_exactly"],
        "seconds": seconds,
        "recall": {m: _ratio(len(answers[m]), len(exact)) for m in APPROXIMATE},
        "precision": {m: _ratio(len(exact), bounds[m]) for m in APPROXIMATE},
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _compare(name: str, answers: dict[str, matchwood.Pairs]) -> None:
    """`certified` has the bits of HG, EV its pairs; approximate methods report no false pair."""
    exact, keys = answers["HG"], _keys(answers["HG"])
    if not all(map(np.array_equal, exact, answers["certified"])):
        raise matchwood.CheckFailed(f"join of {name}: certified and HG differ")
    if not np.array_equal(keys, _keys(answers["EV"])):
        raise matchwood.CheckFailed(f"join of {name}: EV and HG have other pairs")
    for label in APPROXIMATE:
        if not np.isin(_keys(answers[label]), keys).all():
            raise matchwood.CheckFailed(f"join of {name}: {label} reports a false pair")


def _keys(pairs: matchwood.Pairs) -> np.ndarray:
    return pairs.left << 32 | pairs.right


def table(found: list[dict[str, Any]]) -> Any:
    """The rows as a table for the terminal."""
    if not found:
        return f"No collections in {folder()} (MATCHWOOD_DATA names the folder above it)."
    result = blank_table(f"whole joins by verification, 1 thread, delta {DELTA}")
    result.add_column("collection")
    for head in ("sets", "pairs", *METHODS, "least recall", "least precision"):
        result.add_column(head, justify="right")
    for r in found:
        result.add_row(
            r["collection"], f"{r['sets']:,}", f"{r['pairs']:,}",
            *(milliseconds(r["seconds"][label]) for label in METHODS),
            *(f"{min(r[kind].values()):.4f}" for kind in ("recall", "precision")),
        )  # fmt: skip
    return result


if __name__ == "__main__":
    from rich.console import Console

    Console().print(table(run(repeats=3, say=print)))
