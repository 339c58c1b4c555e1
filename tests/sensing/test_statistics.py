"""The nine quantities, histograms, fits and ranges: engines and checks against the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from matchwood import engines
from matchwood.applications.sensing.statistics.check import check_histograms, check_statistics
from matchwood.applications.sensing.statistics.gpu import batches as rounds
from matchwood.applications.sensing.statistics.result import NAMES, combined
from matchwood.errors import CheckFailed
from matchwood.sensing import (
    Histogram,
    Ranges,
    Statistics,
    TrafficMatrix,
    sense,
    traffic_histograms,
    traffic_matrix,
    traffic_statistics,
)
from sensing.traffic_cases import CASES, official, tiny, uniform, zipf
from support import THREADS


@pytest.mark.parametrize("case", CASES)
def test_engines_equal_the_definition(engine, case):
    src, dst = CASES[case]()
    right = traffic_statistics((src, dst), engine="reference")
    A = traffic_matrix(src, dst)
    assert traffic_statistics((src, dst), engine=engine) == right
    assert traffic_statistics(A, engine=engine) == right
    check_statistics((src, dst), right)
    check_statistics(A, right)
    histograms = traffic_histograms(A, engine=engine)
    assert histograms == traffic_histograms(A, engine="reference")
    check_histograms((src, dst), histograms)


@pytest.mark.parametrize("make", [uniform, zipf])
def test_threads_and_batches_do_not_matter(make):
    src, dst = make(300_000)
    right = traffic_statistics((src, dst), threads=1)
    check_statistics((src, dst), right)
    A = traffic_matrix(src, dst)
    for threads in (*THREADS, 7):
        assert traffic_statistics((src, dst), threads=threads) == right
        assert traffic_statistics(A, threads=threads) == right
        assert traffic_statistics((src, dst), threads=threads, batches=5) == right


@pytest.mark.gpu
@pytest.mark.parametrize("make", [uniform, zipf, lambda n: uniform(n, 300)])
@pytest.mark.parametrize("place", ["cpu", "gpu"])
def test_gpus_and_batches_do_not_matter(make, place, monkeypatch):
    monkeypatch.setattr(rounds, "LEAST", 1)  # parts of any size
    monkeypatch.setattr(rounds, "SPARE", 0)
    src, dst = make(700_001)
    right = traffic_statistics((src, dst))
    packets = tuple(engines.moved(x, place) for x in (src, dst))
    assert traffic_statistics(packets, engine="gpu") == right
    for batches in (1, 2, 5, 10):
        for devices in (None, [0], [0, 0], [0, 0, 0], [0, 0, 0, 0]):
            found = traffic_statistics(packets, engine="gpu", batches=batches, devices=devices)
            assert found == right, (batches, devices)


def test_the_official_example():
    found = traffic_statistics(official())
    assert found == Statistics(21, 12, 4, 4, 7, 4, 4, 6, 4, 2, 2, 1, 2, 2)
    assert list(found.nine().values()) == [21, 12, 4, 4, 7, 4, 4, 6, 4]


def test_the_tiny_example():
    found = traffic_statistics(tiny())
    assert list(found.nine().values()) == [8, 5, 3, 4, 3, 2, 3, 5, 3]
    histograms = traffic_histograms(tiny())

    def table(histogram):
        return dict(zip(histogram.values.tolist(), histogram.counts.tolist(), strict=True))

    assert table(histograms.link_packets) == {1: 3, 2: 1, 3: 1}
    assert table(histograms.source_fan_out) == {1: 3, 2: 1}
    assert table(histograms.destination_fan_in) == {1: 2, 3: 1}
    assert table(histograms.source_packets) == {1: 2, 3: 2}
    assert table(histograms.destination_packets) == {1: 1, 2: 1, 5: 1}


def test_a_bijection_of_addresses_changes_nothing():
    src, dst = zipf(20_000)
    right, histograms = traffic_statistics((src, dst)), traffic_histograms((src, dst))
    for odd, shift in ((0x9E3779B1, 5), (3, 0), (0xFFFFFFFF, 2**31)):
        ours, theirs = ((x * np.uint32(odd) + np.uint32(shift)) for x in (src, dst))
        assert traffic_statistics((ours, theirs)) == right
        assert traffic_histograms((ours, theirs)) == histograms


def test_uniform_packets_have_the_expected_number_of_sources():
    n, m = 1 << 20, 2.0**32
    found = traffic_statistics(uniform(n))
    expected = m * -np.expm1(n * np.log1p(-1 / m))
    assert abs(found.unique_sources - expected) < 6 * np.sqrt(n * n / (2 * m)) + 6


def test_large_counts_are_exact(engine):
    A = TrafficMatrix([1, 2], [0, 2, 3], [5, 6, 5], [2**40, 1, 3])
    found = traffic_statistics(A, engine=engine)
    assert found == traffic_statistics(A, engine="reference")
    assert found.max_destination_packets == 2**40 + 3
    assert traffic_histograms(A, engine=engine) == traffic_histograms(A, engine="reference")


def test_invariants_of_histograms():
    h = traffic_histograms(zipf(30_000))
    assert h.source_packets.weight == h.link_packets.weight == h.destination_packets.weight
    assert h.source_packets.weight == 30_000
    assert h.source_fan_out.weight == h.destination_fan_in.weight == h.link_packets.total
    for histogram in h.as_dict().values():
        edges, part = histogram.log_binned()
        assert part.sum() == pytest.approx(1)
        assert edges[-1] >= histogram.values[-1] > edges[-1] // 2
        assert histogram.cumulative()[-1] == pytest.approx(1)
        assert histogram.probability().sum() == pytest.approx(1)


@pytest.mark.parametrize("name", NAMES)
def test_the_check_sees_every_wrong_number(name):
    A = traffic_matrix(*official())
    right = traffic_statistics(A)
    for other in (getattr(right, name) + 1, getattr(right, name) - 1):
        with pytest.raises(CheckFailed, match=name):
            check_statistics(A, replace(right, **{name: other}))


def test_the_check_sees_every_wrong_histogram():
    A = traffic_matrix(*official())
    right = traffic_histograms(A)
    for name, histogram in right.as_dict().items():
        for values, counts in [
            (histogram.values + 1, histogram.counts),
            (histogram.values, histogram.counts + 1),
            (histogram.values[:-1], histogram.counts[:-1]),
        ]:
            with pytest.raises(CheckFailed, match=name):
                check_histograms(A, replace(right, **{name: Histogram(values, counts)}))
    with pytest.raises(TypeError, match="check_statistics"):
        check_statistics(A, right)
    with pytest.raises(TypeError, match="check_histograms"):
        check_histograms(A, traffic_statistics(A))
    with pytest.raises(TypeError, match="traffic must be"):
        check_statistics("A", traffic_statistics(A))


def test_parts_without_common_addresses_combine():
    src, dst = uniform(2000, 50)
    low = (src < 25) & (dst < 25)
    high = (src >= 25) & (dst >= 25)
    rows = [
        list(traffic_statistics((src[part], dst[part])).as_dict().values()) for part in (low, high)
    ]
    both = low | high
    assert combined(rows) == traffic_statistics((src[both], dst[both]))


@pytest.mark.parametrize(("alpha", "delta"), [(1.5, 0.0), (2.0, 3.0), (2.5, -0.5), (1.2, 10.0)])
def test_a_fit_finds_what_was_drawn(alpha, delta):
    rng = np.random.default_rng(5)
    d = np.arange(1, 3001)
    p = (d + delta) ** -alpha
    histogram = Histogram(*np.unique(rng.choice(d, 100_000, p=p / p.sum()), return_counts=True))
    fit = histogram.fit()
    assert abs(fit.alpha - alpha) < 3 * fit.alpha_error
    assert abs(fit.delta - delta) < 3 * fit.delta_error
    assert fit.distance < 0.01
    assert fit.probability(np.arange(1, fit.largest + 1)).sum() == pytest.approx(1)


def test_a_fit_of_long_tails_and_of_none():
    values = np.unique((1.5 ** np.arange(1, 45)).astype(np.int64))  # up to 5 * 10^7
    counts = np.maximum(1, (1e6 * values**-1.2).astype(np.int64))
    fit = Histogram(values, counts).fit()
    assert np.isfinite([fit.alpha, fit.delta, fit.distance]).all()
    assert Histogram([3], [10]).fit() is None
    assert Histogram([], []).fit() is None
    two = Histogram([1, 2], [10, 10]).fit()
    assert np.isfinite([two.alpha, two.delta, two.distance]).all()


def test_sums_beyond_a_million_terms_are_integrals():
    from matchwood.applications.sensing.statistics.result import _Sums

    k = np.arange(1.0, 3_000_001)
    for s, j in ((0.7, 0), (1.0, 1), (2.0, 2)):
        direct = float((np.log(k + 0.5) ** j * (k + 0.5) ** -s).sum())
        assert _Sums(3_000_000).of(s, 0.5, 0, j) == pytest.approx(direct, rel=1e-12)


def test_blocks_between_ranges():
    """The challenge's example: D1 = {0, 2}, D2 = {1, 4, 5}."""
    ranges = [["0.0.0.0", "0.0.0.2"], ["0.0.0.1", "0.0.0.4/31"]]
    blocks = sense(official(), ranges=ranges).blocks

    def table(name):
        return [[getattr(blocks[i, j], name) for j in "12"] for i in "12"]

    assert table("unique_links") == [[2, 4], [1, 1]]
    assert table("valid_packets") == [[3, 7], [1, 1]]
    assert table("unique_sources") == [[2, 2], [1, 1]]
    assert table("unique_destinations") == [[1, 2], [1, 1]]
    assert table("max_link_packets") == [[2, 4], [1, 1]]
    assert table("max_source_packets") == [[2, 5], [1, 1]]
    assert table("max_destination_packets") == [[3, 5], [1, 1]]
    assert table("max_source_fan_out") == [[1, 2], [1, 1]]
    assert table("max_destination_fan_in") == [[2, 2], [1, 1]]
    assert sum(block.valid_packets for block in blocks.values()) == 21
    assert len(blocks) == 9


def test_ranges_decide_by_the_first_that_has_an_address():
    ranges = Ranges({"inner": ["10.1.0.0/16"], "outer": ["10.0.0.0/8", "255.255.255.255/32"]})
    addresses = [0, 10 << 24, (10 << 24) + (1 << 16), (11 << 24) - 1, 11 << 24, 2**32 - 1]
    found = [ranges.names[k] for k in ranges.classify(np.array(addresses, np.uint32))]
    assert found == ["else", "outer", "inner", "outer", "else", "outer"]
    for wrong, error in (
        (["10.0.0.0/33"], ValueError),
        ([["10.0.0.1/8"]], ValueError),
        ({"else": []}, ValueError),
        (3, TypeError),
        ("10.0.0.0/8", TypeError),
        ([5], TypeError),
        ({"a": None}, TypeError),
        ({1: ["10.0.0.0/8"], "1": ["11.0.0.0/8"]}, ValueError),
    ):
        with pytest.raises(error, match="Ranges: ranges"):
            Ranges(wrong)


def test_options_of_a_matrix_are_checked_too():
    matrix = traffic_matrix(np.array([1]), np.array([2]))
    with pytest.raises(ValueError, match="batches must be at least 1"):
        traffic_statistics(matrix, batches=0)
    with pytest.raises(ValueError, match="batches share out packets, and traffic is a matrix"):
        traffic_statistics(matrix, batches=2)
    with pytest.raises(ValueError, match="devices are for the GPU engine"):
        traffic_statistics(matrix, devices=[0], engine="cpu")


def test_traffic_that_is_none():
    for wrong in (3, "a", np.zeros((2, 2)), None):
        with pytest.raises(TypeError, match="traffic_statistics: traffic must be"):
            traffic_statistics(wrong)
    with pytest.raises(ValueError, match="batches must be at least 1"):
        traffic_statistics(official(), batches=0)
    with pytest.raises(ValueError, match="devices are for the GPU engine"):
        traffic_statistics(official(), devices=[0])
    with pytest.raises(ValueError, match="engine must be"):
        traffic_statistics(official(), engine="tpu")


def test_more_packets_than_fit_beside_a_destination(monkeypatch):
    from matchwood.applications.sensing.statistics import cpu

    src, dst = zipf(3000)
    right = traffic_statistics((src, dst))
    monkeypatch.setattr(cpu, "FITS", 100)
    assert traffic_statistics((src, dst)) == right
