// What a vertex does with the entries of its row in a round of proposals: take those it prefers.
// The arrays: gpu.cu.  Who reads which entries: proposal_tiles.cuh.
#pragma once
#include "matchwood/preferences.cuh"
#include "matchwood/rooms.cuh"
#include "matchwood/row_reduce.cuh"

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
    // The first of every `width` lanes gets what all of them hold.  All lanes of the warp call.
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
