//! The owner: one synchronous state machine that holds the records, decides what to ask, what to
//! publish and what to deliver.
//!
//! It does no I/O, reads no clock, draws no randomness and iterates over nothing unordered: the same
//! inputs at the same times give the same outputs. Stream messages, answers, timers and requests are
//! its inputs; questions, cache writes and lifecycle events are its outputs. Nothing else writes the
//! cache or tells subscribers anything, which is what the reference's two writers could not be made
//! to do.
//!
//! # The contract of the caller
//!
//! - [`Engine::handle`] is the only way in. Give it [`Input::Start`] first, then whatever happens, in the
//!   order in which it happens, with the time at which it is handed over. Time given twice or running
//!   backwards is taken as standing still.
//! - After each `handle`, call [`Engine::poll_output`] until it returns `None` and carry the outputs out in
//!   that order: a status is published before the event that speaks of it is delivered.
//! - [`Engine::poll_timeout`] names the moment at which to call `handle` with [`Input::Wake`], unless
//!   something else comes first. It changes with every input, and may lie in the past. Give `Wake` after
//!   the stream messages that have come by then: a full relist begins with it, and messages about unknown
//!   ids that are handed over after that beginning and were sent before it are stale.
//! - Every [`Output::Ask`] gets exactly one [`Input::Answered`], a failure if nothing else, within the
//!   deadline of its call.
//! - At most one stream is open: [`Output::OpenStream`] never comes before the one before has ended or
//!   was closed.
//!
//! Where the rules come from: the laws are stated in `lifecycle::merge` (how claims merge), `stream` and
//! `hearing` (what an event may do), `merging` and `inspections` (what a read may do), `readers` (what
//! freshness may be claimed), `trust` and `supervisor` (when to believe the stream).

#[cfg(test)]
mod breakages;
mod calls;
#[cfg(test)]
mod canonical;
mod counters;
mod health;
mod hearing;
mod hints;
mod input;
mod inspections;
mod lists;
mod merging;
mod misses;
mod mode;
#[cfg(test)]
mod model;
mod pod;
#[cfg(test)]
mod properties;
mod publish;
mod readers;
mod records;
mod settings;
#[cfg(test)]
mod simulation;
mod staleness;
mod stream;
mod subject;
mod subjects;
mod supervisor;
#[cfg(test)]
mod tests;
mod timer;
mod trust;
mod unsettled;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use counters::{Call, Contradiction, Counters, Ignored, Note, SubjectEvent};
pub use health::{Health, HealthState, PendingCall};
pub use input::{
    Answer, Failure, FailureKind, Freshness, Input, Inspection, Output, Question, ReaderId,
    Reading, RequestId, RuntimeVersion, SessionId, StreamEnd,
};
pub use mode::{Mode, ModeChange, PollingReason};
pub use settings::Settings;
pub(crate) use settings::{
    GRACE, KEEP, MISSES_OF_A_GAP, SETTLE, SHORT_ENDS, STAMP_TOLERANCE, STREAM_MINIMUM_LIFE,
};
pub(crate) use staleness::ClockGuard;
pub use timer::Timer;

use calls::{CallBudget, InFlight, RelistSchedule};
use counters::bump;
use health::HealthWatch;
use hints::Hint;
use records::Records;
use supervisor::Supervisor;
use trust::Trust;

use crate::law::Law;
use crate::lifecycle::{Mark, Mono, Now, PodUid, Refusal, Revision, SeqPoint, SubjectId};

/// The state machine. See the module's documentation for how to drive it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Engine {
    settings: Settings,
    phase: EnginePhase,
    now: Now,
    /// The newest sequence point's counter.
    count: u64,
    revision: Revision,
    records: Records,
    supervisor: Supervisor,
    trust: Trust,
    clock: ClockGuard,
    health: HealthWatch,
    relists: RelistSchedule,
    budget: CallBudget,
    calls: BTreeMap<RequestId, InFlight>,
    next_request: u64,
    heartbeat_due: Mono,
    runtime: Option<RuntimeVersion>,
    /// When the newest full relist that was applied began.
    full_observed: Option<SeqPoint>,
    /// The pods that it could not vouch for.
    excepted: BTreeSet<PodUid>,
    /// Pods with readers or wishes that a full relist may satisfy.
    waiting: BTreeSet<PodUid>,
    /// Which pod each reader waits for.
    reading: BTreeMap<ReaderId, PodUid>,
    /// Pods that want a request, in the order in which they get one.
    queue: BTreeSet<(pod::Turn, PodUid)>,
    /// Changes that the stream may still tell, by when it is too late.
    expectations: BTreeSet<(Mono, SubjectId)>,
    /// What the stream told of ids that nobody knows, until a full relist shows or lacks them.
    hints: BTreeMap<Arc<str>, Hint>,
    /// Pods that this input changed.
    touched: BTreeSet<PodUid>,
    outputs: VecDeque<Output>,
    counters: Counters,
    last_stream_end: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EnginePhase {
    NotStarted,
    Running,
    Stopped,
}

impl Engine {
    /// An engine that has seen nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            phase: EnginePhase::NotStarted,
            now: Now::default(),
            count: 0,
            revision: Revision(0),
            records: Records::default(),
            supervisor: Supervisor::new(&settings),
            trust: Trust::new(&settings),
            clock: ClockGuard::default(),
            health: HealthWatch::default(),
            relists: RelistSchedule::default(),
            budget: CallBudget::default(),
            calls: BTreeMap::new(),
            next_request: 0,
            heartbeat_due: Mono(0),
            runtime: None,
            full_observed: None,
            excepted: BTreeSet::new(),
            waiting: BTreeSet::new(),
            reading: BTreeMap::new(),
            queue: BTreeSet::new(),
            expectations: BTreeSet::new(),
            hints: BTreeMap::new(),
            touched: BTreeSet::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            last_stream_end: None,
            settings,
        }
    }

    /// What it was set up with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes one input at one moment.
    pub fn handle(&mut self, now: Now, input: Input) {
        match (self.phase, &input) {
            (EnginePhase::NotStarted, Input::Start) => self.phase = EnginePhase::Running,
            (EnginePhase::Running, Input::Start) => return,
            (EnginePhase::Running, _) => {}
            _ => return,
        }
        self.now = Now {
            mono: now.mono.max(self.now.mono),
            wall: now.wall,
        };
        self.clock.observe(self.now);
        let at = self.point();
        let is_wake = matches!(input, Input::Start | Input::Wake);
        match input {
            Input::Start => self.heartbeat_due = self.now.mono,
            Input::Wake => {}
            Input::Answered { request, answer } => self.answered(request, answer, at),
            Input::StreamMessage { session, event } => self.stream_message(session, event, at),
            Input::StreamGarbage { session, refusal } => self.stream_garbage(session, refusal),
            Input::StreamOverflow {
                session,
                pods,
                dropped,
            } => self.stream_overflow(session, pods, dropped, at),
            Input::StreamEnded { session, end } => self.stream_ended(session, &end),
            Input::Read {
                reader,
                uid,
                newer_than,
                freshness,
            } => self.read_asked(reader, uid, newer_than, freshness),
            Input::CancelRead { reader } => self.read_cancelled(reader),
            Input::RequestRelist { uid: Some(uid) } => self.relist_requested(uid, at),
            Input::RequestRelist { uid: None } => self.relists.want(self.now.mono),
            Input::RequestReinspect { uid } => self.reinspect_requested(uid, at),
            Input::Shutdown => return self.stop(),
        }
        self.proceed(is_wake);
    }

    /// The next thing to do, in order; `None` when all is said.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Wake`] is wanted; `None` before the start and after the end.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.next_timer().map(|(at, _)| at)
    }

    /// The timer that [`Engine::poll_timeout`] stands for: when it is due, and what for.
    #[must_use]
    pub fn next_timer(&self) -> Option<(Mono, Timer)> {
        if self.phase != EnginePhase::Running {
            return None;
        }
        let heartbeat = (!self.is_out(Call::Version)).then_some(self.heartbeat_due);
        let relist = (!self.is_out(Call::FullRelist)).then(|| self.next_relist());
        [
            (heartbeat, Timer::Heartbeat),
            (relist, Timer::Relist),
            (self.next_room(), Timer::HangingCall),
            (self.supervisor.next_timeout(), Timer::Stream),
            (self.trust.next_close(), Timer::AuditGrace),
            (
                self.expectations.first().map(|(at, _)| *at),
                Timer::MissGrace,
            ),
            (self.records.wakes.first().map(|(at, _)| *at), Timer::Pod),
        ]
        .into_iter()
        .filter_map(|(at, timer)| at.map(|at| (at, timer)))
        .min()
    }

    /// A position for `get_newer_than`: whatever is asked of the runtime from now on is newer.
    pub fn mark(&mut self, now: Now) -> Mark {
        self.now.mono = self.now.mono.max(now.mono);
        Mark(self.point())
    }

    /// The mode now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.supervisor.mode
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The runtime, as it last answered `Version`.
    #[must_use]
    pub fn runtime(&self) -> Option<&RuntimeVersion> {
        self.runtime.as_ref()
    }

    /// Whether relists succeed often enough, and what is pending. Changes nothing.
    #[must_use]
    pub fn health(&self, now: Now) -> Health {
        let mono = now.mono.max(self.now.mono);
        let open = self.supervisor.open();
        let pending = self
            .calls
            .values()
            .min_by_key(|call| call.begun)
            .map(|call| PendingCall {
                call: call.call,
                uid: call.uid.clone(),
                age: mono.since(call.begun.at),
            });
        Health {
            state: self.health.state(mono),
            mode: self.supervisor.mode,
            last_relist_age: self.health.last_success.map(|at| mono.since(at)),
            threshold: if self.health.bad_at.is_some() {
                self.health.threshold
            } else {
                self.threshold()
            },
            last_event_age: open.and_then(|open| open.last_message.map(|at| mono.since(at))),
            stream_age: open.map(|open| mono.since(open.asked.at)),
            pending,
        }
    }

    /// The kinds of event that this runtime is known never to send.
    pub fn known_gaps(&self) -> impl Iterator<Item = SubjectEvent> + '_ {
        self.trust.gaps()
    }

    /// Pods with a subject that may change without an event, and so are looked at now and then.
    #[must_use]
    pub fn unsettled_pods(&self) -> usize {
        self.records
            .pods
            .values()
            .filter(|pod| pod.watch.is_some())
            .count()
    }

    /// Removed subjects that are remembered.
    #[must_use]
    pub fn tombstones(&self) -> usize {
        self.records.tombstones.len()
    }

    fn stop(&mut self) {
        if let Some(open) = self.supervisor.open() {
            let session = open.session;
            self.outputs.push_back(Output::CloseStream { session });
        }
        self.phase = EnginePhase::Stopped;
    }

    /// Everything that follows from an input: timers, the supervisor, questions, publications.
    ///
    /// A full relist begins only with a `Wake`: the caller may hold stream messages that came before
    /// this moment, and once a list has begun whatever they tell of ids unheard of is stale (law 2.5).
    /// Nor is anything missed before: whoever is behind by more than the grace has the message already.
    fn proceed(&mut self, is_wake: bool) {
        let at = self.point();
        if is_wake {
            self.judge_expectations(at);
            if self.trust.close_audits(at, &self.settings) {
                self.supervisor.audit_was_clean(at.at);
            }
        }
        self.supervisor.age(at.at);
        self.wake_pods(at);
        self.open_stream_if_due();
        self.update_mode();
        self.heartbeat_if_due();
        if is_wake {
            self.relist_if_due();
        }
        self.publish_touched();
        self.evict_tombstones();
        self.send_queued();
    }

    /// Forgets the oldest removed subjects past the limit, once everything of them was told.
    fn evict_tombstones(&mut self) {
        let kept = if Law::TombstonesAreKept.holds() {
            self.settings.tombstones
        } else {
            0
        };
        while self.records.tombstones.len() > kept {
            let Some((_, oldest)) = self.records.tombstones.first().cloned() else {
                return;
            };
            self.records.forget(&oldest);
            self.counters.tombstones_evicted += 1;
        }
    }

    /// A new point in the owner's order.
    fn point(&mut self) -> SeqPoint {
        self.count += 1;
        SeqPoint {
            at: self.now.mono,
            count: self.count,
        }
    }

    fn next_revision(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    fn note(&mut self, note: Note) {
        self.outputs.push_back(Output::Note(note));
    }

    fn refuse(&mut self, refusal: Refusal) {
        bump(&mut self.counters.refused, refusal);
        self.note(Note::Refused(refusal));
    }

    fn ignore(&mut self, why: Ignored, id: &str) {
        bump(&mut self.counters.ignored, why);
        // A message that only repeats what is known is everyday news.
        if why != Ignored::Behind {
            self.note(Note::Ignored { why, id: id.into() });
        }
    }

    fn touch(&mut self, uid: &PodUid) {
        if !self.touched.contains(uid) {
            self.touched.insert(uid.clone());
        }
    }
}
