//! Hints: what the stream told in messages that were not merged.
//!
//! A message that contradicts itself, has no snapshot or is stale changes no record; a read finds what
//! happened. The stream has told it all the same, so that it is no miss.

use super::Engine;
use crate::lifecycle::{EventKind, SeqPoint, SubjectId};

/// Unknown ids whose hints are kept, at most; a change past it may count as missed.
const UNKNOWN_IDS: usize = 1_000;

/// That the stream told of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hint {
    pub(super) at: SeqPoint,
    pub(super) event: EventKind,
}

impl Engine {
    pub(super) fn remember_hint(&mut self, id: &SubjectId, event: EventKind, at: SeqPoint) {
        if matches!(event, EventKind::Other(_)) {
            return;
        }
        let hint = Hint { at, event };
        if let Some(subject) = self.records.subjects.get_mut(id) {
            subject.hint = Some(hint);
        } else if self.hints.len() < UNKNOWN_IDS || self.hints.contains_key(id.as_str()) {
            self.hints.insert(id.as_str().into(), hint);
        }
    }

    /// A full relist was applied: whatever was told before it began, it showed or lacked.
    pub(super) fn drop_hints_before(&mut self, begun: SeqPoint) {
        self.hints.retain(|_, hint| hint.at > begun);
    }
}
