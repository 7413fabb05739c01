//! Merging a message that agrees with itself: it only ever moves knowledge forward, and asks nothing.
//!
//! News of ids that nobody knows counts only if it is certainly newer than the newest full relist.

use super::Engine;
use super::counters::Ignored;
use super::settings::UNCONFIRMED_SUBJECTS;
use super::subject::{Details, Origin, Subject};
use crate::law::Law;
use crate::lifecycle::{
    ContainerDetails, ContainerStatus, EventKind, Knowledge, Phase, PodIdentity, Refusal,
    ReportedState, RuntimeEvent, SandboxDetails, SandboxId, SandboxStatus, SeqPoint, Standing,
    SubjectId, Verdict,
};

/// What a message is about, as far as it and the records tell.
pub(super) struct Told {
    pub(super) subject: SubjectId,
    /// What its own snapshot says of the subject.
    pub(super) state: Option<ReportedState>,
}

/// What merging one message needs to know.
#[derive(Clone, Copy)]
pub(super) struct Hearing {
    pub(super) at: SeqPoint,
    pub(super) origin: Origin,
    /// Whether news of unknown ids may be taken from it.
    pub(super) is_fresh: bool,
}

impl Engine {
    pub(super) fn merge_message(&mut self, told: &Told, event: &RuntimeEvent, hearing: Hearing) {
        let id = &told.subject;
        if event.kind == EventKind::Deleted {
            if !self.records.subjects.contains_key(id) {
                // Nothing is known of it, so nothing can be claimed: no record, no event, no tombstone.
                return self.ignore(Ignored::UnknownDeleted, id.as_str());
            }
            self.merge_deleted(id, hearing);
        }
        if let Some(sandbox) = &event.sandbox
            && !(event.kind == EventKind::Deleted && sandbox.id.as_str() == id.as_str())
        {
            self.hear_sandbox(sandbox, hearing);
        }
        let own_sandbox = event.sandbox.as_ref().map(|sandbox| &sandbox.id);
        for status in &event.containers {
            // A status names no sandbox; only the message's own container is surely in the message's.
            let sandbox = own_sandbox.filter(|_| status.id.as_str() == id.as_str());
            let pod = event.sandbox.as_ref().map(|sandbox| &sandbox.pod);
            self.hear_container(status, sandbox, pod, hearing);
        }
        self.told_by_stream(id, event.kind, hearing);
    }

    /// A DELETED: removed for delivery, not for forgetting, until a read proves it.
    fn merge_deleted(&mut self, id: &SubjectId, hearing: Hearing) {
        let verdict = self.hear_phase(id, Phase::Removed, hearing);
        let Some(subject) = self.records.subjects.get(id) else {
            return;
        };
        let uid = subject.pod.clone();
        if verdict.is_some_and(|verdict| matches!(verdict, Verdict::Moved { .. })) {
            self.want_look(&uid, hearing.at, false);
        }
    }

    fn hear_phase(&mut self, id: &SubjectId, phase: Phase, hearing: Hearing) -> Option<Verdict> {
        let subject = self.records.subjects.get_mut(id)?;
        let was_unknown = subject.knowledge.state() == Some(ReportedState::Unknown);
        let verdict = subject.knowledge.hear_event(phase, hearing.at);
        let owes_sync = subject.account(verdict, hearing.origin);
        let uid = subject.pod.clone();
        match verdict {
            Verdict::Moved { .. } => {
                if owes_sync && let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.sync_owed = true;
                }
                if was_unknown && phase < Phase::Exited {
                    // The message may well be older than the runtime's word that it does not know.
                    self.records.unconfirmed.insert(id.clone());
                }
                self.records.index_tombstone(id, hearing.at);
                self.touch(&uid);
            }
            Verdict::Behind => self.ignore(Ignored::Behind, id.as_str()),
            _ => {}
        }
        Some(verdict)
    }

    fn hear_sandbox(&mut self, status: &SandboxStatus, hearing: Hearing) {
        let id = SubjectId::Sandbox(status.id.clone());
        if !self.records.subjects.contains_key(&id) {
            if !self.takes_news_of(&id, hearing) {
                return;
            }
            let mut details = SandboxDetails::default();
            details.take_status(status, Standing::Later);
            let details = Details::Sandbox(details);
            self.first_told(
                id,
                details,
                status.state,
                status.labelled,
                &status.pod,
                hearing,
            );
            return;
        }
        let Some(phase) = status.state.phase() else {
            return;
        };
        let verdict = self.hear_phase(&id, phase, hearing);
        let Some(subject) = self.records.subjects.get_mut(&id) else {
            return;
        };
        if verdict == Some(Verdict::Behind) {
            return;
        }
        subject.labelled |= status.labelled;
        let standing = standing(verdict);
        let before = subject.details.clone();
        let conflict = match &mut subject.details {
            Details::Sandbox(details) => details.take_status(status, standing),
            Details::Container(_) => false,
        };
        let changed = before != subject.details;
        self.details_heard(&id, conflict, changed, hearing);
    }

    fn hear_container(
        &mut self,
        status: &ContainerStatus,
        sandbox: Option<&SandboxId>,
        pod: Option<&PodIdentity>,
        hearing: Hearing,
    ) {
        let id = SubjectId::Container(status.id.clone());
        if !self.records.subjects.contains_key(&id) {
            let Some(pod) = status.pod.as_ref().or(pod) else {
                return self.refuse(Refusal::NoPod);
            };
            if !self.takes_news_of(&id, hearing) {
                return;
            }
            let mut details = ContainerDetails::from_status(status);
            details.sandbox = sandbox.cloned();
            let details = Details::Container(details);
            let labelled = status.pod.is_some();
            self.first_told(id, details, status.state, labelled, pod, hearing);
            return;
        }
        let Some(phase) = status.state.phase() else {
            return;
        };
        let verdict = self.hear_phase(&id, phase, hearing);
        let Some(subject) = self.records.subjects.get_mut(&id) else {
            return;
        };
        if verdict == Some(Verdict::Behind) {
            return;
        }
        let standing = standing(verdict);
        let before = subject.details.clone();
        let conflict = match &mut subject.details {
            Details::Container(details) => {
                if details.sandbox.is_none() {
                    details.sandbox = sandbox.cloned();
                }
                details.take_status(status, standing)
            }
            Details::Sandbox(_) => false,
        };
        let changed = before != subject.details;
        self.details_heard(&id, conflict, changed, hearing);
    }

    /// A snapshot brought details of a known subject: they complete it, or have it inspected.
    fn details_heard(&mut self, id: &SubjectId, conflict: bool, changed: bool, hearing: Hearing) {
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return;
        };
        let uid = subject.pod.clone();
        subject.details_seen = subject.details_seen.max(hearing.at);
        let was_wanted = subject.inspect_since.take().is_some();
        if changed || was_wanted {
            self.touch(&uid);
        }
        if conflict {
            self.details_conflict(id);
            self.want_look(&uid, hearing.at, true);
        }
        // Looked into only where there is something to end: a message shows each container of its pod.
        let pod = self.records.pods.get(&uid);
        if pod.is_some_and(|pod| pod.failure.is_some())
            && self
                .records
                .live_of_pod(&uid)
                .all(|(_, subject)| subject.inspect_since.is_none())
            && let Some(pod) = self.records.pods.get_mut(&uid)
        {
            pod.failure = None;
            // What is published has the error still.
            self.touch(&uid);
        }
    }

    /// Whether news of an unknown id may be taken.
    fn takes_news_of(&mut self, id: &SubjectId, hearing: Hearing) -> bool {
        let why = if !hearing.is_fresh && Law::StaleNewsIsNotTaken.holds() {
            Ignored::Stale
        } else if self.records.unconfirmed.len() >= UNCONFIRMED_SUBJECTS {
            Ignored::TooManyUnconfirmed
        } else {
            return true;
        };
        self.ignore(why, id.as_str());
        self.want_relist_soon();
        false
    }

    fn first_told(
        &mut self,
        id: SubjectId,
        details: Details,
        state: ReportedState,
        labelled: bool,
        pod: &PodIdentity,
        hearing: Hearing,
    ) {
        let knowledge = Knowledge::from_event(state, hearing.at);
        let uid = pod.uid.clone();
        let subject = Subject::new(uid.clone(), knowledge, details, labelled, hearing.origin);
        self.records.insert(id, subject, pod);
        self.touch(&uid);
    }

    /// Books that the stream told of its own subject, whatever the merge made of it.
    fn told_by_stream(&mut self, id: &SubjectId, kind: EventKind, hearing: Hearing) {
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return self.remember_hint(id, kind, hearing.at);
        };
        if kind == EventKind::Started {
            subject.owe_started();
        }
        if let Some(expected) = subject.expected
            && kind >= expected.event
        {
            subject.expected = None;
            self.expectations.remove(&(expected.deadline, id.clone()));
        }
        if subject.knowledge.seen() == hearing.at {
            subject.told_by_stream = Some(hearing.at);
        }
        let uid = subject.pod.clone();
        self.trust.delivered((id.kind(), kind));
        self.touch(&uid);
    }
}

/// How details of a snapshot stand to what is known: a further phase's are new, others only fill gaps.
fn standing(verdict: Option<Verdict>) -> Standing {
    match verdict {
        Some(Verdict::Moved { .. }) => Standing::Later,
        _ if !Law::EventsReplaceNothing.holds() => Standing::Later,
        _ => Standing::Overlapping,
    }
}
