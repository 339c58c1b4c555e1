"""Is this answer right?  Every problem's check; their list is in registry.py.

A check decides from the definition of a problem, without solving it, in near-linear time.  It
returns None when the answer is right and raises `CheckFailed`, naming what is wrong where, when
it is not.  Where only the steps of a problem decide, they are replayed: always, or with `replay`.
What cannot be an answer at all, floats or text where vertices are numbered, is a TypeError.  The
functions named is_... say True or False instead of None or `CheckFailed`.
"""

from __future__ import annotations

from matchwood import registry as _registry
from matchwood._lazy import attach as _attach

_HOMES = _registry.check_homes()

__all__ = [*_HOMES]

__getattr__, __dir__ = _attach(__name__, _HOMES)
