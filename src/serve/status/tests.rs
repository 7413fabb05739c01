//! The sentences that people read, and a status that survives its wire forms.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::cri::Tapped;
use crate::engine::{Failure, FailureKind, Note, Output};
use crate::lifecycle::{Mark, SubjectKind};
use crate::serve::grpc::convert;

fn second(n: u64) -> Now {
    Now {
        mono: Mono(n * 1_000_000_000),
        wall: UnixNanos(1_700_000_000_000_000_000 + i64::try_from(n).unwrap() * 1_000_000_000),
    }
}

fn answer(at: u64, state: HealthState, relist_age: Option<u64>) -> DriverAnswer {
    let mut stats = Stats::default();
    stats.engine.runtime = Some(RuntimeVersion {
        name: "containerd".into(),
        version: "2.1.9".into(),
        api_version: "v1".into(),
    });
    DriverAnswer {
        health: Health {
            state,
            mode: Mode::Connecting,
            last_relist_age: relist_age.map(Duration::from_secs),
            threshold: Duration::from_secs(180),
            last_event_age: None,
            stream_age: None,
            pending: None,
        },
        stats,
        at: second(at).mono,
    }
}

fn noted() -> Noted {
    Noted {
        relist_period: Duration::from_secs(1),
        ..Noted::default()
    }
}

fn status(mode: Mode, noted: &Noted, answer: Option<&DriverAnswer>, now: u64) -> Status {
    Status::new(sources(mode, noted, answer, now))
}

fn sources<'a>(
    mode: Mode,
    noted: &'a Noted,
    answer: Option<&'a DriverAnswer>,
    now: u64,
) -> Sources<'a> {
    Sources {
        answer,
        answers_now: answer.is_some_and(|answer| answer.at == second(now).mono),
        mode,
        noted,
        subscribers: vec![SubscriberReport {
            id: 3,
            transport: "grpc".to_owned(),
            client: "agent".to_owned(),
            since: second(5).wall,
            delivered: 7,
            lag: Some(2),
        }],
        ring: RingStats::default(),
        pods: 8,
        epoch: Epoch(7),
        started: second(0),
        now: second(now),
    }
}

const EVENTED: Mode = Mode::Evented {
    audit_period: Duration::from_secs(64),
};

fn polling(reason: PollingReason) -> Mode {
    Mode::Polling { reason }
}

#[test]
fn a_quiet_night_reads_as_one() {
    let mut noted = noted();
    noted.mode_since = Some(second(1));
    let now = 3 * 3_600;
    let answer = answer(now, HealthState::Healthy, Some(12));
    assert_eq!(
        status(EVENTED, &noted, Some(&answer), now).words,
        "Events, audited every 64 s; last relist 12 s ago; nothing missed in 3 h"
    );
    noted.last_missed = Some(second(now - 300));
    assert_eq!(
        status(EVENTED, &noted, Some(&answer), now).words,
        "Events, audited every 64 s; last relist 12 s ago; last missed a change 5 min ago"
    );
}

#[test]
fn a_list_that_fails_says_why_as_long_as_it_does() {
    let notebook = Notebook::default();
    let failed = Output::Note(Note::CallFailed {
        call: Call::FullRelist,
        uid: None,
        failure: Failure {
            kind: FailureKind::TooLarge,
            message: "ListContainers: the answer is\nover the message limit".into(),
        },
    });
    notebook.see(Tapped::Output(&failed));
    let answer = answer(9, HealthState::NotYetRelisted, None);
    let words =
        |notebook: &Notebook| status(Mode::Connecting, &notebook.noted(), Some(&answer), 9).words;
    assert_eq!(
        words(&notebook),
        "Connecting to the runtime's event stream, polling meanwhile; not relisted yet; \
         the last relist failed: ListContainers: the answer is over the message limit"
    );
    notebook.see(Tapped::Output(&Output::ObservedAll {
        mark: Mark::default(),
        except: BTreeSet::new(),
    }));
    assert!(!words(&notebook).contains("failed"), "{}", words(&notebook));
}

#[test]
fn a_clock_that_steps_makes_nobody_older() {
    let noted = noted();
    let mut sources = sources(Mode::Connecting, &noted, None, 60);
    sources.now.wall = UnixNanos(0);
    let status = Status::new(sources);
    assert_eq!(status.at.0 - status.started_at.0, 60_000_000_000);
}

#[test]
fn polling_says_why_and_when_it_will_try_again() {
    let mut noted = noted();
    noted.stream_ended = Some((second(88), "transport error".into()));
    noted.retry_at = Some(second(104).mono);
    let answer = answer(100, HealthState::Healthy, Some(1));
    let words = |mode, noted: &Noted| status(mode, noted, Some(&answer), 100).words;
    assert_eq!(
        words(polling(PollingReason::StreamBroken), &noted),
        "Polling each second, because the stream broke 12 s ago: transport error; \
         next attempt in 4 s; last relist 1 s ago"
    );
    noted.retry_at = None;
    noted.mode_since = Some(second(40));
    noted.cause = Some("3 misses".into());
    assert_eq!(
        words(polling(PollingReason::Untrusted), &noted),
        "Polling each second, because the stream has lost events, found 60 s ago: 3 misses; \
         last relist 1 s ago"
    );
    noted.cause = Some("the runtime serves no events: not implemented".into());
    assert_eq!(
        words(polling(PollingReason::Unsupported), &noted),
        "Polling each second, because the runtime serves no events: not implemented; \
         last relist 1 s ago"
    );
    noted.cause = None;
    assert_eq!(
        words(polling(PollingReason::Unsupported), &noted),
        "Polling each second, because the runtime has no event stream; last relist 1 s ago"
    );
    noted.cause = Some("3 misses".into());
    assert_eq!(
        words(polling(PollingReason::Unresponsive), &noted),
        "Polling each second, because the runtime stopped answering its heartbeat 60 s ago: \
         3 misses; last relist 1 s ago"
    );
    noted.mode_since = Some(second(100));
    assert_eq!(
        words(polling(PollingReason::Unresponsive), &noted),
        "Polling each second, because the runtime stopped answering its heartbeat just now: \
         3 misses; last relist 1 s ago"
    );
    assert_eq!(
        words(polling(PollingReason::Disabled), &noted),
        "Polling each second, because events are switched off; last relist 1 s ago"
    );
}

#[test]
fn a_driver_that_hangs_is_the_first_thing_that_is_said() {
    let answer = answer(100, HealthState::Healthy, Some(1));
    let hangs = status(EVENTED, &noted(), Some(&answer), 160);
    assert_eq!(hangs.is_healthy(), None);
    assert_eq!(hangs.health.words, "the driver has not answered for 60 s");
    assert!(
        hangs.words.starts_with(
            "The driver has not answered for 60 s; before: Events, audited every 64 s; \
             last relist 61 s ago"
        ),
        "{}",
        hangs.words
    );
}

#[test]
fn a_call_that_hangs_is_named() {
    let mut answer = answer(100, HealthState::Unhealthy, Some(200));
    answer.health.pending = Some(PendingCall {
        call: Call::FullRelist,
        uid: None,
        age: Duration::from_secs(95),
    });
    let status = status(
        polling(PollingReason::Unresponsive),
        &noted(),
        Some(&answer),
        100,
    );
    assert_eq!(status.is_healthy(), Some(false));
    assert!(
        status.words.ends_with("; FullRelist unanswered for 95 s"),
        "{}",
        status.words
    );
}

#[test]
fn before_the_first_relist_nothing_is_claimed() {
    let answer = answer(1, HealthState::NotYetRelisted, None);
    let status = status(Mode::Connecting, &noted(), Some(&answer), 1);
    assert_eq!(
        status.words,
        "Connecting to the runtime's event stream, polling meanwhile; not relisted yet"
    );
    assert_eq!(status.is_healthy(), Some(false));
}

#[test]
fn a_status_survives_json_and_the_wire() {
    let mut noted = noted();
    noted.cause = Some("because".into());
    noted.retry_at = Some(second(104).mono);
    noted.last_missed = Some(second(50));
    let mut answer = answer(100, HealthState::Healthy, Some(1));
    answer.health.last_event_age = Some(Duration::from_secs(3));
    answer.health.pending = Some(PendingCall {
        call: Call::PodRelist,
        uid: Some("u".into()),
        age: Duration::from_millis(20),
    });
    let counters = &mut answer.stats.engine.counters;
    for event in [EventKind::Stopped, EventKind::Other(5)] {
        counters.missed.insert((SubjectKind::Container, event), 3);
    }
    let kind = (SubjectKind::Container, EventKind::Stopped);
    counters.missed_in_known_gaps.insert(kind, 1);
    let modes = [
        Mode::Connecting,
        EVENTED,
        polling(PollingReason::StreamBroken),
    ];
    for mode in modes {
        let status = status(mode, &noted, Some(&answer), 100);
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(
            serde_json::from_str::<Status>(&json).unwrap(),
            status,
            "{json}"
        );
        let wire = convert::status(&status);
        assert_eq!(convert::status_from(wire), Ok(status));
    }
}

#[test]
fn the_notebook_notes_what_passes() {
    use crate::cri::Tapped;
    use crate::engine::{Input, ModeChange, Note, Output};

    let notebook = Notebook::default();
    let pass = |at: u64, output: Output| {
        let input = Input::Wake;
        notebook.see(Tapped::Input {
            now: second(at),
            input: &input,
        });
        notebook.see(Tapped::Output(&output));
    };
    pass(
        10,
        Output::ModeChanged(ModeChange {
            from: Mode::Connecting,
            to: EVENTED,
            cause: "it stands".into(),
            at: second(10).wall,
        }),
    );
    let how: Arc<str> = "reset".into();
    let retry_in_ms = 2_000;
    pass(20, Output::Note(Note::StreamEnded { how, retry_in_ms }));
    let missed = |known_gap| {
        Output::Note(Note::Missed {
            subject: SubjectKind::Container,
            event: EventKind::Stopped,
            id: "c".into(),
            known_gap,
        })
    };
    pass(30, missed(false));
    pass(40, missed(true));
    let noted = notebook.noted();
    assert_eq!(noted.mode_since, Some(second(10)));
    assert_eq!(noted.retry_at, Some(second(22).mono));
    assert_eq!(noted.last_missed, Some(second(30)));
}
