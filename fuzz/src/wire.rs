//! Bytes as what a runtime sends, through the real decoder into a real engine, in virtual time.
//!
//! The input is a row of steps: one byte says what happens, two (little-endian) how many bytes follow,
//! and those are the message, the answer, the time. Whatever they are, the engine must keep its word:
//! what [`Witness`] checks are the laws that show from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pleg::cri::raw;
use pleg::engine::{
    Answer, Engine, Failure, FailureKind, Freshness, Input, Inspection, Output, Question, ReaderId,
    RequestId, SessionId, Settings, StreamEnd,
};
use pleg::lifecycle::{
    EventSet, EventSubject, LifecycleEvent, LifecycleKind, Mark, Mono, Now, PodStatus, PodUid,
    ReportedState, Revision, SubjectId, UnixNanos,
};

/// Steps of one input that are carried out.
const MOST_STEPS: usize = 300;

/// Wakes that may follow each other without time passing.
const MOST_WAKES_AT_ONCE: u32 = 32;

/// How long a removed subject is remembered at least.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Lets the bytes happen.
pub fn run(bytes: &[u8]) {
    let mut node = Node::new();
    let mut rest = bytes;
    for _ in 0..MOST_STEPS {
        let [what, low, high, after @ ..] = rest else {
            break;
        };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (content, next) = after.split_at(length);
        rest = next;
        node.step(*what, content);
    }
    node.pass(Duration::from_secs(3));
    node.give(Input::Shutdown);
    assert!(node.engine.poll_timeout().is_none());
}

struct Node {
    engine: Engine,
    now: Now,
    lists: raw::Lists,
    witness: Witness,
}

impl Node {
    fn new() -> Self {
        let mut node = Self {
            engine: Engine::new(Settings::default()),
            now: Now {
                mono: Mono(0),
                wall: UnixNanos(1_700_000_000_000_000_000),
            },
            lists: raw::Lists::default(),
            witness: Witness::default(),
        };
        node.give(Input::Start);
        node
    }

    fn step(&mut self, what: u8, content: &[u8]) {
        self.pass(Duration::from_millis(1));
        match what % 12 {
            0 | 1 => self.message(content),
            2 | 3 => self.answer(content),
            4 => self.pass(Duration::from_millis(number(content))),
            5 => self.end_stream(content),
            6 => self.fail_call(content),
            7 => self.read(content),
            8 => {
                let uid = (!content.is_empty()).then(|| uid(content));
                self.give(Input::RequestRelist { uid });
            }
            9 => self.give(Input::RequestReinspect { uid: uid(content) }),
            10 => self.overflow(content),
            _ => {
                let step = i64::try_from(number(content)).unwrap_or(0) - 30_000;
                self.now.wall.0 += step * 1_000_000;
            }
        }
    }

    fn message(&mut self, content: &[u8]) {
        let Some(session) = self.witness.session else {
            return;
        };
        self.give(match raw::event(content) {
            Ok(event) => Input::StreamMessage { session, event },
            Err(refusal) => Input::StreamGarbage { session, refusal },
        });
    }

    fn end_stream(&mut self, content: &[u8]) {
        if let Some(session) = self.witness.session.take() {
            let end = match content.first() {
                None => StreamEnd::Clean,
                Some(0) => StreamEnd::Unimplemented,
                Some(_) => StreamEnd::Broken(failure(FailureKind::Unavailable)),
            };
            self.give(Input::StreamEnded { session, end });
        }
    }

    /// Takes the call that a byte chooses out of those that wait.
    fn take_call(&mut self, choice: u8) -> Option<(RequestId, Question)> {
        let count = self.witness.calls.len();
        let nth = usize::from(choice).checked_rem(count)?;
        let request = *self.witness.calls.keys().nth(nth)?;
        let question = self.witness.calls.remove(&request)?;
        Some((request, question))
    }

    fn fail_call(&mut self, content: &[u8]) {
        let [choice, kind] = *content else { return };
        if let Some((request, question)) = self.take_call(choice) {
            let kind = match kind % 5 {
                0 => FailureKind::NotFound,
                1 => FailureKind::Unavailable,
                2 => FailureKind::DeadlineExceeded,
                3 => FailureKind::TooLarge,
                _ => FailureKind::Other,
            };
            let answer = match question {
                Question::Version => Answer::Version(Err(failure(kind))),
                Question::FullRelist | Question::PodRelist { .. } => {
                    Answer::Listed(Err(failure(kind)))
                }
                Question::Inspect {
                    sandboxes,
                    containers,
                    ..
                } => Answer::Inspected(Inspection {
                    sandboxes: sandboxes
                        .into_iter()
                        .map(|id| (id, Err(failure(kind))))
                        .collect(),
                    containers: containers
                        .into_iter()
                        .map(|id| (id, Err(failure(kind))))
                        .collect(),
                }),
            };
            self.give(Input::Answered { request, answer });
        }
    }

    fn answer(&mut self, content: &[u8]) {
        let [choice, content @ ..] = content else {
            return;
        };
        let Some((request, question)) = self.take_call(*choice) else {
            return;
        };
        let malformed = |_| failure(FailureKind::Malformed);
        let answer = match question {
            Question::Version => Answer::Version(raw::version(content).map_err(malformed)),
            Question::FullRelist => {
                let (sandboxes, containers) = piece(content);
                let list = self.lists.read([sandboxes], [containers]);
                let afresh = raw::Lists::default().read([sandboxes], [containers]);
                assert_eq!(list, afresh, "what was known shows in the list");
                Answer::Listed(list.map_err(malformed))
            }
            Question::PodRelist { .. } => {
                let (sandboxes, containers) = piece(content);
                let list = raw::Lists::default().read([sandboxes], [containers]);
                Answer::Listed(list.map_err(malformed))
            }
            Question::Inspect {
                sandboxes,
                containers,
                ..
            } => Answer::Inspected(inspection(content, sandboxes, containers)),
        };
        self.give(Input::Answered { request, answer });
    }

    fn read(&mut self, content: &[u8]) {
        let [freshness, content @ ..] = content else {
            return;
        };
        let reader = ReaderId(self.witness.last_reader + 1);
        self.witness.last_reader += 1;
        if freshness & 2 != 0 && self.witness.readers.len() > 1 {
            let first = self.witness.readers.pop_first();
            if let Some((reader, _)) = first {
                self.give(Input::CancelRead { reader });
            }
        }
        let newer_than = self.engine.mark(self.now);
        self.witness.readers.insert(reader, newer_than);
        let freshness = if freshness & 1 == 0 {
            Freshness::Phases
        } else {
            Freshness::Details
        };
        self.give(Input::Read {
            reader,
            uid: uid(content),
            newer_than,
            freshness,
        });
    }

    fn overflow(&mut self, content: &[u8]) {
        if let Some(session) = self.witness.session {
            self.give(Input::StreamOverflow {
                session,
                pods: BTreeSet::from([uid(content)]),
                dropped: 3,
            });
        }
    }

    /// Time passes, timer by timer.
    fn pass(&mut self, time: Duration) {
        let until = self.now.mono.after(time);
        let mut at_once = 0;
        while let Some(timeout) = self.engine.poll_timeout()
            && timeout <= until
        {
            if timeout > self.now.mono {
                self.advance(timeout);
                at_once = 0;
            }
            at_once += 1;
            assert!(
                at_once <= MOST_WAKES_AT_ONCE,
                "a timer that is never satisfied: {:?}",
                self.engine.next_timer()
            );
            self.give(Input::Wake);
        }
        self.advance(until);
    }

    fn advance(&mut self, to: Mono) {
        let passed = to.since(self.now.mono);
        self.now.mono = to;
        self.now.wall.0 += i64::try_from(passed.as_nanos()).unwrap_or(0);
    }

    fn give(&mut self, input: Input) {
        let cause = Cause {
            is_answer: matches!(input, Input::Answered { .. }),
            steps_back: self.engine.counters().steps_back,
            at: self.now.mono,
        };
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            let stepped_back = self.engine.counters().steps_back > cause.steps_back;
            self.witness.saw(output, &cause, stepped_back);
        }
        assert!(self.engine.tombstones() <= self.engine.settings().tombstones);
    }
}

/// Up to 65 seconds, in milliseconds.
fn number(content: &[u8]) -> u64 {
    match *content {
        [low, high, ..] => u64::from(u16::from_le_bytes([low, high])),
        [low] => u64::from(low),
        [] => 0,
    }
}

fn uid(content: &[u8]) -> PodUid {
    let text = content.get(..8).unwrap_or(content);
    String::from_utf8_lossy(text).into_owned().into()
}

/// A piece with its length before it, and the rest.
fn piece(content: &[u8]) -> (&[u8], &[u8]) {
    match content {
        [low, high, rest @ ..] => {
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            rest.split_at(length.min(rest.len()))
        }
        _ => (content, &[]),
    }
}

/// One piece for each subject asked about; one that is missing or empty says that it is gone. As for
/// the client, an answer about another subject is none.
fn inspection(
    mut content: &[u8],
    sandboxes: Vec<pleg::lifecycle::SandboxId>,
    containers: Vec<pleg::lifecycle::ContainerId>,
) -> Inspection {
    let mut next = || {
        let (piece, rest) = piece(content);
        content = rest;
        piece
    };
    let gone = || failure(FailureKind::NotFound);
    let malformed = || failure(FailureKind::Malformed);
    let mut inspection = Inspection::default();
    for id in sandboxes {
        let answer = match next() {
            [] => Err(gone()),
            bytes => match raw::sandbox(bytes) {
                Ok((status, _)) if status.id == id => Ok(status),
                _ => Err(malformed()),
            },
        };
        inspection.sandboxes.push((id, answer));
    }
    for id in containers {
        let answer = match next() {
            [] => Err(gone()),
            bytes => match raw::container(bytes) {
                Ok(status) if status.id == id => Ok(status),
                _ => Err(malformed()),
            },
        };
        inspection.containers.push((id, answer));
    }
    inspection
}

fn failure(kind: FailureKind) -> Failure {
    Failure {
        kind,
        message: "fuzzed".into(),
    }
}

/// The input that outputs follow from.
struct Cause {
    is_answer: bool,
    steps_back: u64,
    at: Mono,
}

/// What the engine put out, and what that allows it to put out next.
#[derive(Default)]
struct Witness {
    calls: BTreeMap<RequestId, Question>,
    asked: Option<RequestId>,
    session: Option<SessionId>,
    readers: BTreeMap<ReaderId, Mark>,
    last_reader: u64,
    told: BTreeMap<SubjectId, EventSet>,
    /// What is published, pod by pod.
    shown: BTreeMap<PodUid, BTreeMap<SubjectId, ReportedState>>,
    /// The furthest known state of each subject that is published; Unknown moves nothing back.
    furthest: BTreeMap<SubjectId, ReportedState>,
    /// When subjects ceased to be published.
    gone: BTreeMap<SubjectId, Mono>,
    revision: Revision,
}

impl Witness {
    fn saw(&mut self, output: Output, cause: &Cause, stepped_back: bool) {
        match output {
            Output::Ask { request, question } => {
                assert!(Some(request) > self.asked, "a number is used again");
                self.asked = Some(request);
                let is_read = |call: &Question| {
                    matches!(call, Question::PodRelist { .. } | Question::Inspect { .. })
                };
                assert!(
                    is_read(&question) || !self.calls.values().any(|call| *call == question),
                    "asked twice at a time: {question:?}"
                );
                self.calls.insert(request, question);
                assert!(self.calls.values().filter(|call| is_read(call)).count() <= 8);
            }
            Output::OpenStream { session } => {
                assert_eq!(self.session.replace(session), None, "two streams at a time");
            }
            Output::CloseStream { session } => assert_eq!(self.session.take(), Some(session)),
            Output::Publish {
                uid,
                revision,
                status,
            } => {
                assert!(revision > self.revision, "a revision is not newer");
                self.revision = revision;
                self.published(uid, status.as_deref(), cause, stepped_back);
            }
            Output::Deliver(event) => self.delivered(&event, cause),
            Output::Answer { reader, reading } => {
                let newer_than = self.readers.remove(&reader);
                let newer_than = newer_than.expect("somebody waits for an answer");
                // A pod that cannot be read is answered with its error, which claims no freshness.
                let is_error = reading
                    .status
                    .as_ref()
                    .is_some_and(|pod| pod.error.is_some());
                assert!(
                    reading.observed >= newer_than || is_error,
                    "an answer is too old: {reading:?}, newer than {newer_than:?} was asked for"
                );
            }
            Output::Observed { .. }
            | Output::ObservedAll { .. }
            | Output::ModeChanged(_)
            | Output::Note(_) => {}
        }
    }

    fn published(
        &mut self,
        uid: PodUid,
        status: Option<&PodStatus>,
        cause: &Cause,
        stepped_back: bool,
    ) {
        let mut shown = BTreeMap::new();
        if let Some(status) = status {
            let sandboxes = status.sandboxes.iter();
            shown.extend(sandboxes.map(|one| (SubjectId::Sandbox(one.id.clone()), one.state)));
            let containers = status.containers.iter();
            shown.extend(containers.map(|one| (SubjectId::Container(one.id.clone()), one.state)));
        }
        for (id, state) in &shown {
            let may_go_back = cause.is_answer && stepped_back;
            if let Some(since) = self.gone.remove(id) {
                let is_forgotten = cause.at.since(since) >= REMEMBERED;
                assert!(may_go_back || is_forgotten, "{id} is shown again");
                self.furthest.remove(id);
                if is_forgotten {
                    self.told.remove(id);
                }
            }
            if *state == ReportedState::Unknown {
                continue;
            }
            let before = self.furthest.insert(id.clone(), *state);
            assert!(
                before.is_none_or(|before| before <= *state) || may_go_back,
                "{id} goes back from {before:?} to {state:?}"
            );
        }
        let before = self.shown.insert(uid, shown.clone()).unwrap_or_default();
        for id in before.into_keys().filter(|id| !shown.contains_key(id)) {
            self.furthest.remove(&id);
            self.gone.insert(id, cause.at);
        }
    }

    fn delivered(&mut self, event: &LifecycleEvent, cause: &Cause) {
        let kind = match event.kind {
            LifecycleKind::PodSync => return,
            LifecycleKind::ContainerStarted => EventSet::STARTED,
            LifecycleKind::ContainerDied => EventSet::DIED,
            LifecycleKind::ContainerRemoved => EventSet::REMOVED,
        };
        let subject = event.subject.as_ref().map(EventSubject::id);
        let subject = subject.expect("an event about nothing");
        let told = self.told.entry(subject.clone()).or_insert(EventSet::EMPTY);
        let forgotten = told.contains(EventSet::REMOVED)
            && self
                .gone
                .get(&subject)
                .is_none_or(|since| cause.at.since(*since) >= REMEMBERED);
        if forgotten {
            *told = EventSet::EMPTY;
        }
        assert!(
            told.still_tellable().contains(kind),
            "{:?} of {subject} after {told:?}",
            event.kind
        );
        *told = told.with(kind);
        if event.kind == LifecycleKind::ContainerRemoved {
            let pod = self.shown.get(&event.pod.uid);
            assert!(
                pod.is_none_or(|pod| !pod.contains_key(&subject)),
                "{subject} is told removed and still shown"
            );
        }
    }
}
