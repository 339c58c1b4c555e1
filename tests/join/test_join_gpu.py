"""The GPU engine finds the same pairs with the same weights as the CPU engine."""

from __future__ import annotations

import random

import numpy as np
import pytest

from join_sets import random_sets
from matchwood.applications.join.collecting import collection
from matchwood.applications.join.cpu import Task
from matchwood.applications.join.verification.cpu.rows import how
from matchwood.errors import EngineUnavailable
from matchwood.join import fuzzy_join, iter_fuzzy_join

pytestmark = pytest.mark.gpu


def sorted_pairs(raws, itself):
    raws = list(raws)
    left, right, weight = (np.concatenate([raw[k] for raw in raws] or [[]]) for k in range(3))
    if itself:  # where every record is probed, each engine has its own way round
        left, right = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((right, left))
    return np.stack((left[order], right[order], weight[order])).astype(np.int64)


def both(prepared, delta, similarity, *, everyone=False, unequal=False, scores=True):
    from matchwood.applications.join import gpu

    plan = how("fuzzy_join", similarity, "certified", "weight", scores)
    found = []
    for engine in ("cpu", "gpu"):
        task = Task(prepared, delta, "joint", everyone=everyone, unequal=unequal)
        raws = task.run(plan, 1, task.costs(1)) if engine == "cpu" else gpu.run(task, plan)
        found.append(sorted_pairs(raws, len(prepared.records) == 1))
    if not scores:
        found = [pairs[:2] for pairs in found]
    assert np.array_equal(*found)
    return found[0]


@pytest.mark.parametrize("similarity", ["jaccard", "equal"])
def test_same_bits_as_the_cpu(similarity):
    rng = random.Random(3)
    total = 0
    for trial in range(30):
        sets = random_sets(rng, 60, most=[4, 8, 40][trial % 3])
        others = random_sets(rng, 40, most=8) + sets[:5]
        alone = collection(sets, similarity=similarity)
        for delta in (0.05, 0.5, 0.6, 0.8, 1.0):
            total += both(alone.alone(), delta, similarity).shape[1]
            both(alone.alone(), delta, similarity, scores=False)
            both(alone.alone(), delta, similarity, everyone=True, unequal=True)
            beside = alone.beside(collection(others, similarity=similarity))
            total += both(beside, delta, similarity).shape[1]
    assert total > 1000


def test_large_sets():
    """More elements than shared memory holds, and matchings that need the solver."""
    rng = random.Random(5)
    sets = random_sets(rng, 40, most=300, letters="ab", longest=12)
    sets += [[*record[: len(record) // 2], "zz"] for record in sets]
    for delta in (0.3, 0.5, 0.7):
        both(collection(sets).alone(), delta, "jaccard")


def test_little_room(monkeypatch):
    """Parts are made again with more room, or as halves."""
    from matchwood.applications.join import gpu

    sets = random_sets(random.Random(7), 200)
    monkeypatch.setattr(gpu, "FIRST_ROOM", 3)
    both(collection(sets).alone(), 0.3, "jaccard")
    monkeypatch.setattr(gpu, "_room", lambda wanted: min(wanted, 900))
    both(collection(sets).alone(), 0.3, "jaccard")


OPTIONS = [
    {"delta": 0.5},
    {"delta": 0.5, "filters": "basic"},
    {"delta": 0.4, "scores": False},
    {"delta": 0.3, "exclude_equal": True},
    {"delta": 0.4, "similarity": "equal"},
    {"k": 7},
    {"k": 100_000},
    {"per_left": 1},
    {"per_left": 3, "delta": 0.3},
    {"delta": 0.4, "shard": (1, 3)},
]


def test_the_public_function_gives_the_same_on_both_engines():
    rng = random.Random(9)
    sets = random_sets(rng, 70, letters="abcd")
    others = random_sets(rng, 50, letters="abcd") + sets[:9]
    by = [i % 4 for i in range(len(sets))]
    for right in (None, others):
        for options in [*OPTIONS, {"delta": 0.4, "by": by if right is None else (by, by[:59])}]:
            found = [fuzzy_join(sets, right, engine=engine, **options) for engine in ("cpu", "gpu")]
            for a, b in zip(*found, strict=True):
                assert (a is None and b is None) or np.array_equal(a, b), options
            assert len(found[0]) > 0
            found[1].check(sets, right)
    blocks = [list(iter_fuzzy_join(sets, delta=0.4, engine=engine)) for engine in ("cpu", "gpu")]
    assert [block.left.tolist() for block in blocks[0]] == [b.left.tolist() for b in blocks[1]]


def test_empty_sides_and_records():
    for left, right in [
        ([], None),
        ([[]], None),
        ([[], []], [["a"]]),
        ([["a"]], []),
        ([["a"]], [["b"]]),
    ]:
        assert len(fuzzy_join(left, right, engine="gpu", delta=0.1)) == 0
    assert len(fuzzy_join([["a"], [], ["a"]], engine="gpu")) == 1


def test_what_the_gpu_does_not_have_is_refused():
    for options in ({"similarity": "edit"}, {"verify": "exact"}, {"verify": "greedy"}):
        with pytest.raises(EngineUnavailable, match="fuzzy_join: the GPU engine has"):
            fuzzy_join([["abc"], ["abd"]], engine="gpu", **options)


def test_matrices_of_cupy_pass_the_gate_and_are_read_on_the_host():
    import cupy
    import scipy.sparse as sp
    from cupyx.scipy import sparse

    dense = (np.random.default_rng(3).random((60, 40)) < 0.15).astype(np.float64)
    wanted = fuzzy_join(sp.csr_array(dense), delta=0.3, similarity="equal")
    assert len(wanted) > 0
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):
        for engine in ("cpu", "gpu"):
            found = fuzzy_join(
                kind(cupy.asarray(dense)), delta=0.3, similarity="equal", engine=engine
            )
            assert all(map(np.array_equal, wanted, found))
    for name, value in (("indptr", 10**8), ("indptr", -1), ("indices", 40), ("indices", -1)):
        matrix = sparse.csr_matrix(cupy.asarray(dense))
        getattr(matrix, name)[5] = value
        with pytest.raises(ValueError, match="fuzzy_join: left: "):
            fuzzy_join(matrix, similarity="equal")


def test_what_the_gpu_has_not_is_refused_for_the_best_pairs_too():
    """Also where all of them are equal records, so that nothing would be joined."""
    for options in ({"similarity": "edit"}, {"verify": "exact"}):
        with pytest.raises(EngineUnavailable, match="the GPU engine has"):
            fuzzy_join([["a"]] * 3, k=1, engine="gpu", **options)
