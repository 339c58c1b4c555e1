// Locally dominant matching on the GPU.  Host side: gpu.py.  The rule and the papers:
// matching/weighted.py.
//
//   match_rounds   one cooperative launch, a round in three steps with barriers between them:
//     point        the vertices of the queue (all in the first round) find their first edge
//     match_mutual        two that point at each other become mates, and are listed
//     requeue         the neighbours that point at one of them are the next queue
// then matching/gpu.cu: pointers that are left become -1; the weight.
//
// The last step scans the rows of the newly matched vertices, each row once in the whole run.  (The CPU
// keeps lists of waiting vertices instead; the list of a hub would be walked by one thread here.)  One
// block alone works on a small queue, without barriers over the grid.
//
// mate[u]: the mate, or ~v where u is free and points at v; ~u means that it points at no vertex.  So a
// vertex is free when its word is negative, and three arrays of n are all that is needed.
//
// Giants are vertices with very long rows.  They are listed, and get a block each after the others.
//
// Races.  In `point` only one group of lanes writes mate[u], and others read its sign alone, which does
// not change.  In `match_mutual` one of the two ends changes the smaller end's word by compare-and-swap, and
// then does the rest.  Other threads that read these words compare them with ~(their own vertex), which
// is negative, and no thread writes a negative word there.  `requeue` reads mate only.  The queue's order is
// arbitrary and nothing depends on it; a vertex points at one other, so it is queued at most once.
#include "matchwood/edges.cuh"
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/grid_barrier.cuh"

constexpr int BLOCK = 512;  // threads of a block
// Measured on an H200: between 512 and 2048 the times differ by less than they vary.
constexpr int GIANT_ROW = 1024;   // entries
constexpr int AHEAD = 4;      // entries that a lane loads at once in `requeue`
constexpr int ONE_BLOCK_QUEUE = 1024;   // vertices in the queue; one block works on as many or fewer

// Words of `control`.
constexpr int SIZE = 0;      // of the queue
constexpr int MATCHED = 1;   // vertices listed as matched
constexpr int TO_POINT = 2;  // giants listed by `point` ...
constexpr int TO_REQUEUE = 3;   // ... and by `requeue`
constexpr int HEAD = 4;      // where the list of the newly matched begins
constexpr int ROUNDS = 5;    // rounds that matched a vertex
constexpr int LEFT = 6;      // rounds until this launch ends
constexpr int STARTED = 7;   // 1 when the queue is written; before, it stands for all vertices
[[maybe_unused]] constexpr int CONTROL_WORDS = 8;

using Wide = unsigned long long;

template <typename I, typename B>
struct Free {
    const I* mate;
    __device__ __forceinline__ B held(I v) const { return load_relaxed(&mate[v]) < 0 ? B(0) : ~B(0); }
    __device__ __forceinline__ bool takes(I, I, B) const { return false; }
};

template <typename I, typename W, int WIDTH>
struct Matcher {
    I n;
    Rows<I, W> rows;
    I *mate, *queue, *matched, *giants;
    Wide* control;
    GridBarrier barrier;
    bool alone;  // this block is the only one at work

    __device__ __forceinline__ Wide first_thread() const { return alone ? threadIdx.x : global_thread(); }
    __device__ __forceinline__ Wide threads() const { return alone ? blockDim.x : all_threads(); }
    __device__ __forceinline__ bool leader() const { return blockIdx.x == 0 && threadIdx.x == 0; }

    __device__ __forceinline__ void wait() const
    {
        if (!alone) return barrier.wait();
        fence();
        __syncthreads();
    }

    __device__ __forceinline__ void set_pointer(I u, Edge<I, WeightBits<W>> best) const
    {
        store_relaxed(&mate[u], (I)~best.v);
    }

    __device__ void point(Wide size, bool all) const
    {
        Free<I, WeightBits<W>> free{mate};
        Wide groups = threads() / WIDTH, first = first_thread() / WIDTH;
        Wide warp_first = first_thread() / WARP * (WARP / WIDTH);
        for (Wide step = 0; warp_first + step < size; step += groups) {  // the same for a whole warp
            Wide k = first + step;
            bool mine = k < size;
            I u = mine ? (all ? (I)k : load_relaxed(&queue[k])) : I(0);
            I begin = mine ? rows.indptr[u] : I(0), end = mine ? rows.indptr[u + 1] : I(0);
            bool giant = end - begin > GIANT_ROW;
            append(giants, &control[TO_POINT], u, giant && lane() % WIDTH == 0);
            if (giant) end = begin;
            Edge<I, WeightBits<W>> best = first_by_lanes<WIDTH>(rows, u, begin, end, free);
            if (mine && !giant && lane() % WIDTH == 0) set_pointer(u, best);
        }
    }

    __device__ void point_giants(Wide count) const
    {
        Free<I, WeightBits<W>> free{mate};
        for (Wide k = alone ? 0 : blockIdx.x; k < count; k += alone ? 1 : gridDim.x) {
            I u = load_relaxed(&giants[k]);
            Edge<I, WeightBits<W>> best = first_by_block(rows, u, free);
            if (threadIdx.x == 0) set_pointer(u, best);
        }
    }

    __device__ void match_mutual(Wide size, bool all) const
    {
        Wide first = first_thread();
        for (Wide base = first - lane(); base < size; base += threads()) {
            Wide k = base + lane();
            bool first_to_match = false;
            I u = 0, v = 0;
            if (k < size) {
                u = all ? (I)k : load_relaxed(&queue[k]);
                v = (I)~load_relaxed(&mate[u]);
                if (v >= 0 && v != u && load_relaxed(&mate[v]) == (I)~u) {
                    I low = u < v ? u : v, high = u < v ? v : u;
                    first_to_match = compare_and_swap(&mate[low], (I)~high, high) == (I)~high;
                    if (first_to_match) store_relaxed(&mate[high], low);
                }
            }
            append(matched, &control[MATCHED], u, first_to_match);
            append(matched, &control[MATCHED], v, first_to_match);
        }
    }

    // Append the neighbours of the matched x that point at it to the queue.  entry[a]: -1 for none.
    // All lanes of the warp call.
    template <typename Entry>
    __device__ __forceinline__ void append_pointing(const Entry (&entry)[AHEAD], const I (&x)[AHEAD]) const
    {
        I y[AHEAD];
        bool points[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) y[a] = entry[a] >= 0 ? rows.indices[entry[a]] : I(0);
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) points[a] = entry[a] >= 0 && load_relaxed(&mate[y[a]]) == (I)~x[a];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) append(queue, &control[SIZE], y[a], points[a]);
    }

    __device__ void requeue(Wide head, Wide tail) const
    {
        for (Wide base = head + (first_thread() - lane()); base < tail; base += threads()) {
            Wide k = base + lane();
            bool mine = k < tail;
            I v = mine ? load_relaxed(&matched[k]) : I(0);
            I begin = mine ? rows.indptr[v] : I(0), end = mine ? rows.indptr[v + 1] : I(0);
            bool giant = end - begin > GIANT_ROW;
            append(giants, &control[TO_REQUEUE], v, giant);
            if (giant) end = begin;
            auto here = [](I at) { return at; };
            WarpRows<I>(begin, end).template for_batches<AHEAD>(here, [&](const auto& owner, const auto& entry) {
                I x[AHEAD];
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) x[a] = __shfl_sync(ALL, v, owner[a]);
                append_pointing(entry, x);
            });
        }
    }

    __device__ void requeue_giants(Wide count) const
    {
        for (Wide k = alone ? 0 : blockIdx.x; k < count; k += alone ? 1 : gridDim.x) {
            I matched_one = load_relaxed(&giants[k]);
            long long end = rows.indptr[matched_one + 1];
            for (long long base = (long long)rows.indptr[matched_one] + warp() * WARP; base < end;
                 base += AHEAD * blockDim.x) {
                long long entry[AHEAD];
                I x[AHEAD];
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
                    long long at = base + a * (long long)blockDim.x + lane();
                    entry[a] = at < end ? at : -1;
                    x[a] = matched_one;
                }
                append_pointing(entry, x);
            }
        }
    }

    // One round; returns the size of the next queue.  The leader sets counters to 0 after all threads
    // have read them and before the barrier that precedes their next use.
    __device__ Wide round(Wide size, bool all, Wide& head, Wide& rounds) const
    {
        if (leader()) store_relaxed(&control[TO_REQUEUE], Wide(0));
        point(size, all);
        wait();
        Wide giants_listed = load_relaxed(&control[TO_POINT]);
        if (giants_listed > 0) {
            point_giants(giants_listed);
            wait();
        }
        if (leader()) {
            if (giants_listed > 0) store_relaxed(&control[TO_POINT], Wide(0));
            store_relaxed(&control[SIZE], Wide(0));
        }
        match_mutual(size, all);
        wait();
        Wide tail = load_relaxed(&control[MATCHED]);
        requeue(head, tail);
        wait();
        giants_listed = load_relaxed(&control[TO_REQUEUE]);
        if (giants_listed > 0) {
            requeue_giants(giants_listed);
            wait();
        }
        rounds += tail > head;
        head = tail;
        return load_relaxed(&control[SIZE]);
    }
};

// Cooperative.  Caller: mate[u] = ~u for all, control 0 but for SIZE = n and LEFT; barrier words 0.
// Ends when the queue is empty or LEFT rounds are over; may be launched again.
template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK, 2)
    match_rounds(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                 I* mate, I* queue, I* matched, I* giants, unsigned long long* control, unsigned int* words)
{
    Rows<I, W> rows{indptr, indices, reinterpret_cast<const WeightBits<W>*>(data), {seed, by_hash}};
    Matcher<I, W, WIDTH> matcher{n, rows, mate, queue, matched, giants, control, GridBarrier(words), false};
    Wide size = load_relaxed(&control[SIZE]), head = load_relaxed(&control[HEAD]);
    Wide rounds = load_relaxed(&control[ROUNDS]), left = load_relaxed(&control[LEFT]);
    bool all = load_relaxed(&control[STARTED]) == 0;
    matcher.barrier.wait();  // all threads have read the control words
    while (size > 0 && left > 0) {
        matcher.alone = size <= ONE_BLOCK_QUEUE;
        if (!matcher.alone) {
            size = matcher.round(size, all, head, rounds);
            all = false;
            --left;
        } else {
            if (blockIdx.x == 0) {
                for (; size > 0 && size <= ONE_BLOCK_QUEUE && left > 0; --left) {
                    size = matcher.round(size, all, head, rounds);
                    all = false;
                }
                __syncthreads();
            }
        }
        if (matcher.leader()) {
            store_relaxed(&control[HEAD], head);
            store_relaxed(&control[ROUNDS], rounds);
            store_relaxed(&control[LEFT], left);
            store_relaxed(&control[STARTED], Wide(1));
        }
        if (matcher.alone) {
            matcher.barrier.wait();
            size = load_relaxed(&control[SIZE]);
            head = load_relaxed(&control[HEAD]);
            rounds = load_relaxed(&control[ROUNDS]);
            left = load_relaxed(&control[LEFT]);
            all = false;
            matcher.barrier.wait();
        }
    }
}

template <typename I>
__global__ void point_at_nobody(I n, I* mate)
{
    long long v = global_thread();
    if (v < n) mate[v] = (I)~v;
}
