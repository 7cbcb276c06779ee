//! Names of the disjunctive algorithms.

use tandem_base::base::named::named_enum;

named_enum! {
    /// An algorithm that finds the k best documents with any term. All give the same documents and scores.
    #[derive(Default)]
    pub enum Algorithm {
        #[default]
        Auto = "auto": "The algorithm that is predicted to be the fastest for the query",
        Exhaustive = "exhaustive": "Every posting is scored; the reference",
        Maxscore = "maxscore": "MaxScore: postings of terms with low score bounds are only looked up",
    }
}
