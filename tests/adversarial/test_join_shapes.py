"""Attacks on the join: groups, shards, blocks and columns of odd shape."""

from __future__ import annotations

import itertools
import random

import pytest

from adversarial.clock import attempts
from join_collections import records
from matchwood.join import collection, fuzzy_join, iter_fuzzy_join


def triples(pairs):
    return list(zip(*(part.tolist() for part in pairs), strict=True))


def near_copies(rng, count):
    """Records of few words, so that many pairs are alike."""
    words = [f"{word}{i}" for word in ("graph", "join", "token") for i in range(6)]
    return [rng.sample(words, rng.randrange(1, 5)) for _ in range(count)]


@pytest.mark.slow
def test_few_groups_many_groups_and_a_group_each():
    for seed in attempts(0.7):
        rng = random.Random(seed)
        rows, others = near_copies(rng, 60), near_copies(rng, 50)
        for right in (None, others):
            count = rng.choice((1, 2, 7, 1000))
            sides = [[rng.randrange(count) for _ in side] for side in (rows, right) if side]
            for some in sides:
                some[rng.randrange(len(some))] = rng.choice((None, float("nan")))
            by = sides[0] if right is None else sides
            whole = triples(fuzzy_join(rows, right, delta=0.4))
            wanted = [t for t in whole if sides[0][t[0]] == sides[-1][t[1]] is not None]
            for threads in (1, 2):
                assert triples(fuzzy_join(rows, right, delta=0.4, by=by, threads=threads)) == wanted
            best = fuzzy_join(rows, right, by=by, per_left=1)
            assert all(sides[0][i] == sides[-1][j] for i, j, _ in triples(best))


def test_a_group_for_each_record_has_no_pairs():
    rows = [["a", "b"]] * 3000
    assert len(fuzzy_join(rows, by=list(range(3000)))) == 0
    assert len(fuzzy_join(rows, by=[None] * 3000)) == 0
    halves = fuzzy_join(rows, rows, by=([i // 2 for i in range(3000)], list(range(3000))))
    assert triples(halves) == [(i, i // 2, 1.0) for i in range(3000)]


@pytest.mark.slow
def test_more_shards_than_records():
    rng = random.Random(2)
    for count in (0, 1, 2, 5):
        rows = near_copies(rng, count)
        for options in ({"delta": 0.3}, {"per_left": 2}):
            wanted = triples(fuzzy_join(rows, **options))
            parts = [triples(fuzzy_join(rows, shard=(i, 40), **options)) for i in range(40)]
            assert sorted(itertools.chain(*parts)) == sorted(wanted)
            blocks = [iter_fuzzy_join(rows, shard=(i, 40), **options) for i in range(40)]
            found = itertools.chain(*(triples(b) for b in itertools.chain(*blocks)))
            assert sorted(found) == sorted(wanted)


def test_blocks_stop_at_the_limit(monkeypatch):
    from matchwood.applications.join import cpu

    monkeypatch.setattr(cpu, "BLOCK", 5000)
    rows = collection([["a", "b"]] * 400)
    total = 400 * 399 // 2
    assert sum(map(len, iter_fuzzy_join(rows, limit=total))) == total
    for limit in (0, 1, total // 2, total - 1):
        seen = 0
        with pytest.raises(ValueError, match=f"limit is {limit};"):
            for block in iter_fuzzy_join(rows, limit=limit):
                seen += len(block)
        assert seen <= limit


@pytest.mark.slow
def test_more_partners_than_records():
    for seed in attempts(0.5):
        rng = random.Random(seed)
        rows = records(rng, 8)
        wanted = triples(fuzzy_join(rows, per_left=10**6, engine="reference"))
        assert triples(fuzzy_join(rows, per_left=10**6, threads=rng.choice((1, 2)))) == wanted


# Columns

ROWS = [["ab", "cd"], ["cd", "ab", "ab"], ["ab", ""], None, ["xyz"]]
TEXTS = ["ab;cd", "cd;ab;ab", "ab;", None, "xyz"]
WANTED = [(0, 1, 1.0), (0, 2, 0.5), (1, 2, 0.5)]


def arrow_columns(pa):
    lists = pa.chunked_array([pa.array(ROWS[:1]), pa.array([], pa.list_(pa.string())), ROWS[1:]])
    yield {}, lists
    yield {}, pa.array(ROWS, pa.list_(pa.dictionary(pa.int8(), pa.string())))
    yield {}, lists.cast(pa.large_list(pa.large_string()))
    yield {"separator": ";"}, pa.chunked_array([TEXTS[:2], TEXTS[2:]])
    yield {"separator": ";"}, pa.chunked_array([TEXTS[:2], TEXTS[2:]]).dictionary_encode()
    yield {"separator": ";"}, pa.array(TEXTS, pa.large_string())


@pytest.mark.slow
def test_arrow_columns_in_chunks_coded_and_with_nulls():
    import pyarrow as pa

    for options, column in arrow_columns(pa):
        table = pa.table({"tags": column, "g": pa.chunked_array([[1, 1], [1, None, 1]])})
        for given in (
            fuzzy_join(column, delta=0.5, **options),
            fuzzy_join(table, on="tags", delta=0.5, **options),
            fuzzy_join(table, on="tags", by="g", delta=0.5, **options),
            fuzzy_join(table.slice(0, 5), on="tags", delta=0.5, **options),
        ):
            assert triples(given) == WANTED
        assert len(fuzzy_join(table.slice(3), on="tags", delta=0.1, **options)) == 0
        assert len(fuzzy_join(table.slice(5), on="tags", delta=0.1, **options)) == 0
    with pytest.raises(TypeError, match=r"left\[1\]\[0\] must be text, got None"):
        fuzzy_join(pa.array([["a"], [None]]))
    with pytest.raises(TypeError, match="got bytes"):
        fuzzy_join(pa.array([[b"a"]]))


@pytest.mark.slow
def test_polars_columns_coded_and_with_nulls():
    import polars as pl

    texts, lists = pl.Series("tags", TEXTS), pl.Series("tags", ROWS)
    for options, column in (
        ({}, lists),
        ({}, lists.cast(pl.List(pl.Categorical))),
        ({}, pl.concat([lists[:2], lists[2:]], rechunk=False)),
        ({"separator": ";"}, texts),
        ({"separator": ";"}, texts.cast(pl.Categorical)),
        ({"separator": ";"}, pl.concat([texts[:1], texts[1:]], rechunk=False)),
    ):
        table = pl.DataFrame({"tags": column, "g": [1, 1, 1, None, 1]})
        assert triples(fuzzy_join(column, delta=0.5, **options)) == WANTED
        assert triples(fuzzy_join(table, on="tags", by="g", delta=0.5, **options)) == WANTED
    with pytest.raises(TypeError, match=r"left\[0\]\[1\] must be text, got None"):
        fuzzy_join(pl.Series([["a", None]]))


def test_pandas_columns_coded_and_with_nulls():
    import pandas as pd

    for kind in ("object", "string", "category"):
        column = pd.Series(TEXTS, index=[5, 5, 1, 0, 2]).astype(kind)
        by = pd.array([1, 1, 1, None, 1], dtype="Int64")
        found = fuzzy_join(column, delta=0.5, separator=";", by=by)
        assert triples(found) == WANTED, kind


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["jaccard", "edit", "equal"])
def test_elements_of_a_million_characters(similarity):
    text = "0123456789" * 100_000
    rows = [[text, "a"], [text[:-1] + "x", "a"], ["a"], [text[:999]]]
    if similarity != "edit":  # texts with nothing in common take minutes there
        rows.append([text[::-1], "b"])
    found = fuzzy_join(rows, delta=0.9, similarity=similarity)
    assert [t[:2] for t in triples(found)] == ([(0, 1)] if similarity != "equal" else [])
    best = fuzzy_join(rows, per_left=1, similarity=similarity)
    assert best.right[best.left == 1].tolist() == [2 if similarity == "equal" else 0]
