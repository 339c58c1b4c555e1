"""From CUDA text to name expressions and signatures; nothing here needs a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.engines import gpu
from matchwood.engines.gpu.launch import Kernel, Parameter, parameters

TEXT = """
#include "matchwood/union_find.cuh"
#include "matchwood/atomics.cuh"
// template <typename T> __global__ void hook(T wrong) is a comment
template <typename I, typename W>
__global__ void __launch_bounds__(256)
relax(I n, const I* __restrict__ indptr, const W* data, W best, bool flag,
      unsigned long long* status)
{
}

__global__ void reset(unsigned int* words, size_t count) {}
"""


def test_headers_are_put_in_once(make_source):
    text = make_source(TEXT, ("relax<I,W>", "reset")).text()
    assert text.count("struct WordOf;") == 1
    assert '#include "matchwood' not in text


def test_line_numbers_are_those_of_the_file(make_source):
    """The line after an include must be announced as what it is in the file."""
    lines = make_source(TEXT, ("reset",)).text().splitlines()
    at = lines.index("// template <typename T> __global__ void hook(T wrong) is a comment")
    marks = [k for k in range(at) if lines[k].startswith("#line") and '"gpu.cu"' in lines[k]]
    last = marks[-1]
    announced = int(lines[last].split()[1])
    assert announced + (at - last - 1) == TEXT.splitlines().index(lines[at]) + 1


def test_hash_of_the_text_is_an_option(make_source):
    one = make_source(TEXT, ("reset",))
    two = make_source(TEXT + "\n", ("reset",))
    assert one.options() != two.options()


def test_expressions(make_source):
    source = make_source(TEXT, ("relax<I,W>", "both = relax<I,double>", "reset"))
    assert source.expressions() == {"reset": "reset"}
    assert source.expressions(I=np.int64) == {"both": "relax<long long, double>", "reset": "reset"}
    assert source.expressions(I=np.dtype(np.int32), W="float")["relax"] == "relax<int, float>"
    assert source.all_expressions() == [
        "relax<int, float>",
        "relax<int, double>",
        "relax<long long, float>",
        "relax<long long, double>",
        "reset",
    ]


def test_kernels_by_name(make_source):
    source = make_source(TEXT, ("relax<I,W>", "reset"))
    assert source.wanted(("reset",), {"I": np.int32, "W": np.float32}) == {"reset": "reset"}
    assert len(source.wanted((), {"I": np.int32, "W": np.float32})) == 2
    with pytest.raises(gpu.KernelError, match="relax needs a type for W"):
        source.wanted(("relax",), {"I": np.int32})
    with pytest.raises(gpu.KernelError, match="no kernel hook"):
        source.wanted(("hook",), {})


def test_placeholders_of_a_source(make_source):
    source = make_source(TEXT, ("relax<I,V>",), types={"V": (np.int32,), "I": (np.int64,)})
    assert source.all_expressions() == ["relax<long long, int>"]


def test_signature(make_source):
    source = make_source(TEXT, ("relax<I,W>",))
    assert source.signature("relax", ["long long", "float"]) == [
        Parameter("n", np.dtype(np.int64), False),
        Parameter("indptr", np.dtype(np.int64), True),
        Parameter("data", np.dtype(np.float32), True),
        Parameter("best", np.dtype(np.float32), False),
        Parameter("flag", np.dtype(np.bool_), False),
        Parameter("status", np.dtype(np.uint64), True),
    ]
    assert [p.dtype for p in source.signature("reset", [])] == [np.uint32, np.uint64]
    with pytest.raises(gpu.KernelError, match="no kernel hook"):
        source.signature("hook", ["int"])


def test_unknown_types_are_not_judged():
    text = "__global__ void go(const float4* x, Pair<int, int> p, int n) {}"
    assert parameters(text, "go", []) == [
        Parameter("x", None, True),
        Parameter("p", None, False),
        Parameter("n", np.dtype(np.int32), False),
    ]


def test_not_a_kernel(make_source):
    with pytest.raises(ValueError, match="not a kernel"):
        make_source(TEXT, ("two words",))


class Array:
    """Stands for a cupy array."""

    def __init__(self, dtype, contiguous=True):
        self.dtype = np.dtype(dtype)
        self.flags = np.zeros((2, 2))[:, : 2 if contiguous else 1].flags


@pytest.fixture
def launched():
    """A kernel whose function notes what it is launched with."""
    calls = []

    def function(grid, block, args, **options):
        calls.append((grid, block, args))

    signature = parameters(TEXT, "relax", ["int", "double"])
    return Kernel("relax", function, signature), calls


def test_arguments_are_converted(launched):
    kernel, calls = launched
    indptr, data = Array(np.int32), Array(np.float64)
    kernel(1000, (7, indptr, data, 2, True, None))
    kernel(1000, (np.int64(7), indptr, data, np.float32(2), np.bool_(True), None), block=128)
    assert [call[:2] for call in calls] == [((4,), (256,)), ((8,), (128,))]
    for _, _, args in calls:
        assert [type(args[k]) for k in (0, 3, 4, 5)] == [np.int32, np.float64, np.bool_, np.uint64]
        assert (args[0], args[3], args[4], args[5]) == (7, 2.0, True, 0)
        assert args[1] is indptr


def test_nothing_to_do_is_no_launch(launched):
    kernel, calls = launched
    kernel(0, (7, Array(np.int32), Array(np.float64), 2.0, True, None))
    assert calls == []


@pytest.mark.parametrize(
    ("position", "value", "error"),
    [
        (0, 1 << 31, OverflowError),
        (0, 1.0, TypeError),
        (0, Array(np.int32), TypeError),
        (1, Array(np.int64), TypeError),
        (1, Array(np.float32), TypeError),
        (1, np.zeros(3, np.int32), TypeError),
        (1, Array(np.int32, contiguous=False), ValueError),
        (3, "text", TypeError),
        (5, Array(np.int64), TypeError),
    ],
)
def test_wrong_arguments_are_refused(launched, position, value, error):
    kernel, calls = launched
    args = [7, Array(np.int32), Array(np.float64), 2.0, True, Array(np.uint64)]
    args[position] = value
    with pytest.raises(error):
        kernel(10, args)
    with pytest.raises(TypeError, match="takes 6 arguments, got 5"):
        kernel(10, args[:5])
    assert calls == []
