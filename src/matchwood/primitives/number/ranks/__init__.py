"""Labels numbered by ranks.  The rule: the __init__.py above.

The owner of the vertex that is the label collects the smallest vertex of that label.  These
smallest vertices are sorted into ranges of vertices, one for each rank; a rank counts those in its
range, so it knows their numbers.  Numbers go back the same way.

Labels that are smallest vertices themselves, as those of components, need less: their owners know
them.  Where there are many, all ranks learn which vertices they are, and count (cpu.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines.ranks.exchanges import Routed
from matchwood.engines.ranks.exchanges.cpu import distinct, keep_least
from matchwood.engines.ranks.exchanges.packing import places_of
from matchwood.engines.ranks.exchanges.routing import ask
from matchwood.primitives.number.ranks import cpu

Array = np.ndarray[Any, Any]

FEW_ROOTS = 16  # with fewer roots than 1 / FEW_ROOTS of the vertices, their ids are sent, not bits
SAMPLES = 256  # labels that are looked at to find the most frequent one


def number_labels(G: Any, labels: Array, *, smallest: bool = False) -> tuple[int, Array]:
    """How many labels are in use, and for each own vertex the number of its label.

    `labels` are vertices, as the user numbers them, of own vertices by place.  They get 0, 1, ...
    in the order of their smallest vertices.  All ranks call it.  Labels that lie on a GPU are
    numbered on the host, and their numbers are copied back.  `smallest` says that every label is
    the smallest vertex that has it.
    """
    where, labels = engines.location(labels), engines.moved(labels, "cpu")
    exchange, grid, comm = G.exchange, G.grid, G.comm
    if smallest and exchange.order is None and grid.layout == "stripes":
        count, numbers = _number_smallest(G, labels)
        return count, engines.moved(numbers, where)
    names = grid.original_owned()  # the user's ids, by place
    names = names if G.order is None else G.order.user(names)
    inside = labels if exchange.order is None else exchange.order.inside(labels)
    least_of = np.full(grid.owned, grid.n, np.int64)
    own, others = _lower_own(inside, names, grid, least_of)  # the others are sent to their owners
    firsts, back = distinct(inside[others])
    used, least = inside[others[firsts]], names[others[firsts]]
    if exchange.order is not None:  # else own vertices ascend, and the first is the smallest
        keep_least(least, back, names[others])
    letters = Routed(comm, grid.owner(used), exchange.threads)
    places, offers = letters.send(grid.places(used), least.astype(index_type(grid.n)))
    keep_least(least_of, places, offers)
    mine = np.flatnonzero(least_of < grid.n)
    number = np.empty(grid.owned, index_type(grid.n))
    count, number[mine] = number_ids(comm, least_of[mine], grid.n, exchange.threads)
    (found,) = letters.answer(number[places])
    numbers = number[own]
    numbers[others] = found[back]
    return count, engines.moved(numbers.astype(labels.dtype, copy=False), where)


def _number_smallest(G: Any, labels: Array) -> tuple[int, Array]:
    """`number_labels` where every label is the smallest vertex that has it: a root.

    Where many vertices are roots (FEW_ROOTS), all ranks receive a bit for each vertex.
    """
    exchange, grid, comm = G.exchange, G.grid, G.comm
    often = _often(labels, grid)
    roots, found, others = cpu.mark_roots(labels, grid, often, exchange.threads)
    count = int(comm.allreduce(np.array([found], np.int64))[0])
    number = np.empty(grid.owned, labels.dtype)
    if count * FEW_ROOTS > grid.n:
        words = comm.allgather(roots).reshape(grid.p, -1)
        table = np.ascontiguousarray(words.T)
        cpu.number_roots(table, comm.rank, number, exchange.threads)
    else:
        mine = places_of(roots, grid.owned)
        ids = mine * grid.p + grid.rank
        _, number[mine] = number_ids(comm, ids, grid.n, exchange.threads)
    firsts, back = distinct(labels[others])
    asked = labels[others[firsts]].astype(np.int64)
    own_often = often % grid.p == grid.rank and often < grid.n
    asks = often < grid.n and not own_often
    if asks:
        asked = np.append(asked, often)
    answers = ask(exchange, asked, number)
    its_number = int(answers[-1]) if asks else 0
    if own_often:
        its_number = int(number[often // grid.p])
    numbers = cpu.own_numbers(labels, grid, (often, its_number), number, exchange.threads)
    numbers[others] = answers[back]
    return count, numbers


def _often(labels: Array, grid: Any) -> int:
    """The most frequent label of sampled places, roots left out; n where all are roots.

    Of a graph with one large component, nearly all labels are that one.  Any answer is right.
    """
    places = np.arange(0, labels.size, max(1, labels.size // SAMPLES))
    some = labels[places]
    some = some[some != places * grid.p + grid.rank]
    if some.size == 0:
        return int(grid.n)
    names, counts = np.unique(some, return_counts=True)
    return int(names[counts.argmax()])


def _lower_own(labels: Array, names: Array, grid: Any, smallest: Array) -> tuple[Array, Array]:
    """As `lower_own` of cpu.py, in any layout."""
    if grid.layout == "stripes":
        return cpu.lower_own(labels, names, grid, smallest)
    mine = grid.owner(labels) == grid.rank
    places = np.where(mine, grid.places(labels), 0)
    keep_least(smallest, places[mine], names[mine])
    return places, np.flatnonzero(~mine)


def number_ids(comm: Any, ids: Array, n: int, threads: int | None) -> tuple[int, Array]:
    """How many ids, different and below n, all ranks have, and the position of each own one."""
    width = max(1, -(-n // comm.size))
    letters = Routed(comm, ids // width, threads)
    (received,) = letters.send(ids.astype(index_type(n)))
    totals = comm.allgather(np.array([received.size], np.int64))
    marks = np.zeros(width, np.int64)
    inner = received - comm.rank * width
    marks[inner] = 1
    before = np.cumsum(marks) - 1 + int(totals[: comm.rank].sum())
    (found,) = letters.answer(before[inner].astype(index_type(n)))
    return int(totals.sum()), found.astype(np.int64)
