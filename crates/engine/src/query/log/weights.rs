//! Weighted terms, as learned sparse models write queries: `tides^2.5 ocean^0.7`, or in JSON `{"tides": 2.5, "ocean": 0.7}`.
//!
//! A query is weighted if each of its words ends in `^` and a number above 0. Executors count terms, so weights become whole
//! numbers: weights of a query that are all whole and at most [`MOST`] stay as they are. Others are multiplied, so that the
//! largest one becomes [`MOST`], and rounded, halves up, to at least 1. All executors add the same whole numbers.

use serde_json::{Map, Value};

use super::names::normal;
use crate::index::Index;

/// Largest weight of a term.
const MOST: f64 = 255.0;
/// Names of objects of weighted terms: Anserini's, OpenSearch's and Elasticsearch's.
const VECTORS: [&str; 3] = ["vector", "querytokens", "queryvector"];
/// A name of weighted terms that requests also use for other things, so it counts without any text only.
const WEIGHTS: &str = "weights";

/// The words of a weighted query with their weights; `None` if `text` is not one.
pub(super) fn weighted(text: &str) -> Option<Vec<(&str, u32)>> {
    let word = |word| {
        let (term, weight) = str::rsplit_once(word, '^')?;
        let weight = weight.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0)?;
        (!term.is_empty()).then_some((term, weight))
    };
    let words: Vec<(&str, f64)> = text.split_whitespace().map(word).collect::<Option<_>>()?;
    let largest = words.iter().map(|&(_, weight)| weight).fold(0.0, f64::max);
    let are_kept = largest <= MOST && words.iter().all(|&(_, weight)| weight.fract() == 0.0);
    let whole = |weight: f64| if are_kept { weight } else { (weight / largest * MOST).round().max(1.0) };
    let words: Vec<_> = words.into_iter().map(|(term, weight)| (term, whole(weight) as u32)).collect();
    (!words.is_empty()).then_some(words)
}

/// Whether words end in `^` and a number although `text` is no weighted query, so that the numbers are words.
pub fn has_unused_weights(text: &str) -> bool {
    let is_weight = |word: &str| word.rsplit_once('^').is_some_and(|(_, weight)| weight.parse::<f64>().is_ok());
    weighted(text).is_none() && text.split_whitespace().any(is_weight)
}

/// The terms of a query's text with their counts: weighted words as they are if the index has them, or else as `terms_of` cuts
/// them, and the words of other queries once each.
pub fn counted_terms(text: &str, index: &Index, terms_of: impl Fn(&str) -> Vec<String>) -> Vec<(String, u32)> {
    let cut = |text: &str, count| terms_of(text).into_iter().map(move |term| (term, count));
    let Some(words) = weighted(text) else { return cut(text, 1).collect() };
    let mut terms = Vec::new();
    for (word, weight) in words {
        match index.term(word) {
            Some(_) => terms.push((word.to_owned(), weight)),
            None => terms.extend(cut(word, weight)),
        }
    }
    terms
}

/// The weighted query in a JSON object, as text, or why its weights can't be used.
pub(super) fn of_json(map: &Map<String, Value>, has_text: bool) -> Option<Result<String, String>> {
    let vector = find(map).filter(|vector| !has_text || (!vector.is_empty() && vector.values().all(Value::is_number)));
    let vector = vector.or_else(|| map.get(WEIGHTS).and_then(Value::as_object).filter(|_| !has_text))?;
    if vector.is_empty() {
        return Some(Err(String::from("no weights, expected at least one term with its weight")));
    }
    let words = vector.iter().map(|(term, weight)| match weight.as_f64() {
        _ if term.is_empty() || term.contains(char::is_whitespace) => {
            Err(format!("a weight for {term:?}, expected one for a single term"))
        }
        Some(number) if number > 0.0 => Ok(format!("{term}^{number}")),
        _ => Err(format!("the weight of {term:?} is {weight}, expected a number above 0")),
    });
    Some(words.collect::<Result<Vec<_>, _>>().map(|words| words.join(" ")))
}

/// The weighted terms of an object or of a request below it.
fn find(map: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let of_field = |(name, value): (&String, &'_ Value)| VECTORS.contains(&&*normal(name)) && value.is_object();
    let own = map.iter().find(|&field| of_field(field)).and_then(|(_, value)| value.as_object());
    own.or_else(|| {
        let requests = map.iter().filter(|(name, _)| !["filter", "aggs", "rescore"].contains(&&***name));
        requests.filter_map(|(_, value)| value.as_object()).find_map(find)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_stay_and_others_become_whole() {
        assert_eq!(weighted("tides^3 ocean^255"), Some(vec![("tides", 3), ("ocean", 255)]));
        assert_eq!(weighted("a^b^2.5 ##ing^0.5 low^1e-9"), Some(vec![("a^b", 255), ("##ing", 51), ("low", 1)]));
        assert_eq!(weighted("tides^510 ocean^1"), Some(vec![("tides", 255), ("ocean", 1)]));
        for text in ["", "ocean tides", "ocean^2 tides", "ocean^", "^2", "ocean^0", "ocean^-1", "ocean^inf", "x^y"] {
            assert_eq!(weighted(text), None, "{text}");
            let has_number = ["ocean^2 tides", "^2", "ocean^0", "ocean^-1", "ocean^inf"].contains(&text);
            assert_eq!(has_unused_weights(text), has_number, "{text}");
        }
    }

    #[test]
    fn json_has_weights_in_vectors_and_requests() {
        let of =
            |text: &str, has_text| of_json(serde_json::from_str::<Value>(text).unwrap().as_object().unwrap(), has_text);
        for (text, has_text, expected) in [
            (r#"{"id": 7, "contents": "x", "vector": {"ocean": 12, "tides": 0.5}}"#, true, Some("ocean^12 tides^0.5")),
            (
                r#"{"query": {"neural_sparse": {"field": {"query_tokens": {"ocean": 2.5}, "max_token_score": 2}}}}"#,
                false,
                Some("ocean^2.5"),
            ),
            (r#"{"query": {"sparse_vector": {"field": "f", "query_vector": {"ocean": 1}}}}"#, false, Some("ocean^1")),
            (r#"{"weights": {"ocean": 1}}"#, false, Some("ocean^1")),
            (r#"{"query": "ocean", "weights": {"title": 2}}"#, true, None),
            (r#"{"query": "ocean", "vector": [0.1, 0.2]}"#, true, None),
            (r#"{"query": "ocean", "vector": {"x": [1]}}"#, true, None),
            (r#"{"query": "ocean", "vector": {}}"#, true, None),
        ] {
            assert_eq!(of(text, has_text).map(Result::unwrap).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            (r#"{"vector": {"ocean": -1}}"#, "the weight of \"ocean\" is -1, expected a number above 0"),
            (r#"{"vector": {"ocean": "2"}}"#, "the weight of \"ocean\" is \"2\", expected a number above 0"),
            (r#"{"vector": {}}"#, "no weights, expected at least one term with its weight"),
            (r#"{"vector": {"ocean tides": 1}}"#, "a weight for \"ocean tides\", expected one for a single term"),
        ] {
            assert_eq!(of(text, false).unwrap().unwrap_err(), expected);
        }
    }
}
