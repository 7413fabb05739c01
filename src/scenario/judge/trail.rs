//! The trace read from beginning to end: what was shown of each subject and when, and what may be
//! judged on the way (the cache first, no way back, honest answers).

use std::collections::{BTreeMap, BTreeSet};

use super::{CACHE_FIRST, FORWARD, HONEST, Truth, Unlawful, VOUCHED, phase_of, phases, subject_of};
use crate::engine::{Input, Output, ReaderId, Reading};
use crate::lifecycle::{LifecycleEvent, Mark, Mono, Phase, PodUid, SubjectId};
use crate::scenario::trace::{TraceEntry, TracedInput};

/// What was shown, by the present generator alone.
#[derive(Default)]
pub(super) struct Trail {
    /// How far each subject was published to have come, and at which entry.
    shown: BTreeMap<SubjectId, Vec<(usize, Phase)>>,
    /// Entries at which a full relist showed it.
    listed: BTreeMap<SubjectId, Vec<usize>>,
    present: BTreeMap<PodUid, BTreeSet<SubjectId>>,
    readers: BTreeMap<ReaderId, (PodUid, Mark)>,
}

impl Trail {
    pub(super) fn follow(truth: &Truth, entries: &[TraceEntry], found: &mut Vec<Unlawful>) -> Self {
        let mut trail = Self::default();
        for (number, entry) in entries.iter().enumerate() {
            let at = entry.now.mono;
            match &entry.input {
                TracedInput::Input(Input::Start) => trail = Self::default(),
                TracedInput::Input(Input::Read {
                    reader,
                    uid,
                    newer_than,
                    ..
                }) => {
                    trail.readers.insert(*reader, (uid.clone(), *newer_than));
                }
                TracedInput::Relisted { change, .. } => {
                    let sandboxes = change.changed.sandboxes.items.iter();
                    // One without labels, in a sandbox that was not there yet when sandboxes were
                    // listed, is nobody's: nothing can be told of it.
                    let containers = change.changed.containers.items.iter();
                    let containers = containers.filter(|item| item.pod.is_some());
                    let ids = sandboxes
                        .map(|item| SubjectId::Sandbox(item.id.clone()))
                        .chain(containers.map(|item| SubjectId::Container(item.id.clone())));
                    for id in ids {
                        trail.listed.entry(id).or_default().push(number);
                    }
                }
                TracedInput::Input(_) => {}
            }
            for output in &entry.outputs {
                match output {
                    Output::Publish { uid, status, .. } => {
                        let shown = status.as_deref().map(phases).unwrap_or_default();
                        trail.publish(truth, number, at, uid, &shown, found);
                    }
                    Output::Deliver(event) => trail.deliver(at, event, found),
                    Output::Answer { reader, reading } => {
                        if let Some((uid, mark)) = trail.readers.remove(reader) {
                            answer(truth, at, &uid, mark, reading, found);
                        }
                    }
                    _ => {}
                }
            }
        }
        trail
    }

    /// How far a subject had been shown before that entry.
    pub(super) fn shown_before(&self, subject: &SubjectId, entry: usize) -> Option<Phase> {
        let shown = self.shown.get(subject)?.iter();
        shown
            .take_while(|(at, _)| *at < entry)
            .last()
            .map(|(_, phase)| *phase)
    }

    /// Whether a subject was shown or listed at that entry or after it.
    pub(super) fn is_shown_since(&self, subject: &SubjectId, entry: usize) -> bool {
        let shown = self.shown.get(subject).into_iter().flatten();
        let mut shown = shown.filter(|(_, phase)| *phase != Phase::Removed);
        let mut listed = self.listed.get(subject).into_iter().flatten();
        shown.any(|(at, _)| *at >= entry) || listed.any(|at| *at >= entry)
    }

    fn reached(&self, subject: &SubjectId) -> Option<Phase> {
        let (_, phase) = self.shown.get(subject)?.last()?;
        Some(*phase)
    }

    fn publish(
        &mut self,
        truth: &Truth,
        entry: usize,
        at: Mono,
        uid: &PodUid,
        shown: &[(SubjectId, Option<Phase>)],
        found: &mut Vec<Unlawful>,
    ) {
        let now: BTreeSet<_> = shown.iter().map(|(subject, _)| subject.clone()).collect();
        let before = self
            .present
            .insert(uid.clone(), now.clone())
            .unwrap_or_default();
        for gone in before.difference(&now) {
            let shown = self.shown.entry(gone.clone()).or_default();
            shown.push((entry, Phase::Removed));
        }
        for (subject, phase) in shown {
            let reached = self.reached(subject);
            // Unknown is no phase: it is there, as far as it was.
            let Some(phase) = phase.or(reached.filter(|phase| *phase != Phase::Removed)) else {
                self.shown
                    .entry(subject.clone())
                    .or_default()
                    .push((entry, Phase::Created));
                continue;
            };
            if let Some(reached) = reached.filter(|reached| *reached > phase)
                && !truth.is_lied_about(uid)
            {
                let what = format!("it was shown {phase} after {reached}");
                found.push(Unlawful::new(at, FORWARD, Some(subject), what));
            }
            if reached != Some(phase) {
                let shown = self.shown.entry(subject.clone()).or_default();
                shown.push((entry, phase));
            }
        }
    }

    fn deliver(&self, at: Mono, event: &LifecycleEvent, found: &mut Vec<Unlawful>) {
        let (Some(subject), Some(told)) = (subject_of(event), phase_of(event.kind)) else {
            return;
        };
        let present = self.present.get(&event.pod.uid);
        if !present.is_some_and(|present| present.contains(&subject)) {
            // No longer there is as far as it gets.
            return;
        }
        if let Some(shown) = self.reached(&subject).filter(|shown| *shown < told) {
            let what = format!("{} was told while the cache showed {shown}", event.kind);
            found.push(Unlawful::new(at, CACHE_FIRST, Some(&subject), what));
        }
    }
}

/// Whether an answer is what a read between the mark and now could have seen.
fn answer(
    truth: &Truth,
    at: Mono,
    uid: &PodUid,
    mark: Mark,
    reading: &Reading,
    found: &mut Vec<Unlawful>,
) {
    let status = reading.status.as_deref();
    if status.is_some_and(|status| status.error.is_some()) {
        // A pod that cannot be read is answered with its error, which claims nothing.
        return;
    }
    if reading.observed < mark {
        let what = "it rests on an older one".to_owned();
        found.push(Unlawful::new(at, VOUCHED, None, what));
    }
    if truth.is_lied_about(uid) {
        return;
    }
    let shown: BTreeMap<_, _> = status.map(phases).unwrap_or_default().into_iter().collect();
    for (subject, life) in truth.lives().filter(|(_, life)| life.uid == *uid) {
        let (earliest, latest) = (life.before(mark.0.at), life.by(at));
        let is_honest = match shown.get(subject) {
            None => earliest.is_none() || latest == Some(Phase::Removed),
            Some(None) => earliest != Some(Phase::Removed) && latest.is_some(),
            Some(phase) => earliest <= *phase && *phase <= latest,
        };
        if !is_honest {
            let word =
                |phase: Option<Phase>| phase.map_or("absent".into(), |phase| phase.to_string());
            let shown = shown.get(subject).copied().flatten();
            let what = format!(
                "it was answered {}; it was {} at the mark and {} when that was answered",
                word(shown),
                word(earliest),
                word(latest)
            );
            found.push(Unlawful::new(at, HONEST, Some(subject), what));
        }
    }
}
