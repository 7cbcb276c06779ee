//! Algorithm 4: a query cut into tasks, one per skip block of its rarest list.
//!
//! A task has, for each list of the query, the skip blocks that may have documents between two skips of the rarest
//! list. Neighbouring tasks share at most one block of a list, which is then decoded twice.

use crate::ding::daat::cursor::Cursor;

/// First and last skip block of a list that a task needs.
pub(crate) type Needed = (u32, u32);

/// Returns a list's skips, the last document of each block.
pub(crate) fn skips(cursor: &Cursor<'_>) -> Vec<u32> {
    let before = (1..cursor.num_blocks()).map(|block| cursor.skip(block));
    before.chain((cursor.num_blocks() > 0).then(|| cursor.last_doc())).collect()
}

/// Appends the blocks of every list that each task needs. A task is a skip block of the first list; lists are given by
/// their skips.
pub(crate) fn create_tasks<S: AsRef<[u32]>>(lists: &[S], needed: &mut Vec<Needed>) {
    let Some((rarest, others)) = lists.split_first() else { return };
    let mut first_doc = 0;
    for (block, &last_doc) in (0..).zip(rarest.as_ref()) {
        needed.push((block, block));
        for skips in others {
            let skips = skips.as_ref();
            let first = skips.partition_point(|&last| last < first_doc);
            let last = first + skips[first..].partition_point(|&last| last < last_doc);
            // Past a list's end its last block stands in, as in the paper.
            let end = skips.len() as u32 - 1;
            needed.push(((first as u32).min(end), (last as u32).min(end)));
        }
        first_doc = last_doc + 1;
    }
}

/// Returns the mean number of skip blocks per list that a task needs.
pub(crate) fn mean_skips(task: &[Needed]) -> f64 {
    task.iter().map(|(first, last)| last - first + 1).sum::<u32>() as f64 / task.len() as f64
}

/// Returns the mean number of skip blocks per list that two neighbouring tasks share, without the rarest list.
pub(crate) fn mean_overlap(before: &[Needed], after: &[Needed]) -> f64 {
    let shared = before.iter().zip(after).skip(1).map(|(before, after)| (before.1 + 1).saturating_sub(after.0));
    f64::from(shared.sum::<u32>()) / (before.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_is_cut_as_in_the_paper() {
        // The paper's figure 3 has skips 20, 35, 90, 175 of one list and 10, 50, 90, 145, 205 of the other; skip i
        // opens block i.
        let (a, b) = ([34, 89, 175], [49, 89, 144, 205]);
        let mut needed = Vec::new();
        create_tasks(&[a.as_slice(), b.as_slice()], &mut needed);
        assert_eq!(needed, [(0, 0), (0, 0), (1, 1), (0, 1), (2, 2), (2, 3)]);
        let tasks: Vec<&[Needed]> = needed.chunks(2).collect();
        assert_eq!(mean_skips(tasks[2]), 1.5);
        assert_eq!((mean_overlap(tasks[0], tasks[1]), mean_overlap(tasks[1], tasks[2])), (1.0, 0.0));
    }
}
