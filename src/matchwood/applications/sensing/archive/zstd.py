"""Whole zstd frames in and out, by whichever package is there.

A frame is unpacked only where it says how many bytes it has, and says what was expected: nothing is
allocated on the word of the file alone.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from matchwood.io.compression import zstd_package

PIECE = 1 << 17  # bytes that are compressed between two looks at Ctrl-C; a block of zstd
AT_ONCE = 1 << 20  # bytes that are compressed in one call, 20 ms, by a level that is ...
FAST = 3  # ... at most this


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


def compressor(level: int, stop: threading.Event | None = None) -> Callable[[memoryview], bytes]:
    """A function from bytes to one frame, which gives up when `stop` is set.

    Long content goes in pieces, between which Ctrl-C is heard.
    """
    package, own = _tools()
    made = package.ZstdCompressor(level=level)

    def compress(content: memoryview) -> bytes:
        if len(content) <= AT_ONCE and level <= FAST:
            return bytes(package.compress(content, level=level) if own else made.compress(content))
        if own:
            stream = package.ZstdCompressor(level=level)
            stream.set_pledged_input_size(len(content))
        else:
            stream = made.compressobj(size=len(content))
        found = []
        for k in range(0, len(content), PIECE):
            if stop is not None and stop.is_set():
                raise CancelledError
            found.append(stream.compress(content[k : k + PIECE]))
        return b"".join([*found, stream.flush()])

    return compress


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
