"""Real collections: numbers that were counted before, and brute force on a part."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from matchwood.join import collection, fuzzy_join

YELP = {0.9: 61_812, 0.8: 90_621, 0.75: 111_815, 0.7: 134_356, 0.6: 239_215, 0.5: 433_975}
FIRST_THOUSAND = {0.5: 5_127, 0.6: 2_885, 0.7: 1_615, 0.8: 1_221}


@pytest.fixture(scope="module")
def yelp(data_folder: Path) -> list[str]:
    path = data_folder / "sets" / "tokenjoin_yelp_sample.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.mark.slow
def test_yelp_sample(yelp):
    prepared = collection(yelp, separator=";")
    for delta, count in YELP.items():
        assert len(fuzzy_join(prepared, delta=delta)) == count
    whole = fuzzy_join(prepared, delta=0.6)
    for options in ({"verify": "exact"}, {"filters": "basic"}, {"threads": 3}):
        again = fuzzy_join(prepared, delta=0.6, **options)
        assert np.array_equal(whole.left, again.left)
        assert np.array_equal(whole.right, again.right)
        assert np.array_equal(whole.score, again.score)
    best = fuzzy_join(prepared, k=1000, exclude_equal=True)
    order = np.lexsort((whole.right, whole.left, -whole.score))
    order = order[whole.score[order] < 1][:1000]
    assert np.array_equal(best.left, whole.left[order])
    assert np.array_equal(best.right, whole.right[order])


@pytest.mark.slow
def test_first_thousand_lines_equal_brute_force(yelp):
    """Every pair is verified exactly, without any filter."""
    from matchwood.applications.join.verification import share_of
    from matchwood.applications.join.verification.cpu.pairs import verify
    from matchwood.applications.join.verification.cpu.rows import how

    prepared = collection(yelp[:1000], separator=";").alone()
    (records,) = prepared.records
    left, right = np.triu_indices(1000, 1)
    some = np.diff(records.starts) > 0
    keep = some[left] & some[right]
    pairs = np.stack((left[keep], right[keep]), axis=1)
    for delta, count in FIRST_THOUSAND.items():
        found = fuzzy_join(yelp[:1000], separator=";", delta=delta)
        assert len(found) == count
        exact = how("test", "jaccard", "exact", "weight", True)
        verdicts, _ = verify(prepared.elements, records, records, pairs, share_of(delta), exact)
        brute = pairs[(verdicts & 1) == 1]
        assert np.array_equal(brute, np.stack((found.left, found.right), axis=1))


@pytest.mark.slow
def test_debian_dependencies(data_folder):
    path = data_folder / "sets" / "debian12_depends_sets.tsv.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    found = fuzzy_join([line.partition("\t")[2] for line in lines], separator=";", delta=0.7)
    assert len(found) == 4_079_751
