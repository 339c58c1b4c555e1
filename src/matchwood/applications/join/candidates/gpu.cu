// Candidates of the join: a block takes a left record, gathers who shares a token of its prefix,
// and filters them.  Host: gpu.py.  The bounds, and why they hold: cpu_gather.py, cpu_lists.py.
//
// The records on the right stand in order of size.  The block looks at WINDOW positions at a time:
//   1. a warp takes a token of the prefix and adds its utility to each position of its posting list
//      (a cursor for each token remembers where the next window begins), and lowers what the two
//      records have left after it: the least of these is what they have left after the last one
//   2. positions whose sum and what is left can reach the threshold go on a list
//   3. a thread takes one of the list: equal elements, then the merged token lists
// What is left is written out: with its weight where equal elements say all, else as pending, for
// the kernel of ../verification/gpu.cu.
//
// Sums are integers, each term rounded up, so that a bound is never too small.  Records are taken
// from a counter, the most expensive first.  The order of the pairs that are written is not fixed;
// the host sorts them.

#include "matchwood/atomics.cuh"
#include "matchwood/corpus.cuh"

constexpr int BLOCK = 256;       // threads
constexpr int WARPS = BLOCK / WARP;
constexpr int WINDOW = 2048;     // positions on the right that are looked at together: 20 KB
constexpr int CURSORS = 512;     // tokens of a prefix whose place is remembered: 4 KB
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

// How many elements two records share; *most: no more than this can be matched, each element that is
// in one record alone counting as its nearest neighbour.
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

struct Out {
    int* left;
    int* right;
    long long* weight;
    unsigned long long* used;  // places wanted, also above the room
    long long room;
};

__device__ __forceinline__ void write_pair(const Out& out, const Rule& rule, int row, int other, long long weight)
{
    unsigned long long at = atomicAdd(out.used, 1ull);
    if ((long long)at >= out.room) return;
    bool swap = rule.once && other < row;
    out.left[at] = swap ? other : row;
    out.right[at] = swap ? row : other;
    out.weight[at] = weight;
}

// One candidate, one thread.
__device__ void filter_pair(const Corpus& corpus, const Rule& rule, int row, int other, const Out& out, Tally& tally)
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
    Out out{out_left, out_right, out_weight, used, room};
    Tally tally;
    for (int k = threadIdx.x; k < WINDOW; k += BLOCK) {
        got[k] = 0;
        rest[k] = ~0u;
    }
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) {
            item = last_item - 1 - atomicAdd(cursor, 1);  // the largest records come first
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
