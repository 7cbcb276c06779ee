//! The form of models in files: one field by the kind's name, of which a file holds exactly one.

use serde::{Deserialize, Serialize};

use super::boosting::StoredBoosting;
use super::m5::StoredRules;
use super::tree::StoredTree;
use super::work::StoredWork;
use super::{Fitted, ModelKind};
use crate::cost::inputs::InputSet;

/// The most trees of a forest in a file.
const MOST_TREES: usize = 1000;

/// A model as a file holds it: one of the fields is given.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::cost) struct StoredFitted {
    /// A regression tree: at first the only kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cost) tree: Option<StoredTree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cost) forest: Option<Vec<StoredTree>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cost) boosting: Option<StoredBoosting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cost) m5: Option<StoredRules>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cost) work: Option<StoredWork>,
}

impl StoredFitted {
    /// Checks the model, which may ask for `features` only. `place` names it in errors.
    ///
    /// # Errors
    /// The place of what is wrong, and what is wrong with it.
    pub(in crate::cost) fn check(&self, features: InputSet, place: &str) -> Result<Fitted, String> {
        match self {
            Self { tree: Some(tree), forest: None, boosting: None, m5: None, work: None } => {
                Ok(Fitted::Cart(tree.check(features, &format!("{place}.tree"), 0)?))
            }
            Self { tree: None, forest: Some(trees), boosting: None, m5: None, work: None } => {
                if trees.is_empty() || trees.len() > MOST_TREES {
                    return Err(format!("{place}.forest: {} trees, expected 1 to {MOST_TREES}", trees.len()));
                }
                let check = |(n, tree): (usize, &StoredTree)| tree.check(features, &format!("{place}.forest[{n}]"), 0);
                Ok(Fitted::Forest(trees.iter().enumerate().map(check).collect::<Result<_, _>>()?))
            }
            Self { tree: None, forest: None, boosting: Some(trees), m5: None, work: None } => {
                Ok(Fitted::Boosting(trees.check(features, &format!("{place}.boosting"))?))
            }
            Self { tree: None, forest: None, boosting: None, m5: Some(rules), work: None } => {
                Ok(Fitted::M5(rules.check(features, &format!("{place}.m5"))?))
            }
            Self { tree: None, forest: None, boosting: None, m5: None, work: Some(work) } => {
                Ok(Fitted::Work(work.check(features, &format!("{place}.work"))?))
            }
            _ => Err(format!("{place}: expected one of `tree`, `forest`, `boosting`, `m5` and `work`")),
        }
    }
}

impl From<&Fitted> for StoredFitted {
    fn from(fitted: &Fitted) -> Self {
        let none = Self::default();
        match fitted {
            Fitted::Cart(tree) => Self { tree: Some(tree.into()), ..none },
            Fitted::Forest(trees) => Self { forest: Some(trees.iter().map(StoredTree::from).collect()), ..none },
            Fitted::Boosting(trees) => Self { boosting: Some(trees.into()), ..none },
            Fitted::M5(rules) => Self { m5: Some(rules.into()), ..none },
            Fitted::Work(work) => Self { work: Some(work.into()), ..none },
        }
    }
}

impl ModelKind {
    /// What the numbers of such a model are.
    pub(in crate::cost) const fn target(self) -> &'static str {
        match self {
            Self::Cart | Self::Forest | Self::Boosting => "ln(us)",
            Self::M5 | Self::Work => "us",
        }
    }
}
