//! Rules that need no runtime: hand-made messages and lists, with their windows.

use std::time::Duration;

use super::*;
use crate::engine::RuntimeVersion;
use crate::lifecycle::{
    EventKind, Mono, NodeList, Now, PodIdentity, ReportedState, RuntimeEvent, SandboxListing,
    SandboxStatus, SubjectKind, UnixNanos,
};

const NOON: i64 = 1_800_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

struct Told {
    auditor: Auditor,
    millis: i64,
}

impl Told {
    /// The stream has been open for two seconds.
    fn by(runtime: &str) -> Self {
        let version = RuntimeVersion {
            name: runtime.into(),
            version: "2.1.9".into(),
            api_version: "v1".into(),
        };
        let mut told = Self {
            auditor: Auditor::new(version, at(0)),
            millis: 0,
        };
        told.take(Input::StreamAsked);
        told.millis = 2_000;
        told
    }

    fn take(&mut self, input: Input) {
        self.auditor.take(at(self.millis), input);
    }

    fn later(&mut self, millis: i64) {
        self.millis += millis;
    }

    /// A list that takes 10 ms.
    fn list(&mut self, sandboxes: &[(&str, ReportedState)]) {
        self.take(Input::ListAsked);
        self.later(10);
        self.listed(sandboxes);
    }

    fn listed(&mut self, sandboxes: &[(&str, ReportedState)]) {
        let items = sandboxes.iter().map(|(id, state)| SandboxListing {
            id: (*id).into(),
            pod: pod(),
            attempt: 0,
            state: *state,
            created_at: None,
            labelled: true,
        });
        self.take(Input::Listed(Ok(NodeList {
            sandboxes: items.collect::<Vec<_>>().into(),
            ..NodeList::default()
        })));
    }

    fn message(&mut self, id: &str, kind: EventKind, state: ReportedState) {
        let wall = at(self.millis).wall;
        let sandbox = SandboxStatus {
            id: id.into(),
            pod: pod(),
            attempt: 0,
            state,
            created_at: Some(wall),
            ips: Vec::new(),
            host_network: false,
            labelled: true,
        };
        self.take(Input::Message(RuntimeEvent {
            id: id.into(),
            kind,
            stamp: wall.0,
            sandbox: Some(sandbox),
            containers: Vec::new(),
            refused: Vec::new(),
        }));
    }

    fn report(self) -> Report {
        self.auditor.report(at(self.millis))
    }
}

fn at(millis: i64) -> Now {
    let nanos = millis * (SECOND / 1000);
    Now {
        mono: Mono(u64::try_from(nanos).unwrap()),
        wall: UnixNanos(NOON + nanos),
    }
}

fn pod() -> PodIdentity {
    PodIdentity {
        uid: "u".into(),
        namespace: "shop".into(),
        name: "web".into(),
    }
}

const READY: ReportedState = ReportedState::Running;
const NOT_READY: ReportedState = ReportedState::Exited;

fn missing(report: &Report, event: EventKind) -> u64 {
    report.tally(SubjectKind::Sandbox, event).missing
}

#[test]
fn the_first_list_says_where_everything_stood_and_owes_nothing() {
    let mut told = Told::by("containerd");
    told.list(&[("s1", READY)]);
    told.later(20_000);
    let report = told.report();
    assert_eq!(report.events, []);
    assert_eq!(report.verdict, Verdict::CannotTell);
}

#[test]
fn a_list_sent_too_soon_after_the_stream_is_no_first_list() {
    let mut told = Told::by("containerd");
    told.millis = 500;
    told.list(&[]);
    told.later(1_000);
    // The first that counts: whatever it shows may have begun before the stream was open.
    told.list(&[("s1", READY)]);
    told.later(20_000);
    assert_eq!(told.report().verdict, Verdict::CannotTell);
}

#[test]
fn what_a_later_list_shows_first_was_made_and_started_in_between() {
    let mut told = Told::by("containerd");
    told.list(&[]);
    told.later(1_000);
    told.list(&[("s1", READY)]);
    told.later(5_000);
    let report = told.report();
    assert_eq!(missing(&report, EventKind::Created), 1);
    assert_eq!(missing(&report, EventKind::Started), 1);
    assert_eq!(missing(&report, EventKind::Stopped), 0);
    assert_eq!(report.verdict, Verdict::Lost);
}

#[test]
fn what_ran_and_is_gone_has_ended_too() {
    let mut told = Told::by("containerd");
    told.list(&[("s1", READY)]);
    told.later(1_000);
    told.list(&[]);
    told.later(5_000);
    let report = told.report();
    assert_eq!(missing(&report, EventKind::Stopped), 1);
    assert_eq!(missing(&report, EventKind::Deleted), 1);
    assert_eq!(missing(&report, EventKind::Started), 0);
}

#[test]
fn a_list_sent_before_a_subject_was_heard_of_cannot_prove_it_gone() {
    let mut told = Told::by("containerd");
    told.list(&[]);
    told.later(1_000);
    told.take(Input::ListAsked);
    told.later(5);
    told.message("s1", EventKind::Created, READY);
    told.message("s1", EventKind::Started, READY);
    told.later(5);
    told.listed(&[]);
    // Nor can one that was sent less than the settling time after.
    told.later(500);
    told.list(&[]);
    told.later(5_000);
    let report = told.report();
    assert_eq!(report.findings, [], "{report:#?}");
    assert_eq!(report.verdict, Verdict::Passed);
}

#[test]
fn what_is_owed_for_less_than_the_grace_is_not_judged() {
    let mut told = Told::by("containerd");
    told.list(&[]);
    told.later(1_000);
    told.list(&[("s1", READY)]);
    told.later(1_900);
    assert!(told.auditor.is_waiting());
    let report = told.report();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.verdict, Verdict::CannotTell);
}

#[test]
fn a_sandbox_that_was_never_seen_ready_owes_nothing() {
    let mut told = Told::by("containerd");
    told.list(&[]);
    told.later(1_000);
    // Left behind by a RunPodSandbox that failed.
    told.list(&[("s1", NOT_READY)]);
    told.later(5_000);
    assert_eq!(told.report().verdict, Verdict::CannotTell);
}

#[test]
fn what_pleg_itself_dropped_is_held_against_nobody() {
    let mut told = Told::by("containerd");
    told.list(&[]);
    told.later(1_000);
    told.list(&[("s1", READY)]);
    told.later(1_000);
    told.take(Input::Overflow { dropped: 5 });
    told.later(5_000);
    told.list(&[("s1", READY)]);
    told.later(5_000);
    let report = told.report();
    assert_eq!(missing(&report, EventKind::Started), 0);
    assert!(report.finds(FindingKind::Dropped), "{report:#?}");
}

#[test]
fn a_runtime_that_nobody_knows_has_a_gap_where_it_never_tells_one_kind() {
    let never_created = |runtime: &str| {
        let mut told = Told::by(runtime);
        told.list(&[]);
        for id in ["s1", "s2", "s3"] {
            told.later(1_000);
            told.message(id, EventKind::Started, READY);
        }
        told.list(&[("s1", READY), ("s2", READY), ("s3", READY)]);
        told.later(5_000);
        told.report()
    };
    let report = never_created("youki-cri");
    assert!(report.finds(FindingKind::KnownGap), "{report:#?}");
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(never_created("containerd").verdict, Verdict::Lost);
}

#[test]
fn a_life_is_forgotten_a_minute_after_its_end() {
    let mut told = Told::by("containerd");
    told.list(&[]);
    for _ in 0..100 {
        let id = format!("s{}", told.millis);
        told.later(1_000);
        told.message(&id, EventKind::Created, READY);
        told.list(&[(&id, READY)]);
    }
    assert!(
        told.auditor.trails.len() < 65,
        "{}",
        told.auditor.trails.len()
    );
    told.later(u32::try_from(LATE.as_millis()).unwrap().into());
    let report = told.report();
    let created = report.tally(SubjectKind::Sandbox, EventKind::Created);
    assert_eq!((created.delivered, created.proven), (100, 100));
    assert!(missing(&report, EventKind::Deleted) >= 98, "{report:#?}");
    assert!(report.lasted > Duration::from_secs(100));
}
