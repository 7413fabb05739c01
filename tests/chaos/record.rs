//! The driver's own record, which is the truth: what it was told by its CRI calls and by lists of its
//! own, and from when on each change could have happened.
//!
//! A call that fails while the runtime dies may have been carried out or not. So the record keeps two
//! things apart: from when on a change *may* have happened (its call was issued, its process was
//! killed), and that it *did* (the call succeeded, or a list shows it). It knows nothing of `pleg`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use pleg::lifecycle::{LifecycleKind, ReportedState, SubjectKind, UnixNanos};

use crate::driver::{Span, wall_clock};
use crate::wire::{Container, ContainerState, PodSandbox, PodSandboxState};

/// One sandbox or container.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) kind: SubjectKind,
    pub(crate) pod: String,
    /// The sandbox that it is, or is in.
    pub(crate) sandbox: String,
    /// When it was first known to exist.
    pub(crate) known: UnixNanos,
    /// From when on a change may have happened, without regard to its sandbox.
    pub(crate) may: BTreeMap<LifecycleKind, UnixNanos>,
    /// What did happen, somewhere in the span.
    pub(crate) did: BTreeMap<LifecycleKind, Span>,
    /// As the runtime's status gave it.
    pub(crate) exit_code: Option<i32>,
    /// The last list that showed it so.
    pub(crate) last_listed: BTreeMap<ReportedState, Span>,
}

impl Life {
    pub(crate) fn is_gone(&self) -> bool {
        self.did.contains_key(&LifecycleKind::ContainerRemoved)
    }

    pub(crate) fn runs(&self) -> bool {
        self.did.contains_key(&LifecycleKind::ContainerStarted)
            && !self.did.contains_key(&LifecycleKind::ContainerDied)
            && !self.is_gone()
    }
}

/// All that is known of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) lives: BTreeMap<String, Life>,
    /// When a pod's first sandbox was asked for.
    pub(crate) asked_for: BTreeMap<String, UnixNanos>,
    /// Pods with a call that failed after it was issued: they may have subjects that nobody named.
    pub(crate) uncertain_pods: BTreeSet<String>,
    /// When the runtime was ended: its recovery may find containers dead.
    pub(crate) runtime_deaths: Vec<UnixNanos>,
    /// When something stood in the way of seeing: the runtime or `pleg` was down or stopped, or its
    /// events were taken. The end is absent while it lasts.
    pub(crate) disturbances: Vec<(UnixNanos, Option<UnixNanos>)>,
    /// Faults by kind.
    pub(crate) faults: BTreeMap<&'static str, u64>,
    /// Calls that succeeded and failed.
    pub(crate) calls: (u64, u64),
    /// Subjects that a list lacked and a later one had.
    pub(crate) reappeared: u64,
}

impl Record {
    pub(crate) fn exists(
        &mut self,
        kind: SubjectKind,
        id: &str,
        pod: &str,
        sandbox: &str,
        known: UnixNanos,
    ) -> &mut Life {
        let life = self.lives.entry(id.to_owned()).or_insert_with(|| Life {
            kind,
            pod: pod.to_owned(),
            sandbox: sandbox.to_owned(),
            known,
            may: BTreeMap::new(),
            did: BTreeMap::new(),
            exit_code: None,
            last_listed: BTreeMap::new(),
        });
        // A list may have shown it before the call that made it returned.
        life.known = life.known.min(known);
        life
    }

    /// From now on this may happen to the subject; to a sandbox's containers with it.
    pub(crate) fn may(&mut self, id: &str, kind: LifecycleKind) {
        let now = wall_clock();
        if let Some(life) = self.lives.get_mut(id) {
            life.may.entry(kind).or_insert(now);
        }
    }

    pub(crate) fn did(&mut self, id: &str, kind: LifecycleKind, span: Span) {
        if let Some(life) = self.lives.get_mut(id) {
            life.did.entry(kind).or_insert(span);
        }
    }

    pub(crate) fn exited(&mut self, id: &str, code: i32, span: Span) {
        self.did(id, LifecycleKind::ContainerDied, span);
        if let Some(life) = self.lives.get_mut(id) {
            life.exit_code.get_or_insert(code);
        }
    }

    /// A list of the whole node, which is true of some moment in the span.
    pub(crate) fn listed(
        &mut self,
        span: Span,
        sandboxes: &[PodSandbox],
        containers: &[Container],
    ) {
        let mut present = BTreeSet::new();
        for sandbox in sandboxes {
            present.insert(sandbox.id.as_str());
            let state = match sandbox.state() {
                PodSandboxState::SandboxReady => ReportedState::Running,
                PodSandboxState::SandboxNotready => ReportedState::Exited,
            };
            let uid = sandbox.metadata.as_ref().map_or("", |data| &data.uid);
            let id = &sandbox.id;
            self.exists(SubjectKind::Sandbox, id, uid, id, span.ended);
            self.sighted(id, state, span);
        }
        for container in containers {
            present.insert(container.id.as_str());
            let state = match container.state() {
                ContainerState::ContainerCreated => ReportedState::Created,
                ContainerState::ContainerRunning => ReportedState::Running,
                ContainerState::ContainerExited => ReportedState::Exited,
                ContainerState::ContainerUnknown => ReportedState::Unknown,
            };
            let sandbox = &container.pod_sandbox_id;
            let pod = self
                .lives
                .get(sandbox)
                .map_or_else(String::new, |life| life.pod.clone());
            self.exists(
                SubjectKind::Container,
                &container.id,
                &pod,
                sandbox,
                span.ended,
            );
            self.sighted(&container.id, state, span);
        }
        for (id, life) in &mut self.lives {
            if life.known < span.begun && !life.is_gone() && !present.contains(id.as_str()) {
                // The last list that has it is true of some moment after it was sent.
                let last = life.last_listed.values().map(|last| last.begun).max();
                let removal = Span {
                    begun: last.unwrap_or(life.known),
                    ended: span.ended,
                };
                life.did.insert(LifecycleKind::ContainerRemoved, removal);
            }
        }
    }

    fn sighted(&mut self, id: &str, state: ReportedState, span: Span) {
        let Some(life) = self.lives.get_mut(id) else {
            return;
        };
        let before = life.last_listed.values().map(|last| last.begun).max();
        let since = Span {
            begun: before.unwrap_or(life.known).min(span.begun),
            ended: span.ended,
        };
        if state == ReportedState::Running {
            let started = LifecycleKind::ContainerStarted;
            life.did.entry(started).or_insert(since);
        }
        if state == ReportedState::Exited {
            let died = LifecycleKind::ContainerDied;
            life.did.entry(died).or_insert(since);
        }
        if let Some(removal) = life.did.get(&LifecycleKind::ContainerRemoved)
            && removal.ended < span.begun
        {
            life.did.remove(&LifecycleKind::ContainerRemoved);
            self.reappeared += 1;
        }
        life.last_listed.insert(state, span);
    }

    /// From when on a change may have happened, its sandbox's fate and the runtime's deaths included.
    pub(crate) fn possible_from(&self, life: &Life, kind: LifecycleKind) -> Option<UnixNanos> {
        use LifecycleKind::{ContainerDied, ContainerRemoved, ContainerStarted};
        // Nobody knows which of its calls were carried out, and when.
        if self.uncertain_pods.contains(&life.pod) {
            return self.asked_for.get(&life.pod).copied();
        }
        let own = |kind| life.may.get(&kind).copied();
        let of_sandbox = |kind| {
            self.lives
                .get(&life.sandbox)
                .and_then(|sandbox| sandbox.may.get(&kind).copied())
        };
        let listed = life.did.get(&kind).map(|span| span.begun);
        match kind {
            // A removal is told as a death and a removal.
            ContainerDied => {
                let started = own(ContainerStarted);
                let recovery = self.runtime_deaths.iter().copied().find(|death| {
                    started.is_some_and(|started| *death >= started)
                        || life.kind == SubjectKind::Sandbox
                });
                [
                    own(ContainerDied),
                    own(ContainerRemoved),
                    of_sandbox(ContainerDied),
                    of_sandbox(ContainerRemoved),
                    recovery,
                    listed,
                ]
                .into_iter()
                .flatten()
                .min()
            }
            ContainerRemoved => [own(kind), of_sandbox(kind), listed]
                .into_iter()
                .flatten()
                .min(),
            ContainerStarted => [own(kind), listed].into_iter().flatten().min(),
            LifecycleKind::PodSync => None,
        }
    }

    /// Changes that are known to have happened.
    pub(crate) fn transitions(&self) -> usize {
        self.lives.values().map(|life| life.did.len()).sum()
    }

    pub(crate) fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }
}

/// The record as the node's drivers share it.
#[derive(Clone, Default)]
pub(crate) struct SharedRecord(Arc<Mutex<Record>>);

impl SharedRecord {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().expect("nobody panics while writing")
    }

    /// Notes a disturbance that lasts until the value is dropped.
    pub(crate) fn disturb(&self) -> Disturbance {
        let mut record = self.lock();
        record.disturbances.push((wall_clock(), None));
        Disturbance {
            record: self.clone(),
            number: record.disturbances.len() - 1,
        }
    }
}

/// A disturbance that lasts.
pub(crate) struct Disturbance {
    record: SharedRecord,
    number: usize,
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        if let Ok(mut record) = self.record.0.lock() {
            record.disturbances[self.number].1 = Some(wall_clock());
        }
    }
}
