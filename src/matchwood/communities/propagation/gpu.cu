// Label propagation on the GPU.  Host side: gpu.py; the rule: reference.py.
//
// split_round is a round of sub-rounds, careful_round one in which no two neighbours move; both are
// cooperative kernels with a barrier of the grid between their phases.  Phases and races are those of
// louvain_leiden/gpu.cu.  target[v] != labels[v] says that v wants to move.
#include "matchwood/subrounds.cuh"

template <typename I>
struct Own {
    I own;
};

template <typename I>
struct Heaviest {
    I* labels;
    int* size;  // vertices with a label; null where gamma is 0
    unsigned char* active;
    I* target;
    double gamma;

    __device__ __forceinline__ bool open(I v) const { return load_relaxed(&active[v]) != 0; }
    __device__ __forceinline__ I label(I u) const { return load_relaxed(&labels[u]); }
    __device__ __forceinline__ Own<I> begin(I v) const { return Own<I>{load_relaxed(&labels[v])}; }

    __device__ __forceinline__ double value(I c, long long weight, int without) const
    {
        double found = __dmul_rn(__dadd_rn(1.0, gamma), (double)weight);
        if (size == nullptr) return found;
        return __dsub_rn(found, __dmul_rn(gamma, (double)(load_relaxed(&size[c]) - without)));
    }

    // A vertex's own label is looked at by `settle`, also where no neighbour has it.
    __device__ __forceinline__ TalliedLabel<I> candidate(const Own<I>& row, I, I c, long long weight) const
    {
        if (c == row.own || weight == 0) return no_label<I>();
        return with_label(value(c, weight, 0), c, weight);
    }

    __device__ __forceinline__ void settle(const Own<I>& row, I v, const TalliedLabel<I>& best, long long inside) const
    {
        TalliedLabel<I> stay = with_label(value(row.own, inside, 1), row.own, inside);
        store_relaxed(&target[v], better(stay, best).label);
        store_relaxed(&active[v], (unsigned char)0);
    }

    // v takes its new label and wakes its neighbours; `me` of `us` threads.
    template <typename C>
    __device__ __forceinline__ void go(const LabelRows<I, C>& rows, I v, I from, I to, int me, int us) const
    {
        if (me == 0) {
            store_relaxed(&labels[v], to);
            if (size != nullptr) {
                atomicAdd(&size[from], -1);
                atomicAdd(&size[to], 1);
            }
        }
        wake_neighbours(rows, v, me, us, active);
    }
};

template <typename I, typename C>
__global__ void __launch_bounds__(TALLY_BLOCK, TALLY_BLOCKS)
    split_round(const I* indptr, const I* indices, const long long* data, int parts, const I* order,
                            const I* begins, I* labels, int* size, unsigned char* active, I* target, double gamma,
                            I* hub_key, long long* hub_weight, long long hub_capacity, const I* hub_vertex,
                            const long long* hub_slot, const I* hub_piece, const I* piece_hub,
                            const long long* hub_turns, unsigned char* hub_found, unsigned int* gate,
                            unsigned long long* moved)
{
    LabelRows<I, C> rows{indptr, indices, data};
    __shared__ I keys[SHARED_SLOTS];
    __shared__ C weights[SHARED_SLOTS];
    SharedTables<I, C> tables(keys, weights);
    Hubs<I> hubs{hub_key, hub_weight, hub_capacity, hub_vertex, hub_slot, hub_piece, piece_hub, hub_turns, hub_found};
    Heaviest<I> rule{labels, size, active, target, gamma};
    GridBarrier barrier(gate);
    unsigned long long mine = 0;
    for (int p = 0; p < parts; ++p) {
        const I* begin = begins + p * ROW_CLASSES;
        look_around(rows, order, begin, hubs, p, barrier, tables, rule);
        barrier.wait();
        for_vertices(order, begin, [&](I v, int me, int us) {
            I own = v < 0 ? I(0) : load_relaxed(&labels[v]), to = v < 0 ? I(0) : load_relaxed(&target[v]);
            meet(us);
            if (own == to) return;
            rule.go(rows, v, own, to, me, us);
            mine += me == 0;
        });
        barrier.wait();
    }
    mine = block_reduce(mine, 0ull, Plus());
    if (threadIdx.x == 0 && mine) atomicAdd(moved, mine);
}

// `first` of a vertex that wants to move: no neighbour that wants to is before it by hash.
template <typename I, typename C>
__global__ void __launch_bounds__(TALLY_BLOCK, TALLY_BLOCKS)
    careful_round(const I* indptr, const I* indices, const long long* data, const I* order,
                              const I* begins, I* labels, int* size, unsigned char* active, I* target, double gamma,
                              unsigned char* first, I* hub_key, long long* hub_weight, long long hub_capacity,
                              const I* hub_vertex, const long long* hub_slot, const I* hub_piece, const I* piece_hub,
                              const long long* hub_turns, unsigned char* hub_found, unsigned int* gate,
                              unsigned long long* moved)
{
    LabelRows<I, C> rows{indptr, indices, data};
    __shared__ I keys[SHARED_SLOTS];
    __shared__ C weights[SHARED_SLOTS];
    SharedTables<I, C> tables(keys, weights);
    Hubs<I> hubs{hub_key, hub_weight, hub_capacity, hub_vertex, hub_slot, hub_piece, piece_hub, hub_turns, hub_found};
    Heaviest<I> rule{labels, size, active, target, gamma};
    GridBarrier barrier(gate);
    look_around(rows, order, begins, hubs, 0, barrier, tables, rule);
    barrier.wait();
    for_vertices(order, begins, [&](I v, int me, int us) {
        bool wants = v >= 0 && load_relaxed(&labels[v]) != load_relaxed(&target[v]);
        bool later = false;
        unsigned long long mine = mix64((unsigned long long)(v < 0 ? I(0) : v));
        if (wants)
            for (I e = indptr[v] + me; e < indptr[v + 1] && !later; e += us) {
                I u = indices[e];
                later = load_relaxed(&labels[u]) != load_relaxed(&target[u]) && mix64((unsigned long long)u) < mine;
            }
        if (us > WARP)
            later = __syncthreads_or(later);
        else
            later = (__ballot_sync(ALL, later) >> (lane() & ~(us - 1))) & ((1u << us) - 1);
        if (wants && me == 0) store_relaxed(&first[v], (unsigned char)!later);
    });
    barrier.wait();
    unsigned long long count = 0;
    for_vertices(order, begins, [&](I v, int me, int us) {
        I own = v < 0 ? I(0) : load_relaxed(&labels[v]), to = v < 0 ? I(0) : load_relaxed(&target[v]);
        meet(us);
        if (own == to) return;
        if (load_relaxed(&first[v])) {
            rule.go(rows, v, own, to, me, us);
            count += me == 0;
        } else if (me == 0) {
            store_relaxed(&target[v], own);
            store_relaxed(&active[v], (unsigned char)1);
        }
    });
    count = block_reduce(count, 0ull, Plus());
    if (threadIdx.x == 0 && count) atomicAdd(moved, count);
}
