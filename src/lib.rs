//! `pleg`: the pod lifecycle event generator for one Kubernetes node.
#![forbid(unsafe_code)]

pub mod cri;
pub mod engine;
pub mod lifecycle;
