"""How the members of a team begin a kernel without the interpreter's lock.

Through Python each member in turn takes the lock, unpacks the arguments and lets the lock go.  On
a virtual machine of 16 cores each turn takes some 30 us, so the last of 16 members begins half a
millisecond late.  Here the calling thread unpacks the arguments once, and all members are woken
together: they wait in machine code, each at its mailbox (mailboxes.py).

Numba flattens the arguments of a compiled function: a record of three arrays is 3 x 7 numbers.
Each gets a slot, a word of 64 bits, in the order in which `call_at` passes them.  No array has an
owner here: kernels count no references, and the caller keeps the arrays alive.  Numba's layout is
compared with the expected one.  Where it differs there is no `entry`, and members call the kernel
through Python; the same holds for arguments other than plain numbers and arrays.

`prepare` compiles mailboxes.py and tries it.  Before that, and where it does not work (another
system, a Python without the lock, a Numba with other internals), `ready` is False: then no mailbox
is made, and teams begin through Python.
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
from typing import Any, NamedTuple, Protocol

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.np.numpy_support import as_dtype

from matchwood.engines.cpu import mailboxes
from matchwood.engines.cpu.compiled import kernel
from matchwood.engines.cpu.cpus import available_cpus
from matchwood.engines.cpu.mailboxes import (
    BIT,
    DETAIL,
    FLOATS,
    FUNCTION,
    MAILBOX_WORDS,
    OVER,
    REALS,
    SLOTS,
    STATUS,
    SUPPORTED,
    VALUES,
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
_SECONDS = np.array([0, WAIT_SECONDS * 1e9], np.int64)  # (seconds, nanoseconds)
_bell = np.zeros(1, np.int64)
_bits = itertools.cycle(range(32))
_unfinished: set[Run] = set()  # keeps arrays alive that members may use, even without the caller
_code: dict[str, Any] = {}  # machine code of mailboxes.py, by name; empty until it is tried


_cpus = functools.cache(available_cpus)  # asked once: it reads files
_EXCEPTION = "{i8*, i32, i8*, i8*, i32}**"  # where Numba puts what was raised


def ready() -> bool:
    """Whether members can wait in machine code."""
    return bool(_code)


class Mailbox:
    """Where a member waits.  Made only when `ready`."""

    def __init__(self) -> None:
        self._words = np.zeros(MAILBOX_WORDS, np.int64)
        self._words[BIT] = 1 << next(_bits)
        self.address: int = self._words.ctypes.data

    def attend(self) -> None:
        """Run kernels until `call` is called."""
        _code["attend"](self._words, _bell)

    def call(self) -> None:
        """Make the member leave the mailbox for tasks in Python."""
        _code["call"](self._words, _bell)


class HasMailbox(Protocol):
    """A member, with a mailbox."""

    mailbox: Any
    cpu: int


class Run:
    """One run of a kernel by members at their mailboxes.

    Machine code does each step as a whole.  An exception such as Ctrl-C is raised before or after
    it, and OVER says whether members have begun.
    """

    def __init__(self, entry: Entry, name: str, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments  # kept alive until it is over
        self._plan = entry.plan
        self._name = name
        self._record = entry.record_of(arguments)
        self._mailboxes = np.empty(0, np.int64)

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
        self._mailboxes = np.array([mailbox.address for mailbox in boxes])
        _unfinished.add(self)
        looks = most_looks if len(boxes) <= _cpus() else SPINS
        _code["start"](self._plan, self._record, self._mailboxes, _bell, looks)

    def wait(self) -> bool:
        """True when all members have ended.  A signal ends the wait at once, so Ctrl-C works."""
        over: bool = _code["wait"](self._record, _SECONDS)
        if over:
            _unfinished.discard(self)
        return over

    def cancel(self) -> None:
        """Stop the members, and wait for those that have begun.

        Afterwards the caller may change the arrays, so a second Ctrl-C must not end this early.
        """
        while True:
            try:
                _code["cancel"](self._record, self._mailboxes)
                if self.wait():
                    return
            except BaseException:  # noqa: S112  the first exception is raised by the caller
                continue

    @property
    def error(self) -> BaseException | None:
        """The exception of the first member that failed."""
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


# From a kernel's signature to a record that members can call


class Entry(NamedTuple):
    """What is the same in all runs of a kernel with arguments of the same kinds."""

    record: np.ndarray[Any, Any]  # with the slots that do not change
    plan: np.ndarray[Any, Any]  # for each value (see `start`): dimensions or -1, first slot
    layout: struct.Struct  # of the values

    def record_of(self, arguments: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        """A record for these arguments, with values that `start` takes."""
        made = self.record.copy()
        self.layout.pack_into(made.data, 8 * VALUES, *_values(arguments))
        return made


def _values(arguments: tuple[Any, ...]) -> list[Any]:
    """The items of nested tuples, in Numba's order; for an array the address of its object."""
    found: list[Any] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            found.append(id(value))
        elif isinstance(value, tuple):
            found += _values(value)
        else:
            found.append(value)
    return found


def entry(code: Any) -> Entry | None:
    """How to enter a kernel's compiled code; None where its layout is not the expected one."""
    described = code.fndesc
    wanted, plan, layout, sizes = ["pointer", _EXCEPTION], [], "<", []
    slot, real = SLOTS, REALS
    for kind in _leaves(described.argtypes):
        slots, form = _slots(kind)
        if not slots or slot + len(slots) > VALUES:
            return None
        wanted += slots
        layout += form
        if isinstance(kind, types.Float) and real < REALS + FLOATS:
            plan.append((-1, real))
            real += 1
            continue
        dimensions = -1
        if isinstance(kind, types.Array):
            dimensions = kind.ndim
            sizes.append((slot + 3, as_dtype(kind.dtype).itemsize))
        plan.append((dimensions, slot))
        slot += len(slots)
    convention = code.target_context.call_conv
    function = convention.get_function_type(described.restype, described.argtypes)
    if described.restype != types.none or list(map(_named, function.args)) != wanted:
        return None
    record = np.zeros(VALUES + len(plan), np.int64)
    record[FUNCTION] = code.library.get_pointer_to_function(described.llvm_func_name)
    record[OVER] = 1
    for place, size in sizes:
        record[place] = size
    return Entry(record, np.array(plan, np.int64), struct.Struct(layout))


def _leaves(kinds: Any) -> Iterator[Any]:
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from _leaves(kind)
        else:
            yield kind


def _slots(kind: Any) -> tuple[list[str], str]:
    """The types of an argument's slots, and the form of its value, a word, for `struct`."""
    if isinstance(kind, types.Array):
        return ["pointer", "pointer", "i64", "i64", "pointer", *2 * kind.ndim * ["i64"]], "Q"
    if isinstance(kind, types.Integer):
        return [f"i{kind.bitwidth}"], "q" if kind.signed else "Q"
    known: dict[Any, tuple[list[str], str]] = {
        types.boolean: (["i8"], "?7x"),
        types.none: (["pointer"], "?7x"),
        types.float64: (["double"], "d"),
        types.float32: (["float"], "f4x"),
    }
    return known.get(kind, ([], ""))


def _named(slot: Any) -> str:
    name = str(slot)
    return "pointer" if isinstance(slot, ir.PointerType) and name != _EXCEPTION else name


# Compiling the mailboxes, and trying them with one member and one caller in one thread


@functools.cache
def prepare() -> None:
    """Compile mailboxes.py and try it, once; the compiler's lock must be held."""
    if POSSIBLE:
        with contextlib.suppress(Exception):  # a Numba with other internals
            _code.update(machine_code())


def machine_code() -> dict[str, Any]:
    """The machine code by name; empty where it does not do what it should."""
    word, words = types.int64, types.Array(types.int64, 1, "C")
    signatures = {
        "attend": (words, words),
        "start": (types.Array(types.int64, 2, "C"), words, words, words, word),
        "call": (words, words),
        "wait": (words, words),
        "cancel": (words, words),
    }
    code = {}
    for name, signature in signatures.items():
        function = getattr(mailboxes, name)
        function.compile(signature)
        code[name] = function.overloads[signature].entry_point
    return code if _works(code) else {}


@kernel
def _probe(team: Any, matrix: Any, numbers: Any, reals: Any, found: Any) -> None:
    found[0], found[1], found[2] = team.me, team.size, team.words.size
    found[3], found[4], found[5] = matrix.shape[0], matrix.shape[1], matrix.size
    found[6], found[7] = matrix[1, 2], matrix.itemsize
    found[8], found[9], found[10] = numbers[0], numbers[1][1], numbers[2]
    for k in range(5):
        found[11 + k], found[16 + k] = reals[k][0], reals[k][1]


def _works(code: dict[str, Any]) -> bool:
    """Whether a kernel that is posted runs with the right arguments and ends."""
    found, words = np.zeros(21), np.zeros(WORDS, np.int64)
    matrix = np.arange(24, dtype=np.int16).reshape(4, 6)[::-2, ::2]
    numbers = True, (None, np.uint8(200)), -5
    reals = tuple((0.1 + k, np.float32(0.5 - k)) for k in range(5))  # more than fit into registers
    arguments = Team(0, 7, words), matrix, numbers, reals, found
    signature = tuple(map(_probe.typeof_pyval, arguments))
    _probe.compile(signature)
    made = entry(_probe.overloads[signature])
    if made is None or not _lies_as_expected(matrix):
        return False
    mailbox, bell = np.zeros(MAILBOX_WORDS, np.int64), np.zeros(1, np.int64)
    second = np.array([1, 0])
    record, places = made.record_of(arguments), np.array([mailbox.ctypes.data])
    code["start"](made.plan, record, places, bell, 1)
    code["call"](mailbox, bell)  # so that it leaves the mailbox after the kernel
    code["attend"](mailbox, bell)
    expected = [0, 7, WORDS, 2, 3, 6, matrix[1, 2], 2, 1, 200, -5, *(x for x, _ in reals)]
    expected += [y for _, y in reals]
    return bool(code["wait"](record, second)) and found.tolist() == expected


def _lies_as_expected(sample: np.ndarray[Any, Any]) -> bool:
    """Whether the fields of NumPy's object lie where `start` will look."""
    fields = (ctypes.c_int64 * 4).from_address(id(sample) + object.__basicsize__)
    if fields[0] != sample.ctypes.data or fields[1] & 0xFFFFFFFF != sample.ndim:
        return False
    pair = ctypes.c_int64 * sample.ndim
    found = (tuple(pair.from_address(fields[k])) for k in (2, 3))
    return tuple(found) == (sample.shape, sample.strides)
