//! Twins of the kernels on the host: the steps of the published methods in plain Rust, one function per kernel family.
//!
//! The codecs are the twins of the decoders, except for two properties of the device form: single slots, and Rice's two
//! prefix sums. Tests compare the twins with plain implementations, and the kernels with the twins.

#[cfg(test)]
use super::kernels::HEAP_DEGREE;

/// Returns value `place` of a section of `len` slots of `width` bits, packed as `codec/packed.rs` describes: groups of
/// 128 in four lanes, the rest in a row. Panics if the section is short.
pub(crate) fn read_slot(slots: &[u32], width: u32, len: usize, place: usize) -> u32 {
    if width == 0 {
        return 0;
    }
    let (group, within) = (place / 128, place % 128);
    let is_full = (group + 1) * 128 <= len;
    let (row, column, stride) = if is_full { (within / 4, within % 4, 4) } else { (within, 0, 1) };
    let bit = row * width as usize;
    let word = |index: usize| u64::from(slots[group * 4 * width as usize + index * stride + column]);
    let (low, high) = (word(bit / 32), word((bit + width as usize - 1) / 32));
    ((high << 32 | low) >> (bit % 32)) as u32 & (u32::MAX >> (32 - width))
}

/// Returns the number of elements of `b` below each of `a`, with `strides.len() - 1` levels of recursion. `strides` are
/// those of [`strides`](super::merge_find::strides).
#[cfg(test)]
pub(crate) fn merge_find(a: &[u32], b: &[u32], strides: &[u32]) -> Vec<u32> {
    let mut coarse: Option<(usize, Vec<u32>)> = None;
    for &stride in strides {
        let stride = stride as usize;
        let found = (0..a.len() / stride)
            .map(|i| {
                let element = (i + 1) * stride - 1;
                let (mut low, mut high) = (0, b.len());
                if let Some((coarse_stride, coarse)) = &coarse {
                    let segment = element / coarse_stride;
                    low = segment.checked_sub(1).map_or(0, |before| coarse[before] as usize);
                    high = coarse.get(segment).map_or(b.len(), |&place| place as usize);
                }
                (low + b[low..high].partition_point(|&value| value < a[element])) as u32
            })
            .collect();
        coarse = Some((stride, found));
    }
    coarse.map_or_else(Vec::new, |(_, found)| found)
}

/// Returns the best `k` keys above 0, best first, by a heap of degree 512. It holds maxima of groups and of groups of
/// groups; each extraction repairs its branch.
#[cfg(test)]
pub(crate) fn heap_top_k(keys: &[u64], k: usize) -> Vec<u64> {
    let degree = HEAP_DEGREE as usize;
    let mut levels = vec![keys.to_vec()];
    while levels.len() < 2 || levels[levels.len() - 1].len() > degree {
        let below = &levels[levels.len() - 1];
        levels.push(below.chunks(degree).map(|group| group.iter().copied().max().unwrap_or(0)).collect());
    }
    let mut best = Vec::new();
    while best.len() < k {
        let Some(&key) = levels[levels.len() - 1].iter().max().filter(|&&key| key > 0) else { break };
        best.push(key);
        // Follow the branch down, then repair it upwards.
        let mut place = 0;
        for level in levels.iter().rev() {
            let first = place * degree;
            place = first + level[first..].iter().take(degree).position(|&other| other == key).unwrap_or(0);
        }
        levels[0][place] = 0;
        for level in 1..levels.len() {
            place /= degree;
            let first = place * degree;
            levels[level][place] = levels[level - 1][first..].iter().take(degree).copied().max().unwrap_or(0);
        }
    }
    best
}
