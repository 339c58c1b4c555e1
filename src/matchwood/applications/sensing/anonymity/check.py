"""Whether addresses are anonymous forms of others: the same relations among them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from matchwood import answers
from matchwood.applications.sensing.anonymity import reference
from matchwood.applications.sensing.anonymity.anonymizer import checked_bits, checked_key
from matchwood.arguments import vector
from matchwood.errors import CheckFailed
from matchwood.primitives.sort import radix_sort, sort_keys

Array = np.ndarray[Any, Any]


def check_anonymized(
    addresses: Any, found: Any, method: str | None, *, key: Any = None, bits: int | None = None
) -> None:
    """Raise CheckFailed unless `found` can be what `anonymize` makes of `addresses`.

    Equal addresses become equal ones and different ones different ones; with "cryptopan" two
    addresses also keep the length of the prefix that they share, exactly; "truncate" and None are
    compared in full.  With a key every address is worked out again, level by level and round by
    round, by plain NumPy.

    Parameters
    ----------
    addresses, found : ndarray of uint32
    method, key, bits
        As for `anonymize`; the key may be left out.

    Raises
    ------
    CheckFailed
        With the addresses that are wrong.

    Examples
    --------
    >>> import secrets
    >>> import numpy as np
    >>> from matchwood import anonymize
    >>> from matchwood.check import check_anonymized
    >>> a = np.array([167772161, 167772162, 167772161], np.uint32)
    >>> key = secrets.token_bytes(32)
    >>> check_anonymized(a, anonymize(a, "permutation", key), "permutation", key=key)
    """
    caller = "check_anonymized"
    bits = checked_bits(caller, method, key, bits)
    secret = None if key is None else checked_key(caller, key)
    addresses = vector(caller, "addresses", addresses, ("uint32",))
    found = answers.integers(caller, caller, "found", found, addresses.shape, "cpu")
    outside = answers.first((found < 0) | (found > 0xFFFFFFFF))
    if outside is not None:
        raise CheckFailed(f"{caller}: {found[outside]} at {outside} is no address")
    found = found.astype(np.uint32)
    if method in (None, "truncate"):
        kept = 32 if bits is None else bits
        mask = np.uint32((0xFFFFFFFF << (32 - kept)) & 0xFFFFFFFF)
        _require(found == addresses & mask, addresses, found, f"does not keep {kept} bits")
        return
    before, order = radix_sort(addresses)
    after = found[order]
    shared = before[1:] ^ before[:-1]
    images = after[1:] ^ after[:-1]
    if method == "cryptopan":  # the same top bit of the difference is the same shared prefix
        same = _top(shared) == _top(images)
        _require(same, before[1:], after[1:], "does not keep the prefix shared with its neighbour")
    else:
        same = (shared == 0) <= (images == 0)
        _require(same, before[1:], after[1:], "is given two anonymous addresses")
        made = sort_keys(after)
        became, distinct = (int((x[1:] != x[:-1]).sum()) + 1 for x in (made, before))
        if became != distinct:
            raise CheckFailed(f"{caller}: {distinct} addresses became {became}")
    if secret is not None:
        _compare_with_key(addresses, found, str(method), secret)


def _top(words: Array) -> Array:
    """The place of the highest bit, counted from 1; 0 for none."""
    return np.frexp(words.astype(np.float64))[1]


def _require(right: Array, addresses: Array, found: Array, what: str) -> None:
    wrong = np.flatnonzero(~right)
    if wrong.size:
        at = int(wrong[0])
        raise CheckFailed(f"check_anonymized: {addresses[at]}, which became {found[at]}, {what}")


def _compare_with_key(addresses: Array, found: Array, method: str, key: bytes) -> None:
    if method == "permutation":
        right = _permuted(addresses, key) == found
    else:
        right = _prefix_preserved(addresses, key) == found
    _require(right, addresses, found, "is not what this key makes of it")


def _permuted(addresses: Array, key: bytes) -> Array:
    left, right = addresses >> np.uint32(16), addresses & np.uint32(0xFFFF)
    for r in range(reference.ROUNDS):
        table = np.frombuffer(hashlib.shake_256(key + bytes([r])).digest(2**17), "<u2")
        left, right = right, left ^ table[right]
    return (left << np.uint32(16)) | right


def _prefix_preserved(addresses: Array, key: bytes) -> Array:
    """Crypto-PAn level by level, 32 blocks for every address, without a table or sorting."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    aes = Cipher(algorithms.AES(key[:16]), modes.ECB()).encryptor()
    pad = np.frombuffer(aes.update(key[16:]), np.uint8)
    out = np.zeros(addresses.size, np.uint32)
    first = np.uint32(int.from_bytes(pad[:4].tobytes(), "big"))
    for level in range(32):
        mask = np.uint32((0xFFFFFFFF << (32 - level)) & 0xFFFFFFFF)
        for lo, hi in answers.pieces(addresses.size, answers.BLOCK):
            words = (addresses[lo:hi] & mask) | (first & ~mask)
            blocks = np.tile(pad, (hi - lo, 1))
            blocks[:, :4] = words.astype(">u4").view(np.uint8).reshape(-1, 4)
            top = np.frombuffer(aes.update(blocks.tobytes()), np.uint8)[:: pad.size] >> 7
            out[lo:hi] |= top.astype(np.uint32) << np.uint32(31 - level)
    return out ^ addresses
