// Locally dominant matching of a partition, on a device that holds lists and not rows.  Host side: gpu.py; the steps of
// a vertex: steps.cuh; the rounds and the idea: __init__.py; the same steps on the CPU, with all encodings: cpu.py.
//
//   pack_rows       a warp or a block per row: the first edges of a row in a buffer go into its vertex's list
//   point_first     a thread per vertex whose row has just passed: it points at the first vertex of its list
//   point_on        a thread per vertex whose row has passed: on to the next free one, if its target is matched
//   point_next      a thread per queued vertex: it points at the next free one of its list
//   list_wanted     a thread per vertex: those whose list has run out, nearly in order
//   settle_mutual   a thread per changed vertex: two that point at each other are mates
//   requeue_own     a thread per vertex of the partition: those that point at a matched vertex
//   settle_rounds   settle and point in turn, for one partition, in one cooperative launch.  Rows that must travel it
//                   reads from the host by itself; where it cannot, it ends
//   write_pairs, read_pairs    changed pointers, for other devices
//
// state[u]: the mate, or ~v where u is free and points at v; ~u means that it points at no vertex.
//
// Queues.  `queue` holds the vertices that point next.  `pointed` gets those that point at a vertex now, from its
// front, and those whose rows must travel, from its back.  Settling reads `pointed` and writes the next `queue`: by the
// linked lists of waiting vertices where few have changed, else by a look at all vertices.  The lists of the only
// partition are made when they are needed first.
//
// Races.  In `point` only u's thread writes state[u], and others read its sign alone, which does not change.
// `waiting` is changed by exchange; the lists that it begins are walked in a later step.  In `settle` one of the
// two ends changes the smaller end's word by compare-and-swap and does the rest; other threads compare these words
// with ~(their own vertex), and no thread writes a negative word there.  A vertex that waits for a matched x has no
// other mate, so its word does not change while x's list is walked.  The order of queues is arbitrary, and
// nothing depends on it.
#include "matchwood/edge_order.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/steps.cuh"

constexpr int WORTH_ORDER = 4096;  // rows; from this number on they travel by vertex, which takes half the time
constexpr int WALK_PART = 64;  // waiting vertices are walked where 1 / WALK_PART of all vertices point anew, or fewer

// ---- lists ----

// room[i] = entries of the list of the i-th vertex; their sums are where the lists begin.
template <typename P>
__global__ void list_rooms(long long rows, const P* offsets, int length, P* room)
{
    long long i = global_thread();
    if (i >= rows) return;
    P degree = offsets[i + 1] - offsets[i];
    room[i] = degree < length ? degree : (P)length;
}

// The rows of a buffer.  by_vertex: the entries are counted in `control`.
template <typename I, typename P, typename W>
__global__ void __launch_bounds__(PACK_BLOCK, 4)
    pack_rows(long long rows, const I* ids, long long base, const P* begins, const P* ends, long long first,
              long long last, const I* columns, const W* weights, bool only_free, bool by_vertex, const I* state,
              long long lo, const P* start, unsigned char* size, I* list_columns, W* list_weights,
              unsigned long long seed, bool by_hash, unsigned long long* control)
{
    PassingRows<I, P, W> from{ids, base, begins, ends, first, last, columns, weights, only_free,
                              only_free && (by_vertex || ids != nullptr), by_vertex, state, seed, by_hash};
    EdgeLists<I, P, W> lists{lo, start, size, list_columns, list_weights};
    long long read = pack_all(rows, from, lists, false);
    if (by_vertex && lane() == 0 && read > 0) take(&control[FETCHED], Wide(read));
}

// The row of u will travel: its list is empty again.
__device__ __forceinline__ void empty_list(long long at, unsigned char* size, unsigned char* head)
{
    size[at] = 0;
    head[at] = 0;
}

// A thread per vertex of the partition: those whose rows must travel, nearly in order; their lists are empty again.  Rows
// that lie near each other travel faster than rows in any order.
template <typename I>
__global__ void list_wanted(long long lo, long long hi, const I* state, unsigned char* size, unsigned char* head, I* queue,
                            unsigned long long* control)
{
    long long u = lo + global_thread();
    bool wanted = u < hi && has_run_out((I)u, lo, state, size, head);
    if (wanted) empty_list(u - lo, size, head);
    append(queue, &control[LISTED], (I)u, wanted);
}

// As list_wanted, in any order, where vertices are few: a thread per vertex at the back of `pointed`.
template <typename I>
__global__ void take_wanted(long long count, const I* ids, long long lo, unsigned char* size, unsigned char* head, I* queue)
{
    long long k = global_thread();
    if (k >= count) return;
    queue[k] = ids[k];
    empty_list(ids[k] - lo, size, head);
}

// ---- steps ----

// The vertices of the partition, or those that are free, are the queue.
template <typename I>
__global__ void queue_own(long long lo, long long hi, bool only_free, const I* state, I* queue, unsigned long long* control)
{
    long long u = lo + global_thread();
    append(queue, &control[QUEUED], (I)u, u < hi && (!only_free || state[u] < 0));
}

// All lanes of the warp call.
__device__ __forceinline__ void count_pointing(bool points, unsigned long long* control)
{
    unsigned votes = __ballot_sync(ALL, points);
    if (votes != 0 && lane() == 0) take(&control[POINTED], Wide(__popc(votes)));
}

// A thread per vertex from `first` to last - 1, whose rows have just passed: it points at the first one of its list.  So
// vertices are matched while rows pass, as soon as the rows of both have passed: a vertex whose row has not points at
// itself, and no vertex takes it for a mate.
template <typename I, typename P>
__global__ void point_first(long long first, long long last, long long lo, const P* start, const unsigned char* size,
                            const I* columns, I* state, unsigned long long* control)
{
    long long u = first + global_thread();
    bool points = u < last && (size[u - lo] & LENGTH_BITS) != 0;
    if (points) store_relaxed(&state[u], (I)~columns[start[u - lo]]);
    count_pointing(points, control);
}

// A thread per vertex from lo to last - 1, whose rows have passed.  Those whose lists run out wait for settle_rounds.
template <typename I, typename P>
__global__ void point_on(I lo, I hi, I last, I* state, const P* start, const unsigned char* size, unsigned char* head,
                         const I* columns, I* pointed, unsigned long long* control)
{
    Part<I, P> part{hi, lo, hi, state, nullptr, nullptr, start, size, head, columns, nullptr, pointed, control};
    long long u = lo + global_thread();
    bool points = false, wants = false;
    if (u < last && part.is_invalid((I)u)) part.advance((I)u, false, points, wants);
    count_pointing(points, control);
    part.list_at_back((I)u, wants);
}

template <typename I, typename P>
__global__ void point_next(I n, I lo, I hi, I* state, I* waiting, I* following, const P* start,
                           const unsigned char* size, unsigned char* head, const I* columns, const I* source,
                           unsigned long long count, bool chained, I* pointed, unsigned long long* control)
{
    Part<I, P> part{n, lo, hi, state, waiting, following, start, size, head, columns, nullptr, pointed, control};
    part.point(source, count, chained);
}

template <typename I>
__global__ void settle_mutual(I n, I lo, I hi, I* state, I* waiting, I* following, const I* source, I first,
                              unsigned long long count, int step, bool walk, I* queue, unsigned long long* control)
{
    Part<I, int> part{n, lo, hi, state, waiting, following, nullptr, nullptr, nullptr, nullptr, queue, nullptr, control};
    part.settle(source, first, count, step, walk);
}

template <typename I>
__global__ void requeue_own(I n, I lo, I hi, I* state, I* queue, unsigned long long* control)
{
    Part<I, int> part{n, lo, hi, state, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, queue, nullptr, control};
    part.requeue_all();
}

// Cooperative, for the only partition of a graph.  Caller: `pointed` holds POINTED vertices that point, and MATCHED is 0;
// or SETTLED is 1, and MATCHED edges of POINTED vertices are matched already, and WANTED vertices at the back of `pointed`
// need their rows.  Otherwise WANTED is 0; QUEUED and TOO_LONG always are.  Rows that must travel are read at
// `row_columns`; that of u begins at begins[u - base].
// places_kept: until vertices wait in linked lists, `following` holds where rows begin, so the host need not send that.
// Where row_columns is null, the launch ends when rows must travel (WANTED).  It ends too when nothing is left to do (QUEUED or
// MATCHED is 0), and after LEFT rounds; then those that point are in `pointed`, and the next launch goes on.
template <typename I, typename P, typename W>
__global__ void __launch_bounds__(PACK_BLOCK, 4)
    settle_rounds(I n, I* state, I* waiting, I* following, const P* start, unsigned char* size, unsigned char* head,
                  I* columns, W* weights, I* queue, I* pointed, bool places_kept, long long base, const P* begins,
                  const P* ends, long long first, long long last, const I* row_columns, const W* row_weights, unsigned long long seed,
                  bool by_hash, unsigned long long* control, unsigned int* words)
{
    Part<I, P> part{n, I(0), n, state, waiting, following, start, size, head, columns, queue, pointed, control};
    EdgeLists<I, P, W> lists{0, start, size, columns, weights};
    GridBarrier barrier(words);
    bool leader = global_thread() == 0, chained = load_relaxed(&control[CHAINED]) != 0;
    bool settled = load_relaxed(&control[SETTLED]) != 0;
    while (true) {
        Wide count = load_relaxed(&control[POINTED]);
        if (!settled && !chained && count <= (Wide)n / WALK_PART) {
            part.chain_all();
            barrier.wait();
            chained = true;
        }
        bool walk = !settled && chained && count <= (Wide)n / WALK_PART;
        if (!settled) part.settle(pointed, I(0), count, 1, walk);
        settled = false;
        barrier.wait();
        Wide matched = load_relaxed(&control[MATCHED]);
        bool look_at_all = !walk || load_relaxed(&control[TOO_LONG]) != 0;
        if (look_at_all) {
            barrier.wait();  // all have read TOO_LONG
            if (leader) {
                store_relaxed(&control[QUEUED], Wide(0));
                store_relaxed(&control[TOO_LONG], Wide(0));
            }
            barrier.wait();
            part.requeue_all();
            barrier.wait();
        }
        Wide queued = load_relaxed(&control[QUEUED]), left = load_relaxed(&control[LEFT]);
        Wide waiting_for_rows = load_relaxed(&control[WANTED]);
        barrier.wait();  // all have read the words
        if (leader) {
            store_relaxed(&control[ROUNDS], load_relaxed(&control[ROUNDS]) + (matched > 0));
            store_relaxed(&control[ALL_POINTED], load_relaxed(&control[ALL_POINTED]) + count);
            store_relaxed(&control[LEFT], left - 1);
            store_relaxed(&control[CHAINED], Wide(chained));
            store_relaxed(&control[POINTED], Wide(0));
            store_relaxed(&control[SETTLED], Wide(0));
        }
        if (matched == 0 || (queued == 0 && waiting_for_rows == 0)) return;
        if (leader) {
            store_relaxed(&control[QUEUED], Wide(0));
            store_relaxed(&control[MATCHED], Wide(0));
        }
        barrier.wait();
        part.point(queue, queued, chained);
        barrier.wait();
        Wide wanted = load_relaxed(&control[WANTED]);
        if (wanted > 0) {
            if (row_columns == nullptr) return;
            const I* ids = pointed + ((Wide)n - wanted);
            if (wanted >= WORTH_ORDER) {
                part.list_wanted();
                barrier.wait();
                ids = queue;
            }
            const P* places = places_kept && !chained ? reinterpret_cast<const P*>(following) : nullptr;
            PassingRows<I, P, W> from{ids, places ? 0 : base, places ? places : begins, places ? places + 1 : ends, first, last,
                                      row_columns, row_weights, true, true, true, state, seed, by_hash};
            for (Wide k = global_thread(); k < wanted; k += all_threads()) {
                I u = load_relaxed(&ids[k]);
                head[u] = 0;
                store_relaxed(&queue[k], u);  // those that point are written over the back of `pointed`
            }
            long long read = pack_all((long long)wanted, from, lists, true);
            if (lane() == 0 && read > 0) take(&control[FETCHED], Wide(read));
            barrier.wait();
            if (leader) {
                store_relaxed(&control[ROWS_READ], load_relaxed(&control[ROWS_READ]) + wanted);
                store_relaxed(&control[WANTED], Wide(0));
                store_relaxed(&control[LISTED], Wide(0));
            }
            barrier.wait();
            part.point(queue, wanted, chained);  // all that have a free neighbour point: none is wanted again
            barrier.wait();
        }
        if (left <= 1) return;
    }
}

// ---- other devices ----

// A thread per vertex that is listed: (vertex, word) for another device.
template <typename I>
__global__ void write_pairs(long long count, const I* ids, const I* state, I* pairs)
{
    long long k = global_thread();
    if (k >= count) return;
    I u = ids[k];
    pairs[2 * k] = u;
    pairs[2 * k + 1] = state[u];
}

template <typename I>
__global__ void read_pairs(long long count, const I* pairs, I* state)
{
    long long k = global_thread();
    if (k < count) state[pairs[2 * k]] = pairs[2 * k + 1];
}

// ---- the ends ----

template <typename I>
__global__ void begin_state(long long n, I* state)
{
    long long v = global_thread();
    if (v < n) state[v] = (I)~v;
}

// A thread per vertex of the partition, the same grid always: sums[block] = the weights of the edges that they
// are matched along.  An edge is seen from both of its ends.
template <typename I, typename P, typename W>
__global__ void add_weights(long long count, long long lo, const I* state, const P* start, const unsigned char* head,
                            const W* list_weights, double* sums)
{
    double sum = 0;
    for (long long at = global_thread(); at < count; at += all_threads())
        if (state[lo + at] >= 0) sum += widened(list_weights[start[at] + head[at]]);
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The mates as the result has them: -1 for vertices that are free.
template <typename I>
__global__ void finish_state(long long n, I* state)
{
    long long v = global_thread();
    if (v < n && state[v] < 0) state[v] = I(-1);
}
