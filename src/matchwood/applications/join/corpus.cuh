// What the kernels of the join read: both sides, their token lists, the index.  The host fills a
// Corpus with addresses (gpu_corpus.py); the arrays are those of arrays.py and candidates/cpu_lists.py.
#pragma once

#include "matchwood/threads.cuh"

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
    int once;       // 1: and each pair is met once; the smaller row goes left
    int unequal;    // 1: no pairs of score 1
    int scores;     // 1: exact weights are wanted
    int fuzzy;      // 0: elements are equal or not similar at all
};

__device__ __forceinline__ int size_of(const Records& side, int row)
{
    return (int)(side.starts[row + 1] - side.starts[row]);
}

// The least weight that is reported: cpu_pair.py has the same expression, and the same bits.
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
