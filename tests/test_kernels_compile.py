"""Every `.cu` of the package compiles for sm_90 with each of its types, without a GPU.

By default the compiler optimizes little, which takes a fraction of the time.  The slow tests let it
do all that it does for users, with all pairs of types, and for sm_80, too.

NVRTC and the headers come from the wheels that the GPU extras install; where they are missing
(no wheels for this platform, or the extras are not installed) the tests say so and are skipped.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import defaultdict
from pathlib import Path

import pytest

import matchwood
from matchwood.engines import gpu
from matchwood.engines.gpu.launch import parameters

ROOT = Path(matchwood.__file__).parent


def _import_gpu_modules() -> list[str]:
    """Import every module that is called gpu or gpu_*; none of them needs cupy for that."""
    found = []
    for module in pkgutil.walk_packages([str(ROOT)], "matchwood."):
        name = module.name.rpartition(".")[2]
        if not module.ispkg and (name == "gpu" or name.startswith("gpu_")):
            importlib.import_module(module.name)
            found.append(module.name)
    return found


MODULES = _import_gpu_modules()
SOURCES = sorted(key for key in gpu.SOURCES if key[0].startswith("matchwood."))


@pytest.fixture(scope="module")
def include_options() -> tuple[str, ...]:
    """Where the headers lie that CuPy hands to NVRTC at run time."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    try:
        nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"NVRTC is not installed: {error}")
    bundled = Path(cupy.__file__).parent / "_core" / "include"
    folders = [bundled, *sorted((bundled / "cupy" / "_cccl").glob("*"))]
    nvidia = pytest.importorskip("nvidia", reason="the CUDA headers are not installed")
    runtime = [
        header.parent
        for root in nvidia.__path__
        for header in sorted(Path(root).glob("*/include/cuda_runtime.h"))
    ]
    if not runtime:
        pytest.skip("the CUDA runtime headers are not installed")
    return tuple(f"-I{folder}" for folder in (*folders, runtime[0]))


def test_every_cuda_file_belongs_to_a_source():
    declared = {Path(*package.split(".")[1:]) / file for package, file in SOURCES}
    present = {path.relative_to(ROOT) for path in ROOT.rglob("*.cu")}
    assert present == declared


# Both index types


KERNEL = re.compile(
    r"(?:template\s*<(?P<template>[^<>]*)>\s*)?"
    r"__global__[^;{}()]*(?:__launch_bounds__\s*\([^()]*\)[^;{}()]*)?\b(?P<name>\w+)\s*\("
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
INDEX_TYPES = {"int", "long long"}
ROWS = {"indptr", "indices", "row", "column", "parent", "label", "mate"}  # arrays of vertices


def kernels_of(text: str) -> dict[str, list[str]]:
    """The kernels of a CUDA text and the names of their template parameters."""
    found = {}
    for match in KERNEL.finditer(COMMENT.sub("", text)):
        listed = match["template"] or ""
        found[match["name"]] = [
            part.split("=")[0].split()[-1] for part in listed.split(",") if part
        ]
    return found


def built(expressions: list[str]) -> dict[str, list[list[str]]]:
    """The template arguments with which each kernel is built."""
    made: dict[str, list[list[str]]] = defaultdict(list)
    for expression in expressions:
        name, _, rest = expression.partition("<")
        made[name].append(
            [part.strip() for part in rest.removesuffix(">").split(",")] if rest else []
        )
    return made


def some_expressions(source: gpu.Source) -> list[str]:
    """Few of all: each kernel, and each argument of each, but not all pairs of arguments."""
    parts = {}
    for expression in source.all_expressions():
        ((name, (arguments,)),) = built([expression]).items()
        parts[expression] = {(name, "kernel"), *((name, *pair) for pair in enumerate(arguments))}
    found: list[str] = []
    missing = set().union(*parts.values())
    while missing:
        found.append(max(parts, key=lambda one: len(parts[one] & missing)))
        missing -= parts[found[-1]]
    return found


def faults_of_types(text: str, expressions: list[str]) -> list[str]:
    """Kernels of a text that are not built, or for one type of index alone."""
    found, made = [], built(expressions)
    for name, names in kernels_of(text).items():
        if name not in made:
            found.append(f"{name} is not built")
        elif "I" in names:
            types = {arguments[names.index("I")] for arguments in made[name]}
            if types != INDEX_TYPES:
                found.append(f"{name} is built for indices of type {sorted(types)} alone")
        elif any(p.pointer and p.name in ROWS for p in parameters(text, name, made[name][0]) or []):
            fixed = [arguments for arguments in made[name] if INDEX_TYPES & set(arguments)]
            if {kind for arguments in fixed for kind in arguments} < INDEX_TYPES:
                found.append(f"{name} takes rows of a graph in one type of index alone")
    return found


@pytest.mark.parametrize("key", SOURCES, ids=lambda key: ".".join(key).removeprefix("matchwood."))
def test_every_kernel_is_built_for_both_index_types(key):
    source = gpu.SOURCES[key]
    assert kernels_of(source.text())
    assert not faults_of_types(source.text(), source.all_expressions())


def test_kernels_of_one_index_type_are_seen():
    text = """
template <typename I> __global__ void __launch_bounds__(256) hook(const I* indptr, int n) {}
template <typename W> __global__ void weigh(W* w) {}
template <typename W> __global__ void narrow(const int* indices, W* w) {}
// __global__ void not_there(int n) {}
"""
    both = ["hook<int>", "hook<long long>"]
    assert not faults_of_types(text, [*both, "weigh<float>", "narrow<int>", "narrow<long long>"])
    assert faults_of_types(text, [*both, "weigh<float>", "narrow<float>"]) == [
        "narrow takes rows of a graph in one type of index alone"
    ]
    assert faults_of_types(
        text, ["hook<int>", "weigh<float>", "narrow<int>", "narrow<long long>"]
    ) == ["hook is built for indices of type ['int'] alone"]
    assert faults_of_types(text, [*both, "narrow<int>", "narrow<long long>"]) == [
        "weigh is not built"
    ]


# All pairs of types take some minutes for each architecture.
ARCHITECTURES = (
    ("sm_90", some_expressions, ("--Ofast-compile=max",)),
    pytest.param(("sm_90", gpu.Source.all_expressions, ()), marks=pytest.mark.slow),
    pytest.param(("sm_80", gpu.Source.all_expressions, ()), marks=pytest.mark.slow),
)


@pytest.mark.slow
@pytest.mark.parametrize("way", ARCHITECTURES, ids=lambda way: f"{way[0]}-{way[1].__name__}")
@pytest.mark.parametrize("key", SOURCES, ids=lambda key: key[0].removeprefix("matchwood."))
def test_compiles(key, way, include_options):
    architecture, chosen, options = way
    source = gpu.SOURCES[key]
    if version() < (13, 0):  # of a toolkit that does not know the option
        options = ()
    assert _compile(source, chosen(source), architecture, (*options, *include_options)) == ""


def version() -> tuple[int, int]:
    """Of NVRTC."""
    from cupy_backends.cuda.libs import nvrtc

    return tuple(nvrtc.getVersion())


def test_each_type_is_compiled():
    """What is left out by default are pairs of types, and no type."""
    for source in map(gpu.SOURCES.get, SOURCES):
        some, every = built(some_expressions(source)), built(source.all_expressions())
        assert some.keys() == every.keys()
        for name, made in every.items():
            for place in range(len(made[0])):
                assert {one[place] for one in some[name]} == {one[place] for one in made}, name


def _compile(
    source: gpu.Source,
    expressions: list[str],
    architecture: str,
    more_options: tuple[str, ...],
) -> str:
    """The compiler's log, or nothing where all went well."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(source.text(), source.file, (), ())
    try:
        for expression in expressions:
            nvrtc.addNameExpression(program, expression)
        options = (
            *source.options(),
            f"-arch={architecture}",
            "-ftz=true",
            "--device-as-default-execution-space",
            "-Werror=all-warnings",
            *more_options,
        )
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            return str(nvrtc.getProgramLog(program))
        code = nvrtc.getCUBIN(program)
        names = [nvrtc.getLoweredName(program, one) for one in expressions]
        missing = [name for name in names if name.encode() not in code]
        return f"no code of {missing}" if missing else ""
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("key", SOURCES, ids=lambda key: key[0].removeprefix("matchwood."))
def test_every_kernel_has_a_signature(key):
    """The launch converts arguments by the text; a kernel that it cannot read would fail there."""
    source = gpu.SOURCES[key]
    for expression in source.all_expressions():
        name, _, rest = expression.partition("<")
        arguments = [part.strip() for part in rest.removesuffix(">").split(",")] if rest else []
        for parameter in source.signature(name, arguments):
            assert parameter.name.isidentifier()
            if not parameter.pointer:
                assert parameter.dtype is not None, f"{expression}: {parameter.name}"
