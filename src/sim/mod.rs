//! Discrete-event simulation of schedulers.
