//! Combinations of a query's terms.

use serde::{Deserialize, Serialize};

use crate::base::named::named_enum;

named_enum! {
    /// The documents that match, before the best k are taken.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Mode {
        And = "and": "Documents with all terms (conjunctive)",
        Or = "or": "Documents with any term (disjunctive)",
        AndOr = "and-or": "`and`; if it finds fewer than k documents, `or`",
    }
}

impl Mode {
    /// Its position in [`Mode::ALL`], for arrays by mode.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
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
