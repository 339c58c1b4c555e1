// Vertices that are known to be in one component, on the GPU.  Host side, and the steps: gpu_giant.py.
//
//   mark_tree     a bit for each vertex of an owner that is in the largest tree of this rank
//   meet          which two ranks marked the same vertex
//   find_known    the smallest local vertex that is known
//   join_known    all known ones under it
//   set_largest   their root is the one whose rows are left out
//
// A rank has `words` words of 32 bits for the places of an owner, the same number for all owners.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"
#include "matchwood/union_find.cuh"

// One thread to a place of the owner whose vertices are base + place * step, and to bits too many.  Trees are flat.
template <typename I>
__global__ void mark_tree(I base, I step, I size, long long words, const I* parent, const I* largest, unsigned* bits,
                          unsigned long long* count)
{
    long long k = global_thread();
    bool marked = k < size && *largest >= 0 && parent[base + (I)k * step] == *largest;
    unsigned votes = __ballot_sync(ALL, marked);
    if (lane() != 0 || k / WARP >= words) return;
    bits[k / WARP] = votes;
    if (votes != 0) take(count, (unsigned long long)__popc(votes));
}

// One thread to a word of all `ranks` ranks.
__global__ void meet(long long words, int ranks, const unsigned* bits, unsigned char* meets)
{
    long long w = global_thread();
    if (w >= words) return;
    for (int one = 1; one < ranks; ++one) {
        unsigned mine = bits[one * words + w];
        if (mine == 0) continue;
        for (int other = 0; other < one; ++other) {
            unsigned char* found = &meets[one * ranks + other];
            if ((mine & bits[other * words + w]) != 0 && load_relaxed(found) == 0) store_relaxed(found, (unsigned char)1);
        }
    }
}

// Known vertices of the ranks of the row and of the column.
template <typename I>
struct Known {
    int R, C, r;
    I n_rows;
    long long words;
    const unsigned *rows, *columns;
    __device__ __forceinline__ bool has(I v) const
    {
        const unsigned* bits = rows;
        I place = v / C;
        int rank = (int)(v % C);
        if (v >= n_rows) {
            v -= n_rows;
            bits = columns;
            place = v / (R - 1);
            rank = (int)(v % (R - 1));
            rank += rank >= r;
        }
        return bits[rank * words + place / WARP] >> (place % WARP) & 1;
    }
};

template <typename I>
__global__ void find_known(I n, int R, int C, int r, I n_rows, long long words, const unsigned* rows,
                           const unsigned* columns, I* least)
{
    long long v = global_thread();
    if (v >= n || !Known<I>{R, C, r, n_rows, words, rows, columns}.has((I)v)) return;
    if ((I)v < load_relaxed(least)) lower_to(least, (I)v);
}

template <typename I>
__global__ void join_known(I n, int R, int C, int r, I n_rows, long long words, const unsigned* rows,
                           const unsigned* columns, const I* least, I* parent)
{
    long long v = global_thread();
    if (v >= n || !Known<I>{R, C, r, n_rows, words, rows, columns}.has((I)v)) return;
    join_ends(parent, (I)v, *least);
}

template <typename I>
__global__ void set_largest(I n, const I* least, const I* parent, I* largest)
{
    *largest = *least < n ? parent[*least] : I(-1);
}
