// Moving vertices between communities on the GPU.  Host side: gpu.py; the rule: reference.py.
//
// move_round is one round: its sub-rounds follow each other inside one cooperative kernel, each with two
// phases and a barrier of the grid after each.  In the first, active vertices add up the weights of
// the communities around them (matchwood/tally.cuh) and note where they go; in the second they go.
// move_rounds does several rounds, and move_small does them in one block.
//
// Races: in the first phase labels, volumes and sizes are only read, and target[v] and active[v] are
// written by the threads that have v.  In the second, sums of integers are the same in any order,
// and all writers of active write the same 1.  target[v] == labels[v] for all that do not move.
#include "matchwood/subrounds.cuh"
#include "matchwood/union_find.cuh"

constexpr int SMALL_BLOCK = 512;  // threads of the block that has a small graph for itself

__device__ __forceinline__ void add_signed(long long* p, long long x)
{
    atomicAdd(reinterpret_cast<unsigned long long*>(p), (unsigned long long)x);
}

template <typename I>
struct Here {
    I own;
    long long strength;
    double scale;
};

// What other blocks may have written is read past this block's cache; where there is one block, through it.
struct ManyBlocks {
    template <typename T>
    __device__ __forceinline__ static T look(const T* p) { return load_relaxed(p); }
};

struct OneBlock {
    template <typename T>
    __device__ __forceinline__ static T look(const T* p) { return *p; }

    __device__ __forceinline__ void wait() const { __syncthreads(); }
};

template <typename I, typename Blocks>
struct Moving {
    I* labels;
    const long long* strength;
    long long* volume;
    int* size;
    unsigned char* active;
    I* target;
    double resolution, total;

    __device__ __forceinline__ bool open(I v) const { return Blocks::look(&active[v]) != 0; }
    __device__ __forceinline__ I label(I u) const { return Blocks::look(&labels[u]); }

    __device__ __forceinline__ Here<I> begin(I v) const
    {
        long long k = strength[v];
        return Here<I>{label(v), k, __ddiv_rn(__dmul_rn(resolution, (double)k), total)};
    }

    __device__ __forceinline__ TalliedLabel<I> candidate(const Here<I>& row, I, I c, long long weight) const
    {
        if (c == row.own || weight == 0) return no_label<I>();
        double cost = __dmul_rn(row.scale, (double)Blocks::look(&volume[c]));
        return with_label(__dsub_rn((double)weight, cost), c, weight);
    }

    __device__ __forceinline__ void settle(const Here<I>& row, I v, const TalliedLabel<I>& best, long long inside) const
    {
        double cost = __dmul_rn(row.scale, (double)(Blocks::look(&volume[row.own]) - row.strength));
        I to = best.label >= 0 && best.value > __dsub_rn((double)inside, cost) ? best.label : row.own;
        if (to > row.own && Blocks::look(&size[row.own]) == 1 && Blocks::look(&size[to]) == 1) to = row.own;
        store_relaxed(&target[v], to);
        store_relaxed(&active[v], (unsigned char)0);
    }

    // Those of a sub-round who want to move do so; returns how many this thread moved.
    template <typename C>
    __device__ __forceinline__ unsigned go(const LabelRows<I, C>& rows, const I* order, const I* begins) const
    {
        unsigned moved = 0;
        for_vertices(order, begins, [&](I v, int me, int us) {
            I own = v < 0 ? I(0) : label(v), to = v < 0 ? I(0) : Blocks::look(&target[v]);
            meet(us);
            if (own == to) return;
            if (me == 0) {
                store_relaxed(&labels[v], to);
                add_signed(&volume[own], -strength[v]);
                add_signed(&volume[to], strength[v]);
                atomicAdd(&size[own], -1);
                atomicAdd(&size[to], 1);
                ++moved;
            }
            wake_neighbours(rows, v, me, us, active);
        });
        return moved;
    }
};

// One thread to a vertex: volumes and sizes, which are 0 before; all are active.
template <typename I>
__global__ void start_moving(I n, const I* labels, const long long* strength, long long* volume, int* size,
                             unsigned char* active, I* target)
{
    long long v = global_thread();
    if (v >= n) return;
    I c = labels[v];
    add_signed(&volume[c], strength[v]);
    atomicAdd(&size[c], 1);
    active[v] = 1;
    target[v] = c;
}

// A round whose vertices have been dealt out.
template <typename I, typename C>
__global__ void __launch_bounds__(TALLY_BLOCK, TALLY_BLOCKS)
    move_round(const I* indptr, const I* indices, const long long* data, int parts, const I* order,
                           const I* begins, I* labels, const long long* strength, long long* volume, int* size,
                           unsigned char* active, I* target, double resolution, double total, I* hub_key,
                           long long* hub_weight, long long hub_capacity, const I* hub_vertex,
                           const long long* hub_slot, const I* hub_piece, const I* piece_hub,
                           const long long* hub_turns, unsigned char* hub_found, unsigned int* gate,
                           unsigned long long* moved)
{
    __shared__ I keys[SHARED_SLOTS];
    __shared__ C weights[SHARED_SLOTS];
    SharedTables<I, C> tables(keys, weights);
    LabelRows<I, C> rows{indptr, indices, data};
    Hubs<I> hubs{hub_key, hub_weight, hub_capacity, hub_vertex, hub_slot, hub_piece, piece_hub, hub_turns, hub_found};
    Moving<I, ManyBlocks> rule{labels, strength, volume, size, active, target, resolution, total};
    GridBarrier barrier(gate);
    unsigned long long mine = 0;
    for (int p = 0; p < parts; ++p) {
        const I* begin = begins + p * ROW_CLASSES;
        look_around(rows, order, begin, hubs, p, barrier, tables, rule);
        barrier.wait();
        mine += rule.go(rows, order, begin);
        barrier.wait();
    }
    mine = block_reduce(mine, 0ull, Plus());
    if (threadIdx.x == 0 && mine) atomicAdd(moved, mine);
}

// Several rounds, where there are no hubs: the grid deals out the vertices by itself.  moved[r] of round
// first + r is 0 before; the last round is the one that moves at most `enough`.  counts: for each pair, 0.
template <typename I, typename C, typename Blocks, typename Barrier>
__device__ __forceinline__ void move_alike(I n, const LabelRows<I, C>& rows, int parts, unsigned long long start,
                                           unsigned long long first, int rounds, unsigned long long enough, I* order,
                                           I* counts, unsigned char* shared, const Barrier& barrier,
                                           const SharedTables<I, C>& tables, Moving<I, Blocks>& rule,
                                           unsigned long long* moved)
{
    Deal<I> deal(parts, shared, counts);
    Hubs<I> none{nullptr, nullptr, 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    for (int r = 0; r < rounds; ++r) {
        deal.make(n, rows.indptr, start, first + r, order, barrier);
        unsigned long long mine = 0;
        for (int p = 0; p < parts; ++p) {
            const I* begin = deal.begins + p * ROW_CLASSES;
            look_around(rows, order, begin, none, p, barrier, tables, rule);
            barrier.wait();
            mine += rule.go(rows, order, begin);
            barrier.wait();
        }
        mine = block_reduce(mine, 0ull, Plus());
        if (threadIdx.x == 0 && mine) atomicAdd(&moved[r], mine);
        barrier.wait();
        if (load_relaxed(&moved[r]) <= enough) return;
    }
}

template <typename I, typename C>
__global__ void __launch_bounds__(TALLY_BLOCK, TALLY_BLOCKS)
    move_rounds(I n, const I* indptr, const I* indices, const long long* data, int parts, unsigned long long start,
                unsigned long long first, int rounds, unsigned long long enough, I* order, I* counts, I* labels,
                const long long* strength, long long* volume, int* size, unsigned char* active, I* target,
                double resolution, double total, unsigned int* gate, unsigned long long* moved)
{
    extern __shared__ long long space[];
    __shared__ I keys[SHARED_SLOTS];
    __shared__ C weights[SHARED_SLOTS];
    LabelRows<I, C> rows{indptr, indices, data};
    Moving<I, ManyBlocks> rule{labels, strength, volume, size, active, target, resolution, total};
    move_alike(n, rows, parts, start, first, rounds, enough, order, counts, reinterpret_cast<unsigned char*>(space),
               GridBarrier(gate), SharedTables<I, C>(keys, weights), rule, moved);
}

// The same for a small graph, by one block: its barriers take a tenth of the time, and its cache keeps what
// the vertices know.  The tables are first in shared memory, for they must be aligned.
template <typename I, typename C>
__global__ void __launch_bounds__(SMALL_BLOCK, 1)
    move_small(I n, const I* indptr, const I* indices, const long long* data, int parts, unsigned long long start,
               unsigned long long first, int rounds, unsigned long long enough, I* order, I* counts, I* labels,
               const long long* strength, long long* volume, int* size, unsigned char* active, I* target,
               double resolution, double total, unsigned long long* moved)
{
    extern __shared__ long long space[];
    constexpr int SLOTS = WARP_SLOTS * (SMALL_BLOCK / WARP);
    C* weights = reinterpret_cast<C*>(space);
    I* keys = reinterpret_cast<I*>(weights + SLOTS);
    LabelRows<I, C> rows{indptr, indices, data};
    Moving<I, OneBlock> rule{labels, strength, volume, size, active, target, resolution, total};
    move_alike(n, rows, parts, start, first, rounds, enough, order, counts, reinterpret_cast<unsigned char*>(keys + SLOTS),
               OneBlock(), SharedTables<I, C>(keys, weights), rule, moved);
}

// A warp to a vertex: the edges inside communities join their ends.  Each edge is seen from both ends.
template <typename I>
__global__ void join_inside(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                            const I* __restrict__ labels, I* parent)
{
    long long v = global_thread() / WARP;
    if (v >= n) return;
    I own = labels[v];
    for (I e = indptr[v] + lane(); e < indptr[v + 1]; e += WARP) {
        I u = indices[e];
        if (u < v && labels[u] == own) join_sets(parent, (I)v, u);
    }
}

template <typename I>
__global__ void flatten_parts(I n, I* parent)
{
    long long v = global_thread();
    if (v < n) store_relaxed(&parent[v], peek_root(parent, (I)v));
}

// ---- Parts of communities that are well connected.  The rule: reference.refine.
//
// One cooperative kernel has all sub-rounds, each with three phases: singletons choose a part; they
// take its label; what is known of the parts is brought up to date, which needs the labels of all.
// Races: as above.  No vertex can join a part of one vertex whose turn it is.

template <typename I>
struct Home {
    I own;  // the part of the vertex: itself
    I community;
    double mine;
};

template <typename I>
struct Joining {
    const I* labels;
    const long long* strength;
    const long long* inside;
    I* part;
    long long* volume;
    int* size;
    long long* outward;
    const long long* whole;
    I* target;
    long long* before;
    double scale;
    unsigned long long start, round;
    int parts, turn;

    __device__ __forceinline__ bool tied(long long weight, long long its, I community) const
    {
        double product = __dmul_rn(__dmul_rn(scale, (double)its), (double)(whole[community] - its));
        return (double)weight >= product;
    }

    __device__ __forceinline__ bool open(I v) const
    {
        return load_relaxed(&size[v]) == 1 && tied(inside[v], strength[v], labels[v]);
    }

    __device__ __forceinline__ I label(I u) const { return load_relaxed(&part[u]); }

    __device__ __forceinline__ Home<I> begin(I v) const
    {
        return Home<I>{v, labels[v], __dmul_rn(scale, (double)strength[v])};
    }

    __device__ __forceinline__ TalliedLabel<I> candidate(const Home<I>& row, I, I c, long long weight) const
    {
        if (labels[c] != row.community || weight == 0) return no_label<I>();
        if (load_relaxed(&size[c]) == 1) {
            unsigned long long h = mix64(mix64(start ^ (unsigned long long)c) ^ round);
            if ((int)(h % (unsigned)parts) == turn) return no_label<I>();
        }
        long long its = load_relaxed(&volume[c]);
        double value = __dsub_rn((double)weight, __dmul_rn(row.mine, (double)its));
        if (!(value > 0) || !tied(load_relaxed(&outward[c]), its, row.community)) return no_label<I>();
        return with_label(value, c, weight);
    }

    __device__ __forceinline__ void settle(const Home<I>&, I v, const TalliedLabel<I>& best, long long) const
    {
        if (best.label < 0) return;
        store_relaxed(&target[v], best.label);
        before[v] = best.weight;
    }
};

// A warp to a vertex: it is a part of its own, and knows its weight to the rest of its community.
template <typename I>
__global__ void start_parts(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                            const long long* __restrict__ data, const I* __restrict__ labels,
                            const long long* __restrict__ strength, long long* inside, I* part, long long* volume,
                            int* size, long long* outward, long long* whole, I* target)
{
    long long v = global_thread() / WARP;
    if (v >= n) return;
    I own = labels[v];
    long long sum = 0;
    for (I e = indptr[v] + lane(); e < indptr[v + 1]; e += WARP)
        if (labels[indices[e]] == own) sum += data == nullptr ? 1 : data[e];
    sum = warp_reduce(sum, Plus());
    if (lane() != 0) return;
    inside[v] = outward[v] = sum;
    part[v] = target[v] = (I)v;
    volume[v] = strength[v];
    size[v] = 1;
    add_signed(&whole[own], strength[v]);
}

template <typename I, typename C>
__global__ void __launch_bounds__(TALLY_BLOCK, TALLY_BLOCKS)
    join_parts(const I* indptr, const I* indices, const long long* data, int parts, const I* order,
                           const I* begins, const I* labels, const long long* strength, const long long* inside,
                           I* part, long long* volume, int* size, long long* outward, const long long* whole,
                           I* target, long long* before, double scale, unsigned long long start,
                           unsigned long long round, I* hub_key, long long* hub_weight, long long hub_capacity,
                           const I* hub_vertex, const long long* hub_slot, const I* hub_piece, const I* piece_hub,
                           const long long* hub_turns, unsigned char* hub_found, unsigned int* gate)
{
    LabelRows<I, C> rows{indptr, indices, data};
    __shared__ I keys[SHARED_SLOTS];
    __shared__ C weights[SHARED_SLOTS];
    SharedTables<I, C> tables(keys, weights);
    Hubs<I> hubs{hub_key, hub_weight, hub_capacity, hub_vertex, hub_slot, hub_piece, piece_hub, hub_turns, hub_found};
    Joining<I> rule{labels, strength, inside, part,  volume, size,  outward, whole,
                    target, before,   scale,  start, round,  parts, 0};
    GridBarrier barrier(gate);
    for (int p = 0; p < parts; ++p) {
        const I* begin = begins + p * ROW_CLASSES;
        rule.turn = p;
        look_around(rows, order, begin, hubs, p, barrier, tables, rule);
        barrier.wait();
        for_vertices(order, begin, [&](I v, int me, int) {
            if (v >= 0 && me == 0) {
                I to = load_relaxed(&target[v]);
                if (to != v) store_relaxed(&part[v], to);
            }
        });
        barrier.wait();
        for_vertices(order, begin, [&](I v, int me, int us) {
            if (v < 0 || load_relaxed(&target[v]) == v) return;
            I to = load_relaxed(&target[v]);
            long long after = 0;
            for (I e = indptr[v] + me; e < indptr[v + 1]; e += us)
                if (load_relaxed(&part[indices[e]]) == to) after += rows.weight(e);
            if (after) add_signed(&outward[to], -after);
            if (me != 0) return;
            add_signed(&outward[to], inside[v] - before[v]);
            add_signed(&volume[to], strength[v]);
            atomicAdd(&size[to], 1);
            store_relaxed(&size[v], 0);
        });
        barrier.wait();
    }
}
