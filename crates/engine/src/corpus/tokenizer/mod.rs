//! Cutting text into terms, equally for documents and queries.
//!
//! An index stores the [`Tokenizer::name`] that it was built with, which is complete: `unicode+stem=english`, or
//! `ascii+stop=of the`. [`Tokenizer::from_name`] makes an equal tokenizer for queries.
//!
//! ```text
//! "The Cats' tails"  ──words──▶  the cats tails  ──stop words──▶  cats tails  ──stem──▶  cat tail
//! ```

mod ascii;
mod porter;
mod words;

use std::borrow::Cow;
use std::fmt;

use rust_stemmers::{Algorithm, Stemmer};
use tandem_base::base::named::named_enum;

use super::stop_words::ENGLISH;
pub use words::Cutter;

named_enum! {
    /// The definition of a word, with its name in options and in the names of tokenizers.
    pub enum Words {
        Unicode = "unicode": "Words by the Unicode rules (UAX 29), lower-cased; only letters and digits are kept",
        Ascii = "ascii": "Longest runs of a-z and 0-9 after lower-casing; everything else separates",
    }
}

enum StopWords {
    /// A short built-in list.
    English,
    /// These words, in byte order.
    List(Vec<String>),
}

/// The languages with a stemmer, with their names in options.
const STEM_LANGUAGES: [(&str, Algorithm); 18] = [
    ("arabic", Algorithm::Arabic),
    ("danish", Algorithm::Danish),
    ("dutch", Algorithm::Dutch),
    ("english", Algorithm::English),
    ("finnish", Algorithm::Finnish),
    ("french", Algorithm::French),
    ("german", Algorithm::German),
    ("greek", Algorithm::Greek),
    ("hungarian", Algorithm::Hungarian),
    ("italian", Algorithm::Italian),
    ("norwegian", Algorithm::Norwegian),
    ("portuguese", Algorithm::Portuguese),
    ("romanian", Algorithm::Romanian),
    ("russian", Algorithm::Russian),
    ("spanish", Algorithm::Spanish),
    ("swedish", Algorithm::Swedish),
    ("tamil", Algorithm::Tamil),
    ("turkish", Algorithm::Turkish),
];

/// The name of Porter's stemmer for `with_stem`.
const PORTER: &str = "porter";

enum Stems {
    /// English words by Porter's algorithm of 1980.
    Porter,
    /// Words of a language by its Snowball algorithm.
    Snowball(&'static str, Stemmer),
}

/// Cuts text into terms. Any number of threads may share it.
pub struct Tokenizer {
    words: Words,
    stem: Option<Stems>,
    stop_words: Option<StopWords>,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokenizer").field(&self.name()).finish()
    }
}

impl Tokenizer {
    /// Makes a tokenizer that neither stems nor drops words.
    pub fn new(words: Words) -> Self {
        Self { words, stem: None, stop_words: None }
    }

    /// Stems words of `language`: `english`, `german` and others, or `porter` for English words by the original
    /// algorithm. Fails if there is no such stemmer: the message lists the existing ones.
    pub fn with_stem(mut self, language: &str) -> Result<Self, String> {
        if language == PORTER {
            self.stem = Some(Stems::Porter);
            return Ok(self);
        }
        let Some(&(name, algorithm)) = STEM_LANGUAGES.iter().find(|(name, _)| *name == language) else {
            let names: Vec<&str> = STEM_LANGUAGES.iter().map(|(name, _)| *name).chain([PORTER]).collect();
            return Err(format!("no stemmer for {language:?}, expected one of {}", names.join(", ")));
        };
        self.stem = Some(Stems::Snowball(name, Stemmer::create(algorithm)));
        Ok(self)
    }

    /// Drops the built-in English stop words.
    #[must_use]
    pub fn with_english_stop_words(mut self) -> Self {
        self.stop_words = Some(StopWords::English);
        self
    }

    /// Drops the words of `text`, which is cut like documents.
    #[must_use]
    pub fn with_stop_words(mut self, text: &str) -> Self {
        let mut list = Self::new(self.words).terms(text);
        list.sort_unstable();
        list.dedup();
        self.stop_words = Some(StopWords::List(list));
        self
    }

    /// Makes the tokenizer with this [`name`](Self::name). Fails if the name is not that of a tokenizer of this
    /// program.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let mut parts = name.split('+');
        let mut tokenizer = match parts.next() {
            Some("unicode") => Self::new(Words::Unicode),
            Some("ascii") => Self::new(Words::Ascii),
            _ => return Err(format!("tokenizer {name:?}, expected `unicode` or `ascii`, with options")),
        };
        for part in parts {
            tokenizer = match part.split_once('=') {
                Some(("stem", language)) => tokenizer.with_stem(language)?,
                Some(("stop", "english")) => tokenizer.with_english_stop_words(),
                // The list begins with a space, so that it may consist of the word "english" alone.
                Some(("stop", list)) => tokenizer.with_stop_words(list),
                _ => return Err(format!("tokenizer {name:?} has the unknown option {part:?}")),
            };
        }
        Ok(tokenizer)
    }

    /// All settings in one line of text, which an index stores.
    pub fn name(&self) -> String {
        let mut name = self.words.name().to_owned();
        if let Some(stems) = &self.stem {
            name.push_str("+stem=");
            name.push_str(match stems {
                Stems::Porter => PORTER,
                Stems::Snowball(language, _) => language,
            });
        }
        match &self.stop_words {
            None => {}
            Some(StopWords::English) => name.push_str("+stop=english"),
            Some(StopWords::List(words)) => {
                name.push_str("+stop=");
                words.iter().for_each(|word| {
                    name.push(' ');
                    name.push_str(word);
                });
            }
        }
        name
    }

    /// Calls `visit` for each word of `text`, in order: lower-cased, as UTF-8. [`term_of`](Self::term_of) makes terms of
    /// words.
    pub fn for_each_word(&self, text: &str, cutter: &mut Cutter, visit: impl FnMut(&[u8])) {
        words::for_each_word(self.words, text, cutter, visit);
    }

    /// The term of `word`; `None` for a stop word.
    pub fn term_of<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        match &self.stem {
            _ if self.is_stop_word(word) => None,
            None => Some(Cow::Borrowed(word)),
            Some(Stems::Porter) => Some(Cow::Owned(porter::stem(word))),
            Some(Stems::Snowball(_, stemmer)) => Some(stemmer.stem(word)),
        }
    }

    /// Whether every word is a term, without stop words or stems.
    pub fn keeps_words(&self) -> bool {
        self.stem.is_none() && self.stop_words.is_none()
    }

    /// Calls `visit` for each term of `text`, in order.
    pub fn for_each_term(&self, text: &str, mut visit: impl FnMut(&str)) {
        self.for_each_word(text, &mut Cutter::default(), |word| {
            let word = String::from_utf8_lossy(word);
            if let Some(term) = self.term_of(&word) {
                visit(&term);
            }
        });
    }

    /// The terms of `text`, in order.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.for_each_term(text, |term| terms.push(term.to_owned()));
        terms
    }

    fn is_stop_word(&self, word: &str) -> bool {
        match &self.stop_words {
            None => false,
            Some(StopWords::English) => ENGLISH.binary_search(&word).is_ok(),
            Some(StopWords::List(words)) => words.binary_search_by(|w| w.as_str().cmp(word)).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_words_are_lower_cased_runs_of_letters_and_digits() {
        let ascii = Tokenizer::new(Words::Ascii);
        assert_eq!(
            ascii.terms("The U.S.A's 3.14 Café-Zoë_x"),
            "the u s a s 3 14 caf zo x".split(' ').collect::<Vec<_>>()
        );
        // The Kelvin sign lower-cases to k, a dotted capital I to i and a combining dot.
        assert_eq!(ascii.terms("\u{212a}m İx"), ["km", "i", "x"]);
        assert!(ascii.terms(" .—  ").is_empty());
    }

    #[test]
    fn unicode_words_keep_letters_of_all_scripts() {
        let unicode = Tokenizer::new(Words::Unicode);
        assert_eq!(
            unicode.terms("Zoë’s CAFÉ, don't 3.14 Straße привет"),
            ["zoës", "café", "dont", "314", "straße", "привет"]
        );
    }

    #[test]
    fn a_tokenizer_is_made_again_from_its_name() {
        for tokenizer in [
            Tokenizer::new(Words::Unicode),
            Tokenizer::new(Words::Ascii).with_stem("english").unwrap().with_english_stop_words(),
            Tokenizer::new(Words::Unicode).with_stem("porter").unwrap(),
            Tokenizer::new(Words::Unicode).with_stop_words("Über the\nOF"),
            Tokenizer::new(Words::Unicode).with_stop_words("english"),
            Tokenizer::new(Words::Unicode).with_stop_words(""),
        ] {
            let again = Tokenizer::from_name(&tokenizer.name()).unwrap();
            assert_eq!(again.name(), tokenizer.name());
            let text = "The Running of über the english cats";
            assert_eq!(again.terms(text), tokenizer.terms(text));
        }
        for name in ["", "latin", "ascii+stem=klingon", "ascii+x", "unicode+fold=1"] {
            assert!(Tokenizer::from_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn stop_words_go_before_stems_are_taken() {
        let tokenizer = Tokenizer::new(Words::Unicode).with_stem("english").unwrap().with_english_stop_words();
        assert_eq!(tokenizer.terms("The cats were running into this"), ["cat", "were", "run"]);
        assert!(ENGLISH.is_sorted());
    }
}
