//! Symmetric trees in a layout for fast predictions: a tree's answers are the bits of a leaf's number.

use crate::cost::inputs::NUM_INPUTS;

/// Questions of a tree.
pub(crate) const DEPTH: usize = 6;
pub(crate) const LEAVES: usize = 1 << DEPTH;
/// Length of the array of a query's inputs. It is a power of two, so that a masked position is always valid.
const ROOM: usize = NUM_INPUTS.next_power_of_two();
/// Trees that are evaluated in parallel.
const LANES: usize = 8;

/// A tree: its questions, and the summand of each leaf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SymmetricTree {
    /// Positions among the inputs.
    pub(crate) inputs: [u8; DEPTH],
    /// An input above the threshold sets the level's bit.
    pub(crate) thresholds: [f32; DEPTH],
    pub(crate) leaves: [f32; LEAVES],
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SymmetricTrees {
    /// Prediction before the first tree.
    pub(crate) base: f32,
    groups: Vec<Group>,
    len: usize,
}

/// Eight trees, level by level. Missing trees of the last group add 0.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    inputs: [[u8; LANES]; DEPTH],
    thresholds: [[f32; LANES]; DEPTH],
    leaves: Box<[[f32; LEAVES]; LANES]>,
}

impl SymmetricTrees {
    pub(crate) fn new(base: f32, trees: &[SymmetricTree]) -> Self {
        let group = |trees: &[SymmetricTree]| {
            let mut group = Group {
                inputs: [[0; LANES]; DEPTH],
                thresholds: [[0.0; LANES]; DEPTH],
                leaves: Box::new([[0.0; LEAVES]; LANES]),
            };
            for (lane, tree) in trees.iter().enumerate() {
                for level in 0..DEPTH {
                    group.inputs[level][lane] = tree.inputs[level];
                    group.thresholds[level][lane] = tree.thresholds[level];
                }
                group.leaves[lane] = tree.leaves;
            }
            group
        };
        Self { base, groups: trees.chunks(LANES).map(group).collect(), len: trees.len() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn trees(&self) -> impl Iterator<Item = SymmetricTree> {
        (0..self.len).map(|tree| {
            let (group, lane) = (&self.groups[tree / LANES], tree % LANES);
            SymmetricTree {
                inputs: std::array::from_fn(|level| group.inputs[level][lane]),
                thresholds: std::array::from_fn(|level| group.thresholds[level][lane]),
                leaves: group.leaves[lane],
            }
        })
    }

    /// The sum for these inputs. No branch depends on them.
    pub(crate) fn predict(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        let mut room = [0.0_f32; ROOM];
        for (place, &input) in room.iter_mut().zip(inputs) {
            *place = input as f32;
        }
        let mut sums = [0.0_f32; LANES];
        for group in &self.groups {
            let mut rows = [0_u32; LANES];
            for level in 0..DEPTH {
                for lane in 0..LANES {
                    let input = room[usize::from(group.inputs[level][lane]) % ROOM];
                    rows[lane] |= u32::from(input > group.thresholds[level][lane]) << level;
                }
            }
            for lane in 0..LANES {
                sums[lane] += group.leaves[lane][rows[lane] as usize % LEAVES];
            }
        }
        f64::from(self.base) + sums.iter().map(|&sum| f64::from(sum)).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_trees_says_what_they_say_one_by_one() {
        let tree = |n: usize| SymmetricTree {
            inputs: std::array::from_fn(|level| ((n * 7 + level * 3) % NUM_INPUTS) as u8),
            thresholds: std::array::from_fn(|level| ((n * 5 + level) % 11) as f32),
            leaves: std::array::from_fn(|row| (n * 100 + row) as f32 / 64.0),
        };
        let trees: Vec<SymmetricTree> = (0..13).map(tree).collect();
        let sum = SymmetricTrees::new(0.5, &trees);
        assert_eq!((sum.len(), sum.trees().collect::<Vec<_>>()), (13, trees.clone()));
        for query in 0..50 {
            let inputs: [f64; NUM_INPUTS] = std::array::from_fn(|i| ((query * 13 + i * 17) % 12) as f64);
            let one_by_one = trees.iter().fold(0.5, |sum, tree| {
                let is_above = |level: usize| inputs[usize::from(tree.inputs[level])] > tree.thresholds[level].into();
                let row: usize = (0..DEPTH).map(|level| usize::from(is_above(level)) << level).sum();
                sum + f64::from(tree.leaves[row])
            });
            assert_eq!(sum.predict(&inputs), one_by_one);
        }
    }
}
