//! The client of the service, as tonic writes it; `tests/proto.rs` keeps them so.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]

include!("generated/pleg.v1.client.rs");
