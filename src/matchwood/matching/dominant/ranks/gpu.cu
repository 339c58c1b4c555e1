// The steps of a rank with a GPU in the distributed matching.  Host side: gpu.py.  The rule: __init__.py.
//
//   list_rows           which rows need a candidate, counted by the rank that owns them
//   first_free          the first edge of each row to a free column; long rows by a whole warp
//   first_free_giants   the same for very long rows, which the first kernel lists: a block each
//   pack_offers         candidates as records, sorted by owner
//   take_offers         received records become the candidates of own vertices
//   choose              own vertices point along the first of their candidates; changed pointers are listed
//   pack_pointers       "I point at you", sorted by owner
//   meet, rank_waiters, name_waiters
//                       vertices that point at each other are matched; of other pointers to it a vertex keeps the first
//   mark_taken          mark the matched vertices of a received message
//   add_weights         the weights of own vertices, a sum for each block
//
// Columns are local numbers of the block.  Ties go by names, the user's numbers.  Weights are compared by their
// bits, and 0 stands for no edge.
//
// Races.  Lists are in any order, and what is done with their elements does not depend on it.  A vertex keeps the
// first of those that wait for it in three passes: the largest weight, of these the largest hash, of these the
// smallest name.  Each is an atomic maximum or minimum.  The thread that raises one resets the next, which is compared
// only from the following pass on.
#include "matchwood/by_owner.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"

constexpr int BLOCK = 256;       // threads of a block
constexpr int GIANT_ROW = 1024;  // entries; as in dominant/gpu.cu

template <typename I, typename B>
struct FreeColumns {
    const unsigned char* taken;
    __device__ __forceinline__ B held(I v) const { return taken[v] ? ~B(0) : B(0); }
    __device__ __forceinline__ bool takes(I, I, B) const { return false; }
};

template <typename I, typename W>
using BlockRows = Rows<I, W, Named<I>>;

template <typename I, typename W>
__device__ __forceinline__ void put(I k, Edge<I, WeightBits<W>> best, I* column, W* weight)
{
    column[k] = best.w != 0 ? best.v : I(-1);
    reinterpret_cast<WeightBits<W>*>(weight)[k] = best.w;
}

// WIDTH lanes for each of `count` rows; column[k] = -1 and weight[k] = 0 where row k of the list has no
// edge to a free column.  Caller: listed is 0, and `giants` has room for all rows that may be giants.
template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK)
    first_free(I count, const I* list, const I* indptr, const I* indices, const W* data, const I* names,
               const unsigned char* taken, unsigned long long seed, bool by_hash, I* column, W* weight,
               I* giants, unsigned long long* listed)
{
    BlockRows<I, W> rows{indptr, indices, reinterpret_cast<const WeightBits<W>*>(data), {seed, by_hash}, {names}};
    FreeColumns<I, WeightBits<W>> free{taken};
    long long k = global_thread() / WIDTH;
    bool mine = k < count, leads = lane() % WIDTH == 0;
    I u = mine ? list[k] : I(0);
    I begin = mine ? indptr[u] : I(0), end = mine ? indptr[u + 1] : I(0);
    bool giant = end - begin > GIANT_ROW;
    append(giants, listed, (I)k, giant && leads);
    if (giant) end = begin;
    Edge<I, WeightBits<W>> best = first_by_lanes<WIDTH>(rows, u, begin, end, free);
    if (mine && !giant && leads) put<I, W>((I)k, best, column, weight);
}

// The blocks take the listed giants in turn; any number of blocks.
template <typename I, typename W>
__global__ void __launch_bounds__(BLOCK)
    first_free_giants(const I* list, const I* indptr, const I* indices, const W* data, const I* names,
                      const unsigned char* taken, unsigned long long seed, bool by_hash, I* column, W* weight,
                      const I* giants, const unsigned long long* listed)
{
    BlockRows<I, W> rows{indptr, indices, reinterpret_cast<const WeightBits<W>*>(data), {seed, by_hash}, {names}};
    FreeColumns<I, WeightBits<W>> free{taken};
    for (unsigned long long i = blockIdx.x; i < *listed; i += gridDim.x) {
        I k = giants[i];
        Edge<I, WeightBits<W>> best = first_by_block(rows, list[k], free);
        if (threadIdx.x == 0) put<I, W>(k, best, column, weight);
    }
}

// The name that stands for no vertex, larger than any other.
template <typename I>
__device__ __forceinline__ I nobody()
{
    return (I)(~0ull >> (65 - 8 * sizeof(I)));
}

// One thread to a row of the row group.  At first all rows with entries need a candidate, then those that are free
// and whose candidate is not.  The rank of the row that owns row u is u % C.
template <typename I>
__global__ void list_rows(I rows, bool first, int C, const I* indptr, const I* candidate, const unsigned char* taken,
                          I* list, I* place, unsigned long long* listed, unsigned long long* counts)
{
    long long k = global_thread();
    I u = (I)k;
    bool wanted = k < rows;
    if (wanted && first) {
        wanted = indptr[u] < indptr[u + 1];
    } else if (wanted) {
        I to = candidate[u];
        wanted = to >= 0 && !taken[u] && taken[to];
    }
    long long at = append(list, listed, u, wanted);
    unsigned long long mine = take_place(counts, (int)(u % C), wanted);
    if (wanted) place[at] = (I)mine;
}

// One thread to a row of the list.  A record: which candidate of which vertex at the owner, its id there, the bits of
// the weight, and its name where that is not the id.
template <typename I, typename W>
__global__ void pack_offers(I count, int C, int c, bool renamed, const I* list, const I* place,
                            const unsigned long long* counts, const I* column, const W* weight, const I* ids,
                            const I* names, I* candidate, unsigned* records)
{
    using B = WeightBits<W>;
    long long k = global_thread();
    if (k >= count) return;
    I u = list[k], v = column[k];
    candidate[u] = v;
    if (v < 0) v = 0;
    int owner = (int)(u % C), width = (2 + renamed) * (sizeof(I) / 4) + sizeof(B) / 4;
    unsigned* at = records + (first_of(counts, owner) + place[k]) * width;
    at = write_field(at, (I)(u / C * C + c));
    at = write_field(at, ids[v]);
    at = write_field(at, reinterpret_cast<const B*>(weight)[k]);
    if (renamed) write_field(at, names[v]);
}

// One thread to a record.  `when` keeps a vertex from being listed twice in a round.
template <typename I, typename B>
__global__ void take_offers(I count, int C, bool renamed, const unsigned* records, int round, int* when, I* offered_ids,
                            I* offered_names, B* offered_bits, I* touched, unsigned long long* listed)
{
    long long k = global_thread();
    bool fresh = false;
    I v = 0;
    if (k < count) {
        I slot, id, name;
        B bits;
        const unsigned* at = records + k * ((2 + renamed) * (sizeof(I) / 4) + sizeof(B) / 4);
        at = read_field(at, &slot);
        at = read_field(at, &id);
        at = read_field(at, &bits);
        name = id;
        if (renamed) read_field(at, &name);
        offered_ids[slot] = id;
        offered_names[slot] = name;
        offered_bits[slot] = bits;
        v = slot / C;
        fresh = atomicExch(&when[v], round) != round;
    }
    append(touched, listed, v, fresh);
}

// One thread to each of at most `most` vertices that were listed.
template <typename I, typename B>
__global__ void choose(I most, int C, int p, unsigned long long seed, bool by_hash, const I* touched,
                       const unsigned long long* listed, const I* own, const I* offered_ids, const I* offered_names,
                       const B* offered_bits, const I* waiter, I* pointer, B* weight, I* changed,
                       I* target, I* place, unsigned long long* total, unsigned long long* counts, I* matched,
                       unsigned long long* met)
{
    long long k = global_thread();
    bool anew = k < most && k < (long long)*listed, meets = false;
    I v = 0, to = 0;
    if (anew) {
        v = touched[k];
        I name = own[v], best = I(-1), best_name = I(-1);
        B bits = 0;
        for (I slot = v * C; slot < (v + 1) * C; ++slot) {
            B theirs = offered_bits[slot];
            if (theirs == 0 || theirs < bits) continue;
            if (theirs == bits && !prefers_tied(name, offered_names[slot], name, best_name, seed, by_hash)) continue;
            best = slot;
            best_name = offered_names[slot];
            bits = theirs;
        }
        anew = best >= 0 && best_name != pointer[v];
        if (best < 0 || anew) {
            pointer[v] = best_name;
            weight[v] = bits;
        }
        if (anew) to = offered_ids[best];
        meets = anew && waiter[v] == best_name;
    }
    long long at = append(changed, total, v, anew);
    unsigned long long mine = take_place(counts, (int)(to % p), anew);
    if (anew) {
        target[at] = to;
        place[at] = (I)mine;
    }
    append(matched, met, v, meets);
}

// One thread to a vertex that points anew.  A record: the place of the other vertex, the name of this one, the bits
// of the weight.
template <typename I, typename B>
__global__ void pack_pointers(I count, int p, const I* changed, const I* target, const I* place,
                              const unsigned long long* counts, const I* own, const B* weight,
                              unsigned* records)
{
    long long k = global_thread();
    if (k >= count) return;
    I v = changed[k], to = target[k];
    unsigned* at = records + (first_of(counts, (int)(to % p)) + place[k]) * (2 * (sizeof(I) / 4) + sizeof(B) / 4);
    at = write_field(at, (I)(to / p));
    at = write_field(at, own[v]);
    write_field(at, weight[v]);
}

template <typename I, typename B>
struct Pointed {
    I v, name;
    B bits;
    __device__ __forceinline__ Pointed(const unsigned* records, long long k)
    {
        const unsigned* at = records + k * (2 * (sizeof(I) / 4) + sizeof(B) / 4);
        at = read_field(at, &v);
        at = read_field(at, &name);
        read_field(at, &bits);
    }
};

// One thread to a record.  A sender that is not pointed back at waits: the first pass, by weight.
template <typename I, typename B>
__global__ void meet(I count, const unsigned* records, const I* pointer, B* waiting_bits,
                     unsigned long long* waiting_hash, I* waiter, I* matched, unsigned long long* met)
{
    long long k = global_thread();
    bool meets = false;
    I v = 0;
    if (k < count) {
        Pointed<I, B> one(records, k);
        v = one.v;
        meets = pointer[v] == one.name;
        if (!meets && load_relaxed(&waiting_bits[v]) < one.bits && raise_to(&waiting_bits[v], one.bits) < one.bits) {
            store_relaxed(&waiting_hash[v], 0ull);
            store_relaxed(&waiter[v], nobody<I>());
        }
    }
    append(matched, met, v, meets);
}

// The second pass, by hash.
template <typename I, typename B>
__global__ void rank_waiters(I count, const unsigned* records, unsigned long long seed, const I* pointer, const I* own,
                             const B* waiting_bits, unsigned long long* waiting_hash, I* waiter)
{
    long long k = global_thread();
    if (k >= count) return;
    Pointed<I, B> one(records, k);
    if (pointer[one.v] == one.name || waiting_bits[one.v] != one.bits) return;
    unsigned long long hash = tie_hash(own[one.v], one.name, seed);
    if (load_relaxed(&waiting_hash[one.v]) < hash && raise_to(&waiting_hash[one.v], hash) < hash)
        store_relaxed(&waiter[one.v], nobody<I>());
}

// The third pass, by name.
template <typename I, typename B>
__global__ void name_waiters(I count, const unsigned* records, unsigned long long seed, bool by_hash, const I* pointer,
                             const I* own, const B* waiting_bits, const unsigned long long* waiting_hash,
                             I* waiter)
{
    long long k = global_thread();
    if (k >= count) return;
    Pointed<I, B> one(records, k);
    if (pointer[one.v] == one.name || waiting_bits[one.v] != one.bits) return;
    if (by_hash && waiting_hash[one.v] != tie_hash(own[one.v], one.name, seed)) return;
    if (one.name < load_relaxed(&waiter[one.v])) lower_to(&waiter[one.v], one.name);
}

// One thread to a place of a rank, or to a word of a list of its places.  These vertices are base + place * step here.
template <typename I>
__global__ void mark_taken(I size, bool listed, const I* words, I base, I step, unsigned char* taken)
{
    constexpr int BITS = 8 * sizeof(I);
    long long k = global_thread();
    if (k >= size) return;
    if (!listed && !(words[k / BITS] >> (k % BITS) & 1)) return;
    taken[base + (listed ? words[k] : (I)k) * step] = 1;
}

template <typename W>
__global__ void __launch_bounds__(BLOCK) add_weights(long long n, const W* weight, double* sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) sum += widened(weight[v]);
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
