// Verification of pairs that equal elements alone do not settle: a warp takes a pair.  Host: gpu.py.
// The steps are those of cpu_pair.py, certified:
//   1. the elements that are not in both records; the fewer ones are the rows
//   2. similarities, an element pair for each lane; the best of each row and of each column
//   3. rows take the column of their best; where that weighs what the bounds say, it is the optimum
//   4. else the heaviest matching, by shortest augmenting paths, lanes over the columns
//
// Small pairs are worked on in shared memory, others in a part of `slab` that the warp owns.  All
// numbers are integers and the optimum has one weight, so the bits are those of the CPU.

#include "matchwood/atomics.cuh"
#include "matchwood/corpus.cuh"

constexpr int BLOCK = 256;   // threads
constexpr int WARPS = BLOCK / WARP;
constexpr int SMALL = 24;    // rows or columns that fit shared memory
constexpr int SMALL_PAIRS = 160;  // similarities that fit
constexpr long long FAR = 1ll << 62;

// What a warp works on.  A column has places for the search; 0 stands for "none" in `mate`.
struct Space {
    long long* weights;     // rows * columns
    long long* row_best;    // rows
    long long* column_best; // columns
    long long* row_dual;    // rows + 1
    long long* column_dual; // columns + 1
    long long* distance;    // columns + 1
    int* rows;              // elements
    int* columns;
    int* mate;              // columns + 1: row + 1, or 0
    int* way;               // columns + 1: the column before, on the path
    int* done;              // columns + 1
};

// Bytes of a warp's part, in numbers of 8 bytes: gpu.py computes the same.
__device__ __forceinline__ Space lay_out(long long* base, long long pairs, int most)
{
    Space s;
    s.weights = base;
    s.row_best = s.weights + pairs;
    s.column_best = s.row_best + most;
    s.row_dual = s.column_best + most;
    s.column_dual = s.row_dual + most + 1;
    s.distance = s.column_dual + most + 1;
    s.rows = reinterpret_cast<int*>(s.distance + most + 1);
    s.columns = s.rows + most;
    s.mate = s.columns + most;
    s.way = s.mate + most + 1;
    s.done = s.way + most + 1;
    return s;
}

constexpr int SMALL_WORDS = SMALL_PAIRS + 2 * SMALL + 3 * (SMALL + 1) + (2 * SMALL + 3 * (SMALL + 1) + 1) / 2;

__device__ __forceinline__ bool contains(const int* list, int count, int wanted)
{
    int lo = 0, hi = count;
    while (lo < hi) {
        int middle = (lo + hi) / 2;
        if (list[middle] < wanted) lo = middle + 1;
        else hi = middle;
    }
    return lo < count && list[lo] == wanted;
}

// The elements of one record that the other has not, in order; or only how many, without `kept`.
__device__ int take_rest(const int* list, int count, const int* other, int others, int* kept)
{
    int found = 0;
    for (int start = 0; start < count; start += WARP) {
        int k = start + lane();
        bool alone = k < count && !contains(other, others, list[k]);
        unsigned who = __ballot_sync(ALL, alone);
        if (alone && kept) kept[found + __popc(who & lanes_below())] = list[k];
        found += __popc(who);
    }
    return found;
}

__device__ long long jaccard(const Corpus& corpus, int a, int b)
{
    long long i = corpus.element_starts[a], last = corpus.element_starts[a + 1];
    long long j = corpus.element_starts[b], end = corpus.element_starts[b + 1];
    long long whole = (last - i) + (end - j), shared = 0;
    while (i < last && j < end) {
        int x = corpus.element_tokens[i], y = corpus.element_tokens[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return fixed(shared, whole - shared);
}

// The heaviest matching of the rows (no more than columns) by shortest augmenting paths: each row in
// turn is matched along the path of least slack.  Costs are negative weights; rows and columns count
// from 1, column 0 holds the row that is being matched.
__device__ long long solve(const Space& s, int rows, int columns)
{
    for (int j = lane(); j <= columns; j += WARP) {
        s.column_dual[j] = 0;
        s.mate[j] = 0;
    }
    for (int i = lane(); i <= rows; i += WARP) s.row_dual[i] = 0;
    for (int root = 1; root <= rows; root++) {
        __syncwarp();
        for (int j = lane(); j <= columns; j += WARP) {
            s.distance[j] = FAR;
            s.done[j] = 0;
        }
        if (lane() == 0) s.mate[0] = root;
        int column = 0;
        __syncwarp();
        do {
            int row = s.mate[column];
            if (lane() == 0) s.done[column] = 1;
            __syncwarp();
            long long nearest = FAR;
            int next = 0;
            for (int j = lane() + 1; j <= columns; j += WARP) {
                if (s.done[j]) continue;
                long long slack = -s.weights[(long long)(row - 1) * columns + j - 1] - s.row_dual[row] - s.column_dual[j];
                if (slack < s.distance[j]) {
                    s.distance[j] = slack;
                    s.way[j] = column;
                }
                if (s.distance[j] < nearest) {
                    nearest = s.distance[j];
                    next = j;
                }
            }
            for (int step = WARP / 2; step > 0; step /= 2) {
                long long theirs = __shfl_xor_sync(ALL, nearest, step);
                int which = __shfl_xor_sync(ALL, next, step);
                if (theirs < nearest || (theirs == nearest && which < next)) {
                    nearest = theirs;
                    next = which;
                }
            }
            __syncwarp();
            for (int j = lane(); j <= columns; j += WARP) {
                if (s.done[j]) {  // each has another row, so no two lanes write one
                    s.row_dual[s.mate[j]] += nearest;
                    s.column_dual[j] -= nearest;
                } else
                    s.distance[j] -= nearest;
            }
            __syncwarp();
            column = next;
        } while (s.mate[column] != 0);
        if (lane() == 0) {
            while (column != 0) {
                int before = s.way[column];
                s.mate[column] = s.mate[before];
                column = before;
            }
        }
    }
    __syncwarp();
    long long weight = 0;
    for (int j = lane() + 1; j <= columns; j += WARP)
        if (s.mate[j] != 0) weight += s.weights[(long long)(s.mate[j] - 1) * columns + j - 1];
    return warp_reduce(weight, Plus());
}

// Rows take the column of their best edge while it is free: what that matching weighs.
__device__ long long match_choices(const Space& s, int rows, int columns)
{
    for (int j = lane(); j < columns; j += WARP) s.mate[j] = 0;
    __syncwarp();
    long long weight = 0;
    for (int i = lane(); i < rows; i += WARP) {
        long long best = s.row_best[i];
        if (best == 0) continue;
        int choice = 0;
        while (s.weights[(long long)i * columns + choice] != best) choice++;
        if (atomicCAS(s.mate + choice, 0, i + 1) == 0) weight += best;
    }
    return warp_reduce(weight, Plus());
}

// The weight of a pair that is reported, else 0.  All lanes get it.
__device__ long long verify_pair(const Corpus& corpus, const Rule& rule, const int* a, int m, const int* b, int n,
    long long* shared, long long* own, long long own_pairs, int most, Tally& tally)
{
    int rows = take_rest(a, m, b, n, nullptr);
    int equal = m - rows, columns = n - equal;
    if (rows > columns) {  // the fewer ones are rows
        const int* list = a;
        int count = m;
        a = b, m = n, b = list, n = count;
        count = rows;
        rows = columns, columns = count;
    }
    long long pairs = (long long)rows * columns;
    bool small = columns <= SMALL && pairs <= SMALL_PAIRS;
    Space s = small ? lay_out(shared, SMALL_PAIRS, SMALL) : lay_out(own, own_pairs, most);
    take_rest(a, m, b, n, s.rows);
    take_rest(b, n, a, m, s.columns);
    for (int i = lane(); i < rows; i += WARP) s.row_best[i] = 0;
    for (int j = lane(); j < columns; j += WARP) s.column_best[j] = 0;
    __syncwarp();
    for (long long k = lane(); k < pairs; k += WARP) {
        int i = (int)(k / columns), j = (int)(k - (long long)i * columns);
        long long weight = jaccard(corpus, s.rows[i], s.columns[j]);
        s.weights[k] = weight;
        if (weight > 0) {
            atomicMax(s.row_best + i, weight);
            atomicMax(s.column_best + j, weight);
        }
    }
    __syncwarp();
    long long by_rows = 0, by_columns = 0;
    for (int i = lane(); i < rows; i += WARP) by_rows += s.row_best[i];
    for (int j = lane(); j < columns; j += WARP) by_columns += s.column_best[j];
    long long upper = min(warp_reduce(by_rows, Plus()), warp_reduce(by_columns, Plus()));
    long long add = equal * UNIT, need = least_weight(rule.share, m, n);
    if (lane() == 0) tally.of[VERIFIED]++;
    if (add + upper < need) {
        if (lane() == 0) tally.of[REJECTED_BY_BOUND]++;
        return 0;
    }
    long long weight = match_choices(s, rows, columns);
    if (weight == upper || (add + weight >= need && !rule.scores)) {
        if (lane() == 0) tally.of[add + weight >= need ? ACCEPTED_BY_BOUND : REJECTED_BY_BOUND]++;
    } else {
        __syncwarp();
        weight = solve(s, rows, columns);
        if (lane() == 0) tally.of[SOLVED_EXACTLY]++;
    }
    weight += add;
    if (weight < need || (rule.unequal && m == n && weight == m * UNIT)) return 0;
    return weight;
}

// Blocks of BLOCK threads; `slab` has `stride` numbers for each warp of the grid.  `which` are the
// places of pending pairs; their weight is written, 0 where the pair is none.
__global__ void __launch_bounds__(BLOCK) verify(const Corpus* corpora, const Rule* rules, const long long* which,
    long long count, const int* left, const int* right, long long* weights, long long* slab, long long stride,
    long long own_pairs, int most, unsigned long long* counts)
{
    __shared__ long long shared[WARPS][SMALL_WORDS];
    const Corpus& corpus = *corpora;
    const Rule& rule = *rules;
    Tally tally;
    long long* own = slab + global_thread() / WARP * stride;
    for (long long k = global_thread() / WARP; k < count; k += all_threads() / WARP) {
        long long place = which[k];
        int row = left[place], other = right[place];
        // a collection with itself has one side: the lists of both are the same
        const int* a = corpus.left.elements + corpus.left.starts[row];
        const int* b = corpus.right.elements + corpus.right.starts[other];
        long long weight = verify_pair(corpus, rule, a, size_of(corpus.left, row), b, size_of(corpus.right, other),
                                       shared[warp()], own, own_pairs, most, tally);
        if (lane() == 0) weights[place] = weight;
        __syncwarp();
    }
    tally.add_to(counts);
}
