"""Is this answer right?  Every problem's check, one line each.

A check decides from the definition of a problem, without solving it, in near-linear time.  It
returns None when the answer is right and raises `CheckFailed`, naming what is wrong where, when
it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "check_bfs": "matchwood.traversal.breadth_first.check",  # levels and parents
    "check_connected_components": "matchwood.components.connected.check",  # labels of components
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from matchwood.components.connected.check import (
        check_connected_components as check_connected_components,
    )
    from matchwood.traversal.breadth_first.check import check_bfs as check_bfs
else:  # hidden from type checkers, for which it would make every name exist
    __getattr__, __dir__ = _attach(__name__, _HOMES)
