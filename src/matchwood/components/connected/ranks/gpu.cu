// Local steps of a rank with a GPU: which vertices its trees have, hooking, going up, numbering.
// Host side: gpu.py.  The rule: forest.py.
//
//   find_least    the smallest vertex of each tree of the block
//   report        for the owner of a stripe: a bit for each vertex of the largest tree, pairs for the others
//   report_all    the same where that is longer: the smallest vertex of its tree for each vertex
//   hook_marks, hook_pairs, hook_all
//                 lower parents as a report says; pairs that follow from it
//   climb         up through own vertices; those that wait for another owner's answer are listed
//   move_heads    own vertices under a vertex that many are under, once its parent is known
//   mark_roots, count_words, number_roots, write_labels
//                 roots numbered in the order of all vertices
//
// Vertices that are known to be in one component; the steps: gpu.py.
//   mark_tree     a bit for each vertex of an owner that is in the largest tree of this rank
//   meet          which two ranks marked the same vertex
//   find_known    the smallest local vertex that is known
//   join_known    all known ones under it
//   set_largest   their root is the one whose rows are left out
//
// Vertices are numbered as the grid numbers them: own vertex v of place k is k p + rank.  I is the type of local ids,
// V that of vertices.
//
// Races.  A smallest member, and a parent, only go down, by an atomic minimum, so the order of arrival changes which
// pairs are made, never the smallest vertex of a component.
#include "matchwood/atomics.cuh"
#include "matchwood/by_owner.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"
#include "matchwood/union_find.cuh"

constexpr int PROBES = 8;  // slots that a pair tries in the table of pairs that were listed
constexpr int HEADER = 1;  // words before a report: the smallest vertex of the largest tree

// Vertices of a rank's block: from local ids to those of the grid (engines/ranks/grid), by arithmetic.  Rank r C + c of
// R x C ranks; `rows` is N_R, local ids from there on are of the column group alone.
template <typename I, typename V = I>
struct Local {
    int R, C, r, c;
    I rows;
    __device__ __forceinline__ V original(I v) const
    {
        V p = (V)R * C;
        if (v < rows) return (V)(v / C) * p + (V)(r * C + (int)(v % C));
        v -= rows;
        int stripe = (int)(v % (R - 1));
        return (V)(v / (R - 1)) * p + (V)((stripe + (stripe >= r)) * C + c);
    }
};

// One thread to a local vertex.  Trees are flat; least is larger than any vertex before.
template <typename I, typename V>
__global__ void find_least(I n, int R, int C, int r, int c, I rows, const I* parent, V* least)
{
    long long v = global_thread();
    if (v >= n) return;
    V name = Local<I, V>{R, C, r, c, rows}.original((I)v);
    V* mine = &least[parent[v]];
    if (name < load_relaxed(mine)) lower_to(mine, name);
}

// The vertices of one owner: base + place * step.
template <typename I>
struct Stripe {
    I base, step, size;
    __device__ __forceinline__ I vertex(long long place) const { return base + (I)place * step; }
};

// One thread to a place, rounded up to whole words.  counts[s]: the pairs of this owner, the s-th.
// The words: the smallest vertex of the largest tree, -1 where no vertex has an edge; `bits` words of bits; pairs.
template <typename I, typename V>
__global__ void report(I base, I step, I size, int s, int owner, int p, long long bits, const I* parent,
                       const I* largest, const V* least, V* words, unsigned long long* counts, long long* head)
{
    long long k = global_thread();
    I giant = *largest < 0 ? I(-1) : parent[*largest];
    I root = k < size ? parent[Stripe<I>{base, step, size}.vertex(k)] : I(-1);
    bool marked = k < size && root == giant;
    unsigned votes = __ballot_sync(ALL, marked);
    if (lane() == 0 && k < bits * 8 * (long long)sizeof(V)) reinterpret_cast<unsigned*>(words + HEADER)[k / WARP] = votes;
    if (k == 0) {
        words[0] = giant < 0 ? V(-1) : least[giant];
        *head = (long long)words[0];
    }
    bool paired = k < size && !marked && least[root] != (V)k * p + owner;
    unsigned long long at = take_place(counts, s, paired);
    if (paired) {
        V* pair = words + HEADER + bits + 2 * at;
        pair[0] = (V)k;
        pair[1] = least[root];
    }
}

template <typename I, typename V>
__global__ void report_all(I base, I step, I size, const I* parent, const V* least, V* words)
{
    long long k = global_thread();
    if (k < size) words[k] = least[parent[Stripe<I>{base, step, size}.vertex(k)]];
}

// Pairs for other owners: (high, low), two words each.
template <typename V>
struct Pairs {
    V* words;
    unsigned long long* count;
    unsigned long long* table;  // pairs that were listed, where both numbers fit into one word; 0 elsewhere
    unsigned slots;             // of the table, a power of two

    // Whether the pair is perhaps not listed.  Often many vertices give the same pair.
    __device__ __forceinline__ bool is_new(V high, V low) const
    {
        if (sizeof(V) == 8 && (unsigned long long)high >> 32 != 0) return true;
        unsigned long long key = (unsigned long long)high << 32 | (unsigned long long)low;  // not 0: high > low
        unsigned slot = (unsigned)mix64(key);
        for (int k = 0; k < PROBES; ++k, ++slot) {
            unsigned long long* at = &table[slot & (slots - 1)];
            unsigned long long there = load_relaxed(at);
            if (there == 0) there = compare_and_swap(at, 0ull, key);
            if (there == 0) return true;
            if (there == key) return false;
        }
        return true;
    }

    // All lanes of the warp call.
    __device__ __forceinline__ void list(V high, V low, bool wanted) const
    {
        unsigned long long at = take_place(count, 0, wanted);
        if (!wanted) return;
        words[2 * at] = high;
        words[2 * at + 1] = low;
    }
};

// Lower the parent of own vertex k to a, where `wanted`; then the old parent's, as long as it is an own vertex.
// All lanes of the warp call.
template <typename V>
__device__ __forceinline__ void hook(V k, V a, bool wanted, V p, V rank, V* parent, const Pairs<V>& pairs)
{
    V high = 0, low = 0;
    bool follows = false;
    while (wanted) {
        V before = load_relaxed(&parent[k]);
        if (a < before) before = lower_to(&parent[k], a);
        if (before == a || (a < before && before == k * p + rank)) break;  // known, or k was a root
        high = a < before ? before : a;
        low = a < before ? a : before;
        if (high % p != rank) {
            follows = pairs.is_new(high, low);
            break;
        }
        k = high / p;
        a = low;
    }
    __syncwarp();
    pairs.list(high, low, follows);
}

// One thread to an own place: it is under *head where its bit is set.
template <typename V>
__global__ void hook_marks(V owned, V p, V rank, const V* head, const V* bits, V* parent, V* out,
                           unsigned long long* count, unsigned long long* table, unsigned slots)
{
    long long k = global_thread();
    bool wanted = k < owned && (reinterpret_cast<const unsigned*>(bits)[k / WARP] >> (k % WARP) & 1);
    hook((V)k, *head, wanted, p, rank, parent, Pairs<V>{out, count, table, slots});
}

// One thread to a pair (own place, vertex).
template <typename V>
__global__ void hook_pairs(V size, V p, V rank, const V* came, V* parent, V* out, unsigned long long* count,
                           unsigned long long* table, unsigned slots)
{
    long long k = global_thread();
    bool wanted = k < size;
    hook(wanted ? came[2 * k] : V(0), wanted ? came[2 * k + 1] : V(0), wanted, p, rank, parent,
         Pairs<V>{out, count, table, slots});
}

// One thread to an own place: it is under names[place].
template <typename V>
__global__ void hook_all(V owned, V p, V rank, const V* names, V* parent, V* out, unsigned long long* count,
                         unsigned long long* table, unsigned slots)
{
    long long k = global_thread();
    bool wanted = k < owned;
    hook((V)k, wanted ? names[k] : V(0), wanted, p, rank, parent, Pairs<V>{out, count, table, slots});
}

template <typename V>
__device__ __forceinline__ int which(const V* heads, int count, V v)
{
    for (int k = 0; k < count; ++k)
        if (heads[k] == v) return k;
    return -1;
}

// One thread to an own place.  A way up ends where it leaves the own vertices.  Those that end at another vertex of
// this rank, or at one of the heads, are not listed.
template <typename V>
__global__ void climb(V owned, V p, V rank, const V* heads, int count, V* parent, V* places, V* parents,
                      unsigned long long* listed)
{
    long long k = global_thread();
    V up = 0;
    bool waits = false;
    if (k < owned) {
        V first = up = load_relaxed(&parent[k]);
        if (up != (V)k * p + rank && which(heads, count, up) < 0) {
            while (up % p == rank) {
                V above = load_relaxed(&parent[up / p]);
                if (above == up) break;
                up = above;
            }
            if (up != first) store_relaxed(&parent[k], up);
            waits = up % p != rank && which(heads, count, up) < 0;
        }
    }
    unsigned long long at = take_place(listed, 0, waits);
    if (waits) {
        places[at] = (V)k;
        parents[at] = up;
    }
}

// One thread to a head: the own ones' parents, and the largest number for the others.
template <typename V>
__global__ void ask_heads(int count, V p, V rank, const V* heads, const V* parent, long long* tops)
{
    long long k = global_thread();
    if (k < count) tops[k] = heads[k] % p == rank ? (long long)parent[heads[k] / p] : (long long)(~0ull >> 1);
}

// One thread to an own place.
template <typename V>
__global__ void move_heads(V owned, const V* heads, const V* tops, int count, V* parent)
{
    long long k = global_thread();
    if (k >= owned) return;
    int of = which(heads, count, parent[k]);
    if (of >= 0) parent[k] = tops[of];
}

// Numbering.  A rank has `words` words of 32 bits, one for each own place, whether it is a root; `all` are those of
// all ranks.

template <typename V>
__global__ void mark_roots(V owned, V p, V rank, const V* parent, long long words, unsigned* bits)
{
    long long k = global_thread();
    unsigned votes = __ballot_sync(ALL, k < owned && parent[k] == (V)k * p + rank);
    if (lane() == 0 && k / WARP < words) bits[k / WARP] = votes;
}

// One thread to a word: the roots of all ranks in its places.
__global__ void count_words(long long words, int p, const unsigned* all, long long* totals)
{
    long long w = global_thread();
    if (w >= words) return;
    int total = 0;
    for (int rank = 0; rank < p; ++rank) total += __popc(all[rank * words + w]);
    totals[w] = total;
}

// One thread to an own place: the number of a root; ends[w] are the roots up to word w.  Roots of
// smaller places are before it, and those of its place on ranks before this one.
template <typename V>
__global__ void number_roots(V owned, int p, int rank, long long words, const unsigned* all, const long long* totals,
                             const long long* ends, V* number)
{
    long long k = global_thread();
    if (k >= owned) return;
    long long w = k / WARP, before = ends[w] - totals[w];
    unsigned below = (1u << (k % WARP)) - 1, here = 1u << (k % WARP);
    if (!(all[rank * words + w] & here)) return;
    for (int other = 0; other < p; ++other)
        before += __popc(all[other * words + w] & (other < rank ? below | here : below));
    number[k] = (V)before;
}

// One thread to an own place whose root is an own vertex or a head; the other labels are there already.
template <typename V>
__global__ void write_labels(V owned, V p, V rank, const V* parent, const V* number, const V* heads,
                             const V* head_numbers, int count, V* labels)
{
    long long k = global_thread();
    if (k >= owned) return;
    V root = parent[k];
    if (root % p == rank) {
        labels[k] = number[root / p];
        return;
    }
    int of = which(heads, count, root);
    if (of >= 0) labels[k] = head_numbers[of];
}

// Known vertices.  A rank has `words` words of 32 bits for the places of an owner, the same number for all owners.

// One thread to a place of the owner of base + place * step, up to a whole word.  Trees are flat.
template <typename I>
__global__ void mark_tree(I base, I step, I size, long long words, const I* parent, const I* largest, unsigned* bits,
                          unsigned long long* count)
{
    long long k = global_thread();
    bool marked = k < size && *largest >= 0 && parent[base + (I)k * step] == *largest;
    unsigned votes = __ballot_sync(ALL, marked);
    if (lane() != 0 || k / WARP >= words) return;
    bits[k / WARP] = votes;
    if (votes != 0) take(count, (unsigned long long)__popc(votes));
}

// One thread to a word of all `ranks` ranks.
__global__ void meet(long long words, int ranks, const unsigned* bits, unsigned char* meets)
{
    long long w = global_thread();
    if (w >= words) return;
    for (int one = 1; one < ranks; ++one) {
        unsigned mine = bits[one * words + w];
        if (mine == 0) continue;
        for (int other = 0; other < one; ++other) {
            unsigned char* found = &meets[one * ranks + other];
            if ((mine & bits[other * words + w]) != 0 && load_relaxed(found) == 0) store_relaxed(found, (unsigned char)1);
        }
    }
}

// Known vertices of the ranks of the row and of the column.
template <typename I>
struct Known {
    int R, C, r;
    I n_rows;
    long long words;
    const unsigned *rows, *columns;
    __device__ __forceinline__ bool has(I v) const
    {
        const unsigned* bits = rows;
        I place = v / C;
        int rank = (int)(v % C);
        if (v >= n_rows) {
            v -= n_rows;
            bits = columns;
            place = v / (R - 1);
            rank = (int)(v % (R - 1));
            rank += rank >= r;
        }
        return bits[rank * words + place / WARP] >> (place % WARP) & 1;
    }
};

template <typename I>
__global__ void find_known(I n, int R, int C, int r, I n_rows, long long words, const unsigned* rows,
                           const unsigned* columns, I* least)
{
    long long v = global_thread();
    if (v >= n || !Known<I>{R, C, r, n_rows, words, rows, columns}.has((I)v)) return;
    if ((I)v < load_relaxed(least)) lower_to(least, (I)v);
}

template <typename I>
__global__ void join_known(I n, int R, int C, int r, I n_rows, long long words, const unsigned* rows,
                           const unsigned* columns, const I* least, I* parent)
{
    long long v = global_thread();
    if (v >= n || !Known<I>{R, C, r, n_rows, words, rows, columns}.has((I)v)) return;
    join_ends(parent, (I)v, *least);
}

template <typename I>
__global__ void set_largest(I n, const I* least, const I* parent, I* largest)
{
    *largest = *least < n ? parent[*least] : I(-1);
}
