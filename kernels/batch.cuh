// batch.cuh: many lists in one launch, shared out by blocks of work and not by lists.
#pragma once

#include "tandem.cuh"

// The item (a list, an array) that a unit of work belongs to, by the number of units of the items before each. Units ascend
// from 0, and the caller's exists.
template <class Item>
__device__ __forceinline__ u32 find_item(const Item* items, u32 num_items, u32 Item::*first, u32 unit) {
    u32 low = 0, high = num_items;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (items[middle].*first <= unit) low = middle;
        else high = middle;
    }
    return low;
}
