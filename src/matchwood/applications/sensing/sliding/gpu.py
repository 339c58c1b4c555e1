"""A sliding window on the GPU.  Kernels: gpu.cu.

No step needs the one before.  A packet is in the windows from one step to another, both known from
its place; so the packets of a link (of an address) are a step function, and the largest of all step
functions is found for all steps at once.  A link counts for its addresses by its latest packet: it
begins with that packet, and ends when the packet leaves or the next one of the link enters.

Steps are worked on in blocks, so that memory does not grow with the packets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("raise_values", "count_present", "halve"))

BLOCK = 1 << 22  # packets of a block of steps, besides its first window
NEEDS = 160  # bytes of device memory for each packet of a block, about
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class Order(NamedTuple):
    """Packets by entity, in their original order."""

    places: Any  # int64: of the packets
    entity: Any  # int32: a number for each entity, rising
    first: Any  # int32: where each entity begins, and the number of packets


def slide(
    src: Any, dst: Any, window: int, stride: int, table: Any, *, threads: int | None = None
) -> None:
    """Fill the table, a row for each step."""
    steps = max(1, max(BLOCK, window) // stride)
    packets = min(int(src.size), (steps - 1) * stride + window)
    with gpu.guard("sliding_statistics", NEEDS * packets):
        for start in range(0, len(table), steps):
            rows = table[start : start + steps]
            here = slice(start * stride, (start + len(rows) - 1) * stride + window)
            _block(src[here], dst[here], window, stride, rows)


def _block(src: Any, dst: Any, window: int, stride: int, rows: Any) -> None:
    cupy = engines.cupy()
    n, steps = int(src.size), len(rows)
    i = cupy.arange(n, dtype=np.int64)
    comes = cupy.maximum((i - (window - stride)) // stride, 0).astype(np.int32)
    goes = cupy.minimum(i // stride + 1, steps).astype(np.int32)
    del i
    link = _by_link(src, dst)
    begins, ends = comes[link.places], goes[link.places]
    rows[:, 0] = _present(link, begins, ends, steps)
    rows[:, 1] = _largest(link, begins, ends, steps)
    same = link.entity[1:] == link.entity[:-1]
    ends[:-1] = cupy.where(same, cupy.minimum(ends[:-1], begins[1:]), ends[:-1])
    until = cupy.empty(n, np.int32)
    until[link.places] = ends
    del link, begins, ends, same
    for addresses, column in ((src, 2), (dst, 5)):
        order = _by_address(addresses)
        begins, ends = comes[order.places], goes[order.places]
        rows[:, column] = _present(order, begins, ends, steps)
        rows[:, column + 1] = _largest(order, begins, ends, steps)
        keys = order.entity.astype(np.uint64) << HALF | until[order.places].astype(np.uint64)
        keys.sort()
        rows[:, column + 2] = _largest(order, begins, (keys & LOW).astype(np.int32), steps)


def _by_link(src: Any, dst: Any) -> Order:
    cupy = engines.cupy()
    keys = src.astype(np.uint64) << HALF | dst.astype(np.uint64)
    places = cupy.argsort(keys, kind="stable")
    return _numbered(keys[places], places)


def _by_address(addresses: Any) -> Order:
    """Packets by address, sorted as keys with the place below the address."""
    cupy = engines.cupy()
    keys = addresses.astype(np.uint64) << HALF
    keys |= cupy.arange(addresses.size, dtype=np.uint64)
    keys.sort()
    return _numbered(keys >> HALF, (keys & LOW).astype(np.int64))


def _numbered(keys: Any, places: Any) -> Order:
    cupy = engines.cupy()
    heads = cupy.ones(keys.size, np.bool_)
    heads[1:] = keys[1:] != keys[:-1]
    entity = cupy.cumsum(heads, dtype=np.int32)
    entity -= 1
    first = cupy.flatnonzero(heads).astype(np.int32)
    end = cupy.full(1, keys.size, np.int32)
    return Order(places, entity, cupy.concatenate([first, end]))


def _present(order: Order, begins: Any, ends: Any, steps: int) -> Any:
    """The number of entities that count something, at each step."""
    cupy = engines.cupy()
    change = cupy.zeros(steps + 1, np.int32)
    SOURCE.kernels().count_present(begins.size, (begins.size, order.entity, begins, ends, change))
    return cupy.cumsum(change, dtype=np.int32)[:steps]


def _largest(order: Order, begins: Any, ends: Any, steps: int) -> Any:
    """The largest value of an entity, at each step."""
    levels = steps.bit_length()
    most = engines.cupy().zeros((levels, steps), np.int32)
    k = SOURCE.kernels()
    k.raise_values(begins.size, (begins.size, steps, order.entity, order.first, begins, ends, most))
    for level in range(levels - 1, 0, -1):
        k.halve(steps, (steps, 1 << (level - 1), most[level], most[level - 1]))
    return most[0]
