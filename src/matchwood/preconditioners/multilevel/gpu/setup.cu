// Levels set up on the GPU, by the definitions of cpu/pairs.py and with its bits: sums are added in the same order,
// and nothing is contracted to fused operations (the option -fmad=false).  A thread has a row, a group or a path.
//
// Couplings are positive float32 numbers, compared by their bits, so that none is flushed to zero.
#include "matchwood/atomics.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/threads.cuh"

constexpr double STRONG = 0.25, DOMINANT = 5.0, TINY = 1e-14;  // as in reference.py and cpu/pairs.py
constexpr unsigned LOST = 0x7f800000u;                         // infinity: more than any coupling
constexpr int SEGMENT = 4096;                                  // rows; longer paths are cut

__device__ __forceinline__ unsigned narrowed(double a)
{
    float x;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(x) : "d"(a));
    return __float_as_uint(x);
}
__device__ __forceinline__ unsigned strong_part(unsigned top)
{
    return narrowed(STRONG * widened(__uint_as_float(top)));
}

__device__ __forceinline__ unsigned mixed(unsigned v, unsigned seed)
{
    unsigned long long h = v ^ seed;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bull;
    h = (h ^ (h >> 13)) * 0xC2B2AE35ull;
    return (unsigned)(h ^ (h >> 16));
}

// Of each row the diagonal, the sum of |others|, 1 / sqrt(diagonal) or 0, and its hash; sums by block.
template <typename I, typename W>
__global__ void measure(long long n, const I* indptr, const I* indices, const W* data, const W* inner, unsigned seed,
                        double* diagonal, double* others, double* scale, unsigned* hash, double* sums)
{
    long long i = global_thread();
    double total = 0, more = 0, two = 0;
    if (i < n) {
        double own = widened(inner[i]), rest = 0, positive = 0, first = 0, second = 0;
        for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
            double a = widened(data[k]), w = magnitude(a);
            if (indices[k] == i) {
                own += a;
                continue;
            }
            rest += w;
            positive += a > 0 ? a : 0;
            if (w > first)
                second = first, first = w;
            else if (w > second)
                second = w;
        }
        diagonal[i] = own, others[i] = rest;
        bool left_out = !(own > 0) || own >= DOMINANT * rest;
        scale[i] = left_out ? 0 : 1 / sqrt(own);
        hash[i] = mixed((unsigned)i, seed);
        if (!left_out) total = rest / own, more = positive / own, two = (first + second) / own;
    }
    total = block_reduce(total, 0.0, Plus()), more = block_reduce(more, 0.0, Plus());
    two = block_reduce(two, 0.0, Plus());
    double* mine = sums + 3 * (long long)blockIdx.x;
    if (threadIdx.x == 0) mine[0] = total, mine[1] = more, mine[2] = two;
}

// Pairs by proposals: a round is `propose`, then `accept`.

template <typename I, typename W>
__global__ void couple(long long n, const I* indptr, const I* indices, const W* data, const double* scale,
                       unsigned* coupling, unsigned* top, I* choice, I* mate)
{
    long long i = global_thread();
    if (i >= n) return;
    unsigned most = 0;
    double own = scale[i];
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
        I j = indices[k];
        unsigned w = i == j ? 0 : narrowed(magnitude(widened(data[k])) * (own * scale[j]));
        coupling[k] = w;
        most = w > most ? w : most;
    }
    top[i] = most, choice[i] = -1, mate[i] = -1;
}

// The strongest neighbour that `allowed(w, j)`, with at least `limit`; of equal ones that with the largest hash.
template <typename I, typename Allowed>
__device__ __forceinline__ I strongest(I begin, I end, const I* indices, const unsigned* coupling,
                                       const unsigned* hash, unsigned own, unsigned limit, Allowed allowed)
{
    I best = -1;
    unsigned best_h = 0;
    for (I k = begin; k < end; ++k) {
        unsigned w = coupling[k];
        if (w < limit || w == 0) continue;
        I j = indices[k];
        if (!allowed(w, j)) continue;
        unsigned h = own ^ hash[j];
        if (best < 0 || w > limit || h > best_h) best = j, limit = w, best_h = h;
    }
    return best;
}

template <typename I>
__global__ void propose(long long n, bool first, const I* indptr, const I* indices, const unsigned* coupling,
                        const unsigned* top, const unsigned* hash, const I* mate, I* choice)
{
    long long i = global_thread();
    if (i >= n || mate[i] >= 0) return;
    if (first ? top[i] == 0 : choice[i] < 0 || mate[choice[i]] < 0) return;
    choice[i] = strongest(indptr[i], indptr[i + 1], indices, coupling, hash, hash[i], strong_part(top[i]),
                          [&](unsigned w, I j) { return w >= strong_part(top[j]); });
}

template <typename I>
__global__ void accept(long long n, const I* choice, I* mate, unsigned* top)
{
    long long i = global_thread();
    if (i >= n || choice[i] < 0 || choice[choice[i]] != i) return;
    mate[i] = choice[i], top[i] = LOST;
}

// The smallest vertex of each group, and which are that.
template <typename I>
__global__ void find_roots(long long n, bool join, const I* indptr, const I* indices, const unsigned* coupling,
                           const unsigned* top, const unsigned* hash, const double* scale, const I* mate, I* root,
                           I* leads)
{
    long long i = global_thread();
    if (i >= n) return;
    I found = (I)i;
    if (mate[i] >= 0)
        found = min(found, mate[i]);
    else if (join && scale[i] > 0) {
        I j = strongest(indptr[i], indptr[i + 1], indices, coupling, hash, hash[i], strong_part(top[i]),
                        [&](unsigned, I v) { return mate[v] >= 0; });
        if (j >= 0) found = min(j, mate[j]);
    }
    root[i] = found;
    leads[i] = scale[i] > 0 && found == i;
}

template <typename I>
__global__ void name_groups(long long n, const double* scale, const I* root, const I* starts, I* label)
{
    long long i = global_thread();
    if (i < n) label[i] = starts[scale[i] > 0 ? root[i] : n];
}

// Contraction: the row of a group as a list of labels in the order in which they are met, CAPACITY at most.

template <typename I, typename W, int CAPACITY, int BLOCK, bool WRITE>
__global__ void __launch_bounds__(BLOCK)
    add_groups(I count, const I* indptr, const I* indices, const W* data, const W* inner, const I* label,
               const I* starts, const I* members, bool ordered, I* lengths, const I* places, I* columns, W* values,
               W* diagonal, int* too_many)
{
    __shared__ I listed[CAPACITY][BLOCK];
    __shared__ W total[WRITE ? CAPACITY : 1][BLOCK];
    long long c = global_thread();
    int me = threadIdx.x, size = 0;
    if (c >= count) return;
    W within = 0, own = 0;
    for (I m = starts[c]; m < starts[c + 1]; ++m) {
        I v = members[m];
        if (WRITE) within = exact_sum(within, inner[v]);
        for (I k = indptr[v]; k < indptr[v + 1]; ++k) {
            I to = label[indices[k]];
            if (to == count) continue;
            if (to == c) {
                if (WRITE) own = exact_sum(own, data[k]);
                continue;
            }
            int at = 0;
            while (at < size && listed[at][me] != to) ++at;
            if (at == size) {
                if (size == CAPACITY) {
                    atomicExch(too_many, 1);
                    return;
                }
                listed[size++][me] = to;
                if (WRITE) total[at][me] = 0;
            }
            if (WRITE) total[at][me] = exact_sum(total[at][me], data[k]);
        }
    }
    if (!WRITE) {
        lengths[c] = size;
        return;
    }
    diagonal[c] = exact_sum(within, own);
    for (int k = 1; ordered && k < size; ++k) {
        I to = listed[k][me];
        W value = total[k][me];
        int at = k;
        for (; at > 0 && listed[at - 1][me] > to; --at)
            listed[at][me] = listed[at - 1][me], total[at][me] = total[at - 1][me];
        listed[at][me] = to, total[at][me] = value;
    }
    for (int k = 0; k < size; ++k) columns[places[c] + k] = listed[k][me], values[places[c] + k] = total[k][me];
}

// The sums above the diagonal are stored below it, too: added in another order, they may differ by rounding.
template <typename I, typename W>
__global__ void mirror(I count, const I* indptr, const I* indices, W* data)
{
    long long c = global_thread();
    if (c >= count) return;
    for (I k = indptr[c]; k < indptr[c + 1] && indices[k] < c; ++k) {
        I low = indptr[indices[k]], high = indptr[indices[k] + 1] - 1;
        while (low < high) {
            I middle = low + (high - low) / 2;
            if (indices[middle] < c)
                low = middle + 1;
            else
                high = middle;
        }
        data[k] = data[low];
    }
}

// The smoother along paths, rows in their order.

// Links to the rows before and after, and whether the row is diagonally dominant with them.
template <typename I, typename W>
__global__ void find_links(long long n, const I* indptr, const I* indices, const W* data, const double* diagonal,
                           const double* others, double damping, const I* order, const I* position, double* below,
                           double* above, bool* dominant)
{
    long long k = global_thread();
    if (k >= n) return;
    I v = order[k], none = -1;
    I before = (position[v] - 1) % SEGMENT != 0 ? order[k - 1] : none;
    I after = k + 1 < n ? order[k + 1] : none;
    if (after >= 0 && (position[after] - 1) % SEGMENT == 0) after = none;
    double down = 0, up = 0;
    for (I t = indptr[v]; t < indptr[v + 1]; ++t) {
        if (indices[t] == before) down = widened(data[t]);
        if (indices[t] == after) up = widened(data[t]);
    }
    below[k] = down, above[k] = up;
    double kept = magnitude(down) + magnitude(up);
    dominant[k] = kept <= diagonal[v] + damping * (others[v] - kept);
}

__device__ __forceinline__ bool linked(long long k, const double* below, const double* above, const bool* dominant)
{
    return k > 0 && dominant[k] && dominant[k - 1] && (below[k] != 0 || above[k - 1] != 0);
}

// One thread per segment, at its first row.  With y = D^-1 (I + lower)^-1 q: y[k] = inverse[k] q[k] - down[k] y[k - 1],
// and x[k] = y[k] - upper[k] x[k + 1].
template <typename I>
__global__ void factorize(long long n, const I* order, const double* below, const double* above, const bool* dominant,
                          const double* diagonal, const double* others, double damping, double* down, double* inverse,
                          double* upper, double* kept, bool* begins)
{
    long long k = global_thread();
    if (k >= n || linked(k, below, above, dominant)) return;
    double pivot = 0, up = 0;
    bool joined = false;
    do {
        double low = joined ? below[k] : 0;
        bool goes_on = k + 1 < n && linked(k + 1, below, above, dominant);
        double high = goes_on ? above[k] : 0;
        I v = order[k];
        kept[k] = magnitude(low) + magnitude(high);
        double full = diagonal[v] + damping * (others[v] - kept[k]);
        double lower = joined && pivot > 0 ? low / pivot : 0;
        bool was = pivot > 0;
        pivot = full - lower * up;
        if (!(pivot > TINY * full)) pivot = 0;  // a singular path: its last unknown becomes 0
        double inverted = pivot > 0 ? 1 / pivot : 0;
        down[k] = was ? low * inverted : 0;
        inverse[k] = inverted;
        upper[k] = pivot > 0 ? high / pivot : 0;
        begins[k] = !joined;
        up = high;
        joined = goes_on;
        ++k;
    } while (joined);
}

// bounds[t] = the first segment at row t * target or after it.  A warp has a tile.
__global__ void bound_tiles(long long n, long long tiles, int target, const bool* begins, int* bounds)
{
    long long t = global_thread() / WARP;
    if (t > tiles) return;
    long long k = t * target;
    for (; k < n; k += WARP) {
        unsigned found = __ballot_sync(ALL, k + lane() < n && begins[k + lane()]);
        if (found != 0) {
            k += __ffs(found) - 1;
            break;
        }
    }
    if (lane() == 0) bounds[t] = (int)(k < n ? k : n);
}

// A step of the power method: q = (A x) times 1 / sqrt(size).
template <typename I, typename W>
__global__ void multiply_rows(long long n, const I* indptr, const I* indices, const W* data, const W* inner,
                              const double* x, const double* size, double* q)
{
    long long i = global_thread();
    if (i >= n) return;
    double sum = widened(inner[i]) * x[i];
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) sum += widened(data[k]) * x[indices[k]];
    q[i] = *size > 0 ? sum / sqrt(*size) : 0;
}

// Smoothed interpolation: the strong entries, with the weak ones on the diagonal, and the Jacobi step.

template <typename I, typename W>
__global__ void find_strongest(long long n, const I* indptr, const I* indices, const W* data, double* root)
{
    long long i = global_thread();
    if (i >= n) return;
    double top = 0;
    for (I k = indptr[i]; k < indptr[i + 1]; ++k)
        if (indices[k] != i) top = max(top, magnitude(widened(data[k])));
    root[i] = sqrt(top);
}

// keep[k]: is the entry strong; the last place of a row is that of its diagonal, n entries more in all.
template <typename I, typename W>
__global__ void find_strong(long long n, I count, const I* indptr, const I* indices, const W* data, const W* inner,
                            const I* label, const double* root, double step_size, int* lengths, const I* places,
                            I* columns, double* values)
{
    long long i = global_thread();
    if (i >= n) return;
    double limit = STRONG * root[i], own = widened(inner[i]), size = 0;
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
        double a = widened(data[k]);
        if (indices[k] == i || magnitude(a) < limit * root[indices[k]])
            own += a;
        else
            size += magnitude(a);
    }
    size += magnitude(own);
    double step = size > 0 ? step_size / size : 0;
    int length = 0;
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
        double a = widened(data[k]);
        I j = indices[k];
        if (j == i || magnitude(a) < limit * root[j] || a == 0 || label[j] == count) continue;
        if (columns) columns[places[i] + length] = label[j], values[places[i] + length] = -step * a;
        ++length;
    }
    if (label[i] != count) {
        if (columns) columns[places[i] + length] = label[i], values[places[i] + length] = 1 - step * own;
        ++length;
    }
    if (!columns) lengths[i] = length;
}
