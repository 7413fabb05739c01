//! A snapshot: the present phase of everything, as events, such that what follows in the feed neither
//! repeats it nor leaves a gap.
//!
//! The cache is written before the feed is told, so it may be ahead: a death waits in the engine for
//! its exit code while the cache shows the phase. A subject that is present is therefore told as far
//! as the feed has told it, and the rest follows in its time. The cache alone speaks for what the feed
//! cannot say: a subject that stepped back, which the feed tells by `PodSync` only.
//!
//! A state that the runtime does not know hides a phase and ends none: no event tells when the phase
//! shows again, so the snapshot tells it as far as the feed did.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::subject_of;
use crate::cache::Cached;
use crate::lifecycle::{
    EventSubject, Exit, LifecycleEvent, LifecycleKind, PodContainer, PodSandbox, PodStatus,
    ReportedState, Source, SubjectId, UnixNanos,
};

/// The last event that was delivered of each subject that is not gone.
pub(super) type Delivered = BTreeMap<SubjectId, Arc<LifecycleEvent>>;

/// What a subscription begins with.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// One initial event for each subject that runs or has ended, by revision.
    pub(super) events: Vec<Arc<LifecycleEvent>>,
    /// Subjects that the feed has not told of, but the snapshot has.
    pub(super) told_ahead: ToldAhead,
}

/// Subjects of which a snapshot told more than the feed had, and how far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldAhead(BTreeMap<SubjectId, LifecycleKind>);

impl ToldAhead {
    /// Whether an event tells nothing that the snapshot has not. To be asked of each event that
    /// follows the snapshot, in order.
    pub fn has_told(&mut self, event: &LifecycleEvent) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Some(subject) = subject_of(event) else {
            return false;
        };
        let Some(told) = self.0.get(&subject) else {
            return false;
        };
        if event.kind <= *told {
            return true;
        }
        self.0.remove(&subject);
        false
    }
}

impl Snapshot {
    /// Compares what was delivered with what the cache shows now, at least as new.
    pub(super) fn take(delivered: &Delivered, pods: &[Cached], seen_at: UnixNanos) -> Self {
        let mut events = Vec::new();
        let mut told_ahead = ToldAhead::default();
        let shown = pods
            .iter()
            .flat_map(|cached| subjects(&cached.status, seen_at));
        for Shown {
            id,
            event,
            is_hidden,
        } in shown
        {
            // Nothing to tell of what is only created.
            let Some(event) = event else { continue };
            match delivered.get(&id) {
                // The feed is as far, or will be.
                Some(last) if last.kind <= event.kind => events.push(initial(last)),
                // What the feed has not told, nobody knows.
                _ if is_hidden => {}
                // It stepped back.
                Some(_) => events.push(Arc::new(event)),
                None if is_complete(&event) => {
                    told_ahead.0.insert(id, event.kind);
                    events.push(Arc::new(event));
                }
                // The feed will tell it once its exit is known.
                None => {}
            }
        }
        events.sort_by_key(|event| event.revision);
        Self { events, told_ahead }
    }
}

fn initial(last: &LifecycleEvent) -> Arc<LifecycleEvent> {
    Arc::new(LifecycleEvent {
        initial: true,
        ..last.clone()
    })
}

/// A subject as the cache shows it.
struct Shown {
    id: SubjectId,
    /// What tells its phase.
    event: Option<LifecycleEvent>,
    /// The runtime does not know the phase, which is then the furthest that it can be.
    is_hidden: bool,
}

/// A pod's subjects as the cache shows them.
fn subjects(status: &PodStatus, seen_at: UnixNanos) -> impl Iterator<Item = Shown> {
    let sandboxes = status.sandboxes.iter().map(move |sandbox| {
        let event = told_by(sandbox.state, false)
            .map(|kind| initial_event(status, kind, sandbox_subject(sandbox), None, seen_at));
        Shown {
            id: SubjectId::Sandbox(sandbox.id.clone()),
            event,
            is_hidden: sandbox.state == ReportedState::Unknown,
        }
    });
    let containers = status.containers.iter().map(move |container| {
        let has_ended = container.exit_code.is_some();
        let event = told_by(container.state, has_ended).map(|kind| {
            let exit = (kind == LifecycleKind::ContainerDied)
                .then(|| exit_of(container))
                .flatten();
            initial_event(status, kind, container_subject(container), exit, seen_at)
        });
        Shown {
            id: SubjectId::Container(container.id.clone()),
            event,
            is_hidden: container.state == ReportedState::Unknown,
        }
    });
    sandboxes.chain(containers)
}

/// What tells of a state; of one that is not known, the most that can have been told of what it hides.
fn told_by(state: ReportedState, has_ended: bool) -> Option<LifecycleKind> {
    match state {
        ReportedState::Created => None,
        ReportedState::Unknown if has_ended => Some(LifecycleKind::ContainerDied),
        ReportedState::Running | ReportedState::Unknown => Some(LifecycleKind::ContainerStarted),
        ReportedState::Exited => Some(LifecycleKind::ContainerDied),
    }
}

/// Whether nothing is missing: a container's death has its exit code.
fn is_complete(event: &LifecycleEvent) -> bool {
    event.kind != LifecycleKind::ContainerDied
        || event.exit.is_some()
        || matches!(event.subject, Some(EventSubject::Sandbox { .. }))
}

fn initial_event(
    status: &PodStatus,
    kind: LifecycleKind,
    subject: EventSubject,
    exit: Option<Exit>,
    seen_at: UnixNanos,
) -> LifecycleEvent {
    LifecycleEvent {
        kind,
        revision: status.revision,
        pod: status.pod.clone(),
        subject: Some(subject),
        exit,
        source: Source::Relist,
        initial: true,
        runtime_stamp: None,
        seen_at,
        born: status.revision,
    }
}

fn sandbox_subject(sandbox: &PodSandbox) -> EventSubject {
    EventSubject::Sandbox {
        id: sandbox.id.clone(),
        attempt: sandbox.attempt,
    }
}

fn container_subject(container: &PodContainer) -> EventSubject {
    EventSubject::Container {
        id: container.id.clone(),
        name: Arc::clone(&container.name),
        attempt: container.attempt,
    }
}

fn exit_of(container: &PodContainer) -> Option<Exit> {
    container.exit_code.map(|exit_code| Exit {
        exit_code,
        reason: Arc::clone(&container.reason),
        finished_at: container.finished_at,
    })
}
