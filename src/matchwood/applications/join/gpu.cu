// The join on the GPU: what the kernels read; `gather`, the candidates; `verify`.  Host: gpu.py, which fills
// a Corpus with addresses; the arrays are those of __init__.py and candidates/cpu.py.

#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;  // threads
constexpr int WARPS = BLOCK / WARP;
constexpr int BITS = 40;  // similarities are integers in units of 2^-40
constexpr long long UNIT = 1ll << BITS;

struct Records {
    const long long* starts;
    const int* elements;  // ascending within a record
};

struct TokenLists {
    const long long* starts;
    const long long* ends;
    const int* tokens;
    const float* totals;
    const float* rests;
    const int* firsts;
    const float* utilities;
};

struct Corpus {
    const long long* element_starts;
    const int* element_tokens;
    Records left, right;
    TokenLists left_lists, right_lists;
    const long long* index_starts;
    const int* index_positions;
    const float* index_totals;
    const float* index_rests;
    const double* nearest;  // how similar each element can be to another one
    const int* rows;        // the left row of each item
    const int* lows;        // positions on the right that are admitted ...
    const int* highs;       // ... up to this one
    const int* right_rows;  // the right row of each position
    const int* right_sizes; // its elements
};

struct Rule {
    double share;   // theta of a pair is share times the sum of its sizes
    double prefix;  // what the left record needs, for each of its elements
    int itself;     // 1: a collection with itself
    int once;       // 1: and each pair is found once; the smaller row goes left
    int unequal;    // 1: no pairs of score 1
    int scores;     // 1: exact weights are wanted
    int fuzzy;      // 0: elements are equal or not similar at all
};

__device__ __forceinline__ int size_of(const Records& side, int row)
{
    return (int)(side.starts[row + 1] - side.starts[row]);
}

// The least weight that is reported: verification/cpu has the same expression, and the same bits.
__device__ __forceinline__ long long least_weight(double share, int left, int right)
{
    double least = floor(__dmul_rn(__dmul_rn(share, (double)(left + right)), (double)UNIT));
    long long need = (long long)least - (left < right ? left : right);
    return need < 1 ? 1 : need;
}

// part / whole in units of 2^-40, rounded to the nearest.  Tokens of two elements: far below 2^21.
__device__ __forceinline__ long long fixed(long long part, long long whole)
{
    if (whole < 1 << 21) return (long long)((unsigned long long)((part << (BITS + 1)) + whole) / (unsigned long long)(2 * whole));
    long long high = (part << BITS / 2) / whole;
    long long rest = (part << BITS / 2) - high * whole;
    return (high << BITS / 2) + ((rest << (BITS / 2 + 1)) + whole) / (2 * whole);
}

// Numbers that the host reads: gpu.py adds them up.
constexpr int GENERATED = 0, REFINED = 1, VERIFIED = 2, ACCEPTED_BY_BOUND = 3, REJECTED_BY_BOUND = 4,
              SOLVED_EXACTLY = 5, COUNTS = 8;

struct Tally {
    long long of[COUNTS] = {};

    // All threads of the block call.
    __device__ __forceinline__ void add_to(unsigned long long* counts)
    {
        for (int k = 0; k < COUNTS; k++) {
            long long sum = warp_reduce(of[k], Plus());
            if (lane() == 0 && sum != 0) atomicAdd(counts + k, (unsigned long long)sum);
        }
    }
};

// Candidates of the join: a block takes a left record, gathers the records that share a token of
// its prefix, and filters them.  The bounds, and why they hold: candidates/cpu.py.
//
// The records on the right are in order of size.  The block works on WINDOW positions at a time:
//   1. a warp takes a token of the prefix and adds its utility to each position of its posting list
//      (a cursor for each token remembers where the next window begins), and lowers what the two
//      records have left after it: the least of these is what they have left after the last one
//   2. positions whose sum and what is left can reach the threshold go on a list
//   3. a thread takes one of the list: equal elements, then the merged token lists
// What is left is written out: with its weight where equal elements decide it, else as pending,
// for `verify`.
//
// Sums are integers, each term rounded up, so that a bound is never too small.  Records are taken
// from a counter, the most expensive first.  The order of the pairs that are written is not fixed;
// the host sorts them.

constexpr int WINDOW = 2048;     // positions on the right at a time: 20 KB
constexpr int CURSORS = 512;     // tokens of a prefix whose place is kept: 4 KB
constexpr double SLACK = 1e-7;   // bounds below their threshold by no more than this are kept
constexpr long long PENDING = -1;  // instead of a weight: to be verified

// The prefix of a record: after it, less is left than the record needs.
__device__ long long prefix_end(const TokenLists& lists, int row, double whole, double least)
{
    long long start = lists.starts[row], lo = start, hi = lists.ends[row];
    while (lo < hi) {  // `rests` falls: the first place with too little left before it
        long long middle = (lo + hi) / 2;
        double left = middle == start ? whole : (double)lists.rests[middle - 1];
        if (left >= least - SLACK) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

__device__ __forceinline__ long long first_at_least(const int* positions, long long lo, long long hi, int least)
{
    while (lo < hi) {
        long long middle = (lo + hi) / 2;
        if (positions[middle] < least) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

// The number of elements that two records share; *most: an upper bound of their matching, each
// element that is in one record alone counting as its nearest neighbour.
__device__ int equal_elements(const int* a, int m, const int* b, int n, const double* nearest, double* most)
{
    int i = 0, j = 0, same = 0;
    double left = 0.0, right = 0.0;
    while (i < m || j < n) {
        int x = i < m ? a[i] : 0x7fffffff, y = j < n ? b[j] : 0x7fffffff;
        same += x == y;
        if (x < y) left += nearest[x];
        if (y < x) right += nearest[y];
        i += x <= y;
        j += y <= x;
    }
    *most = same + fmin(left, right);
    return same;
}

// Where the utilities of the token at `at` end, counted from the record's start.
__device__ __forceinline__ int uses_end(const TokenLists& lists, int row, long long at)
{
    return at + 1 < lists.ends[row] ? lists.firsts[at + 1] : (int)(lists.starts[row + 1] - lists.starts[row]);
}

// Merge the token lists of two records.  False: their matching weighs less than `need`.
__device__ bool can_reach(const TokenLists& mine, int row, const TokenLists& others, int other, double need)
{
    long long i = mine.starts[row], end = mine.ends[row];
    long long j = others.starts[other], stop = others.ends[other];
    long long first = i, second = j;
    double got = 0.0, rest = 1e300, rest_other = 1e300;
    need -= SLACK;
    while (i < end && j < stop) {
        int x = mine.tokens[i], y = others.tokens[j];
        if (x == y) {
            int a = mine.firsts[i], b = uses_end(mine, row, i);
            int c = others.firsts[j], d = uses_end(others, other, j);
            for (int k = 0; k < min(b - a, d - c); k++)
                got += fminf(mine.utilities[first + a + k], others.utilities[second + c + k]);
        }
        if (x <= y) rest = mine.rests[i++];
        if (y <= x) rest_other = others.rests[j++];
        if (got + fmin(rest, rest_other) < need) return false;
    }
    return got >= need;
}

struct PairBuffer {
    int* left;
    int* right;
    long long* weight;
    unsigned long long* used;  // places wanted, also above the room
    long long room;
};

__device__ __forceinline__ void write_pair(const PairBuffer& out, const Rule& rule, int row, int other, long long weight)
{
    unsigned long long at = atomicAdd(out.used, 1ull);
    if ((long long)at >= out.room) return;
    bool swap = rule.once && other < row;
    out.left[at] = swap ? other : row;
    out.right[at] = swap ? row : other;
    out.weight[at] = weight;
}

// One candidate, one thread.
__device__ void filter_pair(const Corpus& corpus, const Rule& rule, int row, int other, const PairBuffer& out, Tally& tally)
{
    const int* a = corpus.left.elements + corpus.left.starts[row];
    const int* b = corpus.right.elements + corpus.right.starts[other];
    int m = size_of(corpus.left, row), n = size_of(corpus.right, other);
    long long need = least_weight(rule.share, m, n);
    double most;
    int equal = equal_elements(a, m, b, n, corpus.nearest, &most);
    long long weight = equal * UNIT;
    if (!rule.fuzzy || equal == m || equal == n || (weight >= need && !rule.scores)) {
        tally.of[VERIFIED]++;
        tally.of[weight >= need ? ACCEPTED_BY_BOUND : REJECTED_BY_BOUND]++;
        if (weight >= need && !(rule.unequal && m == n && weight == m * UNIT))
            write_pair(out, rule, row, other, weight);
    } else if (weight >= need ||
               (most >= rule.share * (m + n) - SLACK &&
                can_reach(corpus.left_lists, row, corpus.right_lists, other, rule.share * (m + n))))
        write_pair(out, rule, row, other, PENDING);
}

// Blocks of BLOCK threads.  `cursor` and `out.used` are 0 at the start.
__global__ void __launch_bounds__(BLOCK) gather(const Corpus* corpora, const Rule* rules, int first_item,
    int last_item, int* cursor, int* out_left, int* out_right, long long* out_weight,
    unsigned long long* used, long long room, unsigned long long* counts)
{
    __shared__ unsigned int got[WINDOW], rest[WINDOW];
    __shared__ unsigned short list[WINDOW];
    __shared__ long long places[CURSORS];
    __shared__ int listed, item;
    const Corpus& corpus = *corpora;
    const Rule& rule = *rules;
    const TokenLists& lists = corpus.left_lists;
    PairBuffer out{out_left, out_right, out_weight, used, room};
    Tally tally;
    for (int k = threadIdx.x; k < WINDOW; k += BLOCK) {
        got[k] = 0;
        rest[k] = ~0u;
    }
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) {
            item = last_item - 1 - atomicAdd(cursor, 1);  // the largest records first
            listed = 0;
        }
        __syncthreads();
        if (item < first_item) break;
        int row = corpus.rows[item], low = corpus.lows[item], high = corpus.highs[item];
        if (low >= high) continue;
        int size = size_of(corpus.left, row);
        long long start = lists.starts[row];
        double least = rule.prefix * size;
        long long end = prefix_end(lists, row, (double)size, least);
        // the sum of a record's utilities is its size, and a little for rounding up
        int shift = max(0, min(20, 29 - (31 - __clz(size))));
        float scale = (float)(1 << shift);
        for (int t = threadIdx.x; t < min(end - start, (long long)CURSORS); t += BLOCK) {
            int token = lists.tokens[start + t];
            places[t] = first_at_least(corpus.index_positions, corpus.index_starts[token],
                                       corpus.index_starts[token + 1], low);
        }
        __syncthreads();
        for (int lo = low; lo < high; lo += WINDOW) {
            int hi = min(high, lo + WINDOW);
            for (int t = warp(); t < end - start; t += WARPS) {
                int token = lists.tokens[start + t];
                long long stop = corpus.index_starts[token + 1];
                long long at = t < CURSORS ? places[t]
                                           : first_at_least(corpus.index_positions, corpus.index_starts[token], stop, lo);
                float utility = lists.totals[start + t], left = lists.rests[start + t];
                bool more = at < stop;
                while (more) {
                    long long j = at + lane();
                    int position = j < stop ? corpus.index_positions[j] : hi;
                    bool inside = position < hi;
                    if (inside) {
                        float shared = fminf(utility, corpus.index_totals[j]);
                        float after = fminf(left, corpus.index_rests[j]);
                        atomicAdd(&got[position - lo], (unsigned int)(shared * scale) + 1);
                        atomicMin(&rest[position - lo], (unsigned int)(after * scale) + 1);
                    }
                    int count = __popc(__ballot_sync(ALL, inside));
                    at += count;
                    more = count == WARP;
                }
                if (t < CURSORS && lane() == 0) places[t] = at;
            }
            __syncthreads();
            for (int k = threadIdx.x; k < hi - lo; k += BLOCK) {
                unsigned int sum = got[k];
                if (sum == 0) continue;
                double bound = ((double)sum + (double)rest[k]) / scale;
                got[k] = 0;
                rest[k] = ~0u;
                tally.of[GENERATED]++;
                if (bound < rule.share * (size + corpus.right_sizes[lo + k]) - SLACK) continue;
                if (rule.itself && corpus.right_rows[lo + k] == row) continue;
                list[atomicAdd(&listed, 1)] = (unsigned short)k;
            }
            __syncthreads();
            int count = listed;
            for (int k = threadIdx.x; k < count; k += BLOCK) {
                tally.of[REFINED]++;
                filter_pair(corpus, rule, row, corpus.right_rows[lo + list[k]], out, tally);
            }
            __syncthreads();
            if (threadIdx.x == 0) listed = 0;
            __syncthreads();
        }
    }
    tally.add_to(counts);
}

// Verification of pairs that equal elements alone do not settle: a warp takes a pair.
// The steps are those of verification/cpu, certified:
//   1. the elements that are not in both records; the fewer ones are the rows
//   2. similarities, an element pair for each lane; the best of each row and of each column
//   3. rows take the column of their best; where that weighs what the bounds say, it is the optimum
//   4. else the heaviest matching, by shortest augmenting paths, lanes over the columns
//
// Small pairs are worked on in shared memory, others in a part of `slab` that the warp owns.  All
// numbers are integers and the optimum has one weight, so the bits are those of the CPU.

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

// Match rows with the column of their best edge while it is free; returns the weight.
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
// places of pending pairs; their weight is written, 0 where the pair does not count.
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
