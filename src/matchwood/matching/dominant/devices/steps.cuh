// What a vertex does in a round: it points, is matched, waits.  Kernels: gpu.cu, which also says why no step needs a lock;
// lists: packing.cuh; encodings: cpu_steps.py.
#pragma once
#include "matchwood/frontier.cuh"
#include "matchwood/packing.cuh"
#include "matchwood/threads.cuh"

constexpr int LONGEST_WALK = 256;  // waiting vertices that a thread appends alone; for more, all threads look at all

// Words of `control`.
constexpr int POINTED = 0;  // vertices at the front of `pointed`
constexpr int WANTED = 1;   // ... and at its back
constexpr int QUEUED = 2;   // vertices in `queue`
constexpr int MATCHED = 3;  // edges matched in this round
constexpr int TOO_LONG = 4; // a list of waiting vertices was not walked to its end
constexpr int ROUNDS = 5;   // rounds of settle_rounds that matched a vertex
constexpr int ALL_POINTED = 6;  // vertices that pointed in its rounds
constexpr int LEFT = 7;     // rounds until its launch ends
constexpr int FETCHED = 8;  // entries of rows that were read again
constexpr int LISTED = 9;   // vertices that list_wanted has listed
constexpr int CHAINED = 10; // waiting vertices are in linked lists; settle_rounds makes them when few vertices point
constexpr int ROWS_READ = 11;   // rows that settle_rounds has read again
constexpr int SETTLED = 12; // vertices were matched while the rows passed
[[maybe_unused]] constexpr int CONTROL_WORDS = 13;

using Wide = unsigned long long;

template <typename T>
__device__ __forceinline__ T exchange(T* p, T x)
{
    using Bits = typename WordOf<sizeof(T)>::type;
    return bits_as<T>(atomicExch(reinterpret_cast<Bits*>(p), bits_as<Bits>(x)));
}

// Append v where `wanted`; the lanes that are here share one atomic.  Lanes may be missing.
template <typename I>
__device__ __forceinline__ void append_alone(I* queue, Wide* size, I v)
{
    unsigned here = __activemask();
    int leader = __ffs(here) - 1;
    Wide start = 0;
    if (lane() == leader) start = take(size, Wide(__popc(here)));
    start = __shfl_sync(here, start, leader);
    queue[start + __popc(here & lanes_below())] = v;
}

// Whether the row of u must travel.
template <typename I>
__device__ __forceinline__ bool has_run_out(I u, long long lo, const I* state, const unsigned char* size, const unsigned char* head)
{
    if (load_relaxed(&state[u]) != (I)~u) return false;
    int word = size[u - lo];
    return (word & INCOMPLETE) != 0 && head[u - lo] == (word & LENGTH_BITS);
}

// The steps of a partition whose vertices are lo to hi - 1.  The threads of the grid share the work.
template <typename I, typename P>
struct Part {
    I n, lo, hi;
    I *state, *waiting, *following;
    const P* start;
    const unsigned char* size;
    unsigned char* head;
    const I* columns;  // of the lists
    I *queue, *pointed;
    Wide* control;

    // The place in u's list of its next free edge; the length of the list where there is none.
    __device__ __forceinline__ int next_free(long long at, P from, int length) const
    {
        int place = head[at];
        while (place < length && load_relaxed(&state[columns[from + place]]) >= 0) ++place;
        return place;
    }

    // u points at the next free one of its list.  Where there is none, and its row has more: `wants`.
    __device__ __forceinline__ void advance(I u, bool chained, bool& points, bool& wants) const
    {
        long long at = u - lo;
        P from = start[at];
        int word = size[at], length = word & LENGTH_BITS, place = next_free(at, from, length);
        head[at] = (unsigned char)place;
        points = place < length;
        wants = !points && (word & INCOMPLETE) != 0;
        I v = points ? columns[from + place] : u;
        store_relaxed(&state[u], (I)~v);
        if (points && chained) following[at] = exchange(&waiting[v], u);
    }

    // The rows of those that want it must travel: they are listed at the back of `pointed`.  All lanes of the warp call.
    __device__ __forceinline__ void list_at_back(I u, bool wants) const
    {
        unsigned votes = __ballot_sync(ALL, wants);
        if (votes == 0) return;
        Wide begin = 0;
        if (lane() == __ffs(votes) - 1) begin = take(&control[WANTED], Wide(__popc(votes)));
        begin = __shfl_sync(ALL, begin, __ffs(votes) - 1);
        if (wants) pointed[(Wide)(hi - lo) - 1 - begin - __popc(votes & lanes_below())] = u;
    }

    // `source` null: all vertices of the partition.  chained: they wait in linked lists.
    __device__ void point(const I* source, Wide count, bool chained) const
    {
        for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {
            Wide k = first + lane();
            bool points = false, wants = false;
            I u = 0;
            if (k < count) {
                u = source != nullptr ? load_relaxed(&source[k]) : (I)(lo + (I)k);
                advance(u, chained, points, wants);
            }
            append(pointed, &control[POINTED], u, points);
            list_at_back(u, wants);
        }
    }

    // u is free and points at a vertex that is not.
    __device__ __forceinline__ bool is_invalid(I u) const
    {
        I v = (I)~load_relaxed(&state[u]);
        return v >= 0 && v != u && load_relaxed(&state[v]) >= 0;
    }

    // Link all vertices that point at another one.  Caller: none is linked yet.
    __device__ void chain_all() const
    {
        for (Wide k = global_thread(); k < (Wide)(hi - lo); k += all_threads()) {
            I u = (I)(lo + (I)k), v = (I)~load_relaxed(&state[u]);
            if (v >= 0 && v != u) following[k] = exchange(&waiting[v], u);
        }
    }

    // The vertices whose rows must travel to the front of the queue, nearly in order.
    __device__ void list_wanted() const
    {
        Wide count = hi - lo;
        for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {
            Wide k = first + lane();
            bool wanted = k < count && has_run_out((I)(lo + (I)k), lo, state, size, head);
            append(queue, &control[LISTED], (I)(lo + (I)k), wanted);
        }
    }

    // Append the vertices that wait for x to the queue.
    __device__ __forceinline__ void requeue(I x) const
    {
        int steps = 0;
        for (I y = load_relaxed(&waiting[x]); y >= 0; y = load_relaxed(&following[y - lo])) {
            if (load_relaxed(&state[y]) == (I)~x) append_alone(queue, &control[QUEUED], y);
            if (++steps > LONGEST_WALK) {
                store_relaxed(&control[TOO_LONG], Wide(1));
                return;
            }
        }
    }

    // `source` null: `count` vertices from `first` on.  `step`: words from one vertex to the next.
    __device__ void settle(const I* source, I first, Wide count, int step, bool walk) const
    {
        for (Wide k = global_thread(); k < count; k += all_threads()) {
            I u = source != nullptr ? load_relaxed(&source[k * step]) : (I)(first + (I)k);
            I v = (I)~load_relaxed(&state[u]);
            if (v < 0 || v == u || load_relaxed(&state[v]) != (I)~u) continue;
            I low = u < v ? u : v, high = u < v ? v : u;
            if (compare_and_swap(&state[low], (I)~high, high) != (I)~high) continue;
            store_relaxed(&state[high], low);
            append_count(&control[MATCHED]);
            if (!walk) continue;
            requeue(low);
            requeue(high);
        }
    }

    __device__ __forceinline__ void append_count(Wide* counter) const
    {
        unsigned here = __activemask();
        if (lane() == __ffs(here) - 1) take(counter, Wide(__popc(here)));
    }

    __device__ void requeue_all() const
    {
        Wide count = hi - lo;
        for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {
            Wide k = first + lane();
            I u = (I)(lo + (I)(k < count ? k : 0));
            append(queue, &control[QUEUED], u, k < count && is_invalid(u));
        }
    }
};
