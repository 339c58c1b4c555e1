"""How a program was started, and where its ranks run: decided from what the environment says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import matchwood as mw
from matchwood.engines.ranks.placement import (
    Place,
    Site,
    mpi_launchers,
    place_of,
    take_gpu,
    torchrun,
)
from support import environment, looped


@looped(
    ("variables", "expected"),
    [
        ({}, {}),
        ({"PMI_SIZE": "4"}, {"mpiexec of MPICH or Intel MPI": 4}),
        ({"OMPI_COMM_WORLD_SIZE": "2", "PMI_SIZE": ""}, {"Open MPI's mpiexec": 2}),
        ({"SLURM_STEP_NUM_TASKS": "16"}, {"Slurm's srun": 16}),
        ({"SLURM_NTASKS": "16"}, {}),  # a batch script: one process outside of srun
        ({"PMI_SIZE": "many"}, {}),
    ],
)
def test_launchers(variables, expected):
    assert mpi_launchers(variables) == expected


def test_torchrun():
    given = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "here", "MASTER_PORT": "1"}
    assert torchrun(given)
    assert not torchrun({"RANK": "0", "WORLD_SIZE": "2"})


@pytest.fixture
def _no_thread_number(monkeypatch):
    monkeypatch.delenv("MATCHWOOD_NUM_THREADS", raising=False)


def threads(*sites: Site) -> list[int]:
    return [place_of(rank, sites).threads for rank in range(len(sites))]


def site(cpus, host="a", quota=None, devices=0, boot="1"):
    cpus = tuple(cpus)
    return Site(host, boot, cpus, len(cpus) if quota is None else quota, devices)


@pytest.mark.usefixtures("_no_thread_number")
def test_cpus_are_divided_among_the_ranks_that_share_them():
    eight = range(8)
    assert threads(site(eight)) == [8]
    assert threads(site(eight), site(eight)) == [4, 4]
    assert threads(*[site(eight)] * 3) == [2, 2, 2]
    assert threads(*[site(range(2))] * 5) == [1] * 5
    assert threads(site(range(4)), site(range(4, 8))) == [4, 4]  # bound: nothing is shared
    assert threads(site(eight), site(range(4))) == [6, 2]  # four of its own, half of the others
    assert threads(site(eight), site(eight, host="b")) == [8, 8]
    assert threads(site(eight), site(eight, boot="2")) == [8, 8]  # two hosts of one name
    assert threads(site(eight, quota=4), site(eight, quota=4)) == [2, 2]


def test_the_number_of_threads_can_be_given(monkeypatch):
    monkeypatch.setenv("MATCHWOOD_NUM_THREADS", "3")
    assert threads(site(range(8)), site(range(8))) == [3, 3]


@pytest.mark.usefixtures("_no_thread_number")
def test_more_ranks_than_cpus_are_known():
    assert not place_of(0, [site(range(2))] * 2).crowded
    assert place_of(0, [site(range(2))] * 3).crowded


def test_cpus_that_a_launcher_has_dealt_out_are_known():
    def apart(*sites):
        return [place_of(rank, sites).apart for rank in range(len(sites))]

    assert apart(site(range(4)), site(range(4, 8))) == [True, True]
    assert apart(site(range(8))) == [False]  # nothing says that it is alone
    assert apart(site(range(4)), site(range(3, 8)), site((9,))) == [False, False, True]
    assert apart(site(range(4)), site(range(4))) == [False, False]
    assert apart(site(range(4)), site(range(4), host="b")) == [False, False]


def test_gpus_go_round():
    sites = [site(range(4), devices=2) for _ in range(5)]
    sites.insert(2, site(range(4), host="b", devices=2))
    places = [place_of(rank, sites) for rank in range(6)]
    assert [place.gpu for place in places] == [0, 1, 0, 0, 1, 0]
    assert [place.local_rank for place in places] == [0, 1, 0, 2, 3, 4]
    assert places[2].local_size == 1
    assert place_of(0, [site(range(4))]).gpu is None


def test_a_host_without_a_gpu_is_named():
    place = Place("node7", 0, 1, (0,), 1, False, None, 0)
    with pytest.raises(mw.EngineUnavailable, match="world: no GPU on node7"):
        take_gpu(place)


def test_description(capsys):
    found = mw.dist.describe(mode="dicts")
    assert found["kind"] == "serial"
    assert found["timeout"] == 600
    assert found["ranks"][0]["cpus"]
    assert mw.dist.describe() is None
    assert "kind       serial, 1 rank" in capsys.readouterr().out
    with mw.dist.world() as comm:
        assert mw.dist.describe(comm, "dicts")["ranks"][0]["threads"] == comm.threads
    with pytest.raises(ValueError, match="describe: mode must be one of"):
        mw.dist.describe(mode="loud")


def test_description_of_threads():
    found = mw.dist.run(lambda comm: mw.dist.describe(comm, "dicts"), 3, threads=2)
    assert all(each["kind"] == "threads" for each in found)
    assert [rank["threads"] for rank in found[1]["ranks"]] == [2, 2, 2]


def test_a_world_of_one_is_a_whole_communicator():
    with mw.dist.world(threads=2) as comm:
        assert (comm.kind, comm.rank, comm.size, comm.threads) == ("serial", 0, 1, 2)
        assert comm.allreduce(np.arange(3)).tolist() == [0, 1, 2]
    assert comm.closed


def test_the_index_brings_no_mpi():
    script = "import sys, matchwood as mw; mw.dist.run; print('mpi4py' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
