//! Places of a term's postings: points scattered over the collection by a multiplicative cascade.
//!
//! Collections sorted by URL or topic have neighbourhoods at all scales: sites, folders, pages of one author. A term's
//! density is therefore drawn by halving (the *p-model* of Meneveau and Sreenivasan). A random half of the collection
//! gets the share p of the term's occurrences, and the other gets 1 - p. Each half is halved again, down to
//! [`LEAF_DOCS`] neighbouring documents.
//!
//! ```text
//! |                 1                 |      p = 0.7
//! |       0.7       |       0.3       |
//! |  0.21  |  0.49  |  0.21  |  0.09  |      the denser half is left or right at random
//! ```
//!
//! Points fall as a Poisson process of that density. A point becomes an occurrence with a chance that is the appetite
//! of the document that it hits. A document is in the list if at least one point became an occurrence. Where few points
//! are expected, their number is drawn, and halving continues only for two points or more, because a single point lies
//! anywhere with equal chance. A list of n postings therefore costs O(n log n), not O(documents).
//!
//! Terms of one topic share a field: with a chance, the correlation, the denser half of a neighbourhood is the one of the topic. Their lists
//! then have more documents in common than independent ones.
//!
//! Source: Meneveau and Sreenivasan, "Simple multifractal cascade model for fully developed turbulence", PRL 1987.

use tandem_base::base::random::{Random, exp, mix};

use super::documents::{AppetiteHistogram, Documents, repeat_chances};

/// Documents in the smallest neighbourhood, inside which density is even.
const LEAF_DOCS: u32 = 32;
/// Expected points below which their number is drawn before halving continues.
const FEW_POINTS: f64 = 4.0;
/// The denser half's share is 0.5 plus a number in this range, drawn for each term, unless the clustering is given.
const TOPICALITY: std::ops::Range<f64> = 0.1..0.3;
/// Maximum density, at which all documents of a neighbourhood contain the term many times.
const MOST_POINTS_A_DOCUMENT: f64 = 16.0;
/// Exceeds any Poisson number of that mean in a leaf.
const MOST_POINTS_DRAWN: usize = 1024;
/// Terms in a smaller share of the documents rarely have two points in one document.
const SPARSE_SHARE: f64 = 1e-4;

/// Draws posting lists. Each thread has a sampler of its own.
#[derive(Debug)]
pub(crate) struct ListSampler<'a> {
    appetites: &'a [u8],
    histogram: &'a AppetiteHistogram,
    repeat_chances: [u8; 256],
    /// 1 / n, because multiplying is faster than dividing.
    reciprocals: Vec<f64>,
    random: Random,
    /// Share of the denser half, also in 65536ths.
    dense_share: f64,
    dense_bits: u64,
    /// Chance of following the topic's field, in 2^32ths, and the number of that field.
    topic_bits: u64,
    topic: u64,
    clustering: std::ops::Range<f64>,
    docs: Vec<u32>,
    freqs: Vec<u32>,
}

impl<'a> ListSampler<'a> {
    /// Draws lists of these documents. `clustering` is the mean excess of the denser half's share over a half, `correlation` the chance
    /// that a neighbourhood's denser half is the one of the term's topic.
    pub(crate) fn new(
        documents: &'a Documents,
        histogram: &'a AppetiteHistogram,
        clustering: Option<f64>,
        correlation: f64,
    ) -> Self {
        Self {
            appetites: documents.appetites(),
            histogram,
            repeat_chances: repeat_chances(),
            reciprocals: (0..MOST_POINTS_DRAWN).map(|n| 1.0 / n as f64).collect(),
            random: Random::new(0, 0),
            dense_share: 0.5,
            dense_bits: 1 << 15,
            topic_bits: (correlation * 4_294_967_296.0) as u64,
            topic: 0,
            clustering: clustering.map_or(TOPICALITY, |mean| 0.5 * mean..1.5 * mean),
            docs: Vec::new(),
            freqs: Vec::new(),
        }
    }

    /// Draws the list of a term of a topic that is expected in `doc_freq` documents, from its own stream.
    ///
    /// Documents ascend, there is at least one, and frequencies are at least 1.
    pub(crate) fn draw(&mut self, doc_freq: f64, topic: u64, random: Random) -> (&[u32], &[u32]) {
        self.random = random;
        self.topic = topic;
        self.docs.clear();
        self.freqs.clear();
        let num_docs = self.appetites.len() as u32;
        let share = doc_freq / f64::from(num_docs);
        // Words that occur everywhere have no topic.
        let range = &self.clustering;
        let topicality = range.start + (range.end - range.start) * self.random.unit();
        self.dense_share = 0.5 + topicality * (1.0 - share) * (1.0 - share);
        self.dense_bits = (self.dense_share * 65536.0) as u64;
        let points = self.points_a_document(share) * f64::from(num_docs);
        self.scatter(0, num_docs, points);
        if self.docs.is_empty() {
            let doc = self.random.below(num_docs);
            self.docs.push(doc);
            self.freqs.push(1);
        }
        (&self.docs, &self.freqs)
    }

    /// Expected points per document such that `share` of the documents get an occurrence.
    fn points_a_document(&self, share: f64) -> f64 {
        let mut points = share / self.histogram.mean;
        if share < SPARSE_SHARE {
            return points;
        }
        // After k halvings the density is (2p)^j (2 - 2p)^(k-j) with the chance of j heads in k tosses.
        let halvings = (self.appetites.len() as u32 / LEAF_DOCS).max(1).ilog2() + 1;
        let mut chance = exp(-f64::from(halvings) * std::f64::consts::LN_2);
        let (dense, sparse) = (2.0 * self.dense_share, 2.0 * (1.0 - self.dense_share));
        let mut density = (0..halvings).fold(1.0, |density, _| density * sparse);
        let mut densities = Vec::with_capacity(halvings as usize + 1);
        for heads in 0..=halvings {
            densities.push((density, chance));
            chance *= f64::from(halvings - heads) / f64::from(heads + 1);
            density *= dense / sparse;
        }
        // Newton's method on a concave increasing function approaches the root from below. It passes the root only
        // slightly, where a neighbourhood reaches its maximum density.
        for _ in 0..60 {
            let (mut covered, mut slope) = (0.0, 0.0);
            for &(density, chance) in &densities {
                for &(appetite, documents) in &self.histogram.bins {
                    let missed = exp(-(points * density).min(MOST_POINTS_A_DOCUMENT) * appetite);
                    covered += chance * documents * (1.0 - missed);
                    if points * density < MOST_POINTS_A_DOCUMENT {
                        slope += chance * documents * density * appetite * missed;
                    }
                }
            }
            let step = (share - covered) / slope;
            // Without a slope, all neighbourhoods have their maximum density.
            if !step.is_finite() || step < 1e-4 * points {
                break;
            }
            points += step;
        }
        points
    }

    /// Scatters an expected number of `points` over documents `from..to`.
    fn scatter(&mut self, from: u32, to: u32, points: f64) {
        if points <= FEW_POINTS || to - from <= LEAF_DOCS {
            let drawn = self.poisson(points.min(f64::from(to - from) * MOST_POINTS_A_DOCUMENT));
            return self.place(from, to, drawn);
        }
        let middle = from + (to - from) / 2;
        let dense = points * self.dense_share;
        let (left, right) =
            if self.is_left_dense(from, to) { (dense, points - dense) } else { (points - dense, dense) };
        self.scatter(from, middle, left);
        self.scatter(middle, to, right);
    }

    /// Places exactly `points` over documents `from..to`.
    fn place(&mut self, from: u32, to: u32, points: u32) {
        match points {
            0 => {}
            1 => {
                let doc = from + self.random.below(to - from);
                let word = self.random.bits();
                self.hit(doc, word);
            }
            _ if to - from <= LEAF_DOCS => {
                // For few documents, counting hits replaces sorting.
                let mut hits = [0u32; LEAF_DOCS as usize];
                (0..points).for_each(|_| hits[self.random.below(to - from) as usize] += 1);
                for doc in from..to {
                    for _ in 0..hits[(doc - from) as usize] {
                        let word = self.random.bits();
                        self.hit(doc, word);
                    }
                }
            }
            _ => {
                let mut dense = 0;
                for _ in 0..points {
                    dense += u32::from(self.random.bits() >> 48 < self.dense_bits);
                }
                let middle = from + (to - from) / 2;
                let left = if self.is_left_dense(from, to) { dense } else { points - dense };
                self.place(from, middle, left);
                self.place(middle, to, points - left);
            }
        }
    }

    /// Whether the left half of documents `from..to` is the denser one: by the term's own field, or by that of its topic.
    #[inline]
    fn is_left_dense(&mut self, from: u32, to: u32) -> bool {
        let own = self.random.bits();
        let place = u64::from(to) << 32 | u64::from(from);
        if (own & 0xFFFF_FFFF) < self.topic_bits { mix(self.topic ^ place) >> 63 == 0 } else { own >> 63 == 0 }
    }

    /// Places a point on `doc`, which is at least the previous document. The low byte of `word` decides whether it
    /// counts.
    #[inline]
    fn hit(&mut self, doc: u32, word: u64) {
        let appetite = self.appetites[doc as usize];
        if word as u8 >= appetite {
            return;
        }
        let occurrences = 1 + self.repeats(self.repeat_chances[usize::from(appetite)]);
        match (self.docs.last(), self.freqs.last_mut()) {
            (Some(&last), Some(freq)) if last == doc => *freq += occurrences,
            _ => {
                self.docs.push(doc);
                self.freqs.push(occurrences);
            }
        }
    }

    /// A geometric number of repeats, each with `chance` in 256ths, at most 255.
    #[inline]
    fn repeats(&mut self, chance: u8) -> u32 {
        let mut word = self.random.bits();
        for repeats in 0..255 {
            if word as u8 >= chance {
                return repeats;
            }
            word = if repeats % 8 == 7 { self.random.bits() } else { word >> 8 };
        }
        255
    }

    /// A Poisson number by inversion. `mean` is at most [`LEAF_DOCS`] times [`MOST_POINTS_A_DOCUMENT`].
    fn poisson(&mut self, mean: f64) -> u32 {
        let mut chance = exp(-mean);
        let mut rest = self.random.unit() - chance;
        let mut count = 0;
        while rest > 0.0 && count + 1 < self.reciprocals.len() {
            count += 1;
            chance *= mean * self.reciprocals[count];
            rest -= chance;
        }
        count as u32
    }
}
