//! `pleg`: the pod lifecycle event generator for one Kubernetes node.
#![forbid(unsafe_code)]

pub mod backoff;
pub mod cache;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod clock;
pub mod cri;
pub mod engine;
pub mod feed;
pub mod lifecycle;
pub mod pleg;
#[cfg(feature = "scenarios")]
pub mod scenario;
#[cfg(feature = "simulate")]
pub mod simulate;
