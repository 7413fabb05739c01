//! What truly happened to one pod, and how an observer's account is held against it.
//!
//! A truth is built by a [`crate::story`] from what the driver did. It knows no runtime, no observer
//! and no source of news: a change is told rightly or it is not.

use std::time::Duration;

use pleg::lifecycle::{
    EventSubject, LifecycleEvent, LifecycleKind, PodIdentity, PodUid, SandboxId, SubjectId,
    UnixNanos,
};

use crate::driver::Span;

/// One change that a subject went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// `PodSync` never stands here.
    pub(crate) kind: LifecycleKind,
    /// For a container's death.
    pub(crate) exit_code: Option<i32>,
    /// It happened somewhere in here.
    pub(crate) span: Span,
}

/// One sandbox or container from its creation on.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) subject: EventSubject,
    /// The sandbox that it is, or is in.
    pub(crate) sandbox: SandboxId,
    pub(crate) created: Span,
    /// In the order Started, Died, Removed, those that happened.
    pub(crate) changes: Vec<Change>,
}

impl Life {
    pub(crate) fn is_past(&self, kind: LifecycleKind) -> bool {
        self.changes.iter().any(|change| change.kind >= kind)
    }
}

/// All that happened to one pod.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) pod: PodIdentity,
    pub(crate) lives: Vec<Life>,
}

/// What an observer can be expected to see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sight {
    /// Every change: it hears the runtime's events and none are lost.
    EveryChange,
    /// Phases that last at least this long: it polls, or events may be lost.
    PhasesOf(Duration),
}

/// One lifecycle event as an observer told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) pod: PodUid,
    pub(crate) subject: SubjectId,
    pub(crate) kind: LifecycleKind,
    pub(crate) exit_code: Option<i32>,
    /// When the observer told it.
    pub(crate) at: UnixNanos,
}

impl Told {
    /// What an event says that was delivered at this moment; a `PodSync` says nothing about what
    /// happened.
    pub(crate) fn from_event(event: &LifecycleEvent, at: UnixNanos) -> Option<Self> {
        if event.kind == LifecycleKind::PodSync {
            return None;
        }
        Some(Self {
            pod: event.pod.uid.clone(),
            subject: event.subject.as_ref()?.id(),
            kind: event.kind,
            exit_code: event.exit.as_ref().map(|exit| exit.exit_code),
            at,
        })
    }
}

impl Truth {
    /// Whether all that must be told about the pod has been: nothing more need be waited for.
    pub(crate) fn is_told(&self, told: &[Told], sight: Sight) -> bool {
        self.lives
            .iter()
            .all(|life| self.missing(life, told, sight).next().is_none())
    }

    /// What is wrong with an observer's account of this pod, one line each; other pods' events are
    /// passed over.
    pub(crate) fn discrepancies(&self, told: &[Told], sight: Sight) -> Vec<String> {
        let mut wrong = Vec::new();
        for event in self.of_pod(told) {
            if !self
                .lives
                .iter()
                .any(|life| life.subject.id() == event.subject)
            {
                wrong.push(format!("never existed: {event:?}"));
            }
        }
        for life in &self.lives {
            let account: Vec<&Told> = self.of_life(life, told).collect();
            for pair in account.windows(2) {
                if pair[0].kind >= pair[1].kind {
                    wrong.push(format!("repeated or out of order: {pair:?}"));
                }
            }
            for event in account {
                wrong.extend(mistake(life, event, sight));
            }
            for change in self.missing(life, told, sight) {
                wrong.push(format!("not told: {change:?} of {:?}", life.subject));
            }
        }
        wrong
    }

    fn of_pod<'a>(&'a self, told: &'a [Told]) -> impl Iterator<Item = &'a Told> {
        told.iter().filter(|event| event.pod == self.pod.uid)
    }

    fn of_life<'a>(&'a self, life: &Life, told: &'a [Told]) -> impl Iterator<Item = &'a Told> {
        let id = life.subject.id();
        self.of_pod(told).filter(move |event| event.subject == id)
    }

    fn missing<'a>(
        &'a self,
        life: &'a Life,
        told: &'a [Told],
        sight: Sight,
    ) -> impl Iterator<Item = &'a Change> {
        life.changes.iter().filter(move |change| {
            must_be_told(life, change, sight)
                && !self
                    .of_life(life, told)
                    .any(|event| event.kind == change.kind)
        })
    }
}

/// Deaths and removals of a subject that was ever seen are always told; it may go unseen only if it
/// came and went, and its running only if it was over, between two looks.
fn must_be_told(life: &Life, change: &Change, sight: Sight) -> bool {
    let Sight::PhasesOf(shortest) = sight else {
        return true;
    };
    let removal = life
        .changes
        .iter()
        .find(|c| c.kind == LifecycleKind::ContainerRemoved);
    if removal.is_some_and(|removal| between(life.created, removal.span) < shortest) {
        return false;
    }
    let next = life.changes.iter().find(|c| c.kind > change.kind);
    change.kind != LifecycleKind::ContainerStarted
        || next.is_none_or(|next| between(change.span, next.span) >= shortest)
}

/// What is wrong with one event about this subject, if anything.
fn mistake(life: &Life, event: &Told, sight: Sight) -> Option<String> {
    let Some(change) = told_change(life, event.kind) else {
        return Some(format!("never happened: {event:?}"));
    };
    if event.at < change.span.begun {
        return Some(format!("told before it happened, {change:?}: {event:?}"));
    }
    let EventSubject::Container { .. } = life.subject else {
        return None;
    };
    let unread = event.exit_code.is_none() && dead_for_less_than(life, sight);
    (event.exit_code != change.exit_code && !unread)
        .then(|| format!("wrong exit code, {change:?}: {event:?}"))
}

/// The change that an event of this kind tells. What is removed without having ended is told as dead
/// and removed.
fn told_change(life: &Life, kind: LifecycleKind) -> Option<&Change> {
    let of_kind = |kind| life.changes.iter().find(move |change| change.kind == kind);
    match kind {
        LifecycleKind::ContainerDied => {
            of_kind(kind).or_else(|| of_kind(LifecycleKind::ContainerRemoved))
        }
        _ => of_kind(kind),
    }
}

/// Whether the subject was removed before an observer could read how it had ended.
fn dead_for_less_than(life: &Life, sight: Sight) -> bool {
    let Sight::PhasesOf(shortest) = sight else {
        return false;
    };
    let span_of = |kind| Some(life.changes.iter().find(|change| change.kind == kind)?.span);
    match (
        span_of(LifecycleKind::ContainerDied),
        span_of(LifecycleKind::ContainerRemoved),
    ) {
        (Some(death), Some(removal)) => between(death, removal) < shortest,
        _ => false,
    }
}

/// The shortest time that can lie between two changes, of which only the spans are known: an observer
/// is held to no more.
fn between(earlier: Span, later: Span) -> Duration {
    let nanos = later.begun.0.saturating_sub(earlier.ended.0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use LifecycleKind::{ContainerDied, ContainerRemoved, ContainerStarted};

    fn second(second: i64) -> Span {
        Span {
            begun: UnixNanos(second * 1_000_000_000),
            ended: UnixNanos(second * 1_000_000_000 + 1_000_000),
        }
    }

    /// A container that was created in second 0 and then started, died with 7 and removed.
    fn truth(started: i64, died: i64, removed: i64) -> Truth {
        let change = |kind, exit_code, at| Change {
            kind,
            exit_code,
            span: second(at),
        };
        Truth {
            pod: PodIdentity {
                uid: "pod".into(),
                namespace: "default".into(),
                name: "pod".into(),
            },
            lives: vec![Life {
                subject: EventSubject::Container {
                    id: "app".into(),
                    name: "app".into(),
                    attempt: 0,
                },
                sandbox: "sandbox".into(),
                created: second(0),
                changes: vec![
                    change(ContainerStarted, None, started),
                    change(ContainerDied, Some(7), died),
                    change(ContainerRemoved, None, removed),
                ],
            }],
        }
    }

    fn told(kind: LifecycleKind, exit_code: Option<i32>, at: i64) -> Told {
        Told {
            pod: "pod".into(),
            subject: SubjectId::Container("app".into()),
            kind,
            exit_code,
            at: second(at).ended,
        }
    }

    const POLLING: Sight = Sight::PhasesOf(Duration::from_secs(3));

    #[test]
    fn a_full_account_is_right() {
        let account = [
            told(ContainerStarted, None, 1),
            told(ContainerDied, Some(7), 2),
            told(ContainerRemoved, None, 3),
        ];
        let truth = truth(1, 2, 3);
        assert!(truth.is_told(&account, Sight::EveryChange));
        assert_eq!(truth.discrepancies(&account, Sight::EveryChange), [""; 0]);
    }

    #[test]
    fn a_poller_may_miss_a_short_run_and_a_listener_may_not() {
        let account = [
            told(ContainerDied, Some(7), 9),
            told(ContainerRemoved, None, 9),
        ];
        let truth = truth(1, 2, 8);
        assert_eq!(truth.discrepancies(&account, POLLING), [""; 0]);
        assert_eq!(truth.discrepancies(&account, Sight::EveryChange).len(), 1);
    }

    #[test]
    fn nobody_may_miss_a_long_run() {
        let account = [
            told(ContainerDied, Some(7), 9),
            told(ContainerRemoved, None, 9),
        ];
        assert!(!truth(1, 6, 8).is_told(&account, POLLING));
    }

    #[test]
    fn a_poller_may_miss_what_came_and_went_but_not_lie_about_it() {
        let truth = truth(1, 1, 2);
        assert!(truth.is_told(&[], POLLING));
        assert!(!truth.is_told(&[], Sight::EveryChange));
        let lie = [told(ContainerDied, Some(0), 2)];
        assert_eq!(truth.discrepancies(&lie, POLLING).len(), 1);
    }

    #[test]
    fn repetitions_reversals_ghosts_and_prophecies_are_found() {
        let truth = truth(1, 5, 9);
        let wrong = |account: &[Told]| {
            let found = truth.discrepancies(account, Sight::EveryChange);
            found
                .iter()
                .filter(|line| !line.starts_with("not told"))
                .count()
        };
        let started = told(ContainerStarted, None, 1);
        let died = told(ContainerDied, Some(7), 5);
        assert_eq!(wrong(&[started.clone(), started.clone()]), 1);
        assert_eq!(wrong(&[died.clone(), started]), 1);
        assert_eq!(wrong(&[told(ContainerDied, Some(7), 4)]), 1);
        let ghost = Told {
            subject: SubjectId::Container("ghost".into()),
            ..died
        };
        assert_eq!(wrong(&[ghost]), 1);
    }
}
