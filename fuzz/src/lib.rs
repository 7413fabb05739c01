//! What the fuzz targets do with their bytes. `tests/corpora.rs` of the crate does the same with the
//! corpora, without a fuzzer.

pub mod recording;
pub mod scenario;
pub mod wire;
