"""The GPU engine on a GPU: compile, launch, memory, captured rounds, flags, status."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from matchwood import engines
from matchwood.engines import gpu
from matchwood.errors import EngineUnavailable, OutOfMemory

TEXT = """
#include "matchwood/threads.cuh"
#include "matchwood/atomics.cuh"
#include "matchwood/status.cuh"
#include "matchwood/grid_barrier.cuh"

template <typename I>
__global__ void add(I n, I* x, I step)
{
    long long i = global_thread();
    if (i < n) x[i] += step;
}

template <typename I>
__global__ void halve(I n, I* x, int* changed)
{
    long long i = global_thread();
    if (i < n && x[i] > 1) {
        x[i] /= 2;
        store_relaxed(changed, 1);
    }
}

template <typename I>
__global__ void refuse(I n, const I* x, unsigned long long* status)
{
    long long i = global_thread();
    if (i < n && x[i] < 0) fail(status, x[i] < -1 ? 2 : 1, i);
}

// Everybody counts up in every round and must see everybody's count of the round before.
__global__ void count_rounds(int rounds, unsigned int* words, unsigned int* count, int* wrong)
{
    GridBarrier barrier(words);
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) atomicAdd(count, 1u);
        barrier.wait();
        if (load_relaxed(count) != (round + 1) * gridDim.x) store_relaxed(wrong, 1);
        barrier.wait();
    }
}

__global__ void sums(const int* x, int* before, int* total, int* least)
{
    int all;
    before[threadIdx.x] = block_exclusive_sum(x[threadIdx.x], &all);
    total[threadIdx.x] = all;
    int low = block_reduce(x[threadIdx.x], 0x7fffffff, Least());
    if (threadIdx.x == 0) *least = low;
}

template <typename T>
__global__ void extremes(int n, const T* x, T* low, T* high)
{
    long long i = global_thread();
    if (i < n) lower_to(low, x[i]), raise_to(high, x[i]);
}

extern __shared__ int cells[];
__global__ void much_shared(int count, int* out)
{
    for (int k = threadIdx.x; k < count; k += blockDim.x) cells[k] = k;
    __syncthreads();
    if (threadIdx.x == 0) *out = cells[count - 1];
}
"""
KERNELS = (
    "add<I>", "halve<I>", "refuse<I>", "count_rounds", "sums", "extremes<T>", "much_shared",
)  # fmt: skip


@pytest.fixture
def source(make_source):
    return make_source(TEXT, KERNELS, types={"T": (np.int32, np.float32, np.float64)})


@pytest.fixture
def cp():
    return engines.cupy()


def test_without_a_gpu_the_reason_is_given(source):
    if engines.gpu_available():
        pytest.skip("there is a GPU")
    with pytest.raises(EngineUnavailable):
        source.kernels(I=np.int32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_launch(source, cp, dtype):
    x = cp.arange(1000, dtype=dtype)
    k = source.kernels(I=dtype)
    k.add(1000, (1000, x, 5))
    assert (x == cp.arange(5, 1005)).all()
    k.add(0, (0, x, 5))
    assert source.kernels(I=np.dtype(dtype)) is k
    with pytest.raises(TypeError, match="x is"):
        k.add(1000, (1000, x.astype(np.float32), 5))
    with pytest.raises(ValueError, match="contiguous"):
        k.add(500, (500, x[::2], 5))
    with pytest.raises(AttributeError, match="needs a type for T"):
        k.extremes


@pytest.mark.gpu
def test_compile_error_names_kernel_and_line(make_source, cp):
    text = "template <typename I>\n__global__ void go(I n) { I x = nothing; }\n"
    broken = make_source(text, ("go<I>",))
    with pytest.raises(gpu.KernelError) as caught:
        broken.kernels(I=np.int32)
    message = str(caught.value)
    assert "go<int>" in message
    assert "nothing" in message
    assert "gpu.cu(2)" in message


@pytest.mark.gpu
def test_changed_header_is_compiled_anew(make_source, cp, monkeypatch):
    """CuPy's cache does not see into headers; ours are part of the text."""
    text = "__global__ void go(int* out) { *out = VALUE; }"
    answers = []
    for value in (1, 2):
        source = make_source(f"#define VALUE {value}\n{text}", ("go",))
        out = cp.zeros(1, np.int32)
        source.kernels().go(1, (out,))
        answers.append(int(out[0]))
    assert answers == [1, 2]


@pytest.mark.gpu
def test_runs_on_the_current_stream(source, cp):
    """Work on another stream stays there: it is ordered after what that stream does."""
    k = source.kernels(I=np.int64)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        x = cp.zeros(1 << 20, np.int64)
        for _ in range(20):
            k.add(x.size, (x.size, x, 1))
        assert bool((x == 20).all())


@pytest.mark.gpu
def test_calls_from_several_threads(source, cp):
    results = []

    def work(step):
        with cp.cuda.Stream(non_blocking=True):
            x = cp.zeros(5000, np.int32)
            k = source.kernels(I=np.int32)
            for _ in range(50):
                k.add(x.size, (x.size, x, step))
            results.append(bool((x == 50 * step).all()))

    threads = [threading.Thread(target=work, args=(step,)) for step in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


@pytest.mark.gpu
def test_shared_memory_beyond_48_kilobytes(source, cp):
    out = cp.zeros(1, np.int32)
    count = 20_000
    k = source.kernels("much_shared")
    k.much_shared(None, (count, out), grid=1, shared_mem=4 * count)
    assert int(out[0]) == count - 1


@pytest.mark.gpu
def test_captured_rounds_converge(source, cp):
    x = cp.arange(1, 100_001, dtype=np.int32)
    k = source.kernels(I=np.int32)
    flag = gpu.Flag()

    def rounds():
        for _ in range(4):
            k.halve(x.size, (x.size, x, flag))

    captured = gpu.capture(rounds)
    assert int(x[-1]) == 100_000  # recorded, not run
    launches = 0
    while True:
        flag.clear()
        captured.launch()
        launches += 1
        flag.fetch()
        if not flag.read():
            break
    assert bool((x == 1).all())
    assert launches == 5  # 16 halvings in four launches, and one that changes nothing


@pytest.mark.gpu
def test_capture_refuses_to_allocate(source, cp):
    with pytest.raises(RuntimeError, match="allocate them before"):
        gpu.capture(lambda: cp.zeros(1 << 20))
    x = cp.zeros(10, np.int32)  # the stream is usable afterwards
    k = source.kernels(I=np.int32)
    gpu.capture(lambda: k.add(10, (10, x, 3))).launch()
    assert x.tolist() == [3] * 10


@pytest.mark.gpu
def test_flag_of_several_words(cp):
    flag = gpu.Flag(3, np.int64)
    flag.device_words[1] = 7
    flag.fetch()
    assert flag.read().tolist() == [0, 7, 0]
    flag.clear()
    flag.fetch()
    assert flag.read().tolist() == [0, 0, 0]


@pytest.mark.gpu
def test_status_keeps_the_smallest_failure(source, cp):
    k = source.kernels(I=np.int32)
    x = cp.ones(100_000, np.int32)
    status = gpu.Status()
    k.refuse(x.size, (x.size, x, status))
    status.check()
    x[70_000], x[300], x[5] = -1, -1, -2
    k.refuse(x.size, (x.size, x, status))
    assert status.read() == (1, 300)
    with pytest.raises(ValueError, match="at 300"):
        status.check({1: lambda at: ValueError(f"at {at}")})
    with pytest.raises(RuntimeError, match="code 1, detail 300"):
        status.check()
    status.clear()
    status.check()


@pytest.mark.gpu
def test_grid_barrier(source, cp):
    k = source.kernels("count_rounds")
    words, count = cp.zeros(2, np.uint32), cp.zeros(1, np.uint32)
    wrong = cp.zeros(1, np.int32)
    blocks = k.count_rounds.resident()
    assert blocks >= gpu.multiprocessors()
    for times in (1, 2):  # the words are fit for the next launch
        count.fill(0)
        k.count_rounds(1 << 30, (300, words, count, wrong), cooperative=True)
        assert int(count[0]) == 300 * blocks, times
    assert int(wrong[0]) == 0


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [32, 96, 256, 1024])
def test_block_sums(source, cp, threads):
    x = np.random.default_rng(threads).integers(-100, 100, threads).astype(np.int32)
    before, total = cp.zeros(threads, np.int32), cp.zeros(threads, np.int32)
    least = cp.zeros(1, np.int32)
    k = source.kernels("sums")
    k.sums(None, (cp.asarray(x), before, total, least), block=threads, grid=1)
    assert before.get().tolist() == (np.cumsum(x) - x).tolist()
    assert total.get().tolist() == [x.sum()] * threads
    assert int(least[0]) == x.min()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_extremes_under_contention(source, cp, dtype):
    x = (np.random.default_rng(3).normal(size=50_000) * 1e6).astype(dtype)
    low, high = cp.zeros(1, dtype), cp.zeros(1, dtype)
    k = source.kernels("extremes", T=dtype)
    k.extremes(x.size, (x.size, cp.asarray(x), low, high))
    assert (low.get()[0], high.get()[0]) == (min(x.min(), 0), max(x.max(), 0))


@pytest.mark.gpu
def test_workspace(cp):
    space = gpu.workspace("test", bits=((3, 5), np.uint32), queue=(7, np.int64), none=(0, np.int8))
    assert (space.bits.shape, space.bits.dtype) == ((3, 5), np.uint32)
    assert (space.queue.shape, space.queue.dtype) == ((7,), np.int64)
    assert space.none.size == 0
    space.bits.fill(1)
    space.queue.fill(2)
    assert int(space.bits.sum()) == 15


@pytest.mark.gpu
def test_out_of_memory_names_bytes(cp):
    free = gpu.free_bytes()
    needed = free + (1 << 40)
    for ask in (
        lambda: gpu.reserve(needed, "sorting"),
        lambda: gpu.empty(needed, np.uint8, "sorting"),
        lambda: gpu.workspace("sorting", much=(needed, np.uint8)),
    ):
        with pytest.raises(OutOfMemory, match=f"sorting needs {needed:,} bytes.* are free"):
            ask()
    with pytest.raises(OutOfMemory, match="sorting: "), gpu.guard("sorting"):
        cp.empty(needed, np.uint8)
    gpu.reserve(1 << 20, "little")


@pytest.mark.gpu
def test_the_pools_limit_is_obeyed(cp):
    pool = cp.get_default_memory_pool()
    before = pool.get_limit()
    try:
        pool.set_limit(size=pool.total_bytes() + (64 << 20))
        with pytest.raises(OutOfMemory):
            gpu.reserve(gpu.free_bytes() + 1, "more")
    finally:
        pool.set_limit(size=before)


@pytest.mark.gpu
def test_scattered_free_blocks_are_given_back(cp):
    """Memory that the pool holds in pieces too small is returned and asked for again."""
    pool = cp.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.get_limit()
    try:
        pieces = [cp.empty(16 << 20, np.uint8) for _ in range(4)]
        pool.set_limit(size=pool.total_bytes() + (1 << 20))
        del pieces
        assert gpu.empty(60 << 20, np.uint8, "one piece").size == 60 << 20
    finally:
        pool.set_limit(size=before)
