//! The service as a trait for the simulated runtime, as tonic writes it; `tests/proto.rs` keeps it so.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]

include!("generated/runtime.v1.server.rs");
