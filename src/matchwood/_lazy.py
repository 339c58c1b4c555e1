"""Names that are imported when they are first used, so that a page of names costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(
    module: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module (PEP 562) that only points at other modules.

    `homes` maps a name to the module that defines it; a name that maps to a module of the same
    name is that module itself.
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        value = home if homes[name].rpartition(".")[2] == name else getattr(home, name)
        setattr(sys.modules[module], name, value)  # found without us from now on
        return value

    def listing() -> list[str]:
        return sorted({*vars(sys.modules[module]), *homes})

    return getattribute, listing
