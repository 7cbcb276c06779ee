//! The names of the disjunctive algorithms.

/// How the k best documents with any of the query's terms are found. All give the same documents and scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Whichever should be the quickest for the query.
    #[default]
    Auto,
    /// Every posting is scored: the reference.
    Exhaustive,
    /// WAND: document at a time, skipping by the terms' bounds.
    Wand,
    /// Block-Max WAND: skipping by the bounds of blocks, too.
    Bmw,
    /// MaxScore: terms that cannot lift a document into the result by themselves are only looked up.
    Maxscore,
}

impl Algorithm {
    /// All algorithms, in the order of tables.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Exhaustive, Self::Wand, Self::Bmw, Self::Maxscore];

    /// Its name in options and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exhaustive => "exhaustive",
            Self::Wand => "wand",
            Self::Bmw => "bmw",
            Self::Maxscore => "maxscore",
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
