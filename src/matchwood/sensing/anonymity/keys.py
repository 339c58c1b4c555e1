"""Keys: 32 bytes, from a file that nobody else may read, or as bytes.

A key stands in no message, no repr, no pickle.  Messages tell lengths and kinds only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import Any, BinaryIO

KEY_BYTES = 32
HEX_DIGITS = 2 * KEY_BYTES
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # rights of the group and of everybody


def checked_key(caller: str, key: Any) -> bytes:
    """The 32 bytes of a key that was given as bytes or as the path of its file."""
    if isinstance(key, (str, os.PathLike)):
        return read_key(key, caller)
    if not isinstance(key, (bytes, bytearray, memoryview)):
        kind = type(key).__name__
        raise TypeError(
            f"{caller}: key must be {KEY_BYTES} bytes or the path of a key file, got {kind}"
        )
    found = bytes(key)
    if len(found) != KEY_BYTES:
        raise ValueError(f"{caller}: key must have {KEY_BYTES} bytes, got {len(found)}")
    return found


def read_key(path: Any, caller: str = "read_key") -> bytes:
    """The key in a file: 32 bytes, or 64 hexadecimal digits.

    Refused where others than the owner may read or write the file (on systems with such rights).
    A path that cannot be opened is not named in the error: it may be a key, given by mistake.
    """
    with _opened(path, caller) as stream:
        if os.name == "posix":
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode & OTHERS:
                raise PermissionError(
                    f"{caller}: the key file {os.fspath(path)} can be used by others "
                    f"(mode {mode:04o}); make it private: chmod 600"
                )
        content = stream.read(HEX_DIGITS + 3)
    if len(content) == KEY_BYTES:
        return content
    with contextlib.suppress(ValueError):
        digits = content.decode("ascii").strip()
        if len(digits) == HEX_DIGITS:
            return bytes.fromhex(digits)
    raise ValueError(
        f"{caller}: the key file {os.fspath(path)} must hold {KEY_BYTES} bytes "
        f"or {HEX_DIGITS} hexadecimal digits"
    ) from None


def _opened(path: Any, caller: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w") as stream:
        stream.write(secrets.token_hex(KEY_BYTES) + "\n")
