//! One stream message by itself: whom it is about, what its snapshot says of that subject, and whether
//! the two agree. Nothing here remembers anything.

use super::habits::Habits;
use crate::lifecycle::{
    ContainerStatus, EventKind, Phase, ReportedState, RuntimeEvent, SandboxStatus, SubjectId,
    SubjectKind,
};

/// The part of a message's snapshot that is about the message's own subject.
#[derive(Clone, Copy, Debug)]
pub(super) enum Own<'a> {
    Sandbox(&'a SandboxStatus),
    Container(&'a ContainerStatus),
    /// None came.
    Absent,
}

impl Own<'_> {
    pub(super) fn state(self) -> Option<ReportedState> {
        match self {
            Self::Sandbox(status) => Some(status.state),
            Self::Container(status) => Some(status.state),
            Self::Absent => None,
        }
    }
}

/// Whom the message is about. Without a status of its own subject only memory tells: `known` looks an
/// id up. What comes with its sandbox's status and is not that sandbox is a container.
pub(super) fn subject_of(
    event: &RuntimeEvent,
    known: impl FnOnce(&str) -> Option<SubjectId>,
) -> Option<(SubjectId, Own<'_>)> {
    if event.id.is_empty() {
        return None;
    }
    if let Some(sandbox) = &event.sandbox
        && sandbox.id.as_str() == &*event.id
    {
        return Some((
            SubjectId::Sandbox(sandbox.id.clone()),
            Own::Sandbox(sandbox),
        ));
    }
    let own = |status: &&ContainerStatus| status.id.as_str() == &*event.id;
    if let Some(status) = event.containers.iter().find(own) {
        let subject = SubjectId::Container(status.id.clone());
        return Some((subject, Own::Container(status)));
    }
    let with_sandbox = || {
        let id = SubjectId::Container(event.id.as_ref().into());
        event.sandbox.as_ref().map(|_| id)
    };
    let subject = known(&event.id).or_else(with_sandbox)?;
    Some((subject, Own::Absent))
}

/// Whether the snapshot denies what the message says. Being ahead of it is no denial: snapshots are
/// taken when the message is made, after the change.
pub(super) fn contradicts(kind: EventKind, subject: SubjectKind, own: Own<'_>) -> bool {
    let least = match kind {
        EventKind::Created | EventKind::Other(_) => Phase::Created,
        EventKind::Started => Phase::Running,
        EventKind::Stopped => Phase::Exited,
        // Of a sandbox that is being deleted, containerd 2 shows the last state.
        EventKind::Deleted if subject == SubjectKind::Sandbox => {
            return own
                .state()
                .is_some_and(|state| state != ReportedState::Exited);
        }
        EventKind::Deleted => return own.state().is_some(),
    };
    own.state().is_some_and(|state| state.phase() < Some(least))
}

/// Whether the message lacks a status that this runtime usually gives.
pub(super) fn lacks_snapshot(
    event: &RuntimeEvent,
    subject: SubjectKind,
    own: Own<'_>,
    habits: Habits,
) -> bool {
    if event.sandbox.is_none() {
        return !habits.omits_sandbox(subject, event.kind);
    }
    let is_listed_no_more = event.kind == EventKind::Deleted && subject == SubjectKind::Container;
    matches!(own, Own::Absent) && !is_listed_no_more
}
