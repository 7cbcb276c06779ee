//! All codecs by name.

use super::bp128::Bp128;
use super::elias_fano::EliasFano;
use super::frame::Framed;
use super::patched::{NewPfd, OptPfd};
use super::pfor::Pfor;
use super::stream_vbyte::StreamVByte;
use super::vbyte::VByte;
use super::{Codec, PForDelta, Rice};

/// Every codec, in the order in which tables name them.
#[must_use]
pub fn all_codecs() -> Vec<Box<dyn Codec>> {
    let mut codecs: Vec<Box<dyn Codec>> = vec![
        Box::new(Framed::<Bp128>::new()),
        Box::new(Framed::<VByte>::new()),
        Box::new(Framed::<StreamVByte>::new()),
        Box::new(Framed::<NewPfd>::new()),
        Box::new(Framed::<OptPfd>::new()),
        Box::new(Pfor::<128>),
        Box::new(Pfor::<512>),
        Box::new(Framed::<EliasFano>::new()),
        Box::new(Rice),
    ];
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
