"""Memory and time of a call: refused where memory is missing, stopped by Ctrl-C.

`require_memory` and `require_vertices`, from memory.py, raise before memory is requested that the
machine does not have.  `interruptible` runs a long call of another library, which alone would not
react to Ctrl-C until it is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from matchwood.memory import (
    ADDRESSES,
    available_memory,
    require_memory,
    require_vertices,
)

__all__ = ["ADDRESSES", "available_memory", "interruptible", "require_memory", "require_vertices"]

Result = TypeVar("Result")

WAIT_SECONDS = 0.05  # of one wait for the helper; a signal ends the wait at once


def interruptible(function: Callable[..., Result], *args: Any) -> Result:
    """``function(*args)`` in a helper thread, so that Ctrl-C works while it runs.

    For calls of other libraries that take long and cannot be stopped.  On Ctrl-C the caller goes
    on at once; the helper finishes in the background, and its result is dropped.  So `args` must
    not be changed afterwards, and `function` must change nothing that others see.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)  # signals go to the main thread alone
    results: list[Result] = []
    errors: list[BaseException] = []
    running = threading.Lock()
    running.acquire()

    def work() -> None:
        try:
            results.append(function(*args))
        except BaseException as error:
            errors.append(error)
        finally:
            running.release()

    threading.Thread(target=work, daemon=True, name="matchwood-helper").start()
    while not running.acquire(timeout=WAIT_SECONDS):
        pass
    if errors:
        raise errors[0]
    return results[0]
