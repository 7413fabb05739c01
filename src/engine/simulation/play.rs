//! Plays a plan: the real engine against a simulated node, stream, calls and clocks, in virtual time.
//!
//! It owns what is under way: messages, the parts of answers, deadlines. A message shows the node when
//! it was made; each part of an answer shows it at some moment between question and answer. Everything
//! at one moment happens in the order in which it was set off.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::act::{Act, Character, Method, Plan};
use super::node::{Change, Node, uid};
use super::trouble::{Mishap, Outcome, Trouble};
use super::watchers::Watchers;
use super::witness::Witness;
use crate::engine::model::{Dice, Violation, violated};
use crate::engine::{
    Answer, Engine, Failure, FailureKind, Freshness, Input, Inspection, Output, Question,
    RequestId, RuntimeVersion, SessionId, Settings, StreamEnd,
};
use crate::lifecycle::{
    EventKind, Mark, Mono, NodeList, Now, PodUid, Refusal, RuntimeEvent, SubjectId, UnixNanos,
};

const WALL_AT_START: i64 = 1_767_225_600_000_000_000;
/// More wake-ups than this at one instant are a live-lock.
const STEPS_AT_ONE_INSTANT: u32 = 500;
const VERSION_DEADLINE: Duration = Duration::from_secs(5);
const READ_DEADLINE: Duration = Duration::from_secs(120);
/// A call that is out for so long makes room for another, up to so many times the cap.
const HANGING: Duration = Duration::from_secs(10);
const CAPS_WHEN_CALLS_HANG: usize = 4;
/// containerd 1.7 keeps at most so many messages for nobody.
const KEPT_MESSAGES: usize = 1_000;
/// Messages older than this when somebody comes are beyond what the laws assume.
const KEPT_FOR: Duration = Duration::from_secs(280);

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    about: usize,
    event: RuntimeEvent,
    made: Mono,
    is_lie: bool,
}

/// What is due at some moment.
#[derive(Clone, Debug)]
enum Due {
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
struct Call {
    question: Question,
    asked: Mono,
    list: NodeList,
    inspection: Inspection,
    /// Why it fails, if it does.
    fails: bool,
}

/// See the module.
pub(crate) struct Play {
    pub(super) engine: Engine,
    pub(super) node: Node,
    pub(super) witness: Witness,
    pub(super) watchers: Watchers,
    pub(super) now: Now,
    character: Character,
    trouble: Trouble,
    dice: Dice,
    queue: BTreeMap<(Mono, u64), Due>,
    set_off: u64,
    calls: BTreeMap<RequestId, Call>,
    stream: Option<SessionId>,
    /// When the newest message on the stream arrives: none overtakes it by itself.
    last_arrival: Mono,
    /// Messages that a runtime keeps while nobody listens.
    unheard: VecDeque<Message>,
    /// Messages that come late, by number.
    kept_back: BTreeMap<u64, Message>,
    /// Messages that each wait for the one behind them.
    overtaken: Vec<Message>,
    is_up: bool,
    is_frozen: bool,
    /// What would have happened in the frozen runtime.
    frozen: Vec<Due>,
    held_mark: Option<Mark>,
    /// Full relists that were answered, with when they were asked.
    pub(super) relisted: Vec<Mono>,
    pub(super) full_relists_asked: u64,
}

impl Play {
    pub(crate) fn begin(plan: &Plan, settings: Settings) -> Result<Self, Violation> {
        let mut play = Self {
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
            for change in play.node.changes(act).into_iter().flatten() {
                play.node.make_true(change, Mark::default());
            }
        }
        play.take(Input::Start)?;
        Ok(play)
    }

    /// Does one thing now.
    pub(crate) fn act(&mut self, act: Act) -> Result<(), Violation> {
        if let Some(changes) = self.node.changes(act) {
            for change in changes {
                self.change(change)?;
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
            Act::Unmute => self.unmute(),
            Act::FalseDeleted { pod, name } => self.slander(pod, name),
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

    fn ask_for(&mut self, pod: u8, phases_only: bool) -> Result<(), Violation> {
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
        self.unmute()
    }

    /// Whether nothing is under way that began before `since`.
    pub(super) fn is_drained(&self, since: Mono) -> bool {
        let is_message = |due: &Due| {
            matches!(
                due,
                Due::Arrives(..) | Due::Dropped(..) | Due::StreamEnds(..)
            )
        };
        !self.queue.values().any(is_message) && self.calls.values().all(|call| call.asked >= since)
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

    fn pass_until(&mut self, until: Mono) {
        let passed = until.since(self.now.mono);
        self.now.mono = self.now.mono.after(passed);
        self.now.wall.0 += i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
    }

    fn set_off(&mut self, at: Mono, due: Due) {
        self.set_off += 1;
        self.queue.insert((at, self.set_off), due);
    }

    fn later(&self, millis: u32) -> Mono {
        self.now
            .mono
            .after(Duration::from_millis(u64::from(millis)))
    }

    fn happens(&mut self, due: Due) -> Result<(), Violation> {
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

/// The node and its stream.
impl Play {
    fn change(&mut self, change: Change) -> Result<(), Violation> {
        let mark = self.engine.mark(self.now);
        // Of a sandbox that is being removed, containerd 2 shows the last state; others show none.
        let shows_last = matches!(change, Change::Become { at, .. } if at % 2 == 0);
        let before = match change {
            Change::Become { at, .. } if shows_last => self.node.sandbox_status(at),
            _ => None,
        };
        let at = self.node.make_true(change, mark);
        for &kind in self.node.news_of(change) {
            let mut message = self.message(at, kind);
            if kind == EventKind::Deleted && message.event.sandbox.is_none() {
                message.event.sandbox.clone_from(&before);
            }
            self.tell(message);
        }
        Ok(())
    }

    fn message(&self, about: usize, kind: EventKind) -> Message {
        let sandbox = self.node.sandbox_of(about);
        Message {
            about,
            event: RuntimeEvent {
                id: self.node.subjects[about].id.as_str().into(),
                kind,
                stamp: self.now.wall.0,
                sandbox: self.node.sandbox_status(sandbox),
                containers: self.node.containers_in(sandbox),
                refused: Vec::new(),
            },
            made: self.now.mono,
            is_lie: false,
        }
    }

    fn slander(&mut self, pod: u8, name: Option<u8>) -> Result<(), Violation> {
        let at = match name {
            Some(name) => self.node.container(super::act::Named { pod, name }),
            None => self.node.sandbox(pod),
        };
        if let Some(at) = at {
            let mut message = self.message(at, EventKind::Deleted);
            match &self.node.subjects[at].id {
                SubjectId::Sandbox(_) => message.event.sandbox = None,
                SubjectId::Container(id) => message.event.containers.retain(|one| one.id != *id),
            }
            message.is_lie = true;
            self.send(message, true);
        }
        Ok(())
    }

    /// The runtime has a message to send.
    fn tell(&mut self, message: Message) {
        if !self.is_up || !self.character.events {
            return;
        }
        match self.trouble.befalls_message() {
            None => self.send(message, true),
            Some(Mishap::Lost) => {}
            Some(Mishap::Twice) => {
                self.send(message.clone(), true);
                self.send(message, true);
            }
            Some(Mishap::BehindTheNext) => self.overtaken.push(message),
            Some(Mishap::Delayed { millis }) => {
                let number = self.set_off;
                self.kept_back.insert(number, message);
                self.set_off(self.later(millis), Due::Released(number));
            }
            Some(Mishap::DroppedByTheInbox) => {
                if let Some(session) = self.stream {
                    self.after_transit(|_| Due::Dropped(session, message));
                }
            }
        }
    }

    /// Puts a message on the stream, and behind it those that it overtakes.
    fn send(&mut self, message: Message, overtakes: bool) {
        match self.stream {
            Some(session) => self.after_transit(|_| Due::Arrives(session, message)),
            None if self.character.keeps_messages && self.is_up => {
                if self.unheard.len() < KEPT_MESSAGES {
                    self.unheard.push_back(message);
                }
            }
            None => {}
        }
        if overtakes {
            while let Some(message) = self.overtaken.pop() {
                self.send(message, false);
            }
        }
    }

    /// What travels on the stream arrives in order.
    fn after_transit(&mut self, due: impl FnOnce(Mono) -> Due) {
        let transit = u32::try_from(self.dice.below(15)).unwrap_or(0);
        let at = self.later(transit).max(self.last_arrival);
        self.last_arrival = at;
        self.set_off(at, due(at));
    }

    fn arrives(&mut self, session: SessionId, message: Message) -> Result<(), Violation> {
        if self.stream != Some(session) {
            return Ok(());
        }
        if message.is_lie && self.node.is_present(message.about) {
            self.witness.false_news_of(message.about);
        }
        self.take(Input::StreamMessage {
            session,
            event: message.event,
        })
    }

    fn dropped(&mut self, session: SessionId, message: &Message) -> Result<(), Violation> {
        if self.stream != Some(session) {
            return Ok(());
        }
        // Whose it was cannot always be told.
        let pod = self.node.subjects[message.about].pod;
        let pods = (message.about % 3 != 0).then(|| uid(pod));
        self.take(Input::StreamOverflow {
            session,
            pods: pods.into_iter().collect(),
            dropped: 1,
        })
    }

    fn open_stream(&mut self, session: SessionId) -> Result<(), Violation> {
        if self.stream.replace(session).is_some() {
            return violated("Bounded", "a second stream is asked for".to_owned());
        }
        self.last_arrival = self.now.mono;
        if !self.is_up || !self.character.events {
            let end = if self.is_up {
                StreamEnd::Unimplemented
            } else {
                StreamEnd::Broken(unavailable())
            };
            self.set_off(self.later(1), Due::StreamEnds(session, end));
            return Ok(());
        }
        for message in std::mem::take(&mut self.unheard) {
            if self.now.mono.since(message.made) < KEPT_FOR {
                self.send(message, false);
            }
        }
        Ok(())
    }

    fn stream_ends(&mut self, session: SessionId, end: StreamEnd) -> Result<(), Violation> {
        if self.stream != Some(session) {
            return Ok(());
        }
        self.stream = None;
        self.take(Input::StreamEnded { session, end })
    }

    fn unmute(&mut self) -> Result<(), Violation> {
        self.trouble.unmute();
        let late = std::mem::take(&mut self.kept_back).into_values();
        for message in late.chain(std::mem::take(&mut self.overtaken)) {
            self.send(message, false);
        }
        Ok(())
    }

    fn stop_runtime(&mut self) -> Result<(), Violation> {
        self.is_up = false;
        self.is_frozen = false;
        self.frozen.clear();
        self.unheard.clear();
        self.kept_back.clear();
        self.overtaken.clear();
        for request in self.calls.keys().copied().collect::<Vec<_>>() {
            self.set_off(self.now.mono, Due::Refused(request));
        }
        match self.stream {
            Some(session) => self.stream_ends(session, StreamEnd::Broken(unavailable())),
            None => Ok(()),
        }
    }

    fn thaw(&mut self) -> Result<(), Violation> {
        self.is_frozen = false;
        for due in std::mem::take(&mut self.frozen) {
            self.happens(due)?;
        }
        Ok(())
    }
}

/// Calls.
impl Play {
    fn ask(&mut self, request: RequestId, question: Question) -> Result<(), Violation> {
        self.check_bounds(&question)?;
        let deadline = match question {
            Question::Version => VERSION_DEADLINE,
            _ => READ_DEADLINE,
        };
        if question == Question::FullRelist {
            self.full_relists_asked += 1;
        }
        let mut call = Call {
            question,
            asked: self.now.mono,
            list: NodeList::default(),
            inspection: Inspection::default(),
            fails: false,
        };
        if !self.is_up {
            self.calls.insert(request, call);
            self.set_off(self.later(1), Due::Refused(request));
            return Ok(());
        }
        let latency = u64::from(self.character.latency);
        let mut draw = |most: u64| u32::try_from(self.dice.below(most + 1)).unwrap_or(0);
        let mut first = draw(latency);
        let mut second = first + draw(latency);
        let mut transit = 1 + draw(latency);
        let methods = match call.question {
            Question::Version => [Some(Method::Version), None],
            Question::FullRelist | Question::PodRelist { .. } => {
                [Some(Method::ListSandboxes), Some(Method::ListContainers)]
            }
            // The statuses are asked for one by one; who fails is drawn as each is read.
            Question::Inspect { .. } => [None, None],
        };
        for (part, method) in methods.into_iter().enumerate() {
            let Some(method) = method else { continue };
            match self.trouble.befalls_call(method) {
                None => {}
                Some(Outcome::Fails | Outcome::BreaksOff) => call.fails = true,
                Some(Outcome::Slow {
                    millis,
                    read_late: true,
                }) => {
                    if part == 0 {
                        first += millis;
                    }
                    second += millis;
                }
                Some(Outcome::Slow { millis, .. }) => transit += millis,
            }
        }
        second = second.max(first);
        if let Question::Inspect { uid, .. } = &call.question {
            let uid = uid.clone();
            let (slow, late) = self.befalls_statuses(&mut call, &uid);
            second += late;
            first += late;
            transit += slow;
        }
        self.calls.insert(request, call);
        self.set_off(self.later(first), Due::ReadSandboxes(request));
        self.set_off(self.later(second), Due::ReadContainers(request));
        self.set_off(self.later(second + transit), Due::Answer(request));
        self.set_off(self.now.mono.after(deadline), Due::Deadline(request));
        Ok(())
    }

    /// Which statuses fail, and how long the slowest takes.
    fn befalls_statuses(&mut self, call: &mut Call, uid: &PodUid) -> (u32, u32) {
        let Question::Inspect {
            sandboxes,
            containers,
            ..
        } = &call.question
        else {
            return (0, 0);
        };
        let (mut slow, mut late, mut failed) = (0, 0, false);
        let mut befalls = |method| match self.trouble.befalls_call(method) {
            None => false,
            Some(Outcome::Fails | Outcome::BreaksOff) => {
                failed = true;
                true
            }
            Some(Outcome::Slow { millis, read_late }) => {
                let which = if read_late { &mut late } else { &mut slow };
                *which = millis.max(*which);
                false
            }
        };
        for id in sandboxes {
            if befalls(Method::SandboxStatus) {
                let failure = Err(unavailable());
                call.inspection.sandboxes.push((id.clone(), failure));
            }
        }
        for id in containers {
            if befalls(Method::ContainerStatus) {
                let failure = Err(unavailable());
                call.inspection.containers.push((id.clone(), failure));
            }
        }
        if failed {
            self.witness.an_inspection_failed(uid);
        }
        (slow, late)
    }

    fn check_bounds(&self, question: &Question) -> Result<(), Violation> {
        let cap = self.engine.settings().parallel_inspections;
        let of_pods = |call: &&Call| {
            matches!(
                call.question,
                Question::PodRelist { .. } | Question::Inspect { .. }
            )
        };
        let at_all = self.calls.values().filter(of_pods).count();
        let hang = |call: &&Call| self.now.mono.since(call.asked) >= HANGING;
        let hanging = self.calls.values().filter(of_pods).filter(hang).count();
        let same = |call: &&Call| match (&call.question, question) {
            (Question::FullRelist, Question::FullRelist)
            | (Question::Version, Question::Version) => true,
            (Question::Inspect { uid: one, .. }, Question::Inspect { uid: other, .. })
            | (Question::PodRelist { uid: one }, Question::PodRelist { uid: other }) => {
                one == other
            }
            _ => false,
        };
        if let Some(other) = self.calls.values().find(same) {
            return violated(
                "Bounded",
                format!(
                    "{question:?} is asked while {:?} is under way",
                    other.question
                ),
            );
        }
        let is_of_pod = !matches!(question, Question::FullRelist | Question::Version);
        if is_of_pod && (at_all - hanging >= cap || at_all >= cap * CAPS_WHEN_CALLS_HANG) {
            return violated(
                "Bounded",
                format!("{at_all} pods are read at once, of which {hanging} hang"),
            );
        }
        Ok(())
    }

    fn read_sandboxes(&mut self, request: RequestId) {
        let Some(call) = self.calls.get_mut(&request) else {
            return;
        };
        match &call.question {
            Question::Version => {}
            Question::FullRelist => call.list.sandboxes = self.node.list_sandboxes(None),
            Question::PodRelist { uid } => {
                call.list.sandboxes = self.node.list_sandboxes(number(uid));
            }
            Question::Inspect { sandboxes, .. } => {
                let failed = std::mem::take(&mut call.inspection.sandboxes);
                for id in sandboxes {
                    let result = match failed.iter().find(|(failed, _)| failed == id) {
                        Some((_, failure)) => failure.clone(),
                        None => self.node.status_of_sandbox(id).ok_or_else(not_found),
                    };
                    call.inspection.sandboxes.push((id.clone(), result));
                }
            }
        }
    }

    fn read_containers(&mut self, request: RequestId) {
        let Some(call) = self.calls.get_mut(&request) else {
            return;
        };
        match &call.question {
            Question::Version => {}
            Question::FullRelist => call.list.containers = self.node.list_containers(None),
            Question::PodRelist { uid } => {
                call.list.containers = self.node.list_containers(number(uid));
            }
            Question::Inspect { containers, .. } => {
                let failed = std::mem::take(&mut call.inspection.containers);
                for id in containers {
                    let result = match failed.iter().find(|(failed, _)| failed == id) {
                        Some((_, failure)) => failure.clone(),
                        None => self.node.status_of_container(id).ok_or_else(not_found),
                    };
                    call.inspection.containers.push((id.clone(), result));
                }
            }
        }
    }

    /// Ends a call: with what was read, or with a failure of this kind.
    fn answer(&mut self, request: RequestId, kind: Option<FailureKind>) -> Result<(), Violation> {
        let Some(call) = self.calls.remove(&request) else {
            return Ok(());
        };
        let failure = kind
            .or(call.fails.then_some(FailureKind::Unavailable))
            .map(failure);
        let answer = match (call.question, failure) {
            (Question::Version, None) => Answer::Version(Ok(version())),
            (Question::Version, Some(failure)) => Answer::Version(Err(failure)),
            (Question::FullRelist, None) => {
                self.relisted.push(call.asked);
                Answer::Listed(Ok(call.list))
            }
            (Question::PodRelist { .. }, None) => Answer::Listed(Ok(call.list)),
            (Question::FullRelist | Question::PodRelist { .. }, Some(failure)) => {
                Answer::Listed(Err(failure))
            }
            (Question::Inspect { .. }, None) => Answer::Inspected(call.inspection),
            (
                Question::Inspect {
                    uid,
                    sandboxes,
                    containers,
                },
                Some(failure),
            ) => {
                self.witness.an_inspection_failed(&uid);
                Answer::Inspected(Inspection {
                    sandboxes: each(sandboxes, &failure),
                    containers: each(containers, &failure),
                })
            }
        };
        self.take(Input::Answered { request, answer })
    }
}

/// The engine.
impl Play {
    fn take(&mut self, input: Input) -> Result<(), Violation> {
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            self.carry_out(output)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, output: Output) -> Result<(), Violation> {
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
                self.watchers.writer.publish(uid, revision, status);
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

fn each<Id: Clone, T>(ids: Vec<Id>, failure: &Failure) -> Vec<(Id, Result<T, Failure>)> {
    ids.into_iter()
        .map(|id| (id, Err(failure.clone())))
        .collect()
}

fn number(pod: &PodUid) -> Option<u8> {
    // A pod that is none of the node's has a filter that matches nothing, as crictl's has.
    let number = (0..super::act::PODS).find(|&number| uid(number) == *pod);
    Some(number.unwrap_or(super::act::BY_CRICTL))
}

fn version() -> RuntimeVersion {
    RuntimeVersion {
        name: "containerd".into(),
        version: "2.1.0".into(),
        api_version: "v1".into(),
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure {
        kind,
        message: "simulated fault".into(),
    }
}

fn unavailable() -> Failure {
    failure(FailureKind::Unavailable)
}

fn not_found() -> Failure {
    failure(FailureKind::NotFound)
}
