//! The judge can fail: for each of its laws a run that breaks it, and the same run unbroken.

use std::sync::Arc;

use super::*;
use crate::engine::{Freshness, Input, Output, ReaderId, Reading};
use crate::lifecycle::{
    ContainerId, EventSubject, Exit, Mark, Now, PodContainer, PodIdentity, PodUid, ReportedState,
    Revision, SeqPoint, Source, UnixNanos,
};
use crate::scenario::trace::TracedInput;

const APP: &str = "app-id";

fn pod() -> PodIdentity {
    PodIdentity {
        uid: "u".into(),
        namespace: "default".into(),
        name: "web".into(),
    }
}

fn app() -> SubjectId {
    SubjectId::Container(APP.into())
}

fn at(seconds: u64) -> Mono {
    Mono(seconds * 1_000_000_000)
}

fn event(kind: LifecycleKind, code: Option<i32>) -> Arc<LifecycleEvent> {
    Arc::new(LifecycleEvent {
        kind,
        revision: Revision(1),
        pod: pod(),
        subject: Some(EventSubject::Container {
            id: ContainerId::from(APP),
            name: "app".into(),
            attempt: 0,
        }),
        exit: code.map(|exit_code| Exit {
            exit_code,
            reason: "".into(),
            finished_at: None,
        }),
        source: Source::Event,
        initial: false,
        runtime_stamp: None,
        seen_at: UnixNanos(0),
        born: Revision(1),
    })
}

fn status(state: ReportedState) -> Arc<PodStatus> {
    Arc::new(PodStatus {
        pod: pod(),
        ips: Vec::new(),
        error: None,
        sandboxes: Vec::new(),
        containers: vec![PodContainer {
            id: APP.into(),
            name: "app".into(),
            attempt: 0,
            sandbox_id: None,
            state,
            created_at: None,
            started_at: None,
            finished_at: None,
            exit_code: None,
            reason: "".into(),
            message: "".into(),
            image: "".into(),
            image_ref: "".into(),
        }],
        revision: Revision(1),
    })
}

fn entry(seconds: u64, input: Input, outputs: Vec<Output>) -> TraceEntry {
    TraceEntry {
        now: Now {
            mono: at(seconds),
            wall: UnixNanos(0),
        },
        input: TracedInput::Input(input),
        outputs,
    }
}

fn publish(state: Option<ReportedState>) -> Output {
    Output::Publish {
        uid: "u".into(),
        revision: Revision(1),
        status: state.map(status),
    }
}

fn mark(seconds: u64) -> Mark {
    Mark(SeqPoint {
        at: at(seconds),
        count: 0,
    })
}

/// A container that runs from the first second, ends with 137 in the tenth and is removed in the
/// twentieth; a generator that shows and tells it so; a reader that asks in the twelfth.
struct Run {
    truth: Truth,
    entries: Vec<TraceEntry>,
    main: Told,
    differs: Option<(String, String)>,
}

fn good() -> Run {
    let uid = PodUid::from("u");
    let mut truth = Truth::default();
    truth.saw(at(1), app(), &uid, ReportedState::Running, None);
    truth.saw(at(10), app(), &uid, ReportedState::Exited, Some(137));
    truth.gone(at(20), &app());
    let started = event(LifecycleKind::ContainerStarted, None);
    let died = event(LifecycleKind::ContainerDied, Some(137));
    let removed = event(LifecycleKind::ContainerRemoved, None);
    let reading = Reading {
        status: Some(status(ReportedState::Exited)),
        observed: mark(12),
    };
    let read = Input::Read {
        reader: ReaderId(1),
        uid: uid.clone(),
        newer_than: mark(12),
        freshness: Freshness::Phases,
    };
    let entries = vec![
        entry(0, Input::Start, vec![]),
        entry(
            2,
            Input::Wake,
            vec![
                publish(Some(ReportedState::Running)),
                Output::Deliver(Arc::clone(&started)),
            ],
        ),
        entry(
            11,
            Input::Wake,
            vec![
                publish(Some(ReportedState::Exited)),
                Output::Deliver(Arc::clone(&died)),
            ],
        ),
        entry(12, read, vec![]),
        entry(
            13,
            Input::Wake,
            vec![Output::Answer {
                reader: ReaderId(1),
                reading,
            }],
        ),
        entry(
            21,
            Input::Wake,
            vec![publish(None), Output::Deliver(Arc::clone(&removed))],
        ),
    ];
    let main = Told {
        name: "main".into(),
        since: 0,
        with_snapshot: true,
        is_awake: true,
        folded_whole: 0,
        heard: vec![(at(2), started), (at(11), died), (at(21), removed)],
    };
    Run {
        truth,
        entries,
        main,
        differs: None,
    }
}

fn broken(run: &Run) -> Vec<&'static str> {
    let found = judge(&Account {
        truth: &run.truth,
        entries: &run.entries,
        subscribers: std::slice::from_ref(&run.main),
        differs: run.differs.clone(),
        now: at(60),
    });
    let mut laws: Vec<_> = found.iter().map(|unlawful| unlawful.law).collect();
    laws.dedup();
    laws
}

/// What is broken after `change` to a run in which nothing is.
fn after(change: impl FnOnce(&mut Run)) -> Vec<&'static str> {
    let mut run = good();
    assert!(broken(&run).is_empty(), "{:?}", broken(&run));
    change(&mut run);
    broken(&run)
}

fn answer_with(run: &mut Run, state: Option<ReportedState>, observed: Mark) {
    run.entries[4].outputs = vec![Output::Answer {
        reader: ReaderId(1),
        reading: Reading {
            status: state.map(status),
            observed,
        },
    }];
}

#[test]
fn a_cache_that_is_not_the_runtime_at_rest_is_found() {
    let differs = Some(("web/app absent".into(), "web/app running".into()));
    assert_eq!(after(|run| run.differs = differs), [CONVERGED]);
}

#[test]
fn what_is_told_twice_or_out_of_order_is_found() {
    assert_eq!(
        after(|run| {
            let again = run.main.heard[1].clone();
            run.main.heard.insert(2, again);
        }),
        [ONCE]
    );
    assert_eq!(after(|run| run.main.heard.swap(1, 2)), [ONCE, COMPLETE]);
}

#[test]
fn what_is_never_told_is_found() {
    assert_eq!(after(|run| drop(run.main.heard.pop())), [COMPLETE]);
    assert_eq!(after(|run| run.main.heard.clear()), [COMPLETE]);
    // What nobody could have seen need not be told, nor what was folded whole.
    assert!(
        after(|run| {
            run.entries.retain(|entry| entry.outputs.is_empty());
            run.main.heard.clear();
        })
        .is_empty()
    );
    assert!(
        after(|run| {
            run.main.heard.clear();
            run.main.folded_whole = 1;
        })
        .is_empty()
    );
}

#[test]
fn what_a_late_subscriber_is_owed_is_what_changed_since() {
    let late = |run: &mut Run| {
        run.main.since = 3;
        run.main.with_snapshot = false;
        run.main.heard.drain(..2);
    };
    assert!(after(late).is_empty());
    assert_eq!(
        after(|run| {
            late(run);
            run.main.heard.clear();
        }),
        [COMPLETE]
    );
}

#[test]
fn what_is_told_before_it_happened_or_otherwise_than_it_was_is_found() {
    assert_eq!(after(|run| run.main.heard[1].0 = at(9)), [TRUE]);
    assert_eq!(
        after(|run| run.main.heard[1].1 = event(LifecycleKind::ContainerDied, Some(0))),
        [TRUE]
    );
}

#[test]
fn an_event_before_its_status_is_found() {
    assert_eq!(
        after(|run| run.entries[2].outputs.swap(0, 1)),
        [CACHE_FIRST]
    );
}

#[test]
fn a_way_back_is_found() {
    assert_eq!(
        after(|run| {
            let back = publish(Some(ReportedState::Running));
            run.entries[3].outputs.push(back);
        }),
        [FORWARD]
    );
    assert_eq!(
        after(|run| {
            let again = publish(Some(ReportedState::Exited));
            run.entries.push(entry(30, Input::Wake, vec![again]));
        }),
        [FORWARD]
    );
}

#[test]
fn an_answer_behind_the_mark_or_ahead_of_the_runtime_is_found() {
    let answered = |state| after(|run| answer_with(run, state, mark(12)));
    assert_eq!(answered(Some(ReportedState::Running)), [HONEST]);
    assert_eq!(answered(None), [HONEST]);
    assert!(answered(Some(ReportedState::Exited)).is_empty());
    assert!(answered(Some(ReportedState::Unknown)).is_empty());
}

#[test]
fn an_answer_from_an_older_read_is_found() {
    let older = |run: &mut Run| answer_with(run, Some(ReportedState::Exited), mark(11));
    assert_eq!(after(older), [VOUCHED]);
}

#[test]
fn less_is_asked_where_the_runtime_itself_lied_but_nothing_may_be_missing() {
    let mut run = good();
    run.truth.lie(&PodUid::from("u"));
    run.entries[3]
        .outputs
        .push(publish(Some(ReportedState::Running)));
    assert!(broken(&run).is_empty());
    run.main.heard.pop();
    assert_eq!(broken(&run), [COMPLETE]);
    // Of what stepped back a `PodSync` tells the rest, if it is newer than the last change.
    for (seconds, laws) in [(19, vec![COMPLETE]), (21, vec![])] {
        let before = run.main.clone();
        let mut sync = (*event(LifecycleKind::PodSync, None)).clone();
        sync.subject = None;
        run.main.heard.push((at(seconds), Arc::new(sync)));
        assert_eq!(broken(&run), laws);
        run.main = before;
    }
}
