// Mend single rows that are off, by a change of the unknowns around each.  The idea: mending/cpu_local.py.
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
#pragma once

#include "matchwood/elements.cuh"

constexpr int MEND_ROUNDS = 4;
constexpr int MEND_WIDER = 4;   // ratio of a window to the one tried before
constexpr int MEND_ROWS = 512;  // least block rows of a zone in rounds with a list
constexpr int MEND_SCAN = 8;    // parts whose marks are read together
constexpr int MEND_LIST = 65;   // doubles of shared memory for the list of the first round: a count and 128 zones

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
struct Mender {
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

    // Mend a block row by changing X[first] to X[end-1] only; windows have from `least` to `most` block rows to each
    // side.
    __device__ __forceinline__ bool mend(long long row, long long first, long long end, int least, int most)
    {
#pragma unroll 1
        for (int reach = least; reach <= most; reach *= MEND_WIDER) {
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

// The lists of zones, stored after the marks.  In rounds with a list a zone has at least MEND_ROWS block rows, and a
// part has at most 32.
struct Lists {
    unsigned* counts;
    long long most, words;  // most zones of a list, and words with a bit for each

    __device__ __forceinline__ Lists(unsigned* marks, long long parts)
        : counts(marks + parts), most(parts / (MEND_ROWS / 32) + 2), words(most / 32 + 1)
    {
    }

    // The number of words that must be zero at the beginning.
    __device__ __forceinline__ long long cleared() { return MEND_ROUNDS + (MEND_ROUNDS - 1) * words; }

    __device__ __forceinline__ unsigned* of(int round) { return counts + cleared() + (round - 1) * most; }

    __device__ __forceinline__ void add(int round, unsigned zone)
    {
        unsigned mark = 1u << zone % 32;
        unsigned* bits = counts + MEND_ROUNDS + (round - 1) * words;
        if (atomicOr(&bits[zone / 32], mark) & mark) return;
        of(round)[atomicAdd(&counts[round], 1u)] = zone;
    }
};

// Is a row marked in the MEND_SCAN parts from `begin` on?  Their marks are read at the same time.
__device__ __forceinline__ bool some_marked(const unsigned* marks, long long begin, long long end)
{
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < MEND_SCAN; ++k) any |= begin + k < end ? marks[begin + k] : 0;
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
        for (long long part = zone.begin; part < zone.end; part += MEND_SCAN) any |= some_marked(marks, part, zone.end);
        if (any) list[1 + atomicAdd(&list[0], 1u)] = number;
    }
    __syncthreads();
}

// One round: mends the marked rows of the listed zones.  Mended rows lose their mark.  Rows that are marked after the
// last round are reported, and so are rows that were off by more than `far`.  A zone has `size` parts of `rows` block
// rows, and begins `shift` parts earlier; in the next round it has `next_size`, and begins `next_shift` earlier.
template <int P, typename T>
__global__ void mend(long long n, const T* dl, const T* d, const T* du, const T* b, T* x, unsigned* marks,
                     long long parts, int round, int rows, int size, int shift, int next_size, int next_shift, int each,
                     int least, int most, double limit, double far, unsigned long long* status)
{
    extern __shared__ double triangles[];
    Mender<P, T> mender = {n, dl, d, du, b, x, triangles + MEND_LIST + threadIdx.x, limit};
    Lists lists(marks, parts);
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
            if ((part - zone.begin) % MEND_SCAN == 0 && !some_marked(marks, part, zone.end)) {
                part += MEND_SCAN - 1;
                continue;
            }
            unsigned left = marks[part];
            if (left == 0) continue;
            for (unsigned bits = left; bits != 0; bits &= bits - 1) {
                unsigned mark = bits & (0u - bits);
                long long row = part * rows + __popc(mark - 1);
                if (!mender.holds(row, far)) fail(status, SOME_OFF, row);
                if (mender.holds(row, limit) || mender.mend(row, first, beyond, least, most)) {
                    left ^= mark;
                } else if (round == MEND_ROUNDS - 1) {
                    fail(status, OFF, row);
                }
            }
            marks[part] = left;
            if (left != 0 && round < MEND_ROUNDS - 1) lists.add(round + 1, (unsigned)((part + next_shift) / next_size));
        }
    }
}
