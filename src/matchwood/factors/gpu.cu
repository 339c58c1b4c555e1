// [0,n]-factors on the GPU: one round is `propose` and `confirm`.  Host loop: gpu.py.  The rule and
// the paper: __init__.py.
//
//   begin     all vertices have room; their charges for the first round
//   propose   one pass over the matrix (matchwood/row_reduce.cuh): each vertex with room writes
//             those it prefers into its free places
//   confirm   one thread per vertex: which proposals were answered, who has room left, and the
//             charges of the next round
//   settle    one thread per vertex: unanswered places become -1, the preferred neighbour first
//
// A place is confirmed or free by a bit of `confirmed`; free places hold the proposals of this
// round, or old ones that nobody reads.  `state` has one word for 32 vertices: low bits, who has
// room and may find a neighbour; high bits, their charges.  `propose` gathers one such word for
// each entry, which for millions of vertices lie in the L2 cache.  Charges are hashed in registers,
// once a vertex and round where the word is made: hashing them for every entry instead would cost
// some 170 instructions an entry (counted, not timed), more than all else that is done with it.
//
// Races: `propose` reads `state` and `confirmed`, and each row writes its own places.  `confirm`
// reads all places and writes none; each vertex has its own byte of `confirmed`, each warp its own
// word of `state`.  Flags are set to 1 by relaxed stores, whoever comes first.
#include "matchwood/atomics.cuh"
#include "matchwood/edge_order.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/preferences.cuh"
#include "matchwood/rooms.cuh"
#include "matchwood/row_reduce.cuh"

constexpr int BATCH = 8;  // rounds that have their own flags; as in gpu.py
constexpr int STOP = 0, ROUNDS = 1, PROPOSED = 2, ANSWERED = PROPOSED + BATCH;  // words of `flags`
constexpr int SPARSE = 8;  // where one row of so many has room, warps take these rows one by one

// ---- begin ----

// One thread per vertex, whole warps.
template <typename I>
__global__ void begin(I rows, bool charged, unsigned int r, unsigned long long barrier,
                      unsigned long long* state, unsigned char* __restrict__ confirmed)
{
    long long v = global_thread();
    if ((v & ~31ll) >= rows) return;
    bool room = v < rows;
    if (room) confirmed[v] = 0;
    write_state(&state[v / 32], room, room && charged && random_bit((unsigned)v, r, barrier));
}

// ---- propose ----

template <typename T>
struct alignas(2 * sizeof(T)) Two {
    T first, second;
};

// N places in registers; the first n of them are wanted.
template <typename I, typename W, int N, bool HASH>
struct Propose {
    using Key = typename Bits<W>::Key;
    using Product = Offer<I, W>;
    static constexpr bool KEEP = HASH && N <= 4;  // hashes of 8 would not fit into shared memory
    using Entry = Candidate<I, W, KEEP>;
    struct Accumulator {
        Entry best[N];
        I row;
        Key flip;  // exclusive-or with it makes keys of the wrong charge negative
        int taken;  // confirmed places; -1: the row has no room
    };
    const W* __restrict__ data;
    const unsigned long long* __restrict__ state;
    const unsigned char* __restrict__ confirmed;
    I* neighbours;
    W* weights;
    unsigned long long seed;
    int n;
    bool charged;
    bool proposed;  // by a row of this thread

    // The key of entry k as the rows see it: 0 where the column has no room, with its charge.
    __device__ __forceinline__ Key key_of(I k, I col) const
    {
        Key key = Bits<W>::of(data[k]);
        unsigned bit = (unsigned)col & 31;
        if (charged) {
            unsigned long long word = state[col >> 5];
            if ((unsigned)(word >> 32) >> bit & 1) key |= Bits<W>::SIGN;
            return (unsigned)word >> bit & 1 ? key : 0;
        }
        unsigned word = reinterpret_cast<const unsigned*>(state)[2 * (long long)(col >> 5)];
        return word >> bit & 1 ? key : 0;
    }
    __device__ __forceinline__ Product multiply(I k, I col) const
    {
        Key key = key_of(k, col);
        return {key, key == 0 ? I(-1) : col};
    }
    __device__ __forceinline__ Accumulator start(I row) const
    {
        Accumulator none;
        unsigned long long word = state[row >> 5];
        bool room = has_room(word, (unsigned)row);
#pragma unroll
        for (int s = 0; s < N; ++s) {
            none.best[s].key = room ? 0 : Bits<W>::MOST;  // where there is no room nothing is better
            none.best[s].col = I(-1);
            hash_if_asked(none.best[s], row, seed);
        }
        none.row = row;
        none.flip = charged && !charge_of(word, (unsigned)row) ? Bits<W>::SIGN : 0;
        none.taken = room ? confirmed[row] : -1;
        return none;
    }
    __device__ __forceinline__ void add(Accumulator& sum, Product next) const
    {
        Entry entry;
        entry.key = next.key ^ sum.flip;
        entry.col = next.col;
        if (HASH) {
            if (entry.key <= 0 || entry.key < sum.best[N - 1].key) return;
            hash_if_asked(entry, sum.row, seed);
        }
        if (!before(entry, sum.best[N - 1], sum.row)) return;
        if (sum.taken > 0 && is_confirmed(sum.row, sum.taken, entry.col)) return;
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
            return prefers_tied(row, a.col, row, b.col, seed, true);
        return better(a, b);
    }
    __device__ __forceinline__ bool is_confirmed(I row, int taken, I col) const
    {
        for (int s = 0; s < n; ++s)
            if ((taken >> s & 1) && neighbours[(long long)row * n + s] == col) return true;
        return false;
    }
    // As `merge_sorted` below, with what hashes need.
    __device__ __forceinline__ void merge(Accumulator& sum, const Accumulator& other) const
    {
#pragma unroll
        for (int s = 0; s < N; ++s)
            if (before(other.best[N - 1 - s], sum.best[s], sum.row)) sum.best[s] = other.best[N - 1 - s];
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
    __device__ __forceinline__ void finish(I row, const Accumulator& sum)
    {
        if (sum.taken < 0) return;
        proposed |= sum.best[0].col >= 0;
        long long first = (long long)row * n;
        if (N == 2 && n == 2 && sum.taken == 0) {
            const Entry &a = sum.best[0], &b = sum.best[N - 1];
            *reinterpret_cast<Two<I>*>(neighbours + first) = {a.col, b.col};
            *reinterpret_cast<Two<W>*>(weights + first) = {Bits<W>::weight(a.key), Bits<W>::weight(b.key)};
            return;
        }
        unsigned left = ~(unsigned)sum.taken & ((1u << n) - 1);
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if (left == 0) break;
            int place = __ffs(left) - 1;
            left &= left - 1;
            neighbours[first + place] = sum.best[s].col;
            weights[first + place] = Bits<W>::weight(sum.best[s].key);
        }
    }
};

// A warp for each row with room, straight from the matrix: for tiles that have few of them.
template <typename I, typename Op>
__device__ __forceinline__ void reduce_rows_with_room(const I* __restrict__ indptr, const I* __restrict__ indices,
                                                      I row, I end, Op& op)
{
    int turn = 0;
    for (I w = row / 32; w * 32 < end; ++w) {
        for (unsigned left = rows_with_room(op.state, w, row, end); left != 0; left &= left - 1) {
            if (turn++ % (ROW_BLOCK / WARP) != warp()) continue;
            I r = w * 32 + (__ffs(left) - 1);
            typename Op::Accumulator sum = op.start(r);
            I stop = indptr[r + 1];
            for (I k = indptr[r] + lane(); k < stop; k += WARP) op.add(sum, op.multiply(k, indices[k]));
            merge_lanes(op, sum, WARP);
            if (lane() == 0) op.finish(r, sum);
        }
    }
}

// A row of a tile by ties="index", by `width` neighbouring lanes; all lanes of the warp call, with
// end = -1 where there is nothing to do.  An entry is known by its place in the tile, which within a
// row goes up with the column; the columns of those chosen are read again.
template <bool FRESH, typename I, typename W, int N>
__device__ __forceinline__ void propose_row(const I* __restrict__ indices, I row, I entry, int begin, int end,
                                            int width, Propose<I, W, N, false>& op,
                                            const typename Bits<W>::Key* keys)
{
    using Op = Propose<I, W, N, false>;
    using Key = typename Op::Key;
    typename Op::Accumulator sum;
    if (FRESH)
        sum.flip = 0, sum.taken = 0;
    else
        sum = op.start(row);
    Candidate<int, W, false> best[N];
#pragma unroll
    for (int s = 0; s < N; ++s) {
        best[s].key = FRESH ? 0 : sum.best[s].key;
        best[s].col = -1;
    }
    for (int k = begin + threadIdx.x % width; k < end; k += width) {
        Key key = keys[product_place(k)] ^ sum.flip;
        if (key <= best[N - 1].key) continue;
        if (!FRESH && sum.taken > 0 && op.is_confirmed(row, sum.taken, indices[entry + k])) continue;
#pragma unroll
        for (int s = N - 1; s > 0; --s) {
            if (key > best[s - 1].key) {
                best[s] = best[s - 1];
            } else if (key > best[s].key) {
                best[s].key = key;
                best[s].col = k;
            }
        }
        if (key > best[0].key) {
            best[0].key = key;
            best[0].col = k;
        }
    }
    for (int step = width / 2; step > 0; step /= 2) {
        Candidate<int, W, false> other[N];
#pragma unroll
        for (int s = 0; s < N; ++s) other[s] = shuffle_down(best[s], step);
        merge_sorted<N>(best, other);
    }
    if (end < 0 || threadIdx.x % width != 0 || sum.taken < 0) return;
    sum.row = row;
#pragma unroll
    for (int s = 0; s < N; ++s) {
        sum.best[s].key = best[s].key;
        sum.best[s].col = best[s].col < 0 ? I(-1) : indices[entry + best[s].col];
    }
    op.finish(row, sum);
}

// The rows of a tile by ties="index".  As `reduce_short_rows` of row_reduce.cuh, but what lies in
// shared memory is the keys alone, half as much.  In a first round without charges (FRESH) all
// entries are admissible, and only the columns of those chosen are read.
template <int TILE, bool FRESH, typename I, typename W, int N>
__device__ __forceinline__ void propose_rows(const I* __restrict__ indptr, const I* __restrict__ indices, I row,
                                             int rows, I entry, int entries, Propose<I, W, N, false>& op,
                                             typename Bits<W>::Key* keys, unsigned short* starts)
{
    using Key = typename Bits<W>::Key;
    constexpr int AHEAD = entries_ahead(TILE);
    for (int r = threadIdx.x; r <= rows; r += ROW_BLOCK) starts[r] = (unsigned short)(indptr[row + r] - entry);
    for (int first = threadIdx.x; first < entries; first += AHEAD * ROW_BLOCK) {
        Key key[AHEAD];
        I col[AHEAD];
        if (!FRESH) {
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) col[a] = indices[entry + min(first + a * ROW_BLOCK, entries - 1)];
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            I k = entry + min(first + a * ROW_BLOCK, entries - 1);
            key[a] = FRESH ? Bits<W>::of(op.data[k]) : op.key_of(k, col[a]);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (first + a * ROW_BLOCK < entries) keys[product_place(first + a * ROW_BLOCK)] = key[a];
    }
    __syncthreads();

    int width = 1;  // lanes for a row
    while (width < WARP && entries >= 2 * ROW_EACH * width * rows) width *= 2;
    int together = ROW_BLOCK / width, most = ROW_MOST * width;  // longer rows are left to whole warps
    for (int first = 0; first < rows; first += together) {
        int r = first + threadIdx.x / width, at = min(r, rows - 1);
        int begin = starts[at], end = starts[at + 1];
        bool mine = r < rows && end - begin <= most;
        propose_row<FRESH>(indices, (I)(row + at), entry, begin, mine ? end : -1, width, op, keys);
    }
    if (width == WARP) return;
    for (int first = warp() * WARP; first < rows; first += ROW_BLOCK) {
        int r = first + lane();
        unsigned left = __ballot_sync(ALL, r < rows && starts[min(r + 1, rows)] - starts[min(r, rows)] > most);
        for (; left != 0; left &= left - 1) {
            int at = first + __ffs(left) - 1;
            propose_row<FRESH>(indices, (I)(row + at), entry, starts[at], starts[at + 1], WARP, op, keys);
        }
    }
}

// One block per tile.  `settled` says that rows may be without room: tiles of such rows are skipped.
// flags[PROPOSED + slot] becomes 1 when a row proposes.
template <typename I, typename W, int N, bool HASH, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
propose(const I* __restrict__ indptr, const I* __restrict__ indices, const I* __restrict__ tile_row,
        const I* __restrict__ tile_entry, unsigned char* partials, unsigned int* chunks_done,
        const W* __restrict__ data, const unsigned long long* __restrict__ state,
        const unsigned char* __restrict__ confirmed, I* neighbours, W* weights,
        unsigned long long seed, int n, bool charged, bool settled, int* flags, int slot)
{
    if (flags[STOP]) return;
    int* proposed = &flags[PROPOSED + slot];
    Propose<I, W, N, HASH> op{data, state, confirmed, neighbours, weights, seed, n, charged, false};
    bool sparse = false;
    I row = tile_row[blockIdx.x], next = tile_row[blockIdx.x + 1];
    I end = next < 0 ? ~next : next;
    if (settled && row < 0) {
        if (!has_room(state[~row >> 5], (unsigned)~row)) return;
    } else if (settled) {
        long long room = count_room(state, row, end);
        if (room == 0) return;
        sparse = room * SPARSE <= end - row;
    }
    if (sparse)
        reduce_rows_with_room(indptr, indices, row, end, op);
    else if constexpr (HASH)
        reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
    else {
        using Op = Propose<I, W, N, false>;
        constexpr int KEYS = (TILE + longest_short_row(TILE)) * 33 / 32 * (int)sizeof(typename Op::Key);
        constexpr int PARTS = ROW_BLOCK * (int)sizeof(typename Op::Accumulator);
        __shared__ alignas(16) unsigned char storage[KEYS > PARTS ? KEYS : PARTS];
        __shared__ unsigned short starts[TILE + 1];
        auto* keys = reinterpret_cast<typename Op::Key*>(storage);
        I entry = tile_entry[blockIdx.x];
        int entries = (int)(tile_entry[blockIdx.x + 1] - entry);
        if (row < 0)
            reduce_chunk(indptr, indices, (I)~row, entry, entries, op, partials, chunks_done,
                         reinterpret_cast<typename Op::Accumulator*>(storage));
        else if (!settled && !charged)
            propose_rows<TILE, true>(indptr, indices, row, (int)(end - row), entry, entries, op, keys, starts);
        else
            propose_rows<TILE, false>(indptr, indices, row, (int)(end - row), entry, entries, op, keys, starts);
    }
    bool any = __syncthreads_or(op.proposed);
    if (any && threadIdx.x == 0 && load_relaxed(proposed) == 0) store_relaxed(proposed, 1);
}

// ---- confirm ----

// One thread per vertex, whole warps.  A vertex that found nobody in a round without charges never
// will, and its neighbours know that it has no use for them: its room is closed.  Not so where the
// matrix has no symmetry (`directed`), which also wants to know whether anything was confirmed.
// Of the flags thread 0 alone has to do with STOP and ROUNDS; after a stop nothing is proposed and
// nothing changes.
template <typename I, int N>
__global__ void confirm(I rows, int n, const I* __restrict__ neighbours, unsigned char* __restrict__ confirmed,
                        unsigned long long* state, bool charged, bool charge_next, unsigned int r_next,
                        unsigned long long barrier, int k, bool directed, int* flags, int slot)
{
    long long v = global_thread();
    if (!charged && flags[PROPOSED + slot] == 0) {  // line 23: maximal, if not found so before
        if (v == 0 && flags[STOP] == 0) {
            flags[ROUNDS] = k + 1;
            flags[STOP] = 1;
        }
        return;
    }
    if ((v & ~31ll) >= rows) return;
    unsigned long long word = state[v / 32];
    if ((unsigned)word == 0) return;
    bool room = v < rows && has_room(word, (unsigned)v), news = false;
    if (room) {
        unsigned taken = confirmed[v], all = (1u << n) - 1, now = taken;
        bool any = false;
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if (s >= n || (taken >> s & 1)) continue;
            I w = neighbours[v * n + s];
            if (w < 0) continue;
            any = true;
            bool mutual = false;
#pragma unroll
            for (int t = 0; t < N; ++t)
                if (t < n) mutual |= neighbours[(long long)w * n + t] == (I)v;
            if (mutual) now |= 1u << s;
        }
        news = now != taken;
        if (news) confirmed[v] = (unsigned char)now;
        room = now != all && (charged || any || directed);
    }
    write_state(&state[v / 32], room, room && charge_next && random_bit((unsigned)v, r_next, barrier));
    if (directed && __any_sync(ALL, news) && lane() == 0) store_relaxed(&flags[ANSWERED + slot], 1);
}

// ---- settle ----

// One thread per vertex.
template <typename I, typename W>
__global__ void settle(I rows, int n, unsigned long long seed, bool by_hash,
                       const unsigned char* __restrict__ confirmed, I* __restrict__ neighbours,
                       W* __restrict__ weights)
{
    long long v = global_thread();
    if (v >= rows) return;
    unsigned taken = confirmed[v];
    I* list = neighbours + v * n;
    W* weight = weights + v * n;
    int kept = 0;
    for (int s = 0; s < n; ++s) {
        if (!(taken >> s & 1)) continue;
        I w = list[s];
        W heavy = weight[s];
        int place = kept++;
        for (; place > 0 && prefers(heavy, (I)v, w, weight[place - 1], (I)v, list[place - 1], seed, by_hash); --place) {
            list[place] = list[place - 1];
            weight[place] = weight[place - 1];
        }
        list[place] = w;
        weight[place] = heavy;
    }
    for (; kept < n; ++kept) {
        list[kept] = I(-1);
        weight[kept] = W(0);
    }
}
