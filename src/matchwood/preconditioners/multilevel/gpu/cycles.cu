// Cycles on the GPU.  The table has a row for each level: sizes, and the addresses of its arrays.
//
// Large levels are visited by one kernel for each step, in a fixed sequence.  `tail` visits all that are small in one
// kernel: a cluster of blocks goes through them together, as a team of threads does on the CPU, with barriers in
// hardware.  A second visit that is not needed is launched, too, but its kernels see `idle` and return.
//
// Where S is diagonal, what makes r makes z = S r as well.
//
// Sums over a vector are added up in an order that depends on the grid alone, so an answer is the same at every call.
#include "matchwood/threads.cuh"

// Columns of the table
constexpr int N = 0, COARSE = 1, AT = 2, TILES = 3, BOUNDS = 4, ORDER = 5, DOWN = 6, INVERSE = 7, UPPER = 8;
constexpr int LABEL = 9, INNER = 10, DENSE = 11, MATRIX = 12, RESTRICTION = 24, INTERPOLATION = 36, COLUMNS = 48;
// Of a matrix: slices of 32 rows, then long rows
constexpr int SLICES = 0, ROWS = 1, PLACES = 2, INDICES = 3, VALUES = 4, LONGS = 5, LONG_ROWS = 6, SPANS = 7;
constexpr int LONG_INDICES = 8, LONG_VALUES = 9, LONG_INNER = 10;

constexpr int R = 0, Z = 1, C = 2, D = 3, V = 4, Q = 5;
constexpr int RHO = 0, STEP = 1, ONE = 2, TWO = 3, STATE = 4;  // of a level; its solution is ONE c + TWO d
constexpr int IDLE = 0, ARRIVED = 1;
constexpr int WCYCLE = 1, KCYCLE = 2;
[[maybe_unused]] constexpr int VCYCLE = 0, VECTORS = 6, WORDS = 2, BLOCK = 256;  // for the host
constexpr double GOOD_ENOUGH = 0.25;
constexpr int SUMS = 6, MOST_POWER = 1000;
constexpr int TAIL_BLOCK = 512, ITEMS = 4, MOST_LEVELS = 64, TAIL_LEVELS = 16, BATCH = 8;
[[maybe_unused]] constexpr int CLUSTER = 8;  // blocks, where the device has clusters
constexpr int LONG = 256;    // entries; a longer row has a warp of its own
constexpr int WINDOW = 256;  // rows; within a window those of equal lengths stand together
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define IN_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_A_CLUSTER  // the host launches one block
#endif

// Blocks that share the work of a level
struct Crew {
    int me, size;

    __device__ __forceinline__ int warp_number() const { return me * (int)(blockDim.x / WARP) + warp(); }
    __device__ __forceinline__ int warps() const { return size * (int)(blockDim.x / WARP); }
    __device__ __forceinline__ long long thread() const { return (long long)me * blockDim.x + threadIdx.x; }
    __device__ __forceinline__ long long threads() const { return (long long)size * blockDim.x; }
};

__device__ __forceinline__ Crew grid_crew() { return Crew{(int)blockIdx.x, (int)gridDim.x}; }

__device__ __forceinline__ void cluster_barrier()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#else
    __syncthreads();
#endif
}

template <typename T>
struct Level {
    const long long* row;
    T* vectors;
    long long total;

    __device__ Level(const long long* table, T* vectors, long long total, int depth)
        : row(table + (long long)depth * COLUMNS), vectors(vectors), total(total)
    {
    }
    __device__ __forceinline__ int n() const { return (int)row[N]; }
    __device__ __forceinline__ T* vector(int which) const { return vectors + which * total + row[AT]; }
    template <typename A>
    __device__ __forceinline__ const A* array(int column) const
    {
        return reinterpret_cast<const A*>(row[column]);
    }
    // S, where it is diagonal
    __device__ __forceinline__ const T* diagonal() const { return row[TILES] ? nullptr : array<T>(INVERSE); }
};

// The steps of a cycle are no inline functions: `tail` would take ten seconds to compile.

// each(row, sum, before(row)) for the products of the rows of a matrix with x.  A lane has a row, its entries in the
// order in which they are stored; all that can be read before is, since small levels wait for memory only.
template <typename T, typename Before, typename Each>
__device__ __forceinline__ void for_rows(const Crew& crew, const Level<T>& level, int part, const T* x, Before before,
                                         Each each)
{
    Level<T> a = level;
    a.row += part;
    int n = (int)a.row[SLICES], longs = (int)a.row[LONGS];
    const int *rows = a.template array<int>(ROWS), *columns = a.template array<int>(INDICES);
    const long long* places = a.template array<long long>(PLACES);
    const T* values = a.template array<T>(VALUES);
    for (int slice = crew.warp_number(); slice < n; slice += crew.warps()) {
        long long k = places[slice] + lane(), end = places[slice + 1];
        int i = rows[slice * WARP + lane()];
        decltype(before(0)) known{};
        if (i >= 0) known = before(i);
        T sum = 0;
        for (; k < end; k += BATCH * WARP) {
            int j[BATCH];
            T value[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                j[e] = k + e * WARP < end ? columns[k + e * WARP] : -1;  // also where a row of ones has ended
                value[e] = values && j[e] >= 0 ? values[k + e * WARP] : T(1);
            }
#pragma unroll
            for (int e = 0; e < BATCH; ++e)
                if (j[e] >= 0) sum += value[e] * x[j[e]];
        }
        if (i >= 0) each(i, sum, known);
    }
    for (int k = crew.warp_number(); k < longs; k += crew.warps()) {
        const long long* span = a.template array<long long>(SPANS) + 2 * k;
        const int* near = a.template array<int>(LONG_INDICES);
        const T *own = a.template array<T>(LONG_VALUES), *inner = a.template array<T>(LONG_INNER);
        int i = a.template array<int>(LONG_ROWS)[k];
        T sum = 0;
        for (long long e = span[0] + lane(); e < span[1]; e += WARP) sum += (own ? own[e] : T(1)) * x[near[e]];
        sum = warp_reduce(sum, Plus());
        if (inner) sum += inner[i] * x[i];
        if (lane() == 0) each(i, sum, before(i));
    }
}

// Affine maps x -> factor x + shift.  Along a path every unknown is such a map of the one before.
template <typename T>
struct Affine {
    T factor, shift;

    __device__ __forceinline__ Affine after(const Affine& before) const
    {
        return Affine{factor * before.factor, factor * before.shift + shift};
    }
};

// What the threads of the block before this one make of `carried`; then `carried` is what all made of it.
template <typename T>
__device__ __forceinline__ T carried_to(Affine<T> mine, T& carried)
{
    __shared__ T factors[WARP], shifts[WARP];
    Affine<T> all = mine;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        Affine<T> below{__shfl_up_sync(ALL, all.factor, step), __shfl_up_sync(ALL, all.shift, step)};
        if (lane() >= step) all = all.after(below);
    }
    if (lane() == WARP - 1) factors[warp()] = all.factor, shifts[warp()] = all.shift;
    Affine<T> before{__shfl_up_sync(ALL, all.factor, 1), __shfl_up_sync(ALL, all.shift, 1)};
    if (lane() == 0) before = Affine<T>{T(1), T(0)};
    __syncthreads();
    T start = carried, value = carried;
    for (int w = 0; w < (int)(blockDim.x / WARP); ++w) {
        if (w == warp()) start = value;
        value = factors[w] * value + shifts[w];
    }
    __syncthreads();
    carried = value;
    return before.factor * start + before.shift;
}

// x = S q, or base + S q.  S is diagonal, or solves along segments of paths; a block has a tile of whole segments.
template <typename T>
__device__ __noinline__ void smooth_level(Crew crew, Level<T> level, const T* q, const T* base, T* x)
{
    extern __shared__ char memory[];
    const T* inverse = level.template array<T>(INVERSE);
    int tiles = (int)level.row[TILES], n = level.n();
    if (tiles == 0) {
        for (long long i = crew.thread(); i < n; i += crew.threads())
            x[i] = inverse[i] * q[i] + (base ? base[i] : T(0));
        return;
    }
    T* y = reinterpret_cast<T*>(memory);
    const int *bounds = level.template array<int>(BOUNDS), *order = level.template array<int>(ORDER);
    const T *down = level.template array<T>(DOWN), *upper = level.template array<T>(UPPER);
    int chunk = blockDim.x * ITEMS;
    for (int tile = crew.me; tile < tiles; tile += crew.size) {
        int lo = bounds[tile], hi = bounds[tile + 1];
        T carried = 0;
        for (int first = lo; first < hi; first += chunk) {
            Affine<T> map[ITEMS], mine{T(1), T(0)};
            int k = first + threadIdx.x * ITEMS;
#pragma unroll
            for (int e = 0; e < ITEMS; ++e) {
                map[e] = Affine<T>{T(1), T(0)};
                if (k + e < hi) map[e] = Affine<T>{-down[k + e], inverse[k + e] * q[order[k + e]]};
            }
#pragma unroll
            for (int e = 0; e < ITEMS; ++e) mine = map[e].after(mine);
            T value = carried_to(mine, carried);
#pragma unroll
            for (int e = 0; e < ITEMS; ++e) {
                value = map[e].factor * value + map[e].shift;
                if (k + e < hi) y[k + e - lo] = value;
            }
        }
        __syncthreads();
        carried = 0;
        for (int last = hi; last > lo; last -= chunk) {
            Affine<T> map[ITEMS], mine{T(1), T(0)};
            int k = last - 1 - threadIdx.x * ITEMS;
#pragma unroll
            for (int e = 0; e < ITEMS; ++e) {
                map[e] = Affine<T>{T(1), T(0)};
                if (k - e >= lo) map[e] = Affine<T>{-upper[k - e], y[k - e - lo]};
            }
#pragma unroll
            for (int e = 0; e < ITEMS; ++e) mine = map[e].after(mine);
            T value = carried_to(mine, carried);
#pragma unroll
            for (int e = 0; e < ITEMS; ++e) {
                value = map[e].factor * value + map[e].shift;
                if (k - e < lo) continue;
                int v = order[k - e];
                x[v] = base ? base[v] + value : value;
            }
        }
        __syncthreads();
    }
}

// out = r - A x, or A x where there is no r.
template <typename T>
__device__ __noinline__ void multiply_level(Crew crew, Level<T> level, const T* x, const T* r, T* out)
{
    for_rows(
        crew, level, MATRIX, x, [&](int i) { return r ? r[i] : T(0); },
        [&](int i, T sum, T right) { out[i] = r ? right - sum : sum; });
}

template <typename T>
__device__ __noinline__ void restrict_level(Crew crew, Level<T> level, Level<T> next)
{
    T *out = next.vector(R), *z = next.vector(Z);
    const T* inverse = next.diagonal();
    for_rows(
        crew, level, RESTRICTION, level.vector(Q), [&](int i) { return inverse ? inverse[i] : T(0); },
        [&](int i, T sum, T scale) {
            out[i] = sum;
            if (inverse) z[i] = scale * sum;
        });
}

// z += the solution of the next level
template <typename T>
__device__ __noinline__ void prolong_level(Crew crew, Level<T> level, Level<T> next,
                                              const double* state)
{
    T one = (T)state[ONE], two = (T)state[TWO], *z = level.vector(Z);
    const T *c = next.vector(C), *d = next.vector(D);
    if (const int* label = level.template array<int>(LABEL)) {
        int n = level.n(), none = (int)level.row[COARSE];
        for (long long i = crew.thread(); i < n; i += crew.threads()) {
            int g = label[i];
            if (g != none) z[i] += two != 0 ? one * c[g] + two * d[g] : one * c[g];
        }
        return;
    }
    auto before = [&](int i) { return z[i]; };
    for_rows(crew, level, INTERPOLATION, c, before, [&](int i, T sum, T now) { z[i] = now + one * sum; });
    if (two != 0)
        for_rows(crew, level, INTERPOLATION, d, before, [&](int i, T sum, T now) { z[i] = now + two * sum; });
}

// out = z + S (r - A z) where S is diagonal
template <typename T>
__device__ __noinline__ void jacobi_level(Crew crew, Level<T> level, T* out)
{
    const T *z = level.vector(Z), *r = level.vector(R), *inverse = level.template array<T>(INVERSE);
    struct Known {
        T z, r, inverse;
    };
    for_rows(
        crew, level, MATRIX, z, [&](int i) { return Known{z[i], r[i], inverse[i]}; },
        [&](int i, T sum, const Known& k) { out[i] = k.z + k.inverse * (k.r - sum); });
}

// This thread's part of the sums for the steps of the Krylov method; A c is in V, A d in Q.  In `tail` a thread has the
// rows that it had in the product, so that nobody waits in between.
template <typename T>
__device__ __noinline__ void take_sums(Crew crew, Level<T> level, bool first, bool symmetric, double* sums)
{
    const T *c = level.vector(first ? C : D), *r = level.vector(R), *v = level.vector(V);
    const T *w = level.vector(first ? V : Q), *inner = level.template array<T>(INNER);
    const long long* a = level.row + MATRIX;
    const int *rows = reinterpret_cast<const int*>(a[ROWS]), *longs = reinterpret_cast<const int*>(a[LONG_ROWS]);
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
    auto add = [&](int i) {
        double wi = w[i], ri = r[i], ci = c[i], vi = v[i], test = symmetric ? ci : wi, scaled = (double)inner[i] * ci;
        s0 += test * wi, s1 += test * ri;
        s2 += first ? ri * ri : test * vi;
        s3 += ri * wi, s4 += wi * wi;
        s5 += scaled * (symmetric ? ci : scaled);
    };
    for (int slice = crew.warp_number(), n = (int)a[SLICES]; slice < n; slice += crew.warps()) {
        int i = rows[slice * WARP + lane()];
        if (i >= 0) add(i);
    }
    for (int k = crew.warp_number(), n = (int)a[LONGS]; k < n; k += crew.warps())
        if (lane() == 0) add(longs[k]);
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5;
}

// Thread k of the block gets the k-th sum over all of its threads.  All threads call.
__device__ __forceinline__ double sum_of_block(double (&sums)[SUMS])
{
    __shared__ double parts[WARP][SUMS];
    for (int k = 0; k < SUMS; ++k) sums[k] = warp_reduce(sums[k], Plus());
    if (lane() == 0)
        for (int k = 0; k < SUMS; ++k) parts[warp()][k] = sums[k];
    __syncthreads();
    double sum = 0;
    if (threadIdx.x < SUMS)
        for (int w = 0; w < (int)(blockDim.x / WARP); ++w) sum += parts[w][threadIdx.x];
    __syncthreads();
    return sum;
}

// r -= t v, and z where S is diagonal
template <typename T>
__device__ __noinline__ void step_level(Crew crew, Level<T> level, const double* state)
{
    T step = (T)state[STEP], *r = level.vector(R), *z = level.vector(Z);
    const T *v = level.vector(V), *inverse = level.diagonal();
    for (long long i = crew.thread(), n = level.n(); i < n; i += crew.threads()) {
        T left = r[i] - step * v[i];
        r[i] = left;
        if (inverse) z[i] = inverse[i] * left;
    }
}

// The coefficients of the level's solution; is it solved after this visit?
__device__ __forceinline__ bool decide(bool first, double noise, const double* sums, double* state)
{
    double a = sums[0], b = sums[1];
    noise *= sums[5];  // rounding errors of a, where c is constant
    state[TWO] = 0;
    if (first) {
        bool energy = a > noise;
        double t = energy ? b / a : 1;
        double left = sums[2] - 2 * t * sums[3] + t * t * sums[4];
        state[ONE] = t;
        if (!energy || !(left > GOOD_ENOUGH * GOOD_ENOUGH * sums[2])) return true;
        state[RHO] = a, state[STEP] = t;
        return false;
    }
    double g = sums[2], rho = state[RHO], rest = a - g * g / rho, one = state[STEP];
    if (rest > noise) {
        state[TWO] = b / rest;
        one -= state[TWO] * g / rho;
    }
    state[ONE] = one;
    return true;
}

// One kernel a step

template <typename T>
__global__ void smooth(const long long* table, T* vectors, long long total, const unsigned* words, int depth, int from,
                       int base, int onto)
{
    if (words[IDLE]) return;
    Level<T> level(table, vectors, total, depth);
    smooth_level(grid_crew(), level, level.vector(from), base < 0 ? (const T*)nullptr : level.vector(base),
                 level.vector(onto));
}

template <typename T>
__global__ void multiply(const long long* table, T* vectors, long long total, const unsigned* words, int depth, int of,
                         bool residual, int onto)
{
    if (words[IDLE]) return;
    Level<T> level(table, vectors, total, depth);
    multiply_level(grid_crew(), level, level.vector(of), residual ? level.vector(R) : (const T*)nullptr,
                   level.vector(onto));
}

template <typename T>
__global__ void go_down(const long long* table, T* vectors, long long total, const unsigned* words, int depth)
{
    if (words[IDLE]) return;
    restrict_level(grid_crew(), Level<T>(table, vectors, total, depth), Level<T>(table, vectors, total, depth + 1));
}

template <typename T>
__global__ void come_up(const long long* table, T* vectors, long long total, const unsigned* words, int depth,
                        const double* state)
{
    if (words[IDLE]) return;
    prolong_level(grid_crew(), Level<T>(table, vectors, total, depth), Level<T>(table, vectors, total, depth + 1),
                  state + (depth + 1) * STATE);
}

template <typename T>
__global__ void smooth_last(const long long* table, T* vectors, long long total, const unsigned* words, int depth,
                            int onto)
{
    if (words[IDLE]) return;
    Level<T> level(table, vectors, total, depth);
    jacobi_level(grid_crew(), level, level.vector(onto));
}

// The last block to arrive adds up what all have, in order, and decides.
template <typename T>
__global__ void accelerate(const long long* table, T* vectors, long long total, unsigned* words, int depth,
                           double* state, bool first, bool symmetric, double noise, double* parts)
{
    __shared__ bool is_last;
    __shared__ double whole[SUMS];
    unsigned idle = words[IDLE];
    Level<T> level(table, vectors, total, depth);
    double sums[SUMS];
    if (idle == 0) {
        take_sums(grid_crew(), level, first, symmetric, sums);
        double sum = sum_of_block(sums);
        if (threadIdx.x < SUMS) {
            parts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
            __threadfence();
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(&words[ARRIVED], 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    if (idle == 0) {
        if (warp() < SUMS) {  // a block has more warps than that
            double sum = 0;
            for (int b = lane(); b < (int)gridDim.x; b += WARP) sum += __ldcg(&parts[warp() * gridDim.x + b]);
            sum = warp_reduce(sum, Plus());
            if (lane() == 0) whole[warp()] = sum;
        }
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    words[ARRIVED] = 0;
    if (idle == 0) {
        bool solved = decide(first, noise, whole, state + depth * STATE);
        if (first && solved) words[IDLE] = depth + 1;
    } else if (!first && idle == (unsigned)depth + 1) {
        words[IDLE] = 0;
    }
}

template <typename T>
__global__ void take_step(const long long* table, T* vectors, long long total, const unsigned* words, int depth,
                          const double* state)
{
    if (words[IDLE]) return;
    step_level(grid_crew(), Level<T>(table, vectors, total, depth), state + depth * STATE);
}

// Levels from `top` on
template <typename T>
__global__ void IN_A_CLUSTER __launch_bounds__(TAIL_BLOCK, 1)
    tail(const long long* table, T* vectors, long long total, const unsigned* words, int top, int levels,
         int cycle, bool symmetric, int sweeps, int twice, double noise, double* parts, double* state)
{
    if (words[IDLE]) return;
    __shared__ double own[MOST_LEVELS][STATE];
    __shared__ double whole_sums[SUMS];
    __shared__ long long rows[TAIL_LEVELS][COLUMNS];
    __shared__ bool solved;
    const Crew crew = grid_crew();
    for (int k = threadIdx.x; k < min(levels - top, TAIL_LEVELS) * COLUMNS; k += blockDim.x)
        rows[k / COLUMNS][k % COLUMNS] = table[(long long)top * COLUMNS + k];
    __syncthreads();
    const T* nothing = nullptr;
    int depth = top, last = levels - 1;
    unsigned long long visited = 0;  // a bit for each level
    bool down = true, ready = true;  // ready: z is there where S is diagonal
    auto level_at = [&](int k) {
        const long long* row = k - top < TAIL_LEVELS ? rows[k - top] : table + (long long)k * COLUMNS;
        return Level<T>(row, vectors, total, 0);
    };
    auto improve = [&](const Level<T>& level, T* out) {
        if (level.diagonal()) {
            jacobi_level(crew, level, out);
        } else {
            multiply_level(crew, level, level.vector(Z), level.vector(R), level.vector(Q));
            cluster_barrier();
            smooth_level(crew, level, level.vector(Q), level.vector(Z), out);
        }
        cluster_barrier();
    };
    auto sweep = [&](const Level<T>& level) {
        multiply_level(crew, level, level.vector(Z), level.vector(R), level.vector(Q));
        cluster_barrier();
        smooth_level(crew, level, level.vector(Q), level.vector(Z), level.vector(Z));
        cluster_barrier();
    };
    while (true) {
        Level<T> level = level_at(depth), next = level_at(min(depth + 1, last));
        if (down && depth < last) {
            if (!level.diagonal() || !ready) {
                smooth_level(crew, level, level.vector(R), nothing, level.vector(Z));
                cluster_barrier();
            }
            ready = true;
            for (int k = 1; k < sweeps; ++k) sweep(level);
            multiply_level(crew, level, level.vector(Z), level.vector(R), level.vector(Q));
            cluster_barrier();
            restrict_level(crew, level, next);
            cluster_barrier();
            visited &= ~(1ull << ++depth);
            continue;
        }
        if (down) {
            const T *inverse = level.template array<T>(DENSE), *r = level.vector(R);
            T* c = level.vector(C);
            if (inverse) {
                int n = level.n();
                for (int i = crew.warp_number(); i < n; i += crew.warps()) {
                    T sum = 0;
                    for (int j = lane(); j < n; j += WARP) sum += inverse[(long long)i * n + j] * r[j];
                    sum = warp_reduce(sum, Plus());
                    if (lane() == 0) c[i] = sum;
                }
            } else {
                smooth_level(crew, level, r, nothing, c);
            }
            if (threadIdx.x == 0) own[depth][ONE] = 1, own[depth][TWO] = 0;
            cluster_barrier();
        } else {
            prolong_level(crew, level, next, own[depth + 1]);
            cluster_barrier();
            for (int k = 1; k < sweeps; ++k) sweep(level);
            bool first = depth == 0 || (visited >> depth & 1) == 0, again = false;
            T* out = level.vector(first ? C : D);
            improve(level, out);
            if (depth > 0 && cycle == WCYCLE) {
                again = first;
                ready = false;
                if (first) multiply_level(crew, level, out, level.vector(R), level.vector(R));
                if (threadIdx.x == 0) own[depth][ONE] = own[depth][TWO] = 1;
                cluster_barrier();
            } else if (depth > 0 && cycle == KCYCLE && depth <= twice) {
                multiply_level(crew, level, out, nothing, level.vector(first ? V : Q));
                double sums[SUMS];
                take_sums(crew, level, first, symmetric, sums);
                double sum = sum_of_block(sums);
                if (threadIdx.x < SUMS) parts[crew.me * SUMS + threadIdx.x] = sum;
                cluster_barrier();
                if (threadIdx.x < SUMS) {
                    sum = 0;
                    for (int b = 0; b < crew.size; ++b) sum += __ldcg(&parts[b * SUMS + threadIdx.x]);
                    whole_sums[threadIdx.x] = sum;
                }
                __syncthreads();
                if (threadIdx.x == 0) solved = decide(first, noise, whole_sums, own[depth]);
                __syncthreads();
                again = !solved;
                if (again) step_level(crew, level, own[depth]);
                cluster_barrier();
            } else {
                if (threadIdx.x == 0) own[depth][ONE] = 1, own[depth][TWO] = 0;
                __syncthreads();
            }
            visited |= 1ull << depth;
            if (again) {
                down = true;
                continue;
            }
        }
        if (depth == top) break;
        --depth;
        down = false;
    }
    if (crew.thread() < STATE) state[top * STATE + threadIdx.x] = own[top][threadIdx.x];
}

// A vector is multiplied by a power of two, for float32 to hold it.  io: the addresses of the vector and the answer.

__global__ void point(unsigned long long from, unsigned long long onto, unsigned long long* io, unsigned long long* top)
{
    io[0] = from, io[1] = onto, *top = 0;
}

__device__ __forceinline__ unsigned long long size_bits(double x)
{
    return (unsigned long long)__double_as_longlong(x) & 0x7fffffffffffffffull;
}
__device__ __forceinline__ double power_of_two(int k) { return __longlong_as_double((long long)(k + 1023) << 52); }
__device__ __forceinline__ int power_of(unsigned long long top)
{
    if (top == 0 || top >= 0x7ff0000000000000ull) return 0;  // also of NaN
    return max(-MOST_POWER, min(MOST_POWER, (int)(top >> 52) - 1023));
}

template <typename X>
__global__ void find_largest(long long n, const unsigned long long* io, unsigned long long* top)
{
    const X* r = reinterpret_cast<const X*>(io[0]);
    unsigned long long most = 0;
    for (long long i = global_thread(); i < n; i += all_threads()) most = max(most, size_bits(r[i]));
    most = block_reduce(most, 0ull, Most());
    if (threadIdx.x == 0) atomicMax(top, most);
}

template <typename T, typename X>
__global__ void begin(long long n, const unsigned long long* io, const unsigned long long* top, const T* inverse,
                      T* right, T* z)
{
    const X* r = reinterpret_cast<const X*>(io[0]);
    double less = power_of_two(-power_of(*top));
    for (long long i = global_thread(); i < n; i += all_threads()) {
        T value = (T)((double)r[i] * less);
        right[i] = value;
        if (inverse) z[i] = inverse[i] * value;
    }
}

template <typename T, typename X>
__global__ void finish(long long n, const unsigned long long* io, const unsigned long long* top, int exponent,
                       const T* answer)
{
    X* x = reinterpret_cast<X*>(io[1]);
    int power = power_of(*top) - exponent, half = power >> 1;
    double one = power_of_two(half), two = power_of_two(power - half);
    for (long long i = global_thread(); i < n; i += all_threads()) x[i] = (X)((double)answer[i] * one * two);
}

// Matrices in slices: the entries of 32 rows, first all first ones.  Caller: `lengths` are those of slices.

template <typename I>
__global__ void __launch_bounds__(WINDOW)
    sort_windows(long long n, const I* indptr, int more, int* rows, int* lengths, int* longs, int* long_rows)
{
    __shared__ int keys[WINDOW];
    int t = threadIdx.x;
    long long i = (long long)blockIdx.x * WINDOW + t, length = -1;
    if (i < n) {
        length = (long long)(indptr[i + 1] - indptr[i]) + more;
        if (length > LONG) {
            long_rows[atomicAdd(longs, 1)] = (int)i;
            length = -1;
        }
    }
    keys[t] = (int)(length + 1) * WINDOW + t;
    for (int size = 2; size <= WINDOW; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            int other = t ^ step;
            if (other < t) continue;
            int a = keys[t], b = keys[other];
            if ((a > b) == ((t & size) == 0)) keys[t] = b, keys[other] = a;
        }
    __syncthreads();
    int key = keys[t], slice = (int)(i / WARP);
    rows[i] = key < WINDOW ? -1 : (int)((long long)blockIdx.x * WINDOW + (key & (WINDOW - 1)));
    if (lane() == WARP - 1) lengths[slice] = max(key / WINDOW - 1, 0) * WARP;
}

template <typename I, typename W, typename T>
__global__ void fill_slices(long long slices, const I* indptr, const I* indices, const W* data, const W* inner,
                            const int* rows, const long long* places, int* columns, T* values)
{
    long long slice = global_thread() / WARP;
    if (slice >= slices) return;
    int i = rows[slice * WARP + lane()], column = 0;
    long long at = places[slice] + lane(), end = places[slice + 1];
    if (i >= 0) {
        if (inner) {
            columns[at] = column = i, values[at] = (T)inner[i];
            at += WARP;
        }
        for (I k = indptr[i]; k < indptr[i + 1]; ++k, at += WARP) {
            columns[at] = column = (int)indices[k];
            if (values) values[at] = (T)data[k];
        }
    }
    for (; at < end; at += WARP) {
        columns[at] = values ? column : -1;
        if (values) values[at] = 0;
    }
}
