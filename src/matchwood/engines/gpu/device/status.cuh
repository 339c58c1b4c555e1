// How a kernel reports an error.  Host side: `gpu.Status`.
#pragma once

// code: 1 to 255.  detail: a vertex or an entry, 0 to 2^56 - 1.  The smallest (code, detail) of
// all that fail is kept, so that the error does not depend on scheduling.
__device__ __forceinline__ void fail(unsigned long long* status, unsigned int code, long long detail)
{
    atomicMin(status, (unsigned long long)code << 56 | (unsigned long long)detail);
}

// True when something has failed; a long kernel may read this sometimes and return early.
__device__ __forceinline__ bool failed(const unsigned long long* status)
{
    return *const_cast<const volatile unsigned long long*>(status) != ~0ull;
}
