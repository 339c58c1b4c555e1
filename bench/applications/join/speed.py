"""The join against pytokenjoin, in turns; that runs in an environment of its own.

pytokenjoin pins old packages.  Make an environment and name its Python:

    python3.10 -m venv /tmp/tokenjoin && /tmp/tokenjoin/bin/pip install pytokenjoin==0.1.9
    MATCHWOOD_PYTOKENJOIN=/tmp/tokenjoin/bin/python python -m bench.applications.join.speed
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import time
from typing import Any

import matchwood
from bench import harness
from bench.applications.join import data as sets

DELTAS = (0.6, 0.7, 0.8)
YELP = {0.6: 239_215, 0.7: 134_356, 0.8: 90_621}
BAR_LISTS = {1: 80.0, 2: 130.0}  # times as fast as pytokenjoin, from lists, by threads
BAR_LOOPS = 60.0  # from a collection, its loops against ours

PEER = """
import contextlib, json, sys, time
import pandas
from pytokenjoin.jaccard.join_delta import TokenJoin
rows = json.load(open(sys.argv[1]))
frame = pandas.DataFrame({"id": range(len(rows)), "tags": [list(dict.fromkeys(r)) for r in rows]})
for line in sys.stdin:
    delta, algorithm = json.loads(line)
    start = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        found, log = TokenJoin().tokenjoin_self(frame, "id", "tags", delta=delta, posFilter=True,
                                                jointFilter=True, verification_alg=algorithm,
                                                keepLog=True)
    total = time.perf_counter() - start
    loops = sum(log.get(k, 0) for k in ("candgen_time", "candref_time", "candver_time"))
    print(json.dumps([total, loops, len(found), log.get("candver_time", 0)]), flush=True)
"""


class Peer:
    """pytokenjoin in its own process; None where it cannot be had, with the reason."""

    def __init__(self, rows: list[list[str]], folder: str) -> None:
        python = os.environ.get("MATCHWOOD_PYTOKENJOIN")
        self.reason = "" if python else "MATCHWOOD_PYTOKENJOIN names no Python with pytokenjoin"
        if self.reason:
            return
        path = os.path.join(folder, "rows.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file)
        self.process = subprocess.Popen(
            [python, "-c", PEER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def verification(self, delta: float, algorithm: int) -> float:
        """Seconds of its verification."""
        return float(self.join(delta, algorithm)[3])

    def join(self, delta: float, algorithm: int = 2) -> list[Any]:
        """Seconds in all and of its loops, its pairs, seconds of its verification."""
        self.process.stdin.write(json.dumps([delta, algorithm]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def best(call: Any, times: int = 7) -> float:
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def run() -> list[harness.Result]:
    """Seconds of ours and, where it is there, of pytokenjoin; verified by the known counts."""
    import tempfile

    data = sets.read("Yelp sample")
    if data is None:
        print(f"skipped: the Yelp sample is not in {sets.DATA}")
        return []
    results = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(data.left, folder)
        if peer.reason:
            print(f"pytokenjoin is skipped: {peer.reason}")
        prepared = matchwood.collection(data.left)
        for delta in DELTAS:
            found = matchwood.fuzzy_join(data.left, delta=delta)
            if len(found) != YELP[delta]:
                raise AssertionError(f"{len(found)} pairs at {delta}, and {YELP[delta]} are right")
            row: dict[str, Any] = {"title": f"fuzzy join, Yelp sample, {delta}"}
            for threads in BAR_LISTS:
                row[f"lists, {threads} threads"] = best(
                    functools.partial(matchwood.fuzzy_join, data.left, delta=delta, threads=threads)
                )
            row["collection, 1 thread"] = best(
                functools.partial(matchwood.fuzzy_join, prepared, delta=delta, threads=1)
            )
            if not peer.reason:
                total, loops, count, _ = min(peer.join(delta) for _ in range(2))
                row |= {"pytokenjoin": total, "its loops": loops, "its pairs": count}
                for threads, bar in BAR_LISTS.items():
                    ratio = total / row[f"lists, {threads} threads"]
                    row[f"times, {threads} threads (bar {bar:g})"] = ratio
                row[f"times, loops (bar {BAR_LOOPS:g})"] = loops / row["collection, 1 thread"]
            print(row)
            results.append(row)
    return results


if __name__ == "__main__":
    run()
