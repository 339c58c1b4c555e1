"""What the right hashes are: those of the definition, worked out in Python integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.primitives.hashing.reference import hash2_number, mix64_number, quarter_md5_number


def check_mix64(x: Any, mixed: Any) -> None:
    """Raise `CheckFailed` unless ``mixed[i]`` is mix64 of ``x[i]``."""
    _compare("mix64", mixed, (mix64_number(value) for value in x.tolist()), x.size)


def check_hash2(u: Any, v: Any, seed: int, hashes: Any) -> None:
    """Raise `CheckFailed` unless ``hashes[i]`` is hash2 of ``u[i]``, ``v[i]`` and the seed."""
    pairs = zip(u.tolist(), v.tolist(), strict=True)
    _compare("hash2", hashes, (hash2_number(a, b, seed) for a, b in pairs), u.size)


def check_quarter_md5(v: Any, r: int, words: Any) -> None:
    """Raise `CheckFailed` unless ``words[i]`` is quarter_md5 of ``v[i]`` in round r."""
    _compare("quarter_md5", words, (quarter_md5_number(a, r) for a in v.tolist()), v.size)


def check_random_bit(v: Any, r: int, p: float, bits: Any) -> None:
    """Raise `CheckFailed` unless ``bits[i]`` says whether quarter_md5 is below p 2^32."""
    expected = (quarter_md5_number(a, r) < p * 2**32 for a in v.tolist())
    _compare("random_bit", bits, expected, v.size)


def _compare(name: str, got: Any, expected: Iterable[int], size: int) -> None:
    answers.of_kind(f"check_{name}", "b" if name == "random_bit" else "iu", answer=got)
    if got.shape != (size,):
        raise CheckFailed(f"{name}: {size} values expected, got shape {got.shape}")
    for i, (value, right) in enumerate(zip(got.tolist(), expected, strict=True)):
        if value != right:
            raise CheckFailed(f"{name}: value {i} is {value}, must be {right}")
