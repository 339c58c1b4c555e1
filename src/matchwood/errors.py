"""The errors matchwood raises besides TypeError and ValueError."""

from __future__ import annotations


class EngineUnavailable(RuntimeError):
    """The engine asked for cannot run here: no GPU, no CuPy, no MPI."""


class OutOfMemory(MemoryError):
    """The memory that a call needs is not free; the input is as it was.

    On the CPU and on the GPU.  Where the bytes are known beforehand nothing is allocated.
    """


class CheckFailed(ValueError):
    """An answer is wrong; the message says what and where."""


class FileFormatError(ValueError):
    """A file does not hold what its format asks; the message names file and line."""
