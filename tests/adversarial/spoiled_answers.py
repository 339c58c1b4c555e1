"""Right answers, spoiled at random, and what their checks say of them.

Run as a program it spoils so many of every problem on several processes, and prints a line each:

    PYTHONPATH=src:tests python tests/adversarial/spoiled_answers.py 100000 14
"""

from __future__ import annotations

import functools
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import matchwood
from adversarial.cases import Case, Fields, draw_graphs
from adversarial.problems import PROBLEMS
from adversarial.spoiling import KINDS, spoils

SHARD = 5000  # spoiled answers that one process makes of one problem, on graphs of their own

LOOSE = {
    ("rms_wavefront", "float"),
    ("weights", "float"),
    ("limits", "float"),  # weights of vertices may be floats
    ("cut", "float"),
    ("graph.indices", "long"),  # a matrix of SciPy's may have room for more entries
    ("graph.data", "long"),
    ("B.data", "float"),
    ("B.data", "complex"),
    ("B.data", "truth"),
    ("there", "row"),  # SciPy gives the result of an operator the right shape
    ("there", "column"),
    ("back", "row"),
    ("back", "column"),
    ("gammas", "object"),  # they come as tuples of numbers
    ("rounds", "object"),
    ("converged", "truth"),
    ("table", "object"),  # Windows makes 64-bit integers of them
}
"""(field, way) that leave the same number in a form that may pass."""


class Spoiled(NamedTuple):
    """An answer that is wrong: one field of a right one was changed, and what follows from it."""

    case: Case
    name: str
    way: str
    fields: Fields

    def fault(self) -> str | None:
        """What is wrong with how the check takes it; None when the check refuses it."""
        return refused(self.case, self.fields)

    def told(self) -> str:
        was = self.case.fields[self.name]
        return f"{self.name}, {self.way}\n    was {was!r}\n    is {self.fields[self.name]!r}"


@functools.cache
def cases(problem: str) -> list[Case]:
    return list(PROBLEMS[problem]())


def refused(case: Case, fields: dict[str, Any]) -> str | None:
    """What is wrong with how the check takes these fields; None when it refuses them."""
    try:
        case.check(case.build(fields))
    except matchwood.CheckFailed as error:
        return None if str(error) else "no reason is given"
    except TypeError as error:
        return None if re.match(r"check_\w+: ", str(error)) else f"TypeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def one_spoiled(problem: str, rng: np.random.Generator) -> Spoiled | None:
    """None when the answer is still right; that is decided by the definition, not by the check."""
    case = cases(problem)[int(rng.integers(len(cases(problem))))]
    name = list(case.fields)[int(rng.integers(len(case.fields)))]
    ways = spoils(case.fields[name])
    way = list(ways)[int(rng.integers(len(ways)))]
    value = ways[way](case.fields[name], rng, case.n)
    if value is None or (name, way) in LOOSE:
        return None
    fields = {**case.fields, name: value}
    if way not in KINDS:
        if case.fit is not None and rng.random() < 0.7:
            fields = case.fit(fields)
        if case.is_right(fields):
            return None
    return Spoiled(case, name, way, fields)


def spoiled_answers(problem: str, rng: np.random.Generator) -> Iterator[Spoiled]:
    """Without end."""
    while True:
        made = one_spoiled(problem, rng)
        if made is not None:
            yield made


class Told(NamedTuple):
    """What came of some spoiled answers of a problem."""

    problem: str
    spoiled: int
    accepted: int
    otherwise: int  # neither accepted nor refused as checks do: another error came out
    faults: list[str]


def shard(job: tuple[str, int, int]) -> Told:
    """Spoil `count` answers of a problem, those of graphs drawn for this number."""
    problem, number, count = job
    draw_graphs(number)
    cases.cache_clear()
    for case in cases(problem):
        case.check(case.build(case.fields))  # a check that refuses all would find no fault
    rng = np.random.default_rng((list(PROBLEMS).index(problem), number))
    faults: Counter[str] = Counter()
    texts: dict[tuple[str, str], str] = {}
    for made, _ in zip(spoiled_answers(problem, rng), range(count), strict=False):
        fault = made.fault()
        if fault is not None:
            faults["accepted" if fault == "accepted" else "otherwise"] += 1
            texts.setdefault((made.name, made.way), f"{fault}: {made.told()}")
    return Told(problem, count, faults["accepted"], faults["otherwise"], list(texts.values()))


def campaign(answers: int, workers: int, only: str = "") -> int:
    """Print a line for each problem; the number of those in which a check went wrong."""
    shards = -(-answers // SHARD)
    names = [name for name in PROBLEMS if only in name]
    jobs = [(name, k, min(SHARD, answers)) for k in range(shards) for name in names]
    began, wrong = time.monotonic(), 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        told = list(pool.map(shard, jobs))
    for name in names:
        mine = [one for one in told if one.problem == name]
        spoiled, accepted, otherwise = (sum(one[k] for one in mine) for k in (1, 2, 3))
        print(
            f"{name:28s} spoiled {spoiled:7d}  rejected {spoiled - accepted - otherwise:7d}  "
            f"accepted though wrong {accepted}  other errors {otherwise}"
        )
        for text in [text for one in mine for text in one.faults][:5]:
            print(f"    {text}")
        wrong += bool(accepted or otherwise)
    print(f"{len(names)} problems, {wrong} with faults, {time.monotonic() - began:.0f} s")
    return wrong


if __name__ == "__main__":
    os.environ.setdefault("MATCHWOOD_NUM_THREADS", "1")
    sys.exit(bool(campaign(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
