// The kernels of gpu.cu and block/gpu.cu, compiled for the host: one thread after the other, from barrier
// to barrier.  SOURCE is the file to include, REAL the type of its numbers,
// BLOCK_SIZE 1 for plain rows, 2 for blocks.
#include <cmath>
#include <cstring>
#include <ucontext.h>
#include <vector>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

// As CuPy compiles kernels: subnormal float32 numbers are zeros.
struct Flushing {
#ifdef __SSE__
    unsigned before = _mm_getcsr();
    Flushing()
    {
        if (sizeof(REAL) == 4) _mm_setcsr(before | 0x8040);
    }
    ~Flushing() { _mm_setcsr(before); }
#endif
};

struct Place {
    unsigned x;
};
static Place threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

#define __device__
#define __global__ static
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

// Each thread of a block is a context of its own; a barrier goes on to the next.
constexpr int MOST = 256, STACK = 1 << 17;
static ucontext_t scheduler, contexts[MOST];
static bool finished[MOST];
static std::vector<char> stacks(size_t(MOST) * STACK);
static void (*body)(void*);
static void* argument;
static int exchanged[MOST];

static void barrier() { swapcontext(&contexts[threadIdx.x], &scheduler); }
static void __syncthreads() { barrier(); }
static void __syncwarp() { barrier(); }
static void enter()
{
    body(argument);
    finished[threadIdx.x] = true;
}

static bool backwards = false;  // the last block and the last thread first
extern "C" void order_(int last_first) { backwards = last_first; }

template <typename F>
static void launch(int blocks, int threads, F f)
{
    Flushing flushing;
    body = [](void* given) { (*(F*)given)(); };
    argument = &f;
    gridDim.x = blocks, blockDim.x = threads;
    for (int block = 0; block < blocks; ++block) {
        blockIdx.x = backwards ? blocks - 1 - block : block;
        for (int t = 0; t < threads; ++t) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = &stacks[size_t(t) * STACK];
            contexts[t].uc_stack.ss_size = STACK;
            contexts[t].uc_link = &scheduler;
            makecontext(&contexts[t], enter, 0);
            finished[t] = false;
        }
        for (bool any = true; any;) {
            any = false;
            for (int k = 0; k < threads; ++k) {
                int t = backwards ? threads - 1 - k : k;
                if (finished[t]) continue;
                threadIdx.x = t;
                swapcontext(&scheduler, &contexts[t]);
                any |= !finished[t];
            }
        }
    }
}

static int __shfl_xor_sync(unsigned, int value, int step)
{
    unsigned me = threadIdx.x;
    exchanged[me] = value;
    barrier();
    int other = exchanged[me ^ step];
    barrier();
    return other;
}
static int __shfl_up_sync(unsigned, int value, int) { return value; }
static unsigned long long atomicMin(unsigned long long* at, unsigned long long value)
{
    unsigned long long before = *at;
    if (value < before) *at = value;
    return before;
}
static unsigned atomicAdd(unsigned* at, unsigned value)
{
    unsigned before = *at;
    *at += value;
    return before;
}
static unsigned atomicOr(unsigned* at, unsigned value)
{
    unsigned before = *at;
    *at |= value;
    return before;
}
template <typename X>
static X __ldg(const X* at)
{
    return *at;
}
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __double2hiint(double x)
{
    long long bits;
    memcpy(&bits, &x, 8);
    return int(bits >> 32);
}
static double __hiloint2double(int high, int low)
{
    long long bits = (long long)high << 32 | (unsigned)low;
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

#include SOURCE

Chunk tile[1 << 16];  // shared memory
double triangles[1 << 16];

using T = REAL;
using Index = int;
extern "C" void reduce_rows_(int grid, int threads, long long n, T* dl, T* d, T* du, T* b, Index* perm, T* gathered,
                             T* elements, long long total, long long parts, unsigned long long* status)
{
    launch(grid, threads, [=] { reduce_rows<T, Index>(n, dl, d, du, b, perm, gathered, elements, total, parts, status); });
}
extern "C" void substitute_and_check_(int grid, int threads, long long n, T* dl, T* d, T* du, T* b, T* elements,
                                 long long total, long long parts, T* ends, Index* perm, T* x, T limit, int few,
                                 int usual, unsigned* marks, unsigned long long* status)
{
    launch(grid, threads, [=] {
        substitute_rows<T, Index, true>(n, dl, d, du, b, elements, total, parts, ends, perm, x, limit, few, usual, marks, status);
    });
}
extern "C" void join_(int grid, int threads, T* elements, long long total, long long start, long long size,
                      long long out, unsigned level, long long rows, long long n, unsigned long long* status)
{
    launch(grid, threads, [=] { join<BLOCK_SIZE, T>(elements, total, start, size, out, level, rows, n, status); });
}
extern "C" void top_(int grid, int threads, T* elements, long long total, long long start, long long size, T* ends,
                     unsigned level, long long rows, long long n, unsigned long long* status)
{
    launch(grid, threads, [=] { top<BLOCK_SIZE, T>(elements, total, start, size, ends, level, rows, n, status); });
}
extern "C" void expand_(int grid, int threads, T* elements, long long total, long long start, long long size,
                        T* outer, T* ends)
{
    launch(grid, threads, [=] { expand<BLOCK_SIZE, T>(elements, total, start, size, outer, ends); });
}
extern "C" void repair_(int grid, int threads, long long n, T* dl, T* d, T* du, T* b, T* x, unsigned* marks, long long parts,
                      int round, int rows, int size, int shift, int next_size, int next_shift, int each, int least,
                      int most, double limit, double far, unsigned long long* status)
{
    launch(grid, threads, [=] {
        repair<BLOCK_SIZE, T>(n, dl, d, du, b, x, marks, parts, round, rows, size, shift, next_size, next_shift, each,
                            least, most, limit, far, status);
    });
}
