"""Kernels that come compiled: a shared library of the package `matchwood-kernels`.

The package holds one library for each level of processors, and an index: the version, the checksum
of each library, and the `source_hash` of every file with kernels when they were built.  Loaded is
only what lies in that package, by its full path, where its checksum is right; used is only code
whose sources are those of now.  Any difference means that the kernel is compiled as if there were
no library.  No variable, current folder or cache names a library; MATCHWOOD_KERNELS=off ignores it,
and so does any setting of Numba (NUMBA_BOUNDSCHECK, NUMBA_OPT, ...), which could change the code.

`machine/kernels.py` builds libraries.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from matchwood._version import __version__
from matchwood.engines.cpu.compiled import PACKAGE, source_hash

FOLDER = "matchwood_kernels"
INDEX = "index.json"
CONFIG_FILE = ".numba_config.yaml"  # settings of Numba for the current folder
_CAPABILITIES = 16  # of `getauxval`: what an ARM processor can do
_LSE = 1 << 8  # it has atomic instructions


class Level(NamedTuple):
    """Processors that one library is for: what LLVM calls them, and what they must have."""

    processor: str
    features: str
    needs: frozenset[str] = frozenset()


_V2 = ["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"]
_V3 = [*_V2, *["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"]]
_V4 = [*_V3, *["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]]
_V3_FEATURES = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4_FEATURES = f"{_V3_FEATURES},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"

# Tuned for a processor of today, and without its instructions: LLVM's "generic" takes branches
# where it should not, and a local search on R-MAT 17 then took 1.8 times as long.
_PLAIN_ARM = "-v8.1a,-v8.2a,-fullfp16,-dotprod,-rcpc,-ssbs,-spe,-crc,-aes,-sha2,+neon"

# The best first.
LEVELS: dict[str, dict[str, Level]] = {
    "x86_64": {
        "x86-64-v4": Level("x86-64-v4", _V4_FEATURES, frozenset(_V4)),
        "x86-64-v3": Level("x86-64-v3", _V3_FEATURES, frozenset(_V3)),
        "x86-64-v2": Level("x86-64-v2", "", frozenset(_V2)),
    },
    "aarch64": {
        "armv8.1": Level("neoverse-n1", f"{_PLAIN_ARM},+lse", frozenset({"lse"})),
        "armv8.0": Level("neoverse-n1", f"{_PLAIN_ARM},-lse"),
    },
}


def levels() -> dict[str, Level]:
    """The levels that this processor has, the best first; none where there are no libraries."""
    if sys.platform != "linux" or sys.byteorder != "little":
        return {}
    known = LEVELS.get(platform.machine(), {})
    found = _abilities()
    return {name: level for name, level in known.items() if level.needs <= found}


def _abilities() -> set[str]:
    if platform.machine() == "aarch64":
        has_atomics = ctypes.CDLL(None).getauxval(_CAPABILITIES) & _LSE
        return {"lse"} if has_atomics else set()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        words = {line.partition(":")[0].strip(): line.partition(":")[2].split() for line in file}
    found = set(words.get("flags", ()))
    if words.get("vendor_id") == ["AuthenticAMD"] and words.get("cpu family") == ["23"]:
        found.discard("bmi2")  # Zen 1 and 2 have its instructions in slow microcode
    return found


class Library:
    """One loaded library."""

    def __init__(self, path: Path, level: str, hashes: dict[str, str]) -> None:
        self.path, self.level, self.hashes = path, level, hashes
        self._loaded = ctypes.CDLL(str(path))

    def address_of(self, signature: str, files: Iterable[Path]) -> int | None:
        for file in files:
            if self.hashes.get(file.relative_to(PACKAGE).as_posix()) != source_hash(file):
                return None
        try:
            function = getattr(self._loaded, symbol(signature))
        except AttributeError:
            return None
        return ctypes.cast(function, ctypes.c_void_p).value

    def changed(self) -> list[str]:
        """The files whose kernels must be compiled, since they are not as they were."""
        return sorted(
            name
            for name, digest in self.hashes.items()
            if not (PACKAGE / name).is_file() or source_hash(PACKAGE / name) != digest
        )


def symbol(signature: str) -> str:
    """The name of a kernel's entry in a library."""
    return "matchwood_" + hashlib.sha256(signature.encode()).hexdigest()[:24]


def address_of(signature: str, files: Iterable[Path]) -> int | None:
    """The entry of a kernel; None where it must be compiled."""
    found, _ = opened()
    return None if found is None else found.address_of(signature, files)


@functools.cache
def opened() -> tuple[Library | None, str]:
    """The library for this processor, or None, and why there is none."""
    if os.environ.get("MATCHWOOD_KERNELS") == "off":
        return None, "MATCHWOOD_KERNELS is off"
    setting = next((name for name in sorted(os.environ) if name.startswith("NUMBA_")), None)
    if setting is None and Path(CONFIG_FILE).is_file():
        setting = CONFIG_FILE
    if setting is not None:
        return None, f"{setting} may change them"
    folder = next((place for place in _folders() if (place / INDEX).is_file()), None)
    if folder is None:
        return None, "the package matchwood-kernels is not installed"
    try:
        return _opened(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return None, f"{folder} cannot be used: {error}"


def _folders() -> list[Path]:
    """Beside this package, or where this Python installs packages: a clone is elsewhere."""
    return [PACKAGE.parent / FOLDER, Path(sysconfig.get_path("platlib")) / FOLDER]


def _opened(folder: Path) -> tuple[Library | None, str]:
    index: dict[str, Any] = json.loads((folder / INDEX).read_bytes())
    if index["version"] != __version__:
        return None, f"matchwood-kernels is of version {index['version']}, not {__version__}"
    level = next((name for name in levels() if name in index["levels"]), None)
    if level is None:
        return None, "there is no library for this processor"
    path = folder / f"{level}.so"
    if hashlib.sha256(path.read_bytes()).hexdigest() != index["levels"][level]:
        return None, f"{path} is damaged"
    return Library(path, level, dict(index["sources"])), ""
