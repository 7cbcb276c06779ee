//! Names of the disjunctive algorithms.

/// An algorithm that finds the k best documents with any term. All give the same documents and scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The algorithm that should be quickest for the query.
    #[default]
    Auto,
    /// Scores every posting: the reference.
    Exhaustive,
    /// MaxScore: only looks up terms that cannot lift a document into the result by themselves.
    Maxscore,
}

impl Algorithm {
    /// All algorithms, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Exhaustive, Self::Maxscore];

    /// The name in options and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exhaustive => "exhaustive",
            Self::Maxscore => "maxscore",
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
