//! The moves of the world: the runtime changes, messages arrive, calls are answered, readers ask.

use std::time::Duration;

use super::offers::news_of;
use super::oracle::{Violation, violated};
use super::run::{Message, Run, Snapshot, version};
use super::step::{Lie, Step, Told};
use super::truth::{Stage, Subject, Truth, failed, pod, unavailable};
use crate::engine::{Answer, Freshness, Input, Question, ReaderId, RequestId, StreamEnd};
use crate::lifecycle::{EventKind, RuntimeEvent};

impl Run {
    /// Takes a step, and pays for it.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of step")]
    pub(crate) fn apply(&mut self, step: Step) -> Result<(), Violation> {
        match step {
            Step::Change { subject, to, told } => {
                let eventless = news_of(self.truth.stage(subject), to).is_none();
                if (told != Told::Truly && !eventless) || to == Stage::Obscured {
                    self.pay_a_fault();
                }
                self.change(subject, to, told);
                Ok(())
            }
            Step::TellLate { subject, kind } => {
                self.pay_a_fault();
                self.send(subject, kind, Snapshot::Of(self.truth), false);
                Ok(())
            }
            Step::TellFalseDeleted { subject, lie } => {
                self.pay_a_fault();
                self.tell_false_deleted(subject, lie);
                Ok(())
            }
            Step::StampLate { nth } => {
                self.pay_a_fault();
                let stamp = self.now.wall;
                if let Some(message) = self.messages.get_mut(usize::from(nth)) {
                    message.stamp = stamp;
                }
                Ok(())
            }
            Step::Deliver { nth } => {
                if nth > 0 {
                    self.pay_a_fault();
                }
                self.deliver(nth, false)
            }
            Step::DeliverTwice { nth } => {
                self.pay_a_fault();
                self.deliver(nth, true)
            }
            Step::Break { backlog } => {
                self.pay_a_fault();
                if !backlog {
                    self.messages.clear();
                }
                self.break_stream()
            }
            Step::Answer {
                call,
                sandboxes,
                containers,
            } => self.answer(call, sandboxes, containers),
            Step::Fail { call } => {
                self.budget.failures = self.budget.failures.saturating_sub(1);
                self.fail(call)
            }
            Step::FailContainers { call } => {
                self.budget.failures = self.budget.failures.saturating_sub(1);
                self.fail_containers(call)
            }
            Step::AnswerUnreadable { call, subject } => {
                self.pay_a_fault();
                self.answer_unreadable(call, subject)
            }
            Step::Overflow { of_pod } => {
                self.pay_a_fault();
                self.overflow(of_pod)
            }
            Step::Stall { stalled } => {
                if stalled {
                    self.pay_a_fault();
                }
                self.subscriber.stall(stalled)
            }
            Step::Wake => {
                self.budget.wakes = self.budget.wakes.saturating_sub(1);
                self.wake()
            }
            Step::Linger { millis } => {
                self.budget.lingers = self.budget.lingers.saturating_sub(1);
                self.linger(Duration::from_millis(u64::from(millis)))
            }
            Step::ClockBack { seconds } => {
                self.pay_a_fault();
                self.now.wall.0 -= i64::from(seconds) * 1_000_000_000;
                Ok(())
            }
            Step::ClockForward { seconds } => {
                self.pay_a_fault();
                self.now.wall.0 += i64::from(seconds) * 1_000_000_000;
                Ok(())
            }
            Step::BeDeaf { deaf } => {
                if deaf {
                    self.pay_a_fault();
                }
                self.deaf = deaf;
                Ok(())
            }
            Step::TakeMark => {
                self.held = Some((self.engine.mark(self.now), self.truth));
                self.read_since_held = false;
                self.calls
                    .iter_mut()
                    .for_each(|call| call.after_held = false);
                Ok(())
            }
            Step::Read { freshness } => {
                self.budget.readers = self.budget.readers.saturating_sub(1);
                self.read(freshness)
            }
            Step::GiveUp => {
                self.budget.requests = self.budget.requests.saturating_sub(1);
                self.give_up()
            }
            Step::RequestRelist { of_pod } => {
                self.budget.requests = self.budget.requests.saturating_sub(1);
                self.take(Input::RequestRelist {
                    uid: of_pod.then(|| pod().uid),
                })
            }
            Step::RequestReinspect => {
                self.budget.requests = self.budget.requests.saturating_sub(1);
                self.oracle.reinspect_asked();
                self.take(Input::RequestReinspect { uid: pod().uid })
            }
        }
    }

    fn pay_a_fault(&mut self) {
        self.budget.faults = self.budget.faults.saturating_sub(1);
    }

    pub(crate) fn change(&mut self, subject: Subject, to: Stage, told: Told) {
        let before = self.truth;
        let mark = self.engine.mark(self.now);
        self.truth = before.with(subject, to);
        self.oracle.world_becomes(mark, self.truth);
        for call in &mut self.calls {
            call.worlds.push(self.truth);
        }
        let Some(kind) = news_of(before.stage(subject), to) else {
            return;
        };
        let snapshot = match told {
            Told::Silently => return,
            Told::Truly => Snapshot::Of(self.truth),
            Told::WithoutSnapshot => Snapshot::Missing,
            Told::WithOldSnapshot => Snapshot::Of(before),
        };
        // A sandbox is created and started in one call; the first message is left out where there
        // is no room for it.
        if self.cast.is_sandbox(subject)
            && kind == EventKind::Started
            && self.messages.len() + 1 < self.habits.in_flight
        {
            self.send(subject, EventKind::Created, snapshot, false);
        }
        self.send(subject, kind, snapshot, false);
    }

    pub(crate) fn tell_false_deleted(&mut self, subject: Subject, lie: Lie) {
        let (shows, lie) = match lie {
            Lie::Whole => (self.truth.with(subject, Stage::Removed), true),
            Lie::Contradicted => (self.truth, false),
        };
        self.send(subject, EventKind::Deleted, Snapshot::Of(shows), lie);
    }

    fn send(&mut self, about: Subject, kind: EventKind, snapshot: Snapshot, lie: bool) {
        self.messages.push(Message {
            about,
            kind,
            snapshot,
            gathered: self.now.mono,
            stamp: self.now.wall,
            lie,
        });
    }

    /// Brings a message to the engine; `again` leaves a copy behind.
    pub(crate) fn deliver(&mut self, nth: u8, again: bool) -> Result<(), Violation> {
        let at = usize::from(nth);
        let (Some(&message), Some(session)) = (self.messages.get(at), self.stream) else {
            return violated("Model", format!("no message {nth} or no stream: {self:?}"));
        };
        if !again {
            self.messages.remove(at);
        }
        if message.lie && self.truth.stage(message.about) != Stage::Removed {
            self.oracle.false_news_of(message.about);
        }
        self.last_heard = self.now.mono;
        let event = self.written(&message);
        self.take(Input::StreamMessage { session, event })
    }

    fn written(&self, message: &Message) -> RuntimeEvent {
        let house = self.cast.sandbox_of(message.about);
        let (sandbox, containers) = match message.snapshot {
            Snapshot::Of(truth) => (
                truth.sandbox_status(self.cast, house),
                truth.containers_in(self.cast, house),
            ),
            Snapshot::Missing => (None, Vec::new()),
        };
        RuntimeEvent {
            id: self.cast.id(message.about).as_str().into(),
            kind: message.kind,
            stamp: message.stamp.0,
            sandbox,
            containers,
            refused: Vec::new(),
        }
    }

    pub(crate) fn break_stream(&mut self) -> Result<(), Violation> {
        let Some(session) = self.stream.take() else {
            return violated("Model", "no stream to break".to_owned());
        };
        self.take(Input::StreamEnded {
            session,
            end: StreamEnd::Broken(unavailable()),
        })
    }

    /// Answers a call with the worlds of these two moments since it was sent.
    pub(crate) fn answer(
        &mut self,
        call: u8,
        sandboxes: u8,
        containers: u8,
    ) -> Result<(), Violation> {
        let (request, answer) = self.end_call(call, sandboxes, containers)?;
        self.take(Input::Answered { request, answer })
    }

    fn fail(&mut self, call: u8) -> Result<(), Violation> {
        let (request, answer) = self.end_call(call, 0, 0)?;
        if matches!(answer, Answer::Inspected(_)) {
            self.oracle.an_inspection_failed();
        }
        let answer = failed(answer);
        self.take(Input::Answered { request, answer })
    }

    fn fail_containers(&mut self, call: u8) -> Result<(), Violation> {
        let (request, answer) = self.end_call(call, u8::MAX, u8::MAX)?;
        self.oracle.an_inspection_failed();
        let answer = match answer {
            Answer::Inspected(mut inspection) => {
                for (_, result) in &mut inspection.containers {
                    *result = Err(unavailable());
                }
                Answer::Inspected(inspection)
            }
            other => failed(other),
        };
        self.take(Input::Answered { request, answer })
    }

    fn answer_unreadable(&mut self, call: u8, subject: Subject) -> Result<(), Violation> {
        let asked = self.calls.get(usize::from(call)).map(|call| &call.question);
        let is_full = asked == Some(&Question::FullRelist);
        self.oracle.hides = is_full.then_some(subject);
        let (request, answer) = self.end_call(call, u8::MAX, u8::MAX)?;
        let id = self.cast.id(subject);
        let answer = match answer {
            Answer::Listed(Ok(mut list)) => {
                list.sandboxes
                    .items
                    .retain(|item| item.id.as_str() != id.as_str());
                list.containers
                    .items
                    .retain(|item| item.id.as_str() != id.as_str());
                let unreadable = if self.cast.is_sandbox(subject) {
                    &mut list.sandboxes.unreadable
                } else {
                    &mut list.containers.unreadable
                };
                unreadable.push(id.as_str().into());
                Answer::Listed(Ok(list))
            }
            other => other,
        };
        let outcome = self.take(Input::Answered { request, answer });
        self.oracle.hides = None;
        outcome
    }

    fn give_up(&mut self) -> Result<(), Violation> {
        let reader = ReaderId(self.last_reader);
        self.oracle.reader_gives_up(reader);
        self.take(Input::CancelRead { reader })
    }

    fn overflow(&mut self, of_pod: bool) -> Result<(), Violation> {
        let Some(session) = self.stream.filter(|_| !self.messages.is_empty()) else {
            return violated("Model", format!("nothing to overflow: {self:?}"));
        };
        self.messages.remove(0);
        self.take(Input::StreamOverflow {
            session,
            pods: of_pod.then(|| pod().uid).into_iter().collect(),
            dropped: 1,
        })
    }

    fn end_call(
        &mut self,
        call: u8,
        sandboxes: u8,
        containers: u8,
    ) -> Result<(RequestId, Answer), Violation> {
        let at = usize::from(call);
        if at >= self.calls.len() {
            return violated("Model", format!("no call {call}: {self:?}"));
        }
        let call = self.calls.remove(at);
        self.read_since_held |= call.after_held;
        let world = |nth: u8| call.worlds.get(usize::from(nth)).unwrap_or(&self.truth);
        let (of_sandboxes, of_containers) = (world(sandboxes), world(containers));
        let answer = match &call.question {
            Question::Version => Answer::Version(Ok(version())),
            Question::FullRelist => {
                Answer::Listed(Ok(Truth::lists(self.cast, of_sandboxes, of_containers)))
            }
            Question::PodRelist { .. } => {
                Answer::Listed(Ok(Truth::pod_lists(self.cast, of_sandboxes, of_containers)))
            }
            Question::Inspect {
                sandboxes,
                containers,
                ..
            } => Answer::Inspected(Truth::inspection(
                self.cast,
                (sandboxes, of_sandboxes),
                (containers, of_containers),
            )),
        };
        Ok((call.request, answer))
    }

    /// Answers a call with the world as it is now.
    pub(crate) fn answer_now(&mut self, call: u8) -> Result<(), Violation> {
        self.answer(call, u8::MAX, u8::MAX)
    }

    pub(crate) fn read(&mut self, freshness: Freshness) -> Result<(), Violation> {
        let (mark, then) = match self.held.take() {
            Some(held) => held,
            None => (self.engine.mark(self.now), self.truth),
        };
        self.last_reader += 1;
        let reader = ReaderId(self.last_reader);
        self.oracle.reader_asks(reader, mark, freshness, then);
        self.take(Input::Read {
            reader,
            uid: pod().uid,
            newer_than: mark,
            freshness,
        })
    }
}
