//! Stream messages: hints with snapshots.
//!
//! A message whose snapshot agrees with its type is merged at once, without any question to the runtime;
//! it only ever moves knowledge forward. One that is partial or contradicts itself has its pod looked at.
//! News of ids that nobody knows counts only if it is certainly newer than the newest full relist.

use super::hearing::{Hearing, Told};
use std::collections::BTreeSet;
use std::sync::Arc;

use super::counters::{Contradiction, Ignored, Note, bump};
use super::settings::NEW_SUBJECTS_PER_EVENT;
use super::staleness::ClockGuard;
use super::{Engine, SessionId, StreamEnd};
use crate::law::Law;
use crate::lifecycle::{
    EventKind, Phase, PodUid, Refusal, ReportedState, RuntimeEvent, SeqPoint, Source, SubjectId,
};

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
        // An inbox may overflow again and again, most likely where the runtime has enough to do.
        self.want_relist_soon();
        for uid in pods {
            self.fold_into_relist(&uid, at, true);
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
        bump(&mut self.counters.messages, event.kind.counted());
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
        if let Some(how) = contradiction(event.kind, &told, &event)
            && Law::ContradictionsAreNotMerged.holds()
        {
            return self.contradicted(how, &told, &event, at);
        }
        if self.brings_too_many(&event) {
            return;
        }
        self.merge_message(&told, &event, hearing);
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
        if event.kind == EventKind::Deleted && Law::UnknownDeletedChangesNothing.holds() {
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
