"""The errors matchwood raises besides TypeError and ValueError."""

from __future__ import annotations


class EngineUnavailable(RuntimeError):
    """The engine asked for cannot run here: no GPU, no CuPy, no MPI."""


class OutOfMemory(MemoryError):
    """The memory that a call needs is not free; the input is as it was.

    Where the size is known beforehand nothing is allocated.
    """


class CheckFailed(ValueError):
    """An answer is wrong; the message says what and where."""


class FileFormatError(ValueError):
    """A file does not follow its format; the message names the file and the line or byte."""


class RankFailed(RuntimeError):
    """A rank of a communicator failed, so the others, which would wait for it, stop too.

    Attributes
    ----------
    rank : int or None
        The rank that failed; None where the program that started the ranks did.
    type : str
        The name of its exception; "TimeoutError" where a rank did not reach a collective.
    message : str
        What its exception said.
    traceback : str
        Where it was raised, as Python prints it; empty where there was no exception.
    """

    def __init__(self, rank: int | None, type: str, message: str, traceback: str = "") -> None:
        who = "the caller" if rank is None else f"rank {rank}"
        super().__init__(f"{who} failed: {type}: {message}" if message else f"{who} failed: {type}")
        self.rank = rank
        self.type = type
        self.message = message
        self.traceback = traceback
        if traceback:
            self.add_note(f"Where {who} failed:\n{traceback.rstrip()}")

    def __reduce__(self) -> tuple[object, ...]:
        return RankFailed, (self.rank, self.type, self.message, self.traceback)
