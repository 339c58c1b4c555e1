"""Structure in large sparse graphs and matrices, on CPU threads and GPUs, with one answer.

The index of all public names, one line each, is __init__.pyi, which ``make lists`` makes from
registry.py: every problem and where it lies.  A name is imported when it is first used.  Read
gate/graph.py next (what goes in), then engines/__init__.py (where it runs), then any problem
folder: they all have the same shape.
"""

from __future__ import annotations

from matchwood._lazy import attach as _attach
from matchwood._lazy import import_whole as _import_whole
from matchwood._version import __version__ as __version__

_OLD = {  # names of the last release: they still work, with a DeprecationWarning
    "measures": "order_measures",
    "profile": "matrix_profile",
    "multilevel": "coarsening_hierarchy",
    "upper_bound": "matching_bound",
}


def _homes() -> dict[str, str]:
    """The module of each public name; `import matchwood` alone does not read the registry."""
    found: dict[str, str] = _import_whole("matchwood.registry").homes()
    return found


__getattr__, __dir__ = _attach(__name__, _homes, _OLD)
