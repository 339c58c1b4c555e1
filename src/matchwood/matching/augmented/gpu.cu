// Rounds of short augmentations on the GPU.  Host side: gpu.py.  The definition: __init__.py.
//
// The steps are those of cpu.py, one kernel each:
//
//   own_weights     the weight of the edge at each vertex
//   prepare         these weights as integers; bounds and claims are reset
//   scan_rows       the arms of all matched vertices; rows of more than LONG entries are listed ...
//   scan_listed     ... and get a block each
//   choose          units that may gain, by the bounds: short ones and long ones
//   evaluate        a warp, or a block, to each of them: those that gain are the candidates
//   claim, rank     atomic maxima at the units that a candidate touches
//   decide, make    a candidate that is first at all of them changes the matching
//   list_changed    changed vertices, short and long ones
//   wake            a warp, or a block, to each: neighbours that may gain by the change are the next queue
//
// Counts are read on the device, so the host waits once in a round.
//
// Races.  Within a kernel the matching is only read, or winners change what is theirs alone.  A unit is
// queued once, by compare-and-swap, and evaluated by one group.  Bounds are read while others make
// them tighter; both values are right.  The order of lists is arbitrary and nothing depends on it.
#include "matchwood/exchanges.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/hashing.cuh"

constexpr int LONG = 2048;  // entries of a row that gets a block

// Words of `control`.
constexpr int QUEUED = 0, SHORT_ONES = 1, LONG_ONES = 2, CANDIDATES = 3, CHANGED = 4;
[[maybe_unused]] constexpr int CONTROL_WORDS = 5;

// Arrays of n in `words` and in `ends`, one after the other.
constexpr int PRICE = 0, ARM = 1, HEAVIEST = 2, CLAIM = 3, TIE = 4, GAIN = 5, BEFORE = 6;
[[maybe_unused]] constexpr int WORD_ARRAYS = 7;
constexpr int TARGET = 0, STALE = 1, IS_QUEUED = 2, QUEUE = 3, SHORTS = 4, LONGS = 5;
constexpr int UNIT = 6, NEW_X = 7, NEW_Y = 8, UNIT_X = 9, UNIT_Y = 10, WON = 11, CHANGES = 12;
[[maybe_unused]] constexpr int END_ARRAYS = 13;

using Wide = unsigned long long;

template <typename I>
struct Space {
    long long n;
    long long* words;
    I* ends;

    __device__ __forceinline__ long long* of(int which) const { return words + which * n; }
    __device__ __forceinline__ I* end(int which) const { return ends + which * n; }
};

template <typename I, typename W>
__device__ __forceinline__ Exchanges<I, W> exchanges_of(const I* indptr, const I* indices, const W* data, Ties ties,
                                                       const double* factors, const I* mate, Space<I> s)
{
    return {indptr, indices, data, ties, factors[0], factors[1], mate,
            s.of(PRICE), s.of(ARM), s.of(HEAVIEST), s.end(TARGET), s.end(STALE)};
}

// A thread to a vertex.  -1 where mates do not agree or the edge is missing, which happens only if a
// matrix is wrongly declared symmetric.
template <typename I, typename W>
__global__ void own_weights(I n, const I* indptr, const I* indices, const W* data, const I* mate, W* own)
{
    for (long long u = global_thread(); u < n; u += all_threads()) {
        I v = mate[u];
        if (v < 0) {
            own[u] = 0;
            continue;
        }
        bool shorter = indptr[u + 1] - indptr[u] <= indptr[v + 1] - indptr[v];
        I row = shorter ? (I)u : v, wanted = shorter ? v : (I)u, end = indptr[row + 1];
        I k = first_not_below(indices, indptr[row], end, wanted);
        own[u] = mate[v] == (I)u && k < end && indices[k] == wanted ? data[k] : W(-1);
    }
}

// A thread to a vertex.  Free vertices have no bounds: they are scanned when they may gain.
template <typename I, typename W>
__global__ void prepare(I n, W* own, const double* factors, I* mate, long long* words, I* ends)
{
    Space<I> s{n, words, ends};
    for (long long v = global_thread(); v < n; v += all_threads()) {
        if (own[v] < W(0)) {
            own[v] = 0;
            mate[v] = NOBODY;
        }
        s.of(PRICE)[v] = (long long)(widened(own[v]) * factors[0] * factors[1]);
        s.of(ARM)[v] = s.of(HEAVIEST)[v] = ANYTHING;
        s.of(CLAIM)[v] = s.of(TIE)[v] = 0;
        s.end(STALE)[v] = 1;
        s.end(IS_QUEUED)[v] = 0;
    }
}

// WIDTH lanes to a matched vertex.
template <typename I, typename W, int WIDTH>
__global__ void scan_rows(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                          const double* factors, const I* mate, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Ties ties{seed, by_hash};
    Exchanges<I, W> e = exchanges_of(indptr, indices, data, ties, factors, mate, s);
    long long groups = all_threads() / WIDTH, first = global_thread() / WIDTH;
    long long warp_first = global_thread() / WARP * (WARP / WIDTH);
    for (long long step = 0; warp_first + step < n; step += groups) {  // the same for a whole warp
        long long k = first + step;
        bool mine = k < n && mate[k < n ? k : 0] >= 0;
        I u = mine ? (I)k : I(0);
        bool is_long = mine && e.degree(u) > LONG;
        append(s.end(LONGS), &control[LONG_ONES], u, is_long && lane() % WIDTH == 0);
        Choice<I> best{0, NOBODY};
        long long top = 0;
        FirstArm<I> before{u, ties};
        if (mine && !is_long) {
            for (long long at = (long long)indptr[u] + lane() % WIDTH; at < indptr[u + 1]; at += WIDTH) {
                I x = indices[at];
                long long w = e.cut(data[at]), value = w - e.price[x];
                top = w > top ? w : top;
                if (value > 0 && value >= best.value && before(Choice<I>{value, x}, best)) best = {value, x};
            }
        }
        __syncwarp();
        top = warp_reduce<WIDTH>(top, Most());
#pragma unroll
        for (int other = WIDTH / 2; other > 0; other /= 2) {
            Choice<I> there{__shfl_xor_sync(ALL, best.value, other), __shfl_xor_sync(ALL, best.x, other)};
            if (before(there, best)) best = there;
        }
        if (mine && !is_long && lane() % WIDTH == 0) {
            e.arm[u] = best.value;
            e.target[u] = best.x;
            e.heaviest[u] = top;
            e.stale[u] = 0;
        }
    }
}

// A block to a listed vertex.
template <typename I, typename W>
__global__ void scan_listed(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                            const double* factors, const I* mate, long long* words, I* ends, const unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Exchanges<I, W> e = exchanges_of(indptr, indices, data, Ties{seed, by_hash}, factors, mate, s);
    for (Wide i = blockIdx.x; i < control[LONG_ONES]; i += gridDim.x) e.rescan(BlockGroup(), s.end(LONGS)[i]);
}

// A thread to a unit: of the queue, or to every edge of the matching where `all`.
template <typename I>
__global__ void choose(I n, const I* indptr, const I* mate, bool all, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    const long long *price = s.of(PRICE), *arm = s.of(ARM), *heaviest = s.of(HEAVIEST);
    Wide size = all ? (Wide)n : control[QUEUED];
    for (Wide base = global_thread() - lane(); base < size; base += all_threads()) {
        Wide i = base + lane();
        bool mine = i < size;
        I u = mine ? (all ? (I)i : s.end(QUEUE)[i]) : I(0), v = mate[u];
        bool is_long = false;
        if (mine && all) mine = v > u;
        if (mine) {
            s.end(IS_QUEUED)[u] = 0;
            is_long = indptr[u + 1] - indptr[u] > LONG;
        }
        if (mine && v >= 0) {
            is_long = is_long || indptr[v + 1] - indptr[v] > LONG;
            long long a = arm[u], b = arm[v];
            long long at_u = a + heaviest[v], at_v = b + heaviest[u];
            long long by_cycle = a + b == 0 ? 0 : (at_u < at_v ? at_u : at_v);
            mine = a + b > price[u] || by_cycle > price[u];
        }
        append(s.end(SHORTS), &control[SHORT_ONES], u, mine && !is_long);
        append(s.end(LONGS), &control[LONG_ONES], u, mine && is_long);
    }
}

template <typename Group, typename I, typename W>
__device__ __forceinline__ void evaluate(Group group, const Exchanges<I, W>& e, Space<I> s, const I* list, Wide size,
                                         Wide* control)
{
    for (Wide i = Group::number(); i < size; i += Group::all()) {
        I u = list[i], x, y;
        long long gain = e.exchange(group, u, x, y);
        if (Group::rank() != 0 || gain < LEAST_GAIN) continue;
        Wide at = take(&control[CANDIDATES], Wide(1));
        s.end(UNIT)[at] = u;
        s.of(GAIN)[at] = gain;
        s.end(NEW_X)[at] = x;
        s.end(NEW_Y)[at] = y;
        s.end(UNIT_X)[at] = x < 0 ? u : e.unit(x);
        s.end(UNIT_Y)[at] = y < 0 ? u : e.unit(y);
    }
}

template <typename I, typename W>
__global__ void evaluate_by_warps(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                                  const double* factors, const I* mate, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Exchanges<I, W> e = exchanges_of(indptr, indices, data, Ties{seed, by_hash}, factors, mate, s);
    evaluate(WarpGroup(), e, s, s.end(SHORTS), control[SHORT_ONES], control);
}

template <typename I, typename W>
__global__ void evaluate_by_blocks(I n, const I* indptr, const I* indices, const W* data, unsigned long long seed, bool by_hash,
                                   const double* factors, const I* mate, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Exchanges<I, W> e = exchanges_of(indptr, indices, data, Ties{seed, by_hash}, factors, mate, s);
    evaluate(BlockGroup(), e, s, s.end(LONGS), control[LONG_ONES], control);
}

// The word that breaks ties between units of equal gain, larger first; all are different.
__device__ __forceinline__ Wide tie_word(long long u, Wide seed, bool by_hash)
{
    return by_hash ? mix64((Wide)u ^ mix64(seed)) : ~(Wide)u;
}

template <typename I>
struct Touched {
    I unit[3];
    __device__ __forceinline__ Touched(Space<I> s, Wide i) : unit{s.end(UNIT)[i], s.end(UNIT_X)[i], s.end(UNIT_Y)[i]} {}
};

// A thread to a candidate, in these four.
template <typename I>
__global__ void claim(I n, long long* words, I* ends, const unsigned long long* control)
{
    Space<I> s{n, words, ends};
    for (Wide i = global_thread(); i < control[CANDIDATES]; i += all_threads()) {
        Touched<I> touched(s, i);
        for (I t : touched.unit) atomicMax(&s.of(CLAIM)[t], s.of(GAIN)[i]);
    }
}

template <typename I>
__global__ void rank_ties(I n, unsigned long long seed, bool by_hash, long long* words, I* ends, const unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Wide* tie = reinterpret_cast<Wide*>(s.of(TIE));
    for (Wide i = global_thread(); i < control[CANDIDATES]; i += all_threads()) {
        Touched<I> touched(s, i);
        for (I t : touched.unit)
            if (s.of(CLAIM)[t] == s.of(GAIN)[i]) atomicMax(&tie[t], tie_word(touched.unit[0], seed, by_hash));
    }
}

template <typename I>
__global__ void decide(I n, unsigned long long seed, bool by_hash, long long* words, I* ends, const unsigned long long* control)
{
    Space<I> s{n, words, ends};
    for (Wide i = global_thread(); i < control[CANDIDATES]; i += all_threads()) {
        Touched<I> touched(s, i);
        Wide word = tie_word(touched.unit[0], seed, by_hash);
        bool won = true;
        for (I t : touched.unit) won = won && s.of(CLAIM)[t] == s.of(GAIN)[i] && (Wide)s.of(TIE)[t] == word;
        s.end(WON)[i] = won;
    }
}

// The matching, and the list of vertices that changed.
template <typename I, typename W>
struct Maker {
    Exchanges<I, W> e;
    Space<I> s;
    I* mate;
    W* own;

    __device__ __forceinline__ int vertices(I v) const { return v < 0 ? 0 : mate[v] < 0 ? 1 : 2; }

    // Free v and its mate and list them as changed; returns the next place.
    __device__ __forceinline__ Wide part(I v, Wide at) const
    {
        I u = mate[v];
        long long* price = s.of(PRICE);
        s.end(CHANGES)[at] = v;
        s.of(BEFORE)[at] = price[v];
        if (u < 0) return at + 1;
        s.end(CHANGES)[at + 1] = u;
        s.of(BEFORE)[at + 1] = price[v];
        mate[u] = mate[v] = NOBODY;
        own[u] = own[v] = 0;
        price[u] = price[v] = 0;
        return at + 2;
    }

    __device__ __forceinline__ void join(I u, I x) const
    {
        W w = e.weight(u, x);
        mate[u] = x;
        mate[x] = u;
        own[u] = own[x] = w;
        s.of(PRICE)[u] = s.of(PRICE)[x] = e.cut(w);
    }
};

template <typename I, typename W>
__global__ void make(I n, const I* indptr, const I* indices, const W* data, const double* factors, I* mate, W* own,
                     long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Maker<I, W> maker{exchanges_of(indptr, indices, data, Ties{0, false}, factors, mate, s), s, mate, own};
    for (Wide i = global_thread(); i < control[CANDIDATES]; i += all_threads()) {
        Touched<I> touched(s, i);
        for (I t : touched.unit) {  // several threads may reset the same one
            store_relaxed(&s.of(CLAIM)[t], 0ll);
            store_relaxed(&s.of(TIE)[t], 0ll);
        }
        if (!s.end(WON)[i]) continue;
        I u = touched.unit[0], v = mate[u], x = s.end(NEW_X)[i], y = s.end(NEW_Y)[i];
        I apart = x < 0 || y < 0 || mate[x] != y ? y : I(NOBODY);  // in a cycle y is freed with x
        int count = maker.vertices(u) + maker.vertices(x) + maker.vertices(apart);
        Wide at = take(&control[CHANGED], Wide(count));
        at = maker.part(u, at);
        if (x >= 0) at = maker.part(x, at);
        if (apart >= 0) maker.part(apart, at);
        if (x >= 0) maker.join(u, x);
        if (y >= 0) maker.join(v, y);
    }
}

template <typename I>
struct Waker {
    Space<I> s;
    const I* mate;
    Wide* control;

    // Put the unit of v into the next queue, unless it is there.
    __device__ __forceinline__ void enqueue(I v) const
    {
        I u = mate[v] >= 0 && mate[v] < v ? mate[v] : v;
        I* queued = s.end(IS_QUEUED);
        if (load_relaxed(&queued[u]) != 0 || compare_and_swap(&queued[u], I(0), I(1)) != 0) return;
        s.end(QUEUE)[take(&control[QUEUED], Wide(1))] = u;
    }
};

// A thread to a changed vertex, and one to a candidate that has lost: they are in the next queue.
// Places of changed vertices are listed for `wake`.
template <typename I>
__global__ void list_changed(I n, const I* indptr, const I* mate, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Waker<I> waker{s, mate, control};
    for (Wide i = global_thread(); i < control[CANDIDATES]; i += all_threads())
        if (!s.end(WON)[i]) waker.enqueue(s.end(UNIT)[i]);
    Wide size = control[CHANGED];
    for (Wide base = global_thread() - lane(); base < size; base += all_threads()) {
        Wide i = base + lane();
        bool mine = i < size, is_long = false;
        if (mine) {
            I c = s.end(CHANGES)[i];
            is_long = indptr[c + 1] - indptr[c] > LONG;
            waker.enqueue(c);
            if (mate[c] < 0) {  // no scan raises its bound from now on
                s.of(ARM)[c] = ANYTHING;
                s.end(STALE)[c] = 1;
            }
        }
        append(s.end(SHORTS), &control[SHORT_ONES], (I)i, mine && !is_long);
        append(s.end(LONGS), &control[LONG_ONES], (I)i, mine && is_long);
    }
}

template <typename Group, typename I, typename W>
__device__ __forceinline__ void wake(Group, const Exchanges<I, W>& e, const Waker<I>& waker, const I* list, Wide size)
{
    Space<I> s = waker.s;
    for (Wide j = Group::number(); j < size; j += Group::all()) {
        I i = list[j], c = s.end(CHANGES)[i], d = e.mate[c];
        long long cost = e.price[c];
        bool cheaper = cost < s.of(BEFORE)[i];
        bool cycles = d >= 0 && (e.degree(c) != e.degree(d) ? e.degree(c) < e.degree(d) : c < d);
        if (!cheaper && !cycles) continue;
        long long most = cycles ? load_relaxed(&e.heaviest[d]) : 0;
        for (long long k = (long long)e.indptr[c] + Group::rank(); k < e.indptr[c + 1]; k += Group::size()) {
            I z = e.indices[k];
            long long won = e.cut(e.data[k]) - cost;
            bool concerned = false;
            if (cheaper && won > 0) {
                I other = e.mate[z];
                if (other < 0) {
                    concerned = d < 0;
                } else if (won >= load_relaxed(&e.arm[z])) {
                    atomicMax(&e.arm[z], won);
                    store_relaxed(&e.stale[z], I(1));
                    concerned = true;
                } else {  // at best a second arm
                    concerned = load_relaxed(&e.arm[z]) + load_relaxed(&e.arm[other]) > e.price[z];
                }
            }
            if (!concerned && cycles && won + most > cost && e.price[z] >= cost && won + most > e.price[z])
                concerned = e.mate[z] >= 0 && won + load_relaxed(&e.heaviest[e.mate[z]]) > e.price[z];
            if (concerned) waker.enqueue(z);
        }
    }
}

template <typename I, typename W>
__global__ void wake_by_warps(I n, const I* indptr, const I* indices, const W* data, const double* factors,
                              const I* mate, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Exchanges<I, W> e = exchanges_of(indptr, indices, data, Ties{0, false}, factors, mate, s);
    wake(WarpGroup(), e, Waker<I>{s, mate, control}, s.end(SHORTS), control[SHORT_ONES]);
}

template <typename I, typename W>
__global__ void wake_by_blocks(I n, const I* indptr, const I* indices, const W* data, const double* factors,
                               const I* mate, long long* words, I* ends, unsigned long long* control)
{
    Space<I> s{n, words, ends};
    Exchanges<I, W> e = exchanges_of(indptr, indices, data, Ties{0, false}, factors, mate, s);
    wake(BlockGroup(), e, Waker<I>{s, mate, control}, s.end(LONGS), control[LONG_ONES]);
}

// Twice the weight; always the same blocks, so always the same bits.
template <typename I, typename W>
__global__ void add_weights(I n, const W* own, double* sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) sum += widened(own[v]);
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
