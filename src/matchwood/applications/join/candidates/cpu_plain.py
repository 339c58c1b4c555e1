"""Token lists of records whose elements are tokens themselves: equal or not similar at all.

The same lists as `lists_of` makes, in one step: every token has the utility 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join.arrays import Records
from matchwood.applications.join.candidates.cpu_lists import UP, Lists
from matchwood.applications.join.collecting.cpu import sort_ids
from matchwood.engines.cpu import Team, crew, interrupted, kernel


@kernel
def _list_tokens(team: Team, records: Records, ranks: Any, lists: Lists) -> None:
    for r in range(records.starts.size - 1):
        if interrupted(team, r):
            return
        lo, hi = records.starts[r], records.starts[r + 1]
        for i in range(lo, hi):
            lists.tokens[i] = ranks[records.elements[i]]
        sort_ids(lists.tokens[lo:hi])
        for i in range(lo, hi):
            lists.totals[i] = UP
            lists.rests[i] = (hi - 1 - i) * UP
            lists.firsts[i] = i - lo
            lists.utilities[i] = 1.0


def plain_lists(records: Records, ranks: np.ndarray) -> Lists:
    """`ranks`: the token of each element."""
    size = records.elements.size
    lists = Lists(
        records.starts, records.starts[1:].copy(), *(np.empty(size, kind) for kind in "iffif")
    )
    crew(1, work=2 * size).run(_list_tokens, records, ranks, lists)
    return lists
