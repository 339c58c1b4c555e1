// The proposals of one row: which neighbours a vertex prefers, which of them have room, and how a thread, a warp
// or several blocks take the best of a row.  The arrays, and the copies to shared memory: gpu.cu.
#pragma once
#include "matchwood/edge_order.cuh"
#include "matchwood/row_reduce.cuh"
#include "matchwood/threads.cuh"

// ---- Preferences
//
// Which neighbours a vertex prefers: candidates by weight, then by hash or column, and sorted lists
// of the best N of them.  Weights are compared by their bits, which order positive ones; the sign
// is free for a charge.

template <typename W> struct WeightKey;
template <> struct WeightKey<float> {
    using Key = int;  // the weight's bits; the sign holds a charge
    static constexpr Key SIGN = (Key)0x80000000u, MOST = 0x7fffffff;
    static __device__ __forceinline__ Key of(float w) { return __float_as_int(w); }
    static __device__ __forceinline__ float weight(Key key) { return __int_as_float(key); }
};
template <> struct WeightKey<double> {
    using Key = long long;
    static constexpr Key SIGN = (Key)0x8000000000000000ull, MOST = 0x7fffffffffffffffll;
    static __device__ __forceinline__ Key of(double w) { return __double_as_longlong(w); }
    static __device__ __forceinline__ double weight(Key key) { return __longlong_as_double(key); }
};

// A neighbour that may be proposed to.  Key 0 and column -1: none.
template <typename I, typename W>
struct Offer {
    typename WeightKey<W>::Key key;
    I col;
};

template <typename I, typename W, bool HASH>
struct Candidate : Offer<I, W> {};
template <typename I, typename W>
struct Candidate<I, W, true> : Offer<I, W> {
    unsigned long long hash;
};

__device__ __forceinline__ long long packed(const Offer<int, float>& a)
{
    return (long long)((unsigned long long)(unsigned)a.key << 32 | (unsigned)~a.col);
}

// Whether a vertex prefers neighbour a to b.  Negative keys are after all others; none (-1) is not
// before none.
__device__ __forceinline__ bool better(const Candidate<int, float, false>& a,
                                       const Candidate<int, float, false>& b)
{
    return packed(a) > packed(b);
}
template <typename I, typename W>
__device__ __forceinline__ bool better(const Candidate<I, W, false>& a, const Candidate<I, W, false>& b)
{
    return a.key > b.key || (a.key == b.key && (unsigned long long)(long long)a.col < (unsigned long long)(long long)b.col);
}
template <typename I, typename W>
__device__ __forceinline__ bool better(const Candidate<I, W, true>& a, const Candidate<I, W, true>& b)
{
    if (a.key != b.key) return a.key > b.key;
    if (a.hash != b.hash) return a.hash > b.hash;
    return (unsigned long long)(long long)a.col < (unsigned long long)(long long)b.col;
}

template <typename I>
__device__ __forceinline__ void hash_if_asked(Offer<I, float>&, I, unsigned long long) {}
template <typename I>
__device__ __forceinline__ void hash_if_asked(Offer<I, double>&, I, unsigned long long) {}
template <typename I, typename W>
__device__ __forceinline__ void hash_if_asked(Candidate<I, W, true>& a, I row, unsigned long long seed)
{
    a.hash = a.col < 0 ? 0 : tie_hash(row, a.col, seed);
}

// The best N of two sorted lists are the better ones of each pair (s, N - 1 - s), and lie so that a
// few exchanges sort them (K. E. Batcher, 1968).
template <int N, typename Entry>
__device__ __forceinline__ void merge_sorted(Entry (&best)[N], const Entry (&other)[N])
{
#pragma unroll
    for (int s = 0; s < N; ++s)
        if (better(other[N - 1 - s], best[s])) best[s] = other[N - 1 - s];
#pragma unroll
    for (int step = N / 2; step > 0; step /= 2) {
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if ((s & step) == 0 && better(best[s + step], best[s])) {
                Entry swap = best[s];
                best[s] = best[s + step];
                best[s + step] = swap;
            }
        }
    }
}

// ---- Capacity: which vertices have room
//
// Words of 32 vertices: those that have room and no charge in the low bits, those that have room and
// a charge in the high bits.  So half a word says which of 32 vertices another may choose from.

__device__ __forceinline__ bool has_room(unsigned long long word, unsigned v)
{
    return ((unsigned)word | (unsigned)(word >> 32)) >> (v & 31) & 1;
}
__device__ __forceinline__ bool has_charge(unsigned long long word, unsigned v)
{
    return (unsigned)(word >> 32) >> (v & 31) & 1;
}

// Word of the vertices v .. v + 31 of a warp; all lanes call, and lane 0 writes it.
__device__ __forceinline__ void write_state(unsigned long long* word, bool room, bool charge)
{
    unsigned low = __ballot_sync(ALL, room && !charge), high = __ballot_sync(ALL, room && charge);
    if (lane() == 0) *word = (unsigned long long)high << 32 | low;
}

// ---- What a vertex does with the entries of its row in a round: take those it prefers.

template <typename T>
struct alignas(2 * sizeof(T)) Two {
    T first, second;
};

// What a round reads and writes.
template <typename I, typename W>
struct Problem {
    const I* indptr;
    const I* indices;
    const W* data;
    const I* tile_row;    // first row of a tile; ~row for a chunk of a long row
    const I* tile_entry;  // first entry of a tile
    unsigned char* partials;    // of chunks
    unsigned int* chunks_done;  // 0 before and after a round
    unsigned long long* state;
    unsigned char* confirmed;
    W* common;
    I* neighbours;
    W* weights;
    unsigned long long seed;
    int n;
};

// N places in registers; the first n of them are used.  FIRST: all vertices have room, none a charge.
template <typename I, typename W, int N, bool HASH, bool FIRST>
struct Propose {
    using Key = typename WeightKey<W>::Key;
    static constexpr bool KEEP = HASH && N <= 4;  // hashes of 8 would not fit into shared memory
    using Entry = Candidate<I, W, KEEP>;
    struct Accumulator {
        Entry best[N];
        I row;
        I known[N];            // confirmed neighbours, N - 1 at most; -1: none
        const unsigned* open;  // words of 32 vertices to choose from, at every other place
        int taken;             // confirmed places; -1: the row has no room
    };
    const Problem<I, W>& p;
    bool charged;
    bool proposed;  // by a row of this thread

    __device__ __forceinline__ Accumulator start(I row) const
    {
        Accumulator none;
        none.row = row;
        none.taken = 0;
        none.open = nullptr;
        if (!FIRST) {
            unsigned long long word = p.state[row >> 5];
            none.taken = p.confirmed[row];
            if (!has_room(word, (unsigned)row)) none.taken = -1;
            // those of the other charge; in a round without charges no vertex has one
            none.open = reinterpret_cast<const unsigned*>(p.state) + (charged && !has_charge(word, (unsigned)row));
            asm("" : "+l"(none.open));  // else the compiler adds up this address for every entry
            __builtin_assume(__isGlobal(none.open));
#pragma unroll
            for (int s = 0; s < N; ++s) none.known[s] = I(-1);
            if (none.taken > 0) {
#pragma unroll
                for (int s = 0; s < N; ++s) {
                    if (!(none.taken >> s & 1)) continue;
#pragma unroll
                    for (int t = N - 1; t > 0; --t) none.known[t] = none.known[t - 1];
                    none.known[0] = p.neighbours[(long long)row * p.n + s];
                }
            }
        }
#pragma unroll
        for (int s = 0; s < N; ++s) {
            none.best[s].key = 0;
            none.best[s].col = I(-1);
            hash_if_asked(none.best[s], row, p.seed);
        }
        return none;
    }
    __device__ __forceinline__ bool admits(const Accumulator& sum, I col, unsigned word) const
    {
        bool fits = word >> ((unsigned)col & 31) & 1;
#pragma unroll
        for (int s = 0; s < N - 1; ++s) fits = fits && col != sum.known[s];
        return fits;
    }
    __device__ __forceinline__ void add(Accumulator& sum, Key key, I col) const
    {
        if (key < sum.best[N - 1].key) return;
        if (!FIRST && !admits(sum, col, sum.open[2 * (long long)(col >> 5)])) return;
        Entry entry;
        entry.key = key;
        entry.col = col;
        hash_if_asked(entry, sum.row, p.seed);
        if (!before(entry, sum.best[N - 1], sum.row)) return;
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if (before(entry, sum.best[s], sum.row)) {
                Entry next_one = sum.best[s];
                sum.best[s] = entry;
                entry = next_one;
            }
        }
    }
    __device__ __forceinline__ bool before(const Entry& a, const Entry& b, I row) const
    {
        if (HASH && !KEEP && a.key == b.key && a.col >= 0 && b.col >= 0)
            return prefers_tied(row, a.col, row, b.col, p.seed, true);
        return better(a, b);
    }
    // As `merge_sorted`, with what hashes need.
    __device__ __forceinline__ void merge(Accumulator& sum, const Entry (&other)[N]) const
    {
#pragma unroll
        for (int s = 0; s < N; ++s)
            if (before(other[N - 1 - s], sum.best[s], sum.row)) sum.best[s] = other[N - 1 - s];
#pragma unroll
        for (int step = N / 2; step > 0; step /= 2) {
#pragma unroll
            for (int s = 0; s < N; ++s) {
                if ((s & step) == 0 && before(sum.best[s + step], sum.best[s], sum.row)) {
                    Entry swap = sum.best[s];
                    sum.best[s] = sum.best[s + step];
                    sum.best[s + step] = swap;
                }
            }
        }
    }
    // The first of every `width` lanes gets the best of all of them.  All lanes of the warp call.
    __device__ __forceinline__ void merge_lanes(Accumulator& sum, int width) const
    {
        for (int step = width / 2; step > 0; step /= 2) {
            Entry other[N];
#pragma unroll
            for (int s = 0; s < N; ++s) other[s] = shuffle_down(sum.best[s], step);
            merge(sum, other);
        }
    }
    __device__ __forceinline__ void finish(I row, const Accumulator& sum)
    {
        if (sum.taken < 0) return;
        proposed |= sum.best[0].col >= 0;
        int n = p.n;
        long long first = (long long)row * n;
        if (N == 2 && n == 2 && sum.taken == 0) {
            const Entry &a = sum.best[0], &b = sum.best[N - 1];
            *reinterpret_cast<Two<I>*>(p.neighbours + first) = {a.col, b.col};
            *reinterpret_cast<Two<W>*>(p.weights + first) = {WeightKey<W>::weight(a.key), WeightKey<W>::weight(b.key)};
            return;
        }
        unsigned left = ~(unsigned)sum.taken & ((1u << n) - 1);
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if (left == 0) break;
            int place = __ffs(left) - 1;
            left &= left - 1;
            p.neighbours[first + place] = sum.best[s].col;
            p.weights[first + place] = WeightKey<W>::weight(sum.best[s].key);
        }
    }
};

// ---- The proposals of one row, by a thread, by a warp, or by several blocks.

constexpr int PROPOSAL_BLOCK = 128;  // threads; a tile of a 27-point mesh has 73 rows, so that more had no work
constexpr int UNROLL = 4;   // entries that a lane loads before it uses the first; 2 is slower on R-MAT

// An entry in shared memory.
template <typename I, typename W>
struct alignas(2 * (sizeof(I) > sizeof(W) ? sizeof(I) : sizeof(W))) Entry {
    I col;
    W value;
};

// The entries of a tile in shared memory.
template <typename I, typename W>
struct Entries {
    const W* values;               // in the first round, or else
    const Entry<I, W>* staged;     // with the columns
    const I* indices;              // of the tile, in the matrix
    typename WeightKey<W>::Key common;  // key of all entries; 0: they have different ones
};

// ---- the best of a row, by ties="index" ----

// An entry is stored as its place in the tile, which within a row grows with the column.
template <typename W, int N>
struct Best {
    using Key = typename WeightKey<W>::Key;
    Key key[N];
    int at[N];
    __device__ __forceinline__ Best()
    {
#pragma unroll
        for (int s = 0; s < N; ++s) key[s] = 0, at[s] = -1;
    }
    // Add an entry whose place is after all others so far.
    __device__ __forceinline__ void add(Key next, int k)
    {
        if (N > 2 && next <= key[N - 1]) return;
        bool better[N];
#pragma unroll
        for (int s = 0; s < N; ++s) better[s] = next > key[s];
#pragma unroll
        for (int s = N - 1; s > 0; --s) {
            key[s] = better[s - 1] ? key[s - 1] : better[s] ? next : key[s];
            at[s] = better[s - 1] ? at[s - 1] : better[s] ? k : at[s];
        }
        key[0] = better[0] ? next : key[0];
        at[0] = better[0] ? k : at[0];
    }
};

// With the largest key that is not among them.
template <typename W, int N>
struct BestAndNext : Best<W, N> {
    using Key = typename WeightKey<W>::Key;
    Key next_one = 0;
    __device__ __forceinline__ void add(Key next, int k)
    {
        next_one = max(next_one, min(next, this->key[N - 1]));
        Best<W, N>::add(next, k);
    }
    // Whether the last of `places` has the key of one that was left out.
    __device__ __forceinline__ bool is_tied(int places) const
    {
        bool tied = false;
#pragma unroll
        for (int s = 0; s < N; ++s)
            if (s == places - 1) tied = this->key[s] != 0 && this->key[s] == (s + 1 < N ? this->key[(s + 1) % N] : next_one);
        return tied;
    }
};

// `best` becomes the best of all lanes; in all of them, or for 8-byte keys only in lane 0.
template <int N>
__device__ __forceinline__ void merge_warp(Best<float, N>& best)
{
    Best<float, N> all;
#pragma unroll
    for (int s = 0; s < N; ++s) {
        int most = __reduce_max_sync(ALL, best.key[0]);
        unsigned first = __reduce_min_sync(ALL, best.key[0] == most ? (unsigned)best.at[0] : ALL);
        all.key[s] = most;
        all.at[s] = (int)first;
        if (best.key[0] == most && best.at[0] == (int)first) {
#pragma unroll
            for (int t = 0; t < N - 1; ++t) best.key[t] = best.key[t + 1], best.at[t] = best.at[t + 1];
            best.key[N - 1] = 0, best.at[N - 1] = -1;
        }
    }
    best = all;
}
template <int N>
__device__ __forceinline__ void merge_warp(Best<double, N>& best)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        Candidate<int, double, false> mine[N], other[N];
#pragma unroll
        for (int s = 0; s < N; ++s) {
            mine[s].key = best.key[s], mine[s].col = best.at[s];
            other[s] = shuffle_down(mine[s], step);
        }
        merge_sorted<N>(mine, other);
#pragma unroll
        for (int s = 0; s < N; ++s) best.key[s] = mine[s].key, best.at[s] = mine[s].col;
    }
}

// Improve `best` by every STEP-th entry of a row, from k on.
// ALL_EQUAL: equal keys are needed as well, so that a row of them is read to its end.
template <int STEP, bool ALL_EQUAL, typename I, typename W, int N, bool FIRST, typename List>
__device__ __forceinline__ void find_best(const Entries<I, W>& from, int k, int end,
                                            const Propose<I, W, N, false, FIRST>& op,
                                            const typename Propose<I, W, N, false, FIRST>::Accumulator& sum,
                                            List& best, typename WeightKey<W>::Key& differ)
{
    using Key = typename WeightKey<W>::Key;
    for (; k < end; k += UNROLL * STEP) {
        Key key[UNROLL];
        I col[UNROLL];
        unsigned word[UNROLL];
#pragma unroll
        for (int a = 0; a < UNROLL; ++a) {
            if (FIRST) {  // may load entries after the row, which are not used
                key[a] = WeightKey<W>::of(from.values[product_place(k + a * STEP)]);
            } else {
                Entry<I, W> entry = from.staged[product_place(min(k + a * STEP, end - 1))];
                col[a] = entry.col;
                key[a] = from.common == 0 ? WeightKey<W>::of(entry.value) : from.common;
            }
        }
        if (!FIRST) {
#pragma unroll
            for (int a = 0; a < UNROLL; ++a) word[a] = sum.open[2 * (long long)(col[a] >> 5)];
        }
#pragma unroll
        for (int a = 0; a < UNROLL; ++a) {
            bool mine = a == 0 || k + a * STEP < end;
            if (FIRST && mine) differ |= key[a] ^ from.common;
            if (!mine || (!FIRST && !op.admits(sum, col[a], word[a]))) key[a] = 0;
            best.add(key[a], k + a * STEP);
        }
        if (!ALL_EQUAL && !FIRST && from.common != 0 && best.key[N - 1] != 0) break;  // the rest is not better
    }
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void finish_row(const Entries<I, W>& from, I row, const Best<W, N>& best,
                                           typename Propose<I, W, N, false, FIRST>::Accumulator& sum,
                                           Propose<I, W, N, false, FIRST>& op)
{
#pragma unroll
    for (int s = 0; s < N; ++s) {
        int k = best.at[s];
        sum.best[s].key = best.key[s];
        sum.best[s].col = best.key[s] == 0 ? I(-1) : FIRST ? from.indices[k] : from.staged[product_place(k)].col;
    }
    op.finish(row, sum);
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void propose_short(const Entries<I, W>& from, I row, int begin, int end,
                                              Propose<I, W, N, false, FIRST>& op, typename WeightKey<W>::Key& differ)
{
    auto sum = op.start(row);
    Best<W, N> best;
    find_best<1, false>(from, begin, end, op, sum, best, differ);
    finish_row(from, row, best, sum, op);
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void propose_long(const Entries<I, W>& from, I row, int begin, int end,
                                             Propose<I, W, N, false, FIRST>& op, typename WeightKey<W>::Key& differ)
{
    auto sum = op.start(row);
    Best<W, N> best;
    find_best<WARP, false>(from, begin + lane(), end, op, sum, best, differ);
    merge_warp(best);
    if (lane() == 0) finish_row(from, row, best, sum, op);
}

// ---- the same by hash ----
//
// The scan by index finds the same neighbours, unless the last of them has the weight of one that it
// leaves out.  Then the row is read again, and hashed.

// By every STEP-th lane: 1 or WARP.  Returns whether the row proposed.
template <int STEP, typename I, typename W, int N, bool FIRST>
__device__ __noinline__ bool propose_tied(Problem<I, W> p, bool charged, Entries<I, W> from, I row, int begin, int end)
{
    Propose<I, W, N, true, FIRST> op{p, charged, false};
    auto sum = op.start(row);
    for (int k = begin + (STEP == 1 ? 0 : lane()); k < end; k += STEP) {
        if (FIRST) {
            op.add(sum, WeightKey<W>::of(from.values[product_place(k)]), from.indices[k]);
        } else {
            Entry<I, W> entry = from.staged[product_place(k)];
            op.add(sum, from.common == 0 ? WeightKey<W>::of(entry.value) : from.common, entry.col);
        }
    }
    if (STEP != 1) op.merge_lanes(sum, WARP);
    if (STEP == 1 || lane() == 0) op.finish(row, sum);
    return op.proposed;
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void propose_short(const Entries<I, W>& from, I row, int begin, int end,
                                              Propose<I, W, N, true, FIRST>& op, typename WeightKey<W>::Key& differ)
{
    Propose<I, W, N, false, FIRST> plain{op.p, op.charged, op.proposed};
    auto sum = plain.start(row);
    BestAndNext<W, N> best;
    find_best<1, true>(from, begin, end, plain, sum, best, differ);
    if (best.is_tied(op.p.n - __popc(sum.taken))) {
        op.proposed |= propose_tied<1, I, W, N, FIRST>(op.p, op.charged, from, row, begin, end);
    } else {
        finish_row(from, row, best, sum, plain);
        op.proposed = plain.proposed;
    }
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void propose_long(const Entries<I, W>& from, I row, int begin, int end,
                                             Propose<I, W, N, true, FIRST>& op, typename WeightKey<W>::Key& differ)
{
    using Key = typename WeightKey<W>::Key;
    Propose<I, W, N, false, FIRST> plain{op.p, op.charged, op.proposed};
    auto sum = plain.start(row);
    BestAndNext<W, N> mine;
    find_best<WARP, true>(from, begin + lane(), end, plain, sum, mine, differ);
    Best<W, N> best = mine;
    merge_warp(best);
    int places = op.p.n - __popc(sum.taken), chosen = 0, like_it = 0;
    Key last = 0;
#pragma unroll
    for (int s = 0; s < N; ++s)
        if (s == places - 1) last = best.key[s];
#pragma unroll
    for (int s = 0; s < N; ++s) chosen += s < places && best.key[s] == last;
    last = __shfl_sync(ALL, last, 0);
    chosen = __shfl_sync(ALL, chosen, 0);
#pragma unroll
    for (int s = 0; s < N; ++s) like_it += mine.key[s] == last;
    like_it = __reduce_add_sync(ALL, like_it + (mine.next_one == last));
    if (last != 0 && like_it > chosen) {
        op.proposed |= propose_tied<WARP, I, W, N, FIRST>(op.p, op.charged, from, row, begin, end);
    } else {
        if (lane() == 0) finish_row(from, row, best, sum, plain);
        op.proposed = plain.proposed;
    }
}

// ---- a chunk of a long row ----

// The last block to finish a chunk merges them all.
// Races: partial results are written before, and read after, a fence around the count of chunks.
template <typename I, typename W, int N, bool HASH, bool FIRST>
__device__ __noinline__ bool propose_chunk(Problem<I, W> p, bool charged, I tile, I row, I entry, int entries,
                                           unsigned char* storage)
{
    using Op = Propose<I, W, N, HASH, FIRST>;
    struct Part {
        typename Op::Entry best[N];
    };
    Op op{p, charged, false};
    Part* parts = reinterpret_cast<Part*>(storage);
    typename Op::Accumulator sum = op.start(row);
    if (sum.taken < 0) return false;
    for (int first = threadIdx.x; first < entries; first += CHUNK_AHEAD * PROPOSAL_BLOCK) {
        typename Op::Key key[CHUNK_AHEAD];
        I col[CHUNK_AHEAD];
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a) {
            I k = entry + min(first + a * PROPOSAL_BLOCK, entries - 1);
            key[a] = WeightKey<W>::of(p.data[k]);
            col[a] = p.indices[k];
        }
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a)
            if (first + a * PROPOSAL_BLOCK < entries) op.add(sum, key[a], col[a]);
    }
#pragma unroll
    for (int s = 0; s < N; ++s) parts[threadIdx.x].best[s] = sum.best[s];
    __syncthreads();
    if (warp() != 0) return false;
    for (int t = lane() + WARP; t < PROPOSAL_BLOCK; t += WARP) op.merge(sum, parts[t].best);
    op.merge_lanes(sum, WARP);
    I row_start = p.indptr[row];
    unsigned int chunks = (unsigned int)((p.indptr[row + 1] - row_start + ROW_CHUNK - 1) / ROW_CHUNK);
    if (chunks > 1) {
        I first_tile = tile - (I)((entry - row_start) / ROW_CHUNK);
        Part* partial = reinterpret_cast<Part*>(p.partials) + first_tile;
        bool last = false;
        if (lane() == 0) {
#pragma unroll
            for (int s = 0; s < N; ++s) partial[tile - first_tile].best[s] = sum.best[s];
            __threadfence();
            last = atomicAdd(&p.chunks_done[first_tile], 1u) == chunks - 1;
            if (last) p.chunks_done[first_tile] = 0;
            __threadfence();
        }
        if (!__shfl_sync(ALL, last, 0)) return false;
        sum = op.start(row);
        for (unsigned int c = lane(); c < chunks; c += WARP) op.merge(sum, partial[c].best);
        op.merge_lanes(sum, WARP);
    }
    if (lane() == 0) op.finish(row, sum);
    return op.proposed;
}
