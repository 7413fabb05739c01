//! Holds what one `pleg` told against the driver's record and against what the runtime had shown it.
//!
//! Lost: a subject of which anything was told, that a list or an accepted event showed, or that stayed
//! in one phase for long while nothing stood in the way, and of which the last thing told is not how
//! it stands now. Repeated: a kind told twice, or after a later one. Untrue: what never happened, or
//! had not yet. What came and went between two looks may go unseen; that is counted, no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pleg::lifecycle::{LifecycleKind, ReportedState, UnixNanos};

use crate::driver::Span;
use crate::record::{Life, Record};
use crate::shown::Shown;

/// A phase that lasted so long, undisturbed, must have been seen: several relists at the fast period,
/// on a machine that is busy with other things.
const LONG: Duration = Duration::from_secs(10);

/// What a disturbance goes on to hide after its end: reconnecting and catching up.
const AFTERMATH: Duration = Duration::from_secs(5);

/// By how much a list must have begun after an event to contradict it: containerd 2.x tells of a
/// sandbox's removal shortly before it removes it.
const SETTLED: Duration = Duration::from_secs(2);

/// One event as it came out.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    pub(crate) pod: String,
    /// Empty for a `PodSync`.
    pub(crate) id: String,
    pub(crate) kind: LifecycleKind,
    pub(crate) exit_code: Option<i32>,
    pub(crate) at: UnixNanos,
    /// The mode at that moment.
    pub(crate) mode: String,
}

/// The longest from a change to its telling.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delay {
    /// With no disturbance between the two.
    pub(crate) calm: Duration,
    pub(crate) any: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) transitions: usize,
    pub(crate) delivered: usize,
    pub(crate) lost: Vec<String>,
    pub(crate) repeated: Vec<String>,
    pub(crate) untrue: Vec<String>,
    /// Changes of subjects that were not told and need not have been.
    pub(crate) unseen: usize,
    /// `PodSync`s: subjects that stepped back.
    pub(crate) steps_back: usize,
    pub(crate) delays: BTreeMap<String, Delay>,
}

impl Verdict {
    pub(crate) fn is_right(&self) -> bool {
        self.lost.is_empty() && self.repeated.is_empty() && self.untrue.is_empty()
    }
}

pub(crate) fn judge(record: &Record, told: &[Telling], shown: &Shown) -> Verdict {
    let mut verdict = Verdict {
        transitions: record.transitions(),
        delivered: told.len(),
        ..Verdict::default()
    };
    let mut stepped_back = BTreeSet::new();
    let mut of_subject: BTreeMap<&str, Vec<&Telling>> = BTreeMap::new();
    for event in told {
        if event.kind == LifecycleKind::PodSync {
            verdict.steps_back += 1;
            stepped_back.insert(event.pod.as_str());
        } else {
            of_subject.entry(&event.id).or_default().push(event);
        }
    }
    for events in of_subject.values() {
        for pair in events.windows(2) {
            if pair[0].kind >= pair[1].kind {
                verdict.repeated.push(format!("{pair:?}"));
            }
        }
        for event in events {
            if !stepped_back.contains(event.pod.as_str()) {
                verdict.untrue.extend(lie(record, event));
            }
            note_delay(&mut verdict.delays, record, event);
        }
    }
    for (id, life) in &record.lives {
        let events = of_subject.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        if stepped_back.contains(life.pod.as_str()) {
            continue;
        }
        let before = verdict.lost.len();
        verdict
            .lost
            .extend(loss(record, id, life, events, shown.subjects.contains(id)));
        if verdict.lost.len() == before {
            let untold = |kind: &&LifecycleKind| events.iter().all(|event| event.kind != **kind);
            verdict.unseen += life.did.keys().filter(untold).count();
        }
    }
    // What the driver never met, since the call that made it failed, is gone by now.
    let met = |id: &str| record.lives.contains_key(id);
    for (id, events) in of_subject.iter().filter(|(id, _)| !met(id)) {
        if events.last().map(|event| event.kind) != Some(LifecycleKind::ContainerRemoved) {
            let line = format!("{id} does not exist (any more); told: {events:?}");
            verdict.lost.push(line);
        }
    }
    for id in shown.subjects.iter().filter(|id| !met(id)) {
        if !of_subject.contains_key(id.as_str()) {
            verdict.lost.push(format!("{id} was shown and never told"));
        }
    }
    verdict
}

/// How a subject stands now, as an event; `None` if it was made and no more.
fn present(life: &Life) -> Option<LifecycleKind> {
    life.did.keys().next_back().copied()
}

fn loss(
    record: &Record,
    id: &str,
    life: &Life,
    events: &[&Telling],
    was_shown: bool,
) -> Option<String> {
    let last = events.last().map(|event| event.kind);
    let present = present(life);
    let must_be_known = !events.is_empty() || was_shown || !life.is_gone();
    if must_be_known && last != present {
        return Some(format!(
            "{id}: now {present:?}, last told {last:?} (shown: {was_shown}): {life:?}"
        ));
    }
    let unseen = long_phases(record, life)
        .into_iter()
        .find(|kind| events.iter().all(|event| event.kind != *kind))?;
    Some(format!(
        "{id}: {unseen} lasted undisturbed and was not told: {life:?}"
    ))
}

/// Phases that were there to be seen for long.
fn long_phases(record: &Record, life: &Life) -> Vec<LifecycleKind> {
    let phases: Vec<(LifecycleKind, Span)> =
        life.did.iter().map(|(kind, span)| (*kind, *span)).collect();
    let is_long = |(index, (kind, span)): (usize, &(LifecycleKind, Span))| {
        let next = phases.get(index + 1)?;
        // It lasted as long as the runtime's lists say so: containerd 1.6 has containers whose start it
        // answers, and which it calls Unknown after its own death and never Running.
        let shown = life.last_listed.get(&state_after(*kind)?)?;
        let until = next.1.begun.min(shown.begun);
        has_calm(record, span.ended, until).then_some(*kind)
    };
    phases.iter().enumerate().filter_map(is_long).collect()
}

/// What lists say of a subject once an event of this kind is right.
fn state_after(kind: LifecycleKind) -> Option<ReportedState> {
    match kind {
        LifecycleKind::ContainerStarted => Some(ReportedState::Running),
        LifecycleKind::ContainerDied => Some(ReportedState::Exited),
        LifecycleKind::ContainerRemoved | LifecycleKind::PodSync => None,
    }
}

/// Whether there are `LONG` seconds in a row between two moments without a disturbance.
fn has_calm(record: &Record, from: UnixNanos, to: UnixNanos) -> bool {
    let mut free = from.0;
    for (begun, ended) in &record.disturbances {
        let over = ended.map_or(i64::MAX, |ended| ended.0.saturating_add(nanos(AFTERMATH)));
        if over <= free {
            continue;
        }
        if begun.0.min(to.0).saturating_sub(free) >= nanos(LONG) {
            return true;
        }
        free = free.max(over);
    }
    to.0.saturating_sub(free) >= nanos(LONG)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).expect("short durations")
}

/// What is wrong with an event by itself.
fn lie(record: &Record, event: &Telling) -> Option<String> {
    let Some(life) = record.lives.get(&event.id) else {
        return (!record.uncertain_pods.contains(&event.pod))
            .then(|| format!("never existed: {event:?}"));
    };
    let possible = record.possible_from(life, event.kind);
    if possible.is_none_or(|possible| possible > event.at) {
        return Some(format!("told before it could be: {event:?}: {life:?}"));
    }
    let ended = (event.kind == LifecycleKind::ContainerDied).then_some(event.exit_code);
    if let (Some(Some(told)), Some(true_code)) = (ended, life.exit_code)
        && told != true_code
    {
        return Some(format!("exit code {true_code}: {event:?}"));
    }
    let listed_after = |behind: &[ReportedState]| {
        let past = event.at.0 + nanos(SETTLED);
        let last = behind
            .iter()
            .filter_map(|state| life.last_listed.get(state));
        last.map(|span| span.begun.0).any(|begun| begun > past)
    };
    let contradicted = match event.kind {
        LifecycleKind::ContainerStarted => listed_after(&[ReportedState::Created]),
        LifecycleKind::ContainerDied => {
            listed_after(&[ReportedState::Created, ReportedState::Running])
        }
        LifecycleKind::ContainerRemoved => listed_after(&[
            ReportedState::Created,
            ReportedState::Running,
            ReportedState::Exited,
            ReportedState::Unknown,
        ]),
        LifecycleKind::PodSync => false,
    };
    contradicted.then(|| format!("a later list says less: {event:?}: {life:?}"))
}

fn note_delay(delays: &mut BTreeMap<String, Delay>, record: &Record, event: &Telling) {
    let life = record.lives.get(&event.id);
    let Some(span) = life.and_then(|life| life.did.get(&event.kind)) else {
        return;
    };
    let late = u64::try_from(event.at.0 - span.ended.0).unwrap_or(0);
    let late = Duration::from_nanos(late);
    let disturbed = record.disturbances.iter().any(|(begun, ended)| {
        let over = ended.map_or(i64::MAX, |ended| ended.0.saturating_add(nanos(AFTERMATH)));
        begun.0 < event.at.0 && over > span.begun.0
    });
    let delay = delays.entry(event.mode.clone()).or_default();
    delay.any = delay.any.max(late);
    if !disturbed {
        delay.calm = delay.calm.max(late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LifecycleKind::{ContainerDied, ContainerRemoved, ContainerStarted};
    use pleg::lifecycle::SubjectKind;

    fn second(second: i64) -> UnixNanos {
        UnixNanos(second * 1_000_000_000)
    }

    fn at(begun: i64) -> Span {
        Span {
            begun: second(begun),
            ended: second(begun),
        }
    }

    /// A container that started in second 1, died with 7 in second 2 and went in second 3.
    fn record() -> Record {
        let mut record = Record::default();
        let sandbox = "sandbox";
        let life = record.exists(SubjectKind::Container, "app", "pod", sandbox, second(0));
        for (kind, moment) in [
            (ContainerStarted, 1),
            (ContainerDied, 2),
            (ContainerRemoved, 3),
        ] {
            life.may.insert(kind, second(moment));
            life.did.insert(kind, at(moment));
        }
        life.exit_code = Some(7);
        record
    }

    fn telling(kind: LifecycleKind, moment: i64) -> Telling {
        Telling {
            pod: "pod".to_owned(),
            id: "app".to_owned(),
            kind,
            exit_code: (kind == ContainerDied).then_some(7),
            at: second(moment),
            mode: "Evented".to_owned(),
        }
    }

    fn all() -> Vec<Telling> {
        vec![
            telling(ContainerStarted, 1),
            telling(ContainerDied, 2),
            telling(ContainerRemoved, 5),
        ]
    }

    fn verdict(told: &[Telling]) -> Verdict {
        judge(&record(), told, &Shown::default())
    }

    #[test]
    fn a_full_account_is_right_and_its_delays_are_known() {
        let verdict = verdict(&all());
        assert!(verdict.is_right(), "{verdict:#?}");
        assert_eq!((verdict.transitions, verdict.delivered), (3, 3));
        assert_eq!(verdict.delays["Evented"].calm, Duration::from_secs(2));
    }

    #[test]
    fn a_lost_event_is_found() {
        let lost = verdict(&all()[..2]);
        assert_eq!(lost.lost.len(), 1, "{lost:#?}");
        assert!(!lost.is_right());
    }

    #[test]
    fn a_repeated_event_is_found_and_one_that_comes_too_late() {
        for again in [ContainerDied, ContainerStarted] {
            let mut told = all();
            told.insert(2, telling(again, 3));
            let verdict = verdict(&told);
            assert_eq!(verdict.repeated.len(), 1, "{verdict:#?}");
            assert!(!verdict.is_right());
        }
    }

    #[test]
    fn what_came_and_went_may_go_unseen_unless_it_was_shown() {
        let unseen = verdict(&[]);
        assert!(unseen.is_right(), "{unseen:#?}");
        assert_eq!(unseen.unseen, 3);
        let mut shown = Shown::default();
        shown.subjects.insert("app".to_owned());
        assert_eq!(judge(&record(), &[], &shown).lost.len(), 1);
    }

    #[test]
    fn what_is_there_at_the_end_must_have_been_told() {
        let mut record = record();
        let app = record.lives.get_mut("app").expect("it is there");
        app.did.remove(&ContainerRemoved);
        assert_eq!(judge(&record, &[], &Shown::default()).lost.len(), 1);
        let told = [telling(ContainerDied, 2)];
        assert!(judge(&record, &told, &Shown::default()).is_right());
    }

    #[test]
    fn a_long_undisturbed_run_must_have_been_told_and_a_disturbed_one_not() {
        let mut record = record();
        let app = record.lives.get_mut("app").expect("it is there");
        app.did.insert(ContainerDied, at(14));
        app.did.insert(ContainerRemoved, at(15));
        let told = [telling(ContainerDied, 14), telling(ContainerRemoved, 15)];
        assert!(judge(&record, &told, &Shown::default()).is_right());
        let app = record.lives.get_mut("app").expect("it is there");
        app.last_listed.insert(ReportedState::Running, at(14));
        assert_eq!(judge(&record, &told, &Shown::default()).lost.len(), 1);
        record.disturbances.push((second(6), Some(second(7))));
        let verdict = judge(&record, &told, &Shown::default());
        assert!(verdict.is_right(), "{verdict:#?}");
    }

    /// Its sandbox was asked for in second 0, and the call never answered.
    #[test]
    fn what_an_unanswered_call_did_may_be_told_before_the_driver_knows_it() {
        let mut record = record();
        record.asked_for.insert("pod".to_owned(), second(0));
        let mut early = all();
        early[0].at = second(0);
        assert!(!judge(&record, &early, &Shown::default()).is_right());
        record.uncertain_pods.insert("pod".to_owned());
        assert!(judge(&record, &early, &Shown::default()).is_right());
    }

    #[test]
    fn lies_are_found() {
        let mut early = all();
        early[0].at = second(0);
        assert_eq!(verdict(&early).untrue.len(), 1);
        let mut wrong_code = all();
        wrong_code[1].exit_code = Some(0);
        assert_eq!(verdict(&wrong_code).untrue.len(), 1);
        let mut ghost = all();
        for event in &mut ghost {
            event.id = "ghost".into();
        }
        assert_eq!(verdict(&ghost).untrue.len(), 3);
        let mut listed = record();
        let app = listed.lives.get_mut("app").expect("it is there");
        app.last_listed.insert(ReportedState::Running, at(20));
        assert!(!judge(&listed, &all(), &Shown::default()).is_right());
    }
}
