//! The names of the kinds of model.

use std::fmt;

/// A kind of cost model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelKind {
    /// A regression tree.
    Cart,
    /// Rules with linear models on the published features.
    M5,
    /// A random forest.
    Forest,
    /// A sum of symmetric trees, each correcting those before it.
    #[default]
    Boosting,
    /// Prices of what a query does.
    Work,
}

impl ModelKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cart, Self::M5, Self::Forest, Self::Boosting, Self::Work];

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cart => "cart",
            Self::M5 => "m5",
            Self::Forest => "forest",
            Self::Boosting => "boosting",
            Self::Work => "work",
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
