"""What a rank of a grid does alone in label propagation; ranks has what ranks exchange.

A rank has a part of each row of its row group.  It adds up the labels there (`tallies`); the owner
of a vertex joins the lists of the ranks of its row and takes the best label (`decided`).

    cpu.py  a table with open addressing for each member of a team
    gpu.py  sorted lists: CuPy's sorts and sums
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Lists(NamedTuple):
    """What the ranks of the row sent of the own vertices: for rank s and vertex j

    sizes[s, j] labels from words[begins[s, j]] on, and their weights after[s] words later.
    """

    words: Any
    sizes: Any
    begins: Any
    after: Any
