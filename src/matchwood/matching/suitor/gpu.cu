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
// less, it tries the swap, which fails if s has been displaced; s cannot be suitor again, as v has had a
// better one since.  offer[v] is only raised to weights that v really has, so a scan never skips a
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
//
// Below: all proposals, by lanes and blocks; lists of first edges; chains of equal weights.
#include "matchwood/exact.cuh"
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"

// ---- proposals by lanes and blocks ----
//
// The parameter `Offers` stores the proposals.  It is a struct with the functions of `Others` in first_edge.cuh, and
//   Next propose(u, v, w)   u proposes to v; returns who proposes next, and its next edge's weight at most
//   B* want                 the state of giants

constexpr int BLOCK = 512;  // threads of a block
// Measured on an H200, R-MAT 22, grid 2048^2, mesh 128^3: 3 blocks 2.04, 0.97, 1.45 ms; 2 blocks 2.38,
// 1.03, 1.76; 4 blocks 2.24, 1.16, 1.51.  GIANT_ROW = 2048 instead, with 2 blocks: 2.90, 1.20, 1.80.
constexpr int RESIDENT_BLOCKS = 3;  // blocks on a multiprocessor
constexpr int GIANT_ROW = 4096;  // entries
constexpr int PENDING = 0, TAKEN = 1;  // as bits of a weight: less than, and not more than, any weight

// The vertex that proposes next, and the most that its edge weighs: it proposes along ever lighter edges.
template <typename I, typename B>
struct Next {
    I u;  // NOBODY: nobody
    B most;
};

template <typename I, typename W>
__device__ __forceinline__ bool is_giant(const Rows<I, W>& rows, I u)
{
    return rows.indptr[u + 1] - rows.indptr[u] > GIANT_ROW;
}

template <typename I>
__global__ void list_giants(I n, const I* indptr, I* giants, unsigned long long* count)
{
    long long v = global_thread();
    bool wanted = v < n && indptr[v + 1] - indptr[v] > GIANT_ROW;
    append(giants, count, (I)v, wanted);
}

// WIDTH lanes per vertex.  A group goes on with its next vertex while others follow a chain of
// displacements.  starts(k), k < count: the k-th vertex to propose; NOBODY where that has nothing to propose.
template <int WIDTH, bool FAR, typename I, typename W, typename Offers, typename Starts>
__device__ __forceinline__ void propose_by_lanes(long long count, const Rows<I, W>& rows, const Offers& offers,
                                                 const Starts& starts)
{
    using B = WeightBits<W>;
    long long groups = all_threads() / WIDTH, place = global_thread() / WIDTH;
    Next<I, B> next{NOBODY, 0};
    while (true) {
        for (; next.u < 0 && place < count; place += groups) next = starts(place);
        I u = next.u;
        if (!__any_sync(ALL, u >= 0)) return;
        I begin = u >= 0 ? rows.indptr[u] : 0, end = u >= 0 ? rows.indptr[u + 1] : 0;
        Edge<I, B> best = first_by_lanes<WIDTH, FAR>(rows, u, begin, end, offers, next.most);
        next = {NOBODY, 0};
        if (lane() % WIDTH == 0 && best.w != 0) {
            next = offers.propose(u, best.v, best.w);
            if (next.u >= 0 && next.u != u && is_giant(rows, next.u)) {
                fence();
                store_relaxed(&offers.want[next.u], B(PENDING));
                next.u = NOBODY;
            }
        }
        int leader = lane() / WIDTH * WIDTH;
        next = {__shfl_sync(ALL, next.u, leader), __shfl_sync(ALL, next.most, leader)};
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

// Pending giants propose, a block to each.  All threads of the block call, when its lanes have done all other vertices.
template <bool FAR, typename I, typename W, typename Offers>
__device__ __forceinline__ void propose_by_blocks(const Rows<I, W>& rows, const Offers& offers, const I* giants,
                                                  long long count)
{
    __shared__ I following;
    if (count == 0) return;
    fence();
    __syncthreads();
    I u = NOBODY;
    while (true) {
        if (u < 0) u = claim_giant(giants, count, offers.want);
        if (u < 0) return;
        Edge<I, WeightBits<W>> best = first_by_block<FAR>(rows, u, offers);
        if (threadIdx.x == 0) {
            following = best.w != 0 ? offers.propose(u, best.v, best.w).u : I(NOBODY);
            fence();
        }
        __syncthreads();
        u = following;
        __syncthreads();
    }
}

// ---- proposals with three words per vertex ----

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

// ---- lists of first edges: where the words of vertices are more than the caches hold ----
//
// Without lists most of the time goes into words of vertices anywhere in memory, and into rows that are read again for
// every proposal.  So the first edges of each row are listed in one pass over the graph that reads no other words:
//
//   list_first_edges     the first LISTED edges of each row, in the order of edges
//   propose_from_lists   a thread to a vertex: proposals along listed edges; a vertex that has tried all is left over
//   propose_the_rest     as make_proposals, for those and for the giants
//   read_mates           the matching and its weight
//
// A weight of 32 bits and a vertex fit into one word, the offer of v: the best proposal that v has, 0 for none.  So one
// read gives suitor and weight, and a proposal is one compare-and-swap.
//
// Races.  An offer changes by compare-and-swap only, and only for the better: each value that is read is, or was, a
// proposal that v has, and a vertex refused by an old one is refused by the new one.  Only one thread at a time proposes
// for a vertex: the one that started or displaced it, the latter because it swapped the word that named it.  Lists do
// not change while they are read.  Each swap improves an offer, so the number of steps is finite under every schedule.
// The end state is the only stable one, the greedy matching.

constexpr int LISTED = 4;  // edges of a row; a list is then as long as a sector of memory, 32 bytes
constexpr int LISTED_ROW = 4096;  // entries; longer rows have no list
constexpr unsigned long long UNLISTED = ~0ull;  // no edge; in a list of nothing else
constexpr int LIST_BLOCKS = 4;  // blocks of propose_from_lists on a multiprocessor

using Weight = unsigned int;  // bits of a float
using Listed = Edge<int, Weight>;  // of a list; the host sees to it that vertices have 31 bits

template <typename I>
__device__ __forceinline__ Word word_of(I v, Weight w) { return (Word)w << 32 | (Weight)v; }
__device__ __forceinline__ Weight weight_of(Word word) { return (Weight)(word >> 32); }
template <typename I>
__device__ __forceinline__ I vertex_of(Word word) { return (I)(Weight)word; }

template <typename I>
struct OneWordOffers {
    Word* words;
    Weight* want;  // of giants: their state
    Ties ties;

    __device__ __forceinline__ Weight held(I v) const { return weight_of(load_relaxed(&words[v])); }

    // Whether v, with this offer, accepts u.
    __device__ __forceinline__ bool accepts(I v, Word offer, I u, Weight w) const
    {
        if (weight_of(offer) != w) return weight_of(offer) < w;
        I s = vertex_of<I>(offer);
        return s != u && !tied_first(s, v, u, v, ties);
    }

    __device__ __forceinline__ bool takes(I v, I u, Weight w) const
    {
        return accepts(v, load_relaxed(&words[v]), u, w);
    }

    // The displaced vertex proposes next, nobody, or u again.
    __device__ __forceinline__ Next<I, Weight> propose(I u, I v, Weight w) const
    {
        Word offer = load_relaxed(&words[v]);
        while (accepts(v, offer, u, w)) {
            Word seen = compare_and_swap(&words[v], offer, word_of(u, w));
            if (seen == offer) return {offer != 0 ? vertex_of<I>(offer) : I(NOBODY), weight_of(offer)};
            offer = seen;
        }
        return {u, w};
    }
};

// Whether an edge of u comes before another one.  By weight alone, where EXACT is false: no call in between, and
// equal weights, which are rare, are only noticed.
template <bool EXACT>
struct Before {
    int u;
    Ties ties;
    bool tied;

    __device__ __forceinline__ bool operator()(Listed a, Listed b)
    {
        if (EXACT) return comes_first(u, a, b, ties, Itself());
        tied |= a.w == b.w && a.w != 0;
        return a.w > b.w;
    }
};

// The first edges of what a lane has seen, in order.
struct FirstEdges {
    Listed edges[LISTED];

    // `known`: places after these are empty.
    template <typename Order>
    __device__ __forceinline__ void insert(Listed edge, int known, Order& before)
    {
#pragma unroll
        for (int j = 0; j < LISTED; ++j) {
            if (j > known || !before(edge, edges[j])) continue;
            Listed later = edges[j];
            edges[j] = edge;
            edge = later;
        }
    }

    __device__ __forceinline__ void drop_first()
    {
#pragma unroll
        for (int j = 0; j + 1 < LISTED; ++j) edges[j] = edges[j + 1];
        edges[LISTED - 1] = {0, 0};
    }

    // A weight that at least LISTED entries of the row reach: each of LISTED groups of the WIDTH lanes has such an edge,
    // or, where lanes are fewer, each lane has several.
    template <int WIDTH>
    __device__ __forceinline__ Weight at_least() const
    {
        Weight x = edges[LISTED > WIDTH ? LISTED / WIDTH - 1 : 0].w;
#pragma unroll
        for (int step = 1; step < WIDTH; step *= 2) {
            Weight other = __shfl_xor_sync(ALL, x, step);
            bool same_group = step < WIDTH / LISTED;
            x = (other > x) == same_group ? other : x;
        }
        return x;
    }
};

// The first edges of u's entries begin to end - 1, by WIDTH neighbouring lanes.  All lanes of the warp call; where `mine`,
// the list is written.  True in a lane that saw equal weights: then the order may be wrong.
template <int WIDTH, bool EXACT, typename I, typename W>
__device__ __forceinline__ bool list_row(const Rows<I, W>& rows, I u, I begin, I end, bool mine, Word* lists)
{
    constexpr int AHEAD = LISTED;  // entries of a lane at a time
    Before<EXACT> before{(int)u, rows.ties, false};
    FirstEdges found{};
    Weight least = 0;
    for (I first = 0; __any_sync(ALL, first < end - begin); first += AHEAD * WIDTH) {
        Held<I, Weight, AHEAD> entries;
        entries.load(rows.data + begin, rows.indices + begin, (I)(first + lane() % WIDTH), (I)(end - begin), WIDTH, least);
        if (first == 0) {
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) found.insert({entries.w[a], (int)entries.v[a]}, a, before);
        } else if (entries.heaviest() != 0) {
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
                if (entries.w[a] != 0) found.insert({entries.w[a], (int)entries.v[a]}, LISTED, before);
        }
        __syncwarp();
        least = found.at_least<WIDTH>();
    }
#pragma unroll
    for (int j = 0; j < LISTED; ++j) {
        Listed best = found.edges[0];
#pragma unroll
        for (int step = WIDTH / 2; step > 0; step /= 2) {
            Listed other{__shfl_xor_sync(ALL, best.w, step), __shfl_xor_sync(ALL, best.v, step)};
            if (before(other, best)) best = other;
        }
        if (best.w == found.edges[0].w && best.v == found.edges[0].v) found.drop_first();
        if (mine && lane() % WIDTH == j % WIDTH) lists[(long long)u * LISTED + j] = best.w != 0 ? word_of(best.v, best.w) : 0;
    }
    return before.tied;
}

template <int WIDTH, typename I, typename W>
__device__ __forceinline__ void list_in_order(const Rows<I, W>& rows, I u, I begin, I end, bool mine, Word* lists)
{
    bool tied = list_row<WIDTH, false>(rows, u, begin, end, mine, lists);
    if (__any_sync(ALL, tied)) list_row<WIDTH, true>(rows, u, begin, end, mine, lists);
}

// WIDTH lanes per vertex, the whole warp for one with a long row.  Lists of giants are empty, those of rows that are too
// long for one UNLISTED.
template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS)
    list_first_edges(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                     unsigned long long* lists)
{
    constexpr int LONG_ROW = 16 * WIDTH;  // entries
    Rows<I, W> rows{indptr, indices, reinterpret_cast<const Weight*>(data), Ties{seed, by_hash}};
    long long k = global_thread() / WIDTH;
    bool mine = k < n;
    I u = mine ? (I)k : I(0), begin = indptr[u], end = indptr[u + 1];
    bool unlisted = mine && end - begin > LISTED_ROW && end - begin <= GIANT_ROW;
    if (unlisted && lane() % WIDTH == 0)
        for (int j = 0; j < LISTED; ++j) lists[(long long)u * LISTED + j] = UNLISTED;
    if (!mine || unlisted || end - begin > GIANT_ROW) end = begin;
    bool is_long = end - begin > LONG_ROW;
    list_in_order<WIDTH>(rows, u, begin, is_long ? begin : end, mine && !unlisted && !is_long, lists);
    unsigned left = __ballot_sync(ALL, is_long && lane() % WIDTH == 0);
    for (; left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        I from = __shfl_sync(ALL, begin, owner), to = __shfl_sync(ALL, end, owner);
        list_in_order<WARP>(rows, __shfl_sync(ALL, u, owner), from, to, true, lists);
    }
}

// Where in the list of s the edge to v is.  Caller: it is there.
template <typename I>
__device__ __forceinline__ int place_in_list(const Word* lists, I s, I v)
{
    int at = 0;
    while (at + 1 < LISTED && vertex_of<I>(lists[(long long)s * LISTED + at]) != v) ++at;
    return at;
}

// A thread to a vertex.  It tries one edge in a turn, and goes on with its next vertex while others follow a chain of
// displacements.  Caller: words 0.
template <typename I>
__global__ void __launch_bounds__(BLOCK, LIST_BLOCKS)
    propose_from_lists(I n, unsigned long long seed, bool by_hash, const unsigned long long* __restrict__ lists,
                       unsigned long long* words, I* rest, unsigned long long* rest_count)
{
    OneWordOffers<I> offers{words, nullptr, Ties{seed, by_hash}};
    long long next = global_thread();
    I u = NOBODY;
    int at = 0;  // place in u's list
    while (true) {
        if (u < 0 && next < n) {
            u = (I)next;
            next += all_threads();
            at = 0;
        }
        if (!__any_sync(ALL, u >= 0)) return;
        Word edge = u >= 0 && at < LISTED ? lists[(long long)u * LISTED + at] : UNLISTED;
        append(rest, rest_count, u, u >= 0 && edge == UNLISTED);
        if (edge == UNLISTED || edge == 0) u = NOBODY;  // 0: the row has no other
        if (u < 0) continue;
        I v = vertex_of<I>(edge);
        I after = offers.propose(u, v, weight_of(edge)).u;
        at = after == u ? at + 1 : after >= 0 ? place_in_list(lists, after, v) + 1 : 0;
        u = after;
    }
}

// Caller: words and lists as propose_from_lists left them; want 0; giants listed.
template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS)
    propose_the_rest(const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                     const unsigned long long* lists, const I* rest, const unsigned long long* rest_count,
                     const I* giants, const unsigned long long* giant_count, unsigned long long* words, W* want)
{
    Ties ties{seed, by_hash};
    Rows<I, W> rows{indptr, indices, reinterpret_cast<const Weight*>(data), ties};
    OneWordOffers<I> offers{words, reinterpret_cast<Weight*>(want), ties};
    propose_by_lanes<WIDTH, true>((long long)*rest_count, rows, offers, [&](long long k) {
        I u = rest[k];
        return Next<I, Weight>{u, weight_of(lists[(long long)u * LISTED + LISTED - 1])};
    });
    propose_by_blocks<true>(rows, offers, giants, (long long)*giant_count);
}

// sums[block] = the weights of the block's vertices, in the same order as add_offers.
template <typename I, typename W>
__global__ void read_mates(I n, const unsigned long long* words, I* mate, double* sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        Word word = words[v];
        mate[v] = word != 0 ? vertex_of<I>(word) : I(NOBODY);
        sum += widened(bits_as<W>(weight_of(word)));
    }
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// ---- edges of the greedy matching along chains of preferences ----
//
// Every vertex v points at its first neighbour p(v).  Along such a chain each edge comes before the last one
// in the order of edges, until two vertices point at each other: their edge is taken.  Let x(v) be 1 if v is
// matched with p(v), else 0.  Then, with u = p(v),
//   - if u is matched with its own first neighbour, x(v) = 0;
//   - if it is not, and v is the second neighbour of u, {u, v} is the first edge left of both: x(v) = 1;
//   - if it is not, and v is later in u's row, x(v) stays unknown.
// So x(v) is a function of x(u), and "unknown" gives "unknown".  The functions along a chain are composed by
// pointer jumping, in O(log k) launches for a chain of k vertices.  Proposals would take k steps.

// A function of {0, 1, unknown} has two bits for each value.  The word of v holds a vertex u and the function
// that gives x(v) from x(u).  A constant function has u = v, and ends the chain.
constexpr Word UNKNOWN = 2;  // the third value
constexpr int FUNCTION_BITS = 6;      // bits of a function
constexpr Word ALWAYS_ONE = 1 | 1 << 2 | 1 << 4;
constexpr Word ALWAYS_ZERO = 0;
constexpr Word NEGATION = 1 | 0 << 2 | UNKNOWN << 4;    // 0 -> 1, 1 -> 0
constexpr Word ZERO_IF_ONE = UNKNOWN | 0 << 2 | UNKNOWN << 4;  // 1 -> 0, else unknown
constexpr int JUMPS = 4;                                 // jumps of a thread in a launch

__device__ __forceinline__ Word apply(Word function, Word value) { return function >> (2 * value) & 3; }

// The function value -> function(first(value)).
__device__ __forceinline__ Word composed(Word function, Word first)
{
    Word made = 0;
#pragma unroll
    for (int value = 0; value < 3; ++value) made |= apply(function, apply(first, value)) << (2 * value);
    return made;
}

// first_two[2 v] and [2 v + 1]: the first and the second neighbour of v, -1 for none.
template <typename I>
__global__ void link_chains(I n, const I* __restrict__ first_two, unsigned long long* __restrict__ words)
{
    long long v = global_thread();
    if (v >= n) return;
    I u = first_two[2 * v];
    Word target = (Word)v, function = ALWAYS_ZERO;
    if (u >= 0 && first_two[2 * (long long)u] == v) {
        function = ALWAYS_ONE;
    } else if (u >= 0) {
        target = (Word)u;
        function = first_two[2 * (long long)u + 1] == v ? NEGATION : ZERO_IF_ONE;
    }
    words[v] = target << FUNCTION_BITS | function;
}

// One thread per vertex.  Words change meanwhile.  But each is read and written as a whole, and is correct at
// any time, so it does not matter which version is read.  A launch makes chains at least JUMPS + 1 times
// shorter.
template <typename I>
__global__ void jump(I n, unsigned long long* words)
{
    long long v = global_thread();
    if (v >= n) return;
    Word mine = load_relaxed(&words[v]);
    for (int k = 0; k < JUMPS && mine >> FUNCTION_BITS != (Word)v; ++k) {
        Word target = mine >> FUNCTION_BITS, other = load_relaxed(&words[target]);
        bool ends = other >> FUNCTION_BITS == target;
        Word function = composed(mine & ((1 << FUNCTION_BITS) - 1), other & ((1 << FUNCTION_BITS) - 1));
        mine = (ends ? (Word)v : other >> FUNCTION_BITS) << FUNCTION_BITS | function;
        store_relaxed(&words[v], mine);
    }
}

// One thread per vertex: if it is matched with its first neighbour, it writes for both.  Vertices that point
// at each other write the same values.  Caller: mate all -1, want and offer 0.
template <typename I, typename W>
__global__ void match_ahead(I n, const I* __restrict__ first_two, const W* __restrict__ weights,
                            const unsigned long long* __restrict__ words, I* mate, W* want, W* offer)
{
    long long v = global_thread();
    if (v >= n || words[v] >> FUNCTION_BITS != (Word)v || apply(words[v], 0) != 1) return;
    I u = first_two[2 * v];
    W w = weights[2 * v];
    store_relaxed(&mate[v], u);
    store_relaxed(&mate[u], (I)v);
    store_relaxed(&want[v], w);
    store_relaxed(&want[u], w);
    store_relaxed(&offer[v], w);
    store_relaxed(&offer[u], w);
}
