// Maximal matching on the GPU.  Host side: gpu.py.  The rule and the paper: __init__.py.
//
// One cooperative kernel runs the rounds, with a barrier of the grid after each pass.  The passes
// (propose, respond, resolve) and why they do not race: cpu.py.  Plain loads are enough: the barrier
// orders them, and invalidates the caches.
//
// The blocks take tiles of BLOCK vertices in turn.  Each block keeps its live vertices in a segment
// of its own and shortens it in place, so that no list is shared.
//
// Rows: one thread scans the first few entries of a row, then the whole warp the rest of it.
//
// Vertices that are compared or stored are unsigned, and NONE is more than any of them; in the
// result it is -1.
#include "matchwood/edge_order.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/grid_barrier.cuh"

constexpr int BLOCK = 512;  // threads of a block, vertices of a tile
// Entries of a row that a thread scans alone.  A search that ends at the first red neighbour should
// go over to the warp early; a scan of the whole row later.  Measured: bench/matching/proposal_gpu.py,
// H200, 8 against 32: R-MAT 22 1.06 and 1.19 ms at random; mesh 128^3 2.40 and 1.91 ms by weight.
constexpr int SHORT_SEARCH = 8;
constexpr int SHORT_ROW = 32;
constexpr unsigned char TAKEN = 0, BLUE = 1, RED = 2;  // taken: matched or dead

constexpr int ROUND = 0, COLOURED = 1, DONE = 2;  // control words, kept between launches

template <typename I>
struct Unsigned;
template <>
struct Unsigned<int> {
    using type = unsigned int;
};
template <>
struct Unsigned<long long> {
    using type = unsigned long long;
};

// The result of a search: the neighbour or NONE, and whether any neighbour is free.
template <typename U>
struct Choice {
    U vertex;
    bool free;
};

// The first red neighbour of v from `place` on; after the row's end the search goes on at its
// beginning.  All lanes of the warp call; those with degree 0 search nothing.
template <typename I, typename U>
__device__ __forceinline__ Choice<U> first_red(I begin, I degree, I place, const I* indices, const unsigned char* state)
{
    constexpr U NONE = ~U(0);
    Choice<U> mine{NONE, false};
    I seen = 0, stop = degree < SHORT_SEARCH ? degree : SHORT_SEARCH;
    while (seen < stop && mine.vertex == NONE) {
        I w = indices[begin + place];
        unsigned char colour = state[w];
        if (colour == RED) mine.vertex = (U)w;
        mine.free |= colour != TAKEN;
        place = place + 1 == degree ? 0 : place + 1;
        ++seen;
    }
    unsigned todo = __ballot_sync(ALL, mine.vertex == NONE && seen < degree);
    while (todo) {
        int owner = __ffs(todo) - 1;
        todo &= todo - 1;
        I its_begin = __shfl_sync(ALL, begin, owner), its_degree = __shfl_sync(ALL, degree, owner);
        I its_place = __shfl_sync(ALL, place, owner), rest = its_degree - __shfl_sync(ALL, seen, owner);
        Choice<U> its{NONE, false};
        for (I first = 0; first < rest && its.vertex == NONE; first += WARP) {
            I t = first + lane();
            unsigned char colour = TAKEN;
            I w = 0;
            if (t < rest) {
                // its_place + t may pass 2^31 where its_degree is near it
                I room = its_degree - its_place;
                w = indices[its_begin + (t < room ? its_place + t : t - room)];
                colour = state[w];
            }
            unsigned red = __ballot_sync(ALL, colour == RED);
            its.free |= __ballot_sync(ALL, colour != TAKEN) != 0;
            if (red) its.vertex = (U)__shfl_sync(ALL, w, __ffs(red) - 1);
        }
        if (lane() == owner) {
            mine.vertex = its.vertex;
            mine.free |= its.free;
        }
    }
    return mine;
}

// The position of the first red neighbour in the order.  All lanes of the warp call; see first_red.
template <typename I, typename U>
__device__ __forceinline__ Choice<U> first_in_order(
    I begin, I degree, const I* indices, const I* position, const unsigned char* state)
{
    Choice<U> mine{~U(0), false};
    auto look = [&](I entry, Choice<U>& found) {
        I w = indices[entry];
        unsigned char colour = state[w];
        found.free |= colour != TAKEN;
        if (colour == RED && (U)position[w] < found.vertex) found.vertex = (U)position[w];
    };
    I stop = degree < SHORT_ROW ? degree : SHORT_ROW;
    for (I t = 0; t < stop; ++t) look(begin + t, mine);
    unsigned todo = __ballot_sync(ALL, degree > SHORT_ROW);
    while (todo) {
        int owner = __ffs(todo) - 1;
        todo &= todo - 1;
        I start = __shfl_sync(ALL, begin, owner), rest = __shfl_sync(ALL, degree, owner);
        Choice<U> its{~U(0), false};
        for (I t = SHORT_ROW + lane(); t < rest; t += WARP) look(start + t, its);
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) {
            U other = __shfl_xor_sync(ALL, its.vertex, step);
            if (other < its.vertex) its.vertex = other;
        }
        its.free = __any_sync(ALL, its.free);
        if (lane() == owner) {
            mine.free |= its.free;
            if (its.vertex < mine.vertex) mine.vertex = its.vertex;
        }
    }
    return mine;
}

// The first edge of v in the order of edges, to a neighbour w whose state is in `wanted` and, if
// `mutual`, that has proposed to v.  All lanes of the warp call; see first_red.
template <bool WEIGHTED, typename I, typename W, typename U>
__device__ Choice<U> first_edge(I v, I begin, I degree, const I* indices, const W* data, unsigned char wanted,
                                const unsigned char* state, const U* target, bool mutual, unsigned long long seed)
{
    W best_w = W(0);
    I best = -1;
    bool free = false;
    auto improve = [&](I u, I w, W weight, I& found, W& found_w) {
        if (found < 0 || prefers(weight, u, w, found_w, u, found, seed, true)) {
            found = w;
            found_w = weight;
        }
    };
    auto look = [&](I u, I entry, I& found, W& found_w, bool& found_free) {
        I w = indices[entry];
        unsigned char colour = state[w];
        found_free |= colour != TAKEN;
        if ((colour & wanted) == 0 || (mutual && target[w] != (U)u)) return;
        improve(u, w, WEIGHTED ? data[entry] : W(1), found, found_w);
    };
    I stop = degree < SHORT_ROW ? degree : SHORT_ROW;
    for (I t = 0; t < stop; ++t) look(v, begin + t, best, best_w, free);
    unsigned todo = __ballot_sync(ALL, degree > SHORT_ROW);
    while (todo) {
        int owner = __ffs(todo) - 1;
        todo &= todo - 1;
        I u = __shfl_sync(ALL, v, owner), start = __shfl_sync(ALL, begin, owner);
        I rest = __shfl_sync(ALL, degree, owner);
        I found = -1;
        W found_w = W(0);
        bool found_free = false;
        for (I t = SHORT_ROW + lane(); t < rest; t += WARP) look(u, start + t, found, found_w, found_free);
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) {
            I other = __shfl_xor_sync(ALL, found, step);
            W other_w = __shfl_xor_sync(ALL, found_w, step);
            if (other >= 0) improve(u, other, other_w, found, found_w);
        }
        found_free = __any_sync(ALL, found_free);
        if (lane() == owner) {
            free |= found_free;
            if (found >= 0) improve(v, found, found_w, best, best_w);
        }
    }
    return Choice<U>{best < 0 ? ~U(0) : (U)best, free};
}

__device__ __forceinline__ unsigned char colour_of(
    unsigned long long v, unsigned int r, unsigned long long threshold)
{
    return random_bit((unsigned int)v, r, threshold) ? BLUE : RED;
}

// `round_number` of primitives/hashing.
__device__ __forceinline__ unsigned int round_number(long long k, unsigned long long seed)
{
    return (unsigned int)(hash2(0, k, seed) >> 32) | 1u;
}

// Up to `rounds` rounds; done when control[DONE] is set.  Blocks of BLOCK threads, all resident.
// Caller: before the first launch control[] is (0, 1, 0); later launches have the same grid and
// continue from the arrays as they are.  got[i] and left[i] are 0: for the i-th round of this launch
// they become the number of vertices that it matched, and of live vertices after it.
// room: the size of a block's segment, at least BLOCK times the tiles it takes.
// Three blocks per multiprocessor instead of two: R-MAT 22 1.19 against 1.33 ms.
// position and order are null unless ORDERED.
template <typename I, typename W, bool WEIGHTED, bool ORDERED>
__global__ void __launch_bounds__(BLOCK, WEIGHTED ? 2 : 3) match(
    I n, const I* indptr, const I* indices, const W* data, const I* position, const I* order,
    unsigned long long seed, unsigned long long threshold, int rounds, I room, I* mates, I* targets, unsigned char* state, I* live, I* sizes, long long* control,
    unsigned long long* got, unsigned long long* left, unsigned int* barrier_words)
{
    using U = typename Unsigned<I>::type;
    constexpr U NONE = ~U(0);
    U* mate = reinterpret_cast<U*>(mates);
    U* target = reinterpret_cast<U*>(targets);
    GridBarrier grid(barrier_words);
    I* mine = live + (long long)blockIdx.x * room;
    long long k = control[ROUND];
    bool coloured = control[COLOURED] != 0;
    I size = 0;
    if (k == 0) {
        unsigned int r = round_number(0, seed);
        for (long long first = (long long)blockIdx.x * BLOCK; first < n; first += (long long)gridDim.x * BLOCK) {
            long long v = first + threadIdx.x;
            bool joined = false;
            if (v < n) {
                joined = indptr[v] < indptr[v + 1];
                mate[v] = NONE;
                state[v] = joined ? colour_of(v, r, threshold) : TAKEN;
            }
            I total, place = block_exclusive_sum(I(joined), &total);
            if (joined) mine[size + place] = (I)v;
            size += total;
        }
    } else {
        size = sizes[blockIdx.x];
    }
    grid.wait();

    for (int number = 0; number < rounds; ++number, ++k) {
        // propose; all lanes of a warp do the same number of steps
        for (I first = 0; first < size; first += BLOCK) {
            I i = first + (I)threadIdx.x;
            I v = i < size ? mine[i] : 0;
            bool asks = i < size && (!coloured || state[v] == BLUE);
            I begin = asks ? indptr[v] : 0, degree = asks ? indptr[v + 1] - begin : 0;
            Choice<U> choice;
            if (ORDERED && coloured) {
                choice = first_in_order<I, U>(begin, degree, indices, position, state);
                if (choice.vertex != NONE) choice.vertex = (U)order[choice.vertex];
            } else if (coloured && !WEIGHTED) {
                I place = (I)(((hash2(k, v, seed) >> 32) * (unsigned long long)degree) >> 32);
                choice = first_red<I, U>(begin, degree, place, indices, state);
            } else {
                unsigned char wanted = coloured ? RED : BLUE | RED;
                choice = first_edge<WEIGHTED>(v, begin, degree, indices, data, wanted, state, target, false, seed);
            }
            if (asks) {
                target[v] = choice.vertex;
                if (!choice.free) state[v] = TAKEN;
                if (coloured && choice.vertex != NONE) lower_to(&mate[choice.vertex], ORDERED ? (U)position[v] : (U)v);
            }
        }
        grid.wait();

        if (WEIGHTED && coloured) {
            for (I first = 0; first < size; first += BLOCK) {
                I i = first + (I)threadIdx.x;
                I v = i < size ? mine[i] : 0;
                bool asked = i < size && state[v] == RED && mate[v] != NONE;
                I begin = asked ? indptr[v] : 0, degree = asked ? indptr[v + 1] - begin : 0;
                Choice<U> choice =
                    first_edge<WEIGHTED>(v, begin, degree, indices, data, BLUE, state, target, true, seed);
                if (asked) mate[v] = choice.vertex;
            }
            grid.wait();
        }

        if (ORDERED && coloured) {
            for (I i = (I)threadIdx.x; i < size; i += BLOCK) {
                I v = mine[i];
                if (state[v] == RED && mate[v] != NONE) mate[v] = (U)order[mate[v]];
            }
            grid.wait();
        }

        // resolve
        unsigned int r = round_number(k + 1, seed);
        I kept = 0;
        unsigned int matched = 0;
        for (I first = 0; first < size; first += BLOCK) {
            I i = first + (I)threadIdx.x;
            I v = i < size ? mine[i] : 0;
            unsigned char colour = i < size ? state[v] : TAKEN;
            bool stays = false;
            if (colour != TAKEN) {
                U to = coloured && colour == RED ? NONE : target[v];
                bool taken = to != NONE && (coloured ? mate[to] : target[to]) == (U)v;
                if (taken) mate[v] = to;
                if (coloured && colour == RED) taken = mate[v] != NONE;
                stays = !taken;
                matched += taken;
                state[v] = stays ? colour_of(v, r, threshold) : TAKEN;
            }
            I total, place = block_exclusive_sum(I(stays), &total);
            // the whole tile has been read, and kept + place lies before the next tile
            if (stays) mine[kept + place] = v;
            kept += total;
        }
        size = kept;
        __syncthreads();
        matched = block_reduce(matched, 0u, Plus());
        if (threadIdx.x == 0) {
            if (matched) atomicAdd(&got[number], (unsigned long long)matched);
            if (kept) atomicAdd(&left[number], (unsigned long long)kept);
        }
        grid.wait();
        bool idle = load_relaxed(&got[number]) == 0;
        coloured = !idle || !coloured;
        if (load_relaxed(&left[number]) == 0) {
            if (global_thread() == 0) control[ROUND] = k + 1, control[DONE] = 1;
            return;
        }
    }
    if (threadIdx.x == 0) sizes[blockIdx.x] = size;
    if (global_thread() == 0) control[ROUND] = k, control[COLOURED] = coloured;
}

// sums[b]: the weights of the edges of block b's vertices; an edge counts at both ends.
template <typename I, typename W>
__global__ void weigh(I n, const I* indptr, const I* indices, const W* data, const I* mate, double* sums)
{
    long long v = global_thread();
    double weight = 0;
    if (v < n && mate[v] >= 0) {
        I u = mate[v], low = indptr[v], high = indptr[v + 1];
        while (low + 1 < high) {  // rows are sorted
            I middle = low + (high - low) / 2;
            if (indices[middle] <= u)
                low = middle;
            else
                high = middle;
        }
        weight = widened(data[low]);
    }
    weight = block_reduce(weight, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = weight;
}
