//! Whom the events since the last decisions concern: what policies [ask](Ask), added up.

use super::super::Ask;
use crate::ids::ProcessorId;
use crate::machine::PerClass;

/// Lanes that the events since the last decisions concern.
#[derive(Clone, Debug, Default)]
pub(super) struct Concerned {
    pub(super) processors: Vec<ProcessorId>,
    /// Bit c: class c is concerned.
    pub(super) classes: u8,
    /// By class: how many of its lanes are to be asked,
    pub(super) lanes: PerClass<u32>,
    /// and for how many of these one of each other class is asked in their place.
    pub(super) others_too: PerClass<u32>,
    pub(super) everyone: bool,
}

impl Concerned {
    #[inline]
    pub(super) fn add(&mut self, ask: Ask) {
        match ask {
            Ask::Nobody => {}
            Ask::Processor(processor) => self.processors.push(processor),
            Ask::Class(class) => {
                self.classes |= 1 << class.index();
                self.lanes[class] += 1;
            }
            Ask::ClassThenOthers(class) => {
                self.classes |= 1 << class.index();
                self.lanes[class] += 1;
                self.others_too[class] += 1;
            }
            Ask::Everyone => self.everyone = true,
        }
    }
}
