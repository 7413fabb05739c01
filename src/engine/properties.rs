//! Properties of the engine over arbitrary inputs: true worlds in any interleaving, and runtimes
//! that lie without limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{
    Budget, Fault, Habits, ONE_CONTAINER, Run, Stage, Step, Subject, TWO_CONTAINERS, TWO_SANDBOXES,
    Told, Truth, UNLABELLED, end,
};
use super::{
    Answer, Engine, Failure, FailureKind, Freshness, Input, Inspection, Output, Question, ReaderId,
    RequestId, RuntimeVersion, SessionId, Settings, StreamEnd,
};
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, EventKind, EventSet, EventSubject,
    LifecycleEvent, LifecycleKind, Mark, Mono, NodeList, Now, PodIdentity, PodUid, ReportedState,
    Revision, RuntimeEvent, SandboxId, SandboxListing, SandboxStatus, SubjectId, UnixNanos,
};

const HABITS: Habits = Habits {
    in_flight: 5,
    addresses_late: true,
    sandboxes_change: true,
    faults: Fault::ALL,
    lingers: &[1_100, 3_000, 70_000, 400_000],
};

const BUDGET: Budget = Budget {
    faults: 10,
    failures: 4,
    readers: 4,
    requests: 4,
    wakes: 60,
    lingers: 4,
};

static STARTS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    let ready = Truth::NOTHING.with(Subject(0), Stage::Running);
    [
        Run::cold(ONE_CONTAINER, HABITS, BUDGET, Truth::NOTHING),
        Run::cold(TWO_SANDBOXES, HABITS, BUDGET, Truth::NOTHING),
        Run::cold(UNLABELLED, HABITS, BUDGET, ready),
        Run::settled(
            TWO_CONTAINERS,
            HABITS,
            BUDGET,
            &[(Subject(0), Stage::Running)],
        ),
        Run::settled(
            TWO_SANDBOXES,
            HABITS,
            BUDGET,
            &[(Subject(0), Stage::Running)],
        ),
    ]
    .into_iter()
    .map(|run| run.expect("a fault-free beginning"))
    .collect()
});

/// Found by the property below: an unlabelled container whose sandbox cannot be read is of no pod that
/// anybody can name, and nobody waits for it.
#[test]
fn a_list_vouches_although_it_shows_a_container_that_nobody_can_place() {
    let mut run = STARTS[2].clone();
    let steps = [
        Step::Fail { call: 0 },
        Step::Change {
            subject: Subject(1),
            to: Stage::Created,
            told: Told::Truly,
        },
        Step::Wake,
        Step::AnswerUnreadable {
            call: 0,
            subject: Subject(0),
        },
    ];
    for step in steps {
        run.apply(step).expect("every property holds");
    }
    end(&mut run).expect("every property holds at rest");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Loss, duplication, reordering, delay, false news, breaks, clock steps, failing calls and any
    /// interleaving with reads: what must always hold, holds.
    #[test]
    fn any_interleaving_of_a_true_world_keeps_every_property(
        start in 0_usize..5,
        choices in vec(any::<prop::sample::Index>(), 1..90),
    ) {
        let mut run = STARTS[start].clone();
        let mut taken = Vec::new();
        for choice in &choices {
            let steps = run.steps();
            let step = *choice.get(&steps);
            taken.push(step);
            if let Err(violation) = run.apply(step) {
                prop_assert!(false, "{violation:?} after {taken:#?}");
            }
        }
        if let Err(violation) = end(&mut run) {
            prop_assert!(false, "{violation:?} at rest after {taken:#?}");
        }
    }

    /// A runtime may say anything at all: nothing is told twice, the cache is written first,
    /// revisions grow, calls and records stay bounded, and the same inputs give the same outputs.
    #[test]
    fn a_lying_runtime_gets_no_event_told_twice_and_no_memory_without_bound(
        script in vec(nonsense(), 1..60),
    ) {
        let mut engine = Engine::new(Settings::default());
        let mut witness = Witness::default();
        let mut now = Now { mono: Mono(0), wall: UnixNanos(1_700_000_000_000_000_000) };
        witness.watch(&mut engine, now, Input::Start)?;
        for (millis, said) in script {
            now.mono.0 += u64::from(millis) * 1_000_000;
            now.wall.0 += i64::from(millis) * 1_000_000;
            for input in witness.inputs(&mut engine, now, said) {
                witness.watch(&mut engine, now, input)?;
            }
        }
        witness.watch(&mut engine, now, Input::Shutdown)?;
        witness.stopped = true;
        witness.watch(&mut engine, now, Input::Wake)?;
        prop_assert!(engine.tombstones() <= POSSIBLE_SUBJECTS);
    }
}

/// The ids that a lying runtime uses; few, so that its claims collide.
const IDS: [&str; 4] = ["", "a", "b", "c"];
const UIDS: [&str; 2] = ["one", "two"];
const POSSIBLE_SUBJECTS: usize = 2 * IDS.len();

/// One thing that a runtime, a reader or a clock does.
#[derive(Clone, Debug)]
enum Nonsense {
    Event(RuntimeEvent),
    Answer {
        nth: u8,
        list: NodeList,
        fails: bool,
    },
    End(StreamEnd),
    Read,
    Relist(bool),
    Reinspect,
    Wake,
}

fn nonsense() -> impl Strategy<Value = (u16, Nonsense)> {
    let said = prop_oneof![
        4 => event().prop_map(Nonsense::Event),
        6 => (any::<u8>(), list(), prop::bool::weighted(0.1))
            .prop_map(|(nth, list, fails)| Nonsense::Answer { nth, list, fails }),
        1 => prop_oneof![
            Just(StreamEnd::Clean),
            Just(StreamEnd::Unimplemented),
            Just(StreamEnd::Broken(failure())),
        ]
        .prop_map(Nonsense::End),
        1 => Just(Nonsense::Read),
        1 => any::<bool>().prop_map(Nonsense::Relist),
        1 => Just(Nonsense::Reinspect),
        3 => Just(Nonsense::Wake),
    ];
    // Sixty inputs of a second at most stay within the time that a tombstone is kept.
    (0_u16..1_000, said)
}

fn identity() -> impl Strategy<Value = PodIdentity> {
    prop::sample::select(&UIDS[..]).prop_map(|uid| PodIdentity {
        uid: PodUid::from(uid),
        namespace: "default".into(),
        name: "".into(),
    })
}

fn state() -> impl Strategy<Value = ReportedState> {
    prop::sample::select(vec![
        ReportedState::Unknown,
        ReportedState::Created,
        ReportedState::Running,
        ReportedState::Exited,
    ])
}

fn some_id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&IDS[1..])
}

fn sandbox() -> impl Strategy<Value = SandboxStatus> {
    (some_id(), identity(), 0_u32..3, state(), any::<bool>()).prop_map(
        |(id, pod, attempt, state, labelled)| SandboxStatus {
            id: SandboxId::from(id),
            pod,
            attempt,
            state,
            created_at: Some(UnixNanos(i64::from(attempt))),
            ips: if labelled {
                vec!["10.0.0.1".into()]
            } else {
                vec![]
            },
            host_network: false,
            labelled,
        },
    )
}

fn container() -> impl Strategy<Value = ContainerStatus> {
    (
        some_id(),
        prop::option::of(identity()),
        0_u32..3,
        state(),
        -1_i32..3,
    )
        .prop_map(|(id, pod, attempt, state, exit_code)| ContainerStatus {
            id: ContainerId::from(id),
            pod,
            name: "app".into(),
            attempt,
            state,
            created_at: None,
            started_at: None,
            finished_at: None,
            exit_code,
            reason: "".into(),
            message: "".into(),
            image: "".into(),
            image_ref: "".into(),
        })
}

fn event() -> impl Strategy<Value = RuntimeEvent> {
    let kind = prop_oneof![
        Just(EventKind::Created),
        Just(EventKind::Started),
        Just(EventKind::Stopped),
        Just(EventKind::Deleted),
        (4_i32..9).prop_map(EventKind::Other),
    ];
    let stamp = prop_oneof![
        6 => 1_700_000_000_000_000_000_i64..1_700_000_060_000_000_000,
        1 => Just(0),
        1 => any::<i64>(),
    ];
    (
        prop::sample::select(&IDS[..]),
        kind,
        stamp,
        prop::option::of(sandbox()),
        vec(container(), 0..4),
    )
        .prop_map(|(id, kind, stamp, sandbox, containers)| RuntimeEvent {
            id: id.into(),
            kind,
            stamp,
            sandbox,
            containers,
            refused: vec![],
        })
}

fn list() -> impl Strategy<Value = NodeList> {
    (
        vec(sandbox(), 0..3),
        vec((container(), prop::option::of(some_id())), 0..3),
    )
        .prop_map(|(sandboxes, containers)| {
            let mut list = NodeList::default();
            let mut seen = BTreeSet::new();
            for status in sandboxes {
                if seen.insert(status.id.clone()) {
                    list.sandboxes.items.push(Arc::new(SandboxListing {
                        id: status.id,
                        pod: status.pod,
                        attempt: status.attempt,
                        state: status.state,
                        created_at: status.created_at,
                        labelled: status.labelled,
                    }));
                }
            }
            let mut seen = BTreeSet::new();
            for (status, sandbox) in containers {
                if seen.insert(status.id.clone()) {
                    list.containers.items.push(Arc::new(ContainerListing {
                        id: status.id,
                        sandbox: sandbox.map(SandboxId::from),
                        pod: status.pod,
                        name: status.name,
                        attempt: status.attempt,
                        state: status.state,
                        created_at: status.created_at,
                        image: status.image,
                        image_ref: status.image_ref,
                    }));
                }
            }
            list
        })
}

fn failure() -> Failure {
    Failure {
        kind: FailureKind::Unavailable,
        message: "connection refused".into(),
    }
}

/// What the engine put out, and what that allows it to put out next.
#[derive(Default)]
struct Witness {
    calls: BTreeMap<RequestId, Question>,
    session: Option<SessionId>,
    readers: BTreeSet<ReaderId>,
    last_reader: u64,
    told: BTreeMap<SubjectId, EventSet>,
    shown: BTreeMap<PodUid, BTreeMap<SubjectId, ReportedState>>,
    revision: Revision,
    stopped: bool,
}

impl Witness {
    /// What is said as inputs that keep the contract of the caller.
    fn inputs(&mut self, engine: &mut Engine, now: Now, said: Nonsense) -> Vec<Input> {
        let uid = PodUid::from(UIDS[0]);
        match said {
            Nonsense::Event(event) => self
                .session
                .map(|session| Input::StreamMessage { session, event })
                .into_iter()
                .collect(),
            Nonsense::End(end) => self
                .session
                .take()
                .map(|session| Input::StreamEnded { session, end })
                .into_iter()
                .collect(),
            Nonsense::Answer { nth, list, fails } => {
                let count = self.calls.len();
                let Some(request) = self
                    .calls
                    .keys()
                    .nth(usize::from(nth) % count.max(1))
                    .copied()
                else {
                    return vec![];
                };
                let question = self.calls.remove(&request).expect("just found");
                let answer = answer(question, list, fails);
                vec![Input::Answered { request, answer }]
            }
            Nonsense::Read => {
                self.last_reader += 1;
                let reader = ReaderId(self.last_reader);
                self.readers.insert(reader);
                let newer_than: Mark = engine.mark(now);
                vec![Input::Read {
                    reader,
                    uid,
                    newer_than,
                    freshness: Freshness::Details,
                }]
            }
            Nonsense::Relist(full) => vec![Input::RequestRelist {
                uid: (!full).then_some(uid),
            }],
            Nonsense::Reinspect => vec![Input::RequestReinspect { uid }],
            Nonsense::Wake => vec![Input::Wake],
        }
    }

    fn watch(&mut self, engine: &mut Engine, now: Now, input: Input) -> Result<(), TestCaseError> {
        let mut twin = engine.clone();
        twin.handle(now, input.clone());
        engine.handle(now, input);
        loop {
            let output = engine.poll_output();
            prop_assert_eq!(&output, &twin.poll_output());
            match output {
                Some(output) => self.saw(output)?,
                None => break,
            }
        }
        prop_assert_eq!(&*engine, &twin);
        prop_assert_eq!(engine.canonical(now), twin.canonical(now));
        Ok(())
    }

    fn saw(&mut self, output: Output) -> Result<(), TestCaseError> {
        prop_assert!(!self.stopped, "after the end: {output:?}");
        match output {
            Output::Ask { request, question } => {
                let reads = self
                    .calls
                    .values()
                    .filter(|call| !matches!(call, Question::Version | Question::FullRelist))
                    .count();
                prop_assert!(reads < 8);
                prop_assert!(self.calls.insert(request, question).is_none());
            }
            Output::OpenStream { session } => prop_assert!(self.session.replace(session).is_none()),
            Output::CloseStream { session } => {
                prop_assert_eq!(self.session.take(), Some(session));
            }
            Output::Publish {
                uid,
                revision,
                status,
            } => {
                prop_assert!(revision > self.revision);
                self.revision = revision;
                let shown = status.iter().flat_map(|status| {
                    let sandboxes = status
                        .sandboxes
                        .iter()
                        .map(|one| (SubjectId::Sandbox(one.id.clone()), one.state));
                    let containers = status
                        .containers
                        .iter()
                        .map(|one| (SubjectId::Container(one.id.clone()), one.state));
                    sandboxes.chain(containers).collect::<Vec<_>>()
                });
                self.shown.insert(uid, shown.collect());
            }
            Output::Deliver(event) => self.told_of(&event)?,
            Output::Answer { reader, .. } => prop_assert!(self.readers.remove(&reader)),
            Output::Observed { .. }
            | Output::ObservedAll { .. }
            | Output::ModeChanged(_)
            | Output::Note(_) => {}
        }
        Ok(())
    }

    fn told_of(&mut self, event: &Arc<LifecycleEvent>) -> Result<(), TestCaseError> {
        let bit = match event.kind {
            LifecycleKind::PodSync => return Ok(()),
            LifecycleKind::ContainerStarted => EventSet::STARTED,
            LifecycleKind::ContainerDied => EventSet::DIED,
            LifecycleKind::ContainerRemoved => EventSet::REMOVED,
        };
        let subject = event.subject.as_ref().map(EventSubject::id);
        let Some(subject) = subject else {
            return Err(TestCaseError::fail(format!(
                "an event about nothing: {event:?}"
            )));
        };
        let told = self.told.entry(subject.clone()).or_default();
        prop_assert!(
            told.still_tellable().contains(bit),
            "{:?} of {} after {:?}",
            event.kind,
            subject,
            told
        );
        *told = told.with(bit);
        let shown = self
            .shown
            .get(&event.pod.uid)
            .and_then(|pod| pod.get(&subject));
        prop_assert!(
            event.kind != LifecycleKind::ContainerRemoved || shown.is_none(),
            "{subject} is told removed and still shown as {shown:?}"
        );
        Ok(())
    }
}

fn answer(question: Question, list: NodeList, fails: bool) -> Answer {
    match question {
        Question::Version if fails => Answer::Version(Err(failure())),
        Question::Version => Answer::Version(Ok(RuntimeVersion {
            name: "containerd".into(),
            version: "2.1.0".into(),
            api_version: "v1".into(),
        })),
        Question::FullRelist | Question::PodRelist { .. } if fails => {
            Answer::Listed(Err(failure()))
        }
        Question::FullRelist | Question::PodRelist { .. } => Answer::Listed(Ok(list)),
        Question::Inspect {
            sandboxes,
            containers,
            ..
        } => Answer::Inspected(Inspection {
            sandboxes: sandboxes
                .into_iter()
                .map(|id| (id, Err(failure())))
                .collect(),
            containers: containers
                .into_iter()
                .map(|id| {
                    let status = ContainerStatus {
                        id: id.clone(),
                        pod: None,
                        name: "app".into(),
                        attempt: 0,
                        state: if fails {
                            ReportedState::Unknown
                        } else {
                            ReportedState::Exited
                        },
                        created_at: None,
                        started_at: None,
                        finished_at: None,
                        exit_code: 1,
                        reason: "".into(),
                        message: "".into(),
                        image: "".into(),
                        image_ref: "".into(),
                    };
                    (id, Ok(status))
                })
                .collect(),
        }),
    }
}
