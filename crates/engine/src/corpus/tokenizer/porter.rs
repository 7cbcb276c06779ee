//! The Porter stemmer of 1980, as published; the stemmer called `english` today is its successor.
//!
//! A word is a row of consonants and vowels, C (VC)^m V. Its measure m gives the size of the stem that remains when an
//! ending is removed:
//!
//! ```text
//! relational ──ational → ate, m > 0──▶ relate ──e, m > 1──▶ relat
//! rational   ──ational → ate: m of "r" is 0, so it stays──▶ ... ──al, m > 1──▶ ration
//! ```
//!
//! Source: Porter, "An algorithm for suffix stripping", Program 14(3), 1980.

type Rule = (&'static [u8], &'static [u8]);

const STEP_2: [Rule; 20] = [
    (b"ational", b"ate"),
    (b"tional", b"tion"),
    (b"enci", b"ence"),
    (b"anci", b"ance"),
    (b"izer", b"ize"),
    (b"abli", b"able"),
    (b"alli", b"al"),
    (b"entli", b"ent"),
    (b"eli", b"e"),
    (b"ousli", b"ous"),
    (b"ization", b"ize"),
    (b"ation", b"ate"),
    (b"ator", b"ate"),
    (b"alism", b"al"),
    (b"iveness", b"ive"),
    (b"fulness", b"ful"),
    (b"ousness", b"ous"),
    (b"aliti", b"al"),
    (b"iviti", b"ive"),
    (b"biliti", b"ble"),
];

const STEP_3: [Rule; 7] = [
    (b"icate", b"ic"),
    (b"ative", b""),
    (b"alize", b"al"),
    (b"iciti", b"ic"),
    (b"ical", b"ic"),
    (b"ful", b""),
    (b"ness", b""),
];

const STEP_4: [&[u8]; 19] = [
    b"al", b"ance", b"ence", b"er", b"ic", b"able", b"ible", b"ant", b"ement", b"ment", b"ent", b"ion", b"ou", b"ism",
    b"ate", b"iti", b"ous", b"ive", b"ize",
];

/// The stem of a lower-cased word. Words that are not ASCII, and words of one or two letters, stay unchanged.
pub(super) fn stem(word: &str) -> String {
    let mut bytes = word.as_bytes().to_vec();
    if bytes.len() > 2 && bytes.is_ascii() {
        step_1a(&mut bytes);
        step_1b(&mut bytes);
        if bytes.ends_with(b"y") && has_vowel(&bytes[..bytes.len() - 1]) {
            replace(&mut bytes, 1, b"i");
        }
        by_rules(&mut bytes, &STEP_2);
        by_rules(&mut bytes, &STEP_3);
        step_4(&mut bytes);
        step_5(&mut bytes);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| word.to_owned())
}

/// Replaces plural endings.
fn step_1a(word: &mut Vec<u8>) {
    if word.ends_with(b"sses") || word.ends_with(b"ies") {
        replace(word, 2, b"");
    } else if word.ends_with(b"s") && !word.ends_with(b"ss") {
        replace(word, 1, b"");
    }
}

/// Replaces endings of past and progressive forms.
fn step_1b(word: &mut Vec<u8>) {
    if word.ends_with(b"eed") {
        if measure(&word[..word.len() - 3]) > 0 {
            replace(word, 1, b"");
        }
        return;
    }
    let Some(ending) = [&b"ed"[..], b"ing"].into_iter().find(|ending| word.ends_with(ending)) else { return };
    if !has_vowel(&word[..word.len() - ending.len()]) {
        return;
    }
    replace(word, ending.len(), b"");
    if [&b"at"[..], b"bl", b"iz"].iter().any(|end| word.ends_with(end)) {
        word.push(b'e');
    } else if ends_in_double_consonant(word) && !matches!(word.last(), Some(b'l' | b's' | b'z')) {
        word.pop();
    } else if measure(word) == 1 && ends_in_short_syllable(word) {
        word.push(b'e');
    }
}

/// Replaces the longest ending that has a rule, if the rest has a measure above 0.
fn by_rules(word: &mut Vec<u8>, rules: &[Rule]) {
    let longest = rules.iter().filter(|(ending, _)| word.ends_with(ending)).max_by_key(|(ending, _)| ending.len());
    if let Some((ending, instead)) = longest
        && measure(&word[..word.len() - ending.len()]) > 0
    {
        replace(word, ending.len(), instead);
    }
}

/// Removes endings without replacement.
fn step_4(word: &mut Vec<u8>) {
    let longest = STEP_4.iter().filter(|ending| word.ends_with(ending)).max_by_key(|ending| ending.len());
    let Some(ending) = longest else { return };
    let stem = &word[..word.len() - ending.len()];
    let is_kept = *ending == b"ion" && !matches!(stem.last(), Some(b's' | b't'));
    if measure(stem) > 1 && !is_kept {
        replace(word, ending.len(), b"");
    }
}

/// Removes a final e, and one l of a final double l.
fn step_5(word: &mut Vec<u8>) {
    if let Some((b'e', stem)) = word.split_last() {
        let measure = measure(stem);
        if measure > 1 || measure == 1 && !ends_in_short_syllable(stem) {
            word.pop();
        }
    }
    if word.ends_with(b"ll") && measure(word) > 1 {
        word.pop();
    }
}

fn replace(word: &mut Vec<u8>, len: usize, instead: &[u8]) {
    word.truncate(word.len() - len);
    word.extend_from_slice(instead);
}

/// Whether the letter at a place is a consonant: not a, e, i, o or u, nor a y after a consonant.
fn is_consonant(word: &[u8], place: usize) -> bool {
    match word[place] {
        b'a' | b'e' | b'i' | b'o' | b'u' => false,
        b'y' => place == 0 || !is_consonant(word, place - 1),
        _ => true,
    }
}

/// The number of changes from a vowel to a consonant.
fn measure(word: &[u8]) -> usize {
    (1..word.len()).filter(|&place| is_consonant(word, place) && !is_consonant(word, place - 1)).count()
}

fn has_vowel(word: &[u8]) -> bool {
    (0..word.len()).any(|place| !is_consonant(word, place))
}

fn ends_in_double_consonant(word: &[u8]) -> bool {
    matches!(word, [.., a, b] if a == b) && is_consonant(word, word.len() - 1)
}

/// Whether a word ends in consonant, vowel, consonant, where the last is not w, x or y.
fn ends_in_short_syllable(word: &[u8]) -> bool {
    let len = word.len();
    len >= 3
        && is_consonant(word, len - 3)
        && !is_consonant(word, len - 2)
        && is_consonant(word, len - 1)
        && !matches!(word[len - 1], b'w' | b'x' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_examples_come_out() {
        // These are the paper's examples, taken through all steps.
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "ti"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("failing", "fail"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("valenci", "valenc"),
            ("digitizer", "digit"),
            ("vietnamization", "vietnam"),
            ("operator", "oper"),
            ("sensibiliti", "sensibl"),
            ("triplicate", "triplic"),
            ("formative", "form"),
            ("electriciti", "electr"),
            ("hopeful", "hope"),
            ("goodness", "good"),
            ("allowance", "allow"),
            ("replacement", "replac"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("effective", "effect"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controll", "control"),
            ("roll", "roll"),
            ("parallelization", "parallel"),
            ("generalizations", "gener"),
            ("oscillators", "oscil"),
            ("is", "is"),
            ("café", "café"),
            ("3d", "3d"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn a_stem_is_never_longer_than_its_word_nor_empty() {
        for number in 0..26_usize.pow(4) {
            let word: String = (0..4).map(|place| (b'a' + (number / 26_usize.pow(place) % 26) as u8) as char).collect();
            let stem = stem(&word);
            assert!(!stem.is_empty() && stem.len() <= word.len(), "{word} {stem}");
        }
    }
}
