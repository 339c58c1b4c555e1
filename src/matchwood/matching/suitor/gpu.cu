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
#include "matchwood/suitors.cuh"

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

    // The displaced vertex proposes next, nobody, or u again.
    __device__ __noinline__ Next<I, B> propose(I u, I v, B w) const
    {
        store_relaxed(&want[u], w);
        fence();
        I s = load_relaxed(&mate[v]);
        B ws = 0;
        while (true) {
            if (s >= 0) {
                fence();
                ws = load_relaxed(&want[s]);
                if (stays(s, ws, v, u, w)) {
                    raise_to(&offer[v], ws);
                    return {u, w};
                }
            }
            I seen = compare_and_swap(&mate[v], s, u);
            if (seen == s) break;
            s = seen;
        }
        raise_to(&offer[v], w);
        return {s, ws};
    }
};

// Caller: mate -1, want and offer 0, except for final matches; giants listed.
// FAR: the words of vertices are more than the caches hold.  Measured on an H200: R-MAT 24 7.6 ms instead of 9.8, a
// random graph of that size 15.8 instead of 23.0, R-MAT 26 31.4 instead of 47.1; mesh 128^3, whose words do fit, 1.84 ms
// instead of 1.61.
template <typename I, typename W, int WIDTH, bool FAR>
__global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS)
    make_proposals(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
        const I* giants, const unsigned long long* giant_count, I* mate, W* want, W* offer)
{
    using B = WeightBits<W>;
    Ties ties{seed, by_hash};
    Rows<I, W> rows{indptr, indices, reinterpret_cast<const B*>(data), ties};
    Offers<I, B> offers{mate, reinterpret_cast<B*>(want), reinterpret_cast<B*>(offer), ties};
    propose_by_lanes<WIDTH, FAR>(n, rows, offers, [&](long long k) {
        bool waits = is_giant(rows, (I)k) || load_relaxed(&offers.want[k]) != 0;  // or matched
        return Next<I, B>{waits ? I(NOBODY) : (I)k, ~B(0)};
    });
    propose_by_blocks<FAR>(rows, offers, giants, (long long)*giant_count);
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
