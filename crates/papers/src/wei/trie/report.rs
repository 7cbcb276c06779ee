//! What a build by the trie did, and what it took: what the paper's tables are made of.

/// Times in seconds, and what each indexer had.
#[derive(Clone, Debug, Default)]
pub struct TrieReport {
    /// Sampling the collection, which splits the slots.
    pub sampling_s: f64,
    /// Until the last parser was done.
    pub parsers_s: f64,
    /// Until the last run was indexed.
    pub indexers_s: f64,
    /// Putting the dictionary's parts together.
    pub combining_s: f64,
    /// Writing the dictionary.
    pub writing_s: f64,
    /// Reading, one parser at a time.
    pub reading_s: f64,
    /// The runs, in order.
    pub runs: Vec<RunReport>,
    /// The indexers: CPUs, then GPUs.
    pub parts: Vec<PartReport>,
    /// GPUs that failed, and how: CPUs went on with their slots.
    pub lost: Vec<String>,
}

/// What one run took.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// Text that it was parsed from, decompressed.
    pub text_bytes: u64,
    /// Tokens that were indexed.
    pub tokens: u64,
    /// Decompressing, and parsing, on the parser's thread.
    pub unpacking_s: f64,
    /// Cutting, stemming, regrouping.
    pub parsing_s: f64,
    /// Waiting for the parser.
    pub waiting_s: f64,
    /// Taking input to the indexers.
    pub preparing_s: f64,
    /// Indexing, until the last indexer was done.
    pub indexing_s: f64,
    /// Encoding and writing lists.
    pub collecting_s: f64,
    /// Indexing, each indexer's own time.
    pub part_s: Vec<f64>,
    /// Tokens of each indexer.
    pub part_tokens: Vec<u64>,
}

/// What one indexer had in all runs.
#[derive(Clone, Debug, Default)]
pub struct PartReport {
    /// Whether it is a GPU.
    pub is_gpu: bool,
    /// Slots that were its own.
    pub slots: usize,
    /// Tokens indexed.
    pub tokens: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Bytes of the distinct terms.
    pub characters: u64,
}

impl TrieReport {
    /// The sum of a time over all runs.
    #[must_use]
    pub fn sum(&self, of: fn(&RunReport) -> f64) -> f64 {
        self.runs.iter().map(of).sum()
    }

    /// Text indexed, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.text_bytes).sum()
    }

    /// Tokens indexed.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.runs.iter().map(|run| run.tokens).sum()
    }

    /// From the sample to the dictionary on disk: what the paper calls total time.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.sampling_s + self.indexers_s + self.combining_s + self.writing_s
    }
}
