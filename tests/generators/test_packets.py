"""Packets from a seed."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.generators import packets
from matchwood.generators.packets import reference, thresholds
from support import THREADS, same


@pytest.mark.parametrize("kind", ["uniform", "zipf"])
def test_the_same_at_any_number_of_threads(kind):
    wanted = packets(5000, kind, rng=3, engine="reference", hosts=1000)
    for threads in THREADS:
        assert same(packets(5000, kind, rng=3, threads=threads, hosts=1000), wanted)
    assert same(packets(700, kind, rng=3, hosts=1000)[0], wanted[0][:700])
    assert not same(packets(5000, kind, rng=4, hosts=1000), wanted)
    assert wanted[0].dtype == wanted[1].dtype == np.uint32
    assert packets(0, kind)[0].size == 0


@pytest.mark.slow
def test_uniform_packets_have_the_expected_number_of_sources():
    """n draws of M addresses give M (1 - (1 - 1/M)^n) different ones."""
    n, m = 1 << 20, 2.0**32
    expected = m * -np.expm1(n * np.log1p(-1 / m))
    for addresses in packets(n, rng=1):
        assert abs(np.unique(addresses).size - expected) < 6 * np.sqrt(n * n / m + 1)
        assert abs(addresses.mean() / m - 0.5) < 0.002
    src, dst = packets(n, rng=1)
    assert abs(np.corrcoef(src, dst)[0, 1]) < 0.005


@pytest.mark.parametrize("exponent", [0, 0.7, 1.3, 3])
def test_hosts_are_drawn_as_often_as_they_should(exponent):
    hosts, n = 40, 400_000
    weights = np.arange(1.0, hosts + 1) ** -exponent
    expected = n * weights / weights.sum()
    rank = reference._address(
        thresholds(hosts, float(exponent)),
        np.r_[0, thresholds(hosts, float(exponent))[:-1]].astype(np.uint32),
    )
    for addresses in packets(n, "zipf", hosts=hosts, exponent=exponent, rng=5):
        found, counts = np.unique(addresses, return_counts=True)
        seen = dict(zip(found.tolist(), counts.tolist(), strict=True))
        drawn = np.array([seen.get(int(address), 0) for address in rank])
        assert drawn.sum() == n
        assert (abs(drawn - expected) < 6 * np.sqrt(expected) + 6).all()


def test_large_tables():
    src, _ = packets(10_000, "zipf", hosts=2**20)
    assert same(src, packets(10_000, "zipf", hosts=2**20, engine="reference")[0])
    assert same(packets(100, "zipf", hosts=1), packets(100, "zipf", hosts=1, engine="reference"))
    assert np.unique(packets(100, "zipf", hosts=1)[0]).size == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: packets(-1), ValueError, "packets: n must be at least 0"),
        (lambda: packets(5, "normal"), ValueError, "packets: kind must be one of"),
        (lambda: packets(5, "zipf", hosts=0), ValueError, "packets: hosts must be at least 1"),
        (lambda: packets(5, "zipf", hosts=2**25), ValueError, "packets: hosts must be at most"),
        (lambda: packets(5, "zipf", exponent=-1), ValueError, "packets: exponent must be finite"),
        (lambda: packets(5, rng="x"), TypeError, "packets: rng must be an integer"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
