// Linear forests by splitters on the GPU, and the values of a matrix along their paths.  Host: gpu.py.
//
// Walks start at the ends of paths and, in both directions, at sampled vertices ("nodes", one in
// SPACING).  A walk claims the vertices that it passes, by compare-and-swap on their marks, until it
// meets a claimed one: then both walks, and the distance between their starts, are known.  So every
// vertex is passed once.  This leaves a list of nodes, 1/SPACING as long, whose positions are found by
// doubling.  Last, every vertex computes its position from its mark (which walk, how many steps)
// and the record of that walk.
//
//   begin    one thread per vertex: mark ends and nodes, list them
//   follow   one thread per walk
//   rings    one thread per vertex that no walk has reached: cycles without a node, all short; the
//            smallest vertex of each cuts it
//   rank     the positions of nodes, by doubling, in one launch
//   weigh    one thread per vertex: offer the weakest edge to the cycle's node
//   cut      one thread per node: the one that stands for a cycle finds where it was cut
//   record   one thread per node and end: path, position, direction of its walks
//   settle   one thread per vertex: path, position, place, perm
//
//   collect  the values of a matrix along the paths
//
// Races.  Marks change from 0 to a claim once, by compare-and-swap; ends and nodes are marked before
// walks start.  Which walk claims a vertex depends on scheduling, the position that follows from it
// does not.  The weakest edge is a minimum.
#include "matchwood/atomics.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

// Tables with two columns: a row in one load.
template <typename T>
struct alignas(2 * sizeof(T)) Two {
    T one, other;
};

template <typename T>
__device__ __forceinline__ Two<T> two(const T* __restrict__ table, long long v)
{
    return reinterpret_cast<const Two<T>*>(table)[v];
}

// Marks that walks along paths leave at vertices.

using Mark = unsigned long long;

// A mark, from the top: 2 bits kind, 31 bits walk, 31 bits steps.  Walks from an end have its vertex
// as number, those of a node 2 * node + side.  A node's own mark has the node in the place of the
// steps.  An end's own mark is its record: END, 31 bits the other end and 30 bits the length of the
// path; length 0: not known yet, and in the place of the end the slot of the node that was met.
constexpr Mark FROM_END = 1ull << 62, FROM_NODE = 2ull << 62, OWN = 3ull << 62, KIND = 3ull << 62;
constexpr Mark END = 1ull << 61;
constexpr int WALK_SHIFT = 31, OTHER_SHIFT = 30;
constexpr Mark LOW31 = (1ull << 31) - 1, LOW30 = (1ull << 30) - 1;

__device__ __forceinline__ Mark end_record(long long other, long long length)
{
    return OWN | END | (Mark)other << OTHER_SHIFT | (Mark)length;
}

// The node whose walk claimed a vertex, or -1; `along` is how far the vertex is from it along slot 0.
__device__ __forceinline__ int node_of(Mark mark, int& along)
{
    along = 0;
    if ((mark & KIND) == OWN) return mark & END ? -1 : (int)(mark & LOW31);
    if ((mark & KIND) == FROM_END) return -1;
    int slot = (int)(mark >> WALK_SHIFT & LOW31), steps = (int)(mark & LOW31);
    along = slot & 1 ? -steps : steps;
    return slot >> 1;
}

// Words of `counters`: nodes and ends that are listed; vertices that a walk has reached; is there a
// cycle with nodes; the two of the barrier; did a link change, in three rounds that take turns; in
// which array the last links are.
constexpr int NODES = 0, ENDS = 1, REACHED = 2, CYCLIC = 3, BARRIER = 4, CHANGED = 6, LAST = 9;
[[maybe_unused]] constexpr int WORDS = 10;

// ---- begin ----

constexpr int VERTICES_PER_THREAD = 4;
constexpr int BEGIN_BLOCK = 256;  // threads

// Caller: counters 0, BEGIN_BLOCK threads.  `listed` gets the ends, in any order.
template <typename I>
__global__ void begin(int n, const I* __restrict__ table, int spacing, int capacity, Mark* __restrict__ marks,
                      I* __restrict__ counts, int* __restrict__ nodes, I* __restrict__ listed,
                      unsigned int* counters)
{
    __shared__ unsigned int first_node, first_end;
    int tile = blockIdx.x * (BEGIN_BLOCK * VERTICES_PER_THREAD);
    bool is_node[VERTICES_PER_THREAD], is_end[VERTICES_PER_THREAD];
    int mine_nodes = 0, mine_ends = 0, alone = 0;
#pragma unroll
    for (int e = 0; e < VERTICES_PER_THREAD; ++e) {
        int v = tile + e * BEGIN_BLOCK + threadIdx.x;
        is_node[e] = is_end[e] = false;
        if (v >= n) continue;
        Two<I> next = two(table, v);
        int degree = (next.one >= 0) + (next.other >= 0);
        is_node[e] = degree == 2 && mix32(v) % (unsigned)spacing == 0;
        is_end[e] = degree == 1;
        mine_nodes += is_node[e];
        mine_ends += is_end[e];
        alone += degree == 0;
        counts[v] = degree == 0 ? 1 : 0;
        if (!is_node[e]) marks[v] = degree == 0 ? end_record(v, 1) : degree == 1 ? end_record(0, 0) : 0;
    }
    int total_nodes, total_ends;
    int node = block_exclusive_sum(mine_nodes, &total_nodes);
    int end = block_exclusive_sum(mine_ends, &total_ends);
    if (threadIdx.x == 0) {
        first_node = total_nodes ? atomicAdd(&counters[NODES], (unsigned)total_nodes) : 0;
        first_end = total_ends ? atomicAdd(&counters[ENDS], (unsigned)total_ends) : 0;
        if (total_nodes + total_ends) atomicAdd(&counters[REACHED], (unsigned)(total_nodes + total_ends));
    }
    __syncthreads();
    if (alone) atomicAdd(&counters[REACHED], (unsigned)alone);
#pragma unroll
    for (int e = 0; e < VERTICES_PER_THREAD; ++e) {
        int v = tile + e * BEGIN_BLOCK + threadIdx.x;
        if (is_end[e]) listed[first_end + end++] = v;
        if (is_node[e]) {
            int j = first_node + node++;
            if (j < capacity) {
                nodes[j] = v;
                marks[v] = OWN | (Mark)j;
            } else {  // no room for another node: it stays a usual vertex
                marks[v] = 0;
                atomicSub(&counters[REACHED], 1u);
            }
        }
    }
}

__device__ __forceinline__ int node_count(const unsigned int* counters, int capacity)
{
    return min((int)counters[NODES], capacity);
}

// ---- follow ----

// What a walk writes to a slot of a node: the slot at which it arrived, or ~end; the distance; the smallest
// node met so far, as the slot at which it was entered; and the distance to that.
struct alignas(16) Link {
    int to, distance, least, least_distance;
};

// Threads stride over the walks; each takes its next one when its walk has ended.
template <typename I>
__global__ void follow(int n, const I* __restrict__ table, int capacity, const int* __restrict__ nodes,
                       const I* __restrict__ listed, Mark* marks, I* counts, Link* __restrict__ links,
                       unsigned int* counters)
{
    int slots = 2 * node_count(counters, capacity);
    long long walks = slots + (long long)counters[ENDS];
    long long walk = global_thread(), stride = (long long)gridDim.x * blockDim.x;
    unsigned int claimed = 0;
    bool under_way = false;
    int from = 0, at = 0, steps = 0;
    Mark name = 0;
    while (under_way || walk < walks) {
        if (!under_way) {
            if (walk < slots) {
                from = nodes[walk / 2];
                Two<I> next = two(table, from);
                at = (int)(walk % 2 ? next.other : next.one);
                name = FROM_NODE | (Mark)walk << WALK_SHIFT;
            } else {
                from = (int)listed[walk - slots];
                Two<I> next = two(table, from);
                at = (int)max(next.one, next.other);
                name = FROM_END | (Mark)from << WALK_SHIFT;
            }
            steps = 1;
            under_way = true;
        }
        Two<I> next = two(table, at);
        Mark seen = atomicCAS(&marks[at], 0ull, name | (Mark)steps);
        if (seen == 0) {
            ++claimed;
            int after = (int)(next.one == from ? next.other : next.one);
            from = at;
            at = after;
            ++steps;
            continue;
        }
        // met: `to` is ~end or the slot of a node
        int to, distance = steps;
        if ((seen & KIND) == OWN) {
            to = seen & END ? ~at : 2 * (int)(seen & LOW31) + (next.one == from ? 0 : 1);
        } else {
            int other = (int)(seen >> WALK_SHIFT & LOW31);
            to = (seen & KIND) == FROM_END ? ~other : other;
            distance += (int)(seen & LOW31);
        }
        if (walk < slots) {
            links[walk] = {to, distance, to, distance};
        } else {
            int start = (int)(name >> WALK_SHIFT & LOW31);
            store_relaxed(&marks[start], to < 0 ? end_record(~to, distance + 1) : end_record(to, 0));
            if (to < 0 && start < ~to) counts[start] = distance + 1;
        }
        under_way = false;
        walk += stride;
    }
    claimed = block_reduce(claimed, 0u, Plus());
    if (threadIdx.x == 0 && claimed) atomicAdd(&counters[REACHED], claimed);
}

// ---- rings ----

template <typename W>
struct Edge {
    W weight;
    int low, high;
    __device__ __forceinline__ bool before(const Edge& other) const
    {
        if (weight != other.weight) return weight < other.weight;
        return low != other.low ? low < other.low : high < other.high;
    }
};

// A cycle without a node: short, since one vertex in `spacing` is a node.  Each vertex walks until it
// meets a smaller one; the smallest gets all the way round, cuts the cycle and leaves the marks that a
// walk from the smaller end of the cut would leave.
template <typename I, typename W>
__global__ void rings(int n, const I* __restrict__ table, const W* __restrict__ weights, Mark* marks,
                      I* __restrict__ counts, const unsigned int* counters)
{
    if (counters[REACHED] == (unsigned)n) return;
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long v = global_thread(); v < n; v += stride) {
        if (load_relaxed(&marks[v]) != 0) continue;
        int from = (int)v, at = (int)v, length = 0;
        int side = 0;
        Edge<W> weakest{};
        do {
            Two<I> next = two(table, at);
            if (length > 0) side = next.one == from ? 1 : 0;
            Two<W> weight = two(weights, at);
            int after = (int)(side ? next.other : next.one);
            Edge<W> edge{side ? weight.other : weight.one, min(at, after), max(at, after)};
            if (length == 0 || edge.before(weakest)) weakest = edge;
            from = at;
            at = after;
            ++length;
        } while (at > v);
        if (at != v) continue;
        int low = weakest.low, high = weakest.high;
        counts[low] = length;
        store_relaxed(&marks[low], end_record(high, length));
        from = high;
        at = low;
        for (int steps = 1; at != high; ++steps) {
            Two<I> next = two(table, at);
            int after = (int)(next.one == from ? next.other : next.one);
            from = at;
            at = after;
            store_relaxed(&marks[at], FROM_END | (Mark)low << WALK_SHIFT | (Mark)steps);
        }
    }
}

// ---- rank ----

// Of a node: path, position, change of the position along slot 0, length of the path.  On a cycle, as
// `rank` leaves it: ~(the smallest node), distance from that along its slot 0, and so on.
struct alignas(16) Record {
    int path, position, sign, length;
};

__device__ __forceinline__ Link link_after(const Link* links, Link link)
{
    if (link.to < 0) return link;
    Link next = links[link.to ^ 1];
    if (next.to >= 0 && next.least >> 1 < link.least >> 1) {
        link.least = next.least;
        link.least_distance = link.distance + next.least_distance;
    }
    link.to = next.to;
    link.distance += next.distance;
    return link;
}

// A node is ready when both its sides have reached an end, or the same smallest node: the whole
// cycle lies between.  Cooperative launch; `links` and `spare` take turns.
__global__ void rank(int capacity, Link* links, Link* spare, Record* __restrict__ records,
                     unsigned long long* __restrict__ best, unsigned int* counters)
{
    GridBarrier barrier(counters + BARRIER);
    int count = node_count(counters, capacity);
    int stride = gridDim.x * blockDim.x;
    for (unsigned int round = 0;; ++round) {
        bool changed = false;
        for (int j = (int)global_thread(); j < count; j += stride) {
            Link one = links[2 * j], other = links[2 * j + 1];
            bool ready = one.to < 0 ? other.to < 0 : other.to >= 0 && one.least >> 1 == other.least >> 1;
            changed |= !ready;
            spare[2 * j] = ready ? one : link_after(links, one);
            spare[2 * j + 1] = ready ? other : link_after(links, other);
        }
        if (__syncthreads_or(changed) && threadIdx.x == 0) store_relaxed(&counters[CHANGED + round % 3], 1u);
        barrier.wait();
        bool more = load_relaxed(&counters[CHANGED + round % 3]) != 0;
        if (global_thread() == 0) store_relaxed(&counters[CHANGED + (round + 2) % 3], 0u);
        Link* swap = links;
        links = spare;
        spare = swap;
        if (!more) {
            if (global_thread() == 0) counters[LAST] = round & 1;  // 0: the last links are in `spare`
            break;
        }
    }
    bool cyclic = false;
    for (int j = (int)global_thread(); j < count; j += stride) {
        Link one = links[2 * j], other = links[2 * j + 1];
        if (one.to < 0) {
            int a = ~one.to, b = ~other.to, length = one.distance + other.distance + 1;
            records[j] = a < b ? Record{a, one.distance + 1, -1, length} : Record{b, other.distance + 1, 1, length};
        } else {
            cyclic = true;
            // the smallest of the others is met on both sides before j itself is met again
            int least = one.least >> 1;
            int length = least == j ? one.least_distance : one.least_distance + other.least_distance;
            // entered by slot 1: slot 0 of j leads on in the direction of slot 0 of the smallest node
            bool along = j <= least || (one.least & 1);
            int distance = j <= least ? 0 : along ? length - one.least_distance : one.least_distance;
            records[j] = {~min(j, least), distance, along ? 1 : -1, length};
            best[2 * j] = best[2 * j + 1] = ~0ull;
        }
    }
    if (cyclic) store_relaxed(&counters[CYCLIC], 1u);
}

// ---- weigh, cut ----

__device__ __forceinline__ unsigned int weight_bits(float w) { return __float_as_uint(w); }
__device__ __forceinline__ unsigned long long weight_bits(double w) { return __double_as_longlong(w); }

__device__ __forceinline__ void offer(unsigned long long* best, unsigned long long key)
{
    if (key < load_relaxed(best)) atomicMin(best, key);
}

// The weakest edge of each cycle with nodes: best[2 * node] of its smallest node.  float32: key
// (weight, smaller end), in one turn.  float64: the weight in the first turn, and in the second the
// smaller end of edges that weigh as much, to best[2 * node + 1].  Weights are positive.
template <typename I, typename W>
__global__ void weigh(int n, const I* __restrict__ table, const W* __restrict__ weights,
                      const Mark* __restrict__ marks, const Record* __restrict__ records,
                      unsigned long long* best, const unsigned int* counters, int turn)
{
    if (counters[CYCLIC] == 0) return;
    long long v = global_thread();
    if (v >= n) return;
    int along;
    int node = node_of(marks[v], along);
    if (node < 0) return;
    int least = ~records[node].path;
    if (least < 0) return;
    Two<I> next = two(table, v);
    Two<W> weight = two(weights, v);
    for (int side = 0; side < 2; ++side) {
        if ((side ? next.other : next.one) < v) continue;
        W w = side ? weight.other : weight.one;
        if (sizeof(W) == 4)
            offer(&best[2 * least], (unsigned long long)weight_bits(w) << 32 | (unsigned)v);
        else if (turn == 0)
            offer(&best[2 * least], weight_bits(w));
        else if (weight_bits(w) == best[2 * least])
            offer(&best[2 * least + 1], (unsigned long long)v);
    }
}

__device__ __forceinline__ int wrapped(int x, int length)
{
    x %= length;
    return x < 0 ? x + length : x;
}

// Where the cycle of a smallest node was cut.
struct alignas(16) Cut {
    int low, distance, sign, spare;
};

template <typename I, typename W>
__global__ void cut(const I* __restrict__ table, const W* __restrict__ weights, int capacity,
                    const Mark* __restrict__ marks, const Record* __restrict__ records,
                    const unsigned long long* __restrict__ best, Cut* __restrict__ cuts, I* __restrict__ counts,
                    const unsigned int* counters)
{
    if (counters[CYCLIC] == 0) return;
    int count = node_count(counters, capacity), stride = gridDim.x * blockDim.x;
    for (int j = (int)global_thread(); j < count; j += stride) {
        if (records[j].path != ~j) continue;
        int length = records[j].length;
        int low = (int)(sizeof(W) == 4 ? best[2 * j] & 0xffffffffull : best[2 * j + 1]);
        unsigned long long key = sizeof(W) == 4 ? best[2 * j] >> 32 : best[2 * j];
        Two<I> next = two(table, low);
        Two<W> weight = two(weights, low);
        bool one = next.one > low && weight_bits(weight.one) == key;
        bool other = next.other > low && weight_bits(weight.other) == key;
        int high = (int)(one && other ? min(next.one, next.other) : one ? next.one : next.other);
        int ends[2] = {low, high}, where[2];
        for (int k = 0; k < 2; ++k) {
            int along;
            Record near = records[node_of(marks[ends[k]], along)];
            where[k] = wrapped(near.position + near.sign * along, length);
        }
        Cut made;
        made.low = low;
        made.distance = where[0];
        made.sign = where[1] == (where[0] + 1) % length ? -1 : 1;  // away from `high`
        made.spare = 0;
        cuts[j] = made;
        counts[low] = length;
    }
}

// ---- record ----

template <typename I>
__global__ void record(int capacity, const I* __restrict__ listed, const Link* __restrict__ links,
                       const Link* __restrict__ spare, const Cut* __restrict__ cuts, Record* __restrict__ records,
                       Mark* __restrict__ marks, I* __restrict__ counts, const unsigned int* counters)
{
    int count = node_count(counters, capacity);
    long long all = count + (long long)counters[ENDS], stride = (long long)gridDim.x * blockDim.x;
    const Link* last = counters[LAST] == 0 ? spare : links;
    for (long long k = global_thread(); k < all; k += stride) {
        if (k < count) {
            Record mine = records[k];
            if (mine.path >= 0) continue;
            Cut cut = cuts[~mine.path];
            int steps = wrapped(cut.sign * (mine.position - cut.distance), mine.length);
            records[k] = {cut.low, steps + 1, mine.sign * cut.sign, mine.length};
            continue;
        }
        int end = (int)listed[k - count];
        Mark mark = marks[end];
        if ((mark & LOW30) != 0) continue;
        int slot = (int)(mark >> OTHER_SHIFT & LOW31);
        Link back = last[slot], on = last[slot ^ 1];
        int other = ~on.to, length = back.distance + on.distance + 1;
        marks[end] = end_record(other, length);
        if (end < other) counts[end] = length;
    }
}

// ---- settle ----

// starts[v]: where path v begins in the order.
template <typename I>
__global__ void settle(int n, const Mark* __restrict__ marks, const Record* __restrict__ records,
                       const I* __restrict__ starts, I* __restrict__ perm, I* __restrict__ path,
                       I* __restrict__ position, I* __restrict__ place)
{
    long long v = global_thread();
    if (v >= n) return;
    Mark mark = marks[v];
    int along, low, at;
    int node = node_of(mark, along);
    if (node >= 0) {
        Record near = records[node];
        low = near.path;
        at = near.position + near.sign * along;
        if (at < 1) at += near.length;
        if (at > near.length) at -= near.length;
    } else {
        bool own = (mark & KIND) == OWN;
        int start = own ? (int)v : (int)(mark >> WALK_SHIFT & LOW31), steps = own ? 0 : (int)(mark & LOW31);
        Mark end = own ? mark : marks[start];
        int other = (int)(end >> OTHER_SHIFT & LOW31), length = (int)(end & LOW30);
        low = min(start, other);
        at = start <= other ? steps + 1 : length - steps;
    }
    I to = starts[low] + (I)(at - 1);
    path[v] = low;
    position[v] = at;
    place[v] = to;
    perm[to] = (I)v;
}

// ---- collect ----

// `width` neighbouring lanes per row (a power of 2, at most WARP).  The vertices before and after v in its
// path are found among its neighbours in the factor.  For neighbouring rows these lie near each other; the
// places of the results need not.  Neighbours and places that are out of range are skipped: a user can change
// the arrays of a forest on the device.
template <typename I, typename W>
__global__ void collect(I n, int width, const I* __restrict__ indptr, const I* __restrict__ indices,
                        const W* __restrict__ data, const I* __restrict__ table, const I* __restrict__ place,
                        const I* __restrict__ position, W* __restrict__ dl, W* __restrict__ d, W* __restrict__ du)
{
    long long row = global_thread() / width;
    long long v = min(row, (long long)n - 1);  // no lane leaves: they shuffle together
    I i = place[v], at = position[v];
    Two<I> next = two(table, v);
    I one = next.one < 0 || next.one >= n ? I(-9) : position[next.one] - at;
    I other = next.other < 0 || next.other >= n ? I(-9) : position[next.other] - at;
    I before = one == -1 ? next.one : other == -1 ? next.other : I(-1);
    I after = one == 1 ? next.one : other == 1 ? next.other : I(-1);
    int found = 0;
    bool known = row < n && i >= 0 && i < n;
    I end = known ? indptr[v + 1] : I(0);
    for (I k = indptr[v] + threadIdx.x % width; k < end; k += width) {
        I j = indices[k];
        int which = j == v ? 1 : j == before ? 2 : j == after ? 4 : 0;
        if (which == 0) continue;
        found |= which;
        (which == 1 ? d : which == 2 ? dl : du)[i] = data[k];
    }
    for (int step = width / 2; step > 0; step /= 2) found |= __shfl_xor_sync(ALL, found, step);
    if (!known || threadIdx.x % width != 0) return;
    if (!(found & 1)) d[i] = W(0);
    if (!(found & 2)) dl[i] = W(0);
    if (!(found & 4)) du[i] = W(0);
}
