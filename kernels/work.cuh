// work.cuh: one launch over many lists or arrays. Work is assigned by units (such as blocks of postings) instead of owners, so
// that a long list does not occupy one thread block alone.
#pragma once

#include "tandem.cuh"

// The owner (a list, an array) of unit `unit`: the last one whose `first_unit`, the units of all earlier owners, does not
// exceed it. Units ascend from 0, and `unit` must exist. Owners without units are skipped.
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
