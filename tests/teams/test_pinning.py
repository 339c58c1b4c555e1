"""Members stay on CPUs that are reserved for this process, and only there."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from matchwood.engines.cpu import barrier, crew, kernel, members, pinning
from matchwood.engines.cpu import native as natively
from matchwood.engines.cpu.mailboxes import LOOKS

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two CPUs, and a system that lets threads stay on one",
)
LARGE = 1 << 20


@kernel
def _add(team, counts):
    counts[team.me] += team.me + 1
    if barrier(team):
        return
    if team.me == 0:
        counts[team.size] = counts[: team.size].sum()


@pytest.fixture
def cpus(monkeypatch):
    """The CPUs of this process, reserved while `cpus.lasting`; members are new ones."""
    monkeypatch.setattr(members, "_free", [])
    monkeypatch.setattr(pinning, "_reserved", None)
    crew(2, work=LARGE).run(_add, np.zeros(3, np.int64))  # compiled, so that members have mailboxes
    members._free.clear()
    return sorted(os.sched_getaffinity(0))


def ran(size):
    counts = np.zeros(size + 1, np.int64)
    crew(size, work=LARGE).run(_add, counts)
    assert counts[size] == size * (size + 1) // 2


def allowed():
    """For each idle member the CPUs it may run on, in the order in which a team has them."""
    return [os.sched_getaffinity(member.native_id) for member in members._free]


def native():
    return all(member.mailbox is not None for member in members._free)


def test_members_stay_where_there_are_as_many_as_cpus(cpus):
    pinning.reserve(cpus, lambda: True)
    for _ in range(3):
        ran(len(cpus))
        if not native():
            pytest.skip("kernels run through Python here")
        assert allowed() == [{cpu} for cpu in cpus]
    assert os.sched_getaffinity(0) == set(cpus)  # the calling thread may go anywhere


def test_members_that_stay_wait_longer_for_the_next_kernel(cpus):
    def looks():
        return {int(member.mailbox.words[LOOKS]) for member in members._free}

    ran(len(cpus))
    if not native():
        pytest.skip("kernels run through Python here")
    assert looks() == {natively.LOOKS_BEFORE_SLEEP}
    pinning.reserve(cpus, lambda: True)
    ran(len(cpus))
    assert looks() == {natively.OWN_CPU_LOOKS}
    assert natively.OWN_CPU_LOOKS > natively.LOOKS_BEFORE_SLEEP


def test_nothing_is_reserved_at_first(cpus):
    ran(len(cpus))
    assert allowed() == [set(cpus)] * len(cpus)


@pytest.mark.parametrize("more", [-1, 1])
def test_members_of_other_teams_go_anywhere(cpus, more):
    pinning.reserve(cpus, lambda: True)
    ran(len(cpus))
    ran(len(cpus) + more)
    used = members._free[-(len(cpus) + more) :]
    assert all(os.sched_getaffinity(member.native_id) == set(cpus) for member in used)
    ran(len(cpus))
    if native():
        assert allowed()[-len(cpus) :] == [{cpu} for cpu in cpus]


def test_it_ends_with_what_it_was_for(cpus):
    lasting = True
    pinning.reserve(cpus, lambda: lasting)
    ran(len(cpus))
    lasting = False
    ran(len(cpus))
    assert allowed() == [set(cpus)] * len(cpus)
    lasting = True  # it does not come back
    ran(len(cpus))
    assert allowed() == [set(cpus)] * len(cpus)


def test_tasks_in_python_go_anywhere(cpus):
    """They may start threads, which would stay there too."""
    pinning.reserve(cpus, lambda: True)
    ran(len(cpus))
    found = []
    crew(len(cpus), work=LARGE).spread(lambda i: found.append(os.sched_getaffinity(0)), 20)
    assert found == [set(cpus)] * 20


def test_not_where_the_calling_thread_has_other_cpus(cpus):
    pinning.reserve(cpus, lambda: True)
    ran(len(cpus))
    try:
        os.sched_setaffinity(0, set(cpus[:1]))
        ran(len(cpus))
        assert allowed() == [set(cpus[:1])] * len(cpus)
    finally:
        os.sched_setaffinity(0, set(cpus))


def test_a_refusal_does_no_harm(cpus, monkeypatch):
    def refuse(thread, where):
        raise PermissionError

    pinning.reserve(cpus, lambda: True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_setaffinity", refuse)
        ran(len(cpus))
    assert allowed() == [set(cpus)] * len(cpus)
    ran(len(cpus))
    if native():
        assert allowed() == [{cpu} for cpu in cpus]


def test_an_interrupt_in_between_is_not_forgotten(cpus, monkeypatch):
    """The member was moved, and nobody had time to write it down."""
    move = os.sched_setaffinity

    def interrupted(thread, where):
        move(thread, where)
        raise KeyboardInterrupt

    pinning.reserve(cpus, lambda: True)
    ran(len(cpus) + 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_setaffinity", interrupted)
        if native():
            with pytest.raises(KeyboardInterrupt):
                ran(len(cpus))
    ran(len(cpus) + 1)
    assert allowed() == [set(cpus)] * (len(cpus) + 1)


def test_cpus_that_are_lent(cpus):
    """Members go there, one on each where there are as many; afterwards they come back."""
    try:
        os.sched_setaffinity(0, set(cpus[:1]))
        pinning.reserve(cpus[:1], lambda: True)
        ran(2)
        for size in (2, len(cpus), len(cpus) + 1, 1):
            with pinning.lent(cpus):
                assert os.sched_getaffinity(0) == set(cpus)
                ran(size)
                used = members._free[-size:]
                each = [os.sched_getaffinity(member.native_id) for member in used]
                if size == len(cpus) and native():
                    assert each == [{cpu} for cpu in cpus]
                else:
                    assert each == [set(cpus)] * size
            assert os.sched_getaffinity(0) == set(cpus[:1])
            ran(size)
            used = members._free[-size:]
            assert all(os.sched_getaffinity(member.native_id) == set(cpus[:1]) for member in used)
    finally:
        os.sched_setaffinity(0, set(cpus))
    with pinning.lent(cpus[:1]):  # nothing that it does not have already
        assert os.sched_getaffinity(0) == set(cpus)


def test_cpus_that_the_system_does_not_lend(cpus, monkeypatch):
    def refuse(thread, where):
        if len(where) > 1:
            raise OSError("not yours")

    os.sched_setaffinity(0, set(cpus[:1]))
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "sched_setaffinity", refuse)
            with pinning.lent(cpus):
                assert not pinning.usable(cpus)
                ran(2)
    finally:
        os.sched_setaffinity(0, set(cpus))


FORKED = """
import os, sys
from matchwood.engines.cpu import pinning
pinning.reserve({0, 1}, lambda: True)
child = os.fork()
if child == 0:
    os._exit(0 if pinning._reserved is None else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or pinning._reserved is None)
"""


def test_a_forked_process_has_no_cpus_of_its_own():
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60).returncode == 0
