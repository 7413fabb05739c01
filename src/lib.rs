//! `pleg`: the pod lifecycle event generator for one Kubernetes node.
#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod engine;
pub mod lifecycle;
