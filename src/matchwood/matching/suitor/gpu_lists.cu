// Suitor matching on the GPU where the words of vertices are more than the caches hold.  Host side: gpu_lists.py.
//
// Most of the time would go into words of vertices that lie anywhere in memory, and into rows that are read again for
// every proposal.  So the first edges of each row are listed in one pass that reads the graph in order, and asks nobody:
//
//   list_first_edges     the first LISTED edges of each row, in the order of edges
//   propose_from_lists   a thread to a vertex: proposals along listed edges; who has tried all of them is left over
//   propose_the_rest     as make_proposals of gpu.cu, for those and for the giants
//   read_mates           the matching and its weight
//
// A weight of 32 bits and a vertex fit into one word, the offer of v: the best proposal that v has, 0 for none.  So a
// look at it tells who and how much, and a proposal is one compare-and-swap.
//
// Races.  An offer changes by compare-and-swap only, and only for the better: each value that is read is, or was, a
// proposal that v has, and who is refused by an old one is refused by the new one.  Only one thread at a time proposes
// for a vertex: the one that started or displaced it, the latter because it swapped the word that named it.  Lists do
// not change while they are read.  Each swap improves an offer, so the number of steps is finite under every schedule.
// The end state is the only stable one, the greedy matching.
#include "matchwood/exact.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/suitors.cuh"

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

    // LISTED entries of the row, at least, weigh as much.  For that WIDTH lanes are LISTED groups, of which each has an
    // edge as heavy; or, where they are fewer, each lane has several.
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

// sums[block] = the weights of the block's vertices, in the same order as add_offers of gpu.cu.
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
