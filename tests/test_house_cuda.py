"""CUDA headers: who may include what, who shares what, and names that mean one thing.

An include is an import.  The loader looks beside the file that asks, in the folders above it up to
its family, in the primitive of that name, then in engines/gpu/device/.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from house import CUDA_FILES, PACKAGE, module_of
from matchwood.engines.gpu.source import KernelError, header_home

HEADERS = [path for path in CUDA_FILES if path.suffix == ".cuh"]
SHARED = PACKAGE / "engines" / "gpu" / "device"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"]*[>"])', re.MULTILINE)
OURS = re.compile(r'"matchwood/(\w+\.cuh)"')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DEFINED = re.compile(
    r"^(?:template\s*<[^<>]*>\s*)?(?:\[\[maybe_unused\]\]\s*)?"
    r"(?:(?:static\s+|inline\s+|__device__\s+|__constant__\s+)*constexpr\s+(?:\w+\s+)+?(\w+)\s*="
    r"|(?:struct|class|union|enum(?:\s+class)?)\s+(?:__\w+__\s*\([^)]*\)\s*|alignas\([^)]*\)\s*)?"
    r"(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{)",
    re.MULTILINE,
)


def package_of(path: Path) -> tuple[str, ...]:
    return tuple(module_of(path).split(".")[:-1])


def faults_of_includes(path: Path, text: str) -> Iterator[str]:
    """What a CUDA file includes and may not."""
    for match in INCLUDE.finditer(text):
        ours = OURS.fullmatch(match[1])
        if ours is None:
            yield f'{match[1]}: write "matchwood/name.cuh", without folders'
            continue
        try:
            header_home(ours[1], package_of(path))
        except KernelError:
            homes = [header for header in HEADERS if header.name == ours[1]]
            whose = ", ".join(str(home.relative_to(PACKAGE)) for home in homes) or "nobody's"
            yield f"{ours[1]}: not a header of this family, nor shared: {whose}"


@pytest.mark.parametrize("path", CUDA_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_includes_follow_the_arrows(path):
    assert not list(faults_of_includes(path, path.read_text()))


def test_wrong_includes_are_seen():
    here = PACKAGE / "spanning" / "forest" / "boruvka" / "gpu.cu"
    for text, wrong in [
        ('#include "matchwood/order.cuh"', False),  # its own
        ('#include "matchwood/edges.cuh"', False),  # shared by all
        ('#include "matchwood/union_find.cuh"', False),  # a primitive's
        ('#include "matchwood/first_edge.cuh"', True),  # of another family
        ('#include "matchwood/../matching/first_edge.cuh"', True),
        ('#include "matchwood/nobody_has_it.cuh"', True),
        ('#include "order.cuh"', True),
        ("#include <cuda_runtime.h>", True),
    ]:
        assert bool(list(faults_of_includes(here, text))) is wrong, text


# Who includes what


@cache
def users() -> dict[Path, set[Path]]:
    """The files that include each header, directly or through other headers."""
    direct: dict[Path, set[Path]] = defaultdict(set)
    for path in CUDA_FILES:
        for name in OURS.findall(path.read_text()):
            home = header_home(name, package_of(path))
            direct[PACKAGE.joinpath(*home[1:], name)].add(path)

    def all_users(header: Path) -> set[Path]:
        found = set(direct[header])
        for path in direct[header]:
            if path.suffix == ".cuh":
                found |= all_users(path)
        return found

    return {header: all_users(header) for header in HEADERS}


def families(paths: set[Path]) -> set[str]:
    return {path.relative_to(PACKAGE).parts[0] for path in paths} - {"engines"}


def test_shared_headers_serve_several_families():
    """A header that one family alone includes lies with that family."""
    lonely = {
        header.name: sorted(families(users()[header]))
        for header in HEADERS
        if header.parent == SHARED and len(families(users()[header])) < 2
    }
    assert not lonely


def test_every_header_is_included():
    assert not [str(header.relative_to(PACKAGE)) for header in HEADERS if not users()[header]]


def test_users_are_found_through_other_headers():
    """resident_barrier.cuh includes atomics.cuh, so whoever includes the first uses both."""
    used = users()
    assert used[SHARED / "resident_barrier.cuh"] < used[SHARED / "atomics.cuh"]


def test_headers_have_names_of_their_own():
    """The loader takes the first of a name that it finds: a second one would hide another."""
    names = [header.name for header in HEADERS]
    assert len(set(names)) == len(names)


# Names


def defined(text: str) -> set[str]:
    """Constants and types at the top of a header; what a struct holds is its own."""
    return {match[1] or match[2] for match in DEFINED.finditer(COMMENT.sub("", text))}


def shared_names() -> set[str]:
    """ "name: header, header" for each name that several headers define."""
    homes = defaultdict(list)
    for header in HEADERS:
        for name in defined(header.read_text()):
            homes[name].append(header.name)
    return {f"{name}: {', '.join(found)}" for name, found in homes.items() if len(found) > 1}


def test_names_of_headers_mean_one_thing():
    assert shared_names() == set()


def test_names_are_read():
    text = """
    // constexpr int NO = 1;
constexpr int TILE = 4;
[[maybe_unused]] constexpr unsigned long long MASK = 1ull << 3;
template <typename I> struct Bits {
    static constexpr int INNER = 3;
};
struct __align__(16) Pair { int a; };
enum class State : int { A, B };
template <typename W, int N> constexpr int BLOCKS = N;
struct Later;
"""
    assert defined(text) == {"TILE", "MASK", "Bits", "Pair", "State", "BLOCKS"}
