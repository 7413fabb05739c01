//! What lists, statuses and snapshots prove: which events must have been sent.
//!
//! A list proves by its window, as law 2 has it: what it lacks was not there at some moment since it was
//! sent, so what a later list shows was made in between; what it shows further than the list before it
//! has come there in between; what is gone has ended and been removed. Nothing is proven by the first
//! list but where everything stood, nothing by a list that failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Auditor;
use super::message::Own;
use super::trail::Trail;
use crate::engine::{Failure, FailureKind, Inspection, KEEP, SETTLE};
use crate::lifecycle::{
    ContainerStatus, EventKind, Knowledge, Mono, NodeList, Phase, ReportedState, SandboxId,
    SeqPoint, SubjectId, SubjectKind, Verdict, Window,
};

/// One list's view, for all its items.
struct View<'a> {
    window: Window,
    /// Everything stands where it stood when judging began.
    is_first: bool,
    sandboxes: &'a BTreeSet<SandboxId>,
}

impl Auditor {
    pub(super) fn listed(&mut self, answer: Result<NodeList, Failure>, seen: SeqPoint) {
        let Some((begun, moment)) = self.list_asked.take() else {
            return;
        };
        let list = match answer {
            Ok(list) => list,
            Err(failure) => {
                self.list_failure = Some(failure);
                return;
            }
        };
        self.counts.lists += 1;
        let is_first = self.covered.is_none();
        let is_whole = begun.is_past(self.stream.whole_since, SETTLE);
        if self.stream.asked.is_none() || (is_first && !is_whole) {
            return;
        }
        let unreadable: BTreeSet<Arc<str>> = (list.sandboxes.unreadable.iter())
            .chain(&list.containers.unreadable)
            .cloned()
            .collect();
        if is_first {
            self.covered = Some(moment);
            self.unreadable.clone_from(&unreadable);
        }
        let sandboxes: BTreeSet<SandboxId> = (list.sandboxes.items.iter())
            .map(|sandbox| sandbox.id.clone())
            .collect();
        let view = View {
            window: Window { begun, seen },
            is_first,
            sandboxes: &sandboxes,
        };
        let mut present = BTreeSet::new();
        for sandbox in list.sandboxes.items {
            let id = SubjectId::Sandbox(sandbox.id);
            self.shown(&id, sandbox.state, None, &view);
            present.insert(id);
        }
        for container in list.containers.items {
            let id = SubjectId::Container(container.id);
            self.shown(&id, container.state, container.sandbox, &view);
            present.insert(id);
        }
        let absent: Vec<SubjectId> = (self.trails.keys())
            .filter(|id| !present.contains(id) && !unreadable.contains(id.as_str()))
            .cloned()
            .collect();
        for id in absent {
            self.lacked(&id, &view);
        }
        self.forget(seen.at);
    }

    fn shown(
        &mut self,
        id: &SubjectId,
        state: ReportedState,
        sandbox: Option<SandboxId>,
        view: &View<'_>,
    ) {
        let seen = view.window.seen.at;
        let knowledge = || Trail::new(Knowledge::from_read(state, view.window));
        let trail = self.trails.entry(id.clone()).or_insert_with(knowledge);
        trail.sandbox = sandbox.or(trail.sandbox.take());
        if trail.knowledge.hear_read(state, view.window, SETTLE) == Verdict::SteppedBack {
            trail.doubt();
        }
        if view.is_first {
            // What is Unknown may be anywhere, but it is there.
            trail.before = Some(state.phase().unwrap_or(Phase::Exited));
            return;
        }
        if state == ReportedState::Exited && id.kind() == SubjectKind::Sandbox && trail.is_blank() {
            // A sandbox whose network failed stays behind like this, and no event ever tells of it.
            trail.doubt();
        }
        if trail.before.is_none() && !self.unreadable.contains(id.as_str()) {
            trail.prove(EventKind::Created, seen);
        }
        match state {
            ReportedState::Running => trail.prove(EventKind::Started, seen),
            ReportedState::Exited if trail.ran() => trail.prove(EventKind::Stopped, seen),
            // A start that failed makes no event, and one that a list did not see looks the same.
            ReportedState::Exited if !trail.never_ran && !trail.doubted => {
                if let SubjectId::Container(id) = id {
                    self.wanted.insert(id.clone());
                }
            }
            ReportedState::Exited | ReportedState::Created | ReportedState::Unknown => {}
        }
    }

    fn lacked(&mut self, id: &SubjectId, view: &View<'_>) {
        let Some(trail) = self.trails.get_mut(id) else {
            return;
        };
        trail.knowledge.hear_absence(view.window, SETTLE);
        if trail.knowledge.removal_proven().is_none() {
            return;
        }
        if view.is_first {
            self.trails.remove(id);
            return;
        }
        if trail.is_proven(EventKind::Deleted) {
            return;
        }
        let seen = view.window.seen.at;
        if let Some(sandbox) = &trail.sandbox {
            trail.went_with_sandbox |= !view.sandboxes.contains(sandbox);
        }
        if trail.ran() && !trail.is_proven(EventKind::Stopped) {
            trail.end_inferred = true;
            trail.prove(EventKind::Stopped, seen);
        }
        trail.prove(EventKind::Deleted, seen);
        if let SubjectId::Container(id) = id {
            self.wanted.remove(id);
        }
    }

    /// Books and drops what is gone for so long that nothing of it can still come.
    fn forget(&mut self, now: Mono) {
        let is_over = |_: &SubjectId, trail: &mut Trail| {
            let removed = trail.knowledge.removal_proven();
            removed.is_some_and(|removed| now.since(removed.at) >= KEEP)
        };
        let over: Vec<_> = self.trails.extract_if(.., is_over).collect();
        for (id, trail) in over {
            self.settle(&id, &trail);
        }
    }

    pub(super) fn inspected(&mut self, inspection: Inspection, now: Mono) {
        for (id, answer) in inspection.containers {
            self.wanted.remove(&id);
            let Some(trail) = self.trails.get_mut(&SubjectId::Container(id)) else {
                continue;
            };
            match answer {
                Ok(status) => learn_from_status(trail, &status, now),
                // The next list wants it again, unless it is gone.
                Err(failure) => trail.never_ran |= failure.kind == FailureKind::NotFound,
            }
        }
    }

    /// A message is evidence too: of its own change, and of those that its snapshot shows.
    pub(super) fn learn_from_message(
        &mut self,
        id: &SubjectId,
        own: Own<'_>,
        kind: EventKind,
        is_new: bool,
        now: Mono,
    ) {
        let Some(covered) = self.covered else { return };
        let covered = self.by_todays_clock(covered);
        let Some(trail) = self.trails.get_mut(id) else {
            return;
        };
        let created = match own {
            Own::Sandbox(status) => status.created_at,
            Own::Container(status) => status.created_at,
            Own::Absent => None,
        };
        if is_new && created.is_some_and(|created| created >= covered) {
            trail.prove(EventKind::Created, now);
        }
        trail.prove(kind, now);
        match own {
            Own::Container(status) => learn_from_status(trail, status, now),
            Own::Sandbox(status) if status.state == ReportedState::Running => {
                trail.prove(EventKind::Started, now);
            }
            Own::Sandbox(_) | Own::Absent => {
                // Only what has been ready is told to be so no more.
                let has_run = kind == EventKind::Stopped && id.kind() == SubjectKind::Sandbox;
                if has_run && trail.is_proven(EventKind::Created) {
                    trail.prove(EventKind::Started, now);
                }
            }
        }
    }
}

fn learn_from_status(trail: &mut Trail, status: &ContainerStatus, now: Mono) {
    let has_ended = status.state == ReportedState::Exited;
    if status.started_at.is_none() {
        trail.never_ran |= has_ended;
        return;
    }
    trail.prove(EventKind::Started, now);
    if has_ended {
        trail.prove(EventKind::Stopped, now);
    }
}
