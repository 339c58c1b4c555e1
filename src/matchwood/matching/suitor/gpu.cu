// Suitor matching on the GPU.  Host side: gpu.py.  The rule and the paper: matching/weighted.py.
//
//   list_giants     vertices with very long rows
//   make_proposals  one launch: all proposals, until no vertex has anything left to propose
//   add_offers      the weight
//
// Three words per vertex.  mate[v]: its best suitor so far.  want[u]: the weight of u's own proposal.
// offer[v]: a lower bound on the weight that v has; it may be out of date, and is what scans read.
// Weights are their bits (first_edge.cuh).
//
// A proposal of u to v: write want[u], then replace v's suitor s by u, by compare-and-swap, if {u, v}
// comes before {s, v}, whose weight is want[s].  The same thread goes on with the displaced s.  Works
// for all types, since no word holds both a vertex and a weight.
//
// Races.  Only one thread at a time proposes for a vertex: the one that started or displaced it.  So
// want[s] does not change while s is suitor of v.  It never grows afterwards: each proposal of s
// comes after the one before in the order of edges, as fewer and fewer neighbours accept it.  A
// reader that saw s in mate[v] therefore reads the weight of that proposal or less.  If it reads
// less, it tries the swap, which fails if s has gone; s cannot have come back, because v has had a
// better suitor since.  offer[v] is only raised to weights that v really has, so a scan never skips a
// neighbour that would accept.  Fences: want before mate when writing, mate before want when reading.
//
// It ends, without locks.  A swap fails only when another one succeeded, and mate[v] improves at
// most degree(v) times.  A refused u raises offer[v] itself, so its next scan chooses v again only
// if mate[v] has changed since.  Hence the number of steps is finite under every schedule, and no
// thread waits for another.  The end state is the only stable one, the greedy matching.
//
// A giant is a vertex with a very long row.  Whole blocks work on giants, after their warps have done
// all other vertices.  want[g] is the state of a giant: PENDING (0), then TAKEN by a block, then the
// weight of a proposal.  A thread that displaces a giant sets it to PENDING, and its block searches
// all giants for pending ones before it ends, so none is left over.
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"

constexpr int BLOCK = 512;  // threads of a block
// Measured on an H200, R-MAT 22, grid 2048^2, mesh 128^3: 3 blocks 2.04, 0.97, 1.45 ms; 2 blocks 2.38,
// 1.03, 1.76; 4 blocks 2.24, 1.16, 1.51.  GIANT_ROW = 2048 instead, with 2 blocks: 2.90, 1.20, 1.80.
constexpr int RESIDENT_BLOCKS = 3;  // blocks on a multiprocessor
constexpr int GIANT_ROW = 4096;  // entries
constexpr int NOBODY = -1;   // no vertex
constexpr int PENDING = 0, TAKEN = 1;  // as bits of a weight: less than, and not more than, any weight

template <typename I, typename B>
struct Offers {
    I* mate;
    B *want, *offer;
    Ties ties;

    __device__ __forceinline__ B held(I v) const { return load_relaxed(&offer[v]); }

    // Whether {s, v} of weight ws comes before {u, v} of weight w, so that v keeps s.
    __device__ __forceinline__ bool stays(I s, B ws, I v, I u, B w) const
    {
        return ws != w ? ws > w : s == u || tied_first(s, v, u, v, ties);
    }

    __device__ __noinline__ bool takes(I v, I u, B w) const
    {
        fence();  // so the suitor read next is that of the offer read before, or a better one
        I s = load_relaxed(&mate[v]);
        if (s < 0) return true;
        fence();
        return !stays(s, load_relaxed(&want[s]), v, u, w);
    }

    // Returns who has to propose next: the displaced vertex, NOBODY, or u again.
    __device__ __noinline__ I propose(I u, I v, B w) const
    {
        store_relaxed(&want[u], w);
        fence();
        I s = load_relaxed(&mate[v]);
        while (true) {
            if (s >= 0) {
                fence();
                B ws = load_relaxed(&want[s]);
                if (stays(s, ws, v, u, w)) {
                    raise_to(&offer[v], ws);
                    return u;
                }
            }
            I seen = compare_and_swap(&mate[v], s, u);
            if (seen == s) break;
            s = seen;
        }
        raise_to(&offer[v], w);
        return s;
    }
};

template <typename I>
__global__ void list_giants(I n, const I* indptr, I* giants, unsigned long long* count)
{
    long long v = global_thread();
    bool wanted = v < n && indptr[v + 1] - indptr[v] > GIANT_ROW;
    append(giants, count, (I)v, wanted);
}

// WIDTH lanes per vertex.  A group goes on with its next vertex while others follow a chain of
// displacements.  Caller: mate -1, want and offer 0, except for final matches; giants listed.
template <typename I, typename W, int WIDTH, bool FAR>
__device__ __forceinline__ void propose_by_lanes(I n, const Rows<I, W>& rows, const Offers<I, WeightBits<W>>& offers)
{
    long long groups = all_threads() / WIDTH, next = global_thread() / WIDTH;
    I u = NOBODY;
    while (true) {
        while (u < 0 && next < n) {
            u = (I)next;
            next += groups;
            bool pending = rows.indptr[u + 1] - rows.indptr[u] > GIANT_ROW;
            if (pending || load_relaxed(&offers.want[u]) != 0) u = NOBODY;  // or matched
        }
        if (!__any_sync(ALL, u >= 0 || next < n)) return;
        I begin = u >= 0 ? rows.indptr[u] : 0, end = u >= 0 ? rows.indptr[u + 1] : 0;
        Edge<I, WeightBits<W>> best = first_by_lanes<WIDTH, FAR>(rows, u, begin, end, offers);
        I after = NOBODY;
        if (lane() % WIDTH == 0 && best.w != 0) {
            after = offers.propose(u, best.v, best.w);
            if (after >= 0 && after != u && rows.indptr[after + 1] - rows.indptr[after] > GIANT_ROW) {
                fence();
                store_relaxed(&offers.want[after], WeightBits<W>(PENDING));
                after = NOBODY;
            }
        }
        u = __shfl_sync(ALL, after, lane() / WIDTH * WIDTH);
    }
}

// Takes a pending giant for this block; NOBODY when there is none.  All threads of the block call.
template <typename I, typename B>
__device__ __forceinline__ I claim_giant(const I* giants, long long count, B* want)
{
    __shared__ int place;
    __shared__ I claimed;
    while (true) {
        if (threadIdx.x == 0) place = -1;
        __syncthreads();
        long long shift = count * blockIdx.x / gridDim.x;  // blocks begin at different giants
        for (long long k = threadIdx.x; k < count && *(volatile int*)&place < 0; k += blockDim.x) {
            long long at = (k + shift) % count;
            if (load_relaxed(&want[giants[at]]) == B(PENDING)) atomicCAS(&place, -1, (int)at);
        }
        __syncthreads();
        if (place < 0) return NOBODY;
        if (threadIdx.x == 0) {
            I g = giants[place];
            claimed = compare_and_swap(&want[g], B(PENDING), B(TAKEN)) == B(PENDING) ? g : I(NOBODY);
            fence();
        }
        __syncthreads();
        I mine = claimed;
        if (mine >= 0) return mine;
    }
}

// FAR: the words of vertices are more than the caches hold.  Measured on an H200: R-MAT 24 7.6 ms instead of 9.8, a
// random graph of that size 15.8 instead of 23.0, R-MAT 26 31.4 instead of 47.1; mesh 128^3, whose words do fit, 1.84 ms
// instead of 1.61.
template <typename I, typename W, int WIDTH, bool FAR>
__global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS)
    make_proposals(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
        const I* giants, const unsigned long long* giant_count, I* mate, W* want, W* offer)
{
    using B = WeightBits<W>;
    __shared__ I following;
    Ties ties{seed, by_hash};
    Rows<I, W> rows{indptr, indices, reinterpret_cast<const B*>(data), ties};
    Offers<I, B> offers{mate, reinterpret_cast<B*>(want), reinterpret_cast<B*>(offer), ties};
    propose_by_lanes<I, W, WIDTH, FAR>(n, rows, offers);
    long long count = (long long)*giant_count;
    if (count == 0) return;
    fence();
    __syncthreads();
    I u = NOBODY;
    while (true) {
        if (u < 0) u = claim_giant(giants, count, offers.want);
        if (u < 0) return;
        Edge<I, B> best = first_by_block<FAR>(rows, u, offers);
        if (threadIdx.x == 0) {
            following = best.w != 0 ? offers.propose(u, best.v, best.w) : I(NOBODY);
            fence();
        }
        __syncthreads();
        u = following;
        __syncthreads();
    }
}

// sums[block] = the offers of the block's vertices.  The grid is always the same, so the order of
// additions is, and the result is the same to the last bit.
template <typename I, typename W>
__global__ void add_offers(I n, const W* offer, double* sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) sum += widened(offer[v]);
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
