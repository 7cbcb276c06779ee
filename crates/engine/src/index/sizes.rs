//! Sizes of the parts of an index.

use rayon::prelude::*;
use tandem_base::base::ids::TermId;

use super::file::Index;
use super::layout::Section;
use super::list::ListBits;

/// One part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSize {
    /// Name of the part.
    pub name: &'static str,
    /// Size in bits.
    pub bits: u64,
}

/// Sizes of the lists' parts and their sum, "all of these", followed by the other parts of the file.
pub fn index_sizes(index: &Index) -> Vec<PartSize> {
    let lists = (0..index.num_terms()).into_par_iter().map(|term| index.list(TermId(term)).bits()).sum::<ListBits>();
    let section = |section| 8 * index.section_bytes(section);
    let directory = section(Section::Terms) + lists.directory;
    let packed: u64 =
        [Section::Payload, Section::ShortLists, Section::LastDocs, Section::Blocks].map(section).iter().sum();
    let padding = packed - lists.docs - lists.freqs - lists.skips - lists.probe;
    let part = |name, bits| PartSize { name, bits };
    vec![
        part("document ids", lists.docs),
        part("frequencies", lists.freqs),
        part("skips and bounds", lists.skips),
        part("directory", directory),
        part("padding", padding),
        part("all of these", lists.docs + lists.freqs + lists.skips + directory + padding),
        part("probe forms", lists.probe),
        part("dictionary", section(Section::Dictionary)),
        part("document lengths", section(Section::DocLengths)),
        part("external ids", section(Section::ExternalIdEnds) + section(Section::ExternalIds)),
    ]
}
