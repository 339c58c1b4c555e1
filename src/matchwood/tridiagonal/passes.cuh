// The two passes over the rows, for plain rows and blocks: a thread block is one warp, a thread has one part.
//
//   reduce_rows         a thread reduces its part to its element
//   substitute_rows     a thread computes the unknowns between the two ends of its part
//
// The rows of a thread block's parts are in shared memory (elements.cuh), loaded in whole lines.  A thread reads and
// writes only its own part there; loads and stores of the whole tile are separated from that by barriers.
// plain/gpu.cu and block/gpu.cu define a part:
//
//   Rows<T>             P, block rows of a part and of a thread block, chunks of 16 bytes, place of the solution
//   reduce_part         the elimination of a part; its element
//   picks_of            the pivots of a part, as reduce_part stored them
//   substitute_part     the elimination again, and back; the solution goes to its place in the tile
//   mark_rows           which rows are off
//
// Before them: the check of a row, and the repair of rows that are off.
#pragma once

#include "matchwood/elements.cuh"

// Does a row hold?  Its residual, relative to the sum of its |terms|.  The limits: tridiagonal/check.py.
//
// Subnormal numbers: kernels may be compiled so that those of float32, below 2^-126, count as zeros.  This changes
// a row by at most 2^-126 times its unknowns, and by 2^-126 for its right-hand side and for each of seven results.
// Where this is more than an eighth of the limit, the bits of the matrix are searched for subnormal numbers.  If
// there is one, the system is solved in another way.

// Checks the rows of one thread, one after the other.  A row is off if its residual exceeds `limit` times its terms.
template <typename T>
struct RowChecker {
    static constexpr bool FLUSHED = sizeof(T) == 4;  // subnormal numbers count as zeros
    static constexpr int ALL = 1 << 20;              // more than the rows of a thread block

    T limit;
    T sum;           // of the |terms| of all rows
    T least;         // the least sum of |terms| of a row
    T reach;         // the largest unknown
    unsigned right;  // the bits of all right-hand sides, by OR
    unsigned marks;  // a bit for each row that is off
    int off;         // rows that are off, without those in `marks`

    __device__ __forceinline__ RowChecker(T limit)
        : limit(limit), sum(0), least(1), reach(0), right(0), marks(0), off(0)
    {
    }

    __device__ __forceinline__ void unknown(T x)
    {
        if (FLUSHED) reach = larger_of(reach, magnitude(x));
    }

    template <int K>
    __device__ __forceinline__ void row(const T (&terms)[K], T b, unsigned mark)
    {
        T residual = -b, size = magnitude(b);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            residual += terms[k];
            size += magnitude(terms[k]);
        }
        sum += size;
        if (FLUSHED) {
            unsigned bits;
            memcpy(&bits, &b, 4);
            right |= bits;
            least = size < least ? size : least;
        }
        if (!(magnitude(residual) <= limit * size)) marks |= mark;  // also where it is NaN
    }

    // Count the marks, and clear them for the next rows.
    __device__ __forceinline__ void next()
    {
        off += __popc(marks);
        marks = 0;
    }

    // Report the rows that are off to `status`.  All threads of a warp call; `row` is the first row of the warp.
    // `count` counts the rows that are off in the whole system: up to `usual` are FEW_OFF, up to `few` SOME_OFF,
    // more are OFF.  Returns true where the matrix must be searched for subnormal numbers.
    __device__ __forceinline__ bool report(unsigned* count, int few, int usual, long long row,
                                           unsigned long long* status)
    {
        next();
        bool overflow = !(sum <= large<T>() * large<T>());
        int may_be_subnormal = overflow ? 1 : 0;
        if (FLUSHED) {
            bool zero = reach == T(0) && right << 1 == 0;
            if (!zero && !(least * (limit / 8) >= T(0x1p-124) * reach + T(0x1p-122))) may_be_subnormal = 1;
        }
        if (overflow) off += ALL;
#pragma unroll
        for (int s = 16; s > 0; s /= 2) {
            off += __shfl_xor_sync(0xffffffffu, off, s);
            may_be_subnormal += __shfl_xor_sync(0xffffffffu, may_be_subnormal, s);
        }
        if (off > 0 && threadIdx.x == 0) {
            int all = off < ALL ? (int)atomicAdd(count, (unsigned)off) + off : ALL;
            fail(status, off >= ALL || all > few ? OFF : all > usual ? SOME_OFF : FEW_OFF, row);
        }
        return may_be_subnormal > 0;
    }

private:
    static __device__ __forceinline__ T larger_of(T a, T b) { return a > b ? a : b; }
};

// Report a fault if one of `count` items of an array of `size`, from item `first` on, is subnormal.  Decided by the
// bits, since arithmetic may treat such numbers as zeros.
template <typename T>
__device__ __noinline__ void report_subnormal(const T* array, long long first, int count, long long size, long long row,
                                                unsigned long long* status)
{
    constexpr int MANTISSA = sizeof(T) == 8 ? 52 : 23;
    for (int i = threadIdx.x; i < count && first + i < size; i += TILE_THREADS) {
        unsigned long long bits = 0;
        memcpy(&bits, array + first + i, sizeof(T));
        bits &= ~(1ull << (8 * sizeof(T) - 1));
        if (bits != 0 && bits >> MANTISSA == 0) fail(status, NOT_FINITE, row);
    }
}

// Repair single rows that are off, by a change of the unknowns around each.  The idea: repair/cpu.py.
//
// A thread has a zone of parts, and changes only unknowns inside of it: not the first and not the last, on which
// rows of its neighbours depend.  So no two threads change the same unknown, and no row is read while another
// thread changes its unknowns.  Most rows need only a small window, so each round has wider windows than the round
// before, and other borders of zones; the last round tries all widths.
//
// In the first round each thread block searches a range of zones for marked rows.  If a row stays marked, its zone
// of the next round is added to the list of that round, once.  The order of a list is that of arrival; it does not
// matter, since zones are independent.
//
// Memory after the marks of the parts: for each round the number of listed zones; for each round but the first a
// bit for each zone that is listed; then the lists.

constexpr int REPAIR_ROUNDS = 4;
constexpr int REPAIR_WIDER = 4;   // ratio of a window to the one tried before
constexpr int REPAIR_ROWS = 512;  // least block rows of a zone in rounds with a list
constexpr int REPAIR_SCAN = 8;    // parts whose marks are read together
constexpr int REPAIR_LIST = 65;   // doubles of shared memory for the list of the first round: a count and 128 zones

// 1 / sqrt(x) to about 20 bits.
__device__ __forceinline__ double about_rsqrt(double x)
{
    double y;
#ifdef __CUDA_ARCH__
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#else
    y = __hiloint2double(__double2hiint(1 / sqrt(x)), 0);
#endif
    return y;
}

// A block row of the system; zeros outside of the matrix.
template <int P, typename T>
struct Line {
    T left[P][P], middle[P][P], right[P][P], b[P];
};

template <int P, typename T>
struct Repairer {
    static constexpr int WIDTH = 3 * P;      // coefficients of an equation
    static constexpr int ITEMS = WIDTH + 1;  // and its right-hand side
    static constexpr int AT_ONCE = 4 / P;    // block rows that are read at the same time

    long long n;
    const T *dl, *d, *du, *b;
    T* x;
    double* room;  // finished rows of the triangle, one per unknown; items of one thread are blockDim.x apart
    double limit;

    __device__ __forceinline__ double& at(int c, int k) { return room[(c * ITEMS + k) * blockDim.x]; }

    __device__ __forceinline__ T unknown(long long row, int k)
    {
        return row >= 0 && row < n ? x[row * P + k] : T(0);
    }

    __device__ __forceinline__ Line<P, T> line(long long row)
    {
        bool there = row >= 0 && row < n;
        Line<P, T> one;
#pragma unroll
        for (int e = 0; e < P; ++e) {
            long long from = (row * P + e) * P;
            one.b[e] = there ? __ldg(b + row * P + e) : T(0);
#pragma unroll
            for (int k = 0; k < P; ++k) {
                one.left[e][k] = there && row > 0 ? __ldg(dl + from + k) : T(0);
                one.middle[e][k] = there ? __ldg(d + from + k) : T(0);
                one.right[e][k] = there && row < n - 1 ? __ldg(du + from + k) : T(0);
            }
        }
        return one;
    }

    // b - A x of equation e of a block row, and the sum of its |terms|, from the unknowns X[row-1] to X[row+1].
    static __device__ __forceinline__ double residual(const Line<P, T>& one, const T (&around)[WIDTH], int e,
                                                      double& size)
    {
        double value = one.b[e];
        size = fabs(value);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            T factor = k < P ? one.left[e][k] : k < 2 * P ? one.middle[e][k - P] : one.right[e][k - 2 * P];
            double term = (double)factor * (double)around[k];
            value -= term;
            size += fabs(term);
        }
        return value;
    }

    // Is each residual of a block row at most `within` times its terms?
    __device__ __forceinline__ bool holds(long long row, double within)
    {
        Line<P, T> one = line(row);
        T around[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) around[k] = unknown(row - 1 + k / P, k % P);
        bool good = true;
#pragma unroll
        for (int e = 0; e < P; ++e) {
            double size, value = residual(one, around, e, size);
            good = good & (size <= 0x1p800) & (fabs(value) <= within * size);
        }
        return good;
    }

    // Add an equation, whose entries before K are zeros, to the triangle of its unknowns by Givens rotations.  The
    // length need not be precise: an error scales both rows by the same factor.
    template <int K>
    static __device__ __forceinline__ void insert(double (&triangle)[WIDTH][ITEMS], double (&row)[ITEMS], bool& fits)
    {
        if constexpr (K < WIDTH) {
            double above = triangle[K][K], own = row[K];
            bool zero = fabs(own) < 0x1p-480;
            if (K >= 2 * P && above == 0 && !zero) {
#pragma unroll
                for (int t = K; t < ITEMS; ++t) {
                    triangle[K][t] = row[t];
                    row[t] = 0;
                }
            } else if (!zero) {
                double square = above * above + own * own;
                fits = fits & (square < 0x1p1000);
                double inverse = about_rsqrt(square), cosine = above * inverse, sine = own * inverse;
#pragma unroll
                for (int t = K; t < ITEMS; ++t) {
                    double a = triangle[K][t], c = row[t];
                    triangle[K][t] = cosine * a + sine * c;
                    row[t] = cosine * c - sine * a;
                }
            }
            insert<K + 1>(triangle, row, fits);
        }
    }

    // The first P rows of the triangle are finished: store them as the rows of X[column].  The others move up.
    __device__ __forceinline__ void pass(double (&triangle)[WIDTH][ITEMS], int column)
    {
        if (column >= 0) {
#pragma unroll
            for (int r = 0; r < P; ++r) {
                double pivot = triangle[r][r];
                at(column * P + r, 0) = pivot != 0 ? inverse_of(pivot) : 0;
#pragma unroll
                for (int t = 1; t < WIDTH; ++t) at(column * P + r, t) = r + t < WIDTH ? triangle[r][(r + t) % WIDTH] : 0;
                at(column * P + r, WIDTH) = triangle[r][WIDTH];
            }
        }
#pragma unroll
        for (int r = 0; r < WIDTH; ++r)
#pragma unroll
            for (int t = 0; t < ITEMS; ++t) {
                int from = t == WIDTH ? WIDTH : (t + P) % WIDTH;  // the column; not used past the last one
                bool known = r + P < WIDTH && (t == WIDTH || t + P < WIDTH);
                triangle[r][t] = known ? triangle[(r + P) % WIDTH][from] : 0;
            }
    }

    // The triangle of the least squares problem for the change of X[lo] to X[hi-1].  Each row and its unknowns are
    // loaded before the previous row is added, so that the loads overlap.  False when numbers are out of range.
    __device__ __forceinline__ bool triangle_of(long long lo, long long hi)
    {
        double triangle[WIDTH][ITEMS];
#pragma unroll
        for (int r = 0; r < WIDTH; ++r)
#pragma unroll
            for (int t = 0; t < ITEMS; ++t) triangle[r][t] = 0;
        T around[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) around[k] = unknown(lo - 2 + k / P, k % P);
        Line<P, T> now = line(lo - 1);
        bool fits = true;
#pragma unroll 1
        for (long long i = lo - 1; i <= hi; ++i) {
            Line<P, T> then = line(i + 1);
            T ahead[P];
#pragma unroll
            for (int k = 0; k < P; ++k) ahead[k] = unknown(i + 2, k);
#pragma unroll
            for (int e = 0; e < P; ++e) {
                double size, value = residual(now, around, e, size), weight = inverse_of(size + 0x1p-1000);
                double row[ITEMS];
#pragma unroll
                for (int k = 0; k < P; ++k) {
                    row[k] = lo < i ? weight * (double)now.left[e][k] : 0;
                    row[P + k] = lo <= i && i < hi ? weight * (double)now.middle[e][k] : 0;
                    row[2 * P + k] = i + 1 < hi ? weight * (double)now.right[e][k] : 0;
                }
                row[WIDTH] = weight * value;
                insert<0>(triangle, row, fits);
            }
            pass(triangle, (int)(i - 1 - lo));
            now = then;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) around[k] = k < 2 * P ? around[(k + P) % WIDTH] : ahead[k % P];
        }
        return fits;
    }

    // Change the unknowns by the solution of the triangle, whose last column then holds the former unknowns.
    __device__ __forceinline__ void change(long long lo, int columns)
    {
        T* mine = x + lo * P;
        double changes[WIDTH], now[ITEMS];  // changes of the unknowns after this one; its row of the triangle
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) changes[k] = 0;
        T before = mine[columns - 1];
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) now[k] = at(columns - 1, k);
#pragma unroll 1
        for (int c = columns - 1; c >= 0; --c) {
            int next = c > 0 ? c - 1 : 0;
            T its = mine[next];
            double then[ITEMS];
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) then[k] = at(next, k);
            double value = now[WIDTH];
#pragma unroll
            for (int k = WIDTH - 1; k > 0; --k) value -= now[k] * changes[k - 1];
            value *= now[0];
            mine[c] = (T)((double)before + value);
            at(c, WIDTH) = (double)before;
#pragma unroll
            for (int k = WIDTH - 1; k > 0; --k) changes[k] = changes[k - 1];
            changes[0] = value;
            before = its;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) now[k] = then[k];
        }
    }

    // Do all rows hold that contain one of X[lo] to X[hi-1]?
    __device__ __forceinline__ bool all_hold(long long lo, long long hi)
    {
        bool good = true;
#pragma unroll 1
        for (long long i = lo - 1; good && i <= hi; i += AT_ONCE) {
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) good = good & holds(i + k <= hi ? i + k : hi, limit);
        }
        return good;
    }

    // Repair a block row by changing X[first] to X[end-1] only; windows have from `least` to `most` block rows to each
    // side.
    __device__ __forceinline__ bool repair(long long row, long long first, long long end, int least, int most)
    {
#pragma unroll 1
        for (int reach = least; reach <= most; reach *= REPAIR_WIDER) {
            long long lo = row - reach > first ? row - reach : first;
            long long hi = row + reach + 1 < end ? row + reach + 1 : end;
            if (lo >= hi || !triangle_of(lo, hi)) continue;
            int columns = (int)(hi - lo) * P;
            change(lo, columns);
            if (all_hold(lo, hi)) return true;
            for (int c = 0; c < columns; ++c) x[lo * P + c] = (T)at(c, WIDTH);
        }
        return false;
    }
};

// The parts of a zone.
struct Zone {
    long long begin, end;

    __device__ __forceinline__ Zone(long long k, int size, int shift, long long parts)
        : begin(k * size - shift), end(begin + size)
    {
        if (begin < 0) begin = 0;
        if (end > parts) end = parts;
    }
};

// The lists of zones, stored after the marks.  In rounds with a list a zone has at least REPAIR_ROWS block rows, and a
// part has at most 32.
struct ZoneLists {
    unsigned* counts;
    long long most, words;  // most zones of a list, and words with a bit for each

    __device__ __forceinline__ ZoneLists(unsigned* marks, long long parts)
        : counts(marks + parts), most(parts / (REPAIR_ROWS / 32) + 2), words(most / 32 + 1)
    {
    }

    // The number of words that must be zero at the beginning.
    __device__ __forceinline__ long long cleared() { return REPAIR_ROUNDS + (REPAIR_ROUNDS - 1) * words; }

    __device__ __forceinline__ unsigned* of(int round) { return counts + cleared() + (round - 1) * most; }

    __device__ __forceinline__ void add(int round, unsigned zone)
    {
        unsigned mark = 1u << zone % 32;
        unsigned* bits = counts + REPAIR_ROUNDS + (round - 1) * words;
        if (atomicOr(&bits[zone / 32], mark) & mark) return;
        of(round)[atomicAdd(&counts[round], 1u)] = zone;
    }
};

// Is a row marked in the REPAIR_SCAN parts from `begin` on?  Their marks are read at the same time.
__device__ __forceinline__ bool some_marked(const unsigned* marks, long long begin, long long end)
{
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < REPAIR_SCAN; ++k) any |= begin + k < end ? marks[begin + k] : 0;
    return any != 0;
}

// List the zones with marked rows among the `each` zones of this thread block: list[0] is their number.
__device__ __forceinline__ void list_own(unsigned* list, const unsigned* marks, long long parts, int size, int each)
{
    if (threadIdx.x == 0) list[0] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < each; k += blockDim.x) {
        unsigned number = blockIdx.x * each + k;
        Zone zone(number, size, 0, parts);
        bool any = false;
        for (long long part = zone.begin; part < zone.end; part += REPAIR_SCAN) any |= some_marked(marks, part, zone.end);
        if (any) list[1 + atomicAdd(&list[0], 1u)] = number;
    }
    __syncthreads();
}

// One round: repairs the marked rows of the listed zones.  Repaired rows lose their mark.  Rows that are marked after the
// last round are reported, and so are rows that were off by more than `far`.  A zone has `size` parts of `rows` block
// rows, and begins `shift` parts earlier; in the next round it has `next_size`, and begins `next_shift` earlier.
template <int P, typename T>
__global__ void repair(long long n, const T* dl, const T* d, const T* du, const T* b, T* x, unsigned* marks,
                     long long parts, int round, int rows, int size, int shift, int next_size, int next_shift, int each,
                     int least, int most, double limit, double far, unsigned long long* status)
{
    extern __shared__ double triangles[];
    Repairer<P, T> repairer = {n, dl, d, du, b, x, triangles + REPAIR_LIST + threadIdx.x, limit};
    ZoneLists lists(marks, parts);
    unsigned* list = (unsigned*)triangles;
    if (round == 0) list_own(list, marks, parts, size, each);
    unsigned listed = round == 0 ? list[0] : lists.counts[round];
    unsigned stride = round == 0 ? blockDim.x : gridDim.x * blockDim.x;
    list = round == 0 ? list + 1 : lists.of(round);
    for (unsigned k = round == 0 ? threadIdx.x : global_thread(); k < listed; k += stride) {
        Zone zone(list[k], size, shift, parts);
        long long first = zone.begin == 0 ? 0 : zone.begin * rows + 1;
        long long beyond = zone.end == parts ? n : zone.end * rows - 1;
        for (long long part = zone.begin; part < zone.end; ++part) {
            if ((part - zone.begin) % REPAIR_SCAN == 0 && !some_marked(marks, part, zone.end)) {
                part += REPAIR_SCAN - 1;
                continue;
            }
            unsigned left = marks[part];
            if (left == 0) continue;
            for (unsigned bits = left; bits != 0; bits &= bits - 1) {
                unsigned mark = bits & (0u - bits);
                long long row = part * rows + __popc(mark - 1);
                if (!repairer.holds(row, far)) fail(status, SOME_OFF, row);
                if (repairer.holds(row, limit) || repairer.repair(row, first, beyond, least, most)) {
                    left ^= mark;
                } else if (round == REPAIR_ROUNDS - 1) {
                    fail(status, OFF, row);
                }
            }
            marks[part] = left;
            if (left != 0 && round < REPAIR_ROUNDS - 1) lists.add(round + 1, (unsigned)((part + next_shift) / next_size));
        }
    }
}

// The passes

template <typename T>
struct Rows;

// A constant as the type of an argument, so that substitute_part of the including file can depend on it.
template <bool CHECK>
struct Checking {};

// Load the four arrays of the thread block's tile; rows past the end are X = 0.  With `perm` the right-hand side of
// equation i is b[perm[i]], which is also written to gathered[i]; 1 where perm is negative.
template <typename T, typename I>
__device__ __forceinline__ void load_rows(Chunk* tile, long long n, const T* dl, const T* d, const T* du, const T* b,
                                          const I* perm, T* gathered)
{
    constexpr int P = Rows<T>::P, CHUNKS = Rows<T>::CHUNKS, RIGHT_CHUNKS = Rows<T>::RIGHT_CHUNKS, ARRAY = Rows<T>::ARRAY;
    long long first = (long long)blockIdx.x * Rows<T>::BLOCK;
    Chunk* right = tile + 3 * ARRAY;
    auto zero = [](int) { return T(0); };
    auto identity = [](int i) { return i % (P * P) % (P + 1) ? T(0) : T(1); };
    load_tile<CHUNKS>(tile, dl, P * P * first, P * P * n, zero);
    load_tile<CHUNKS>(tile + ARRAY, d, P * P * first, P * P * n, identity);
    load_tile<CHUNKS>(tile + 2 * ARRAY, du, P * P * first, P * P * n, zero);
    if (perm == nullptr) {
        load_tile<RIGHT_CHUNKS>(right, b, P * first, P * n, zero);
    } else {
        gather_tile<RIGHT_CHUNKS>(right, b, perm, P * first, P * n, gathered);
    }
}

// Wait for the loads, and clear dl of the first row and du of the last, which are not part of the matrix.
template <typename T>
__device__ __forceinline__ void rows_loaded(Chunk* tile, long long n)
{
    constexpr int P = Rows<T>::P, CHUNKS = Rows<T>::CHUNKS, ROWS = Rows<T>::ROWS;
    tile_loaded();
    int mine = threadIdx.x * ROWS;
    long long start = (long long)blockIdx.x * Rows<T>::BLOCK + mine;
    if (start == 0)
        for (int k = 0; k < P * P; ++k) tile_item<CHUNKS, T>(tile, k) = T(0);
    if (start < n && n <= start + ROWS) {
        int last = (mine + (int)(n - 1 - start)) * P * P;
        for (int k = 0; k < P * P; ++k) tile_item<CHUNKS, T>(tile + 2 * Rows<T>::ARRAY, last + k) = T(0);
    }
}

template <typename T, typename I>
__global__ void reduce_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                            const T* __restrict__ du, const T* __restrict__ b, const I* __restrict__ perm,
                            T* __restrict__ gathered, T* __restrict__ elements, long long total, long long parts,
                            unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    load_rows(tile, n, dl, d, du, b, perm, gathered);
    rows_loaded<T>(tile, n);
    long long part = global_thread();
    if (part >= parts) return;
    Elements<Rows<T>::P, T> out = {elements, total};
    if (part == 0) *out.count() = 0;
    reduce_part(tile, out, part, status);
}

template <typename T, typename I, bool CHECK>
__global__ void substitute_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                                const T* __restrict__ du, const T* __restrict__ b, T* elements, long long total,
                                long long parts, const T* __restrict__ ends, const I* __restrict__ perm,
                                T* __restrict__ x, T limit, int few, int usual, unsigned* marks,
                                unsigned long long* status)
{
    constexpr int P = Rows<T>::P, BLOCK = Rows<T>::BLOCK, RIGHT_CHUNKS = Rows<T>::RIGHT_CHUNKS;
    extern __shared__ Chunk tile[];
    load_rows<T, I>(tile, n, dl, d, du, b, nullptr, nullptr);
    long long part = global_thread(), first = (long long)blockIdx.x * BLOCK;
    bool there = part < parts;
    Elements<P, T> known = {elements, total};
    auto picks = picks_of(known, there ? part : 0);
    rows_loaded<T>(tile, n);
    RowChecker<T> checker(limit);
    if (there) substitute_part(tile, ends + 2 * P * part, picks, checker, Checking<CHECK>());
    __syncwarp();
    Chunk* solution = tile + Rows<T>::SOLUTION;
    if (perm == nullptr) {
        store_tile<RIGHT_CHUNKS>(solution, x, P * first, P * n);
    } else {
        scatter_tile<RIGHT_CHUNKS>(solution, x, perm, P * first, P * n);
    }
    if (CHECK) {
        ZoneLists lists(marks, parts);
        if (part < lists.cleared()) lists.counts[part] = 0;
        mark_rows(solution, n, dl, d, du, b, ends, there ? marks + part : nullptr, marks, checker);
        if (checker.report(known.count(), few, usual, first, status)) {
            const T* arrays[3] = {dl, d, du};
            for (const T* array : arrays)
                report_subnormal(array, P * P * first, P * P * BLOCK, P * P * n, first, status);
            report_subnormal(b, P * first, P * BLOCK, P * n, first, status);
        }
    }
}
