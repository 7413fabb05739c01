//! Publication: the status of a pod that changed, then the events that speak of it, then the answers to
//! those who waited.
//!
//! The cache is written before an event is delivered. Events wait for the inspection that completes them,
//! subject by subject, never behind another pod's.

use std::cmp::Reverse;
use std::sync::Arc;

use super::counters::bump;
use super::subject::{Origin, Subject};
use super::{Engine, Output};
use crate::law::Law;
use crate::lifecycle::{
    ContainerId, EventSet, LifecycleEvent, LifecycleKind, Mark, Phase, PodContainer, PodIdentity,
    PodSandbox, PodStatus, PodUid, Revision, SandboxId, Source, SubjectId, SubjectKind,
    newest_sandbox_first,
};

impl Engine {
    pub(super) fn publish_touched(&mut self) {
        while let Some(uid) = self.touched.pop_first() {
            self.publish_pod(&uid);
        }
    }

    fn publish_pod(&mut self, uid: &PodUid) {
        if !Law::CacheFirst.holds() {
            self.deliver_owed(uid);
        }
        let changed = self.publish_status(uid);
        self.announce_observation(uid);
        self.deliver_owed(uid);
        self.serve_readers(uid);
        self.review_watch(uid, changed);
        // What wanted the inspection that failed may be gone since; its error must not stay.
        let at = self.point();
        self.retry_inspection(uid, at);
        self.enqueue(uid);
        self.records.index_wake(uid, self.now.mono);
        let still_waits = self.records.pods.get(uid).is_some_and(|pod| {
            !pod.readers.is_empty() || pod.due.is_some() || pod.reinspect.is_some()
        });
        if !still_waits {
            self.waiting.remove(uid);
        }
        self.records.drop_if_idle(uid);
    }

    /// Writes the pod's status if it differs from what was published. Returns whether it did.
    fn publish_status(&mut self, uid: &PodUid) -> bool {
        let status = self.status_of(uid);
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return false;
        };
        let is_same = match (&status, &pod.published) {
            (None, None) => true,
            (Some(now), Some(before)) => {
                now.ips == before.ips
                    && now.sandboxes == before.sandboxes
                    && now.containers == before.containers
                    && now.error == before.error
                    && now.pod == before.pod
            }
            _ => false,
        };
        if is_same {
            return false;
        }
        let revision = self.next_revision();
        let status = status.map(|mut status| {
            status.revision = revision;
            // It is kept until it changes.
            status.sandboxes.shrink_to_fit();
            status.containers.shrink_to_fit();
            Arc::new(status)
        });
        if let Some(pod) = self.records.pods.get_mut(uid) {
            pod.published.clone_from(&status);
            for place in pod.subjects.values() {
                if let Some(subject) = self.records.subjects.at_mut(*place)
                    && subject.born == Revision(0)
                {
                    subject.born = revision;
                }
            }
        }
        self.outputs.push_back(Output::Publish {
            uid: uid.clone(),
            revision,
            status,
        });
        true
    }

    /// The pod as its records have it; `None` if nothing of it is in the runtime.
    fn status_of(&mut self, uid: &PodUid) -> Option<PodStatus> {
        let mut sandboxes = Vec::new();
        let mut containers = Vec::new();
        for (id, subject) in self.records.live_of_pod(uid) {
            match id {
                SubjectId::Sandbox(id) => sandboxes.extend(shown_sandbox(id, subject)),
                SubjectId::Container(id) => containers.extend(shown_container(id, subject)),
            }
        }
        let pod = self.records.pods.get_mut(uid)?;
        if sandboxes.is_empty() && containers.is_empty() {
            pod.last_ips.clear();
            return None;
        }
        if let Some(newest) = sandboxes.iter().min_by(|a, b| newest_sandbox_first(a, b)) {
            pod.last_ips.clone_from(&newest.ips);
        }
        let identity = pod.identity.clone()?;
        let mut status = PodStatus {
            pod: identity,
            ips: pod.last_ips.clone(),
            error: pod.failure.as_ref().map(|failure| failure.message.clone()),
            sandboxes,
            containers,
            revision: Revision(0),
        };
        status.sort();
        Some(status)
    }

    fn announce_observation(&mut self, uid: &PodUid) {
        if let Some(pod) = self.records.pods.get_mut(uid)
            && pod.observed_phases > pod.announced
        {
            pod.announced = pod.observed_phases;
            if let Some(observed) = pod.observed_phases {
                self.outputs.push_back(Output::Observed {
                    uid: uid.clone(),
                    mark: Mark(observed),
                });
            }
        }
    }

    fn deliver_owed(&mut self, uid: &PodUid) {
        let Some(identity) = self.identity(uid) else {
            return;
        };
        let ready = self.records.of_pod(uid);
        let ready = ready.filter(|(_, subject)| subject.is_ready_to_tell());
        let ready: Vec<SubjectId> = ready.map(|(id, _)| id.clone()).collect();
        let settled = ready.iter().filter_map(|id| self.settle_owed(id));
        let told: Vec<Told> = settled.collect();
        let begun: Vec<&SandboxId> = told.iter().filter_map(Told::begun_sandbox).collect();
        let mut events: Vec<(Turn, usize, LifecycleKind)> = Vec::new();
        for (whose, it) in told.iter().enumerate() {
            let kinds = it.owed.iter();
            events.extend(kinds.map(|kind| (it.turn(kind, &begun), whose, kind)));
        }
        events.sort_unstable();
        for (_, whose, kind) in events {
            // It was counted over the same.
            let Told { id, subject, .. } = &told[whose];
            self.deliver(kind, &identity, Some((id, subject)), subject.origin);
        }
        let waits_for_details = self.records.live_of_pod(uid).any(|(_, subject)| {
            subject.knowledge.stepped_back() && subject.inspect_since.is_some()
        });
        if let Some(pod) = self.records.pods.get_mut(uid)
            && pod.sync_owed
            && !waits_for_details
        {
            pod.sync_owed = false;
            let origin = self.origin(Source::Inspect, None);
            self.deliver(LifecycleKind::PodSync, &identity, None, origin);
        }
    }

    fn identity(&self, uid: &PodUid) -> Option<PodIdentity> {
        self.records.pods.get(uid)?.identity.clone()
    }

    /// What a subject is owed counts as told from here on.
    fn settle_owed(&mut self, id: &SubjectId) -> Option<Told> {
        let id = id.clone();
        let subject = self.records.subjects.get_mut(&id)?;
        let owed = std::mem::take(&mut subject.owed);
        subject.told = subject.told.with(owed);
        if subject.born == Revision(0) {
            // It came and went within one input: nothing of it was ever published.
            subject.born = Revision(self.revision.0 + 1);
        }
        let told = Told {
            id,
            owed,
            subject: subject.clone(),
        };
        subject.shrink_to_tombstone();
        Some(told)
    }

    fn deliver(
        &mut self,
        kind: LifecycleKind,
        pod: &PodIdentity,
        subject: Option<(&SubjectId, &Subject)>,
        origin: Origin,
    ) {
        bump(&mut self.counters.delivered, (kind, origin.source));
        let revision = self.next_revision();
        let has_died = kind == LifecycleKind::ContainerDied;
        let event = LifecycleEvent {
            kind,
            revision,
            pod: pod.clone(),
            subject: subject.map(|(id, record)| record.named(id)),
            exit: subject
                .filter(|_| has_died)
                .and_then(|(_, record)| record.exit()),
            source: origin.source,
            initial: origin.initial,
            runtime_stamp: origin.runtime_stamp,
            seen_at: origin.seen_at,
            born: subject.map_or(revision, |(_, record)| record.born),
        };
        self.outputs.push_back(Output::Deliver(Arc::new(event)));
    }
}

/// A subject as its events show it.
struct Told {
    id: SubjectId,
    owed: EventSet,
    subject: Subject,
}

/// In which order a pod's events that are due at once are told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// What ended before anything new began: containers before the sandbox that they ended in.
    Ended(Reverse<SubjectKind>),
    /// What began: a sandbox before the containers that run in it.
    Began(SubjectKind),
    /// The end of what began just now too, or in a sandbox that did.
    BeganAndEnded(Reverse<SubjectKind>),
}

impl Told {
    fn turn(&self, kind: LifecycleKind, begun: &[&SandboxId]) -> Turn {
        let subject = self.id.kind();
        let sandbox = || self.subject.container()?.sandbox.as_ref();
        if kind == LifecycleKind::ContainerStarted {
            Turn::Began(subject)
        } else if self.begins() || sandbox().is_some_and(|id| begun.contains(&id)) {
            Turn::BeganAndEnded(Reverse(subject))
        } else {
            Turn::Ended(Reverse(subject))
        }
    }

    fn begins(&self) -> bool {
        self.owed.contains(EventSet::STARTED)
    }

    fn begun_sandbox(&self) -> Option<&SandboxId> {
        match &self.id {
            SubjectId::Sandbox(id) if self.begins() => Some(id),
            _ => None,
        }
    }
}

fn shown_sandbox(id: &SandboxId, subject: &Subject) -> Option<PodSandbox> {
    let details = subject.sandbox()?;
    Some(PodSandbox {
        id: id.clone(),
        attempt: details.attempt,
        state: subject.knowledge.state()?,
        created_at: details.created_at,
        ips: details.ips.clone(),
        host_network: details.host_network,
    })
}

fn shown_container(id: &ContainerId, subject: &Subject) -> Option<PodContainer> {
    let details = subject.container()?;
    let end = details
        .end
        .as_ref()
        .filter(|_| subject.knowledge.phase() >= Some(Phase::Exited));
    Some(PodContainer {
        id: id.clone(),
        name: details.name.clone(),
        attempt: details.attempt,
        sandbox_id: details.sandbox.clone(),
        state: subject.knowledge.state()?,
        created_at: details.created_at,
        started_at: details.started_at,
        finished_at: end.and_then(|end| end.finished_at),
        exit_code: end.map(|end| end.exit_code),
        reason: end.map(|end| end.reason.clone()).unwrap_or_default(),
        message: end.map(|end| end.message.clone()).unwrap_or_default(),
        image: details.image.clone(),
        image_ref: details.image_ref.clone(),
    })
}
