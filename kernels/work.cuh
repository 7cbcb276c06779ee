// work.cuh: one launch over many lists or arrays: work is shared out by units (a block of postings, say), not by owners, so
// that a long list does not keep one thread block busy while all others are done.
#pragma once

#include "tandem.cuh"

// The owner (a list, an array) of unit `unit`: the last one whose member `first_unit`, the number of units of the owners before
// it, does not exceed that. Units ascend from 0, and the caller's exists; owners without units are passed over.
template <class Owner>
__device__ __forceinline__ u32 find_owner(const Owner* owners, u32 num_owners, u32 Owner::*first_unit, u32 unit) {
    u32 low = 0, high = num_owners;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (owners[middle].*first_unit <= unit) low = middle;
        else high = middle;
    }
    return low;
}
