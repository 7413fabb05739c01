//! The engine in the hands of a test: a scripted clock, a runtime that answers, a stream that can be
//! cut, and everything that the engine says, written down.
//!
//! [`Node`] carries out the engine's outputs as the shell would. It answers questions at once, with
//! what the [`World`] is when they are sent, unless a test holds them back. Whatever a story is about,
//! the node also checks what must hold in every story: the cache is written before an event is
//! delivered, nothing is told twice or in the wrong order, revisions grow, one stream is open at most,
//! freshness never goes back, and the engine does not spin.

mod account;
mod breakages;
mod budgets;
mod contention;
mod foreign;
mod found_by_model;
mod freshness;
mod health;
mod hearing;
mod inspections;
mod lawcheck;
mod malformed;
mod node;
mod outputs;
mod pods;
mod records;
mod relists;
mod stream;
mod supervisor;
mod table;
mod trust;
mod verdicts;
mod waiting;
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
        node.earn(300.0);
        node.wait(10.0);
        node.forget_the_past();
        node
    }

    /// Lets time pass until the relist period is so many seconds.
    fn earn(&mut self, period: f64) {
        let longest = self.time() + 3_000.0;
        while self.period() < period {
            assert!(self.time() < longest, "the stream is never trusted");
            self.wait(1.0);
        }
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

    /// `count` ready pods `p0`…, each with a sandbox `s0`… that runs a container `c0`….
    fn run_pods(&mut self, count: usize) {
        for n in 0..count {
            self.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
            self.world.run(&format!("s{n}"), &format!("c{n}"));
        }
    }

    /// A trusted node on which the stream told of as many.
    fn trusted_with_pods(count: usize) -> Self {
        let mut node = Self::trusted();
        node.run_pods(count);
        for n in 0..count {
            node.tell(Started, &format!("c{n}"));
        }
        assert_eq!(node.take_told().len(), 2 * count);
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
        self.elapsed.saturating_sub(self.origin).as_secs_f64()
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
        self.at(self.time() + seconds);
    }

    fn pass_to(&mut self, moment: Duration) {
        self.elapsed = moment.max(self.elapsed);
        self.world.wall = self.now().wall;
    }

    /// Hands over an input, and whatever is due at this moment: answers first, then the wake.
    fn handle(&mut self, input: Input) {
        self.engine.handle(self.now(), input);
        self.carry_out();
        self.receive_due();
        let mut wakes = 0;
        while let Some(due) = self.engine.poll_timeout()
            && due <= self.now().mono
        {
            wakes += 1;
            assert!(wakes < 1000, "the engine spins at {}", self.time());
            self.engine.handle(self.now(), Input::Wake);
            self.carry_out();
            self.receive_due();
        }
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
}
