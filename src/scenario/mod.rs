//! Scenarios: what happened, or could have happened, between a runtime and the engine, as files.

#[cfg(feature = "recording")]
pub mod recording;
