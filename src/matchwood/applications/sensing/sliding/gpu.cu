// A sliding window on the GPU: the largest of many step functions at every step.  Host side: gpu.py.
//
// Of an entity (a link or an address) two sorted lists are known: the steps at which something of
// it begins to count, and those at which something ends.  Between two such steps its value is the
// same.  A thread for each beginning and each end finds the value from there on, and how long it
// stays.  A value on an interval is written for two intervals of a power of two that cover it;
// then widths are halved, one kernel each, until every step has its maximum.
//
// Races: `most` by atomicMax, `change` by atomicAdd alone; `halve` reads one level and writes the
// word of its own step in the next.
#include "matchwood/threads.cuh"

// How many of the sorted steps from lo to hi - 1 are at most `step`, plus lo.
__device__ __forceinline__ int after(const int* steps, int lo, int hi, int step)
{
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (steps[middle] <= step) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

// A value from step `begin` to `end` - 1.
__device__ __forceinline__ void raise(long long steps, int* most, int begin, int end, int value)
{
    int level = 31 - __clz(end - begin);
    int* words = most + level * steps;
    if (words[begin] < value) atomicMax(&words[begin], value);
    int second = end - (1 << level);
    if (words[second] < value) atomicMax(&words[second], value);
}

// The value of an entity after `begun` beginnings and `ended` ends, from `step` to its next change.
__device__ __forceinline__ void raise_from(
    long long steps, int* most, const int* begins, const int* ends, int begun, int ended, int stop,
    int step)
{
    int end = (int)steps;
    if (begun < stop) end = min(end, begins[begun]);
    if (ended < stop) end = min(end, ends[ended]);
    if (begun > ended && step < end) raise(steps, most, step, end, begun - ended);
}

// The largest values.  Entity e has the places from first[e] to first[e + 1] - 1 in both lists.
__global__ void raise_values(
    long long n, long long steps, const int* entity, const int* first, const int* begins,
    const int* ends, int* most)
{
    int i = (int)global_thread();
    if (i >= n) return;
    int start = first[entity[i]], stop = first[entity[i] + 1];
    int begin = begins[i], end = ends[i];
    if (i + 1 == stop || begins[i + 1] != begin)  // the last of those that begin together
        raise_from(steps, most, begins, ends, i + 1, after(ends, start, stop, begin), stop, begin);
    if (i + 1 == stop || ends[i + 1] != end)
        raise_from(steps, most, begins, ends, after(begins, start, stop, end), i + 1, stop, end);
}

// How many entities count something: what begins before the last one's end is no new entity.
__global__ void count_present(
    long long n, const int* entity, const int* begins, const int* ends, int* change)
{
    int i = (int)global_thread();
    if (i >= n) return;
    int begin = begins[i], end = ends[i];
    if (i > 0 && entity[i - 1] == entity[i]) begin = max(begin, ends[i - 1]);
    if (begin >= end) return;
    atomicAdd(&change[begin], 1);
    atomicAdd(&change[end], -1);
}

// Intervals of width 2 * half at `wide` become two of width half each.
__global__ void halve(long long steps, long long half, const int* wide, int* narrow)
{
    long long step = global_thread();
    if (step >= steps) return;
    int value = max(narrow[step], wide[step]);
    if (step >= half) value = max(value, wide[step - half]);
    narrow[step] = value;
}
