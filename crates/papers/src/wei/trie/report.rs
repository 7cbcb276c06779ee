//! Reports of builds, for the paper's tables.

/// Times in seconds, and the work of each indexer.
#[derive(Clone, Debug, Default)]
pub struct TrieReport {
    /// Time of sampling the collection.
    pub sampling_s: f64,
    /// Time until the last parser was done.
    pub parsers_s: f64,
    /// Time until the last run was indexed.
    pub indexers_s: f64,
    /// Time of combining the dictionary's parts.
    pub combining_s: f64,
    /// Time of writing the dictionary.
    pub writing_s: f64,
    /// Time of reading by all parsers.
    pub reading_s: f64,
    /// Runs in order.
    pub runs: Vec<RunReport>,
    /// Indexers: CPUs, then GPUs.
    pub parts: Vec<PartReport>,
}

/// Report of one run.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// Bytes of decompressed text.
    pub text_bytes: u64,
    /// Indexed tokens.
    pub tokens: u64,
    /// Time of decompressing on the parser's thread.
    pub unpacking_s: f64,
    /// Time of cutting, stemming and regrouping.
    pub parsing_s: f64,
    /// Time of waiting for the parser.
    pub waiting_s: f64,
    /// Time of copying input to the indexers.
    pub preparing_s: f64,
    /// Time until the last indexer was done.
    pub indexing_s: f64,
    /// Time of encoding and writing lists.
    pub collecting_s: f64,
    /// Tokens of each indexer.
    pub part_tokens: Vec<u64>,
}

/// Work of one indexer in all runs.
#[derive(Clone, Debug, Default)]
pub struct PartReport {
    /// Whether the indexer is a GPU.
    pub is_gpu: bool,
    /// Number of its slots.
    pub slots: usize,
    /// Indexed tokens.
    pub tokens: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Bytes of the distinct terms.
    pub characters: u64,
}

impl TrieReport {
    /// Returns the sum of a time over all runs.
    pub fn sum(&self, of: fn(&RunReport) -> f64) -> f64 {
        self.runs.iter().map(of).sum()
    }

    /// Returns the bytes of indexed text.
    pub fn text_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.text_bytes).sum()
    }

    /// Returns the number of indexed tokens.
    pub fn tokens(&self) -> u64 {
        self.runs.iter().map(|run| run.tokens).sum()
    }

    /// Returns the time from the sample to the dictionary on disk, the paper's total time.
    pub fn total_s(&self) -> f64 {
        self.sampling_s + self.indexers_s + self.combining_s + self.writing_s
    }
}
