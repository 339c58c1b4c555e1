// Tiles in shared memory, pivoting in registers, then elements: the equations left of many rows (elements/cpu.py).
//
// An element is 2 P equations in X[s-1], X[s] | X[e], X[e+1].  Each has 4 P coefficients and a right-hand side;
// an element has FIELDS such numbers.  Field f of element k is at data[f * total + k], where `total` and the
// first k of a level are multiples of EACH.  After these fields, elements that are parts have 2 P more words:
// the rows of their pivots.  An end is the 2 P numbers X[s-1] and X[s]; end k is before element k.
//
// A thread block joins its elements to one.  Each thread joins EACH of them in registers, one after the other.
// Then follows a binary tree in shared memory, in place: at step s element i becomes the join of i and i + s.
// Equations that give the unknowns between two joined elements from those around are kept, in registers or in
// the place of element i + s.  With the outer ends known, the way back gives the ends between.  At each step a
// thread reads and writes only the two places that it joins; barriers separate the steps.
#pragma once

#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

// Tiles of arrays in shared memory: loaded in whole cache lines, then each thread reads its own consecutive part.
//
// A thread block is one warp.  Each of its threads owns CHUNKS consecutive chunks of 16 bytes of every array.  In
// the order of global memory, eight neighbouring threads would read from the same banks.  So the lowest three bits
// of a chunk's number are combined by XOR with those of its thread.  Then any eight threads that read their k-th
// chunk use eight different groups of banks.
//
// Loops over chunks are unrolled and of known length, so that places are one address plus constants.  Computing
// each place took a fifth of all instructions.

struct alignas(16) Chunk {
    unsigned int word[4];
};

constexpr int TILE_THREADS = 32;  // threads of a block: one warp

template <int CHUNKS>
__device__ __forceinline__ int chunk_place(int chunk)
{
    static_assert(CHUNKS == 8 || CHUNKS == 16, "chunks of a thread");
    return chunk ^ ((chunk / CHUNKS) & 7);
}

// The place of chunk TILE_THREADS * j + thread, from that of chunk `thread`; what depends on j is a constant.
template <int CHUNKS>
__device__ __forceinline__ int chunk_place(int thread_place, int j)
{
    return TILE_THREADS * j + (thread_place ^ ((TILE_THREADS / CHUNKS * j) & 7));
}

// Copy 16 bytes from global to shared memory without waiting; `tile_loaded` waits.
__device__ __forceinline__ void copy_chunk(Chunk* to, const void* from)
{
#if __CUDA_ARCH__ >= 800
    unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    *to = *(const Chunk*)from;
#endif
}

__device__ __forceinline__ void tile_loaded()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp();
}

template <int CHUNKS, typename T>
__device__ __forceinline__ T& tile_item(Chunk* tile, int item)
{
    constexpr int EACH = 16 / sizeof(T);
    return ((T*)(tile + chunk_place<CHUNKS>(item / EACH)))[item % EACH];
}

// Load the tile from an array of `size` items, from item `first` on; items past the end become `filler(item)`.
// All threads of the block call; `tile_loaded` must follow.
template <int CHUNKS, typename T, typename Filler>
__device__ __forceinline__ void load_tile(Chunk* tile, const T* array, long long first, long long size,
                                          Filler filler)
{
    constexpr int EACH = 16 / sizeof(T), CHUNKS_ALL = CHUNKS * TILE_THREADS;
    const T* begin = array + first;
    if (first + CHUNKS_ALL * EACH <= size && ((unsigned long long)begin & 15) == 0) {
        int place = chunk_place<CHUNKS>(threadIdx.x);
        const Chunk* from = (const Chunk*)begin + threadIdx.x;
#pragma unroll
        for (int j = 0; j < CHUNKS; ++j) copy_chunk(tile + chunk_place<CHUNKS>(place, j), from + j * TILE_THREADS);
    } else {
        for (int i = threadIdx.x; i < CHUNKS_ALL * EACH; i += TILE_THREADS)
            tile_item<CHUNKS, T>(tile, i) = first + i < size ? begin[i] : filler(i);
    }
}

// Read chunk number `chunk` of this thread.
template <int CHUNKS, typename T>
__device__ __forceinline__ void get_chunk(const Chunk* tile, int chunk, T (&values)[16 / sizeof(T)])
{
    Chunk whole = tile[chunk_place<CHUNKS>((int)threadIdx.x * CHUNKS + chunk)];
    memcpy(values, &whole, 16);
}

template <int CHUNKS, typename T>
__device__ __forceinline__ void put_chunk(Chunk* tile, int chunk, const T (&values)[16 / sizeof(T)])
{
    Chunk whole;
    memcpy(&whole, values, 16);
    tile[chunk_place<CHUNKS>((int)threadIdx.x * CHUNKS + chunk)] = whole;
}

// Store the tile to an array, from item `first` on.  All threads of the block call, after __syncwarp.
template <int CHUNKS, typename T>
__device__ __forceinline__ void store_tile(Chunk* tile, T* array, long long first, long long size)
{
    constexpr int EACH = 16 / sizeof(T), CHUNKS_ALL = CHUNKS * TILE_THREADS;
    T* begin = array + first;
    if (first + CHUNKS_ALL * EACH <= size && ((unsigned long long)begin & 15) == 0) {
        int place = chunk_place<CHUNKS>(threadIdx.x);
        Chunk* to = (Chunk*)begin + threadIdx.x;
#pragma unroll
        for (int j = 0; j < CHUNKS; ++j) to[j * TILE_THREADS] = tile[chunk_place<CHUNKS>(place, j)];
    } else {
        for (int i = threadIdx.x; i < CHUNKS_ALL * EACH; i += TILE_THREADS)
            if (first + i < size) begin[i] = tile_item<CHUNKS, T>(tile, i);
    }
}

// Item i of the tile becomes array[order[first + i]], and a copy of it goes to gathered[first + i]; 1 where the
// order is negative, 0 past the end.  All indices are loaded before the first is used, so that loads overlap.
template <int CHUNKS, typename T, typename I>
__device__ __forceinline__ void gather_tile(Chunk* tile, const T* array, const I* order, long long first,
                                            long long size, T* gathered)
{
    constexpr int EACH = CHUNKS * 16 / sizeof(T);
    I place[EACH];
    T value[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        long long i = first + k * TILE_THREADS + threadIdx.x;
        place[k] = order[i < size ? i : 0];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) value[k] = place[k] >= 0 ? array[place[k]] : T(1);
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        int i = k * TILE_THREADS + threadIdx.x;
        bool there = first + i < size;
        tile_item<CHUNKS, T>(tile, i) = there ? value[k] : T(0);
        if (there) gathered[first + i] = value[k];
    }
}

// Item i of the tile goes to array[order[first + i]], unless that place is negative.  Caller: __syncwarp before.
template <int CHUNKS, typename T, typename I>
__device__ __forceinline__ void scatter_tile(Chunk* tile, T* array, const I* order, long long first, long long size)
{
    constexpr int EACH = CHUNKS * 16 / sizeof(T);
    I place[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        long long i = first + k * TILE_THREADS + threadIdx.x;
        place[k] = i < size ? order[i] : I(-1);
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k)
        if (place[k] >= 0) array[place[k]] = tile_item<CHUNKS, T>(tile, k * TILE_THREADS + threadIdx.x);
}

// A few equations in registers: sizes of rows, pivots, elimination.
//
// A pivot is compared relative to the size of its row, the largest coefficient that the row has or had.  So a row
// that grows becomes a worse pivot, and no row grows without bound.  See docs/problems/tridiagonal.rst.

// Absolute values cost nothing as operands of an instruction; a comparison would take two instructions more.
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }

// The rounding unit of the type.  A zero pivot is replaced by a number of the size of rounding errors.
template <typename T>
__device__ __forceinline__ T epsilon() { return sizeof(T) == 8 ? T(2.220446049250313e-16) : T(1.1920929e-7); }

// 1 / x, with an error of at most one rounding unit; infinite or zero for floats below 2^-126 or above 2^126.  Takes
// a tenth of the instructions of a division.
__device__ __forceinline__ float inverse_of(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1 / x;
#endif
}
__device__ __forceinline__ double inverse_of(double x)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = fma(y, fma(-x, y, 1.0), y);
    return fma(y, fma(-x, y, 1.0), y);
#else
    return 1 / x;
#endif
}

// Sizes of rows, relative to which pivots are compared.  For a double the upper 32 bits are precise enough, as an
// integer: a maximum of integers is one instruction instead of three.
__device__ __forceinline__ float size_of(float x) { return fabsf(x); }
__device__ __forceinline__ int size_of(double x) { return __double2hiint(x) & 0x7fffffff; }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ int larger(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ float as_number(float size) { return size; }
__device__ __forceinline__ double as_number(int size) { return __hiloint2double(size, 0); }
template <typename T>
using Size = decltype(size_of(T()));

// Sizes are multiplied with coefficients, so they must lie between 1 / large and large.  No size is below
// least_size, so that a row of zeros is no pivot.
template <typename T>
__device__ __forceinline__ T large() { return sizeof(T) == 8 ? T(0x1p400) : T(0x1p60); }
template <typename T>
__device__ __forceinline__ Size<T> least_size() { return size_of(sizeof(T) == 8 ? T(0x1p-600) : T(0x1p-63)); }

// The smallest size so far, as an unsigned integer minus one, so that zero becomes the largest of all.  A row of
// zeros has no pivot at any scale, and must not count as a number that is too small.
__device__ __forceinline__ unsigned rank_of(float size) { unsigned bits; memcpy(&bits, &size, 4); return bits - 1; }
__device__ __forceinline__ unsigned rank_of(int size) { return (unsigned)size - 1; }
template <typename S>
__device__ __forceinline__ unsigned smaller_rank(unsigned least, S size)
{
    unsigned rank = rank_of(size);
    return rank < least ? rank : least;
}
template <typename T>
__device__ __forceinline__ bool too_small(unsigned least) { return least < rank_of(size_of(1 / large<T>())); }

// Is a row with pivot a and size a_size better than one with b and b_size?
template <typename T, typename S>
__device__ __forceinline__ bool better_pivot(T a, S a_size, T b, S b_size)
{
    return magnitude(a) * as_number(b_size) > magnitude(b) * as_number(a_size);
}

// The replacement of a zero pivot: a number of the size of the rounding errors of its row.
template <int FROM, int TO, int C, typename T>
__device__ __forceinline__ T stand_in(const T (&row)[C])
{
    T sum = T(0);
#pragma unroll
    for (int k = FROM; k < TO; ++k) sum += magnitude(row[k]);
    return sum > T(0) ? epsilon<T>() * sum : epsilon<T>();
}

template <int FIRST, int COLUMN, int C, typename T>
__device__ __forceinline__ void swap_rows(T (&a)[C], T (&b)[C], bool wanted)
{
#pragma unroll
    for (int k = 0; k < C; ++k) {
        if (k >= FIRST && k < COLUMN) continue;  // eliminated already
        T x = a[k], y = b[k];
        a[k] = wanted ? y : x;
        b[k] = wanted ? x : y;
    }
}

// Eliminate column FIRST + c by row c, whose pivot is not zero.
template <int FIRST, int COLUMN, int R, int C, typename T>
__device__ __forceinline__ void eliminate_below(T (&w)[R][C])
{
    constexpr int c = COLUMN - FIRST;
    T inverse = inverse_of(w[c][COLUMN]);
#pragma unroll
    for (int k = 0; k < C; ++k)
        if (k < FIRST || k > COLUMN) w[c][k] *= inverse;
#pragma unroll
    for (int i = c + 1; i < R; ++i) {
        T factor = w[i][COLUMN];
#pragma unroll
        for (int k = 0; k < C; ++k)
            if (k < FIRST || k > COLUMN) w[i][k] -= factor * w[c][k];
    }
}

// One column of `eliminate`.  `picks` gets a bit for each possible row exchange: was it made?  With REPEAT the
// bits are read from there.
template <bool REPEAT, int FIRST, int COLUMN, int R, int C, typename T>
__device__ __forceinline__ bool eliminate_column(T (&w)[R][C], Size<T> (&size)[R], unsigned& picks)
{
    constexpr int c = COLUMN - FIRST;
#pragma unroll
    for (int i = c + 1; i < R; ++i) {
        bool better;
        if (REPEAT) {
            better = picks & 1;
            picks >>= 1;
        } else {
            better = better_pivot(w[i][COLUMN], size[i], w[c][COLUMN], size[c]);
            picks = picks >> 1 | (better ? 0x80000000u : 0u);
            Size<T> a = size[c], b = size[i];
            size[c] = better ? b : a;
            size[i] = better ? a : b;
        }
        swap_rows<FIRST, COLUMN>(w[c], w[i], better);
    }
    bool none = w[c][COLUMN] == T(0);
    if (none) w[c][COLUMN] = stand_in<COLUMN + 1, C - 1>(w[c]);
    eliminate_below<FIRST, COLUMN>(w);
    return none;
}

// Eliminate columns FIRST..FIRST+COUNT-1 (one or two or four) of R equations by row pivoting; the pivot
// rows, divided by their pivots, end on top.  The last column is the right-hand side.  Pivots are compared
// relative to `size`, the largest coefficient that their row has or had.  It is updated first, except for the
// last NEW rows, whose size is up to date; the others have no coefficients in the last EMPTY columns.
// Returns the first column, counted from FIRST, that had no pivot, or -1.
template <int FIRST, int COUNT, int NEW = 0, int EMPTY = 0, int R, int C, typename T>
__device__ __forceinline__ int eliminate(T (&w)[R][C], Size<T> (&size)[R], unsigned& picks)
{
#pragma unroll
    for (int i = 0; i < R - NEW; ++i)
#pragma unroll
        for (int k = 0; k < C - 1 - EMPTY; ++k) size[i] = larger(size[i], size_of(w[i][k]));
    int lacking = -1;
    if (eliminate_column<false, FIRST, FIRST>(w, size, picks)) lacking = 0;
    if constexpr (COUNT > 1)
        if (eliminate_column<false, FIRST, FIRST + 1>(w, size, picks) && lacking < 0) lacking = 1;
    if constexpr (COUNT > 2)
        if (eliminate_column<false, FIRST, FIRST + 2>(w, size, picks) && lacking < 0) lacking = 2;
    if constexpr (COUNT > 3)
        if (eliminate_column<false, FIRST, FIRST + 3>(w, size, picks) && lacking < 0) lacking = 3;
    return lacking;
}

// Codes of faults; the smallest is reported.  Rows that are "off": tridiagonal/check.py.
constexpr unsigned NOT_FINITE = 1;
constexpr unsigned SINGULAR = 2;  // plus the level: a fault on a lower level counts first
constexpr unsigned OFF = 100;     // many rows are off, or one that cannot be repaired
constexpr unsigned SOME_OFF = 101;  // more rows are off than usual for a random matrix
constexpr unsigned FEW_OFF = 102;   // few rows are off; they can be repaired

// Threads of a tree of elements, and elements of each thread: for plain rows and for blocks.
constexpr int PLAIN_THREADS = 256, PLAIN_EACH = 4;
constexpr int BLOCK_THREADS = 64, BLOCK_EACH = 2;

template <int P, typename T>
struct Element {
    T row[2 * P][4 * P + 1];  // left 2 P | right 2 P | right-hand side
};

// The equations for the 2 P unknowns between two joined elements, one per row: coefficients of the left and of
// the right end, right-hand side.
template <int P, typename T>
struct Between {
    T row[2 * P][4 * P + 1];
};

// Join the neighbours a and b: a becomes the joined element.  Returns the first of the unknowns between them
// that had no pivot, or -1.
template <int P, typename T>
__device__ __forceinline__ int join_elements(Element<P, T>& a, const Element<P, T>& b, Between<P, T>& between)
{
    T w[4 * P][6 * P + 1];  // left 2 P | shared 2 P | right 2 P | right-hand side
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            w[i][4 * P + c] = T(0);
            w[2 * P + i][c] = T(0);
        }
#pragma unroll
        for (int c = 0; c < 4 * P; ++c) {
            w[i][c] = a.row[i][c];
            w[2 * P + i][2 * P + c] = b.row[i][c];
        }
        w[i][6 * P] = a.row[i][4 * P];
        w[2 * P + i][6 * P] = b.row[i][4 * P];
    }
    Size<T> size[4 * P];
#pragma unroll
    for (int i = 0; i < 4 * P; ++i) size[i] = least_size<T>();
    unsigned unused = 0;
    int lacking = eliminate<2 * P, 2 * P>(w, size, unused);
#pragma unroll
    for (int c = 2 * P - 1; c > 0; --c)  // eliminate the other shared unknowns from the pivot rows
#pragma unroll
        for (int i = 0; i < c; ++i)
#pragma unroll
            for (int k = 0; k < 6 * P + 1; ++k)
                if (k < 2 * P || k >= 4 * P) w[i][k] -= w[i][2 * P + c] * w[c][k];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            a.row[i][c] = w[2 * P + i][c];
            a.row[i][2 * P + c] = w[2 * P + i][4 * P + c];
            between.row[i][c] = w[i][c];
            between.row[i][2 * P + c] = w[i][4 * P + c];
        }
        a.row[i][4 * P] = w[2 * P + i][6 * P];
        between.row[i][4 * P] = w[i][6 * P];
    }
    return lacking;
}

// The end between two joined elements, from the ends to the left and to the right.
template <int P, typename T>
__device__ __forceinline__ void end_between(const Between<P, T>& between, const T* left, const T* right, T* end)
{
#pragma unroll
    for (int k = 0; k < 2 * P; ++k) {
        T value = between.row[k][4 * P];
#pragma unroll
        for (int c = 0; c < 2 * P; ++c)
            value -= between.row[k][c] * left[c] + between.row[k][2 * P + c] * right[c];
        end[k] = value;
    }
}

template <int P, typename T>
struct Elements {
    static constexpr int ROW = 4 * P + 1;
    static constexpr int FIELDS = 2 * P * ROW;  // numbers of an element; then 2 P words of picks, see gpu.cu

    T* data;
    long long total;

    // The number of rows that are off; it is stored after all fields.
    __device__ __forceinline__ unsigned* count() { return (unsigned*)(data + (FIELDS + 2 * P) * total); }

    __device__ __forceinline__ T& at(long long k, int row, int column)
    {
        return data[(row * ROW + column) * total + k];
    }
};

// The rows of the pivots of a part: bits in two words from field FIRST on.  They were shifted in from the top, so
// get_picks returns the upper `bits` bits.
template <int FIRST, typename T>
__device__ __forceinline__ void put_picks(T* data, long long total, long long part, unsigned long long picks)
{
    unsigned words[2] = {(unsigned)picks, (unsigned)(picks >> 32)};
#pragma unroll
    for (int k = 0; k < 2; ++k) memcpy(&data[(FIRST + k) * total + part], &words[k], 4);
}

template <int FIRST, typename T>
__device__ __forceinline__ unsigned long long get_picks(const T* data, long long total, long long part, int bits)
{
    unsigned words[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) memcpy(&words[k], &data[(FIRST + k) * total + part], 4);
    return ((unsigned long long)words[1] << 32 | words[0]) >> (64 - bits);
}

// The elements of one thread block on the way up and down.  Shared memory holds an element per thread and the
// ends beside them.  One number is left free after each 128 bytes, so that elements 2, 4, 8, ... apart, which a
// step of the tree reads at once, are in different banks.
template <int P, typename T>
struct Tree {
    static constexpr int THREADS = P == 1 ? PLAIN_THREADS : BLOCK_THREADS;
    static constexpr int EACH = P == 1 ? PLAIN_EACH : BLOCK_EACH;
    static constexpr int SIZE = THREADS * EACH;
    static constexpr int LINE = 128 / sizeof(T);
    static constexpr int STRIDE = THREADS + THREADS / LINE;
    static constexpr int ROW = 4 * P + 1;

    struct alignas(EACH * sizeof(T) < 16 ? EACH * sizeof(T) : 16) Pack {
        T item[EACH];
    };

    T* room;
    long long first;  // the first of the block's elements, within their level
    int count;        // the number of the block's elements
    int places;       // elements in shared memory
    Between<P, T> inner[EACH - 1];

    __device__ __forceinline__ Tree(void* shared, long long size)
    {
        room = (T*)shared;
        first = (long long)blockIdx.x * SIZE;
        count = (int)(size - first < SIZE ? size - first : SIZE);
        places = (count + EACH - 1) / EACH;
    }

    static __device__ __forceinline__ T& at(T* room, int k, int row, int column)
    {
        return room[(row * ROW + column) * STRIDE + k + k / LINE];
    }
    __device__ __forceinline__ T* ends() { return room + 2 * P * ROW * STRIDE; }

    static __device__ __forceinline__ Element<P, T> get(T* room, int k)
    {
        Element<P, T> found;
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c <= 4 * P; ++c) found.row[i][c] = at(room, k, i, c);
        }
        return found;
    }

    static __device__ __forceinline__ void put(T* room, int k, const Element<P, T>& made)
    {
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c <= 4 * P; ++c) at(room, k, i, c) = made.row[i][c];
        }
    }

    // One step of the tree at places a and b.
    static __device__ __noinline__ int join_places(T* room, int a, int b)
    {
        Element<P, T> left = get(room, a);
        Between<P, T> between;
        int lacking = join_elements(left, get(room, b), between);
        put(room, a, left);
#pragma unroll
        for (int i = 0; i < 2 * P; ++i)
#pragma unroll
            for (int c = 0; c <= 4 * P; ++c) at(room, b, i, c) = between.row[i][c];
        return lacking;
    }

    // Join all elements of the block to one at place 0; the level begins at `start`.  Element k of the level covers
    // `rows` rows from k * rows on; a fault is reported unless `status` is null.  Ends with a barrier.
    __device__ __forceinline__ void up(Elements<P, T> elements, long long start, unsigned level, long long rows,
                                       long long n, unsigned long long* status)
    {
        auto report = [&](int lacking, int right) {
            if (lacking < 0 || status == nullptr) return;
            long long row = (first + right) * rows - 1 + lacking / P;
            fail(status, SINGULAR + level, row < n ? row : n - 1);
        };
        int mine = threadIdx.x * EACH;
        if (mine < count) {
            Element<P, T> all[EACH];
            long long from = start + first + mine;
#pragma unroll
            for (int i = 0; i < 2 * P; ++i)
#pragma unroll
                for (int c = 0; c < ROW; ++c) {
                    Pack pack = *(const Pack*)&elements.at(from, i, c);
#pragma unroll
                    for (int e = 0; e < EACH; ++e) all[e].row[i][c] = pack.item[e];
                }
#pragma unroll
            for (int e = 1; e < EACH; ++e)
                if (mine + e < count) report(join_elements(all[0], all[e], inner[e - 1]), mine + e);
            put(room, threadIdx.x, all[0]);
        }
        __syncthreads();
        for (int s = 1; s < places; s *= 2) {
            int i = threadIdx.x * 2 * s;
            if (i + s < places) report(join_places(room, i, i + s), (i + s) * EACH);
            __syncthreads();
        }
    }

    // The way back: the ends beside the block are in shared memory; all its ends are written to `out`, the ends of
    // the level.  Caller: a barrier before.
    __device__ __forceinline__ void down(T* out)
    {
        T* known = ends();
        int s = 1;
        while (2 * s < places) s *= 2;
        for (; s > 0; s /= 2) {
            int i = threadIdx.x * 2 * s;
            if (i + s < places) {
                Between<P, T> between;
#pragma unroll
                for (int k = 0; k < 2 * P; ++k)
#pragma unroll
                    for (int c = 0; c <= 4 * P; ++c) between.row[k][c] = at(room, i + s, k, c);
                const T* right = known + (i + 2 * s < places ? i + 2 * s : places) * 2 * P;
                end_between(between, known + i * 2 * P, right, known + (i + s) * 2 * P);
            }
            __syncthreads();
        }
        int mine = threadIdx.x * EACH;
        if (mine >= count) return;
        T found[EACH + 1][2 * P];
#pragma unroll
        for (int k = 0; k < 2 * P; ++k) {
            found[0][k] = known[threadIdx.x * 2 * P + k];
            found[EACH][k] = known[(threadIdx.x + 1) * 2 * P + k];
        }
#pragma unroll
        for (int e = EACH - 1; e > 0; --e) {
            if (mine + e < count) {
                end_between(inner[e - 1], found[0], found[e + 1], found[e]);
            } else {  // past the last element: the right end
#pragma unroll
                for (int k = 0; k < 2 * P; ++k) found[e][k] = found[EACH][k];
            }
        }
        out += (first + mine) * 2 * P;
#pragma unroll
        for (int e = 0; e <= EACH; ++e)
            if (e < EACH ? mine + e <= count : mine + e == count)
#pragma unroll
                for (int k = 0; k < 2 * P; ++k) out[e * 2 * P + k] = found[e][k];
    }
};

// X[first] and X[last] from the last element, as the ends before and after it.  One thread calls.
template <int P, typename T>
__device__ __noinline__ void solve_last(T* room, T* before, T* after, unsigned level, long long n, unsigned long long* status)
{
    T w[2 * P][2 * P + 1], x[2 * P];
    Size<T> size[2 * P];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) w[i][c] = Tree<P, T>::at(room, 0, i, P + c);
        w[i][2 * P] = Tree<P, T>::at(room, 0, i, 4 * P);
        size[i] = least_size<T>();
    }
    unsigned unused = 0;
    int lacking = eliminate<0, 2 * P>(w, size, unused);
    if (lacking >= 0) fail(status, SINGULAR + level, lacking < P ? 0 : n - 1);
#pragma unroll
    for (int i = 2 * P - 1; i >= 0; --i) {
        x[i] = w[i][2 * P];
#pragma unroll
        for (int c = i + 1; c < 2 * P; ++c) x[i] -= w[i][c] * x[c];
    }
#pragma unroll
    for (int c = 0; c < P; ++c) {
        before[c] = T(0);
        before[P + c] = x[c];
        after[c] = x[P + c];
        after[P + c] = T(0);
    }
}

// One level up: each thread block joins its elements; the level begins at `start`, the next one at `out`.
template <int P, typename T>
__device__ __forceinline__ void join_level(Elements<P, T> elements, long long start, long long size, long long out,
                                           void* shared, unsigned level, long long rows, long long n,
                                           unsigned long long* status)
{
    Tree<P, T> tree(shared, size);
    tree.up(elements, start, level, rows, n, status);
    for (int f = threadIdx.x; f < Elements<P, T>::FIELDS; f += blockDim.x)
        elements.at(out + blockIdx.x, 0, f) = tree.at(tree.room, 0, 0, f);
}

// One level down: computes `ends` of the level that begins at `start` from `outer`, those of the level above.
template <int P, typename T>
__device__ __forceinline__ void expand_level(Elements<P, T> elements, long long start, long long size, void* shared,
                                             const T* outer, T* ends)
{
    Tree<P, T> tree(shared, size);
    if (threadIdx.x < 2 * P) {
        tree.ends()[threadIdx.x] = outer[blockIdx.x * 2 * P + threadIdx.x];
        tree.ends()[tree.places * 2 * P + threadIdx.x] = outer[(blockIdx.x + 1) * 2 * P + threadIdx.x];
    }
    tree.up(elements, start, 0, 0, 0, nullptr);
    tree.down(ends);
}

// The last levels by one thread block: up, the solution, and down again.
template <int P, typename T>
__device__ __forceinline__ void solve_top(Elements<P, T> elements, long long start, long long size, void* shared,
                                          T* ends, unsigned level, long long rows, long long n,
                                          unsigned long long* status)
{
    Tree<P, T> tree(shared, size);
    tree.up(elements, start, level, rows, n, status);
    T* before = tree.ends();
    if (threadIdx.x == 0) solve_last<P>(tree.room, before, before + tree.places * 2 * P, level + 1, n, status);
    __syncthreads();
    tree.down(ends);
}

// The kernels, for plain (P = 1) and block systems (P = 2).
template <int P, typename T>
__global__ void __launch_bounds__(Tree<P, T>::THREADS)
    join(T* elements, long long total, long long start, long long size, long long out, unsigned level, long long rows,
         long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    join_level(Elements<P, T>{elements, total}, start, size, out, tile, level, rows, n, status);
}

template <int P, typename T>
__global__ void __launch_bounds__(Tree<P, T>::THREADS)
    expand(T* elements, long long total, long long start, long long size, const T* outer, T* ends)
{
    extern __shared__ Chunk tile[];
    expand_level(Elements<P, T>{elements, total}, start, size, tile, outer, ends);
}

template <int P, typename T>
__global__ void __launch_bounds__(Tree<P, T>::THREADS)
    top(T* elements, long long total, long long start, long long size, T* ends, unsigned level, long long rows,
        long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    solve_top(Elements<P, T>{elements, total}, start, size, tile, ends, level, rows, n, status);
}
