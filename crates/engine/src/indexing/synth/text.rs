//! Synthetic text of any number of documents, each determined by the seed and its number.
//!
//! The cost of indexing text depends on how often words repeat, how many there are and how they begin:
//!
//! | law | here |
//! | --- | --- |
//! | frequent words fall off as 1 / (rank + 2.7) (Zipf, Mandelbrot) | up to rank 8000 |
//! | rare ones fall off faster, so that the vocabulary grows as n^0.56 (Heaps) | above, as rank^-1.8: 65 million tokens have 0.7 million words, as in the English Wikipedia |
//! | some beginnings are far more common than others | the first three letters as letters follow each other in Wikipedia's vocabulary |
//! | words have some 6.6 letters, frequent ones fewer | the rank in letters, behind the first three |
//!
//! The vocabulary has no end, so it never stops growing.

use std::io::{self, Write};

use rayon::prelude::*;

use tandem_base::base::random::{Random, exp, ln, pow};

/// Streams of documents, and of words.
const DOCUMENT_STREAMS: u64 = 1 << 40;
const WORD_STREAMS: u64 = 1 << 41;

/// Rank where the frequencies' two laws meet, the shift of the first and the exponent of the second.
const KNEE: f64 = 8000.0;
const SHIFT: f64 = 2.7;
const EXPONENT: f64 = 1.8;
/// Standard deviation of the logarithm of document lengths.
const LENGTH_SIGMA: f64 = 1.0;
/// Number of words whose spelling is cached.
const KEPT_WORDS: u64 = 1 << 16;
const TASK_DOCUMENTS: u64 = 256;
/// Tasks per thread between two writes.
const TASKS_A_THREAD: u64 = 4;
const SENTENCE_WORDS: u32 = 24;

/// Frequencies of the first letter of words, of the second after each first, and of the third after each second: A for never to
/// Z for most often in its row. They are counted in 171,256 distinct words of the English
/// Wikipedia.
const FIRST: &[u8; 26] = b"QQTMJIKKHEKKSIGQBMZNEFHBCC";
const SECOND: &[u8; 26 * 26] = b"\
    CKKKDEHCFBEWLZBIBXNHIECBDCZAAARAACKAAGAAPAAPAALAAABARAAAEAAQEAAFAAZAAGAAEAAABBMAAAZAABTBAAAAMAAGAAHAAABB\
    GCHHBCEBGBCTMZBGCKNGGIBVCBZABASBAAUAAQAAWAAWBAMAAAAAZAAASAAEKAAIABRAAXABOABADAZAAAQAAAJAAAAAQAABAAHAAAEA\
    BBCCAABAAAACGZBBACECABAAABZAAALAABGAAAAANAAABAMAAAAAZAAAJAAGMAADACOAAGBAIBBACAZAAATAAASAACAAOAAAAAKAAADA\
    ZADAKAAALAAAAAMAAAAAGAAABAZABBVACANAAAAARAAABBFAAACACMIFCEDCCBELEICLAZKFLOCCBBZAAAQAAGJAAGAAQAAUCBHAAABA\
    EAAAAAAADAAAAABAABAAZAAAAANAAAZAABGAAAAALAAABAFAAABAZAMARAAUOAEEDCNLBBBYRBDAECZABAUAABQLAABAARAAYEBJBCAD\
    ABBBBABAAABDCZADAEECAAAAAAXAAAVAAAZAABAAKAABAACAAABAZBBBSBBJWBBBBANBAEBBCABADAICBAJBABZAACCACCABCBGBAFDA\
    ZABAPAAAEAAAABPBAABBKBAAAAZBABNAAIJAAAAAJAAABAGBCABA";
const THIRD: &[u8; 26 * 26] = b"\
    CEHFBCFDGCEPJTBEAZKLFDCBDCWLGMZDCEQDCJCDTDANXEJCBBDBKBNCFBCZEADCCCJBBHCFEABABATDDMZDEFUGCGLDRCALGCLKDBCD\
    MDJHFEGCHBCQITDFBZMLDFDBCBJBECGZCBGBCEDBGCAJEICBBAAAZGDDOCLMKABIDMOCASDCMCCAFAZAAAOAAAQAABBALAAFBAGAAACA\
    HFMHKDJBBBESIZFEBNUMBFBBBCWDCDZBBCOCDBEDMDAECBLCBABBYCCBQCBLZBEECCQCAJFEIBDBLAZCBCPBBALABGCAMBABCDHBAACA\
    VPCBOBBBOBACKCKZADDCEBAABAKCLQHHICJBCCBFGCBDLZCFBABBDEGGCBEDDBDSMZIEAYJHMEFBCCWBDCZBBHYABHCCYTALHHEBBABA\
    BAAABAAABAAABAAAAABAZAAAAAZBCBUACASABBCBTBACBCHBAACBQDPDKCCOLAFGECILBDSZICCAHCZBCASBBGJABCBBNBASCIGBBACB\
    ILIIGDFCHCEPKSCHAZPOBBABCCMABBZABAIAABBBEBACBBBAAAAAZACBQBBBRABBBCGAABCBBABACAHCOBKCBFJAACBBGZABBTCBACDA\
    THNPLCGBEBFOTZKTAVTKLBBBBCZCFCYBBIQACCCCNBACBDJBBAGE";

/// Options of synthetic text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextOptions {
    /// Seed of everything random.
    pub seed: u64,
    /// Number of the first document. Text from there on continues the text before it.
    pub first_doc: u64,
    /// Number of documents, or `None` for no end.
    pub num_docs: Option<u64>,
    /// Bytes after which the current document is the last, or `None` for no limit.
    pub max_bytes: Option<u64>,
    /// Mean tokens per document.
    pub mean_length: f64,
}

/// Writes documents as JSON lines with `id` and `text`, on all of rayon's threads, which make the next ones while some
/// are written. Returns the numbers of documents and bytes, which `progress` receives, too.
pub fn write_text(
    options: &TextOptions,
    out: &mut (dyn Write + Send),
    progress: &dyn Fn(u64, u64),
) -> io::Result<(u64, u64)> {
    let speller = Speller::new(options.seed);
    let tasks = rayon::current_num_threads() as u64 * TASKS_A_THREAD;
    let last = options.num_docs.unwrap_or(u64::MAX);
    let make = |first: u64| -> Vec<Vec<u8>> {
        let task = |task: u64| {
            let first = first.saturating_add(task * TASK_DOCUMENTS).min(last);
            let mut lines = Vec::new();
            for doc in first..first.saturating_add(TASK_DOCUMENTS).min(last) {
                speller.document(options.first_doc.saturating_add(doc), options, &mut lines);
            }
            lines
        };
        (0..tasks).into_par_iter().map(task).collect()
    };
    let mut written = Written { docs: 0, bytes: 0, most_bytes: options.max_bytes };
    let mut made = make(0);
    while written.docs < last && !written.is_enough() {
        let next = (written.docs + tasks * TASK_DOCUMENTS).min(last);
        let (done, following) = rayon::join(|| written.write(&made, out), || make(next));
        done?;
        made = following;
        progress(written.docs, written.bytes);
    }
    out.flush()?;
    Ok((written.docs, written.bytes))
}

struct Written {
    docs: u64,
    bytes: u64,
    most_bytes: Option<u64>,
}

impl Written {
    fn is_enough(&self) -> bool {
        self.most_bytes.is_some_and(|most| self.bytes >= most)
    }

    /// Writes the lines of the tasks, up to the document that reaches the limit.
    fn write(&mut self, made: &[Vec<u8>], out: &mut dyn Write) -> io::Result<()> {
        for lines in made {
            let (mut end, before) = (0, self.bytes);
            for line in lines.split_inclusive(|&byte| byte == b'\n') {
                if self.is_enough() {
                    break;
                }
                end += line.len();
                self.docs += 1;
                self.bytes = before + end as u64;
            }
            out.write_all(&lines[..end])?;
        }
        Ok(())
    }
}

struct Speller {
    seed: u64,
    /// The most frequent words in sequence, and the end of each.
    kept: Vec<u8>,
    kept_ends: Vec<u32>,
}

impl Speller {
    fn new(seed: u64) -> Self {
        let mut speller = Self { seed, kept: Vec::new(), kept_ends: Vec::new() };
        let mut kept = Vec::new();
        for rank in 0..KEPT_WORDS {
            speller.spell(rank, &mut kept);
            speller.kept_ends.push(kept.len() as u32);
        }
        speller.kept = kept;
        speller
    }

    /// Appends the word of `rank`, from 0: three letters drawn for it, then the rank in letters. Words of different
    /// ranks therefore differ.
    fn spell(&self, rank: u64, out: &mut Vec<u8>) {
        let mut random = Random::new(self.seed, WORD_STREAMS.wrapping_add(rank));
        let first = draw(FIRST, &mut random);
        let second = draw(&SECOND[first * 26..][..26], &mut random);
        let third = draw(&THIRD[second * 26..][..26], &mut random);
        out.extend([first, second, third].map(|letter| b'a' + letter as u8));
        let mut rest = rank;
        loop {
            out.push(b'a' + (rest % 26) as u8);
            rest /= 26;
            if rest == 0 {
                break;
            }
            rest -= 1;
        }
    }

    fn word(&self, rank: u64, out: &mut Vec<u8>) {
        let Some(&end) = self.kept_ends.get(rank as usize) else {
            return self.spell(rank, out);
        };
        let start = rank.checked_sub(1).map_or(0, |before| self.kept_ends[before as usize]);
        out.extend_from_slice(&self.kept[start as usize..end as usize]);
    }

    fn document(&self, number: u64, options: &TextOptions, out: &mut Vec<u8>) {
        let mut random = Random::new(self.seed, DOCUMENT_STREAMS.wrapping_add(number));
        let median = options.mean_length * exp(-LENGTH_SIGMA * LENGTH_SIGMA / 2.0);
        let tokens = (median * exp(LENGTH_SIGMA * random.normal())).round().max(1.0) as u64;
        out.extend_from_slice(format!("{{\"id\":\"s{number:010}\",\"text\":\"").as_bytes());
        let mut left_in_sentence = 0;
        for token in 0..tokens {
            if left_in_sentence == 0 {
                left_in_sentence = 1 + random.below(SENTENCE_WORDS);
                if token > 0 {
                    out.extend_from_slice(b". ");
                }
                let start = out.len();
                self.word(draw_rank(&mut random), out);
                out[start].make_ascii_uppercase();
            } else {
                out.push(b' ');
                self.word(draw_rank(&mut random), out);
            }
            left_in_sentence -= 1;
        }
        out.extend_from_slice(b".\"}\n");
    }
}

fn draw(weights: &[u8], random: &mut Random) -> usize {
    // Combinations that were never seen have a thousandth of the weight, so rare beginnings occur, too.
    let weight = |letter: u8| 1 + 1000 * u32::from(letter - b'A');
    let mut place = random.below(weights.iter().map(|&letter| weight(letter)).sum());
    for (letter, &shown) in weights.iter().enumerate() {
        match place.checked_sub(weight(shown)) {
            Some(rest) => place = rest,
            None => return letter,
        }
    }
    weights.len() - 1
}

/// Draws the rank of a token's word, from 0.
fn draw_rank(random: &mut Random) -> u64 {
    let head = ln((KNEE + SHIFT) / (1.0 + SHIFT));
    let tail = 1.0 / (EXPONENT - 1.0);
    let at = random.unit() * (head + tail);
    let rank = if at < head {
        (1.0 + SHIFT) * exp(at) - SHIFT
    } else {
        // The remaining share of the tail, from 1 to 0.
        let left = ((head + tail - at) / tail).max(1e-12);
        KNEE * pow(left, -1.0 / (EXPONENT - 1.0))
    };
    (rank as u64).max(1) - 1
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn text(options: &TextOptions) -> (String, (u64, u64)) {
        let mut out = Vec::new();
        let written = write_text(options, &mut out, &|_, _| ()).unwrap();
        (String::from_utf8(out).unwrap(), written)
    }

    const OPTIONS: TextOptions =
        TextOptions { seed: 1, first_doc: 0, num_docs: Some(3000), max_bytes: None, mean_length: 250.0 };

    #[test]
    fn threads_do_not_change_text_and_length_keeps_its_start() {
        let (whole, (docs, bytes)) = text(&OPTIONS);
        assert_eq!((docs, bytes), (3000, whole.len() as u64));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(pool.install(|| text(&OPTIONS)).0 == whole);
        let (start, (_, bytes)) = text(&TextOptions { num_docs: None, max_bytes: Some(100_000), ..OPTIONS });
        assert!(whole.starts_with(&start) && (100_000..150_000).contains(&bytes));
        assert!(text(&TextOptions { seed: 2, ..OPTIONS }).0 != whole);
        let (end, _) = text(&TextOptions { first_doc: 2900, num_docs: Some(100), ..OPTIONS });
        assert!(whole.ends_with(&end));
    }

    #[test]
    fn words_are_as_long_and_as_many_as_in_wikipedia() {
        let (whole, _) = text(&OPTIONS);
        let words: Vec<&str> = whole
            .lines()
            .flat_map(|line| line.split("\"text\":\"").nth(1).unwrap().split(|c: char| !c.is_ascii_alphabetic()))
            .filter(|word| !word.is_empty())
            .collect();
        let distinct: HashSet<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let mean_len = distinct.iter().map(String::len).sum::<usize>() as f64 / distinct.len() as f64;
        assert!((5.8..7.4).contains(&mean_len), "{mean_len} letters");
        // Heaps' law: 65 million tokens have 0.7 million words, so n tokens have 0.7 (n / 65 million)^0.56 million.
        let expected = 0.7e6 * (words.len() as f64 / 65e6).powf(0.56);
        let ratio = distinct.len() as f64 / expected;
        assert!((0.6..1.4).contains(&ratio), "{} words, expected about {expected}", distinct.len());
    }
}
