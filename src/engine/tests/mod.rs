//! The engine in the hands of a test: a scripted clock, a runtime that answers, a stream that can be
//! cut, and everything that the engine says, written down.
//!
//! [`Node`] carries out the engine's outputs as the shell would. It answers questions at once, with
//! what the [`World`] is when they are sent, unless a test holds them back. Whatever a story is about,
//! the node also checks what must hold in every story: the cache is written before an event is
//! delivered, nothing is told twice or in the wrong order, revisions grow, one stream is open at most,
//! freshness never goes back, and the engine does not spin.

mod budgets;
mod found_by_model;
mod freshness;
mod health;
mod inspections;
mod lawcheck;
mod node;
mod pods;
mod relists;
mod stream;
mod supervisor;
mod table;
mod trust;
mod windows;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{
    Answer, Call, Engine, FailureKind, Freshness, Health, Input, Mode, Output, Question, ReaderId,
    Reading, RequestId, SessionId, Settings, StreamEnd,
};
use crate::lifecycle::{
    EventKind, EventSubject, LifecycleEvent, LifecycleKind, Mark, Mono, Now, PodStatus,
    ReportedState, Revision, RuntimeEvent, SubjectId, UnixNanos,
};
use world::{Serves, World, failure, unavailable};

use EventKind::{Created, Deleted, Started, Stopped};

/// 2023-11-14, the wall clock's beginning.
const NOON: i64 = 1_700_000_000_000_000_000;

/// Nothing told, nothing asked.
const NOTHING: [&str; 0] = [];

/// What reaches the engine later than now.
enum Coming {
    Answer(RequestId, Answer),
    End(SessionId, StreamEnd),
}

struct Node {
    engine: Engine,
    world: World,
    /// What `at` counts from.
    origin: Duration,
    elapsed: Duration,
    /// By how much the wall clock was set, in nanoseconds.
    wall_shift: i64,
    coming: BTreeMap<(Duration, u64), Coming>,
    sent: u64,
    /// How long each kind of call takes; at once if it is not named.
    latency: BTreeMap<Call, Duration>,
    /// Kinds of call whose answers are held back.
    holding: BTreeSet<Call>,
    held: Vec<(RequestId, Answer)>,
    /// Pods whose statuses are not answered before the deadline.
    hanging: BTreeSet<&'static str>,
    session: Option<SessionId>,
    opened: Vec<f64>,
    events: Vec<Arc<LifecycleEvent>>,
    told: Vec<String>,
    told_of: BTreeMap<SubjectId, Vec<LifecycleKind>>,
    asked: Vec<String>,
    rpcs: usize,
    heartbeats: usize,
    in_flight: BTreeMap<RequestId, Call>,
    most_in_flight: usize,
    cache: BTreeMap<String, Arc<PodStatus>>,
    observed: BTreeMap<String, Mark>,
    observed_all: Option<(Mark, BTreeSet<String>)>,
    revision: Revision,
    answers: BTreeMap<ReaderId, Reading>,
    readers: u64,
    modes: Vec<String>,
    notes: usize,
}

impl Node {
    /// A node that has not started.
    fn with(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings),
            world: World {
                wall: UnixNanos(NOON),
                ..World::new()
            },
            origin: Duration::ZERO,
            elapsed: Duration::ZERO,
            wall_shift: 0,
            coming: BTreeMap::new(),
            sent: 0,
            latency: BTreeMap::new(),
            holding: BTreeSet::new(),
            held: Vec::new(),
            hanging: BTreeSet::new(),
            session: None,
            opened: Vec::new(),
            events: Vec::new(),
            told: Vec::new(),
            told_of: BTreeMap::new(),
            asked: Vec::new(),
            rpcs: 0,
            heartbeats: 0,
            in_flight: BTreeMap::new(),
            most_in_flight: 0,
            cache: BTreeMap::new(),
            observed: BTreeMap::new(),
            observed_all: None,
            revision: Revision(0),
            answers: BTreeMap::new(),
            readers: 0,
            modes: Vec::new(),
            notes: 0,
        }
    }

    fn new() -> Self {
        Self::with(Settings {
            jitter_percent: 0,
            ..Settings::default()
        })
    }

    /// A node that only ever polls: the gate is off. Started, on an empty runtime.
    fn polling() -> Self {
        let mut node = Self::with(Settings {
            evented: false,
            ..Settings::default()
        });
        node.start();
        node.forget_the_past();
        node
    }

    /// A node whose stream has earned the slow period, seconds after a relist. Nothing is on it but a
    /// pod `warm`, whose start the stream told and a relist agreed with.
    fn trusted() -> Self {
        let mut node = Self::new();
        node.start();
        node.wait(5.0);
        node.world.sandbox("warm", "W", "10.0.0.99");
        node.tell(Started, "W");
        while node.period() < 300.0 {
            node.wait(1.0);
        }
        node.wait(10.0);
        node.forget_the_past();
        node
    }

    /// The same with a pod `P` whose sandbox `S1` (address `A`) runs the container `c1`.
    fn with_c1() -> Self {
        let mut node = Self::trusted();
        node.world.sandbox("P", "S1", "A");
        node.tell(Started, "S1");
        node.world.run("S1", "c1");
        node.tell(Started, "c1");
        assert_eq!(node.take_told(), ["Started(S1)", "Started(c1)"]);
        node.wait(5.0);
        node.forget_the_past();
        node
    }

    fn start(&mut self) {
        self.handle(Input::Start);
    }

    /// Counts time from here, and forgets what was told, asked and opened so far.
    fn forget_the_past(&mut self) {
        self.origin = self.elapsed;
        self.told.clear();
        self.events.clear();
        self.asked.clear();
        self.opened.clear();
        self.modes.clear();
        self.rpcs = 0;
        self.heartbeats = 0;
        self.notes = 0;
    }

    fn now(&self) -> Now {
        let mono = u64::try_from(self.elapsed.as_nanos()).unwrap();
        Now {
            mono: Mono(mono),
            wall: UnixNanos(NOON + i64::try_from(mono).unwrap() + self.wall_shift),
        }
    }

    /// Seconds since the origin.
    fn time(&self) -> f64 {
        (self.elapsed - self.origin).as_secs_f64()
    }

    fn set_wall_clock(&mut self, seconds: i64) {
        self.wall_shift += seconds * 1_000_000_000;
        self.world.wall = self.now().wall;
    }

    /// Lets time pass until so many seconds after the origin.
    fn at(&mut self, seconds: f64) {
        let until = self.origin + Duration::from_secs_f64(seconds);
        assert!(until >= self.elapsed, "{seconds} is in the past");
        let mut wakes_at_once = 0;
        loop {
            let answer = self.coming.first_key_value().map(|((due, _), _)| *due);
            let wake = self.engine.poll_timeout();
            let wake = wake.map(|at| Duration::from_nanos(at.0).max(self.elapsed));
            let Some(next) = [answer, wake].into_iter().flatten().min() else {
                break;
            };
            if next > until {
                break;
            }
            wakes_at_once = if next > self.elapsed {
                0
            } else {
                wakes_at_once + 1
            };
            assert!(wakes_at_once < 1000, "the engine spins at {}", self.time());
            self.pass_to(next);
            if answer == Some(next) {
                self.receive_due();
            } else {
                self.handle(Input::Wake);
            }
        }
        self.pass_to(until);
    }

    fn wait(&mut self, seconds: f64) {
        let until = self.elapsed - self.origin + Duration::from_secs_f64(seconds);
        self.at(until.as_secs_f64());
    }

    fn pass_to(&mut self, moment: Duration) {
        self.elapsed = moment.max(self.elapsed);
        self.world.wall = self.now().wall;
    }

    fn handle(&mut self, input: Input) {
        self.engine.handle(self.now(), input);
        self.carry_out();
        self.receive_due();
    }

    fn receive_due(&mut self) {
        while let Some(entry) = self.coming.first_entry()
            && entry.key().0 <= self.elapsed
        {
            let input = match entry.remove() {
                Coming::Answer(request, answer) => {
                    self.in_flight.remove(&request);
                    Input::Answered { request, answer }
                }
                Coming::End(session, _) if self.session != Some(session) => continue,
                Coming::End(session, end) => {
                    self.session = None;
                    Input::StreamEnded { session, end }
                }
            };
            self.engine.handle(self.now(), input);
            self.carry_out();
        }
    }

    fn schedule(&mut self, after: Duration, coming: Coming) {
        self.sent += 1;
        self.coming
            .insert((self.elapsed + after, self.sent), coming);
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Ask { request, question } => self.ask(request, &question),
                Output::OpenStream { session } => {
                    assert_eq!(self.session, None, "two streams are open");
                    self.session = Some(session);
                    self.opened.push(self.time());
                    if let Some(end) = self.world.stream_end() {
                        self.schedule(Duration::from_millis(1), Coming::End(session, end));
                    }
                }
                Output::CloseStream { session } => {
                    assert_eq!(self.session.take(), Some(session));
                }
                Output::Publish {
                    uid,
                    revision,
                    status,
                } => {
                    self.grow_to(revision);
                    match status {
                        Some(status) => self.cache.insert(uid.as_str().into(), status),
                        None => self.cache.remove(uid.as_str()),
                    };
                }
                Output::Observed { uid, mark } => {
                    let before = self.observed.insert(uid.as_str().into(), mark);
                    assert!(before < Some(mark), "freshness of {uid} goes back");
                }
                Output::ObservedAll { mark, except } => {
                    let except = except.iter().map(|uid| uid.as_str().into()).collect();
                    let before = self.observed_all.replace((mark, except));
                    assert!(before.is_none_or(|(before, _)| before < mark));
                }
                Output::Deliver(event) => self.delivered(event),
                Output::Answer { reader, reading } => {
                    let before = self.answers.insert(reader, reading);
                    assert_eq!(before, None, "a reader is answered twice");
                }
                Output::ModeChanged(change) => {
                    self.modes.push(format!("{} -> {}", change.from, change.to));
                }
                Output::Note(_) => self.notes += 1,
            }
        }
    }

    fn ask(&mut self, request: RequestId, question: &Question) {
        let call = match question {
            Question::Version => {
                self.heartbeats += 1;
                Call::Version
            }
            Question::FullRelist => {
                self.rpcs += 2;
                self.asked.push("Relist".into());
                Call::FullRelist
            }
            Question::PodRelist { uid } => {
                self.rpcs += 2;
                self.asked.push(format!("Relist({uid})"));
                Call::PodRelist
            }
            Question::Inspect {
                sandboxes,
                containers,
                ..
            } => {
                self.rpcs += sandboxes.len() + containers.len();
                let sandboxes = sandboxes.iter().map(ToString::to_string);
                let ids = sandboxes.chain(containers.iter().map(ToString::to_string));
                let ids = ids.collect::<Vec<_>>().join(" ");
                self.asked.push(format!("Inspect({ids})"));
                Call::Inspect
            }
        };
        self.in_flight.insert(request, call);
        let of_pods = |call: &&Call| matches!(**call, Call::PodRelist | Call::Inspect);
        let out = self.in_flight.values().filter(of_pods).count();
        self.most_in_flight = self.most_in_flight.max(out);
        if let Question::Inspect { uid, .. } = question
            && self.hanging.contains(uid.as_str())
        {
            return self.hang(request, question);
        }
        let answer = self.world.answer(question);
        if self.holding.contains(&call) {
            self.held.push((request, answer));
        } else {
            let latency = self.latency.get(&call).copied().unwrap_or_default();
            self.schedule(latency, Coming::Answer(request, answer));
        }
    }

    /// Nothing comes until the shell's deadline.
    fn hang(&mut self, request: RequestId, question: &Question) {
        let Answer::Inspected(mut answer) = self.world.answer(question) else {
            unreachable!("only inspections hang here");
        };
        let late = || failure(FailureKind::DeadlineExceeded, "no answer within 120 s");
        for (_, result) in &mut answer.sandboxes {
            *result = Err(late());
        }
        for (_, result) in &mut answer.containers {
            *result = Err(late());
        }
        let deadline = Duration::from_secs(120);
        self.schedule(deadline, Coming::Answer(request, Answer::Inspected(answer)));
    }

    /// Keeps back the answers to calls of this kind that are sent from now on.
    fn hold(&mut self, call: Call) {
        self.holding.insert(call);
    }

    /// Hands over what was held back, as it was when it was asked for, and holds nothing more.
    fn release(&mut self) {
        self.holding.clear();
        for (request, answer) in std::mem::take(&mut self.held) {
            self.in_flight.remove(&request);
            self.handle(Input::Answered { request, answer });
        }
    }

    fn delivered(&mut self, event: Arc<LifecycleEvent>) {
        self.grow_to(event.revision);
        let id = event.subject.as_ref().map(EventSubject::id);
        if let Some(id) = &id {
            self.check_once(id, event.kind);
            self.check_cache_first(id, &event);
        }
        let id = id.map_or_else(|| event.pod.uid.to_string(), |id| id.to_string());
        assert_ne!(id, "", "something is told of an empty id");
        let kind = event.kind.to_string();
        let kind = kind.trim_start_matches("Container");
        self.told.push(format!("{kind}({id})"));
        self.events.push(event);
    }

    fn check_once(&mut self, id: &SubjectId, kind: LifecycleKind) {
        let before = self.told_of.entry(id.clone()).or_default();
        let last = before.last();
        assert!(last < Some(&kind), "{kind} of {id} after {before:?}");
        before.push(kind);
    }

    /// The cache shows what is told, or a further phase, or no longer the subject.
    fn check_cache_first(&self, id: &SubjectId, event: &LifecycleEvent) {
        let Some(status) = self.cache.get(event.pod.uid.as_str()) else {
            return;
        };
        let shown = match id {
            SubjectId::Sandbox(id) => {
                let mut sandboxes = status.sandboxes.iter();
                sandboxes.find(|it| it.id == *id).map(|it| it.state)
            }
            SubjectId::Container(id) => {
                let mut containers = status.containers.iter();
                containers.find(|it| it.id == *id).map(|it| it.state)
            }
        };
        let least = match event.kind {
            LifecycleKind::ContainerStarted => ReportedState::Running,
            LifecycleKind::ContainerDied => ReportedState::Exited,
            LifecycleKind::ContainerRemoved | LifecycleKind::PodSync => {
                assert_eq!(shown, None, "{id} is told removed and still in the cache");
                return;
            }
        };
        assert!(
            shown.is_none_or(|shown| shown >= least),
            "{} of {id} is told while the cache shows {shown:?}",
            event.kind
        );
    }

    fn grow_to(&mut self, revision: Revision) {
        assert!(revision > self.revision, "{revision:?} comes twice");
        self.revision = revision;
    }
}
