"""Does a pair of records reach the threshold?  Bounds first, the exact matching where they part.

    certified   bounds, then exact where they leave it open; the same pairs and scores as exact
    exact       the heaviest matching of every pair, by shortest augmenting paths in integers
    early       the exact solver, ended as soon as its bounds decide (TokenJoin's verification)
    greedy      the heaviest edge first: at least half of the heaviest matching
    dominant    edges that are the heaviest at both ends: the same matching, found in rounds
    streaming   each edge is seen once; no memory for all of them

The last three have two modes: `weight` takes what the matching weighs, so that every pair reported
is right; `bound` takes an upper bound, so that no pair is missing.

Equal elements are matched with each other first in every method, where the similarity allows it:
then all of them start from the same rest.  Read on in cpu_pair.py (the steps of one pair),
cpu_rows.py (similarities, row by row), cpu_exact.py, cpu_approximate.py; cpu.py verifies a list of
pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood import arguments
from matchwood.applications.join.arrays import Elements, Records
from matchwood.applications.join.similarity import SIMILARITIES
from matchwood.memory import require_memory

if TYPE_CHECKING:
    from matchwood.applications.join.verification.cpu_scratch import How, Scratch

METHODS = ("certified", "exact", "early", "greedy", "dominant", "streaming")
MODES = ("weight", "bound")
SLACK = 1e-9  # a pair counts when its score is at least delta - SLACK

MOST_EDGES = 1 << 19  # of a thread's scratch: 6 MB.  A pair with more gets a scratch of its own
EDGE_BYTES = 16  # column, weight, and for the greedy matching a place in the order
LINE_ENTRIES = 16  # of 4 bytes in a cache line
STACK_ENTRIES = 4  # for each element of the larger record and its partner, to begin with

__all__ = ["METHODS", "MODES", "apart", "how", "most_tokens", "scratch", "share_of"]


def how(caller: str, similarity: str, verify: str, mode: str, scores: bool) -> How:
    """The choice of a call, checked, as kernels read it."""
    from matchwood.applications.join.similarity import cpu_phi
    from matchwood.applications.join.verification import cpu_scratch

    arguments.one_of(caller, "similarity", similarity, SIMILARITIES)
    arguments.one_of(caller, "verify", verify, METHODS)
    arguments.one_of(caller, "mode", mode, MODES)
    kinds = {"jaccard": cpu_phi.JACCARD, "equal": cpu_phi.EQUAL}
    return cpu_scratch.How(
        kinds.get(similarity, cpu_phi.EDIT),
        METHODS.index(verify),
        int(mode == "bound"),
        int(scores),
    )


def share_of(delta: float) -> float:
    """theta / (|R| + |S|) for this delta: what `least_weight` takes."""
    lowest = max(delta - SLACK, 0.0)
    return lowest / (1.0 + lowest)


def scratch(
    elements: Elements,
    left: Records,
    right: Records,
    how: How,
    threads: int,
    *,
    edges: int | None = None,
    tokens: int | None = None,
    largest: tuple[int, int] | None = None,
) -> Scratch:
    """Arrays for so many threads, large enough for any pair of these records.

    Edges are the exception: `edges` of them, or at most `MOST_EDGES`.  A pair with more is not
    verified but says how many it has (NO_ROOM).  `tokens`: what `most_tokens` says, and `largest`:
    elements of the largest record of each side, where they are known already.
    """
    from matchwood.applications.join.similarity import cpu_lanes
    from matchwood.applications.join.similarity.cpu_levenshtein import DIRECT, SLOTS, Pattern
    from matchwood.applications.join.verification import cpu_exact, cpu_scratch

    fewer, most = sorted(largest or (_most(left.starts), _most(right.starts)))
    room = fewer * most
    is_edit = how.similarity == 1
    streams = how.method == cpu_scratch.STREAMING
    wanted = min(room, MOST_EDGES) if edges is None else edges
    stack = (STACK_ENTRIES * 2 * most if edges is None else edges) if streams else 0
    kept = most if streams else max(wanted, most)
    if edges is not None:
        require_memory(
            "fuzzy_join",
            EDGE_BYTES * edges,
            f"a pair with {edges} similar pairs of elements (verify='streaming' keeps few of them)",
        )
    if is_edit:
        tokens = 0
    elif tokens is None:
        tokens = most_tokens(elements, left)
        if right is not left:
            tokens = max(tokens, most_tokens(elements, right))
    slots = 4
    while slots < 2 * tokens:
        slots *= 2
    longest = int(np.diff(elements.text_starts).max(initial=0)) if is_edit else 0

    def array(size: int, kind: Any, fill: int = 0) -> np.ndarray:
        shape = (threads, size)  # what is 0 is made by the system, when a thread first comes there
        return np.full(shape, fill, kind) if fill else np.zeros(shape, kind)

    wide = apart(most)
    return cpu_scratch.Scratch(
        cpu_scratch.Sides(array(wide, np.int32), array(wide, np.int32)),
        cpu_scratch.Table(
            array(slots, np.int64),
            array(apart(tokens), np.int64),
            array(wide, np.int32),
            array(wide, np.int32),
            array(_marks(tokens), np.uint8),
        ),
        cpu_scratch.Edges(
            array(wide, np.int64),
            array(kept, np.int32),
            array(kept, np.int64),
            array(wide, np.int64),
            array(wide, np.int32),
            array(wide, np.int64),
            array(wide, np.int32),
        ),
        cpu_scratch.Solver(
            array(wide, np.int32),
            array(wide, np.int32),
            array(wide, np.int64),
            array(wide, np.int64),
            array(wide, np.int64, int(cpu_exact.FAR)),
            array(wide, np.int32),
            array(wide, np.int32),
            array(kept if how.method == cpu_scratch.GREEDY else 0, np.int32),
        ),
        cpu_scratch.Stack(array(stack, np.int32), array(stack, np.int32), array(stack, np.int64)),
        Pattern(
            array(DIRECT, np.uint64),
            array(SLOTS, np.uint32),
            array(SLOTS, np.uint64),
            array(longest, np.int8),
        ),
        cpu_lanes.Lanes(
            np.zeros((threads, cpu_lanes.DIRECT + 1, cpu_lanes.LANES), np.uint32),
            array(3 * cpu_lanes.LANES, np.uint32),
            array(cpu_lanes.LANES, np.uint32, 1),
            array(cpu_lanes.LANES, np.uint32, 1),
            np.repeat(cpu_lanes.ratios()[None], threads, axis=0),
        ),
    )


def apart(size: int) -> int:
    """A width for the rows of several members, in which `size` entries of 4 bytes or more are used.

    The unused ones are a cache line at least: what two members write is never on one line.
    """
    return -(-size // LINE_ENTRIES) * LINE_ENTRIES + LINE_ENTRIES


def _marks(tokens: int) -> int:
    from matchwood.applications.join.verification.cpu_rows import MARKS_PER_TOKEN, MOST_MARKS

    size = 1
    while size < min(MARKS_PER_TOKEN * tokens, MOST_MARKS):
        size *= 2
    return size


def _most(starts: np.ndarray) -> int:
    return int(np.diff(starts).max(initial=0))


def most_tokens(elements: Elements, records: Records) -> int:
    """Tokens of the record that has the most, counting one for each element that has it."""
    counts = np.diff(elements.starts)[records.elements]
    first = records.starts[:-1][np.diff(records.starts) > 0]
    return int(np.add.reduceat(counts, first).max()) if first.size else 0
