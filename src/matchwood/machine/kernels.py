"""The list of all kernels with all types of their arguments, and what is made from it.

`kernels.json` has one signature a line (see engines/cpu/compiled.py).  From it `warmup` compiles
for this machine, and

    python -m matchwood.machine.kernels build FOLDER     makes libraries, one for each level
    python -m matchwood.machine.kernels wheel FOLDER     packs them as matchwood-kernels

Nothing is run for that.  The tests meet all kernels, and fail on a signature that is not listed;
``pytest --list-kernels`` adds what they meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).with_name("kernels.json")


def listed() -> set[str]:
    """The signatures in the list."""
    return {json.dumps(each, separators=(",", ":")) for each in json.loads(LIST.read_bytes())}


def write_list(signatures: Iterable[str]) -> None:
    """Write the list anew; other processes see the old one or the new one."""
    new = LIST.with_suffix(".new")
    new.write_text("[\n" + ",\n".join(sorted(signatures)) + "\n]\n", encoding="utf-8")
    new.replace(LIST)
