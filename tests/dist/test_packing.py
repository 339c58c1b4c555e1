"""Marks and values in few words, which numbers there are, and questions to owners."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from matchwood import dist
from matchwood.engines.ranks.exchanges.cpu import distinct, keep_least
from matchwood.engines.ranks.exchanges.packing import (
    bits_of,
    pack_marks,
    pack_values,
    places_of,
    unpack_marks,
    unpack_values,
    words_of_bits,
)
from matchwood.engines.ranks.exchanges.routing import ask, deliver
from matchwood.primitives.number.ranks import number_labels


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_what_was_packed_comes_out(kind):
    rng = np.random.default_rng(3)
    for size in (0, 1, 31, 32, 33, 64, 65, 200, 5000):
        for part in (0, 0.01, 0.2, 1):
            places = np.flatnonzero(rng.random(size) < part)
            words = pack_marks(places, size, kind)
            assert words.dtype == kind
            assert words.size <= min(places.size, words_of_bits(size, kind))
            assert np.array_equal(unpack_marks(words, size), places)
            bits = bits_of(places, words_of_bits(size, kind), kind)
            assert bits.size == words_of_bits(size, kind)
            assert np.array_equal(places_of(bits, size), places)
            values = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, places.size, kind)
            words = pack_values(places, values, size)
            assert words.dtype == kind
            assert words.size <= places.size + min(places.size, words_of_bits(size, kind))
            found, numbers = unpack_values(words, size)
            assert np.array_equal(found, places)
            assert np.array_equal(numbers, values)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_distinct_numbers_and_least_values(kind):
    rng = np.random.default_rng(4)
    for size, most in ((0, 1), (1, 1), (50, 3), (50, 10**9), (40_000, 30_000), (1000, 2)):
        values = rng.integers(-most, most, size, dtype=kind)
        firsts, back = distinct(values)
        assert np.array_equal(values[firsts][back], values)
        assert np.unique(values).size == firsts.size
        assert all((values[:first] != values[first]).all() for first in firsts[:200])
        least = np.full(firsts.size, size, np.int64)
        keep_least(least, back, np.arange(size))
        assert np.array_equal(least, firsts)


def test_words_for_owners_and_their_answers():
    def body(comm, order):
        none = np.empty((0, 2), np.int64)
        G = matchwood.distribute((23, none), comm=comm, grid="2x2", order=order)
        own = G.grid.original_owned()
        wanted = np.array([22, 0, comm.rank, 7, 7])
        assert np.array_equal(ask(G.exchange, wanted, 10 * own), 10 * wanted)
        places, values = deliver(G.exchange, wanted, (wanted + comm.rank).astype(np.int32))
        assert sum(comm.objects(places.size)) == 5 * comm.size
        for place, value in zip(places, values, strict=True):
            assert 0 <= value - own[place] < comm.size
        labels = (G.ids // 3 * 5 % 23).astype(np.int32)
        count, numbers = number_labels(G, labels)
        return count, G.vector(numbers).gather(None)

    for order in ("given", "hashed"):
        for count, numbers in dist.run(body, 4, order):
            assert count == 8
            assert np.array_equal(numbers, np.arange(23) // 3)
