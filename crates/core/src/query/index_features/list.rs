//! The one list of the index's features: columns of workload files, names in models and numbers of a query are made of it.

/// Gives `$callback!` the features' names with their meanings, in the order of columns and vectors. To add one, write its
/// line here, at the end, and give it its value in `scores.rs` or `shared.rs`; a workload that lacks its column stays
/// readable.
macro_rules! with_index_features {
    ($callback:ident) => {
        $callback! {
            /// Upper bound of any document's score: the sum of the terms' bounds.
            score_bound,
            /// A score that k documents are known to reach, by one term alone; 0 if none is known.
            seed_score,
            /// Terms, rarest first, up to the last without which the others' bounds don't exceed the seed.
            essential_terms,
            /// Postings in their lists.
            essential_postings,
            /// About how many postings are in blocks whose bounds, with the other terms', exceed the seed.
            live_postings,
            /// About how often a document that may exceed the seed, by its block's bound and those of the terms after it,
            /// would be looked up in their lists.
            lookups,
            /// Lists with a direct form.
            dense_terms,
            /// Postings in them.
            dense_postings,
            /// About how many of the shortest list's documents are in all lists with a direct form.
            sieved,
            /// About how many blocks of the other lists these documents fall into.
            sieved_blocks,
            /// Documents that OR is expected to find if terms were independent.
            expected_union,
            /// The bound of the shortest list's term.
            first_bound,
            /// That of the third shortest; 0 for two terms.
            third_bound,
            /// Postings in the third shortest list; 0 for two terms.
            third_shortest,
            /// The second best of the scores that k documents reach by one term; 0 if unknown.
            second_seed,
            /// About how many documents are in all lists: those of a sample, as the sketch has them.
            expected_found,
            /// Blocks of the other lists that documents of the shortest would be sought in, list by list, by the sample.
            sought_blocks,
        }
    };
}
pub(crate) use with_index_features;
