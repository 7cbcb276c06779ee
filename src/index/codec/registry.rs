//! All codecs by name.

use super::{Codec, PForDelta, Rice};

/// Every codec, in the order in which tables name them.
#[must_use]
pub fn all_codecs() -> Vec<Box<dyn Codec>> {
    let mut codecs: Vec<Box<dyn Codec>> = vec![Box::new(Rice)];
    for levels in 0..=PForDelta::MAX_LEVELS {
        codecs.push(Box::new(PForDelta::new(levels)));
    }
    codecs
}

/// The codec of this name, or `None`: [`all_codecs`] names them.
#[must_use]
pub fn codec_by_name(name: &str) -> Option<Box<dyn Codec>> {
    all_codecs().into_iter().find(|codec| codec.name() == name)
}
