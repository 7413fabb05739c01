//! The messages of `proto/pleg/v1/pleg.proto`, as prost writes them; `tests/proto.rs` keeps them so.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]

include!("generated/pleg.v1.rs");
