// Many rounds in one launch, with whatever blocks are resident: a roll call, then a barrier.
//
// A barrier over a grid needs every block to be running.  Here the blocks that have started sign
// in; when all have, or none has for ROLL_CYCLES, the roll is closed, and a block that starts later
// leaves at once.  Only blocks that signed in (members) are waited for, and they run until they leave
// together, so there is no deadlock, whatever else the device is doing: other searches on other
// streams, or clusters that do not all fit.  Work must be shared by `rank` and `members`, not by
// blockIdx and gridDim.
//
// A meeting is a barrier of all members.  It also gives all of them the sum of what the threads `add` since
// the meeting before.  The sum is in the word that counts arrivals, so it costs no memory access.  There is
// also a second sum, in a word of its own; `meet` reads it only where it is wanted.
//
// Caller: kernel CLUSTERED; the grid a multiple of CLUSTER; ROLL_WORDS words that are 0 at launch.
#pragma once
#include "matchwood/atomics.cuh"

// Clusters: blocks that run side by side and reach each other's shared memory (sm_90 and later).
//
// A kernel marked CLUSTERED is launched in clusters of CLUSTER blocks; its grid must be a multiple
// of that.  On older devices a cluster is one block, and the same code runs.

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

// The roll call

constexpr int ROLL_WORDS = 8;              // signed in, members, and two for each of three meetings
constexpr long long ROLL_CYCLES = 8000;    // clock cycles, 4 us; blocks of one grid start closer together
constexpr int ADDED_BITS = 40;             // low bits of a meeting's word: the sum; above: arrivals
constexpr unsigned long long CLOSED = 1ull << 63;  // in words[0]: no block may sign in any more

// Orders this thread's accesses, and those of its block before the last __syncthreads, for others
// that fence as well.  Cheaper than __threadfence, which is sequentially consistent.
__device__ __forceinline__ void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

struct RollCall {
    unsigned long long* words;
    int rank, members;
    int turn;  // 0, 1, 2 and so on: whose words the next meeting uses

    // Thread 0 of the first block that signs in: close the roll; how many blocks have signed in.
    __device__ unsigned long long close() const
    {
        unsigned long long seen = 0;
        long long since = clock64();
        while (seen < gridDim.x && clock64() - since < ROLL_CYCLES) {
            unsigned long long now = load_relaxed(&words[0]);
            if (now != seen) since = clock64();
            seen = now;
        }
        return atomicOr(&words[0], CLOSED);
    }

    // False: too late, leave.  All threads of the cluster call.
    __device__ bool sign_in(unsigned long long* control)
    {
        __shared__ unsigned int seat, seats;
        words = control;
        turn = 0;
        cluster_barrier();  // all blocks of the cluster have started
        if (cluster_rank() == 0 && threadIdx.x == 0) {
            unsigned long long ticket = atomicAdd(&words[0], (unsigned long long)CLUSTER);
            unsigned long long here = 0;
            if (ticket == 0) {
                here = close();
                atomicExch(&words[1], here);
            } else if (ticket < CLOSED) {
                while (here == 0) here = load_relaxed(&words[1]);
            }
            for (int block = 0; block < CLUSTER; ++block) {
                store_at(&seat, block, (unsigned int)ticket);
                store_at(&seats, block, (unsigned int)here);
            }
        }
        cluster_barrier();
        rank = (int)seat + cluster_rank();
        members = (int)seats;
        return members > 0;
    }

    __device__ unsigned long long* word() const { return &words[2 + turn]; }

    // Add to the sum of the next meeting; returns the sum before.
    __device__ unsigned long long add(unsigned long long count) const
    {
        return atomicAdd(word(), count) & ((1ull << ADDED_BITS) - 1);
    }

    // The second sum of the next meeting, to add to.
    __device__ unsigned long long* second_sum() const { return &words[5 + turn]; }

    // Wait for all members; what any thread wrote before is visible to all of them afterwards.
    // Returns the sum since the last meeting, and the second sum if it is wanted.  All threads
    // call.  Idle members wait with `idle` set, so that they do not disturb those who work.
    __device__ unsigned long long meet(unsigned long long* wanted = nullptr, bool idle = false)
    {
        __shared__ unsigned long long sums[2];
        __syncthreads();
        if (threadIdx.x == 0) {
            fence_device();
            atomicAdd(word(), 1ull << ADDED_BITS);
            unsigned long long seen = load_relaxed(word());
            while ((int)(seen >> ADDED_BITS) != members) {
                if (idle) __nanosleep(200);
                seen = load_relaxed(word());
            }
            fence_device();
            sums[0] = seen & ((1ull << ADDED_BITS) - 1);
            if (wanted != nullptr) sums[1] = load_relaxed(second_sum());
            // All have entered this meeting, so all have left the one before: its words are free.
            // They are used again after the next meeting, before which these stores are done.
            if (rank == 0) {
                store_relaxed(&words[2 + (turn + 2) % 3], 0ull);
                store_relaxed(&words[5 + (turn + 2) % 3], 0ull);
            }
        }
        turn = (turn + 1) % 3;
        __syncthreads();
        if (wanted != nullptr) *wanted = sums[1];
        return sums[0];
    }
};
