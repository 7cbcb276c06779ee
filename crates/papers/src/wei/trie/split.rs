//! Assignment of slots to indexers, from a sample of the collection.
//!
//! ```text
//! sample ──▶ tokens by slot ──▶ the most popular slots ──▶ CPU indexers, equally many tokens each
//!                          └──▶ all others ──────────────▶ GPU slot mod G
//! ```
//!
//! In a popular slot a few terms have most of the tokens, and the nodes on their paths stay in a CPU's caches. In other
//! slots every token takes another path, and a GPU compares all keys of a node at once. The assignment never changes.
//!
//! Source: Wei and JaJa 2011, section III.E.

use super::slots::NUM_SLOTS;

/// Number of popular slots, as in the paper.
pub(crate) const POPULAR_SLOTS: usize = 100;

/// Returns the indexer of each slot: CPU indexers are 0 to `cpus` - 1, GPUs follow. `tokens` counts each slot's tokens
/// in the sample; there is at least one indexer.
pub(crate) fn split(tokens: &[u64], cpus: usize, gpus: usize) -> Vec<u16> {
    let mut by_tokens: Vec<usize> = (0..NUM_SLOTS).collect();
    by_tokens.sort_by_key(|&slot| std::cmp::Reverse(tokens[slot]));
    let num_popular = match (cpus, gpus) {
        (0, _) => 0,
        (_, 0) => NUM_SLOTS,
        _ => POPULAR_SLOTS,
    };
    let mut owners: Vec<u16> = (0..NUM_SLOTS).map(|slot| (cpus + slot % gpus.max(1)) as u16).collect();
    // Slots in descending order go to the CPU with the least tokens, so that slots without a sample alternate.
    let mut given = vec![(0, 0); cpus];
    for &slot in &by_tokens[..num_popular] {
        let least = (0..cpus).min_by_key(|&cpu| given[cpu]).unwrap_or_default();
        owners[slot] = least as u16;
        given[least] = (given[least].0 + tokens[slot], given[least].1 + 1);
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(owners: &[u16], tokens: &[u64], indexers: usize) -> Vec<u64> {
        let mut shares = vec![0; indexers];
        owners.iter().zip(tokens).for_each(|(&owner, &tokens)| shares[usize::from(owner)] += tokens);
        shares
    }

    /// Returns numbers of tokens as in a language: the slot of rank r has 1 / r of the first one's.
    fn tokens() -> Vec<u64> {
        (0..NUM_SLOTS as u64).map(|slot| 1_000_000 / (1 + slot * 7_919 % NUM_SLOTS as u64)).collect()
    }

    #[test]
    fn cpus_share_the_popular_slots_and_gpus_the_others() {
        let tokens = tokens();
        let owners = split(&tokens, 2, 2);
        let popular: Vec<usize> = (0..NUM_SLOTS).filter(|&slot| owners[slot] < 2).collect();
        assert_eq!(popular.len(), POPULAR_SLOTS);
        let least = popular.iter().map(|&slot| tokens[slot]).min().unwrap();
        assert!((0..NUM_SLOTS).all(|slot| owners[slot] < 2 || tokens[slot] <= least));
        assert!((0..NUM_SLOTS).all(|slot| owners[slot] < 2 || usize::from(owners[slot]) == 2 + slot % 2));
        let shares = shares(&owners, &tokens, 4);
        assert!(shares[0].abs_diff(shares[1]) * 50 < shares[0], "{shares:?}");
    }

    #[test]
    fn without_gpus_cpus_have_all_slots_and_without_cpus_gpus_have() {
        let tokens = tokens();
        let shares_of_three = shares(&split(&tokens, 3, 0), &tokens, 3);
        assert!(shares_of_three.iter().all(|&share| share.abs_diff(shares_of_three[0]) * 50 < share));
        let owners = split(&tokens, 0, 2);
        assert!(owners.iter().enumerate().all(|(slot, &owner)| usize::from(owner) == slot % 2));
        // An empty sample still gives every CPU its share.
        let by_number = shares(&split(&vec![0; NUM_SLOTS], 4, 0), &vec![1; NUM_SLOTS], 4);
        assert!(by_number.iter().all(|&slots| slots.abs_diff(NUM_SLOTS as u64 / 4) <= 1), "{by_number:?}");
    }
}
