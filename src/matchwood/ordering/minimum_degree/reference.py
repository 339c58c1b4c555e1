"""Minimum degree with sets: the rule of __init__.py, one step after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.minimum_degree import largest_degree


def order(view: Any, stage: Any) -> Any:
    n, stages = view.n, stage.tolist()
    rows = [set(view.indices[view.indptr[v] : view.indptr[v + 1]].tolist()) for v in range(n)]
    alive = {v for v in range(n) if len(rows[v]) <= largest_degree(n)}
    variables = [row & alive for row in rows]
    elements: list[set[int]] = [set() for _ in range(n)]  # next to a variable
    column: dict[int, set[int]] = {}  # of an element: its variables
    degree = [len(row) for row in variables]
    members = [[v] for v in range(n)]
    changed = [0] * n  # the step after which its degree was last changed
    left, step, perm = len(alive), 0, []

    def weight(some: Any) -> int:
        return sum(len(members[v]) for v in some)

    def leave(i: int) -> None:
        alive.discard(i)
        for rest in (*variables, *column.values()):
            rest.discard(i)

    for now in sorted(set(stages)):
        while here := [v for v in alive if stages[v] == now]:
            p = min(here, key=lambda v: (degree[v], -changed[v], v))
            step += 1
            left -= len(members[p])
            around = variables[p].union(*(column[e] for e in elements[p])) - {p}
            outside = {e: weight(column[e] - around) for i in around for e in elements[i]}
            covered = elements[p] | {e for e, count in outside.items() if count == 0}
            leave(p)
            for i in sorted(around):
                elements[i] -= covered
                variables[i] -= around
                if not elements[i] and not variables[i] and stages[i] == now:
                    left -= len(members[i])
                    members[p] += members[i]
                    leave(i)
            around &= alive
            for i in around:
                further = sum(outside[e] for e in elements[i])
                degree[i] = min(degree[i], weight(variables[i]) + further)
            for e in covered:
                column.pop(e, None)
            column[p] = around
            kinds: dict[Any, int] = {}
            for i in sorted(around):
                elements[i].add(p)
                kind = stages[i], frozenset(elements[i]), frozenset(variables[i])
                if kinds.setdefault(kind, i) != i:
                    members[kinds[kind]] += members[i]
                    leave(i)
            total = weight(around)
            for i in around:
                degree[i] = min(degree[i] + total, left) - len(members[i])
                changed[i] = step
            perm += sorted(members[p])
        step += 1
        perm += [v for v in range(n) if stages[v] == now and len(rows[v]) > largest_degree(n)]
    return np.array(perm, view.indptr.dtype)
