"""Keys, and the tables of a key, made once and used for many blocks of addresses.

A key is 32 bytes, given as such or in a file that nobody else may read.  It appears in no message,
no repr, no pickle: messages show lengths and kinds only.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from typing import Any, NoReturn

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.packets import wide_addresses
from matchwood.arguments import count, one_of, vector
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
        found = bytes(memoryview(key))  # the bytes themselves, whatever a subclass overrides
    except (ValueError, BufferError):
        raise ValueError(f"{caller}: key must be memory that can be read as it lies") from None
    if len(found) != KEY_BYTES:
        raise ValueError(f"{caller}: key must have {KEY_BYTES} bytes, got {len(found)}")
    return found


def read_key(path: Any, caller: str = "read_key") -> bytes:
    """The key in a file: 32 bytes, or 64 hexadecimal digits and the end of their line.

    Only a regular file is read: a pipe or a device may block, or never end.  Refused where others
    than the owner may read or write the file (on systems with such rights).
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


Array = np.ndarray[Any, Any]

METHODS = (None, "cryptopan", "permutation", "truncate")
KEYED = ("cryptopan", "permutation")  # methods that need a key
BLOCK = 16  # bytes of AES
BLOCKS_AT_ONCE = 1 << 15  # blocks of AES: 512 KiB, which stay in a core's cache
AT_ONCE = 1 << 24  # addresses sorted at once
ROUNDS = 10
WIDE = 128  # bits of an address of IPv6
WIDE_AT_ONCE = 1 << 11  # addresses of IPv6: 4 MiB of blocks


class Anonymizer:
    """Addresses to other addresses by one method and key, for any number of blocks.

    Calling it with an array of uint32 gives a new array, where the input lives; one for IPv6 takes
    uint64 arrays of two a row, the upper half first, on the CPU.  The key is
    private: neither `repr` nor errors show it, and the object cannot be pickled or copied.  It
    does not change, so threads may share it.

    Parameters
    ----------
    method, key, bits
        As for `matchwood.anonymize`.
    version : {4, 6}
        Of IP.
    """

    __slots__ = ("_cipher", "_pad", "_rounds", "_table", "bits", "method", "version")

    def __init__(
        self, method: str | None, key: Any = None, bits: int | None = None, *,
        version: int = 4, caller: str = "Anonymizer",
    ) -> None:  # fmt: skip
        self.version = one_of(caller, "version", version, (4, 6))
        self.bits = checked_bits(caller, method, key, bits, version)
        self.method = method
        secret = checked_key(caller, key) if method in KEYED else b""
        if method == "cryptopan":
            self._cipher = _cipher(caller, secret[:16])
            self._pad = self._encrypted(secret[16:])
            if version == 4:
                self._table = engines.frozen(self._made_table())
        elif method == "permutation":
            self._rounds = engines.frozen(_round_tables(secret))

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise AttributeError(f"Anonymizer: {name} cannot be changed")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        bits = "" if self.bits is None else f", bits={self.bits}"
        return f"Anonymizer({self.method!r}{bits})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("Anonymizer: it holds a key, so it is neither pickled nor copied")

    def __call__(self, addresses: Any, *, threads: int | None = None) -> Any:
        """The anonymous addresses, in the order given."""
        return self.apply(addresses, threads=threads)

    def apply(
        self, addresses: Any, *, threads: int | None = None, caller: str = "Anonymizer"
    ) -> Any:
        """The anonymous addresses; errors name the function `caller`."""
        engines.check_threads(threads)
        if self.version == 6:
            return self._applied_wide(wide_addresses(caller, addresses))
        addresses = vector(caller, "addresses", addresses, ("uint32",))
        xp = engines.xp(addresses)
        if self.method is None:
            return addresses.copy()
        if self.method == "truncate":
            mask = (0xFFFFFFFF << (32 - self.bits)) & 0xFFFFFFFF  # type: ignore[operator]
            return addresses & addresses.dtype.type(mask)
        if self.method == "permutation":
            engine = engines.location(addresses)
            return engines.load(__package__, engine).permuted(addresses, self._rounds, threads)
        if xp is not np:  # AES runs on the host: 4 bytes an address are copied there and back
            return xp.asarray(self._prefix_preserved(xp.asnumpy(addresses), threads))
        return self._prefix_preserved(addresses, threads)

    def _applied_wide(self, addresses: Array) -> Array:
        if self.method == "cryptopan":
            out = np.empty_like(addresses)
            for start in range(0, len(addresses), WIDE_AT_ONCE):
                part = slice(start, start + WIDE_AT_ONCE)
                out[part] = addresses[part] ^ self._wide_flips(addresses[part])
            return out
        kept = WIDE if self.bits is None else self.bits
        return addresses & _wide_masks()[kept]

    def _wide_flips(self, addresses: Array) -> Array:
        """Bit i from AES over the first i bits of the address and the rest of the pad."""
        masks = _wide_masks()[:WIDE]
        pad = np.frombuffer(self._pad, ">u8").astype(np.uint64)
        blocks = (addresses[:, None, :] & masks) | (pad & ~masks)
        secret = self._encrypted(blocks.astype(">u8").tobytes())
        top = np.frombuffer(secret, np.uint8)[::BLOCK].reshape(-1, WIDE) >> 7
        return np.packbits(top, axis=1).view(">u8").astype(np.uint64)

    def _encrypted(self, blocks: bytes) -> bytes:
        return bytes(self._cipher.encryptor().update(blocks))

    def _made_table(self) -> Array:
        """The flips of the first 16 bits for each prefix of 16 bits: 65,535 blocks of AES."""
        pad = int.from_bytes(self._pad[:4], "big")
        words = []
        for level in range(16):
            mask = (0xFFFFFFFF << (32 - level)) & 0xFFFFFFFF
            prefixes = np.arange(1 << level, dtype=np.uint32) << np.uint32(
                32 - level if level else 0
            )
            words.append(prefixes & np.uint32(mask) | np.uint32(pad & ~mask & 0xFFFFFFFF))
        blocks = np.empty((2**16 - 1, BLOCK), np.uint8)
        blocks[:] = np.frombuffer(self._pad, np.uint8)
        blocks[:, :4] = np.concatenate(words).astype(">u4").view(np.uint8).reshape(-1, 4)
        top = np.frombuffer(self._encrypted(blocks.tobytes()), np.uint8)[::BLOCK] >> 7
        table, every = np.zeros(2**16, np.uint16), np.arange(2**16)
        for level in range(16):
            flips = top[2**level - 1 + (every >> (16 - level))]
            table |= flips.astype(np.uint16) << np.uint16(15 - level)
        return table

    def _prefix_preserved(self, addresses: Array, threads: int | None) -> Array:
        out = np.empty(addresses.size, np.uint32)
        for start in range(0, addresses.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            self._fill(addresses[part], out[part], threads)
        return out

    def _fill(self, addresses: Array, out: Array, threads: int | None) -> None:
        """Anonymize in sorted order: each address shares most of its prefixes with the last."""
        from matchwood.applications.sensing.anonymity import cpu
        from matchwood.engines.cpu import crew

        packed = cpu.sorted_with_places(addresses, threads)
        words = np.empty((BLOCKS_AT_ONCE, BLOCK // 4), np.uint32)
        words[:] = np.frombuffer(self._pad, np.uint32)
        # the package wants room for one block more than it writes
        secret = np.empty((BLOCKS_AT_ONCE + 1, BLOCK), np.uint8)
        plain, hidden = words.data.cast("B"), secret.data.cast("B")
        pad = np.uint32(int.from_bytes(self._pad[:4], "big"))
        aes = self._cipher.encryptor()
        state = np.zeros(cpu.STATE_WORDS, np.int64)
        team = crew(1, work=min(addresses.size, BLOCKS_AT_ONCE // 8))
        while state[cpu.STOP] < addresses.size:
            state[cpu.START] = state[cpu.STOP]
            team.run(cpu.write_blocks, packed, pad, words, state)
            size = int(state[cpu.BLOCKS]) * BLOCK
            aes.update_into(plain[:size], hidden[: size + BLOCK])
            team.run(cpu.read_flips, packed, self._table, secret, out, state)


def _wide_masks() -> Array:
    """masks[i]: the first i of 128 bits, two words each."""
    ones = [(1 << WIDE) - (1 << (WIDE - i)) for i in range(WIDE + 1)]
    return np.array([[one >> 64, one & (1 << 64) - 1] for one in ones], np.uint64)


def checked_bits(caller: str, method: Any, key: Any, bits: Any, version: int = 4) -> int | None:
    """The bits that the method keeps; an error where it is none, or does not take what is given."""
    one_of(caller, "method", method, METHODS)
    if version == 6 and method == "permutation":
        raise ValueError(f"{caller}: the method 'permutation' is for IPv4; use 'cryptopan'")
    if key is not None and method not in KEYED:
        raise ValueError(f"{caller}: the method {method!r} takes no key")
    if (bits is None) == (method == "truncate"):
        given = "needs bits=" if bits is None else "takes no bits"
        raise ValueError(f"{caller}: the method {method!r} {given}")
    return None if bits is None else count(caller, "bits", bits, 0, 32 if version == 4 else WIDE)


def _cipher(caller: str, key: bytes) -> Any:
    """AES with this key.  Encryptors are not thread-safe: each call makes one."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        raise ModuleNotFoundError(
            f"{caller}: the method 'cryptopan' needs the package cryptography: "
            f"pip install matchwood[anonymize]"
        ) from None
    # one block at a time is what Crypto-PAn asks for; nothing is hidden by a mode
    return Cipher(algorithms.AES(key), modes.ECB())


def _round_tables(key: bytes) -> Array:
    words = [hashlib.shake_256(key + bytes([r])).digest(2**17) for r in range(ROUNDS)]
    return np.frombuffer(b"".join(words), "<u2").astype(np.uint16).reshape(ROUNDS, 2**16)
