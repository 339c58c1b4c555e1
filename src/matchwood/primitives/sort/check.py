"""What a right stable sort is."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.primitives.sort.reference import order_bits


def check_radix_sort(
    keys: Any, payload: Any, sorted_keys: Any, sorted_payload: Any, *, bits: int | None = None
) -> None:
    """Raise `CheckFailed` unless the sorted pairs are the stable sort of the given pairs.

    The keys never fall; and element k of the input stands where (smaller keys) + (equal keys
    before it) elements precede it.  With `payload` None the sorted payload says where each element
    came from, which is quicker to check.
    """
    for name, array in (("keys", sorted_keys), ("payload", sorted_payload)):
        if array.shape != keys.shape:
            raise CheckFailed(f"sort: {keys.size} {name} expected, got shape {array.shape}")
    answers.of_kind("check_radix_sort", "iu", sorted_payload=sorted_payload)
    if sorted_keys.dtype != keys.dtype:
        raise CheckFailed(f"sort: keys must stay {keys.dtype}, got {sorted_keys.dtype}")
    codes, sorted_codes = _codes(keys, bits), _codes(sorted_keys, bits)
    if (i := answers.first(sorted_codes[1:] < sorted_codes[:-1])) is not None:
        raise CheckFailed(
            f"sort: keys {sorted_keys[i]!s} and {sorted_keys[i + 1]!s} at {i} and {i + 1} fall"
        )
    if payload is None:
        _check_positions(keys, sorted_keys, sorted_codes, sorted_payload)
        return
    place = np.searchsorted(sorted_codes, codes)  # smaller keys
    seen: dict[int, int] = {}
    for k, (key, smaller) in enumerate(zip(codes.tolist(), place.tolist(), strict=True)):
        i = smaller + seen.get(key, 0)
        seen[key] = seen.get(key, 0) + 1
        if i >= keys.size or _bits(sorted_keys[i]) != _bits(keys[k]):
            raise CheckFailed(f"sort: keys[{k}] = {keys[k]!s} is missing at {i}")
        if sorted_payload[i] != payload[k]:
            raise CheckFailed(
                f"sort: payload[{k}] = {payload[k]} belongs at {i}, got {sorted_payload[i]}"
            )


def check_sort_keys(keys: Any, sorted_keys: Any) -> None:
    """Raise `CheckFailed` unless `sorted_keys` never fall and are the given keys.

    Two sums over mixed keys decide that they are the same keys; another multiset has the same sums
    by chance once in 2^128.
    """
    if sorted_keys.shape != keys.shape or sorted_keys.dtype != keys.dtype:
        raise CheckFailed(
            f"sort: {keys.size} keys of {keys.dtype} expected, got {sorted_keys.dtype} keys of "
            f"shape {sorted_keys.shape}"
        )
    if (i := answers.first(sorted_keys[1:] < sorted_keys[:-1])) is not None:
        raise CheckFailed(
            f"sort: keys {sorted_keys[i]!s} and {sorted_keys[i + 1]!s} at {i} and {i + 1} fall"
        )
    for multiplier in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F):
        if _mixed_sum(keys, multiplier) != _mixed_sum(sorted_keys, multiplier):
            raise CheckFailed("sort: the sorted keys are not the keys that were given")


def _mixed_sum(keys: Any, multiplier: int) -> int:
    mixed = keys.astype(np.uint64)
    for shift in (32, 29, 32):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(multiplier)
    mixed ^= mixed >> np.uint64(31)
    return int(mixed.sum(dtype=np.uint64))


def _check_positions(keys: Any, sorted_keys: Any, sorted_codes: Any, positions: Any) -> None:
    counted = np.zeros(keys.size, dtype=np.int64)
    inside = (positions >= 0) & (positions < keys.size)
    np.add.at(counted, positions[inside], 1)
    if (i := answers.first(counted != 1)) is not None:
        raise CheckFailed(f"sort: position {i} comes {counted[i]} times, not once")
    carried = keys[positions]
    if (i := answers.first(_bits(carried) != _bits(sorted_keys))) is not None:
        raise CheckFailed(
            f"sort: key {sorted_keys[i]!s} at {i} is not keys[{positions[i]}] = {carried[i]!s}"
        )
    turned = (sorted_codes[1:] == sorted_codes[:-1]) & (positions[1:] < positions[:-1])
    if (i := answers.first(turned)) is not None:
        raise CheckFailed(f"sort: equal keys at {i} and {i + 1} have changed their order")


def _bits(keys: Any) -> Any:
    return keys.view(f"u{keys.dtype.itemsize}")


def _codes(keys: Any, bits: int | None) -> Any:
    codes = order_bits(keys)
    if bits is None or bits == 8 * keys.dtype.itemsize:
        return codes
    return codes & codes.dtype.type((1 << bits) - 1)
