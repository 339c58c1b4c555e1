// Blocks that run side by side and reach each other's shared memory (sm_90 and later).
//
// A kernel marked CLUSTERED is launched in clusters of CLUSTER blocks; its grid must be a multiple
// of that.  On older devices a cluster is one block, and the same code runs.
#pragma once

constexpr int MOST_CLUSTER = 8;  // blocks: the most that every device with clusters grants

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr int CLUSTER = MOST_CLUSTER;
#define CLUSTERED __cluster_dims__(8, 1, 1)

__device__ __forceinline__ int cluster_rank()
{
    unsigned int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}

// What any thread of the cluster wrote before is visible to all of them afterwards.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile(
        "barrier.cluster.arrive.release;\n\t"
        "barrier.cluster.wait.acquire;" ::: "memory");
}

// The address, in the cluster's window, of what lies at p in the shared memory of another block.
__device__ __forceinline__ unsigned int address_at(const void* p, int rank)
{
    unsigned int there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"((unsigned int)__cvta_generic_to_shared(p)), "r"(rank));
    return there;
}

__device__ __forceinline__ void store_at(unsigned int* p, int rank, unsigned int x)
{
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address_at(p, rank)), "r"(x) : "memory");
}

__device__ __forceinline__ unsigned long long load_at(const unsigned long long* p, int rank)
{
    unsigned long long x;
    asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(x) : "r"(address_at(p, rank)) : "memory");
    return x;
}
#else
constexpr int CLUSTER = 1;
#define CLUSTERED

__device__ __forceinline__ int cluster_rank() { return 0; }
__device__ __forceinline__ void cluster_barrier() { __syncthreads(); }
__device__ __forceinline__ void store_at(unsigned int* p, int, unsigned int x) { *p = x; }
__device__ __forceinline__ unsigned long long load_at(const unsigned long long* p, int) { return *p; }
#endif
