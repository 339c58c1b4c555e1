"""What a call may take of the machine: memory that is there, and time that Ctrl-C can end.

`require_memory` and `require_vertices`, from memory/, refuse a request before it is made,
where it cannot be met.  `interruptible` runs a long call of another library, which would not hear
Ctrl-C until it is over.
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

WAIT = 0.05  # seconds between two looks at a helper; a signal wakes the waiting thread at once


def interruptible(function: Callable[..., Result], *args: Any) -> Result:
    """``function(*args)`` in a helper thread, so that Ctrl-C is heard while it runs.

    For calls of other libraries that take long and cannot be stopped.  On Ctrl-C the caller goes
    on at once; the helper ends its work unseen, and what it returns is thrown away.  So `args`
    must not be changed afterwards, and `function` must change nothing that others see.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)  # signals go to the main thread alone
    results: list[Result] = []
    errors: list[BaseException] = []
    gate = threading.Lock()
    gate.acquire()

    def work() -> None:
        try:
            results.append(function(*args))
        except BaseException as error:
            errors.append(error)
        finally:
            gate.release()

    threading.Thread(target=work, daemon=True, name="matchwood-helper").start()
    while not gate.acquire(timeout=WAIT):
        pass
    if errors:
        raise errors[0]
    return results[0]
