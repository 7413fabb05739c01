//! The records: every subject and pod that is known, live or as a tombstone.
//!
//! Owns membership and look-up. It never judges an observation and never decides what to ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::pod::Pod;
use super::subject::Subject;
use super::subjects::Subjects;
use crate::lifecycle::{ContainerId, Mono, PodIdentity, PodUid, SandboxId, SeqPoint, SubjectId};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Records {
    pub(super) subjects: Subjects,
    /// Boxed, because a map's nodes are never full: unboxed, a third of their memory would be unused.
    pub(super) pods: BTreeMap<PodUid, Box<Pod>>,
    /// Removed subjects by when they were found removed: what is evicted first.
    pub(super) tombstones: BTreeSet<(SeqPoint, SubjectId)>,
    /// When each pod next needs a look by the clock.
    pub(super) wakes: BTreeSet<(Mono, PodUid)>,
    wake_of: BTreeMap<PodUid, Mono>,
    /// Subjects that only events have told of so far, or of whose state only they know.
    pub(super) unconfirmed: BTreeSet<SubjectId>,
}

impl Records {
    /// The subject with this runtime id, whichever kind it is.
    pub(super) fn find(&self, id: &Arc<str>) -> Option<SubjectId> {
        let sandbox = SubjectId::Sandbox(SandboxId::from(id.clone()));
        if self.subjects.contains_key(&sandbox) {
            return Some(sandbox);
        }
        let container = SubjectId::Container(ContainerId::from(id.clone()));
        self.subjects.contains_key(&container).then_some(container)
    }

    pub(super) fn insert(&mut self, id: SubjectId, subject: Subject, identity: &PodIdentity) {
        let pod = self.pods.entry(subject.pod.clone()).or_default();
        match &mut pod.identity {
            // A container's labels may lack what the sandbox's metadata has.
            Some(known) if !known.name.is_empty() => {}
            known => *known = Some(identity.clone()),
        }
        if subject.knowledge.first_by_event() {
            self.unconfirmed.insert(id.clone());
        }
        let place = self.subjects.insert(id.clone(), subject);
        pod.subjects.insert(id, place);
    }

    /// Keeps the tombstones' index in step with a subject that was removed or came back.
    pub(super) fn index_tombstone(&mut self, id: &SubjectId, at: SeqPoint) {
        let Some(subject) = self.subjects.get_mut(id) else {
            return;
        };
        match (subject.removed_at, subject.knowledge.is_removed()) {
            (None, true) => {
                subject.removed_at = Some(at);
                self.tombstones.insert((at, id.clone()));
            }
            (Some(since), false) => {
                subject.removed_at = None;
                self.tombstones.remove(&(since, id.clone()));
            }
            _ => {}
        }
    }

    /// Forgets a subject altogether.
    pub(super) fn forget(&mut self, id: &SubjectId) {
        let Some(subject) = self.subjects.remove(id) else {
            return;
        };
        self.unconfirmed.remove(id);
        if let Some(at) = subject.removed_at {
            self.tombstones.remove(&(at, id.clone()));
        }
        if let Some(pod) = self.pods.get_mut(&subject.pod) {
            pod.subjects.remove(id);
        }
        self.drop_if_idle(&subject.pod);
    }

    pub(super) fn drop_if_idle(&mut self, uid: &PodUid) {
        if self.pods.get(uid).is_some_and(|pod| pod.is_idle()) {
            self.pods.remove(uid);
            if let Some(at) = self.wake_of.remove(uid) {
                self.wakes.remove(&(at, uid.clone()));
            }
        }
    }

    /// Brings the index of wakes in step with the pod's own record.
    pub(super) fn index_wake(&mut self, uid: &PodUid, now: Mono) {
        let next = self.pods.get(uid).and_then(|pod| pod.next_wake(now));
        let known = match next {
            Some(at) => self.wake_of.insert(uid.clone(), at),
            None => self.wake_of.remove(uid),
        };
        if known == next {
            return;
        }
        if let Some(at) = known {
            self.wakes.remove(&(at, uid.clone()));
        }
        if let Some(at) = next {
            self.wakes.insert((at, uid.clone()));
        }
    }

    /// The subjects of a pod with their records.
    pub(super) fn of_pod<'a>(
        &'a self,
        uid: &PodUid,
    ) -> impl Iterator<Item = (&'a SubjectId, &'a Subject)> + use<'a> {
        self.pods
            .get(uid)
            .into_iter()
            .flat_map(|pod| &pod.subjects)
            .filter_map(|(id, place)| Some((id, self.subjects.at(*place)?)))
    }

    /// The live subjects of a pod with their records.
    pub(super) fn live_of_pod<'a>(
        &'a self,
        uid: &PodUid,
    ) -> impl Iterator<Item = (&'a SubjectId, &'a Subject)> + use<'a> {
        self.of_pod(uid).filter(|(_, subject)| subject.is_live())
    }

    /// Counts every wake from another moment, for the canonical form.
    #[cfg(test)]
    pub(super) fn shift_wakes(&mut self, shift: impl Fn(&mut Mono)) {
        self.wakes.clear();
        for (uid, at) in &mut self.wake_of {
            shift(at);
            self.wakes.insert((*at, uid.clone()));
        }
    }
}
