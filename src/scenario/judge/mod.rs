//! The judge: whether what was told, shown and answered is lawful, held against what really happened.
//!
//! Its laws are those that must always hold (told once, completely and not before it happened; cache
//! first; no way back; honest freshness; at rest the cache is the runtime). It looks at the trace, at
//! what each subscriber heard and at the runtime's own history, and shares no code with the engine
//! that it judges. Pure. Of pods of which the runtime itself said false things it asks less: that
//! nothing is told twice, and that at rest nothing is missing.

mod trail;
mod truth;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::trail::Trail;
use self::truth::Life;
pub(super) use self::truth::Truth;
use super::trace::TraceEntry;
use crate::lifecycle::{LifecycleEvent, LifecycleKind, Mono, Phase, PodStatus, SubjectId};

pub(super) const CONVERGED: &str = "at rest the cache shows what the runtime has";
pub(super) const ONCE: &str = "each thing is told once, and in order";
pub(super) const COMPLETE: &str = "at rest each subject's last event tells its phase";
pub(super) const TRUE: &str = "nothing is told before it has happened, nor otherwise than it was";
pub(super) const CACHE_FIRST: &str = "the cache is written first";
pub(super) const FORWARD: &str = "what is shown of a subject never goes back";
pub(super) const HONEST: &str = "an answer is not behind its mark, nor ahead of its moment";
pub(super) const VOUCHED: &str = "the read that an answer rests on began at or after the mark";

/// Everything that is judged.
pub(super) struct Account<'a> {
    pub(super) truth: &'a Truth,
    pub(super) entries: &'a [TraceEntry],
    pub(super) subscribers: &'a [Told],
    /// Where the cache shows something else than the runtime has: what that has, and what is shown.
    pub(super) differs: Option<(String, String)>,
    pub(super) now: Mono,
}

/// What one subscriber was told by the present generator.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) name: String,
    /// How many entries the trace had when it subscribed.
    pub(super) since: usize,
    /// Whether it was to be told of what was there already.
    pub(super) with_snapshot: bool,
    /// Whether all that it was to be told has been taken by it.
    pub(super) is_awake: bool,
    /// How many subjects came and went while it was behind.
    pub(super) folded_whole: u64,
    pub(super) heard: Vec<(Mono, Arc<LifecycleEvent>)>,
}

/// What was not lawful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unlawful {
    pub(super) at: Mono,
    pub(super) law: &'static str,
    pub(super) subject: Option<SubjectId>,
    pub(super) what: String,
}

impl Unlawful {
    fn new(at: Mono, law: &'static str, subject: Option<&SubjectId>, what: String) -> Self {
        Self {
            at,
            law,
            subject: subject.cloned(),
            what,
        }
    }
}

/// What was not lawful, law by law.
pub(super) fn judge(account: &Account<'_>) -> Vec<Unlawful> {
    let mut found = Vec::new();
    if let Some((has, shows)) = &account.differs {
        let what = format!("the runtime has {has}; the cache shows {shows}");
        found.push(Unlawful::new(account.now, CONVERGED, None, what));
    }
    let trail = Trail::follow(account.truth, account.entries, &mut found);
    for told in account.subscribers {
        once(told, &mut found);
        truly(account.truth, told, &mut found);
        if told.is_awake {
            completely(account, &trail, told, &mut found);
        }
    }
    found
}

fn subject_of(event: &LifecycleEvent) -> Option<SubjectId> {
    match event.kind {
        LifecycleKind::PodSync => None,
        _ => event
            .subject
            .as_ref()
            .map(crate::lifecycle::EventSubject::id),
    }
}

/// Each subject's last event.
fn last_told(told: &Told) -> BTreeMap<SubjectId, LifecycleKind> {
    let events = told.heard.iter();
    events
        .filter_map(|(_, event)| Some((subject_of(event)?, event.kind)))
        .collect()
}

fn once(told: &Told, found: &mut Vec<Unlawful>) {
    let mut last: BTreeMap<SubjectId, LifecycleKind> = BTreeMap::new();
    for (at, event) in &told.heard {
        let Some(subject) = subject_of(event) else {
            continue;
        };
        let before = last.insert(subject.clone(), event.kind);
        if let Some(before) = before.filter(|before| *before >= event.kind) {
            let what = format!("{} was told {} after {before}", told.name, event.kind);
            found.push(Unlawful::new(*at, ONCE, Some(&subject), what));
        }
    }
}

fn phase_of(kind: LifecycleKind) -> Option<Phase> {
    match kind {
        LifecycleKind::ContainerStarted => Some(Phase::Running),
        LifecycleKind::ContainerDied => Some(Phase::Exited),
        LifecycleKind::ContainerRemoved => Some(Phase::Removed),
        LifecycleKind::PodSync => None,
    }
}

/// Nothing that had not happened, and each death with its own exit code.
fn truly(truth: &Truth, told: &Told, found: &mut Vec<Unlawful>) {
    for (at, event) in &told.heard {
        let (Some(subject), Some(phase)) = (subject_of(event), phase_of(event.kind)) else {
            continue;
        };
        if truth.is_lied_about(&event.pod.uid) {
            continue;
        }
        let life = truth.life(&subject);
        let was = life.and_then(|life| life.by(*at));
        if was < Some(phase) {
            let was = was.map_or("not there".to_owned(), |was| was.to_string());
            let what = format!("{} was told {} while it was {was}", told.name, event.kind);
            found.push(Unlawful::new(*at, TRUE, Some(&subject), what));
        }
        let code = life.and_then(|life| life.exit_code);
        if let (Some(exit), Some(code)) = (&event.exit, code)
            && exit.exit_code != code
        {
            let what = format!(
                "{} was told exit code {} of {code}",
                told.name, exit.exit_code
            );
            found.push(Unlawful::new(*at, TRUE, Some(&subject), what));
        }
    }
}

/// The last event of each subject tells how far it has come.
fn completely(account: &Account<'_>, trail: &Trail, told: &Told, found: &mut Vec<Unlawful>) {
    let last = last_told(told);
    for (subject, life) in account.truth.lives() {
        if life.is_unknown() {
            continue;
        }
        let lied = account.truth.is_lied_about(&life.uid);
        let before = trail.shown_before(subject, told.since);
        let was_there = before.is_some_and(|phase| phase != Phase::Removed);
        let is_known = was_there || trail.is_shown_since(subject, told.since);
        let (owed, may_be_silent) = match life.now() {
            Some(Phase::Running) => (Some(LifecycleKind::ContainerStarted), false),
            Some(Phase::Exited) => (Some(LifecycleKind::ContainerDied), false),
            Some(Phase::Removed) if is_known => (
                Some(LifecycleKind::ContainerRemoved),
                // What was gone before, and is shown again by a lie, had been told to others.
                !was_there && (told.folded_whole > 0 || (lied && before.is_some())),
            ),
            None | Some(Phase::Created | Phase::Removed) => (None, true),
        };
        let got = last.get(subject).copied();
        let is_told_all = got == owed
            || (got.is_none() && may_be_silent)
            || (lied && (got > owed || is_told_to_look(told, life)))
            // It was told of nothing that was so before it came.
            || (got.is_none() && !told.with_snapshot && before.is_some() && before == life.now());
        if !is_told_all {
            let word = |kind: Option<LifecycleKind>| {
                kind.map_or("nothing".into(), |kind| kind.to_string())
            };
            let what = format!(
                "{} was last told {}, not {}",
                told.name,
                word(got),
                word(owed)
            );
            found.push(Unlawful::new(account.now, COMPLETE, Some(subject), what));
        }
    }
}

/// Whether a `PodSync` came after a subject's last change: what is owed of one that stepped back.
fn is_told_to_look(told: &Told, life: &Life) -> bool {
    let mut events = told.heard.iter();
    events.any(|(at, event)| {
        event.kind == LifecycleKind::PodSync
            && event.pod.uid == life.uid
            && *at >= life.last_change()
    })
}

/// How far a status shows each subject, and those whose state the runtime did not know.
fn phases(status: &PodStatus) -> Vec<(SubjectId, Option<Phase>)> {
    let sandboxes = status.sandboxes.iter().map(|sandbox| {
        (
            SubjectId::Sandbox(sandbox.id.clone()),
            sandbox.state.phase(),
        )
    });
    let containers = status.containers.iter().map(|container| {
        (
            SubjectId::Container(container.id.clone()),
            container.state.phase(),
        )
    });
    sandboxes.chain(containers).collect()
}
