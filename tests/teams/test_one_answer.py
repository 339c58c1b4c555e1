"""The same integers at any number of threads, from one to four times the cores."""

from __future__ import annotations

import pytest

import matchwood
from graphs import rmat, shuffled
from support import cores, same

CALLS = {
    "bfs": lambda G, threads: matchwood.bfs(G, [3, 1], threads=threads),
    "bfs, undirected": lambda G, threads: matchwood.bfs(G, 0, directed=False, threads=threads),
    "afforest": lambda G, threads: matchwood.connected_components(
        G, method="afforest", threads=threads
    ),
    "fastsv": lambda G, threads: matchwood.connected_components(
        G, method="fastsv", threads=threads
    ),
    "search": lambda G, threads: matchwood.connected_components(G, method="bfs", threads=threads),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("symmetric", [True, False], ids=["undirected", "directed"])
def test_threads_do_not_change_the_answer(call, symmetric):
    A = shuffled(rmat(11, 4, symmetric=symmetric), isolated=100)
    G = matchwood.graph(A)
    expected = call(G, 1)
    for threads in range(2, 4 * cores() + 1):
        assert same(answer_of(call(G, threads)), answer_of(expected))


def answer_of(result):
    """What the promise is about: all but the number of rounds, which may depend on luck."""
    return {name: value for name, value in vars(result).items() if name != "rounds"}


@pytest.mark.parametrize("threads", [1, 2, 4 * cores()])
def test_generators_do_not_depend_on_threads(threads):
    one = matchwood.generators.rmat(10, 8, rng=5, threads=1)
    many = matchwood.generators.rmat(10, 8, rng=5, threads=threads)
    assert same((one.indptr, one.indices, one.data), (many.indptr, many.indices, many.data))
