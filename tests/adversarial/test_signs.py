"""Weights of every sign, on and off the diagonal: refused exactly where a negative one is read.

Matrices and lists of edges are drawn with signs, zeros of both signs, duplicates and loops.  What a
function reads of them is worked out here, from the entries as they were given.  If something of it
is negative, every engine must raise ValueError; if not, all must answer like the reference.
MATCHWOOD_ATTACK_SECONDS is the time of the search.
"""

from __future__ import annotations

import dataclasses
import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial import clock, drawn_arrays
from matchwood import check, dist, registry
from matchwood.primitives.edge_order import order_edges
from spread_graphs import tried
from test_house_public import PUBLIC

REFUSED = "ValueError: {}: weights must not be negative, got "
PROMISE = re.compile(r"negative weights|weight (that is read )?is negative")
RULES = (None, None, "sum", "min", "max", "first")
KINDS = (np.float64, np.float32, np.int64, np.int32, np.int8, np.uint8, np.bool_)
NEGATIVE = ("nowhere", "off the diagonal", "on the diagonal", "anywhere")


def some_labels(G):
    return np.arange(G.n) % 3


GRAPHS = {
    "louvain": (matchwood.louvain, check.check_communities),
    "leiden": (matchwood.leiden, check.check_communities),
    "label_propagation": (matchwood.label_propagation, check.check_label_propagation),
    "modularity": (
        lambda G, **how: matchwood.modularity(G, some_labels(G), **how),
        lambda G, value: check.check_modularity(G, some_labels(G), value),
    ),
    "partition": (
        lambda G, **how: matchwood.partition(G, 1, **how),
        lambda G, answer: check.check_partition(G, answer, k=1),
    ),
    "refine_partition": (
        lambda G, **how: matchwood.refine_partition(G, np.zeros(G.n, int), **how),
        lambda G, answer: check.check_partition(G, answer, k=1),
    ),
    "pagerank": (
        lambda G, **how: matchwood.pagerank(G, weighted=True, **how),
        lambda G, answer: check.check_pagerank(G, answer, weighted=True),
    ),
}
"""Functions of a graph and their checks; each refuses negative weights."""
ON_RANKS = ("label_propagation", "pagerank")
WRONG = {
    "modularity": 0.5,
    "pagerank": matchwood.Ranking(np.ones(1), 1, 0.0, True, {}),
}
"""Answers for a check that must not come to look at them; else labels."""


def test_every_function_that_promises_is_asked():
    """One that is new, and its check, must be added above."""
    promised = {name for name, found in PUBLIC.items() if promises(found)}
    checks = {
        f"matchwood.check.{name}"
        for entry in registry.PROBLEMS if entry.function in GRAPHS for name in entry.checks
    }  # fmt: skip
    graphs = {f"matchwood.{name}" for name in GRAPHS}
    lists = {"matchwood.streaming_matching", "matchwood.primitives.edge_order.order_edges"}
    assert promised == graphs | checks | lists


def promises(found):
    return bool(PROMISE.search(" ".join((found.__doc__ or "").split())))


def drawn(rng):
    """(n, pairs, values, whether they are edges, rule); few pairs, so that many come twice."""
    n, m = int(rng.integers(1, 9)), int(rng.integers(0, 20))
    pairs = rng.integers(0, n, (m, 2))
    if m and rng.random() < 0.6:
        loops = rng.random(m) < 0.4
        pairs[loops, 1] = pairs[loops, 0]
    kind = KINDS[int(rng.integers(len(KINDS)))]
    size = 2.0**44 if kind == np.int64 and rng.random() < 0.3 else 1.0
    values = size * rng.integers(0, 9, m) / (1 if np.dtype(kind).kind != "f" else 4)
    if np.dtype(kind).kind in "if":
        values = with_signs(rng, pairs, values)
    if rng.random() < 0.4:
        pairs, values = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([values, values])
    rule = RULES[int(rng.integers(len(RULES)))]
    return n, pairs, values.astype(kind), bool(rng.random() < 0.5), rule


def with_signs(rng, pairs, values):
    where = NEGATIVE[int(rng.integers(len(NEGATIVE)))]
    diagonal = pairs[:, 0] == pairs[:, 1]
    may = {"off the diagonal": ~diagonal, "on the diagonal": diagonal, "anywhere": diagonal >= 0}
    share = rng.choice([0.1, 0.5])
    signs = may.get(where, diagonal & ~diagonal) & (rng.random(len(values)) < share)
    if where == "nowhere":
        signs = values == 0  # zeros that are not negative
    return np.where(signs, -values, values)


def reads_negative(pairs, values, edges, rule):
    """Whether a weight is below 0, duplicates joined as asked; of edges each one counts."""
    if edges and rule is None:
        return bool((values < 0).any())
    at = {}
    for pair, value in zip(map(tuple, pairs.tolist()), values.tolist(), strict=True):
        at.setdefault(pair, []).append(value)
    join = {"min": min, "max": max, "first": lambda given: given[0]}.get(rule, sum)
    return any(join(given) < 0 for given in at.values())


def as_input(n, pairs, values, edges):
    """A list of edges, or a CSR matrix with rows that are not sorted."""
    if edges:
        return n, pairs, values
    order = np.argsort(pairs[:, 0], kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))])
    return sp.csr_array((values[order], pairs[order, 1], indptr), shape=(n, n))


def same(found, right):
    if isinstance(right, float):
        return found == right
    if hasattr(right, "scores"):
        near = np.abs(np.asarray(found.scores) - right.scores).max(initial=0) < 1e-10
        return near and found.iterations == right.iterations
    value = "cut" if hasattr(right, "cut") else "modularity"
    alike = getattr(found, value) == getattr(right, value)
    return alike and found.labels.tolist() == right.labels.tolist()


def faults_on_one_machine(name, case, expected, threads):
    """What is wrong with how the engines and the check take a graph: texts."""
    function, verify = GRAPHS[name]
    n, pairs, values, edges, rule = case
    A = as_input(n, pairs, values, edges)

    def call(**how):
        return tried(lambda: function(matchwood.graph(A, duplicates=rule), **how))

    right = call(engine="reference")
    with drawn_arrays.teams_of(threads):
        ways = {"reference": right, "cpu": call(engine="cpu", threads=threads)}
    if expected:
        wrong = WRONG.get(name, np.zeros(n, np.int64))
        told = tried(lambda: verify(matchwood.graph(A, duplicates=rule), wrong))
        texts = {way: (REFUSED.format(name), found) for way, found in ways.items()}
        texts["the check"] = REFUSED.format(verified(name)), told
        return [
            f"{way}: {found}" for way, (wanted, found) in texts.items()
            if not str(found).startswith(wanted)
        ]  # fmt: skip
    if isinstance(right, str):
        return [f"reference: {right}"]
    told = tried(lambda: verify(matchwood.graph(A, duplicates=rule), right))
    faults = [] if told is None else [f"the check: {told}"]
    return faults + [f"{way}: {found}" for way, found in ways.items() if not same(found, right)]


def verified(name):
    """The check of a function."""
    (found,) = (entry.checks[0] for entry in registry.PROBLEMS if entry.function == name)
    return found


def faults_on_ranks(name, case, size):
    function, verify = GRAPHS[name]
    n, pairs, values, _, rule = case

    def work(comm):
        mine = slice(comm.rank * len(pairs) // size, (comm.rank + 1) * len(pairs) // size)
        part = (n, pairs[mine], values[mine])
        G = matchwood.distribute(part, comm=comm, duplicates=rule)
        found = tried(lambda: function(G))
        if not isinstance(found, str):
            told = tried(lambda: verify(G, found))
            return f"the check: {told}" if told else gathered(found)
        return found

    ranks = dist.run(work, size)
    if reads_negative(pairs, values, True, rule):  # what is spread is a list of edges
        return [found for found in ranks if not str(found).startswith(REFUSED.format(name))]
    right = function(matchwood.graph((n, pairs, values), duplicates=rule), engine="reference")
    return [found for found in ranks if isinstance(found, str) or not same(found, right)]


def gathered(found):
    """The answer of a rank with the whole vector."""
    field = "scores" if hasattr(found, "scores") else "labels"
    return dataclasses.replace(found, **{field: getattr(found, field).gather(None)})


@pytest.mark.slow
def test_negative_weights_are_refused_exactly_where_they_are_read():
    rng = np.random.default_rng(clock.seed())
    for k in clock.attempts(4):
        expected = k % 2 == 1
        case = drawn(rng)
        while reads_negative(*case[1:]) != expected:
            case = drawn(rng)
        threads, size = (int(number) for number in rng.integers(1, [4, 5]))
        for name in GRAPHS:
            faults = faults_on_one_machine(name, case, expected, threads)
            assert not faults, (name, threads, case, faults)
        name = ON_RANKS[int(rng.integers(len(ON_RANKS)))]
        faults = faults_on_ranks(name, case, size)
        assert not faults, (name, size, case, faults)


def test_lists_of_edges_with_a_negative_weight_are_refused():
    """Loops among them: these functions read every weight that comes."""
    rng = np.random.default_rng(clock.seed())
    for _ in clock.attempts(0.3):
        n, pairs, values, _, _ = drawn(rng)
        w = values.astype(np.float64)
        u, v = (np.ascontiguousarray(ends.astype(np.int64)) for ends in pairs.T)
        negative = bool((w < 0).any())
        streams = [(u, v, w)], zip(u.tolist(), v.tolist(), w.tolist(), strict=True)
        calls = [partial(matchwood.streaming_matching, edges, n=n) for edges in streams]
        calls += [partial(order_edges, u, v, w, engine=name) for name in ("reference", "cpu")]
        for found in map(tried, calls):
            assert (isinstance(found, str) and "negative" in found) == negative, (found, pairs, w)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_what_counts_as_negative_on_the_diagonal(kind, engine):
    """The least that is negative does, a zero with a sign does not; NaN is an error of its own."""
    tiny = -np.nextafter(kind(0), kind(1))
    for value, text in ((tiny, "not be negative"), (-0.0, ""), (np.nan, "nan"), (-np.inf, "inf")):
        A = sp.csr_array(np.array([[5, 1, 0], [1, 1, 2], [0, 2, 1]], kind))
        A.data[0] = value
        G = matchwood.graph(A)
        for name, (function, _) in GRAPHS.items():
            told = tried(lambda G=G, function=function: function(G, engine=engine))
            assert (text in told) if text else not isinstance(told, str), (name, value, told)
