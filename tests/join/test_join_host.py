"""What surrounds a join: progress, estimates, Ctrl-C, ranks of MPI."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import matchwood
from matchwood.applications.join.fuzzy import estimate
from matchwood.join import collection, fuzzy_join
from support import REST, environment

ROOT = Path(__file__).resolve().parents[2]


def tagged(count, seed, words=400):
    """Sets of tags, of which some are frequent, with many near copies."""
    rng = random.Random(seed)
    known = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(words)]
    made = []
    for _ in range(count):
        if made and rng.random() < 0.6:
            row = list(rng.choice(made))
            row[rng.randrange(len(row))] = rng.choice(known)
        else:
            row = [known[int(words * rng.random() ** 3)] for _ in range(rng.randint(2, 9))]
        made.append(row)
    return made


# Progress


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"delta": 0.5}, {"per_left": 3}], ids=str)
def test_progress_tells_records_and_pairs(options):
    prepared = collection(tagged(8_000, 1))
    fuzzy_join(prepared, delta=0.99)
    seen, pairs = [], []
    with matchwood.on_progress(lambda *step: seen.append(step), found=pairs.append):
        answer = fuzzy_join(prepared, **options)
    seen = [step for step in seen if step[1]]  # some kernels do not know how much there is to do
    assert all(done <= total for done, total in seen)
    if "delta" in options:
        assert seen[-1] == (8_000, 8_000)
        assert pairs == sorted(pairs)
        assert pairs[-1] == len(answer)
    assert max(pairs) > 0


def test_progress_of_others_tells_no_pairs():
    pairs = []
    with matchwood.on_progress(lambda done, total: None, found=pairs.append):
        matchwood.connected_components(matchwood.generators.grid((400, 400)), threads=2)
    assert pairs == []


# Estimates


def _collections():
    yield "tags", tagged(5_000, 2), {}
    yield "two lists", tagged(4_000, 3), {"right": tagged(3_000, 4)}
    rng = random.Random(5)
    words = [f"{rng.randrange(10**9):09}" for _ in range(10_000)]
    apart = [[word] for word in words]
    yield "one group of equal sets", apart + [["same"]] * 300, {}
    yield "few pairs", [*apart, [words[0]], [words[7]]], {}
    yield "few large groups", [[words[int(40 * rng.random() ** 2)]] for _ in range(8_000)], {}
    yield "edit", tagged(3_000, 6), {"similarity": "edit"}
    yield "by group", tagged(5_000, 7), {"by": [i % 7 for i in range(5_000)]}


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("place", "case"), list(enumerate(_collections())))
def test_estimates_know_their_error(place, case, rest):
    _, rows, options = case
    delta = (0.5, 0.8)[(place + rest) % 2]
    found = estimate(rows, **options, delta=delta)
    wanted = len(fuzzy_join(rows, **options, delta=delta, scores=False))
    assert abs(found["pairs"] - wanted) <= found["error"], (case[0], wanted, found)
    assert found["sampled"] <= 1001
    assert found["error"] <= 0.5 * wanted + 3 * len(rows)


def test_an_estimate_of_few_records_is_exact():
    rows = tagged(700, 8)
    found = estimate(rows, delta=0.6)
    assert found["pairs"] == len(fuzzy_join(rows, delta=0.6))
    assert found["error"] == 0
    assert estimate(rows[:30], delta=0.6, engine="reference")["pairs"] == len(
        fuzzy_join(rows[:30], delta=0.6)
    )


# Ctrl-C


def _long_sets():
    rng = random.Random(9)
    return [["".join(rng.choices("abcdefgh", k=7)) for _ in range(12_000)] for _ in range(2)]


def _long_texts():
    rng = random.Random(10)  # texts that are alike would be quick
    return [["".join(rng.choices("abcdefgh", k=600_000))] for _ in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (_long_sets, {"similarity": "edit", "verify": "exact", "delta": 0.1}),
        (_long_sets, {"similarity": "edit", "verify": "streaming", "delta": 0.1}),
        (_long_sets, {"q": 1, "verify": "exact", "delta": 0.1}),
        (_long_texts, {"similarity": "edit", "delta": 0.1}),
    ],
    ids=["edit", "streaming", "dense", "long texts"],
)
def test_ctrl_c_ends_one_large_pair(make, options):
    """One thread and one pair: the work is a few postings, and takes minutes."""
    import _thread

    fuzzy_join([["abc"], ["abd"]], threads=1, **options)
    rows = make()
    prepared = collection(
        rows, similarity=options.get("similarity", "jaccard"), q=options.get("q", 3)
    )
    prepared.alone()
    options = {name: value for name, value in options.items() if name not in ("similarity", "q")}
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fuzzy_join(prepared, threads=1, **options)
        time.sleep(10)  # it was quicker than the signal
    assert time.monotonic() - began < 9
    timer.join()


# Ranks of MPI


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 1, 3, 4])
def test_shards_over_ranks(ranks, tmp_path):
    pytest.importorskip("mpi4py", reason="the example of shards needs mpi4py")
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    rows = tagged(1500, 11)
    sets, out = tmp_path / "sets.txt", tmp_path / "pairs.npz"
    sets.write_text("\n".join(";".join(row) for row in rows))
    script = ROOT / "examples" / "join" / "shards.py"
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, str(script), str(sets), str(out)],
        env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wanted = fuzzy_join(rows, delta=0.7)
    assert f"{len(wanted)} pairs from {ranks} parts" in done.stdout
    with np.load(out) as found:
        for name, array in zip(("left", "right", "score"), wanted, strict=True):
            assert np.array_equal(found[name], array)
