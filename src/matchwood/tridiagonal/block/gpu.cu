// The 2x2 block tridiagonal solver on the GPU: as ../plain/gpu.cu, with blocks for numbers.  Host: gpu.py.
//
//   reduce_rows, substitute_rows   the two passes over the rows: ../passes.cuh
//   join, top, expand              from the elements to their ends: ../elements.cuh
//   repair                         rows that are off: ../passes.cuh
//
// This file: what a thread does with its part of ROWS block rows.  With `perm`, equation i of block row r has its
// right-hand side at b[perm[2 r + i]].  A negative place is a dummy unknown: its right-hand side is 1, and its
// solution is not written.

#include "matchwood/passes.cuh"

constexpr int CHUNKS = 16;       // chunks of 16 bytes per thread, of each of dl, d, du
constexpr int RIGHT_CHUNKS = 8;  // chunks per thread of the right-hand side
constexpr int ARRAY = CHUNKS * TILE_THREADS;  // chunks of an array in the tile
[[maybe_unused]] constexpr int PART_BYTES = 16 * CHUNKS;  // bytes per thread, of each of dl, d, du

template <typename T>
struct Rows {
    static constexpr int P = 2;
    static constexpr int ROWS = ::CHUNKS * 16 / (4 * sizeof(T));  // 16 or 8: at most 2 WORD + 2
    static constexpr int CHUNKS = ::CHUNKS, RIGHT_CHUNKS = ::RIGHT_CHUNKS, ARRAY = ::ARRAY;
    static constexpr int BLOCK = ROWS * TILE_THREADS;  // block rows of a thread block
    static constexpr int SOLUTION = 3 * ::ARRAY;       // place in the tile: that of the right-hand side
};

// The row exchanges in a part: nine possible ones for each block row, a bit each; seven block rows per word.
constexpr int EXCHANGES = 5 + 4, WORD = 7;

struct Picks {
    unsigned long long first, second;

    __device__ __forceinline__ void put(int k, unsigned made)
    {
        if (k < WORD) {
            first |= (unsigned long long)made << (k * EXCHANGES);
        } else {
            second |= (unsigned long long)made << ((k - WORD) * EXCHANGES);
        }
    }
    __device__ __forceinline__ unsigned get(int k) const
    {
        return (unsigned)(k < WORD ? first >> (k * EXCHANGES) : second >> ((k - WORD) * EXCHANGES));
    }
};

template <typename T>
__device__ __forceinline__ void get_block(const Chunk* tile, int row, T (&block)[4])
{
    constexpr int EACH = 16 / sizeof(T);
#pragma unroll
    for (int c = 0; c < 4 / EACH; ++c) {
        T values[EACH];
        get_chunk<CHUNKS>(tile, row * (4 / EACH) + c, values);
#pragma unroll
        for (int v = 0; v < EACH; ++v) block[c * EACH + v] = values[v];
    }
}

template <typename T>
__device__ __forceinline__ void put_block(Chunk* tile, int row, const T (&block)[4])
{
    constexpr int EACH = 16 / sizeof(T);
#pragma unroll
    for (int c = 0; c < 4 / EACH; ++c) {
        T values[EACH];
#pragma unroll
        for (int v = 0; v < EACH; ++v) values[v] = block[c * EACH + v];
        put_chunk<CHUNKS>(tile, row * (4 / EACH) + c, values);
    }
}

// The right-hand side, two numbers, of block row `row` of this thread.
template <typename T>
__device__ __forceinline__ T* right_of(Chunk* tile, int row)
{
    return &tile_item<RIGHT_CHUNKS, T>(tile, (threadIdx.x * Rows<T>::ROWS + row) * 2);
}

// Put block row `row` of this thread into equations AT, AT+1 of w, its blocks from column FROM on.
template <int AT, int FROM, int R, int C, typename T>
__device__ __forceinline__ void equations(T (&w)[R][C], Size<T> (&size)[R], Chunk* tile, int row, unsigned& least)
{
    T lower[4], diagonal[4], upper[4];
    get_block(tile, row, lower);
    get_block(tile + ARRAY, row, diagonal);
    get_block(tile + 2 * ARRAY, row, upper);
    const T* right = right_of<T>(tile + 3 * ARRAY, row);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int k = 0; k < C; ++k) w[AT + i][k] = T(0);
        size[AT + i] = Size<T>(0);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            T a = lower[2 * i + k], b = diagonal[2 * i + k], c = upper[2 * i + k];
            if (FROM + k >= 0) w[AT + i][FROM + k >= 0 ? FROM + k : 0] = a;
            if (FROM + 2 + k >= 0) w[AT + i][FROM + 2 + k >= 0 ? FROM + 2 + k : 0] = b;
            w[AT + i][FROM + 4 + k] = c;
            size[AT + i] = larger(larger(size[AT + i], size_of(a)), larger(size_of(b), size_of(c)));
        }
        least = smaller_rank(least, size[AT + i]);
        size[AT + i] = larger(size[AT + i], least_size<T>());
        w[AT + i][C - 1] = right[i];
    }
}

// After X[j] is eliminated, the other equations move up, and X[j+1] takes its place.
template <int LEFT, int C, typename T>
__device__ __forceinline__ void move_up(T (&w)[6][C], Size<T> (&size)[6])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int k = 0; k < LEFT; ++k) w[i][k] = w[i + 2][k];
#pragma unroll
        for (int k = 0; k < 4; ++k) w[i][LEFT + k] = w[i + 2][LEFT + 2 + k];
        w[i][LEFT + 4] = w[i][LEFT + 5] = T(0);
        w[i][C - 1] = w[i + 2][C - 1];
        size[i] = size[i + 2];
    }
}

// Reduce this thread's part to its element, four equations in (X[s-1], X[s] | X[e], X[e+1]).
template <typename T>
__device__ __forceinline__ void reduce_part(Chunk* tile, Elements<2, T> out, long long part, unsigned long long* status)
{
    T w[6][11];  // left 4 | X[j] | X[j+1] | X[j+2] | right-hand side
    Size<T> size[6], most = least_size<T>();
    unsigned least = ~0u;
    Picks picks = {0, 0};
    int lacking = -1;
    equations<0, 0>(w, size, tile, 0, least);
    equations<2, 2>(w, size, tile, 1, least);
#pragma unroll
    for (int i = 0; i < 4; ++i) most = larger(most, larger(size[i], size_of(w[i][10])));
#pragma unroll 1
    for (int j = 2; j < Rows<T>::ROWS; ++j) {
        equations<4, 4>(w, size, tile, j, least);
        most = larger(most, larger(larger(size[4], size_of(w[4][10])), larger(size[5], size_of(w[5][10]))));
        unsigned made = 0;
        if (eliminate<4, 2, 2, 2>(w, size, made) >= 0 && lacking < 0) lacking = j - 1;
        picks.put(j - 2, made >> (32 - EXCHANGES));
        move_up<4>(w, size);
    }
    if (lacking >= 0) fail(status, SINGULAR, part * Rows<T>::ROWS + lacking);
    T finite = T(0);  // an infinity or NaN in any row has spread to all equations
#pragma unroll
    for (int k = 0; k < 11; ++k) finite += T(0) * w[0][k] + T(0) * w[3][k];
    bool fits = !too_small<T>(least) && as_number(most) <= large<T>();
    if (!(finite == T(0) && fits)) fail(status, NOT_FINITE, part * Rows<T>::ROWS);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int k = 0; k < 8; ++k) out.at(part, i, k) = w[i][k];
        out.at(part, i, 8) = w[i][10];
    }
    put_picks<Elements<2, T>::FIELDS>(out.data, out.total, part, picks.first);
    put_picks<Elements<2, T>::FIELDS + 2>(out.data, out.total, part, picks.second);
}

template <typename T>
__device__ __forceinline__ Picks picks_of(Elements<2, T> known, long long part)
{
    return {get_picks<Elements<2, T>::FIELDS>(known.data, known.total, part, 64),
            get_picks<Elements<2, T>::FIELDS + 2>(known.data, known.total, part, 64)};
}

// Read items of an array, from item `at` on, into registers; zeros past its end.
template <typename T>
__device__ __forceinline__ void read_chunk(const T* array, long long at, long long size, T (&values)[16 / sizeof(T)])
{
    constexpr int EACH = 16 / sizeof(T);
    if (at + EACH <= size && ((unsigned long long)(array + at) & 15) == 0) {
        uint4 whole = *(const uint4*)(array + at);
        memcpy(values, &whole, 16);
    } else {
#pragma unroll
        for (int v = 0; v < EACH; ++v) values[v] = at + v < size ? array[at + v] : T(0);
    }
}

template <typename T>
__device__ __forceinline__ void read_block(const T* blocks, long long row, long long n, T (&values)[4])
{
    constexpr int EACH = 16 / sizeof(T);
#pragma unroll
    for (int c = 0; c < 4 / EACH; ++c) {
        T some[EACH];
        read_chunk(blocks, 4 * row + c * EACH, 4 * n, some);
#pragma unroll
        for (int v = 0; v < EACH; ++v) values[c * EACH + v] = some[v];
    }
}

// Mark the rows of this thread block that are off.  The solution is in shared memory.  The pivot rows have overwritten
// the rows there, so the rows are read again, from the cache.  One block row per thread at a time.
template <typename T>
__device__ __forceinline__ void mark_rows(Chunk* solution, long long n, const T* dl, const T* d, const T* du,
                                          const T* b, const T* ends, unsigned* mine, unsigned* marks,
                                          RowChecker<T>& checker)
{
    constexpr int BLOCK = Rows<T>::BLOCK;
    if (mine != nullptr) *mine = 0;
    __syncwarp();
    long long first = (long long)blockIdx.x * BLOCK;
    long long beyond = (long long)(blockIdx.x + 1) * TILE_THREADS;  // the part after the block's last
    const T* outer = ends + 4 * (beyond - TILE_THREADS);
#pragma unroll 1
    for (int j = threadIdx.x; j < BLOCK; j += TILE_THREADS) {
        long long row = first + j;
        if (row >= n) break;
        T lower[4], diagonal[4], upper[4], left[2], here[2], right[2];
        read_block(dl, row, n, lower);
        read_block(d, row, n, diagonal);
        read_block(du, row, n, upper);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            here[k] = tile_item<RIGHT_CHUNKS, T>(solution, 2 * j + k);
            checker.unknown(here[k]);
            left[k] = j == 0 ? outer[k] : tile_item<RIGHT_CHUNKS, T>(solution, 2 * j - 2 + k);
            right[k] = T(0);
            if (row < n - 1)
                right[k] = j + 1 < BLOCK ? tile_item<RIGHT_CHUNKS, T>(solution, 2 * j + 2 + k)
                                         : outer[4 * TILE_THREADS + 2 + k];
            checker.unknown(left[k]), checker.unknown(right[k]);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            T terms[6];
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                terms[k] = row > 0 ? lower[2 * i + k] * left[k] : T(0);
                terms[2 + k] = diagonal[2 * i + k] * here[k];
                terms[4 + k] = row < n - 1 ? upper[2 * i + k] * right[k] : T(0);
            }
            checker.row(terms, b[2 * row + i], 1u << i);
        }
        if (checker.marks != 0) atomicOr(&marks[row / Rows<T>::ROWS], 1u << row % Rows<T>::ROWS);
        checker.next();
    }
    __syncwarp();
}

// The unknowns of this thread's part, from its ends `mine`: four numbers before the part, four after it.  The two
// pivot rows of X[j-1] overwrite block row j; the solution overwrites the right-hand side.
template <bool CHECK, typename T>
__device__ __forceinline__ void substitute_part(Chunk* tile, const T* mine, Picks picks, RowChecker<T>&, Checking<CHECK>)
{
    constexpr int ROWS = Rows<T>::ROWS;
    Size<T> unused[6];
    unsigned least;
    T w[6][7];  // X[j] | X[j+1] | X[j+2] | right-hand side
    T before[4], lower[4], diagonal[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) before[k] = mine[k];
    equations<0, -4>(w, unused, tile, 0, least);
    equations<2, -2>(w, unused, tile, 1, least);
    get_block(tile, 0, lower);
    get_block(tile + ARRAY, 0, diagonal);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        w[i][6] -= lower[2 * i] * before[0] + lower[2 * i + 1] * before[1];
        w[i][6] -= diagonal[2 * i] * before[2] + diagonal[2 * i + 1] * before[3];
    }
    get_block(tile, 1, lower);
#pragma unroll
    for (int i = 0; i < 2; ++i) w[2 + i][6] -= lower[2 * i] * before[2] + lower[2 * i + 1] * before[3];
#pragma unroll 1
    for (int j = 2; j < ROWS; ++j) {
        equations<4, 0>(w, unused, tile, j, least);
        unsigned made = picks.get(j - 2);
        eliminate_column<true, 0, 0>(w, unused, made);
        eliminate_column<true, 0, 1>(w, unused, made);
        T one[4] = {w[0][1], w[0][2], w[0][3], w[0][4]};
        T two[4] = {w[0][5], w[0][6], w[1][2], w[1][3]};
        T three[4] = {w[1][4], w[1][5], w[1][6], T(0)};
        put_block(tile, j, one);
        put_block(tile + ARRAY, j, two);
        put_block(tile + 2 * ARRAY, j, three);
        move_up<0>(w, unused);
    }
    T near[2] = {mine[4], mine[5]}, far[2] = {mine[6], mine[7]};
#pragma unroll 1
    for (int j = ROWS - 1; j >= 1; --j) {  // X[j] is `near`
        T* place = right_of<T>(tile + 3 * ARRAY, j);
        place[0] = near[0], place[1] = near[1];
        T one[4], two[4], three[4];
        get_block(tile, j, one);
        get_block(tile + ARRAY, j, two);
        get_block(tile + 2 * ARRAY, j, three);
        T second = three[2] - two[2] * near[0] - two[3] * near[1] - three[0] * far[0] - three[1] * far[1];
        T first = two[1] - one[0] * second - one[1] * near[0] - one[2] * near[1] - one[3] * far[0] -
                  two[0] * far[1];
        far[0] = near[0], far[1] = near[1];
        near[0] = first, near[1] = second;
    }
    T* place = right_of<T>(tile + 3 * ARRAY, 0);
    place[0] = before[2], place[1] = before[3];
}
