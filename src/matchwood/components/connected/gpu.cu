// Connected components on the GPU.  Host side: gpu.py.  The rule and the papers: __init__.py.
//
// Afforest, a few launches:
//   hook_near      every vertex under a smaller neighbour, a near one if possible; and of NEAR
//                  consecutive vertices, those that are connected directly under the first of them
//   compress       every vertex directly under its root
//   find_largest   the root that most of a sample have: probably the largest component's
//   hook_more      unless most have it: hook along one more neighbour of each, then compress
//   hook_rest      all entries of the rows of the other vertices, distributed evenly
// FastSV, two launches a round:
//   sv_hook, sv_follow
// and for both:
//   count_roots, number_roots, write_labels   components numbered by their smallest vertex
//
// The forest is one array, parent[v] <= v (union_find.cuh): a root is the smallest vertex of its
// tree, and when all entries are used, of its component.  So the labels do not depend on
// scheduling, nor on which component is taken for the largest.
//
// Why a vertex of the largest component may be skipped, where the pattern is symmetric: an entry
// (v, w) is left out by both rows only if v and w were both seen in that component's tree.
#include "matchwood/edges.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/number.cuh"
#include "matchwood/union_find.cuh"

constexpr int TILE = 2048;   // rows and entries of a warp in a pass over all of them
constexpr int NEAR = 1024;   // vertices, one for each thread of a block
[[maybe_unused]] constexpr int SAMPLE = 1024;  // vertices, one for each thread of the block that counts them
constexpr int SLOTS = 2048;  // slots of the table that counts their roots
constexpr int OTHERS_PART = 8;  // settled: at most 1 / OTHERS_PART of the sample have another root

// A block to NEAR vertices.  In a matrix with some order, rows are near most of their neighbours,
// and the chains v, v - 1, v - 2, ... that this gives are followed within the block, in shared
// memory.  Only its first vertices are hooked outside.  (Grid 2048^2: it is chains of 2048 blocks
// and not of 2048 vertices a row that compress has to follow.)
template <typename I>
__global__ void hook_near(I n, const I* indptr, const I* indices, I* parent)
{
    __shared__ int up[NEAR];
    long long base = (long long)blockIdx.x * NEAR, v = base + threadIdx.x;
    long long w = v;
    if (v < n) {
        I begin = indptr[v], end = indptr[v + 1];
        if (begin < end) {
            // the neighbour just below v, if the pattern is symmetric and the row sorted
            I middle = indices[begin + (end - begin - 1) / 2], lowest = indices[begin];
            if (base <= middle && middle < v)
                w = middle;
            else if (lowest < v)
                w = lowest;
        }
    }
    int mine = w < base ? (int)threadIdx.x : (int)(w - base);
    bool moved = true;
    while (moved) {
        up[threadIdx.x] = mine;
        __syncthreads();
        int above = up[up[mine]];
        moved = __syncthreads_or(above != mine);
        mine = above;
    }
    if (v < n) parent[v] = (I)(mine == (int)threadIdx.x ? w : base + mine);
}

// Vertices in turn: a try to join each with its last neighbour, or its middle one.  Both are
// directly under their roots at first, and the larger root is lowered to the smaller one; a hook
// made before may be overwritten by a lower one.  hook_rest does what is missed here: this
// step only makes trees large, and each stays within one component.
template <typename I>
__global__ void hook_more(I n, const I* indptr, const I* indices, bool last, const I* settled, I* parent)
{
    if (*settled) return;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        I begin = indptr[v], end = indptr[v + 1];
        if (begin == end) continue;
        I w = indices[last ? end - 1 : begin + (end - begin) / 2];
        I a = load_relaxed(&parent[v]), b = load_relaxed(&parent[w]);
        I low = a < b ? a : b, high = a < b ? b : a;
        if (low < high && load_relaxed(&parent[high]) > low) lower_to(&parent[high], low);
    }
}

// Vertices in turn.  `outer`: only those that hook_near hooked under a vertex of another block;
// few, so they follow a long chain all at once, each halving the way of the others.
// Other threads may follow v at the same time: any ancestor is right for them.
template <typename I>
__global__ void compress(I n, bool outer, const I* settled, I* parent)
{
    if (settled != nullptr && *settled) return;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        I up = load_relaxed(&parent[v]);
        if (outer && up >= v / NEAR * NEAR) continue;
        I root = find_root(parent, up);
        if (root != up) store_relaxed(&parent[v], root);
    }
}

// The root that most vertices of a sample have: probably that of the largest component.  One block
// of SAMPLE threads.  Each draws a number below n by a hash; vertex(number) is the vertex whose
// root counts, or -1 for none.  *largest: the most frequent root, any of equals, -1 when there is
// none; *settled: whether most have it.
template <typename I, typename Vertex>
__device__ __forceinline__ void most_frequent_root(I n, const I* parent, Vertex vertex, I* largest, I* settled)
{
    __shared__ int sampled;
    __shared__ I root[SLOTS];
    __shared__ int count[SLOTS];
    __shared__ unsigned long long best;
    for (int slot = threadIdx.x; slot < SLOTS; slot += blockDim.x) {
        root[slot] = -1;
        count[slot] = 0;
    }
    if (threadIdx.x == 0) {
        best = 0;
        sampled = 0;
    }
    __syncthreads();
    I v = vertex((I)(mix64(threadIdx.x + GOLDEN) % (unsigned long long)n));
    if (v >= 0) {
        I mine = peek_root(parent, v);
        int slot = (int)(mix64((unsigned long long)mine) % SLOTS);
        while (true) {  // ends: there are more slots than threads
            I there = compare_and_swap(&root[slot], I(-1), mine);
            if (there == I(-1) || there == mine) break;
            slot = (slot + 1) % SLOTS;
        }
        atomicAdd(&count[slot], 1);
        atomicAdd(&sampled, 1);
    }
    __syncthreads();
    // count above, slot below: one word to compare
    for (int slot = threadIdx.x; slot < SLOTS; slot += blockDim.x)
        if (count[slot] > 0) atomicMax(&best, (unsigned long long)count[slot] << 32 | (unsigned)slot);
    __syncthreads();
    if (threadIdx.x == 0) {
        *largest = best == 0 ? I(-1) : root[(unsigned)best];
        *settled = sampled - (int)(best >> 32) <= sampled / OTHERS_PART;
    }
}

// One block of SAMPLE threads.  Vertices without neighbours are not counted.  `again`: does nothing when it was settled
// before.
template <typename I>
__global__ void find_largest(I n, const I* indptr, const I* parent, bool again, I* largest, I* settled)
{
    if (again && *settled) return;
    most_frequent_root(n, parent, [&](I v) { return indptr[v] < indptr[v + 1] ? v : I(-1); }, largest, settled);
}

// TILE entries to a warp.  Races: union_find.cuh.  With a symmetric pattern, rows of vertices under *largest
// are skipped.
template <typename I>
__global__ void hook_rest(
    I n, I nnz, const I* indptr, const I* indices, bool symmetric, const I* largest, I* parent)
{
    I skip = symmetric ? *largest : I(-1);
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        if (load_relaxed(&parent[v]) == skip) end = begin;
        if (!__any_sync(ALL, begin < end)) return;
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I u = __shfl_sync(ALL, v, owner);
            if (is_entry) join_ends(parent, u, indices[entry]);
        });
        __syncwarp();
    });
}

// After a search: the parent of all reached vertices is `root`, the smallest; others are roots.
template <typename I>
__global__ void adopt_reached(I n, const I* level, const I* root, I* parent)
{
    long long v = global_thread();
    if (v < n) parent[v] = level[v] >= 0 ? *root : (I)v;
}

// FastSV, hooking, TILE entries to a warp.  Parents and grandparents are read-only here; `next`,
// which holds the grandparents (the shortcut) at the start, is lowered by atomicMin alone, so a
// round does not depend on scheduling.  For an entry (v, w), with both directions where the
// pattern is not symmetric:
//   stochastic hooking    next[parent[v]] <- min with grand[w]
//   aggressive hooking    next[v]         <- min with grand[w]
// The least grand[w] of a row is found by its lanes together before it is offered.
template <typename I>
__device__ __forceinline__ void offer(I* next, I v, I x)
{
    if (load_relaxed(&next[v]) > x) lower_to(&next[v], x);
}

template <typename I>
__global__ void sv_hook(I n, I nnz, const I* indptr, const I* indices, bool symmetric, const I* parent,
                        const I* grand, I* next, const int* changed)
{
    if (*changed == 0) return;  // the round before was the last
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        I up = parent[v], above = grand[v];
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I u = __shfl_sync(ALL, v, owner), over = __shfl_sync(ALL, up, owner);
            I high = __shfl_sync(ALL, above, owner), least = n;
            if (is_entry) {
                I w = indices[entry];
                least = grand[w];
                if (!symmetric && high < least) {
                    offer(next, w, high);
                    offer(next, parent[w], high);
                }
            }
#pragma unroll
            for (int step = 1; step < WARP; step *= 2) {  // least so far among lanes of one row
                I below = __shfl_up_sync(ALL, least, step);
                int row = __shfl_up_sync(ALL, owner, step);
                if (lane() >= step && row == owner && below < least) least = below;
            }
            int after = __shfl_sync(ALL, owner, (lane() + 1) % WARP);
            if ((lane() == WARP - 1 || after != owner) && least < high) {
                offer(next, u, least);
                offer(next, over, least);
            }
        });
    });
}

// One thread per vertex: the new grandparent, which is also where the next round starts from, and
// whether any differs from the old one.  `spare` is the old parents' memory, free now.
template <typename I>
__global__ void sv_follow(I n, const I* next, I* grand, I* spare, const int* before, int* changed)
{
    if (*before == 0) return;
    long long v = global_thread();
    bool differs = false;
    if (v < n) {
        I above = next[next[v]];
        differs = above != grand[v];
        grand[v] = above;
        spare[v] = above;
    }
    if (__syncthreads_or(differs) && threadIdx.x == 0 && load_relaxed(changed) == 0) store_relaxed(changed, 1);
}

// Numbering (number.cuh).  Vertices are distributed to blocks in runs of `length`; a block counts its roots.
template <typename I>
__global__ void count_roots(I n, I length, const I* parent, I* counts)
{
    I count = count_wanted<I>(Run(length, n), [&](long long v) { return parent[v] == v; });
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// A root's word becomes ~number, which no vertex is.  The last block knows how many there are.
template <typename I>
__global__ void number_roots(I n, I length, const I* counts, I* parent, I* total)
{
    I end = number_wanted(
        Run(length, n), counted_before(counts), [&](long long v) { return parent[v] == v; },
        [&](long long v, I number) { parent[v] = ~number; });
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) *total = end;
}

// One thread per vertex: up to the root, whose number is the label.
template <typename I>
__global__ void write_labels(I n, const I* parent, I* label)
{
    long long v = global_thread();
    if (v >= n) return;
    I up = parent[v];
    while (up >= 0) up = parent[up];
    label[v] = ~up;
}
