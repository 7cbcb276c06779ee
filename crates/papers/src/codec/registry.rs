//! List of all codecs.

use super::frame::Framed;
use super::patched::{NewPfd, OptPfd};
use super::pfor::Pfor;
use super::{Codec, PForDelta, Rice};

/// Returns all codecs in the order of tables.
pub fn all_codecs() -> Vec<Box<dyn Codec>> {
    let mut codecs: Vec<Box<dyn Codec>> = vec![
        Box::new(Framed::<NewPfd>::new()),
        Box::new(Framed::<OptPfd>::new()),
        Box::new(Pfor::<128>),
        Box::new(Pfor::<512>),
        Box::new(Rice),
    ];
    for levels in 0..=PForDelta::MAX_LEVELS {
        codecs.push(Box::new(PForDelta::new(levels)));
    }
    codecs
}
