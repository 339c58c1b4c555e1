"""The methods by their definition, in plain Python, with AES written out.

One address after the other, one bit after the other; slow on purpose.
"""

from __future__ import annotations

import hashlib

ROUNDS = 10


def cryptopan(address: int, key: bytes) -> int:
    """Bit i is flipped by the top bit of AES over the first i bits and the rest of the pad."""
    pad = int.from_bytes(aes(key[:16], key[16:]), "big")
    found = 0
    for i in range(32):
        rest = 128 - i
        block = (address >> (32 - i) << rest) | (pad & ((1 << rest) - 1))
        flip = aes(key[:16], block.to_bytes(16, "big"))[0] >> 7
        found = (found << 1) | ((address >> (31 - i)) & 1) ^ flip
    return found


def permutation(address: int, key: bytes) -> int:
    """Ten Feistel rounds; the function of round r is the first 2^16 words of SHAKE-256(key, r)."""
    left, right = address >> 16, address & 0xFFFF
    for r in range(ROUNDS):
        table = hashlib.shake_256(key + bytes([r])).digest(2**17)
        word = int.from_bytes(table[2 * right : 2 * right + 2], "little")
        left, right = right, left ^ word
    return (left << 16) | right


def truncate(address: int, bits: int) -> int:
    """The first bits, then zeros."""
    return address >> (32 - bits) << (32 - bits)


def _product(a: int, b: int) -> int:
    """The product in the field of 256 elements of AES."""
    found = 0
    while b:
        found ^= a if b & 1 else 0
        a = (a << 1) ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return found


def _box() -> list[int]:
    found = []
    for value in range(256):
        inverse = next((k for k in range(256) if _product(value, k) == 1), 0)
        turned = inverse
        for k in range(1, 5):
            turned ^= (inverse << k | inverse >> (8 - k)) & 0xFF
        found.append(turned ^ 0x63)
    return found


BOX = _box()
TWICE = [_product(value, 2) for value in range(256)]


def _round_keys(key: bytes) -> list[bytes]:
    words = [key[k : k + 4] for k in range(0, 16, 4)]
    constant = 1
    while len(words) < 44:
        last = words[-1]
        if len(words) % 4 == 0:
            turned = bytes(BOX[b] for b in last[1:] + last[:1])
            last = bytes([turned[0] ^ constant]) + turned[1:]
            constant = _product(constant, 2)
        words.append(bytes(a ^ b for a, b in zip(words[-4], last, strict=True)))
    return [b"".join(words[k : k + 4]) for k in range(0, 44, 4)]


def aes(key: bytes, block: bytes) -> bytes:
    """AES with a key of 16 bytes (FIPS 197)."""
    keys = _round_keys(key)
    state = bytes(a ^ b for a, b in zip(block, keys[0], strict=True))
    for k in range(1, 11):
        state = bytes(BOX[state[(place + 4 * (place % 4)) % 16]] for place in range(16))
        if k < 10:
            state = b"".join(_mixed(state[c : c + 4]) for c in range(0, 16, 4))
        state = bytes(a ^ b for a, b in zip(state, keys[k], strict=True))
    return state


def _mixed(column: bytes) -> bytes:
    every = column[0] ^ column[1] ^ column[2] ^ column[3]
    return bytes(byte ^ every ^ TWICE[byte ^ column[(k + 1) % 4]] for k, byte in enumerate(column))
