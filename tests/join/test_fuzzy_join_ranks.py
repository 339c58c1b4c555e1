"""A join on ranks: their parts together are that of one machine, and errors are those of all."""

from __future__ import annotations

import random

import pytest

import matchwood
from join_collections import records
from matchwood import dist
from matchwood.applications.join import collecting
from matchwood.applications.join.fuzzy import iter_fuzzy_join
from matchwood.join import collection, fuzzy_join
from spread_graphs import tried


def rows(pairs):
    score = pairs.score if pairs.score is not None else [0.0] * len(pairs)
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), list(score), strict=True))


def parts(comm, left, right, options):
    """Only the first rank has the records, or a collection of them."""
    first = comm.rank == 0
    found = fuzzy_join(left if first else None, right if first else None, comm=comm, **options)
    return rows(found), found.shape, found.stats["pairs"]


@pytest.mark.parametrize("similarity", ["jaccard", "edit", "equal"])
def test_all_ranks_together_have_the_whole(similarity):
    rng = random.Random(similarity)
    for size in (1, 2, 5):
        for _ in range(6):
            left, right = records(rng), rng.choice((None, records(rng)))
            options = {"delta": rng.choice((1.0, 0.7, 0.3)), "similarity": similarity}
            if rng.random() < 0.3:
                options["scores"] = False
            if rng.random() < 0.3:
                options = {"per_left": 2, "similarity": similarity}
            one = fuzzy_join(left, right, **options)
            found = dist.run(parts, size, left, right, options)
            assert sorted(row for each, _, _ in found for row in each) == sorted(rows(one))
            assert {shape for _, shape, _ in found} == {one.shape}
            assert sum(count for *_, count in found) == len(one)


def test_tokens_are_made_once(monkeypatch):
    made, tokenised = [], collecting._tokenised

    def counted(*given):
        made.append(len(given[1]))
        return tokenised(*given)

    monkeypatch.setattr(collecting, "_tokenised", counted)
    tags = [["database", "systems"], ["databases", "system"], ["graphs"]] * 20
    by = [0, 0, 1] * 20
    found = dist.run(parts, 4, tags, None, {"delta": 0.4, "by": by})
    assert made == [5]
    assert sum(len(each) for each, *_ in found) == len(fuzzy_join(tags, delta=0.4, by=by))
    found = dist.run(parts, 3, collection(tags), None, {"delta": 0.4})
    assert sum(len(each) for each, *_ in found) == len(fuzzy_join(tags, delta=0.4))


def test_errors_are_those_of_all_ranks():
    tags = [["a", "b"], ["b", "a"]] * 4

    def body(comm):
        odd = comm.rank == 1
        calls = [
            {"delta": 0.5 + odd / 4}, {"k": 2}, {"shard": (0, 2)}, {"delta": 2.0},
            {"threads": 0 if odd else 1}, {"engine": "x"}, {"q": 0}, {"limit": 3},
            {"verify": "x" if odd else "exact"}, {"by": [1]},
        ]  # fmt: skip
        given = tags if comm.rank == 0 else None
        said = [tried(lambda: fuzzy_join(given, comm=comm, **options)) for options in calls]  # noqa: B023
        said.append(tried(lambda: fuzzy_join([["a", 1]], comm=comm)))
        return said, len(fuzzy_join(given, comm=comm, delta=1.0))

    found = dist.run(body, 3)
    expected = (
        "ValueError: fuzzy_join: delta must be the same on all ranks", "k cannot be given with",
        "shard cannot be given with comm", "delta must be", "threads must be at least 1, got 0 (on",
        "engine must be", "fuzzy_join: q must be", "fuzzy_join: limit must be at least",
        "verify must be the same on all ranks", "by must have a value for each record, got 1 for 8",
        "TypeError: fuzzy_join: ",
    )  # fmt: skip
    for text, part in zip(found[0][0], expected, strict=True):
        assert part in text
    assert [said for said, _ in found] == [found[0][0]] * 3
    assert sum(count for _, count in found) == 28
    with pytest.raises(TypeError, match="fuzzy_join: comm must be a communicator"):
        fuzzy_join(tags, comm=3)
    with pytest.raises(TypeError, match="iter_fuzzy_join: unknown argument 'comm'"):
        iter_fuzzy_join(tags, comm=None)


def test_a_rank_that_fails_while_the_others_join():
    def body(comm):
        if comm.rank == 1:
            raise OSError("gone")
        fuzzy_join([["a"]] * 9 if comm.rank == 0 else None, comm=comm)

    with pytest.raises(matchwood.RankFailed, match="rank 1 failed: OSError: gone"):
        dist.run(body, 3)
