// Relaxed and ordered accesses to words that several threads touch at once.
//
// A plain load or store of such a word is a data race: the compiler may keep it in a register or
// split it.  These cost what plain ones cost and are never torn.  CUDA's own atomicAdd, atomicMin,
// atomicCAS and so on are relaxed and device-wide; those below add the types that they lack.
#pragma once

template <int BYTES>
struct WordOf;
template <>
struct WordOf<4> {
    using type = unsigned int;
};
template <>
struct WordOf<8> {
    using type = unsigned long long;
};

template <typename To, typename From>
__device__ __forceinline__ To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

__device__ __forceinline__ unsigned char load_word(const unsigned char* p)
{
    unsigned int x;  // PTX has no 8-bit register
    asm volatile("ld.relaxed.gpu.u8 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return (unsigned char)x;
}

__device__ __forceinline__ unsigned int load_word(const unsigned int* p)
{
    unsigned int x;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

__device__ __forceinline__ unsigned long long load_word(const unsigned long long* p)
{
    unsigned long long x;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
}

__device__ __forceinline__ void store_word(unsigned char* p, unsigned char x)
{
    asm volatile("st.relaxed.gpu.u8 [%0], %1;" ::"l"(p), "r"((unsigned int)x) : "memory");
}

__device__ __forceinline__ void store_word(unsigned int* p, unsigned int x)
{
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

__device__ __forceinline__ void store_word(unsigned long long* p, unsigned long long x)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}

// Any value of 4 or 8 bytes.
template <typename T>
__device__ __forceinline__ T load_relaxed(const T* p)
{
    using Word = typename WordOf<sizeof(T)>::type;
    return bits_as<T>(load_word(reinterpret_cast<const Word*>(p)));
}

template <typename T>
__device__ __forceinline__ void store_relaxed(T* p, T x)
{
    using Word = typename WordOf<sizeof(T)>::type;
    store_word(reinterpret_cast<Word*>(p), bits_as<Word>(x));
}

__device__ __forceinline__ unsigned char load_relaxed(const unsigned char* p) { return load_word(p); }
__device__ __forceinline__ void store_relaxed(unsigned char* p, unsigned char x) { store_word(p, x); }

// Orders what this thread did before against what it does after, for all threads of the device.
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// What the writer did before its release is visible to a reader after its acquire.
__device__ __forceinline__ unsigned int load_acquire(const unsigned int* p)
{
    unsigned int x;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

__device__ __forceinline__ void store_release(unsigned int* p, unsigned int x)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

__device__ __forceinline__ unsigned int add_release(unsigned int* p, unsigned int x)
{
    unsigned int old;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(x) : "memory");
    return old;
}

// Compare-and-swap on any value of 4 or 8 bytes; returns what was there.
template <typename T>
__device__ __forceinline__ T compare_and_swap(T* p, T expected, T desired)
{
    using Word = typename WordOf<sizeof(T)>::type;
    return bits_as<T>(
        atomicCAS(reinterpret_cast<Word*>(p), bits_as<Word>(expected), bits_as<Word>(desired)));
}

// Lower *p to x; returns what was there.  CUDA has it for all four integer types.
template <typename T>
__device__ __forceinline__ T lower_to(T* p, T x)
{
    return atomicMin(p, x);
}

template <typename T>
__device__ __forceinline__ T raise_to(T* p, T x)
{
    return atomicMax(p, x);
}

// Floats by compare-and-swap, for data without NaN; rarely more than one turn under low contention.
template <typename T, typename Better>
__device__ __forceinline__ T improve(T* p, T x, Better better)
{
    T seen = load_relaxed(p);
    while (better(x, seen)) {
        T before = compare_and_swap(p, seen, x);
        if (bits_as<typename WordOf<sizeof(T)>::type>(before) ==
            bits_as<typename WordOf<sizeof(T)>::type>(seen))
            return before;
        seen = before;
    }
    return seen;
}

struct Below {
    template <typename T>
    __device__ __forceinline__ bool operator()(T a, T b) const { return a < b; }
};

struct Above {
    template <typename T>
    __device__ __forceinline__ bool operator()(T a, T b) const { return b < a; }
};

template <>
__device__ __forceinline__ float lower_to(float* p, float x) { return improve(p, x, Below()); }
template <>
__device__ __forceinline__ double lower_to(double* p, double x) { return improve(p, x, Below()); }
template <>
__device__ __forceinline__ float raise_to(float* p, float x) { return improve(p, x, Above()); }
template <>
__device__ __forceinline__ double raise_to(double* p, double x) { return improve(p, x, Above()); }

// Add to a counter of the type of indices; returns the value before, such as a place in a queue.
__device__ __forceinline__ int take(int* counter, int count) { return atomicAdd(counter, count); }
__device__ __forceinline__ unsigned int take(unsigned int* counter, unsigned int count)
{
    return atomicAdd(counter, count);
}
__device__ __forceinline__ unsigned long long take(unsigned long long* counter, unsigned long long count)
{
    return atomicAdd(counter, count);
}
__device__ __forceinline__ long long take(long long* counter, long long count)
{
    return (long long)atomicAdd(reinterpret_cast<unsigned long long*>(counter), (unsigned long long)count);
}
