"""Network sensing: from captures to anonymized traffic matrices to statistics.

`sense` does all of it: a capture, archive or arrays to windows, a sum and statistics.  Its steps
are functions of their own.  The list is in registry.py, the implementation in
applications/sensing.
"""

from __future__ import annotations

from matchwood import registry as _registry
from matchwood._lazy import attach as _attach

_HOMES = _registry.sensing_homes()

__all__ = [*_HOMES]

__getattr__, __dir__ = _attach(__name__, _HOMES)
