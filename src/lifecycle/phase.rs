//! Phases, and what a runtime reports of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a subject has come. The order is the law: phases only move forward, but for a step back
/// that two reads confirm. A sandbox's Ready is `Running`, its `NotReady` is `Exited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Made, not started.
    Created,
    /// Running; of a sandbox: ready.
    Running,
    /// Ended; of a sandbox: not ready.
    Exited,
    /// Gone from the runtime.
    Removed,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "Created",
            Self::Running => "Running",
            Self::Exited => "Exited",
            Self::Removed => "Removed",
        })
    }
}

/// What a list or a status says of a subject that it shows.
///
/// `Unknown` is no phase but the runtime's statement that it does not know; every state number that
/// CRI may add in future reads as `Unknown` too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReportedState {
    /// The runtime does not know.
    Unknown,
    /// Made, not started.
    Created,
    /// Running; of a sandbox: ready.
    Running,
    /// Ended; of a sandbox: not ready.
    Exited,
}

impl ReportedState {
    /// The phase reported, if one is.
    #[must_use]
    pub fn phase(self) -> Option<Phase> {
        match self {
            Self::Unknown => None,
            Self::Created => Some(Phase::Created),
            Self::Running => Some(Phase::Running),
            Self::Exited => Some(Phase::Exited),
        }
    }
}

impl fmt::Display for ReportedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "Unknown",
            Self::Created => "Created",
            Self::Running => "Running",
            Self::Exited => "Exited",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_states_are_written_by_their_names() {
        let padded = format!("{:>8}|{:<8}|", Phase::Exited, ReportedState::Running);
        assert_eq!(padded, "  Exited|Running |");
        assert_eq!(ReportedState::Unknown.to_string(), "Unknown");
    }
}
