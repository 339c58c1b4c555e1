"""Whole zstd frames in and out, by whichever package is there.

A frame is unpacked only where it says how many bytes it has, and says what was expected: nothing is
allocated on the word of the file alone.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from matchwood.io.compression import zstd_package


@functools.cache
def _tools() -> tuple[Any, bool]:
    """(the package, whether it is Python's own or its backport)."""
    package = zstd_package()
    return package, hasattr(package, "ZstdFile")


_kept = threading.local()


def _decoder() -> Any:
    """The decoder of zstandard for this thread; its memory serves all frames."""
    if not hasattr(_kept, "decoder"):
        _kept.decoder = _tools()[0].ZstdDecompressor()
    return _kept.decoder


def compressor(level: int) -> Any:
    """A function from bytes to one frame."""
    package, own = _tools()
    if own:
        return functools.partial(package.compress, level=level)
    return package.ZstdCompressor(level=level).compress


def scratch(which: int, size: int) -> memoryview:
    """Memory of this thread that the next matrix uses again: fresh memory costs page faults."""
    buffers = _kept.__dict__.setdefault("buffers", {})
    if which not in buffers or len(buffers[which]) < size:
        buffers[which] = np.empty(size + size // 4, np.uint8)
    return memoryview(buffers[which])[:size]


def unpacked(frame: memoryview, size: int, goal: memoryview) -> Any:
    """The `size` bytes of a frame; ValueError where it is damaged or has another size.

    They are written to `goal` where the package can do so, and are bytes of their own elsewhere.
    """
    package, own = _tools()
    try:
        if own:
            told = package.get_frame_info(frame).decompressed_size
        else:
            told = package.frame_content_size(frame)
        if told is not None and told >= 0 and told != size:
            raise ValueError(f"a frame of {told} bytes where {size} were expected")
        if own:
            decoder = package.ZstdDecompressor()
            found = decoder.decompress(frame, size + 1)
            complete = decoder.eof and not decoder.unused_data
        else:
            with _decoder().stream_reader(frame, read_size=max(len(frame), 1)) as stream:
                found, complete = goal[: stream.readinto(goal)], not stream.read(1)
    except ValueError:
        raise
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise ValueError(f"the zstd data is damaged ({error})") from None
    if not complete or len(found) != size:
        raise ValueError(f"{len(found)} bytes where {size} were expected")
    return found
