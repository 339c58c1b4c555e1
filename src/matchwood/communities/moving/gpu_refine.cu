// Parts of communities that are well connected, on the GPU.  Host side: gpu.py; the rule:
// reference.refine.
//
// One cooperative kernel has all sub-rounds, each with three phases: singletons choose a part; those
// who chose take its label; what is known of the parts is brought up to date, which needs the labels of
// all.  Races: as in gpu.cu.  A part of one vertex whose turn it is takes nobody in.
#include "matchwood/subrounds.cuh"

__device__ __forceinline__ void add_signed(long long* p, long long x)
{
    atomicAdd(reinterpret_cast<unsigned long long*>(p), (unsigned long long)x);
}

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
