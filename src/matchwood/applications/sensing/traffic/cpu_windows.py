"""The links of many sorted windows: the run of one of them, and the sum of all.

The walk over sorted packets (cpu_walk.py) leaves the different keys of a window at its front, and
says which of those links have several packets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.traffic.cpu_runs import Run, run_of_sorted
from matchwood.applications.sensing.traffic.cpu_walk import (
    EXTRAS,
    HALF,
    LINKS,
    LOW,
    ONE,
    LinkSums,
    gathered,
)
from matchwood.engines.cpu import (
    Crew,
    Team,
    atomic_add,
    barrier,
    device,
    kernel,
    next_chunk,
    stopping,
)
from matchwood.primitives.sort.cpu import sort_keys


class WindowLinks(NamedTuple):
    """Links of windows: those of window k are keys[starts[k]], ..., links[k] of them."""

    keys: Any  # uint64
    starts: Any  # (windows,) int64
    links: Any  # (windows,) int64
    repeated: Any  # uint64: for some links of a window their number above (packets - 1), backwards
    ends: Any  # (windows,) int64: where that ends
    several: Any  # (windows,) int64: how many links that are


def links_of(cuts: Any, sums: LinkSums) -> WindowLinks:
    """What a walk has left of the windows keys[cuts[k] : cuts[k + 1]], without the keys.

    The next walk overwrites its memory: what is needed is copied.
    """
    links, several = (sums.found[:, column] for column in (LINKS, EXTRAS))
    ends, sizes = cuts[1:].tolist(), several.tolist()
    parts = [sums.extras[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return WindowLinks(None, cuts[:-1], links, np.concatenate(parts), np.cumsum(several), several)


def all_links(keys: Any, cuts: Any, batches: list[WindowLinks]) -> WindowLinks:
    """The windows of several walks, in order; their keys are keys[cuts[k] : cuts[k + 1]]."""
    links, repeated, several = (
        np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("links", "repeated", "several")
    )
    return WindowLinks(keys, cuts[:-1], links, repeated, np.cumsum(several), several)


@device
def _place_from(keys: Any, place: Any, key: Any) -> Any:
    """Where `key`, which is among the keys, lies from `place` on: steps double, then halve."""
    step, last = ONE, np.uint64(keys.size - 1)
    end = place
    while keys[end] < key:
        place = end
        end = min(end + step, last)
        step += step
    while place < end:
        middle = (place + end) >> ONE
        if keys[middle] < key:
            place = middle + ONE
        else:
            end = middle
    return place


@kernel
def _add_repeated(team: Team, given: WindowLinks, total: Run) -> None:
    """Add the packets of links beyond the first of each window.

    Members work on different windows, which may have the same link: counts change by atomic
    additions alone.
    """
    while True:
        window = next_chunk(team, given.links.size, 1)
        if window < 0:
            break
        keys, last = given.keys[given.starts[window] :], given.ends[window] - 1
        at = np.uint64(0)
        for k in range(given.several[window]):
            word = given.repeated[np.uint64(last - k)]
            at = _place_from(total.keys, at, keys[word >> HALF])
            atomic_add(total.counts, np.int64(at), np.int64(word & LOW))
            if k & 0xFFFF == 0 and stopping(team):
                return
    if barrier(team):
        return


def run_of_window(team: Crew, given: WindowLinks, window: int) -> Run:
    """The links of one window; new arrays."""
    one = slice(window, window + 1)
    alone = given._replace(
        starts=given.starts[one], links=given.links[one],
        ends=given.ends[one], several=given.several[one],
    )  # fmt: skip
    start, size = int(given.starts[window]), int(given.links[window])
    run = Run(given.keys[start : start + size].copy(), np.ones(size, np.int64))
    team.run(_add_repeated, alone, run)
    return run


def sum_of_windows(team: Crew, given: WindowLinks) -> Run:
    """The sum of all windows; their keys are overwritten.

    Sorting the keys anew is quicker than merging many runs: NumPy sorts in vector code, and merging
    is a chain of comparisons.  A link counts once for each window that has it; packets beyond the
    first of a window are added afterwards.
    """
    keys = gathered(given.keys, given.starts, given.links)
    moved = given._replace(starts=np.cumsum(given.links) - given.links)
    total = run_of_sorted(team, sort_keys(keys, threads=team.size))
    team.run(_add_repeated, moved, total)
    return total
