"""A sliding window from the definition: every window counted anew."""

from __future__ import annotations

from typing import Any

from matchwood.applications.sensing.statistics.reference import packet_statistics


def slide(
    src: Any, dst: Any, window: int, stride: int, table: Any, *, threads: int | None = None
) -> None:
    for step in range(len(table)):
        here = slice(step * stride, step * stride + window)
        table[step] = list(packet_statistics(src[here], dst[here]).nine().values())[1:]
