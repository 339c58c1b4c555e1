"""The communicator of torch.distributed, in processes started as torchrun starts them."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dist.mpi import clean_environment

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


def torchrun(folder: Path, ranks: int, text: str, *arguments: str, **extra: str) -> list[str]:
    """What the ranks print, sorted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = folder / "script.py"
    script.write_text(text)
    started = []
    for rank in range(ranks):
        environment = clean_environment(
            RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            **extra,
        )  # fmt: skip
        started.append(
            subprocess.Popen(
                [sys.executable, str(script), *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    lines = []
    try:
        for process in started:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            lines += out.splitlines()
    finally:
        for process in started:
            process.kill()
    return sorted(lines)


EVERYTHING = """
import matchwood as mw
from dist import bodies
from dist.mpi import say

with mw.dist.world() as comm:
    assert comm.kind == "torch"
    bodies.everything(comm, few=True)
    mw.dist.describe(comm)
say("right", comm.rank)
"""


def test_operations(tmp_path):
    ranks = 3
    lines = torchrun(tmp_path, ranks, EVERYTHING)
    assert [line for line in lines if "right" in line] == [f"right {r}" for r in range(ranks)]
    assert f"kind       torch, {ranks} ranks" in lines


INJECTED = """
import json, os, sys
import numpy as np
import matchwood as mw
from dist.mpi import say
from dist.walks import outcome

for seed in range(int(sys.argv[1])):
    fails = {}
    how, when = outcome(mw.dist.world, seed, fails)
    say(json.dumps([seed, how, when, fails.get("at")]))
with mw.dist.world() as comm:
    assert comm.allreduce(np.ones(1))[0] == comm.size
"""


def test_injected_failures(tmp_path):
    ranks, seeds = 3, 15
    found = [json.loads(line) for line in torchrun(tmp_path, ranks, INJECTED, str(seeds))]
    for seed in range(seeds):
        walks = [entry for entry in found if entry[0] == seed]
        said = [how for _, how, _, _ in walks]
        assert len(walks) == ranks
        failed = max(at for *_, at in walks if at is not None)
        assert max(when for *_, when, _ in walks) - failed < 5, (seed, said)
        assert "late" not in said, (seed, said)


LATE = """
import time
import numpy as np
import matchwood as mw
from dist.mpi import say

try:
    with mw.dist.world() as comm:
        comm.barrier()
        if comm.rank == 1:
            time.sleep(4)
        comm.allreduce(np.ones(1))
except mw.RankFailed as error:
    say(comm.rank, error)
"""


def test_the_timeout_names_who_did_not_come(tmp_path):
    lines = torchrun(tmp_path, 3, LATE, MATCHWOOD_DIST_TIMEOUT="2")
    assert len(lines) == 3
    for line in lines:
        assert "rank 1 has not come to allreduce within 2 s" in line


USED = """
import torch.distributed as dist
dist.init_process_group("gloo")
import matchwood as mw
with mw.dist.world() as comm:
    assert (comm.kind, comm.rank, comm.size) == ("torch", dist.get_rank(), 2)
dist.barrier()
"""


def test_a_group_that_the_program_has_made(tmp_path):
    assert torchrun(tmp_path, 2, USED) == []
