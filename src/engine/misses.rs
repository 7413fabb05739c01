//! Misses: changes that a read told first and the stream never did.
//!
//! A change that a read finds is a candidate; it is a miss only if the stream has not told it within the
//! grace after that read ended. What a runtime is known never to send is no distrust.

use super::counters::bump;
use super::settings::GRACE;
use super::subject::Expected;
use super::{Engine, Note};
use crate::law::Law;
use crate::lifecycle::{ContainerDetails, EventKind, Phase, SeqPoint, SubjectId, SubjectKind};

impl Engine {
    /// A read told a change first: the stream has `GRACE` to tell it too.
    pub(super) fn expect_from_stream(
        &mut self,
        id: &SubjectId,
        from: Option<Phase>,
        seen: SeqPoint,
    ) {
        if !self.trust.baseline || self.supervisor.open().is_none() {
            return;
        }
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return;
        };
        let phase = subject.knowledge.phase();
        if phase == from || subject.expected.is_some() {
            return;
        }
        let Some(event) = phase.map(event_of) else {
            return;
        };
        if subject.hint.take().is_some_and(|hint| hint.event >= event) {
            return self.trust.delivered((id.kind(), event));
        }
        let deadline = if Law::MissesHaveGrace.holds() {
            seen.at.after(GRACE)
        } else {
            seen.at
        };
        subject.expected = Some(Expected { event, deadline });
        self.expectations.insert((deadline, id.clone()));
    }

    /// Books the changes that the stream has not told within their grace.
    pub(super) fn judge_expectations(&mut self, now: SeqPoint) {
        while let Some((deadline, id)) = self.expectations.first().cloned()
            && deadline <= now.at
        {
            self.expectations.pop_first();
            let Some(subject) = self.records.subjects.get_mut(&id) else {
                continue;
            };
            let Some(expected) = subject.expected.take() else {
                continue;
            };
            let start_failed = subject.container().is_some_and(ContainerDetails::never_ran);
            if self.supervisor.open().is_none()
                || (expected.event == EventKind::Stopped && start_failed)
            {
                continue;
            }
            let kind: SubjectKind = id.kind();
            let known_gap = self.trust.miss((kind, expected.event), now, &self.settings);
            bump(&mut self.counters.missed, (kind, expected.event));
            if known_gap {
                bump(
                    &mut self.counters.missed_in_known_gaps,
                    (kind, expected.event),
                );
            }
            self.note(Note::Missed {
                subject: kind,
                event: expected.event,
                id: id.as_str().into(),
                known_gap,
            });
        }
    }
}

/// The event that tells of a phase. Ready is a sandbox's first phase, and its STARTED tells it.
fn event_of(phase: Phase) -> EventKind {
    match phase {
        Phase::Created => EventKind::Created,
        Phase::Running => EventKind::Started,
        Phase::Exited => EventKind::Stopped,
        Phase::Removed => EventKind::Deleted,
    }
}
