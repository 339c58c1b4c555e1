"""Keys: 32 bytes, from a file that nobody else may read, or as bytes.

A key stands in no message, no repr, no pickle.  Messages tell lengths and kinds only.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from typing import Any

from matchwood.arguments import path as file_name

KEY_BYTES = 32
HEX_DIGITS = 2 * KEY_BYTES
LONGEST = HEX_DIGITS + 2  # bytes of a key file: digits, and a line that ends as on Windows
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # rights of the group and of everybody
_HEX = re.compile(rb"([0-9A-Fa-f]{%d})(?:\r?\n)?" % HEX_DIGITS)
_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)  # those that this system has


def checked_key(caller: str, key: Any) -> bytes:
    """The 32 bytes of a key that was given as bytes or as the path of its file."""
    if isinstance(key, (str, os.PathLike)):
        return read_key(key, caller)
    if not isinstance(key, (bytes, bytearray, memoryview)):
        kind = type(key).__name__
        raise TypeError(
            f"{caller}: key must be {KEY_BYTES} bytes or the path of a key file, got {kind}"
        )
    try:
        found = bytes(memoryview(key))  # what is there, whatever a subclass says of itself
    except (ValueError, BufferError):
        raise ValueError(f"{caller}: key must be memory that can be read as it lies") from None
    if len(found) != KEY_BYTES:
        raise ValueError(f"{caller}: key must have {KEY_BYTES} bytes, got {len(found)}")
    return found


def read_key(path: Any, caller: str = "read_key") -> bytes:
    """The key in a file: 32 bytes, or 64 hexadecimal digits and the end of their line.

    Only a regular file is read: a pipe or a device would keep us waiting, or never end.  Refused
    where others than the owner may read or write the file (on systems with such rights).
    A path that cannot be opened is not named in the error: it may be a key, given by mistake.
    """
    descriptor, name = _opened(path, caller), os.fspath(path)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError(f"{caller}: the key file {name} must be a regular file")
        mode = stat.S_IMODE(facts.st_mode)
        if os.name == "posix" and mode & OTHERS:
            raise PermissionError(
                f"{caller}: the key file {name} can be used by others "
                f"(mode {mode:04o}); make it private: chmod 600"
            )
        content = os.read(descriptor, LONGEST + 1)
    finally:
        os.close(descriptor)
    if len(content) == KEY_BYTES:
        return content
    digits = _HEX.fullmatch(content)
    if digits is None:
        size = f"{len(content)} bytes" if len(content) <= LONGEST else f"more than {LONGEST} bytes"
        raise ValueError(
            f"{caller}: the key file {name} must hold {KEY_BYTES} bytes, or {HEX_DIGITS} "
            f"hexadecimal digits and nothing else but the end of their line; it has {size}"
        )
    return bytes.fromhex(digits[1].decode("ascii"))


def _opened(path: Any, caller: str) -> int:
    """A descriptor; a pipe without a writer and a terminal are opened without waiting."""
    try:
        return os.open(path, _FLAGS)
    except (OSError, ValueError, TypeError) as error:
        code = getattr(error, "errno", None)
    # outside of the handler, so that the first error does not go along
    if code is None:
        raise ValueError(f"{caller}: the path of the key file is none")
    raise OSError(code, f"{caller}: the key file cannot be opened: {os.strerror(code)}")


def new_key(path: Any) -> None:
    """Write a new random key to a file that only its owner may read; the file must not exist.

    Parameters
    ----------
    path : str or PathLike

    Raises
    ------
    FileExistsError
        If there is such a file: a key that is overwritten is lost.
    TypeError
        If `path` is no path.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> import numpy as np
    >>> from matchwood import anonymize, new_key
    >>> path = os.path.join(tempfile.mkdtemp(), "key")
    >>> new_key(path)
    >>> anonymize(np.array([1, 2, 1], np.uint32), "permutation", path).size
    3
    """
    path = file_name("new_key", "path", path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w") as stream:
        stream.write(secrets.token_hex(KEY_BYTES) + "\n")
