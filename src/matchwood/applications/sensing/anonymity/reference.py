"""The methods by their definition, in plain Python; AES is that of the package cryptography.

One address after the other, one bit after the other; slow on purpose.
"""

from __future__ import annotations

import hashlib

ROUNDS = 10


def cryptopan(address: int, key: bytes, width: int = 32) -> int:
    """Bit i is flipped by the top bit of AES over the first i bits and the rest of the pad."""
    pad = int.from_bytes(aes(key[:16], key[16:]), "big")
    found = 0
    for i in range(width):
        rest = 128 - i
        block = (address >> (width - i) << rest) | (pad & ((1 << rest) - 1))
        flip = aes(key[:16], block.to_bytes(16, "big"))[0] >> 7
        found = (found << 1) | ((address >> (width - 1 - i)) & 1) ^ flip
    return found


def permutation(address: int, key: bytes) -> int:
    """Ten Feistel rounds; the function of round r is the first 2^16 words of SHAKE-256(key, r)."""
    left, right = address >> 16, address & 0xFFFF
    for r in range(ROUNDS):
        table = hashlib.shake_256(key + bytes([r])).digest(2**17)
        word = int.from_bytes(table[2 * right : 2 * right + 2], "little")
        left, right = right, left ^ word
    return (left << 16) | right


def truncate(address: int, bits: int, width: int = 32) -> int:
    """The first bits, then zeros."""
    return address >> (width - bits) << (width - bits)


def aes(key: bytes, block: bytes) -> bytes:
    """AES with a key of 16 bytes (FIPS 197)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)
