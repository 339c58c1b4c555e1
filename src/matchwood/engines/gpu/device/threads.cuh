// The numbers of this thread, and what a warp or a block does together.  Blocks are one-dimensional throughout, and
// their size is a multiple of WARP.
#pragma once

constexpr int WARP = 32;
constexpr unsigned ALL = 0xffffffffu;

// Numbers of threads and items are 64 bits wide: a grid over the entries of a matrix passes 2^32.
__device__ __forceinline__ long long global_thread()
{
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ long long all_threads() { return (long long)gridDim.x * blockDim.x; }
__device__ __forceinline__ int lane() { return threadIdx.x & (WARP - 1); }
__device__ __forceinline__ int warp() { return threadIdx.x / WARP; }
__device__ __forceinline__ unsigned lanes_below() { return (1u << lane()) - 1; }

// Reduce over groups of WIDTH neighbouring lanes (a power of two up to WARP); every lane of a
// group gets the result.  `op` must be associative and commutative: all lanes of the warp call.
template <int WIDTH = WARP, typename T, typename Op>
__device__ __forceinline__ T warp_reduce(T value, Op op)
{
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) value = op(value, __shfl_xor_sync(ALL, value, step));
    return value;
}

struct Plus {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};

struct Least {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const { return b < a ? b : a; }
};

struct Most {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; }
};

// Sum over the lanes before this one.  All lanes of the warp call.
template <typename T>
__device__ __forceinline__ T warp_exclusive_sum(T value)
{
    T sum = value;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        T below = __shfl_up_sync(ALL, sum, step);
        if (lane() >= step) sum += below;
    }
    return sum - value;
}

// Reduce over the block; the result is right in thread 0 only.  `first` is the neutral element.
// All threads of the block call; it waits for them twice.
template <typename T, typename Op>
__device__ __forceinline__ T block_reduce(T value, T first, Op op)
{
    __shared__ T parts[WARP];
    value = warp_reduce(value, op);
    if (lane() == 0) parts[warp()] = value;
    __syncthreads();
    if (warp() == 0) {
        value = lane() < (int)(blockDim.x / WARP) ? parts[lane()] : first;
        value = warp_reduce(value, op);
    }
    __syncthreads();
    return value;
}

// Sum over the threads of the block before this one; *total gets the sum over all, in every
// thread.  All threads of the block call.
template <typename T>
__device__ __forceinline__ T block_exclusive_sum(T value, T* total)
{
    __shared__ T starts[WARP + 1];
    T before = warp_exclusive_sum(value);
    if (lane() == WARP - 1) starts[warp()] = before + value;
    __syncthreads();
    if (warp() == 0) {
        int warps = blockDim.x / WARP;
        T part = lane() < warps ? starts[lane()] : T(0);
        T start = warp_exclusive_sum(part);
        __syncwarp();
        starts[lane()] = start;
        if (lane() == WARP - 1) starts[WARP] = start + part;
    }
    __syncthreads();
    T sum = starts[warp()] + before;
    *total = starts[WARP];
    __syncthreads();
    return sum;
}
