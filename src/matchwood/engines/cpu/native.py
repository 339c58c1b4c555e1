"""How the members of a team begin a kernel without the interpreter's lock.

Through Python each member in turn takes the lock, unpacks the arguments and lets the lock go.  On
a virtual machine of 16 cores each turn takes some 30 us, so the last of 16 members begins half a
millisecond late.  Here the calling thread writes the arguments into a record once, and all members
are woken together: they wait in machine code, each at its mailbox (mailboxes.py).

The slots of a record are what a kernel's entry reads (jit.py).  Numbers are packed into them at
once, and for an array the address of NumPy's object, which `fill` replaces by what lies in it.  No
array has an owner here: kernels count no references, and the caller keeps the arrays alive.

`prepare` gets the machine code of mailboxes.py and tries it.  Before that, and where it does not
work (another system, a Python without the lock), `ready` is False: then no mailbox is made, members
call entries through ctypes, and records are filled in Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import pickle
import struct
import sysconfig
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from matchwood.engines.cpu import code, mailboxes
from matchwood.engines.cpu.compiled import LARGEST, Kernel, is_compiled
from matchwood.engines.cpu.cpus import available_cpus
from matchwood.engines.cpu.mailboxes import (
    BIT,
    DETAIL,
    FINE,
    FUNCTION,
    HEAD,
    MAILBOX_WORDS,
    OVER,
    SLOTS,
    STATUS,
    SUPPORTED,
)
from matchwood.engines.cpu.pinning import ANYWHERE
from matchwood.engines.cpu.team import SPINS, WORDS, YIELDS, Team

WAIT_SECONDS = 0.05  # of one wait of the caller, between two calls of a progress callback
LOOKS_BEFORE_SLEEP = SPINS + YIELDS
"""How often a member looks at its mailbox (with `idle` between) after a kernel before it sleeps: as
often as at a barrier.  The next kernel of a call often begins in that time, and then the last of 16
members begins 35 us after the call; with 164 looks 60 us, and 200 us where they sleep.  Members of
teams larger than the machine only spin.  Measured: bench/engines/cpu/handover.py, 16 cores."""

OWN_CPU_LOOKS = 8 * LOOKS_BEFORE_SLEEP
"""The same of members that stay on CPUs of their own (pinning.py): nobody else needs them.  On
four ranks of four threads components of R-MAT 22 then take 25 ms instead of 28, a matching 128
instead of 135."""

POSSIBLE = SUPPORTED and not sysconfig.get_config_var("Py_GIL_DISABLED")
_seconds = (ctypes.c_int64 * 2)(0, int(WAIT_SECONDS * 1e9))  # (seconds, nanoseconds)
_SECONDS = ctypes.addressof(_seconds)
_bell = ctypes.c_int64()
_BELL = ctypes.addressof(_bell)
_LOCK = [  # addresses of what releases and regains the interpreter's lock
    ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    for name in ("PyEval_SaveThread", "PyEval_RestoreThread")
]
_bits = itertools.cycle(range(32))
_unfinished: set[Run] = set()  # keeps arrays alive that members may use, even without the caller
_code: dict[str, Any] = {}  # machine code of mailboxes.py, by name; empty until it is tried

_cpus = functools.cache(available_cpus)  # asked once: it reads files


def ready() -> bool:
    """Whether members can wait in machine code."""
    return bool(_code)


class Mailbox:
    """Where a member waits.  Made only when `ready`."""

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * MAILBOX_WORDS)()
        self.words[BIT] = 1 << next(_bits)
        self.address = ctypes.addressof(self.words)

    def attend(self) -> None:
        """Run kernels until `call` is called."""
        _code["attend"](self.address, _BELL)

    def call(self) -> None:
        """Make the member leave the mailbox for tasks in Python."""
        _code["call"](self.address, _BELL)


class HasMailbox(Protocol):
    """A member, with a mailbox."""

    mailbox: Any
    cpu: int


class Run:
    """One run of a kernel by members at their mailboxes.

    Machine code does each step as a whole.  An exception such as Ctrl-C is raised before or after
    it, and OVER says whether members have begun.
    """

    def __init__(self, record: Any, name: str, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments  # kept alive until it is over
        self._name = name
        self._record = record
        self._address = ctypes.addressof(self._record)
        self._mailboxes = (ctypes.c_int64 * 0)()

    def begin(self, members: Sequence[HasMailbox]) -> None:
        """Send the members to work, numbered by their place in the list."""
        apart = len(members) > 1 and all(member.cpu != ANYWHERE for member in members)
        looks = OWN_CPU_LOOKS if apart else LOOKS_BEFORE_SLEEP
        self._begin([member.mailbox for member in members], looks)

    def alone(self) -> None:
        """Run a team of one in this thread."""
        mailbox = Mailbox()
        self._begin([mailbox], LOOKS_BEFORE_SLEEP)
        mailbox.call()  # after the kernel it leaves the mailbox
        mailbox.attend()

    def _begin(self, boxes: list[Mailbox], most_looks: int) -> None:
        self._mailboxes = (ctypes.c_int64 * len(boxes))(*(mailbox.address for mailbox in boxes))
        _unfinished.add(self)
        looks = most_looks if len(boxes) <= _cpus() else SPINS
        places = ctypes.addressof(self._mailboxes)
        _code["start"](self._address, places, len(boxes), _BELL, looks)

    def wait(self) -> bool:
        """True when all members have ended.  A signal ends the wait at once, so Ctrl-C works."""
        over = bool(_code["wait"](self._address, _SECONDS))
        if over:
            _unfinished.discard(self)
        return over

    def cancel(self) -> None:
        """Stop the members, and wait for those that have begun.

        Afterwards the caller may change the arrays, so a second Ctrl-C must not end this early.
        """
        while True:
            try:
                places = ctypes.addressof(self._mailboxes)
                _code["cancel"](self._address, places, len(self._mailboxes))
                if self.wait():
                    return
            except BaseException:  # noqa: S112  the first exception is raised by the caller
                continue

    @property
    def error(self) -> BaseException | None:
        """The exception of the first member that failed."""
        status = self._record[STATUS]
        return None if status == 0 else _raised(self._record[DETAIL], self._name)


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


# How a kernel is called


LAYOUT = 0x103  # bits of `ndarray.flags.num`: C order, Fortran order, aligned
LINE = 16  # words of 128 bytes: what all members write lies apart from what they read
Control = ctypes.c_int64 * WORDS  # the words that a team shares, see team.py
_TEAM = Team(0, 1, np.zeros(WORDS, np.int64))
_ENTRY = (ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_entries: dict[tuple[Any, ...], Entry] = {}  # by kernel, kinds of its arguments


def entered(kernel: Kernel, size: int, arguments: tuple[Any, ...]) -> tuple[Entry, Any]:
    """The machine code for these arguments, made where it does not exist, and their record.

    In the record an array is the address of NumPy's object: `Entry.fill` must follow.
    """
    kinds: list[Any] = [kernel]
    packed: list[Any] = [0, size, 0, WORDS, 8]
    _take(arguments, kinds, packed)
    key = tuple(kinds)
    entry = _entries.get(key)
    if entry is None:
        entry = _entries[key] = Entry(kernel, arguments)
    record = entry.kind.from_buffer_copy(entry.first)
    packed[2] = ctypes.addressof(record) + 8 * entry.words
    entry.layout.pack_into(record, 8 * SLOTS, *packed)
    return entry, record


def _take(arguments: tuple[Any, ...], kinds: list[Any], packed: list[Any]) -> None:
    """What decides the machine code for arguments, and their values as `struct` packs them: for an
    array the address of its object.

    This takes 0.3 us an argument.  Numba's own test of types takes 2 us for a call, but 500 us for
    a record if there is a record of another class with the same name and fields.
    """
    for value in arguments:
        kind = type(value)
        if kind is np.ndarray or (kind not in _NUMBERS and isinstance(value, np.ndarray)):
            kinds += (value.dtype, value.ndim, value.flags.num & LAYOUT)
            packed.append(id(value))
        elif kind is int:
            kinds.append(kind if value <= LARGEST else np.uint64)
            packed.append(value)
        elif kind in _NUMBERS:
            kinds.append(kind)
            packed.append(value)
        elif isinstance(value, tuple):
            kinds += (kind, len(value))
            _take(value, kinds, packed)
        elif value is None:
            kinds.append(None)
        elif kind in _COMPLEX:
            kinds.append(kind)
            packed += (value.real, value.imag)
        elif is_compiled(value):
            kinds.append(value)
        else:
            kinds.append(kind)
            packed.append(value)


_NUMBERS = frozenset({int, bool, float, *(np.dtype(kind).type for kind in "?bhilqBHILQfd")})
_COMPLEX = (complex, np.complex64, np.complex128)


class Entry:
    """What is the same in all runs of a kernel with arguments of the same kinds."""

    def __init__(self, kernel: Kernel, values: tuple[Any, ...]) -> None:
        address = code.address_of(kernel, (_TEAM, *values))
        assert address is not None
        self.address = address
        self._name = kernel.__name__
        self._enter = ctypes.CFUNCTYPE(*_ENTRY)(address)
        form, plan, slot = "<5q", [], 5  # the team's: number, size, and the words that all share
        for leaf in _leaves(values):
            if isinstance(leaf, np.ndarray):
                plan += [slot, leaf.ndim]
            part = _form(leaf)
            form += part
            slot += struct.calcsize("<" + part) // 8
        self.layout = struct.Struct(form)
        self._plan = (ctypes.c_int64 * len(plan))(*plan)
        self._plan_address = ctypes.addressof(self._plan)
        self._arrays = len(plan) // 2
        self.words = SLOTS + slot + LINE  # where those words begin in a record
        self.kind = ctypes.c_int64 * (self.words + WORDS)
        first = self.kind()
        first[FUNCTION], first[OVER] = address, 1
        self.first = bytes(first)

    def fill(self, record: Any, arguments: tuple[Any, ...]) -> None:
        """Replace the addresses of NumPy's objects by data, shapes and strides."""
        if not _code:
            prepare()
        if ready():
            _code["fill"](self._plan_address, self._arrays, ctypes.addressof(record))
            return
        arrays = [leaf for leaf in _leaves(arguments) if isinstance(leaf, np.ndarray)]
        for k, array in enumerate(arrays):
            slot = SLOTS + self._plan[2 * k]
            words = (array.ctypes.data, *array.shape, *array.strides)
            record[slot : slot + len(words)] = words

    def call(self, record: Any, me: int) -> None:
        """Run the kernel as member `me` in this thread, without the interpreter's lock."""
        raised = ctypes.c_int64()
        slots = ctypes.addressof(record) + 8 * SLOTS
        if self._enter(slots, me, ctypes.addressof(raised)) not in FINE:
            raise _raised(raised.value, self._name)

    def call_here(self, record: Any, arguments: tuple[Any, ...]) -> None:
        """`fill` and run a kernel in this thread, without the interpreter's lock."""
        if ready():
            address = ctypes.addressof(record)
            if _code["run"](self._plan_address, self._arrays, address, *_LOCK) not in FINE:
                raise _raised(record[DETAIL], self._name)
        else:
            self.fill(record, arguments)
            self.call(record, 0)


def held(kernel: Kernel, arguments: tuple[Any, ...]) -> int:
    """Run a kernel as the only member, with the interpreter's lock held; returns what it returns.

    For kernels that read Python's objects.
    """
    entry, record = entered(kernel, 1, arguments)
    entry.fill(record, arguments)
    raised = ctypes.c_int64()
    slots = ctypes.addressof(record) + 8 * SLOTS
    enter = ctypes.PYFUNCTYPE(*_ENTRY)(entry.address)
    if enter(slots, 0, ctypes.addressof(raised)) not in FINE:
        raise _raised(raised.value, kernel.__name__)
    result: int = record[SLOTS - 1]
    return result


def _leaves(values: tuple[Any, ...]) -> Iterator[Any]:
    """The items of nested tuples, in Numba's order."""
    for value in values:
        if isinstance(value, tuple):
            yield from _leaves(value)
        else:
            yield value


_FORMS = {"b": "?7x", "i": "q", "u": "Q", "f8": "d", "f4": "f4x", "c16": "dd", "c8": "f4xf4x"}


def _form(leaf: Any) -> str:
    """How `struct` packs a leaf: words of 64 bits."""
    if isinstance(leaf, np.ndarray):
        return f"Q{16 * leaf.ndim}x"
    if leaf is None or is_compiled(leaf):
        return ""
    if type(leaf) is int:
        return "q" if leaf <= LARGEST else "Q"
    kind = np.dtype(type(leaf))
    return _FORMS.get(kind.kind) or _FORMS[kind.kind + str(kind.itemsize)]


# The machine code of mailboxes.py, tried with one member and one caller in one thread

_FREE = ("attend", "wait")  # let other threads run Python


PYTHON_RUNS = 256
"""Runs of kernels, one after the other with none compiled between, until mailboxes.py is compiled,
which takes a second: the first answer on a new machine comes without it.  A run takes 0.3 ms more
until then."""
_calm = [0, 0.0]  # such runs, and the seconds that were spent compiling before


def _settled() -> bool:
    spent = code.seconds_compiling()
    _calm[:] = (_calm[0] + 1 if spent == _calm[1] else 0), spent
    return _calm[0] >= PYTHON_RUNS


_tried: list[bool] = []


def prepare() -> None:
    """Get the machine code of mailboxes.py and try it, once."""
    if not _tried and POSSIBLE:
        made = None
        with contextlib.suppress(Exception):  # a NumPy with other objects, for example
            made = machine_code(_settled())
            if made is None:
                return
            if _works(made):
                _code.update(made)
        _tried.append(made is not None)


def machine_code(compiles: bool = True) -> dict[str, Any] | None:
    """The machine code by name; None where it must be compiled and shall not."""
    made = {}
    for name in ("fill", "run", "start", "attend", "call", "wait", "cancel"):
        function = bound(getattr(mailboxes, name), holding=name not in _FREE, compiles=compiles)
        if function is None:
            return None
        made[name] = function
    return made


def bound(routine: Any, *, holding: bool = False, compiles: bool = True) -> Any:
    """A routine as Python calls it, with the interpreter's lock or without; None if it `compiles`
    not and must be compiled."""
    words = routine.py_func.__code__.co_argcount
    address = code.address_of(routine, (0,) * words, compiles=compiles)
    if address is None:
        return None
    form = ctypes.PYFUNCTYPE if holding else ctypes.CFUNCTYPE
    return form(*[ctypes.c_int64] * (words + 1))(address)


def _works(made: dict[str, Any]) -> bool:
    """Whether `fill` finds what lies in an array of NumPy's."""
    sample = np.arange(24, dtype=np.int16).reshape(4, 6)[::-2, ::2]
    fields = (ctypes.c_int64 * 2).from_address(id(sample) + 8 * HEAD)
    if fields[0] != sample.ctypes.data or fields[1] & 0xFFFFFFFF != sample.ndim:
        return False  # then the other fields hold no addresses
    plan, record = (ctypes.c_int64 * 2)(1, 2), (ctypes.c_int64 * (SLOTS + 6))()
    record[SLOTS + 1] = id(sample)
    made["fill"](ctypes.addressof(plan), 1, ctypes.addressof(record))
    return record[SLOTS:] == [0, sample.ctypes.data, *sample.shape, *sample.strides]
