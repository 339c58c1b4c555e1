"""How many words devices receive from each other.

After a round each device knows the new pointers of its own vertices, and the others need them.  The
pointers of a partition are one piece of the array, so in the first round they travel as they are, a
word a vertex.  Later few of them change, and pairs of (vertex, pointer) travel instead, where that
is less.  Mates follow from pointers on every device, so they never travel.
"""

from __future__ import annotations

from collections.abc import Sequence


def as_pairs(changed: int, vertices: int) -> bool:
    """Whether the changed pointers of a partition travel as pairs and not as a whole."""
    return 2 * changed < vertices


def words_sent(changed: int, vertices: int) -> int:
    """Words with which a partition tells another one what has changed."""
    return 2 * changed if as_pairs(changed, vertices) else vertices


def words_received(changed: Sequence[int], vertices: Sequence[int]) -> list[int]:
    """Words that each device receives from the others together."""
    sent = [words_sent(*one) for one in zip(changed, vertices, strict=True)]
    return [sum(sent) - own for own in sent]


def words_of_all_reduce(words: int, devices: int) -> int:
    """Words that each device receives in an all-reduce along a ring, rounded up."""
    return -(-2 * (devices - 1) * words // devices)
