"""The default call on a raw matrix against SciPy: gate, search of a start and order together.

``python -m bench.ordering.raw [--data FOLDER] [--least N] [--threads 1 2] [--json FILE]`` takes the
square matrices of the folder with at least N rows.  SciPy is told that a pattern is symmetric where
it is, so that it does not look; matchwood has to find out.  Times are medians, in turns.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from scipy.sparse import csgraph

import matchwood
from bench import harness
from bench.harness import DATA
from matchwood.ordering import bandwidth, check_rcm_order, reverse_cuthill_mckee


def row(name: str, A: Any, threads: list[int]) -> harness.Result:
    symmetric = matchwood.graph(A).has_symmetric_pattern
    scipys = functools.partial(csgraph.reverse_cuthill_mckee, A, symmetric_mode=symmetric)
    calls = {
        f"{t} threads": functools.partial(reverse_cuthill_mckee, A, threads=t) for t in threads
    }
    timed = harness.compare(
        f"reverse Cuthill-McKee, raw, {name}",
        {"scipy": scipys, **calls},
        verify=lambda who, perm: None if who == "scipy" else check_rcm_order(A, perm),
        quiet=True,
    )
    times = {who: found["median"] for who, found in timed["rows"].items()}
    ours, theirs = (bandwidth(A, perm) for perm in (reverse_cuthill_mckee(A), scipys()))
    return {"title": name, "n": A.shape[0], "times": times, "ours": ours, "scipy": theirs}


def run(data: Path = DATA, least: int = 4000, threads: list[int] | None = None) -> list[Any]:
    results = []
    for path in sorted(data.glob("*/*.mtx.gz")):
        A = sp.csr_array(matchwood.io.read(path))
        if A.shape[0] != A.shape[1] or A.shape[0] < least:
            continue
        found = row(path.name.removesuffix(".mtx.gz"), A, threads or [1, 2])
        times = dict(found["times"])
        base = times.pop("scipy")
        ratios = "".join(f"{base / t:>8.2f}" for t in times.values())
        print(
            f"{found['title']:26}{found['n']:>9,}{1e3 * base:>10.3f} ms{ratios}"
            f"{found['ours']:>9,}{found['scipy']:>9,}",
            flush=True,
        )
        results.append(found)
    if results:
        logs = [math.log(r["ours"] / r["scipy"]) for r in results if r["scipy"]]
        print(f"bandwidth over SciPy's, geometric mean: {math.exp(sum(logs) / len(logs)):.4f}")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--least", type=int, default=4000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = run(options.data, options.least, options.threads)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
