//! Plays a plan: the real engine against a simulated node, stream, calls and clocks, in virtual time.
//!
//! It owns what is under way: messages, the parts of answers, deadlines. A message shows the node when
//! it was made; each part of an answer shows it at some moment between question and answer. Everything
//! at one moment happens in the order in which it was set off.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::act::{Act, Character, Named, Plan};
use super::node::{Node, uid};
use super::trouble::Trouble;
use super::watchers::Watchers;
use super::witness::Witness;
use crate::engine::model::{Dice, Violation, violated};
use crate::engine::{
    Engine, Failure, FailureKind, Freshness, Input, Inspection, Output, Question, RequestId,
    SessionId, Settings, StreamEnd,
};
use crate::lifecycle::{Mark, Mono, NodeList, Now, Refusal, RuntimeEvent, UnixNanos};

const WALL_AT_START: i64 = 1_767_225_600_000_000_000;
/// More wake-ups than this at one instant are a live-lock.
const STEPS_AT_ONE_INSTANT: u32 = 500;

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) about: usize,
    pub(super) event: RuntimeEvent,
    pub(super) made: Mono,
    pub(super) is_lie: bool,
}

/// What is due at some moment.
#[derive(Clone, Debug)]
pub(super) enum Due {
    /// The node's part of an answer is read.
    ReadSandboxes(RequestId),
    ReadContainers(RequestId),
    Answer(RequestId),
    Deadline(RequestId),
    Refused(RequestId),
    /// A message arrives on this stream.
    Arrives(SessionId, Message),
    /// The inbox had no room for it.
    Dropped(SessionId, Message),
    Garbage(SessionId),
    StreamEnds(SessionId, StreamEnd),
    /// A message that was kept back is sent.
    Released(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) question: Question,
    pub(super) asked: Mono,
    pub(super) list: NodeList,
    pub(super) inspection: Inspection,
    /// Why it fails, if it does.
    pub(super) fails: bool,
}

/// See the module.
pub(crate) struct Play {
    pub(super) engine: Engine,
    pub(super) node: Node,
    pub(super) witness: Witness,
    pub(super) watchers: Watchers,
    pub(super) now: Now,
    pub(super) character: Character,
    pub(super) trouble: Trouble,
    pub(super) dice: Dice,
    pub(super) queue: BTreeMap<(Mono, u64), Due>,
    pub(super) set_off: u64,
    pub(super) calls: BTreeMap<RequestId, Call>,
    pub(super) stream: Option<SessionId>,
    /// When the newest message on the stream arrives: none overtakes it by itself.
    pub(super) last_arrival: Mono,
    /// Messages that a runtime keeps while nobody listens.
    pub(super) unheard: VecDeque<Message>,
    /// Messages that come late, by number.
    pub(super) kept_back: BTreeMap<u64, Message>,
    /// Messages that each wait for the one behind them.
    pub(super) overtaken: Vec<Message>,
    pub(super) is_up: bool,
    pub(super) is_frozen: bool,
    /// What would have happened in the frozen runtime.
    pub(super) frozen: Vec<Due>,
    pub(super) held_mark: Option<Mark>,
    /// Full relists that were answered, with when they were asked.
    pub(super) relisted: Vec<Mono>,
    pub(super) full_relists_asked: u64,
}

impl Play {
    pub(crate) fn begin(plan: &Plan, settings: Settings) -> Result<Self, Violation> {
        let mut begun = Self {
            engine: Engine::new(settings),
            node: Node::default(),
            witness: Witness::default(),
            watchers: Watchers::new(plan.character.capacity)?,
            now: Now {
                mono: Mono(1_000_000_000),
                wall: UnixNanos(WALL_AT_START),
            },
            character: plan.character,
            trouble: Trouble::default(),
            dice: Dice::seeded(plan.seed),
            queue: BTreeMap::new(),
            set_off: 0,
            calls: BTreeMap::new(),
            stream: None,
            last_arrival: Mono::default(),
            unheard: VecDeque::new(),
            kept_back: BTreeMap::new(),
            overtaken: Vec::new(),
            is_up: true,
            is_frozen: false,
            frozen: Vec::new(),
            held_mark: None,
            relisted: Vec::new(),
            full_relists_asked: 0,
        };
        for &act in &plan.initial {
            for change in begun.node.changes(act).into_iter().flatten() {
                begun.node.make_true(change, Mark::default());
            }
        }
        begun.take(Input::Start)?;
        Ok(begun)
    }

    /// Does one thing now.
    pub(crate) fn act(&mut self, act: Act) -> Result<(), Violation> {
        if let Some(changes) = self.node.changes(act) {
            for change in changes {
                self.change(change);
            }
            return Ok(());
        }
        if self.trouble.begins_with(act) {
            return Ok(());
        }
        match act {
            Act::StopRuntime => self.stop_runtime(),
            Act::StartRuntime => {
                self.is_up = true;
                Ok(())
            }
            Act::FreezeRuntime => {
                self.is_frozen = self.is_up;
                Ok(())
            }
            Act::ThawRuntime => self.thaw(),
            Act::StepClock { millis } => {
                self.now.wall.0 += millis * 1_000_000;
                Ok(())
            }
            Act::Unmute => {
                self.unmute();
                Ok(())
            }
            Act::FalseDeleted { pod, name } => {
                self.slander(pod, name);
                Ok(())
            }
            Act::Garble { pod, name } => {
                let at = match name {
                    Some(name) => self.node.container(Named { pod, name }),
                    None => self.node.sandbox(pod),
                };
                self.trouble.garbled.extend(at);
                Ok(())
            }
            Act::Garbage => {
                if let Some(session) = self.stream {
                    self.after_transit(|_| Due::Garbage(session));
                }
                Ok(())
            }
            Act::EndStream => {
                if let Some(session) = self.stream {
                    self.after_transit(|_| Due::StreamEnds(session, StreamEnd::Clean));
                }
                Ok(())
            }
            Act::BreakStream => match self.stream {
                Some(session) => self.stream_ends(session, StreamEnd::Broken(unavailable())),
                None => Ok(()),
            },
            Act::StopReading => {
                self.watchers.stall(true);
                Ok(())
            }
            Act::ResumeReading => {
                self.watchers.stall(false);
                Ok(())
            }
            Act::Subscribe => self.watchers.subscribe(),
            Act::GiveUp => match self.witness.gives_up() {
                Some(reader) => self.take(Input::CancelRead { reader }),
                None => Ok(()),
            },
            Act::Mark => {
                self.held_mark = Some(self.engine.mark(self.now));
                Ok(())
            }
            Act::Ask { pod, phases_only } => self.ask_for(pod, phases_only),
            Act::Relist { pod } => self.take(Input::RequestRelist {
                uid: Some(uid(pod)),
            }),
            Act::RelistAll => self.take(Input::RequestRelist { uid: None }),
            Act::Reinspect { pod } => {
                self.witness.wants_sync(pod);
                self.take(Input::RequestReinspect { uid: uid(pod) })
            }
            // What was done is impossible by now.
            _ => Ok(()),
        }
    }

    pub(super) fn ask_for(&mut self, pod: u8, phases_only: bool) -> Result<(), Violation> {
        let newer_than = match self.held_mark.take() {
            Some(mark) => mark,
            None => self.engine.mark(self.now),
        };
        let freshness = if phases_only {
            Freshness::Phases
        } else {
            Freshness::Details
        };
        let reader = self.witness.asks(pod, newer_than, freshness);
        self.take(Input::Read {
            reader,
            uid: uid(pod),
            newer_than,
            freshness,
        })
    }

    /// Everything is well from now on: nothing fails, nothing is kept back, the runtime runs.
    pub(super) fn heal(&mut self) -> Result<(), Violation> {
        self.is_up = true;
        self.trouble.ends();
        self.thaw()?;
        self.unmute();
        Ok(())
    }

    /// Whether nothing is under way that began by `since`.
    pub(super) fn is_drained(&self, since: Mono) -> bool {
        let is_message = |due: &Due| {
            matches!(
                due,
                Due::Arrives(..) | Due::Dropped(..) | Due::StreamEnds(..)
            )
        };
        !self.queue.values().any(is_message) && self.calls.values().all(|call| call.asked > since)
    }

    /// Whether the runtime is asked nothing but, perhaps, its version.
    pub(super) fn is_unasked(&self) -> bool {
        self.calls
            .values()
            .all(|call| call.question == Question::Version)
    }
}

/// Time.
impl Play {
    pub(super) fn pass(&mut self, millis: u32) -> Result<(), Violation> {
        let until = self
            .now
            .mono
            .after(Duration::from_millis(u64::from(millis)));
        while self.step(until)? {}
        self.pass_until(until);
        Ok(())
    }

    /// Lets happen what is due next, if it is due by `until`.
    pub(super) fn step(&mut self, until: Mono) -> Result<bool, Violation> {
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        let timeout = self.engine.poll_timeout();
        let Some(next) = queued.into_iter().chain(timeout).min() else {
            return Ok(false);
        };
        if next > until {
            return Ok(false);
        }
        self.pass_until(next);
        let mut wakes = 0;
        loop {
            while let Some(entry) = self.queue.first_entry()
                && entry.key().0 <= self.now.mono
            {
                let due = entry.remove();
                self.happens(due)?;
            }
            if self
                .engine
                .poll_timeout()
                .is_none_or(|timeout| timeout > self.now.mono)
            {
                return Ok(true);
            }
            wakes += 1;
            if wakes > STEPS_AT_ONE_INSTANT {
                return violated("Quiet", "wake-ups without end at one instant".to_owned());
            }
            self.take(Input::Wake)?;
        }
    }

    pub(super) fn pass_until(&mut self, until: Mono) {
        let passed = until.since(self.now.mono);
        self.now.mono = self.now.mono.after(passed);
        self.now.wall.0 += i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
    }

    pub(super) fn set_off(&mut self, at: Mono, due: Due) {
        self.set_off += 1;
        self.queue.insert((at, self.set_off), due);
    }

    pub(super) fn later(&self, millis: u32) -> Mono {
        self.now
            .mono
            .after(Duration::from_millis(u64::from(millis)))
    }

    pub(super) fn happens(&mut self, due: Due) -> Result<(), Violation> {
        let in_the_runtime = matches!(
            due,
            Due::ReadSandboxes(_)
                | Due::ReadContainers(_)
                | Due::Answer(_)
                | Due::Arrives(..)
                | Due::Dropped(..)
                | Due::Garbage(_)
                | Due::StreamEnds(..)
        );
        if self.is_frozen && in_the_runtime {
            self.frozen.push(due);
            return Ok(());
        }
        match due {
            Due::ReadSandboxes(request) => {
                self.read_sandboxes(request);
                Ok(())
            }
            Due::ReadContainers(request) => {
                self.read_containers(request);
                Ok(())
            }
            Due::Answer(request) => self.answer(request, None),
            Due::Deadline(request) => self.answer(request, Some(FailureKind::DeadlineExceeded)),
            Due::Refused(request) => self.answer(request, Some(FailureKind::Unavailable)),
            Due::Arrives(session, message) => self.arrives(session, message),
            Due::Dropped(session, message) => self.dropped(session, &message),
            Due::Garbage(session) if self.stream == Some(session) => {
                self.take(Input::StreamGarbage {
                    session,
                    refusal: Refusal::Undecodable,
                })
            }
            Due::Garbage(_) => Ok(()),
            Due::StreamEnds(session, end) => self.stream_ends(session, end),
            Due::Released(number) => {
                if let Some(message) = self.kept_back.remove(&number) {
                    self.send(message, false);
                }
                Ok(())
            }
        }
    }
}

/// The engine.
impl Play {
    pub(super) fn take(&mut self, input: Input) -> Result<(), Violation> {
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            self.carry_out(output)?;
        }
        Ok(())
    }

    pub(super) fn carry_out(&mut self, output: Output) -> Result<(), Violation> {
        let Self { node, witness, .. } = self;
        match output {
            Output::Ask { request, question } => self.ask(request, question)?,
            Output::OpenStream { session } => self.open_stream(session)?,
            Output::CloseStream { session } => {
                if self.stream.take() != Some(session) {
                    return violated("Bounded", format!("{session:?} is not open"));
                }
            }
            Output::Publish {
                uid,
                revision,
                status,
            } => {
                witness.published(&uid, revision, status.as_ref(), node)?;
                self.watchers.publish(uid, revision, status);
            }
            Output::Observed { uid, mark } => {
                witness.vouched(&uid, mark, node)?;
                self.watchers.writer.observed(uid, mark);
            }
            Output::ObservedAll { mark, except } => {
                witness.vouched_for_all(mark, |uid| except.contains(uid), node)?;
                self.watchers.writer.observed_all(mark, except);
            }
            Output::Deliver(event) => {
                witness.delivered(&event, node)?;
                self.watchers.deliver(event);
            }
            Output::Answer { reader, reading } => witness.answered(reader, &reading, node)?,
            Output::ModeChanged(_) | Output::Note(_) => {}
        }
        Ok(())
    }
}

pub(super) fn failure(kind: FailureKind) -> Failure {
    Failure {
        kind,
        message: "simulated fault".into(),
    }
}

pub(super) fn unavailable() -> Failure {
    failure(FailureKind::Unavailable)
}
