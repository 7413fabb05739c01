//! How faithful a replay was: exact, or how often it had to do otherwise than the recorded run.

use std::fmt;

/// How close to the recorded run a replay was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// The engine asked what was recorded and got what was recorded, all at the recorded moments.
    Exact,
    /// It did not, so often.
    Approximate(Deviations),
}

/// Where and how a replay left the recorded run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviations {
    /// The line at which it left the step.
    pub line: u64,
    /// Questions answered from what the recording knew of each id.
    pub answered_otherwise: u64,
    /// Questions that the recording had no answer to.
    pub unrecorded: u64,
    /// Things of the stream that came while the engine had none open.
    pub untaken: u64,
    /// Entries that the recording lacks.
    pub missing: u64,
    /// Stretches between two entries that were too long to be lived through timer by timer. A
    /// recorded engine never was silent for so long: the file is damaged, or was written by hand.
    pub leaps: u64,
}

impl Deviations {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.answered_otherwise + self.unrecorded + self.untaken + self.missing + self.leaps
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Approximate(deviations) => write!(f, "approximate: {}", deviations.total()),
        }
    }
}
