//! What the player does once the engine has left the recorded run: the engine's own timers pass, and
//! its questions are answered as well as the recording can.

use super::super::known::StreamState;
use super::LATENCY;
use super::answers::{answer_from, unrecorded};
use super::player::Player;
use super::questions::Awaited;
use crate::engine::{Input, RequestId, SessionId};
use crate::lifecycle::{Mono, Now, UnixNanos};

impl Player<'_> {
    pub(super) fn taken_out_of_step(&mut self, input: Input) {
        match input {
            // It has its own timers, and was started.
            Input::Wake | Input::Start => {}
            Input::Answered { request, answer } => {
                if let Some(request) = self.questions.answered_out_of_step(request) {
                    self.handle(Input::Answered { request, answer });
                }
                self.look_again();
            }
            Input::StreamMessage { event, .. } => {
                self.streamed(|session| Input::StreamMessage { session, event });
                self.look_again();
            }
            Input::StreamGarbage { refusal, .. } => {
                self.streamed(|session| Input::StreamGarbage { session, refusal });
            }
            Input::StreamOverflow { pods, dropped, .. } => {
                self.streamed(|session| Input::StreamOverflow {
                    session,
                    pods,
                    dropped,
                });
            }
            Input::StreamEnded { end, .. } => {
                self.streamed(|session| Input::StreamEnded { session, end });
                self.session = None;
            }
            wish @ (Input::Read { .. }
            | Input::CancelRead { .. }
            | Input::RequestRelist { .. }
            | Input::RequestReinspect { .. }
            | Input::Shutdown) => self.handle(wish),
        }
    }

    fn streamed(&mut self, input: impl FnOnce(SessionId) -> Input) {
        match self.session {
            Some(session) => self.handle(input(session)),
            None => self.deviations.untaken += 1,
        }
    }

    pub(super) fn refuse_unless_open(&mut self) {
        self.refusal = match self.known.stream() {
            Some(StreamState::Ended(end)) => Some((self.now.mono.after(LATENCY), end.clone())),
            Some(StreamState::Open(_)) | None => None,
        };
    }

    /// Lets the engine's own time pass, up to the next entry.
    pub(super) fn run_until(&mut self, end: Mono) {
        loop {
            let answer = self.questions.next_due();
            let refusal = self.refusal.as_ref().map(|(at, _)| *at);
            let wake = self.engine.poll_timeout();
            let next = [answer.map(|(at, _)| at), refusal, wake]
                .into_iter()
                .flatten()
                .min();
            let Some(next) = next.filter(|next| *next <= end) else {
                return;
            };
            let Some(turns) = self.turns.checked_sub(1) else {
                self.deviations.leaps += 1;
                return self.pass_to(end);
            };
            self.turns = turns;
            self.pass_to(next);
            if let Some((at, request)) = answer
                && at <= next
            {
                self.answer_otherwise(request);
            } else if refusal == Some(next)
                && let Some((_, end)) = self.refusal.take()
                && let Some(session) = self.session.take()
            {
                self.deviations.answered_otherwise += 1;
                self.handle(Input::StreamEnded { session, end });
            } else {
                self.handle(Input::Wake);
                if self.engine.poll_timeout() == wake {
                    // It wants the same again: no engine does, but none shall hang a replay.
                    let later = self.now.mono.after(LATENCY);
                    self.pass_to(later.min(end));
                    if later > end {
                        return;
                    }
                }
            }
        }
    }

    fn pass_to(&mut self, at: Mono) {
        let passed = i64::try_from(at.since(self.now.mono).as_nanos()).unwrap_or(i64::MAX);
        self.now = Now {
            mono: at.max(self.now.mono),
            wall: UnixNanos(self.now.wall.0.saturating_add(passed)),
        };
    }

    /// Answers a question that the recorded engine did not ask.
    fn answer_otherwise(&mut self, request: RequestId) {
        let Some(pending) = self.questions.pending_mut(request) else {
            return;
        };
        let answer = if let Some(answer) = answer_from(&self.known, &pending.question) {
            self.deviations.answered_otherwise += 1;
            answer
        } else if pending.answer == Awaited::Next {
            // Its deadline has come.
            self.deviations.unrecorded += 1;
            unrecorded(&self.known, &pending.question)
        } else {
            pending.answer = Awaited::Next;
            return;
        };
        self.questions.remove(request);
        self.handle(Input::Answered { request, answer });
    }

    /// The recording has told something: perhaps what a question waits for.
    fn look_again(&mut self) {
        let answerable: Vec<RequestId> = self
            .questions
            .waiting_for_next()
            .filter(|(_, question)| answer_from(&self.known, question).is_some())
            .map(|(request, _)| request)
            .collect();
        for request in answerable {
            self.answer_otherwise(request);
        }
    }
}
