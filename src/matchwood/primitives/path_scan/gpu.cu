// Path scans on the GPU.  Host: gpu.py; what they are: __init__.py; the same on the CPU: cpu.py.
//
// A link holds the direction too: link `side` of v is 2 w + (the side of w that leads on from v), or ~v where
// there is no neighbour.
//
// Doubling (Algorithm 3 of the paper): the state of a vertex, both sides, is one load of 16 bytes for
// values of 4.  Two copies take turns, with a barrier of the grid between rounds, in one launch.
//
// Splitters: one vertex in SPACING is a node; `walk_stretches` walks from each node to the next, `rank_nodes`
// doubles over nodes, `distribute` walks from nodes and ends again and writes.  A walk that reaches
// a vertex from the left writes its left side, so no two write the same word.  What a walk reads of
// a vertex lies in one sector, and so does what it writes.
//
// Both find cycles as what never reaches an end, and mark their smallest vertices in `cut`; the host
// cuts them there and runs again.  Several threads may mark the same vertex, with the same 1.
#include "matchwood/atomics.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

#ifndef MATCHWOOD_OWN
#define MATCHWOOD_OWN a
#endif

// The operation that the user wrote, an expression in a and b.
struct Own {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const
    {
        return T(MATCHWOOD_OWN);
    }
};

// Words that all blocks share: two of the barrier, three counts in turn, and
constexpr int BARRIER = 0, COUNT = 2;
constexpr int LEFT = 5;     // vertices that have not found an end: they lie on cycles
constexpr int LAST = 6;     // which of two arrays holds the last states
constexpr int ROUNDS = 7;   // rounds made
constexpr int NODES = 8, ENDS = 9;
constexpr int CYCLES = 10;  // whether there are any
[[maybe_unused]] constexpr int WORDS = 11;
constexpr unsigned BROKEN = 1;  // code of the failure: a link breaks a rule

// ---- links ----

// One thread per vertex.  Fails with BROKEN and the smallest slot that breaks a rule.
template <typename I>
__global__ void orient(int n, const I* __restrict__ table, int2* __restrict__ links, unsigned long long* status)
{
    long long v = global_thread();
    if (v >= n) return;
    I next[2] = {table[2 * v], table[2 * v + 1]};
    int link[2];
    for (int side = 0; side < 2; ++side) {
        I w = next[side];
        link[side] = ~(int)v;
        if (w == -1) continue;
        bool wrong = w < -1 || w >= n || w == v || next[0] == next[1];
        if (!wrong) {
            I one = table[2 * (long long)w], other = table[2 * (long long)w + 1];
            wrong = one != v && other != v;
            link[side] = 2 * (int)w + (one == v);
        }
        if (wrong) {
            fail(status, BROKEN, 2 * v + side);
            link[side] = ~(int)v;
        }
    }
    links[v] = make_int2(link[0], link[1]);
}

// One thread per vertex: the smallest of a cycle is cut from its larger neighbour.
__global__ void cut_links(int n, const unsigned char* __restrict__ cut, int* links)
{
    long long v = global_thread();
    if (v >= n || !cut[v]) return;
    int side = links[2 * v + 1] >> 1 > links[2 * v] >> 1;
    int there = links[2 * v + side];
    links[2 * v + side] = ~(int)v;
    links[there ^ 1] = ~(there >> 1);
}

// ---- doubling ----

// One side is one store, both are one load: 16 bytes for values of 4.
template <typename V>
struct alignas(2 * sizeof(V)) Side {
    int to;
    V value;
};

template <typename V>
struct alignas(16) State {
    Side<V> side[2];
};

// Ends when the number of sides without an end stops falling: the rest are cycles.  `until_still`:
// when no value on a cycle changes, for an idempotent operation: then every window covers its cycle.
// Cooperative launch; words 0 before.
template <typename V, typename Op>
__global__ void double_up(int n, const int2* __restrict__ links, const V* __restrict__ values, bool until_still,
                          State<V>* states, State<V>* spare, unsigned int* words)
{
    GridBarrier barrier(words + BARRIER);
    Op op;
    int first = (int)global_thread(), stride = (int)all_threads();
    for (int v = first; v < n; v += stride) {
        int2 link = links[v];
        V value = values[v];
        State<V> mine;
        mine.side[0].to = link.x;
        mine.side[1].to = link.y;
        mine.side[0].value = mine.side[1].value = value;
        states[v] = mine;
    }
    barrier.wait();
    unsigned int left = ~0u;
    for (unsigned int round = 0;; ++round) {
        unsigned int count = 0;
        for (int v = first; v < n; v += stride) {
            State<V> mine = states[v];
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                int to = mine.side[side].to;
                if (to < 0) continue;
                State<V> there = states[to >> 1];
                Side<V> on = to & 1 ? there.side[1] : there.side[0];
                V before = mine.side[side].value;
                mine.side[side].value = op(before, on.value);
                mine.side[side].to = on.to;
                count += on.to >= 0 && (!until_still || mine.side[side].value != before);
            }
            spare[v] = mine;
        }
        count = block_reduce(count, 0u, Plus());
        if (threadIdx.x == 0 && count) atomicAdd(&words[COUNT + round % 3], count);
        barrier.wait();
        State<V>* swap = states;
        states = spare;
        spare = swap;
        unsigned int now = load_relaxed(&words[COUNT + round % 3]);
        if (first == 0) store_relaxed(&words[COUNT + (round + 2) % 3], 0u);
        bool done = now == 0 || (now == left && !until_still);
        left = now;
        if (done) {
            if (first == 0) {
                words[LEFT] = left;
                words[LAST] = round & 1;  // 0: the last states are in `spare`
                words[ROUNDS] = round + 1;
            }
            return;
        }
    }
}

// One thread per vertex: the results.  Sides on a cycle get the end -1.
template <typename I, typename V>
__global__ void unpack(int n, const State<V>* __restrict__ states, const State<V>* __restrict__ spare,
                       const unsigned int* words, I* __restrict__ ends, V* __restrict__ reduced)
{
    long long v = global_thread();
    if (v >= n) return;
    State<V> mine = (words[LAST] ? states : spare)[v];
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        ends[2 * v + side] = mine.side[side].to < 0 ? (I)~mine.side[side].to : I(-1);
        reduced[2 * v + side] = mine.side[side].value;
    }
}

// One thread per vertex, after a scan of the vertices themselves with `minimum`: the smallest of its
// cycle marks itself.  Vertices on paths have ends.
template <typename I>
__global__ void find_smallest(int n, const I* __restrict__ ends, const State<int>* __restrict__ states,
                              const State<int>* __restrict__ spare, const unsigned int* words,
                              unsigned char* __restrict__ cut)
{
    long long v = global_thread();
    if (v >= n) return;
    State<int> mine = (words[LAST] ? states : spare)[v];
    cut[v] = ends[2 * v] == -1 && min(mine.side[0].value, mine.side[1].value) == v;
}

// One thread per vertex: the smaller end of a cycle that was cut is its smallest vertex.
template <typename I>
__global__ void mark_cycles(int n, const I* __restrict__ ends, const unsigned char* __restrict__ cut,
                            unsigned char* __restrict__ cycle)
{
    long long v = global_thread();
    if (v < n) cycle[v] = cut[min(ends[2 * v], ends[2 * v + 1])];
}

// ---- splitters ----

// What a walk reads of a vertex.
template <typename V>
struct alignas(16) Row {
    int link[2];
    V value;
};

__device__ __forceinline__ bool is_chosen(int v, int spacing) { return mix32(v) % (unsigned)spacing == 0; }

// One thread per vertex: nodes get numbers in any order, ends are listed in any order.  256 threads.
template <typename V>
__global__ void choose(int n, const int2* __restrict__ links, const V* __restrict__ values, int spacing, int capacity,
                       Row<V>* __restrict__ rows, int* __restrict__ number, int* __restrict__ nodes,
                       int* __restrict__ listed, unsigned int* words)
{
    __shared__ unsigned int first_node, first_end;
    int v = (int)global_thread();
    bool is_node = false, is_end = false;
    if (v < n) {
        int2 link = links[v];
        is_end = link.x < 0 || link.y < 0;
        is_node = !is_end && is_chosen(v, spacing);
        Row<V> row;
        row.link[0] = link.x;
        row.link[1] = link.y;
        row.value = values[v];
        rows[v] = row;
    }
    int total_nodes, total_ends;
    int node = block_exclusive_sum(int(is_node), &total_nodes);
    int end = block_exclusive_sum(int(is_end), &total_ends);
    if (threadIdx.x == 0) {
        first_node = total_nodes ? atomicAdd(&words[NODES], (unsigned)total_nodes) : 0;
        first_end = total_ends ? atomicAdd(&words[ENDS], (unsigned)total_ends) : 0;
    }
    __syncthreads();
    node += first_node;
    if (is_node && node < capacity) nodes[node] = v;
    if (is_end) listed[first_end + end] = v;
    if (is_node) number[v] = node < capacity ? node : -1;
}

// The number of a node, -1 for other vertices; `number` is there for those that are chosen only.
__device__ __forceinline__ int node_at(int v, int spacing, const int* __restrict__ number)
{
    return is_chosen(v, spacing) ? number[v] : -1;
}

__device__ __forceinline__ int node_count(const unsigned int* words, int capacity)
{
    return min((int)words[NODES], capacity);
}

// Of a slot: the slot at which the next node is entered, or ~end; the values on the way there, that of
// the node or end included; the smallest vertex of them.
template <typename V>
struct alignas(16) Stretch {
    int to, least;
    V value;
};

template <typename V, typename Op>
__global__ void walk_stretches(const Row<V>* __restrict__ rows, int spacing, int capacity,
                               const int* __restrict__ nodes, const int* __restrict__ number,
                               Stretch<V>* __restrict__ stretches, const unsigned int* words)
{
    Op op;
    int slots = 2 * node_count(words, capacity);
    long long slot = global_thread(), stride = all_threads();
    int at = -1, least = 0;
    V value = V();
    while (slot < slots) {
        bool fresh = at < 0;
        if (fresh) at = rows[nodes[slot / 2]].link[slot % 2];
        int v = at >> 1;
        Row<V> here = rows[v];
        int ahead = at & 1 ? here.link[1] : here.link[0];
        int node = ahead < 0 ? -1 : node_at(v, spacing, number);
        value = fresh ? here.value : op(value, here.value);
        least = fresh ? v : min(least, v);
        if (node < 0 && ahead >= 0) {
            at = ahead;
            continue;
        }
        Stretch<V> made;
        made.to = node >= 0 ? 2 * node + (1 - (at & 1)) : ahead;
        made.least = least;
        made.value = value;
        stretches[slot] = made;
        at = -1;
        slot += stride;
    }
}

template <typename V, typename Op>
__device__ __forceinline__ Stretch<V> longer(const Stretch<V>* stretches, Stretch<V> mine)
{
    if (mine.to < 0) return mine;
    Stretch<V> next = stretches[mine.to ^ 1];
    mine.to = next.to;
    mine.least = min(mine.least, next.least);
    mine.value = Op()(mine.value, next.value);
    return mine;
}

// A node is ready when both sides have reached an end, or the same smallest vertex: the whole cycle
// lies between.  Cooperative launch.
template <typename V, typename Op>
__global__ void rank_nodes(int capacity, const int* __restrict__ nodes, Stretch<V>* stretches, Stretch<V>* spare,
                           unsigned char* cut, unsigned int* words)
{
    GridBarrier barrier(words + BARRIER);
    int count = node_count(words, capacity), first = (int)global_thread(), stride = (int)all_threads();
    for (unsigned int round = 0;; ++round) {
        bool changed = false;
        for (int j = first; j < count; j += stride) {
            Stretch<V> one = stretches[2 * j], other = stretches[2 * j + 1];
            bool ready = one.to < 0 ? other.to < 0 : other.to >= 0 && one.least == other.least;
            changed |= !ready;
            spare[2 * j] = ready ? one : longer<V, Op>(stretches, one);
            spare[2 * j + 1] = ready ? other : longer<V, Op>(stretches, other);
        }
        if (__syncthreads_or(changed) && threadIdx.x == 0) store_relaxed(&words[COUNT + round % 3], 1u);
        barrier.wait();
        bool more = load_relaxed(&words[COUNT + round % 3]) != 0;
        if (first == 0) store_relaxed(&words[COUNT + (round + 2) % 3], 0u);
        Stretch<V>* swap = stretches;
        stretches = spare;
        spare = swap;
        if (more) continue;
        if (first == 0) words[LAST] = round & 1;
        break;
    }
    for (int j = first; j < count; j += stride) {
        Stretch<V> one = stretches[2 * j];
        if (one.to < 0) continue;
        store_relaxed(&cut[min(one.least, nodes[j])], (unsigned char)1);
        store_relaxed(&words[CYCLES], 1u);
    }
}

// One thread per slot of a node and per end: walk to the next node or end; all vertices on the way
// get the result of what lies behind them.  A side that is reached gets ~end; states are 0 before.
template <typename V, typename Op>
__global__ void distribute(const Row<V>* __restrict__ rows, int spacing, int capacity,
                           const int* __restrict__ nodes, const int* __restrict__ number,
                           const int* __restrict__ listed, const Stretch<V>* __restrict__ stretches,
                           const Stretch<V>* __restrict__ spare, State<V>* __restrict__ states,
                           const unsigned int* words)
{
    Op op;
    int slots = 2 * node_count(words, capacity);
    const Stretch<V>* last = words[LAST] ? stretches : spare;
    long long walks = slots + (long long)words[ENDS], stride = all_threads();
    int at = -1, end = 0;
    V value = V();
    for (long long walk = global_thread(); walk < walks || at >= 0;) {
        if (at < 0) {
            int v, side;  // to leave through
            if (walk < slots) {
                v = nodes[walk / 2];
                side = (int)(walk % 2);
                Stretch<V> behind = last[walk ^ 1];
                walk += stride;
                if (behind.to >= 0) continue;  // a cycle
                end = behind.to;
                value = op(rows[v].value, behind.value);
            } else {
                v = listed[walk - slots];
                walk += stride;
                end = ~v;
                value = rows[v].value;
                side = rows[v].link[0] >= 0 ? 0 : 1;
            }
            Side<V> known;
            known.to = end;
            known.value = value;
            states[v].side[1 - side] = known;
            at = rows[v].link[side];
            if (at < 0) states[v].side[side] = known;  // alone
            continue;
        }
        int v = at >> 1;
        Row<V> here = rows[v];
        int ahead = at & 1 ? here.link[1] : here.link[0];
        if (ahead >= 0 && node_at(v, spacing, number) >= 0) {
            at = -1;
            continue;
        }
        value = op(here.value, value);
        Side<V> known;
        known.to = end;
        known.value = value;
        states[v].side[1 - (at & 1)] = known;
        at = ahead;
    }
}

// One thread per vertex that no walk has reached: on a cycle without a node (short, since one vertex
// in `spacing` is one), or with one.  Each walks until it meets a node or a smaller vertex.
template <typename V>
__global__ void find_cycles(int n, const int* __restrict__ links, int spacing, const int* __restrict__ number,
                            const State<V>* __restrict__ states, unsigned char* __restrict__ cut,
                            unsigned int* words)
{
    long long v = global_thread();
    if (v >= n || states[v].side[0].to < 0) return;
    int at = 2 * (int)v, w = (int)v;
    do {
        if (node_at(w, spacing, number) >= 0) return;
        at = links[at];
        w = at >> 1;
    } while (w > v);
    if (w != v) return;
    cut[v] = 1;
    store_relaxed(&words[CYCLES], 1u);
}
