//! The owner.
mod input;
mod mode;
pub use input::*;
pub use mode::{Mode, ModeChange, PollingReason};

/// Placeholder until notes are typed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Note {
    /// What happened.
    pub what: String,
}
