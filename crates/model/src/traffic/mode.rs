//! Combinations of a query's terms.

use serde::{Deserialize, Serialize};

/// The documents that match, before the best k are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Documents with all terms (conjunctive).
    And,
    /// Documents with any term (disjunctive).
    Or,
    /// Documents with all terms, or with any term if fewer than k have all.
    AndOr,
}

impl Mode {
    /// All modes, in the order used in files and tables.
    pub const ALL: [Self; 3] = [Self::And, Self::Or, Self::AndOr];

    /// Its position in [`Mode::ALL`], for arrays by mode.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// `and`, `or` or `and-or`, as in files and options.
    #[must_use]
    #[inline]
    pub fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Or => "or",
            Self::AndOr => "and-or",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;

    #[test]
    fn a_mode_is_at_its_index() {
        assert_eq!(Mode::ALL.map(|mode| Mode::ALL[mode.index()]), Mode::ALL);
    }
}
