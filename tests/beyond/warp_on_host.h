// A GPU of one warp, on the host: its 32 threads are contexts that take turns from barrier to barrier.
// Blocks have one warp each and run one after the other.
// swapcontext asks the system for the signals that are let through, at each turn; so only the first turn
// of a thread is one, and the others are jumps.  The library's check of jumps knows of one stack alone.
#undef _FORTIFY_SOURCE
#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <ucontext.h>
#include <vector>

struct Place {
    unsigned x;
};
static Place threadIdx, blockIdx, blockDim, gridDim;

#define __device__
#define __global__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

constexpr int LANES = 32, STACK = 1 << 17;
static ucontext_t scheduler, contexts[LANES];
static jmp_buf to_scheduler, to_lane[LANES];
static bool entered[LANES], finished[LANES];
static std::vector<char> stacks(size_t(LANES) * STACK);
static void (*body)(void*);
static void* argument;
static unsigned long long exchanged[LANES];
static bool backwards = false;  // the last block and the last thread first
extern "C" void set_order(int last_first) { backwards = last_first; }

static void barrier()
{
    if (_setjmp(to_lane[threadIdx.x]) == 0) _longjmp(to_scheduler, 1);
}
static void take_turn(int lane)
{
    if (_setjmp(to_scheduler) != 0) return;
    if (entered[lane]) _longjmp(to_lane[lane], 1);
    entered[lane] = true;
    swapcontext(&scheduler, &contexts[lane]);
}
static void __syncthreads() { barrier(); }
static void __syncwarp() { barrier(); }
static void __threadfence() {}
static void __nanosleep(unsigned) {}
static long long clock64() { return 0; }
static unsigned __activemask() { return 1u << threadIdx.x; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned left)
{
    return (unsigned)(((unsigned long long)high << 32 | low) << (left & 31) >> 32);
}
static int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
using std::max, std::min;

// A lane that calls for itself alone waits for nobody.
template <typename T>
static T __shfl_sync(unsigned mask, T value, int from)
{
    unsigned me = threadIdx.x;
    if (mask == 1u << me) return value;
    unsigned long long word = 0;
    memcpy(&word, &value, sizeof(T));
    exchanged[me] = word;
    barrier();
    word = exchanged[from & 31];
    barrier();
    memcpy(&value, &word, sizeof(T));
    return value;
}
template <typename T>
static T __shfl_xor_sync(unsigned mask, T value, int step)
{
    return __shfl_sync(mask, value, (int)threadIdx.x ^ step);
}
template <typename T>
static T __shfl_up_sync(unsigned mask, T value, int step)
{
    int me = (int)threadIdx.x;
    return __shfl_sync(mask, value, me < step ? me : me - step);
}
static unsigned __ballot_sync(unsigned mask, bool vote)
{
    unsigned me = threadIdx.x;
    if (mask == 1u << me) return vote ? mask : 0;
    exchanged[me] = vote;
    barrier();
    unsigned votes = 0;
    for (int k = 0; k < LANES; ++k) votes |= (unsigned)(exchanged[k] != 0) << k;
    barrier();
    return votes;
}

template <typename T>
static unsigned __match_any_sync(unsigned mask, T value)
{
    unsigned me = threadIdx.x;
    if (mask == 1u << me) return mask;
    unsigned long long word = 0;
    memcpy(&word, &value, sizeof(T));
    exchanged[me] = word;
    barrier();
    unsigned same = 0;
    for (int k = 0; k < LANES; ++k) same |= (unsigned)(exchanged[k] == word) << k;
    barrier();
    return same;
}

static bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
static bool __all_sync(unsigned mask, bool vote) { return __ballot_sync(mask, !vote) == 0; }
static int __syncthreads_or(int vote) { return __any_sync(0xffffffffu, vote != 0); }

template <typename T>
static T atomicCAS(T* at, T expected, T desired)
{
    T before = *at;
    if (before == expected) *at = desired;
    return before;
}
template <typename T>
static T atomicExch(T* at, T value)
{
    T before = *at;
    *at = value;
    return before;
}
template <typename T>
static T atomicAdd(T* at, T value)
{
    T before = *at;
    *at += value;
    return before;
}
template <typename T>
static T atomicOr(T* at, T value)
{
    T before = *at;
    *at |= value;
    return before;
}
template <typename T>
static T atomicMin(T* at, T value)
{
    T before = *at;
    if (value < before) *at = value;
    return before;
}
template <typename T>
static T atomicMax(T* at, T value)
{
    T before = *at;
    if (before < value) *at = value;
    return before;
}
static long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, 8);
    return bits;
}
static double __longlong_as_double(long long bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
static unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }

static void enter()
{
    body(argument);
    finished[threadIdx.x] = true;
    _longjmp(to_scheduler, 1);
}

template <typename F>
static void launch(int blocks, F f)
{
    body = [](void* given) { (*(F*)given)(); };
    argument = &f;
    gridDim.x = blocks, blockDim.x = LANES;
    for (int block = 0; block < blocks; ++block) {
        blockIdx.x = backwards ? blocks - 1 - block : block;
        for (int t = 0; t < LANES; ++t) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = &stacks[size_t(t) * STACK];
            contexts[t].uc_stack.ss_size = STACK;
            makecontext(&contexts[t], enter, 0);
            entered[t] = finished[t] = false;
        }
        for (bool any = true; any;) {
            any = false;
            for (int k = 0; k < LANES; ++k) {
                int t = backwards ? LANES - 1 - k : k;
                if (finished[t]) continue;
                threadIdx.x = t;
                take_turn(t);
                any |= !finished[t];
            }
        }
    }
}
