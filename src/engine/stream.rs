//! Stream messages: hints with snapshots.
//!
//! A message whose snapshot agrees with its type is merged at once, without any question to the runtime;
//! it only ever moves knowledge forward. One that is partial or contradicts itself has its pod looked at.
//! News of ids that nobody knows counts only if it is certainly newer than the newest full relist.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::counters::{Contradiction, Ignored, Note, bump};
use super::settings::{NEW_SUBJECTS_PER_EVENT, UNCONFIRMED_SUBJECTS};
use super::staleness::ClockGuard;
use super::subject::{Details, Origin, Subject};
use super::{Engine, SessionId, StreamEnd};
use crate::lifecycle::{
    ContainerDetails, ContainerStatus, EventKind, Knowledge, Phase, PodIdentity, PodUid, Refusal,
    ReportedState, RuntimeEvent, SandboxDetails, SandboxId, SandboxStatus, SeqPoint, Source,
    Standing, SubjectId, Verdict,
};

/// What a message is about, as far as it and the records tell.
struct Told {
    subject: SubjectId,
    /// What its own snapshot says of the subject.
    state: Option<ReportedState>,
}

/// What merging one message needs to know.
#[derive(Clone, Copy)]
struct Hearing {
    at: SeqPoint,
    origin: Origin,
    /// Whether news of unknown ids may be taken from it.
    is_fresh: bool,
}

impl Engine {
    pub(super) fn stream_garbage(&mut self, session: SessionId, refusal: Refusal) {
        if !self.supervisor.is_open(session) {
            return self.ignore(Ignored::OldStream, "");
        }
        self.supervisor.message(self.now.mono);
        self.refuse(refusal);
        self.want_relist_soon();
    }

    pub(super) fn stream_overflow(
        &mut self,
        session: SessionId,
        pods: BTreeSet<PodUid>,
        dropped: u64,
        at: SeqPoint,
    ) {
        *self.counters.ignored.entry(Ignored::Overflow).or_default() += dropped;
        if self.supervisor.is_open(session) {
            self.trust.begin_hole(at, &self.settings);
        }
        self.note(Note::Ignored {
            why: Ignored::Overflow,
            id: format!("{dropped} messages").into(),
        });
        self.relists.want(self.now.mono);
        for uid in pods {
            if let Some(pod) = self.records.pods.get_mut(&uid) {
                pod.want_read(at, at.at, true);
                self.touch(&uid);
                self.waiting.insert(uid);
            }
        }
    }

    pub(super) fn stream_ended(&mut self, session: SessionId, end: &StreamEnd) {
        if !self.supervisor.is_open(session) {
            return;
        }
        self.counters.streams_ended += 1;
        let wait = self.supervisor.ended(end, self.now.mono, &self.settings);
        let how: Arc<str> = match end {
            StreamEnd::Unimplemented => "GetContainerEvents is not implemented".into(),
            StreamEnd::Clean => "the runtime ended it without an error".into(),
            StreamEnd::Broken(failure) => failure.message.clone(),
        };
        self.note(Note::StreamEnded {
            how: how.clone(),
            retry_in_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        });
        self.last_stream_end = Some(how);
    }

    pub(super) fn stream_message(
        &mut self,
        session: SessionId,
        mut event: RuntimeEvent,
        at: SeqPoint,
    ) {
        if !self.supervisor.is_open(session) {
            return self.ignore(Ignored::OldStream, &event.id);
        }
        self.supervisor.message(self.now.mono);
        bump(&mut self.counters.messages, event.kind);
        for refusal in &event.refused {
            self.refuse(*refusal);
        }
        let stamp = ClockGuard::usable(event.stamp, self.now);
        if stamp.is_none() {
            self.refuse(Refusal::AbsurdStamp);
        }
        if event.id.is_empty() {
            return self.look_at_pod_of(&event, at);
        }
        self.refuse_foreign_parts(&mut event, at);
        let Some(told) = self.subject_of(&event) else {
            return self.unknown_without_snapshot(&event, at);
        };
        let is_fresh = stamp.is_some_and(|stamp| {
            self.full_observed.is_some()
                && self
                    .relists
                    .begun
                    .is_some_and(|begun| self.clock.is_newer(stamp, begun))
        });
        let hearing = Hearing {
            at,
            origin: self.origin(Source::Event, stamp),
            is_fresh,
        };
        if let Some(how) = contradiction(event.kind, &told, &event) {
            return self.contradicted(how, &told, &event, at);
        }
        if self.brings_too_many(&event) {
            return;
        }
        self.merge_message(&told, &event, hearing);
    }

    fn merge_message(&mut self, told: &Told, event: &RuntimeEvent, hearing: Hearing) {
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
        let verdict = subject.knowledge.hear_event(phase, hearing.at);
        let owes_sync = subject.account(verdict, hearing.origin);
        let uid = subject.pod.clone();
        match verdict {
            Verdict::Moved { .. } => {
                if owes_sync && let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.sync_owed = true;
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
        let all_complete = self
            .records
            .live_of_pod(&uid)
            .all(|(_, subject)| subject.inspect_since.is_none());
        if all_complete && let Some(pod) = self.records.pods.get_mut(&uid) {
            pod.failure = None;
        }
    }

    /// Whether news of an unknown id may be taken.
    fn takes_news_of(&mut self, id: &SubjectId, hearing: Hearing) -> bool {
        let why = if !hearing.is_fresh {
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

    fn contradicted(
        &mut self,
        how: Contradiction,
        told: &Told,
        event: &RuntimeEvent,
        at: SeqPoint,
    ) {
        bump(&mut self.counters.contradictions, how);
        self.note(Note::Contradicted {
            how,
            id: event.id.clone(),
        });
        self.remember_hint(&told.subject, event.kind, at);
        let known = self.records.subjects.get(&told.subject);
        let in_snapshot = event.sandbox.as_ref().map(|sandbox| &sandbox.pod.uid);
        match known.map(|subject| &subject.pod).or(in_snapshot).cloned() {
            Some(uid) if self.records.pods.contains_key(&uid) => self.want_look(&uid, at, true),
            _ => self.want_relist_soon(),
        }
    }

    /// An event without an id (counted by the decoder) tells nothing but, perhaps, which pod to look at.
    fn look_at_pod_of(&mut self, event: &RuntimeEvent, at: SeqPoint) {
        let uid = event
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.pod.uid.clone());
        match uid.filter(|uid| self.records.pods.contains_key(uid)) {
            Some(uid) => self.want_look(&uid, at, true),
            None => self.want_relist_soon(),
        }
    }

    fn unknown_without_snapshot(&mut self, event: &RuntimeEvent, at: SeqPoint) {
        if event.kind == EventKind::Deleted {
            return self.ignore(Ignored::UnknownDeleted, &event.id);
        }
        let told = Told {
            subject: SubjectId::Container(event.id.as_ref().into()),
            state: None,
        };
        let how = if event.sandbox.is_none() && event.containers.is_empty() {
            Contradiction::NoSnapshot
        } else {
            Contradiction::SubjectMissing
        };
        self.contradicted(how, &told, event, at);
    }

    /// Leaves out whatever claims another pod than the one that its id is known to be of.
    fn refuse_foreign_parts(&mut self, event: &mut RuntimeEvent, at: SeqPoint) {
        let pod_of = |id: SubjectId| {
            self.records
                .subjects
                .get(&id)
                .map(|known| known.pod.clone())
        };
        let known_pod = self.records.find(&event.id).and_then(pod_of);
        let mut foreign = BTreeSet::new();
        if let Some(sandbox) = &event.sandbox {
            let of_sandbox = pod_of(SubjectId::Sandbox(sandbox.id.clone()));
            for known in [&known_pod, &of_sandbox].into_iter().flatten() {
                if *known != sandbox.pod.uid {
                    foreign.insert(known.clone());
                }
            }
        }
        if !foreign.is_empty() {
            event.sandbox = None;
        }
        let pod = event
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.pod.uid.clone())
            .or(known_pod);
        let mut refused = foreign.len();
        event.containers.retain(|status| {
            let known = self
                .records
                .subjects
                .get(&SubjectId::Container(status.id.clone()));
            let claims = status
                .pod
                .as_ref()
                .map(|claimed| &claimed.uid)
                .or(pod.as_ref());
            let belongs = match (known, claims) {
                (Some(known), Some(claims)) => known.pod == *claims,
                _ => true,
            } && match (&status.pod, &pod) {
                (Some(claimed), Some(pod)) => claimed.uid == *pod,
                _ => true,
            };
            if !belongs {
                refused += 1;
                foreign.extend(known.map(|known| known.pod.clone()));
            }
            belongs
        });
        for _ in 0..refused {
            self.refuse(Refusal::PodChanged);
        }
        for uid in foreign {
            self.want_look(&uid, at, true);
        }
    }

    /// Which subject the message is about, and what its own snapshot says of it.
    fn subject_of(&self, event: &RuntimeEvent) -> Option<Told> {
        let own_sandbox = event
            .sandbox
            .as_ref()
            .filter(|sandbox| sandbox.id.as_str() == &*event.id);
        let own_container = event
            .containers
            .iter()
            .find(|status| status.id.as_str() == &*event.id);
        let subject = match (own_sandbox, own_container) {
            (Some(sandbox), _) => SubjectId::Sandbox(sandbox.id.clone()),
            (None, Some(status)) => SubjectId::Container(status.id.clone()),
            (None, None) => self.records.find(&event.id)?,
        };
        let state = match &subject {
            SubjectId::Sandbox(_) => own_sandbox.map(|sandbox| sandbox.state),
            SubjectId::Container(_) => own_container.map(|status| status.state),
        };
        Some(Told { subject, state })
    }

    fn brings_too_many(&mut self, event: &RuntimeEvent) -> bool {
        if event.containers.len() <= NEW_SUBJECTS_PER_EVENT {
            return false;
        }
        let unknown = event
            .containers
            .iter()
            .filter(|status| {
                let id = SubjectId::Container(status.id.clone());
                !self.records.subjects.contains_key(&id)
            })
            .count();
        if unknown <= NEW_SUBJECTS_PER_EVENT {
            return false;
        }
        self.refuse(Refusal::TooManySubjects);
        self.want_relist_soon();
        true
    }
}

/// How details of a snapshot stand to what is known: a further phase's are new, others only fill gaps.
fn standing(verdict: Option<Verdict>) -> Standing {
    match verdict {
        Some(Verdict::Moved { .. }) => Standing::Later,
        _ => Standing::Overlapping,
    }
}

/// Whether a message contradicts itself, and how. Snapshots are taken after the change, so being
/// ahead of the type is no contradiction.
fn contradiction(kind: EventKind, told: &Told, event: &RuntimeEvent) -> Option<Contradiction> {
    let least = match kind {
        EventKind::Created => Phase::Created,
        EventKind::Started => Phase::Running,
        EventKind::Stopped => Phase::Exited,
        EventKind::Deleted => {
            let is_there = match &told.subject {
                // Of a sandbox that is being deleted, containerd 2.x shows the last state.
                SubjectId::Sandbox(_) => told
                    .state
                    .is_some_and(|state| state != ReportedState::Exited),
                SubjectId::Container(_) => told.state.is_some(),
            };
            return is_there.then_some(Contradiction::DeletedButPresent);
        }
        EventKind::Other(_) => return Some(Contradiction::UnknownType),
    };
    match told.state {
        Some(state) if state.phase() >= Some(least) => None,
        Some(_) => Some(Contradiction::StateBehindType),
        None if event.sandbox.is_none() && event.containers.is_empty() => {
            Some(Contradiction::NoSnapshot)
        }
        None => Some(Contradiction::SubjectMissing),
    }
}
