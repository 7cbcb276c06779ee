//! The inputs of a model: a query's features as one row of numbers, some of which may be unknown.
//!
//! Some ratios are added to the columns of a workload. Trees compare one number with a threshold, and would need many
//! questions to say "most of the look-ups" or "nearly the whole bound".

use crate::traffic::{Features, IndexFeatures};

/// Ratios: a name, a numerator and a denominator.
const RATIOS: [(&str, &str, &str); 7] = [
    ("seed_share", "seed_score", "score_bound"),
    ("first_share", "first_bound", "score_bound"),
    ("found_share", "expected_found", "shortest"),
    ("second_ratio", "second_shortest", "shortest"),
    ("lookup_share", "lookups", "postings"),
    ("live_share", "live_postings", "postings"),
    ("mean_postings", "postings", "terms"),
];
const NUM_COLUMNS: usize = Features::COUNT + IndexFeatures::COUNT;
pub(crate) const NUM_INPUTS: usize = NUM_COLUMNS + RATIOS.len();

/// Positions of each ratio's numerator and denominator.
const RATIOS_AT: [(usize, usize); RATIOS.len()] = {
    let mut places = [(0, 0); RATIOS.len()];
    let mut i = 0;
    while i < RATIOS.len() {
        places[i] = (column(RATIOS[i].1), column(RATIOS[i].2));
        i += 1;
    }
    places
};

const fn column_name(at: usize) -> &'static str {
    if at < Features::COUNT { Features::NAMES[at] } else { IndexFeatures::NAMES[at - Features::COUNT] }
}

/// The position of the column of this name. An unknown name does not compile.
const fn column(name: &str) -> usize {
    let mut at = 0;
    while at < NUM_COLUMNS {
        if is_same(column_name(at), name) {
            return at;
        }
        at += 1;
    }
    panic!("no such column")
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

// An input set is one word.
const _: () = assert!(NUM_INPUTS <= 64);

/// A query's features: those of list lengths, those of the index, and ratios of them. NaN marks unknown features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs(pub(crate) [f64; NUM_INPUTS]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputSet(u64);

impl Inputs {
    /// Names in order: columns of workload files, then ratios.
    pub const NAMES: [&'static str; NUM_INPUTS] = {
        let mut names = [""; NUM_INPUTS];
        let mut i = 0;
        while i < NUM_INPUTS {
            names[i] = if i < NUM_COLUMNS { column_name(i) } else { RATIOS[i - NUM_COLUMNS].0 };
            i += 1;
        }
        names
    };

    /// The inputs of a query with these features.
    pub fn of(features: &Features, index_features: Option<&IndexFeatures>) -> Self {
        let mut numbers = [f64::NAN; NUM_INPUTS];
        if features.is_complete() {
            numbers[..Features::COUNT].copy_from_slice(&features.vector());
        }
        if let Some(of_index) = index_features {
            numbers[Features::COUNT..NUM_COLUMNS].copy_from_slice(&of_index.vector());
        }
        for (i, (divided, by)) in RATIOS_AT.into_iter().enumerate() {
            // A share of nothing is 0. Unknown numbers stay unknown.
            let by = numbers[by];
            numbers[NUM_COLUMNS + i] = if by == 0.0 { 0.0 * numbers[divided] } else { numbers[divided] / by };
        }
        Self(numbers)
    }

    pub(crate) fn position(name: &str) -> Option<usize> {
        Self::NAMES.iter().position(|&known| known == name)
    }

    #[inline]
    pub(crate) fn known(&self) -> InputSet {
        let bits = self.0.iter().enumerate().map(|(i, number)| u64::from(!number.is_nan()) << i);
        InputSet(bits.fold(0, |all, bit| all | bit))
    }
}

impl InputSet {
    pub(crate) const ALL: Self = Self(u64::MAX >> (64 - NUM_INPUTS));

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn insert(&mut self, input: usize) {
        self.0 |= 1 << input;
    }

    pub(crate) fn contains(self, input: usize) -> bool {
        self.0 >> input & 1 != 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn includes(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Positions in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..NUM_INPUTS).filter(move |&input| self.contains(input))
    }

    /// The position of a feature of the set. The error names `place`, the part of a file that asks for it.
    pub(crate) fn position(self, name: &str, place: &str) -> Result<usize, String> {
        let position = Inputs::position(name).filter(|&input| self.contains(input));
        position.ok_or_else(|| format!("{place}: asks for `{name}`, which is none of the model's features"))
    }

    pub(crate) fn names(self) -> Vec<String> {
        self.iter().map(|input| Inputs::NAMES[input].to_owned()).collect()
    }
}

impl FromIterator<usize> for InputSet {
    fn from_iter<I: IntoIterator<Item = usize>>(inputs: I) -> Self {
        let mut set = Self::default();
        inputs.into_iter().for_each(|input| set.insert(input));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_does_not_tell_is_unknown() {
        let of_lengths = Features::from_lengths(&[3, 9], 100);
        let lengths_only = Inputs::of(&of_lengths, None);
        let known: Vec<usize> = lengths_only.known().iter().collect();
        assert_eq!(known[..Features::COUNT], (0..Features::COUNT).collect::<Vec<_>>());
        assert_eq!(lengths_only.known().names()[Features::COUNT..], ["second_ratio", "mean_postings"]);
        assert_eq!(lengths_only.0[Inputs::position("mean_postings").unwrap()], 6.0);
        let published_only = Features { expected_matches: f64::NAN, ..of_lengths };
        assert_eq!(Inputs::of(&published_only, None).known(), InputSet::default());
        let mut of_index = IndexFeatures { lookups: f64::NAN, ..IndexFeatures::default() };
        let known = Inputs::of(&of_lengths, Some(&of_index)).known();
        for unknown in ["lookups", "lookup_share"] {
            assert!(!known.contains(Inputs::position(unknown).unwrap()));
        }
        assert!(!known.includes(InputSet::ALL));
        of_index.lookups = 0.0;
        assert_eq!(Inputs::of(&of_lengths, Some(&of_index)).known(), InputSet::ALL);
    }
}
