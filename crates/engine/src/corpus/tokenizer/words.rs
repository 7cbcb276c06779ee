//! Cutting text into words, most of it with [vectors](super::ascii).
//!
//! Nearly all text is ASCII. Other characters need the slower tables of the Unicode standard, which are used only from
//! the blank before them to the blank after:
//!
//! ```text
//! The first café| was opened in Paris around 1672.
//! └─ASCII──┘└───┘└────────────ASCII──────────────┘
//! ```
//!
//! A word never crosses a blank, and the words between two blanks depend on no other text.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use unicode_segmentation::UnicodeSegmentation;

use super::{Words, ascii};

/// Memory for cutting, one for each thread.
#[derive(Debug, Default)]
pub struct Cutter {
    lower: Vec<u8>,
    word: String,
}

/// Calls `visit` for each word of `text`, lower-cased, in order.
pub(super) fn for_each_word(words: Words, text: &str, cutter: &mut Cutter, mut visit: impl FnMut(&[u8])) {
    let Cutter { lower, word } = cutter;
    match words {
        Words::Ascii if has_letters_that_become_ascii(text) => for_each_ascii_slowly(text, word, visit),
        Words::Ascii => ascii::for_each_run(text.as_bytes(), lower, visit),
        Words::Unicode => {
            let mut rest = text;
            while let Some((start, end)) = next_stretch(rest) {
                ascii::for_each_word(&rest.as_bytes()[..start], lower, &mut visit);
                for_each_unicode(&rest[start..end], word, &mut visit);
                rest = &rest[end..];
            }
            ascii::for_each_word(rest.as_bytes(), lower, visit);
        }
    }
}

/// The first stretch between blanks that is not all ASCII.
fn next_stretch(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let bad = first_non_ascii(bytes)?;
    let start = bytes[..bad].iter().rposition(is_blank).unwrap_or(0);
    let end = bytes[bad..].iter().position(is_blank).map_or(bytes.len(), |len| bad + len);
    Some((start, end))
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// The position of the first byte that is not ASCII.
fn first_non_ascii(bytes: &[u8]) -> Option<usize> {
    const STRIDE: usize = 64;
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    let clean = strides.iter().take_while(|stride| stride.is_ascii()).count() * STRIDE;
    bytes[clean..].iter().position(|byte| !byte.is_ascii()).map(|place| clean + place)
}

/// Words by the Unicode rules. Letters spelt with several characters, as some systems write them, are composed first
/// (NFC), so that all spellings match.
fn for_each_unicode(text: &str, word: &mut String, mut visit: impl FnMut(&[u8])) {
    let composed: String;
    let text = if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        text
    } else {
        composed = text.nfc().collect();
        &composed
    };
    for piece in text.unicode_words() {
        word.clear();
        if piece.contains('Σ') {
            // The form of a small sigma depends on its neighbours.
            word.extend(piece.to_lowercase().chars().filter(|c| c.is_alphanumeric()));
        } else {
            word.extend(piece.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()));
        }
        if !word.is_empty() {
            visit(word.as_bytes());
        }
    }
}

/// Whether lower-casing turns a non-ASCII letter into ASCII: the Kelvin sign becomes k, a dotted capital I an i and a
/// combining dot. There are no other such letters.
fn has_letters_that_become_ascii(text: &str) -> bool {
    first_non_ascii(text.as_bytes())
        .is_some_and(|first| text.is_char_boundary(first) && text[first..].contains(['\u{130}', '\u{212a}']))
}

/// Runs of a-z and 0-9 after lower-casing, character by character.
fn for_each_ascii_slowly(text: &str, word: &mut String, mut visit: impl FnMut(&[u8])) {
    word.clear();
    for c in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
        } else if !word.is_empty() {
            visit(word.as_bytes());
            word.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(words: Words, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let visit = |word: &[u8]| found.push(String::from_utf8(word.to_vec()).unwrap());
        for_each_word(words, text, &mut Cutter::default(), visit);
        found
    }

    /// The words by definition, one at a time.
    fn defined(words: Words, text: &str) -> Vec<String> {
        let keep = |text: &str, is: fn(char) -> bool| text.chars().filter(|c| is(*c)).collect::<String>();
        let words: Vec<String> = match words {
            Words::Ascii => {
                text.to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect()
            }
            Words::Unicode => {
                let text: String = text.nfc().collect();
                text.unicode_words().map(|word| keep(&word.to_lowercase(), char::is_alphanumeric)).collect()
            }
        };
        words.into_iter().filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn short_ascii_texts_are_cut_as_defined() {
        const KINDS: &[u8] = b"aZ0_'.:,;\" -\n";
        for len in 0..=4_u32 {
            for number in 0..KINDS.len().pow(len) {
                let text: String =
                    (0..len).map(|place| char::from(KINDS[number / KINDS.len().pow(place) % KINDS.len()])).collect();
                for words in [Words::Ascii, Words::Unicode] {
                    assert_eq!(cut(words, &text), defined(words, &text), "{text:?}");
                    // The text is tried once more across the border of two groups.
                    let later = format!("{}{text}", " ".repeat(62));
                    assert_eq!(cut(words, &later), defined(words, &text), "{later:?}");
                }
            }
        }
    }

    #[test]
    fn two_letters_become_ascii_and_no_others() {
        let become_ascii: Vec<char> =
            ('\u{80}'..=char::MAX).filter(|c| c.to_lowercase().any(|lower| lower.is_ascii_alphanumeric())).collect();
        assert_eq!(become_ascii, ['\u{130}', '\u{212a}']);
    }

    #[test]
    fn composed_and_decomposed_spellings_meet() {
        let decomposed = "Cafe\u{301} Zoe\u{308} n\u{303}andu\u{301} \u{1100}\u{1161}";
        let composed: String = decomposed.nfc().collect();
        assert_ne!(decomposed, composed);
        assert_eq!(cut(Words::Unicode, decomposed), cut(Words::Unicode, &composed));
        assert_eq!(cut(Words::Unicode, decomposed), ["café", "zoë", "ñandú", "가"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn texts_of_all_scripts_are_cut_as_defined(text in "([ a-cA-C0-2_'.:,;\"\n-]|[äÖßİ\u{212a}Σσеж\u{301}\u{93e}\u{e01}一\u{1f1e6}\u{200d}\u{ad}’–🙂א]|\\PC){0,90}") {
            for words in [Words::Ascii, Words::Unicode] {
                prop_assert_eq!(cut(words, &text), defined(words, &text));
            }
        }
    }
}
