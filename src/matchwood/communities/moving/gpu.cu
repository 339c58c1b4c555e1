// Moving vertices between communities on the GPU.  Host side: gpu.py; the rule: reference.py.
//
// move_round is one round: its sub-rounds follow each other inside one cooperative kernel, each with two
// phases and a barrier of the grid after each.  In the first, active vertices add up the weights of
// the communities around them (matchwood/tally.cuh) and note where they go; in the second they go.
//
// Races: in the first phase labels, volumes and sizes are only read, and target[v] and active[v] are
// written by whoever has v.  In the second, sums of integers are the same in any order, and active
// gets the same 1 from whoever comes.  target[v] == labels[v] for all that do not move.
#include "matchwood/subrounds.cuh"
#include "matchwood/union_find.cuh"

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

template <typename I>
struct Moving {
    I* labels;
    const long long* strength;
    long long* volume;
    int* size;
    unsigned char* active;
    I* target;
    double resolution, total;

    __device__ __forceinline__ bool open(I v) const { return load_relaxed(&active[v]) != 0; }
    __device__ __forceinline__ I label(I u) const { return load_relaxed(&labels[u]); }

    __device__ __forceinline__ Here<I> begin(I v) const
    {
        long long k = strength[v];
        return Here<I>{load_relaxed(&labels[v]), k, __ddiv_rn(__dmul_rn(resolution, (double)k), total)};
    }

    __device__ __forceinline__ TalliedLabel<I> candidate(const Here<I>& row, I, I c, long long weight) const
    {
        if (c == row.own || weight == 0) return no_label<I>();
        double cost = __dmul_rn(row.scale, (double)load_relaxed(&volume[c]));
        return with_label(__dsub_rn((double)weight, cost), c, weight);
    }

    __device__ __forceinline__ void settle(const Here<I>& row, I v, const TalliedLabel<I>& best, long long inside) const
    {
        double cost = __dmul_rn(row.scale, (double)(load_relaxed(&volume[row.own]) - row.strength));
        I to = best.label >= 0 && best.value > __dsub_rn((double)inside, cost) ? best.label : row.own;
        if (to > row.own && load_relaxed(&size[row.own]) == 1 && load_relaxed(&size[to]) == 1) to = row.own;
        store_relaxed(&target[v], to);
        store_relaxed(&active[v], (unsigned char)0);
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

template <typename I>
__global__ void __launch_bounds__(TALLY_BLOCK, TALLY_BLOCKS)
    move_round(const I* indptr, const I* indices, const long long* data, int parts, const I* order,
                           const I* begins, I* labels, const long long* strength, long long* volume, int* size,
                           unsigned char* active, I* target, double resolution, double total, I* hub_key,
                           long long* hub_weight, long long hub_capacity, const I* hub_vertex,
                           const long long* hub_slot, const I* hub_piece, const I* piece_hub,
                           const long long* hub_turns, unsigned char* hub_found, unsigned int* gate,
                           unsigned long long* moved)
{
    LabelRows<I> rows{indptr, indices, data};
    Hubs<I> hubs{hub_key, hub_weight, hub_capacity, hub_vertex, hub_slot, hub_piece, piece_hub, hub_turns, hub_found};
    Moving<I> rule{labels, strength, volume, size, active, target, resolution, total};
    GridBarrier barrier(gate);
    unsigned long long mine = 0;
    for (int p = 0; p < parts; ++p) {
        const I* begin = begins + p * ROW_CLASSES;
        look_around(rows, order, begin, hubs, p, barrier, rule);
        barrier.wait();
        for_vertices(order, begin, [&](I v, int me, int us) {
            I own = v < 0 ? I(0) : load_relaxed(&labels[v]), to = v < 0 ? I(0) : load_relaxed(&target[v]);
            meet(us);
            if (own == to) return;
            if (me == 0) {
                store_relaxed(&labels[v], to);
                add_signed(&volume[own], -strength[v]);
                add_signed(&volume[to], strength[v]);
                atomicAdd(&size[own], -1);
                atomicAdd(&size[to], 1);
                ++mine;
            }
            wake_neighbours(rows, v, me, us, active);
        });
        barrier.wait();
    }
    mine = block_reduce(mine, 0ull, Plus());
    if (threadIdx.x == 0 && mine) atomicAdd(moved, mine);
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
