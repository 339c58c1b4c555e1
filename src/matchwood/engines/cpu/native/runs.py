"""Posts of members and runs of kernels, as the rest of the engine uses them.

`prepare` compiles what cpu_posts.py has and tries it (cpu_trial.py).  Before that, and where it
does not work, `ready` says no: then no post is made, and teams begin through Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import pickle
import sysconfig
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from matchwood.engines.cpu.cpus import available_cpus
from matchwood.engines.cpu.native import cpu_trial
from matchwood.engines.cpu.native.cpu_entry import Entry
from matchwood.engines.cpu.native.cpu_posts import BIT, DETAIL, POST_WORDS, STATUS
from matchwood.engines.cpu.native.cpu_words import SUPPORTED
from matchwood.engines.cpu.pinning import ANYWHERE
from matchwood.engines.cpu.team import SPINS, YIELDS

WAIT_SECONDS = 0.05  # of one wait of the caller, between two calls of a progress callback
PATIENCE = SPINS + YIELDS
"""How often a member looks at its post (with `idle` between) after a kernel before it sleeps: as
often as at a barrier.  The next kernel of a call often comes in that time, and then the last of 16
members begins 35 us after the call; with 164 looks 60 us, and 200 us where they sleep.  Members of
teams larger than the machine only spin.  Measured: bench/teams/handover.py, 16 cores."""

OWN_PATIENCE = 8 * PATIENCE
"""The same of members that stay on CPUs of their own (pinning.py): nobody else needs them.  On
four ranks of four threads components of R-MAT 22 then take 25 ms instead of 28, a matching 128
instead of 135."""

POSSIBLE = SUPPORTED and not sysconfig.get_config_var("Py_GIL_DISABLED")
_SECONDS = np.array([0, WAIT_SECONDS * 1e9], np.int64)  # and nanoseconds
_bell = np.zeros(1, np.int64)
_bits = itertools.cycle(range(32))
_unfinished: set[Run] = set()  # whose arrays members may use, whatever becomes of the caller
_code: dict[str, Any] = {}  # machine code of cpu_posts.py, by name; empty until it is tried


_cpus = functools.cache(available_cpus)  # asked once: it reads files


def ready() -> bool:
    """Can members wait in machine code?"""
    return bool(_code)


class Post:
    """Where a member waits.  Made only when all is `ready`."""

    def __init__(self) -> None:
        self._words = np.zeros(POST_WORDS, np.int64)
        self._words[BIT] = 1 << next(_bits)
        self.address: int = self._words.ctypes.data

    def attend(self) -> None:
        """Run kernels; returns when `call` came."""
        _code["attend"](self._words, _bell)

    def call(self) -> None:
        """The member has tasks in Python."""
        _code["call"](self._words, _bell)


class HasPost(Protocol):
    """A member; its post is there, as all was `ready` before the run."""

    post: Any
    cpu: int


class Run:
    """One run of a kernel by members at their posts.

    Machine code does each step as a whole.  An exception such as Ctrl-C comes before or after it,
    and OVER tells whether members have begun.
    """

    def __init__(self, entry: Entry, name: str, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments  # kept alive until it is over
        self._plan = entry.plan
        self._name = name
        self._record = entry.record_of(arguments)
        self._posts = np.empty(0, np.int64)

    def begin(self, members: Sequence[HasPost]) -> None:
        """Send the members to work, each with its place as its rank."""
        apart = len(members) > 1 and all(member.cpu != ANYWHERE for member in members)
        self._begin([member.post for member in members], OWN_PATIENCE if apart else PATIENCE)

    def alone(self) -> None:
        """The run of a team of one in this thread."""
        post = Post()
        self._begin([post], PATIENCE)
        post.call()  # after the kernel it leaves the post
        post.attend()

    def _begin(self, posts: list[Post], patience: int) -> None:
        self._posts = np.array([post.address for post in posts])
        _unfinished.add(self)
        looks = patience if len(posts) <= _cpus() else SPINS
        _code["start"](self._plan, self._record, self._posts, _bell, looks)

    def wait(self) -> bool:
        """True when all members have ended.  A signal ends the wait at once, so Ctrl-C works."""
        over: bool = _code["wait"](self._record, _SECONDS)
        if over:
            _unfinished.discard(self)
        return over

    def call_off(self) -> None:
        """Stop the members, and wait for those that have begun.

        Afterwards the caller may change the arrays, so a second Ctrl-C must not end this early.
        """
        while True:
            try:
                _code["call_off"](self._record, self._posts)
                if self.wait():
                    return
            except BaseException:  # noqa: S112  the first exception is raised by the caller
                continue

    @property
    def error(self) -> BaseException | None:
        """What the first member that failed has raised."""
        if self._record[STATUS] == 0:
            return None
        return _raised(int(self._record[DETAIL]), self._name)


class _Raised(ctypes.Structure):
    """Numba's record of an exception: class, arguments and place, as a pickle."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("digest", ctypes.c_void_p),
        ("made_by", ctypes.c_void_p),  # not null where the arguments are not in the pickle
        ("allocated", ctypes.c_int32),
    )


def _raised(address: int, name: str) -> BaseException:
    found = _Raised.from_address(address) if address else _Raised()
    if found.data and not found.made_by:
        kind, arguments, _ = pickle.loads(ctypes.string_at(found.data, found.size))
        if kind is not None:
            made: BaseException = kind(*(arguments or ()))
            return made
    return RuntimeError(f"{name} raised an exception")


@functools.cache
def prepare() -> None:
    """Compile the posts and try them, in this thread, once; the compiler's lock must be held."""
    if POSSIBLE:
        with contextlib.suppress(Exception):  # a Numba with other internals
            _code.update(cpu_trial.posts())
