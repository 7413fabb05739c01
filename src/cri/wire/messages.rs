//! The messages of `proto/runtime/v1/api.proto`, as prost writes them; `tests/proto.rs` keeps them so.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]

include!("generated/runtime.v1.rs");
