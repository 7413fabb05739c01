//! What is counted for each event of each kind of subject.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::SubjectEvent;

/// The counts of one (subject kind, event kind).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tally {
    /// Told, each change once.
    pub delivered: u64,
    /// Changes that are certain to have happened while the stream was open, told or not.
    pub proven: u64,
    /// Of those, never told although this runtime usually does.
    pub missing: u64,
    /// Of those, not told, as is this runtime's way.
    pub not_sent: u64,
    /// Told more than [`LATE`](super::LATE) after a list showed it, or after its own stamp.
    pub late: u64,
    /// Told again.
    pub repeated: u64,
    /// Told after a later event of the same life.
    pub out_of_order: u64,
    /// The snapshot denies what the message says.
    pub contradictory: u64,
    /// A message without the sandbox's status, or without that of the container that it is about,
    /// although this runtime usually gives it.
    pub without_snapshot: u64,
    /// The stamp is zero, negative, in the future or of a wrong unit.
    pub absurd_stamp: u64,
}

/// All counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies(BTreeMap<SubjectEvent, Tally>);

impl Tallies {
    pub(super) fn of(&mut self, event: SubjectEvent) -> &mut Tally {
        self.0.entry(event).or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SubjectEvent, &Tally)> {
        self.0.iter().map(|(event, tally)| (*event, tally))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SubjectEvent, &mut Tally)> {
        self.0.iter_mut().map(|(event, tally)| (*event, tally))
    }

    pub(super) fn sum(&self, count: impl Fn(&Tally) -> u64) -> u64 {
        self.0.values().map(count).sum()
    }
}
