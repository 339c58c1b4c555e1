// Suitor matching on the GPU.  Host side: gpu.py.  The rule and the paper: matching/weighted.py.
//
//   list_giants     vertices with very long rows
//   make_proposals  one launch: all proposals, until nobody has anything to propose
//   add_offers      the weight
//
// Three words a vertex.  mate[v]: its best suitor so far.  want[u]: the weight of u's own proposal.
// offer[v]: what v is known to hold at least; it may lag behind, and is what scans read.  Weights
// are their bits (first_edge.cuh).
//
// A proposal of u to v: write want[u], then put u in the place of v's suitor s by compare-and-swap
// if {u, v} comes before {s, v}, whose weight is want[s].  The displaced s is this thread's task
// next.  Works for all types, since no word holds both a vertex and a weight.
//
// Races.  A vertex is proposed for by one thread at a time, the one that started or displaced it,
// so want[s] does not change while s is suitor of v, and is never more afterwards: each proposal of s
// comes after the one before, as those who take it become fewer.  A reader that saw s in
// mate[v] therefore reads the weight of that proposal or less.  Reading less makes it try the swap,
// which fails if s has gone; s cannot have come back, because v has had better since.  offer[v]
// is raised to weights that v really holds, so a scan never passes over a neighbour that would take
// it.  Fences: want before mate when writing, mate before want when reading.
//
// It ends, without locks.  A swap fails only when another one succeeded, and mate[v] improves at
// most degree(v) times.  A refused u raises offer[v] itself, so its next scan chooses v again only
// if mate[v] has changed in between.  Hence the number of steps is finite under every schedule, and
// nobody waits for anybody.  What remains is the one stable state, the greedy matching.
//
// Giants are left to whole blocks, when their warps have nothing else to do.  want[g] says where a
// giant stands: PENDING (0), then taken by a block, then the weight of a proposal.  Who displaces
// one sets it to PENDING and looks through all giants before it leaves, so none is forgotten.
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"

constexpr int BLOCK = 512;  // threads of a block
// Measured on an H200, R-MAT 22, grid 2048^2, mesh 128^3: 3 blocks 2.04, 0.97, 1.45 ms; 2 blocks 2.38,
// 1.03, 1.76; 4 blocks 2.24, 1.16, 1.51.  GIANT = 2048 instead, with 2 blocks: 2.90, 1.20, 1.80.
constexpr int RESIDENT = 3;  // blocks on a multiprocessor
constexpr int GIANT = 4096;  // entries
constexpr int NOBODY = -1;   // no vertex
constexpr int PENDING = 0, TAKEN = 1;  // lighter than, and not heavier than, any weight

template <typename I, typename B>
struct Offers {
    I* mate;
    B *want, *offer;
    Ties ties;

    __device__ __forceinline__ B held(I v) const { return load_relaxed(&offer[v]); }

    // {s, v} comes before {u, v}
    __device__ __forceinline__ bool stays(I s, B ws, I v, I u, B w) const
    {
        return ws != w ? ws > w : s == u || tied_first(s, v, u, v, ties);
    }

    __device__ __noinline__ bool takes(I v, I u, B w) const
    {
        fence();  // the suitor is that of the offer read, or a better one
        I s = load_relaxed(&mate[v]);
        if (s < 0) return true;
        fence();
        return !stays(s, load_relaxed(&want[s]), v, u, w);
    }

    // Who has to propose next: the one displaced, NOBODY, or u again.
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
    bool wanted = v < n && indptr[v + 1] - indptr[v] > GIANT;
    append(giants, count, (I)v, wanted);
}

// WIDTH lanes to a vertex.  A group goes on with the next vertex while others follow a chain of
// displacements.  Caller: mate -1, want and offer 0, unless matched for good; giants listed.
template <typename I, typename W, int WIDTH>
__device__ __forceinline__ void propose_by_lanes(I n, const Rows<I, W>& rows, const Offers<I, WeightBits<W>>& offers)
{
    long long groups = all_threads() / WIDTH, next = global_thread() / WIDTH;
    I u = NOBODY;
    while (true) {
        while (u < 0 && next < n) {
            u = (I)next;
            next += groups;
            bool pending = rows.indptr[u + 1] - rows.indptr[u] > GIANT;
            if (pending || load_relaxed(&offers.want[u]) != 0) u = NOBODY;  // or matched
        }
        if (!__any_sync(ALL, u >= 0 || next < n)) return;
        I begin = u >= 0 ? rows.indptr[u] : 0, end = u >= 0 ? rows.indptr[u + 1] : 0;
        Edge<I, WeightBits<W>> best = first_by_lanes<WIDTH>(rows, u, begin, end, offers);
        I after = NOBODY;
        if (lane() % WIDTH == 0 && best.w != 0) {
            after = offers.propose(u, best.v, best.w);
            if (after >= 0 && after != u && rows.indptr[after + 1] - rows.indptr[after] > GIANT) {
                fence();
                store_relaxed(&offers.want[after], WeightBits<W>(PENDING));
                after = NOBODY;
            }
        }
        u = __shfl_sync(ALL, after, lane() / WIDTH * WIDTH);
    }
}

// Some pending giant, which is the block's then; NOBODY when there is none.  All threads call.
template <typename I, typename B>
__device__ __forceinline__ I claim_giant(const I* giants, long long count, B* want)
{
    __shared__ int place;
    __shared__ I claimed;
    while (true) {
        if (threadIdx.x == 0) place = -1;
        __syncthreads();
        long long shift = count * blockIdx.x / gridDim.x;  // blocks begin at different ones
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

template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK, RESIDENT)
    make_proposals(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
        const I* giants, const unsigned long long* giant_count, I* mate, W* want, W* offer)
{
    using B = WeightBits<W>;
    __shared__ I following;
    Ties ties{seed, by_hash};
    Rows<I, W> rows{indptr, indices, reinterpret_cast<const B*>(data), ties};
    Offers<I, B> offers{mate, reinterpret_cast<B*>(want), reinterpret_cast<B*>(offer), ties};
    propose_by_lanes<I, W, WIDTH>(n, rows, offers);
    long long count = (long long)*giant_count;
    if (count == 0) return;
    fence();
    __syncthreads();
    I u = NOBODY;
    while (true) {
        if (u < 0) u = claim_giant(giants, count, offers.want);
        if (u < 0) return;
        Edge<I, B> best = first_by_block(rows, u, offers);
        if (threadIdx.x == 0) {
            following = best.w != 0 ? offers.propose(u, best.v, best.w) : I(NOBODY);
            fence();
        }
        __syncthreads();
        u = following;
        __syncthreads();
    }
}

// sums[block] = the offers of its vertices; always the same blocks, so always the same bits.
template <typename I, typename W>
__global__ void add_offers(I n, const W* offer, double* sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) sum += widened(offer[v]);
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
