// Strongly connected components on the GPU: what largest.cu left open, and the numbering.
// Host side: __init__.py.  The rule and the papers: ../__init__.py.
//
// Every open vertex has a class, at first the same; no component crosses a border of classes.  In a
// round, values go along the arcs within classes until nothing changes, the largest wins:
//   into[v]     the largest value that reaches v
//   from[v]     the largest value that v reaches
// Where both are the same, they are the value of one vertex that v reaches and is reached from:
// v is done.  Others are given a new class, a hash of (class, into, from): two vertices of one
// component agree in all three.  (Should other vertices hash alike, they are parted in a later
// round.)  The vertex of the largest value in a class, if that has a component, is always done.
//
//   all pivots     every vertex starts with its own value, a bijective hash of its number and the
//                  round, so that rounds are few however the vertices are numbered
//   one pivot      a vertex in each class starts with 1, all others with 0: that is
//                  forward-backward search in all classes at once, and the four new classes are
//                  the component and the three sets that remain
//
// With all pivots a value names a vertex, and what reaches that one reaches v too: into[v] takes
// the value of into[that vertex].  Long ways so take a number of passes like the logarithm, as a
// rule; a value that was overtaken by a smaller one follows it arc by arc.  So a round that takes
// more than DRAW_PASSES passes is broken off, and a new hash is drawn; after each such round in a row the
// limit is twice as high.  With one pivot ways take their length; after PASSES all are made pivots.
//
// A pass reads all open vertices, and follows the arcs of those whose value the pass before has
// changed.  Rows are cut into parts of PART entries, so that threads share a long one.  Parts of
// open vertices are listed again in every round.
//
// A vertex without a neighbour of its class before it, or behind it, is done at once (trimming).
//
// Races.  into and from go up by atomicMax alone, to values of vertices that do reach v (are
// reached from it); who raises one stamps the vertex for the next pass, and the last pass changes
// nothing, so they do not depend on scheduling.  A vertex stamped twice gives its latest value, in
// the later of the two passes.  kind[v] goes to 0, by any thread that sees that v is trivial; a neighbour may
// still have v's value, which is right nevertheless.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/number.cuh"

constexpr int BLOCK = 256;  // threads
constexpr int PART = 256;   // entries of a part of a row
constexpr int PASSES = 64;  // passes, at most, in a round with one pivot
// Passes, at most, in a round with all pivots.  A path of 10^6 takes 40, a chain of 10^4 cycles 100.
constexpr int DRAW_PASSES = 128;
constexpr unsigned char OPEN = 0;

// Words of `control`, all 0 before the first launch.
constexpr int GATE = 0;      // two halves, of the barrier
constexpr int SIZES = 1;     // parts of rows and of columns
constexpr int CHANGES = 3;   // three in turn: what this pass counts, the next, one to be emptied
constexpr int STAGE = 6;     // 0, SPREADING, FINISHED
constexpr int ROUND = 7;     // this one
constexpr int PASS = 8;      // passes so far, in all rounds
constexpr int SINGLE = 9;    // whether one pivot a class was given up
constexpr int SINCE = 10;    // passes of this round
constexpr int BROKEN = 11;   // rounds in a row that were broken off
constexpr int TOTAL = 12;    // components
constexpr int SPREADING = 1, FINISHED = 2;

using Wide = unsigned long long;

template <typename I>
struct Values;

// A bijection of 32-bit numbers, mix32, and back.
template <>
struct Values<int> {
    using type = unsigned int;
    static __device__ __forceinline__ type of(type v, type seed) { return mix32(v ^ seed); }
    static __device__ __forceinline__ type vertex(type x, type seed)
    {
        x = (x ^ x >> 16) * 0x7ed1b41du;
        x = (x ^ x >> 13 ^ x >> 26) * 0xa5cb9243u;
        return x ^ x >> 16 ^ seed;
    }
};

// The same of 64-bit numbers: mix64.
template <>
struct Values<long long> {
    using type = unsigned long long;
    static __device__ __forceinline__ type of(type v, type seed) { return mix64(v ^ seed); }
    static __device__ __forceinline__ type vertex(type x, type seed)
    {
        x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3ull;
        x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089ull;
        return x ^ x >> 30 ^ x >> 60 ^ seed;
    }
};

template <typename I>
struct alignas(2 * sizeof(I)) Part {
    I vertex, number;
};

// One direction: rows of the pattern or of its transpose, the values that go along them, and the
// parts to read.
template <typename I>
struct Side {
    const I *indptr, *indices;
    typename Values<I>::type* value;
    unsigned int* stamp;  // the pass in which a vertex has something new to give
    Part<I>* parts;
    Wide size;
};

template <typename I>
struct Spread {
    using Value = typename Values<I>::type;

    I n;
    Side<I> rows, columns;     // into[] goes along the rows, from[] along the columns
    unsigned int* kind;        // the class; 0: done
    Value* pivot;              // the value of the pivot of each class, by class modulo n
    I* component;
    Wide* control;
    GridBarrier gate;
    Value seed;
    bool single;
    Wide passes;

    __device__ __forceinline__ void wait() const { gate.wait(); }
    __device__ __forceinline__ bool leads() const { return global_thread() == 0; }

    __device__ __forceinline__ void set_round(Wide round) { seed = (Value)mix64(round + GOLDEN); }

    template <typename Each>
    __device__ __forceinline__ void for_vertices(Each each) const
    {
        for (long long first = global_thread() - lane(); first < n; first += all_threads())
            each((I)(first + lane()), first + lane() < n);
    }

    __device__ __forceinline__ Value* slot(unsigned int its) const { return &pivot[its % (Wide)n]; }

    __device__ __forceinline__ void open(const unsigned char* mark) const
    {
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            kind[v] = mark[v] == OPEN ? 1u : 0u;
            pivot[v] = 0;
        });
        wait();
    }

    // Parts of this side of the open vertices; a vertex has at least one.
    __device__ __forceinline__ void list(const Side<I>& side, I v, bool is_open, Wide* size) const
    {
        I count = 0;
        if (is_open) {
            count = (side.indptr[v + 1] - side.indptr[v] + PART - 1) / PART;
            if (count == 0) count = 1;
        }
        I before = warp_exclusive_sum(count);
        I all = __shfl_sync(ALL, I(before + count), WARP - 1);
        Wide start = 0;
        if (lane() == 0) start = atomicAdd(size, (Wide)all);
        start = __shfl_sync(ALL, start, 0) + before;
        for (I k = 0; k < count; ++k) side.parts[start + k] = {v, k};
    }

    // Lists all parts and gives out the first values.  False: nothing is open.
    __device__ bool begin_round()
    {
        if (single) {
            for_vertices([&](I v, bool is_vertex) {
                if (is_vertex && kind[v] != 0) raise_to(slot(kind[v]), Values<I>::of((Value)v, seed));
            });
            wait();
        }
        for_vertices([&](I v, bool is_vertex) {
            bool is_open = is_vertex && kind[v] != 0;
            if (!__any_sync(ALL, is_open)) return;
            if (is_open) {
                Value mine = Values<I>::of((Value)v, seed);
                if (single) mine = *slot(kind[v]) == mine ? 1 : 0;
                rows.value[v] = columns.value[v] = mine;
                rows.stamp[v] = columns.stamp[v] = (unsigned int)passes;
            }
            list(rows, v, is_open, &control[SIZES]);
            list(columns, v, is_open, &control[SIZES + 1]);
        });
        wait();
        return read_sizes();
    }

    __device__ bool read_sizes()
    {
        rows.size = load_relaxed(&control[SIZES]);
        columns.size = load_relaxed(&control[SIZES + 1]);
        return rows.size > 0;
    }

    // A pass over both sides, 32 parts per warp, their entries distributed evenly: vertices whose value
    // has changed give it to their neighbours.  Returns whether the thread changed a value.
    __device__ bool pass() const
    {
        __shared__ unsigned char any[BLOCK];
        unsigned char* anys = any + warp() * WARP;
        bool changed = false;
        unsigned int now = (unsigned int)passes;
        Wide warps = all_threads() / WARP, border = (rows.size + WARP - 1) / WARP;
        Wide last = border + (columns.size + WARP - 1) / WARP;
        for (Wide item = global_thread() / WARP; item < last; item += warps) {
            const Side<I>& side = item < border ? rows : columns;
            Wide at = (item < border ? item : item - border) * WARP + lane();
            I v = 0, begin = 0, end = 0;
            unsigned int its = 0;
            Value mine = 0;
            bool whole = false;
            if (at < side.size) {
                Part<I> part = side.parts[at];
                v = part.vertex;
                its = load_relaxed(&kind[v]);
                mine = load_relaxed(&side.value[v]);
                bool fresh = load_relaxed(&side.stamp[v]) == now;
                if (its != 0 && !single && part.number == 0) {
                    Value there = load_relaxed(&side.value[Values<I>::vertex(mine, seed)]);
                    if (there > mine && raise_to(&side.value[v], there) < there) {
                        store_relaxed(&side.stamp[v], now + 1);
                        changed = true;
                    }
                }
                if (its != 0 && fresh) {
                    I start = side.indptr[v], stop = side.indptr[v + 1];
                    begin = start + part.number * PART;
                    end = stop - begin > PART ? begin + PART : stop;
                    whole = stop - start <= PART;
                }
            }
            if (!__any_sync(ALL, whole || begin < end)) continue;
            anys[lane()] = 0;
            __syncwarp();
            WarpRows<I, int>(begin, end).for_entries([&](int owner, I place, bool is_entry) {
                I giver = __shfl_sync(ALL, v, owner);
                unsigned int wanted = __shfl_sync(ALL, its, owner);
                Value value = __shfl_sync(ALL, mine, owner);
                if (!is_entry) return;
                I w = side.indices[place];
                if (w == giver || load_relaxed(&kind[w]) != wanted) return;
                anys[owner] = 1;  // all writers write 1
                if (load_relaxed(&side.value[w]) < value && raise_to(&side.value[w], value) < value) {
                    store_relaxed(&side.stamp[w], now + 1);
                    changed = true;
                }
            });
            __syncwarp();
            if (whole && !anys[lane()]) {
                component[v] = v;
                store_relaxed(&kind[v], 0u);
            }
            __syncwarp();
        }
        return changed;
    }

    // True while anything changes.
    __device__ bool spread()
    {
        Wide* word = &control[CHANGES + passes % 3];
        bool changed = pass();
        if (__syncthreads_or(changed) && threadIdx.x == 0 && load_relaxed(word) == 0) store_relaxed(word, Wide(1));
        wait();
        bool again = load_relaxed(word) != 0;
        if (leads()) store_relaxed(&control[CHANGES + (passes + 2) % 3], Wide(0));
        ++passes;
        return again;
    }

    // Which vertices are done, and the classes of the others.  `settled`: the values are final.
    __device__ void end_round(bool settled)
    {
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            unsigned int its = kind[v];
            if (its == 0 || !settled) return;
            Value into = rows.value[v], from = columns.value[v];
            if (into == from && (!single || into == 1)) {
                Value its_pivot = single ? *slot(its) : into;
                component[v] = (I)Values<I>::vertex(its_pivot, seed);
                kind[v] = 0;
            } else {
                unsigned int hash = (unsigned int)hash2((long long)into, (long long)from, its);
                kind[v] = hash == 0 ? 1u : hash;
            }
        });
        if (leads()) {
            control[SIZES] = control[SIZES + 1] = 0;
            control[ROUND] += 1;
        }
        wait();
        if (single) {
            for_vertices([&](I v, bool is_vertex) {
                if (is_vertex) pivot[v] = 0;
            });
            wait();
        }
    }

    // label[v]: how many components have a smaller smallest vertex.  `least` and `count` are the
    // memory of the values, free now; `count` has a place for each block.
    __device__ void number(I* label)
    {
        I* least = reinterpret_cast<I*>(rows.value);
        I* counts = reinterpret_cast<I*>(columns.value);
        for_vertices([&](I v, bool is_vertex) {
            if (is_vertex) least[v] = n;
        });
        wait();
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            I* word = &least[component[v]];
            if (load_relaxed(word) > v) lower_to(word, v);
        });
        wait();
        Run run((n + gridDim.x - 1) / gridDim.x, n);
        auto is_root = [&](long long v) { return least[component[v]] == v; };
        I count = count_wanted<I>(run, is_root);
        if (threadIdx.x == 0) counts[blockIdx.x] = count;
        wait();
        I next = number_wanted(run, counted_before(counts), is_root, [&](long long v, I number) { label[v] = number; });
        if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) control[TOTAL] = (Wide)next;
        wait();
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            I root = least[component[v]];
            if (root != v) label[v] = label[root];
        });
    }
};

// Caller: cooperative launch, block BLOCK, not more blocks than vertices; mark and component as
// largest.cu left them.  Stops after `most` passes and is launched again: between launches the host
// can stop it.  control[STAGE] is FINISHED when labels and control[TOTAL] are there.
template <typename I>
__global__ void __launch_bounds__(BLOCK, 4) spread_values(
    I n, const I* indptr, const I* indices, const I* in_indptr, const I* in_indices, bool single,
    int most, const unsigned char* mark, I* component, I* into, I* from, I* pivot, unsigned int* kind,
    unsigned int* stamps, I* row_parts, I* column_parts, I* label, unsigned long long* control)
{
    using Value = typename Values<I>::type;
    Spread<I> s{n,
                {indptr, indices, reinterpret_cast<Value*>(into), stamps, reinterpret_cast<Part<I>*>(row_parts), 0},
                {in_indptr, in_indices, reinterpret_cast<Value*>(from), stamps + n,
                 reinterpret_cast<Part<I>*>(column_parts), 0},
                kind, reinterpret_cast<Value*>(pivot), component, control,
                GridBarrier(reinterpret_cast<unsigned int*>(&control[GATE])), 0, single, 0};
    Wide round = load_relaxed(&control[ROUND]);
    Wide since = load_relaxed(&control[SINCE]), broken = load_relaxed(&control[BROKEN]);
    bool running = load_relaxed(&control[STAGE]) == SPREADING;
    s.passes = load_relaxed(&control[PASS]);
    s.single = single && load_relaxed(&control[SINGLE]) == 0;
    s.set_round(round);
    s.wait();  // all have read the words
    bool left = true;
    if (running)
        s.read_sizes();
    else {
        s.open(mark);
        left = s.begin_round();
    }
    for (int spent = 0; left && spent < most; ++spent) {
        bool again = s.spread();
        bool too_long = ++since >= (s.single ? PASSES : (Wide)DRAW_PASSES << broken);
        if (again && !too_long) continue;
        s.end_round(!again);
        broken = again && !s.single ? broken + 1 : 0;
        s.single = s.single && !again;
        since = 0;
        s.set_round(++round);
        left = s.begin_round();
    }
    if (!left) s.number(label);
    if (s.leads()) {
        control[STAGE] = left ? SPREADING : FINISHED;
        control[PASS] = s.passes;
        control[SINCE] = since;
        control[BROKEN] = broken;
        control[SINGLE] = single && !s.single;
    }
}
