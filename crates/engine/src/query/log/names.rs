//! Names of columns and fields of query logs, in [`normal`] form and separated by blanks.

pub(super) use tandem_base::files::normal;

/// Names of the query text, the surest first.
pub(super) const QUERIES: &str = "query queries querytext querystring querytxt rawquery searchquery searchterm searchterms searchphrase \
    search question keywords keyword phrase utterance q text title topictitle contents";
pub(super) const IDS: &str = "id qid queryid queryno querynumber topicid topic number num searchid anonid sessionid";
pub(super) const OTHERS: &str = "querytime time timestamp date datetime itemrank rank clickurl url user userid uid docid did d u pid \
    passageid corpusid documentid passage document doc score relevance label answer answers clicks count \
    frequency mode terms arrivalus arrivals postings cpuus iter";

/// Whether a list has this name.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

pub(super) fn is_known(name: &str) -> bool {
    let name = normal(name);
    [QUERIES, IDS, OTHERS].iter().any(|names| has(names, &name))
}
