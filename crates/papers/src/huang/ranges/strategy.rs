//! The four ways to go through a range.

/// How a query is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strategy {
    /// Documents with all terms.
    And,
    /// Documents with any term, every posting scored.
    Or,
    /// As `Or`, passing over documents that the lists' best scores exclude.
    Wand,
    /// As `Wand`, excluding more by the blocks' best scores.
    Bmw,
}

impl Strategy {
    /// All, in the paper's order.
    pub(crate) const ALL: [Self; 4] = [Self::And, Self::Or, Self::Wand, Self::Bmw];

    /// The paper's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Wand => "WAND",
            Self::Bmw => "BMW",
        }
    }
}
