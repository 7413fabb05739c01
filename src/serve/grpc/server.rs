//! The service as a trait and its server, as tonic writes them; `tests/proto.rs` keeps them so.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]

include!("generated/pleg.v1.server.rs");
