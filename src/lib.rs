//! `pleg`: the pod lifecycle event generator for one Kubernetes node.
#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod backoff;
pub mod cache;
pub mod clock;
pub mod cri;
pub mod engine;
pub mod feed;
pub mod lifecycle;
#[cfg(feature = "simulate")]
pub mod simulate;
