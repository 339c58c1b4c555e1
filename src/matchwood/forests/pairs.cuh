// Tables with two columns: a row in one load.
#pragma once

template <typename T>
struct alignas(2 * sizeof(T)) Two {
    T one, other;
};

template <typename T>
__device__ __forceinline__ Two<T> two(const T* __restrict__ table, long long v)
{
    return reinterpret_cast<const Two<T>*>(table)[v];
}
