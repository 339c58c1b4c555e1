// Entries that are kept, and their magnitudes.  Host: gpu.py.
//
//   mark_...   a bit for each entry; how many are kept in each part, and in it before each word
//   (gpu.py scans the counts of the parts)
//   move_...   to their places; rows to theirs
//
// A part is what a warp marks: PART entries, WORDS words of 32 bits.  The bits are all that the second
// pass needs of the first; it reads no rows.
#include "matchwood/entry_rows.cuh"
#include "matchwood/exact.cuh"

constexpr int PART = WARP * EACH, WORDS = PART / WARP;

// One bit for each of this thread's entries: kept(e, row).  Past the end column and row are both 0,
// as on the diagonal.
template <typename I, typename Kept>
__device__ __forceinline__ void mark(long long first, int count, const I* __restrict__ indptr,
                                     const I* __restrict__ first_row, unsigned int* words,
                                     unsigned char* __restrict__ before, int* __restrict__ counts,
                                     Kept kept)
{
    static_assert(EACH == 8, "the entries of a thread fill a byte");
    I row[EACH];
    find_rows(indptr, first_row, blockIdx.x, first, count, row);
    unsigned int bits = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) bits |= (unsigned int)kept(e, row[e]) << e;
    reinterpret_cast<unsigned char*>(words)[first / EACH] = (unsigned char)bits;
    int place = warp_exclusive_sum(__popc(bits));  // at most PART - EACH in the last lane
    if (lane() % (WARP / EACH) == 0) before[first / WARP] = (unsigned char)place;
    if (lane() == WARP - 1) counts[first / PART] = place + __popc(bits);
}

// Off the diagonal.
template <typename I>
__global__ void __launch_bounds__(CHUNK_THREADS)
mark_loops(long long m, const I* __restrict__ indptr, const I* __restrict__ indices,
           const I* __restrict__ first_row, unsigned int* words, unsigned char* before, int* counts)
{
    long long first = first_entry(blockIdx.x);
    int count = entries_here(first, m);
    I col[EACH];
    load_entries(indices, first, count, col);
    mark(first, count, indptr, first_row, words, before, counts,
         [&](int e, I row) { return col[e] != row; });
}

// Off the diagonal and not zero.
template <typename I, typename W>
__global__ void __launch_bounds__(CHUNK_THREADS)
mark_zeros(long long m, const I* __restrict__ indptr, const I* __restrict__ indices,
           const W* __restrict__ data, const I* __restrict__ first_row, unsigned int* words,
           unsigned char* before, int* counts)
{
    long long first = first_entry(blockIdx.x);
    int count = entries_here(first, m);
    I col[EACH];
    W weight[EACH];
    load_entries(indices, first, count, col);
    load_entries(data, first, count, weight);
    mark(first, count, indptr, first_row, words, before, counts,
         [&](int e, I row) { return col[e] != row && !is_zero(weight[e]); });
}

// One thread per row: where it starts among the entries that are kept.
template <typename I>
__global__ void move_rows(long long n, long long m, const I* __restrict__ indptr,
                          const unsigned int* __restrict__ words,
                          const unsigned char* __restrict__ before,
                          const long long* __restrict__ starts, I* __restrict__ out_indptr)
{
    long long r = global_thread();
    if (r > n) return;
    long long k = indptr[r];
    // past the last entry there may be no word
    out_indptr[r] = k < m ? (I)(starts[k / PART] + before[k / WARP] +
                                __popc(words[k / WARP] & ((1u << k % WARP) - 1)))
                          : (I)starts[(m + PART - 1) / PART];
}

// A warp takes a part, a word in each turn.  Calls load(e, k) for entry k of this lane in word e,
// and store(e, place) where it is kept.  All loads are before the first store: entries that are not
// kept are read as well, and past the end the last one again.
template <typename Load, typename Store>
__device__ __forceinline__ void move(long long m, const unsigned int* __restrict__ words,
                                     const unsigned char* __restrict__ before,
                                     const long long* __restrict__ starts, Load load, Store store)
{
    long long part = global_thread() / WARP;
    unsigned int word[WORDS];
    int place[WORDS];
#pragma unroll
    for (int e = 0; e < WORDS; ++e) {
        load(e, min(part * PART + e * WARP + lane(), m - 1));
        word[e] = words[part * WORDS + e];
        place[e] = before[part * WORDS + e];
    }
    long long start = starts[part];
#pragma unroll
    for (int e = 0; e < WORDS; ++e)
        if (word[e] >> lane() & 1) store(e, start + place[e] + __popc(word[e] & lanes_below()));
}

template <typename I>
__global__ void __launch_bounds__(CHUNK_THREADS)
move_pattern(long long m, const unsigned int* __restrict__ words,
             const unsigned char* __restrict__ before, const long long* __restrict__ starts,
             const I* __restrict__ indices, I* __restrict__ out_indices)
{
    I col[WORDS];
    move(
        m, words, before, starts, [&](int e, long long k) { col[e] = indices[k]; },
        [&](int e, long long to) { out_indices[to] = col[e]; });
}

template <typename I, typename W>
__global__ void __launch_bounds__(CHUNK_THREADS)
move_weights(long long m, const unsigned int* __restrict__ words,
             const unsigned char* __restrict__ before, const long long* __restrict__ starts,
             const I* __restrict__ indices, const W* __restrict__ data, I* __restrict__ out_indices,
             W* __restrict__ out_data)
{
    I col[WORDS];
    W weight[WORDS];
    move(
        m, words, before, starts,
        [&](int e, long long k) {
            col[e] = indices[k];
            weight[e] = data[k];
        },
        [&](int e, long long to) {
            out_indices[to] = col[e];
            out_data[to] = magnitude(weight[e]);
        });
}

template <typename W>
__global__ void take_magnitudes(long long m, const W* __restrict__ data, W* __restrict__ out)
{
    long long k = global_thread();
    if (k < m) out[k] = magnitude(data[k]);
}
