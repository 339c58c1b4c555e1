// Rows that are off here and there, mended where they are.  The idea: mending/cpu_local.py.
//
// A thread has a zone of parts, and changes only unknowns inside of it: not the first and not the last, on which
// rows of its neighbours depend.  So no two threads touch the same unknown, and no row is looked at while another
// thread changes it.  The first round tries small windows only, which suffice for most rows and need little memory;
// of the others, every second one has zones that begin half a zone earlier.  Most zones have nothing to mend: those
// that have are listed first, so that all threads of a warp are busy at the same time.
// The triangle of the least squares lies in shared memory; items of one thread are blockDim.x apart.  In double
// precision for either type.
//
// Memory behind the marks of the parts: a count of listed zones for each round, then the list.  Its order is that
// of arrival, and changes nothing: zones do not depend on each other.
#pragma once

#include "matchwood/elements.cuh"

constexpr int MEND_FIRST = 1, MEND_WIDER = 4;  // block rows of a window to each side: the least, and the factor
[[maybe_unused]] constexpr int MEND_NARROW = 16, MEND_WIDE = 64;           // the most, in two rounds and in two more
[[maybe_unused]] constexpr int MEND_NARROW_PARTS = 16, MEND_WIDE_PARTS = 64;  // of a zone; the first round has narrow ones
constexpr int MEND_ROUNDS = 5;
[[maybe_unused]] constexpr int MEND_ROOM = 40960;  // bytes of shared memory of a block

template <int P, typename T>
struct Mender {
    static constexpr int WIDTH = 3 * P;      // coefficients of an equation
    static constexpr int ITEMS = WIDTH + 1;  // and its right-hand side

    long long n;
    const T *dl, *d, *du, *b;
    T* x;
    double* room;
    double limit;

    __device__ __forceinline__ double& at(int c, int k) { return room[(c * ITEMS + k) * blockDim.x]; }

    // b - A x of equation e of a block row, and the sizes of its terms.
    __device__ __forceinline__ double residual(long long row, int e, double& size)
    {
        double value = b[row * P + e];
        size = fabs(value);
        auto take = [&](const T* blocks, long long column) {
#pragma unroll
            for (int k = 0; k < P; ++k) {
                double term = (double)blocks[(row * P + e) * P + k] * (double)x[column * P + k];
                value -= term;
                size += fabs(term);
            }
        };
        if (row > 0) take(dl, row - 1);
        take(d, row);
        if (row < n - 1) take(du, row + 1);
        return value;
    }

    // The largest residual of a block row relative to its terms.
    __device__ __forceinline__ double off_by(long long row)
    {
        double worst = 0;
        for (int e = 0; e < P; ++e) {
            double size, value = residual(row, e, size);
            if (!(size <= 0x1p800)) return 2;
            if (value != 0 && fabs(value) > worst * size) worst = fabs(value) / size;
        }
        return worst;
    }

    // Rotate an equation, whose first entry is of column `first`, into the triangle.  False when numbers are out
    // of range.
    __device__ __forceinline__ bool insert(double (&row)[ITEMS], int first)
    {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            if (row[k] == 0) continue;
            double above = at(first + k, 0), length = sqrt(above * above + row[k] * row[k]);
            if (!(length > 0 && length < 0x1p1000)) return false;
            double cosine = above / length, sine = row[k] / length;
#pragma unroll
            for (int t = 0; t <= WIDTH; ++t) {
                if (t >= WIDTH - k && t < WIDTH) continue;
                int mine = t == WIDTH ? WIDTH : k + t;
                double a = at(first + k, t), c = row[mine];
                at(first + k, t) = cosine * a + sine * c;
                row[mine] = cosine * c - sine * a;
            }
        }
        return true;
    }

    // The change of X[lo] to X[hi-1] by least squares, left in the last column of the triangle.
    __device__ __forceinline__ bool change(long long lo, long long hi)
    {
        int columns = (int)(hi - lo) * P;
        for (int c = 0; c < columns; ++c)
            for (int k = 0; k < ITEMS; ++k) at(c, k) = 0;
        for (long long i = lo > 0 ? lo - 1 : 0; i <= hi && i < n; ++i) {
            for (int e = 0; e < P; ++e) {
                double size, value = residual(i, e, size), weight = 1 / (size + 0x1p-1000);
                double row[ITEMS];
                long long from = (i * P + e) * P;
#pragma unroll
                for (int k = 0; k < P; ++k) {
                    row[k] = lo < i ? weight * (double)dl[from + k] : 0;
                    row[P + k] = lo <= i && i < hi ? weight * (double)d[from + k] : 0;
                    row[2 * P + k] = i + 1 < hi ? weight * (double)du[from + k] : 0;
                }
                row[WIDTH] = weight * value;
                if (!insert(row, (int)(i - 1 - lo) * P)) return false;
            }
        }
        for (int c = columns - 1; c >= 0; --c) {
            double value = at(c, WIDTH), pivot = at(c, 0);
            for (int k = 1; k < WIDTH && c + k < columns; ++k) value -= at(c, k) * at(c + k, WIDTH);
            at(c, WIDTH) = pivot != 0 ? value / pivot : 0;
        }
        return true;
    }

    // Put the changed unknowns in place, and keep the former ones.
    __device__ __forceinline__ void exchange(long long lo, long long hi)
    {
        for (int c = 0; c < (int)(hi - lo) * P; ++c) {
            T before = x[lo * P + c];
            x[lo * P + c] = (T)at(c, WIDTH);
            at(c, WIDTH) = before;
        }
    }

    // Mend a block row by changing X[first] to X[end-1] only; windows have at most `most` block rows to each side.
    __device__ __forceinline__ bool mend(long long row, long long first, long long end, int most)
    {
        for (int reach = MEND_FIRST; reach <= most; reach *= MEND_WIDER) {
            long long lo = row - reach > first ? row - reach : first;
            long long hi = row + reach + 1 < end ? row + reach + 1 : end;
            if (lo >= hi || !change(lo, hi)) continue;
            for (int c = 0; c < (int)(hi - lo) * P; ++c) at(c, WIDTH) += (double)x[lo * P + c];
            exchange(lo, hi);
            bool good = true;
            for (long long i = lo > 0 ? lo - 1 : 0; good && i <= hi && i < n; ++i) good = off_by(i) <= limit;
            if (good) return true;
            exchange(lo, hi);
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

// Go on to the next row of the zone that is marked: its part, and its bit as the lowest of `bits`.
__device__ __forceinline__ bool next_marked(const unsigned* marks, long long& part, long long end, unsigned& bits)
{
    while (bits == 0) {
        if (++part >= end) return false;
        bits = marks[part];
    }
    return true;
}

// The zones with marked rows.
__global__ void list_zones(unsigned* marks, long long parts, int round, int size, int shift, long long zones)
{
    long long k = global_thread();
    if (k >= zones) return;
    Zone zone(k, size, shift, parts);
    long long part = zone.begin - 1;
    unsigned bits = 0;
    if (!next_marked(marks, part, zone.end, bits)) return;
    unsigned place = atomicAdd(&marks[parts + round], 1u);
    marks[parts + MEND_ROUNDS + place] = (unsigned)k;
}

// One round: the marked rows of the listed zones.  Those that are mended lose their mark; what is marked after the
// last round is reported, and rows that were off by more than `far`.
template <int P, typename T>
__global__ void mend(long long n, const T* dl, const T* d, const T* du, const T* b, T* x, unsigned* marks,
                     long long parts, int round, int rows, int size, int shift, int most, double limit, double far,
                     unsigned long long* status)
{
    extern __shared__ double triangles[];
    Mender<P, T> mender = {n, dl, d, du, b, x, triangles + threadIdx.x, limit};
    unsigned listed = marks[parts + round];
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < listed; k += gridDim.x * blockDim.x) {
        Zone zone(marks[parts + MEND_ROUNDS + k], size, shift, parts);
        long long first = zone.begin == 0 ? 0 : zone.begin * rows + 1;
        long long beyond = zone.end == parts ? n : zone.end * rows - 1;
        long long part = zone.begin - 1;
        unsigned bits = 0;
        while (next_marked(marks, part, zone.end, bits)) {
            unsigned mark = bits & (0u - bits);
            bits ^= mark;
            long long row = part * rows + __popc(mark - 1);
            double off = mender.off_by(row);
            if (off > far) fail(status, SOME_OFF, row);
            if (off <= limit || mender.mend(row, first, beyond, most)) {
                marks[part] ^= mark;
            } else if (round == MEND_ROUNDS - 1) {
                fail(status, OFF, row);
            }
        }
    }
}
