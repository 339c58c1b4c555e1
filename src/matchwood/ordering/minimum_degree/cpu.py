"""Minimum degree on one thread: a quotient graph in one array.  The rule: __init__.py.

A vertex is a variable until it is eliminated, then an element.  A variable has a list of the
elements and one of the variables next to it, behind each other in `lists`; an element has a list
of variables: the structure of its column of L.  Eliminating p writes the list of element p, which
replaces those of all elements next to p.  Each step costs

    1. `_gather`    the variables next to p, each once; elements next to p are absorbed
    2. `_overlap`   |Le \\ Lp| for each element e next to these, by counting down from |Le|
    3. `_shorten`   their lists without what p covers, their degrees, and a hash of the lists
    4. `_merge`     those with equal lists become one variable, the smallest vertex
    5. `_settle`    degrees and the heap

Lists only become shorter: p takes the room of something that it covers.  So all of them fit into
the room of the entries, and there is room for one more of at most n at the end; `_pack` closes the
gaps when that is not free.

A heap has the variables of the stage that is being eliminated, by (degree, last change, vertex).
Kernels follow no pointer out of its array, also where the pattern is not symmetric: every variable
leaves the heap once, and all loops are over lists or the heap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, expanded, interrupted, kernel, stopping, workspace
from matchwood.ordering.minimum_degree import largest_degree
from matchwood.primitives.sort import radix_sort

Array = np.ndarray[Any, Any]
WORD = np.int64(32)  # bits of the number of a step in a key of the heap
LOW = np.int64((1 << 32) - 1)
NONE = -1


class Quotient(NamedTuple):
    """The quotient graph: one number for each vertex, be it variable or element."""

    lists: Array
    start: Array  # of the list of each
    length: Array  # of that list
    elements: Array  # of a variable: how many elements its list begins with
    size: Array  # vertices of a variable; 0 once it is merged, negative while it is in Lp
    degree: Array  # of a variable; of an element: the vertices of its list
    mark: Array  # of an element: 0 once absorbed, else `flag` + |Le \ Lp| where above `flag`
    into: Array  # the variable that it was merged with, or was eliminated together with


class Queue(NamedTuple):
    """The variables of this stage: a heap of keys, and where each variable is in it."""

    keys: Array
    vertex: Array  # whose key it is
    where: Array  # NONE outside of the heap
    changed: Array  # the step after which its degree was last changed; 0 at first
    head: Array  # of each hash: the first variable; all NONE between two steps
    next: Array
    hash: Array


class Counters(NamedTuple):
    """Words that change: free room, the flag of this step, vertices left, size of the heap."""

    words: Array


FREE, FLAG, LEFT, HEAPED = 0, 1, 2, 3


# The heap: least keys first, of equal ones the smallest vertex


@device
def _key(degree: Any, changed: Any) -> Any:
    """Smaller for a smaller degree, then for a later change."""
    return (np.int64(degree) << WORD) | (LOW - np.int64(changed))


@device
def _put(queue: Any, at: Any, key: Any, v: Any) -> None:
    queue.keys[at], queue.vertex[at] = key, v
    queue.where[v] = at


@device
def _before(queue: Any, at: Any, key: Any, v: Any) -> bool:
    """Whether the item at that place comes before (key, v)."""
    return queue.keys[at] < key or (queue.keys[at] == key and queue.vertex[at] < v)


@device
def _up(queue: Any, at: Any, key: Any, v: Any) -> None:
    while at > 0:
        above = (at - 1) >> 1
        if _before(queue, above, key, v):
            break
        _put(queue, at, queue.keys[above], queue.vertex[above])
        at = above
    _put(queue, at, key, v)


@device
def _place(queue: Any, count: Any, at: Any, key: Any, v: Any) -> None:
    """Put an item where another one was."""
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and _before(queue, below + 1, queue.keys[below], queue.vertex[below]):
            below += 1
        if not _before(queue, below, key, v):
            break
        _put(queue, at, queue.keys[below], queue.vertex[below])
        at = below
    _up(queue, at, key, v)


@device
def _leave(queue: Any, words: Array, i: Any) -> None:
    at = np.int64(queue.where[i])
    if at < 0:
        return
    queue.where[i] = NONE
    words[HEAPED] -= 1
    last = words[HEAPED]
    if at != last:
        _place(queue, last, at, queue.keys[last], queue.vertex[last])


# One step


@device
def _pack(q: Any, words: Array) -> None:
    """Move all lists to the front, in the order in which they lie."""
    lists, start, length = q.lists, q.start, q.length
    for i in range(start.size):
        if length[i] > 0:  # the first item moves to `start`, its place says whose list begins here
            first = start[i]
            start[i] = lists[first]
            lists[first] = -i - 2
    free = np.int64(0)
    read = np.int64(0)
    while read < words[FREE]:
        owner = lists[read]
        if owner > NONE - 1:
            read += 1
            continue
        i = -owner - 2
        lists[read] = start[i]
        start[i] = free
        for _ in range(length[i]):
            lists[free] = lists[read]
            free += 1
            read += 1
    words[FREE] = free


@device
def _take(q: Any, begin: Any, count: Any, to: Any) -> Any:
    """Append the variables of a list that are not in Lp yet; returns where it ends."""
    for k in range(begin, begin + count):
        i = q.lists[k]
        if q.size[i] > 0:
            q.size[i] = -q.size[i]
            q.lists[to] = i
            to += 1
    return to


@expanded
def _gather(q: Any, words: Array, p: Any) -> None:
    """The list of element p; the elements next to it are absorbed."""
    count, elements = np.int64(q.length[p]), np.int64(q.elements[p])
    q.size[p] = -q.size[p]
    if elements == 0:  # the list takes the place of the variables
        begin = np.int64(q.start[p])
        end = _take(q, begin, count, begin)
    else:
        if words[FREE] + words[LEFT] > q.lists.size:
            _pack(q, words)
        begin = words[FREE]
        own = np.int64(q.start[p])
        end = begin
        for k in range(own, own + elements):
            e = q.lists[k]
            if q.mark[e] != 0:
                end = _take(q, np.int64(q.start[e]), np.int64(q.length[e]), end)
                q.mark[e] = 0
                q.length[e] = 0
        end = _take(q, own + elements, count - elements, end)
        words[FREE] = end
    q.start[p], q.length[p], q.elements[p] = begin, end - begin, NONE
    q.mark[p] = 1


@expanded
def _overlap(q: Any, words: Array, p: Any) -> None:
    """mark[e] = flag + |Le \\ Lp| for each element e next to a variable of Lp."""
    flag = words[FLAG]
    for k in range(q.start[p], q.start[p] + q.length[p]):
        i = q.lists[k]
        for x in range(q.start[i], q.start[i] + q.elements[i]):
            e = q.lists[x]
            if q.mark[e] >= flag:
                q.mark[e] += q.size[i]  # negative
            elif q.mark[e] != 0:
                q.mark[e] = flag + q.degree[e] + q.size[i]


@expanded
def _shorten(q: Any, queue: Any, words: Array, stage: Array, p: Any) -> None:
    """Lists of the variables of Lp without what p covers; hashes of what is left.

    A variable that has no other neighbours than Lp is eliminated together with p.
    """
    flag = words[FLAG]
    for k in range(q.start[p], q.start[p] + q.length[p]):
        i = q.lists[k]
        first = np.int64(q.start[i])
        to = first
        outside = np.int64(0)
        mixed = np.int64(0)
        for x in range(first, first + q.elements[i]):
            e = q.lists[x]
            if q.mark[e] == 0:
                continue
            if q.mark[e] > flag:
                outside += q.mark[e] - flag
                q.lists[to] = e
                to += 1
                mixed += e
            else:  # all of its variables are in Lp
                q.mark[e] = 0
                q.length[e] = 0
        kept = to
        for x in range(first + q.elements[i], first + q.length[i]):
            j = q.lists[x]
            if q.size[j] > 0:
                outside += q.size[j]
                q.lists[to] = j
                to += 1
                mixed += j
        room = first + q.length[i] - 1  # of at least one neighbour less, which p covers
        if to == first and (stage[i] == stage[p] or room < first):
            q.size[p] += q.size[i]
            words[LEFT] += q.size[i]
            q.size[i] = 0
            q.length[i] = 0
            q.into[i] = p
            _leave(queue, words, i)
            continue
        if outside < q.degree[i]:
            q.degree[i] = outside
        to = min(to, room)
        kept = min(kept, to)
        # p comes first, an element and a variable make room
        q.lists[to] = q.lists[kept]
        q.lists[kept] = q.lists[first]
        q.lists[first] = p
        q.elements[i] = kept - first + 1
        q.length[i] = to - first + 1
        h = mixed % q.start.size
        queue.hash[i] = h
        queue.next[i] = queue.head[h]
        queue.head[h] = i


@device
def _same(q: Any, i: Any, j: Any, flag: Any) -> bool:
    """Whether j has the list of i, which is marked."""
    if q.length[i] != q.length[j] or q.elements[i] != q.elements[j]:
        return False
    x, end = q.start[j] + 1, q.start[j] + q.length[j]  # p is in both
    while x < end and q.mark[q.lists[x]] == flag:
        x += 1
    return x >= end


@expanded
def _merge(q: Any, queue: Any, words: Array, stage: Array, p: Any) -> None:
    """Variables of a stage with equal lists become one.

    The marks of variables serve here: the parts of a list that are elements are the same numbers
    in both lists, so their marks are put back.
    """
    for k in range(q.start[p], q.start[p] + q.length[p]):
        i = q.lists[k]
        if q.size[i] == 0:
            continue
        h = queue.hash[i]
        i = queue.head[h]
        queue.head[h] = NONE
        while i != NONE and queue.next[i] != NONE:
            flag = words[FLAG]
            words[FLAG] += 1
            begin, end = q.start[i] + 1, q.start[i] + q.length[i]
            for x in range(begin, end):
                q.mark[q.lists[x]] = flag
            before, j = i, queue.next[i]
            while j != NONE:
                after = queue.next[j]
                if stage[i] == stage[j] and _same(q, i, j, flag):
                    stays, goes = (i, j) if i < j else (j, i)
                    q.size[stays] += q.size[goes]
                    q.size[goes] = 0
                    q.length[goes] = 0
                    q.into[goes] = stays
                    _leave(queue, words, goes)
                    queue.next[before] = after
                    if goes == i:  # j stands for both from here on
                        queue.next[j] = queue.next[i]
                        before = j if before == i else before
                        i = j
                else:
                    before = j
                j = after
            i = queue.next[i]


@expanded
def _settle(q: Any, queue: Any, words: Array, p: Any, now: Any) -> None:
    """Degrees by the smallest of three bounds; the list of p without what was merged."""
    first = np.int64(q.start[p])
    end = first + q.length[p]
    total = np.int64(0)
    for k in range(first, end):
        total -= q.size[q.lists[k]]
    to = first
    for k in range(first, end):
        i = q.lists[k]
        if q.size[i] == 0:
            continue
        q.size[i] = -q.size[i]
        q.lists[to] = i
        to += 1
        q.degree[i] = min(q.degree[i] + total, words[LEFT]) - q.size[i]
        queue.changed[i] = now
        at = np.int64(queue.where[i])
        if at >= 0:
            _place(queue, words[HEAPED], at, _key(q.degree[i], now), i)
    q.length[p] = to - first
    q.degree[p] = total
    if to == first:
        q.mark[p] = 0
    if end == words[FREE]:
        words[FREE] = to


@kernel
def _eliminate(
    team: Any, indptr: Array, indices: Array, stage: Array, members: Array, q: Quotient,
    queue: Queue, counters: Counters, step: Array, dense: int,
) -> None:  # fmt: skip
    """step[v] = which of the steps eliminates v.  `members`: vertices by (stage, vertex)."""
    n = indptr.size - 1
    words = counters.words
    words[FREE], words[FLAG], words[LEFT], words[HEAPED] = 0, 2, 0, 0
    for v in range(n):
        q.size[v] = 1 if indptr[v + 1] - indptr[v] <= dense else 0
        words[LEFT] += q.size[v]
        q.elements[v] = 0
        q.mark[v] = 1
        queue.changed[v] = 0
        q.into[v] = queue.where[v] = queue.head[v] = step[v] = NONE
    for v in range(n):  # lists without gaps: `_pack` looks at what lies between them
        if interrupted(team, v):
            return
        q.start[v] = to = words[FREE]
        for k in range(indptr[v], indptr[v + 1]):
            if q.size[indices[k]] > 0:
                q.lists[to] = indices[k]
                to += 1
        q.length[v] = q.degree[v] = to - q.start[v]
        words[FREE] = to
    now = np.int64(0)
    begin = 0
    while begin < n:
        end = begin
        while end < n and stage[members[end]] == stage[members[begin]]:
            v = members[end]
            if q.size[v] > 0:
                words[HEAPED] += 1
                _up(queue, words[HEAPED] - 1, _key(q.degree[v], queue.changed[v]), v)
            end += 1
        while words[HEAPED] > 0:
            if stopping(team):
                return
            p = np.int64(queue.vertex[0])
            _leave(queue, words, p)
            words[LEFT] -= q.size[p]
            _gather(q, words, p)
            _overlap(q, words, p)
            _shorten(q, queue, words, stage, p)
            words[FLAG] += n + 1  # all marks of this step are below it
            _merge(q, queue, words, stage, p)
            words[FLAG] += 1
            step[p] = now
            now += 1
            _settle(q, queue, words, p, now)
        for x in range(begin, end):  # those of large degree, last
            v = members[x]
            if q.into[v] == NONE and step[v] == NONE:
                step[v] = now
        now += 1
        begin = end


@kernel
def _collect(team: Any, into: Array, step: Array) -> None:
    """The step of merged variables: that of the element at the end of their path."""
    for v in range(into.size):
        if interrupted(team, v):
            return
        last = v
        while step[last] == NONE:
            last = into[last]
        u = v
        while step[u] == NONE:
            step[u] = step[last]
            u = into[u]


def order(view: Any, stage: Array) -> Array:
    n, kind = view.n, view.indptr.dtype
    names = ("length", "elements", "size", "degree", "into", "vertex", "where",
             "changed", "head", "next", "hash")  # fmt: skip
    space = workspace(
        lists=(view.nnz + view.nnz // 4 + n + 1, kind), start=(n, np.int64), mark=(n, np.int64),
        keys=(n, np.int64), step=(n, np.int64), **dict.fromkeys(names, (n, kind)),
    )  # fmt: skip
    q = Quotient(
        space.lists, space.start, space.length, space.elements, space.size, space.degree,
        space.mark, space.into,
    )  # fmt: skip
    queue = Queue(
        space.keys, space.vertex, space.where, space.changed, space.head, space.next, space.hash
    )
    members = radix_sort(stage.astype(np.uint64))[1].astype(kind, copy=False)
    team = crew(1, work=view.nnz + n)
    team.run(
        _eliminate, view.indptr, view.indices, stage, members, q, queue,
        Counters(np.zeros(4, np.int64)), space.step, largest_degree(n),
    )  # fmt: skip
    team.run(_collect, space.into, space.step)
    return radix_sort(space.step.view(np.uint64))[1].astype(kind, copy=False)
