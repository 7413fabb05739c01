//! The player: it gives each entry to the engine, and watches that the engine asks what was recorded.

use std::collections::VecDeque;

use super::super::format::{Entry, Header, Record};
use super::super::known::{Known, StreamState};
use super::questions::Questions;
use super::{Deviations, Fidelity, Replayed};
use crate::cri::Tapped;
use crate::engine::{Engine, Input, Output, Question, RequestId, SessionId, Settings, StreamEnd};
use crate::lifecycle::{Mono, Now};

/// Timers and answers that one stretch between two entries may have. A recorded engine asked for
/// something every few seconds; this is hours of an engine that polls.
const MOST_TURNS: u64 = 50_000;

/// What each entry gives back of them, so that a damaged file costs time in step with its length.
const TURNS_PER_ENTRY: u64 = 1_000;

/// What the engine wants of the runtime, as the recording has it too.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    Ask(RequestId, Question),
    Open(SessionId),
    Close(SessionId),
}

pub(super) struct Player<'t> {
    pub(super) engine: Engine,
    /// What the engine may still do by its own timers.
    pub(super) turns: u64,
    show: &'t mut dyn FnMut(Tapped<'_>),
    began: Mono,
    pub(super) now: Now,
    line: u64,
    started: bool,
    in_step: bool,
    pub(super) deviations: Deviations,
    delivered: u64,
    pub(super) known: Known,
    pub(super) questions: Questions,
    /// While in step: what the engine wants and the recording must show next.
    wishes: VecDeque<Wish>,
    /// The engine's open stream.
    pub(super) session: Option<SessionId>,
    /// When that stream ends which the engine asked for while the recorded one had none.
    pub(super) refusal: Option<(Mono, StreamEnd)>,
}

impl<'t> Player<'t> {
    pub(super) fn new(
        settings: Settings,
        header: &Header,
        show: &'t mut dyn FnMut(Tapped<'_>),
    ) -> Self {
        let mut known = Known::default();
        if let Some(runtime) = &header.runtime {
            known.set_version(runtime.clone());
        }
        Self {
            engine: Engine::new(settings),
            turns: MOST_TURNS,
            show,
            began: header.began.mono,
            now: header.began,
            line: 1,
            started: false,
            in_step: true,
            deviations: Deviations::default(),
            delivered: 0,
            known,
            questions: Questions::default(),
            wishes: VecDeque::new(),
            session: None,
            refusal: None,
        }
    }

    /// What came of it, after the last entry.
    pub(super) fn end(mut self, header: Header, entries: u64, is_cut_off: bool) -> Replayed {
        // Questions that waited for what never came.
        self.deviations.unrecorded += self.questions.waiting_for_next().count() as u64;
        Replayed {
            header,
            fidelity: if self.in_step {
                Fidelity::Exact
            } else {
                Fidelity::Approximate(self.deviations)
            },
            entries,
            span: self.now.mono.since(self.began),
            is_cut_off,
            delivered: self.delivered,
            mode: self.engine.mode(),
            counters: self.engine.counters().clone(),
        }
    }

    /// Plays the entry that ends at this line.
    pub(super) fn enter(&mut self, line: u64, entry: Entry) {
        self.line = line;
        let Entry { at, record } = entry;
        self.turns = MOST_TURNS.min(self.turns + TURNS_PER_ENTRY);
        if !self.is_expected(&record) {
            // Where it left the step is where it stands, not where the recording goes on.
            self.leave_step();
        }
        if !self.in_step {
            self.run_until(at.mono);
        }
        self.now = at;
        if let Record::Known(known) = record {
            // In the middle of a file it says what was just played.
            if !self.started {
                let version = self.known.version().cloned();
                self.known = *known;
                if let (None, Some(version)) = (self.known.version(), version) {
                    self.known.set_version(version);
                }
            }
            return self.start_in_the_middle();
        }
        if !self.started && record != Record::Taken(Input::Start) {
            self.start_in_the_middle();
        }
        match record {
            Record::Taken(input) => self.taken(input),
            Record::Asked { request, question } => {
                if !self.in_step {
                    self.questions.bind(request, &question, at.mono);
                }
                self.questions.record(request, question, at.mono);
            }
            Record::StreamOpened { session } => {
                self.known.set_stream(StreamState::Open(session));
                self.refusal = None;
            }
            Record::Marked => {
                (self.show)(Tapped::Marked { now: at });
                self.engine.mark(self.now);
            }
            Record::Gap { dropped } => {
                self.deviations.missing += dropped;
            }
            Record::StreamClosed { .. } | Record::Known(_) => {}
        }
    }

    fn start_in_the_middle(&mut self) {
        self.leave_step();
        if !self.started {
            self.started = true;
            self.handle(Input::Start);
        }
    }

    /// Whether the recorded engine went on as this one did: it wanted the same, and nothing is missing.
    fn is_expected(&mut self, record: &Record) -> bool {
        let wish = match record {
            Record::Asked { request, question } => Wish::Ask(*request, question.clone()),
            Record::StreamOpened { session } => Wish::Open(*session),
            Record::StreamClosed { session } => Wish::Close(*session),
            Record::Taken(_) | Record::Marked => return self.wishes.is_empty(),
            Record::Gap { .. } | Record::Known(_) => return false,
        };
        self.wishes.pop_front() == Some(wish)
    }

    fn taken(&mut self, input: Input) {
        self.learn(&input);
        self.started |= input == Input::Start;
        if self.in_step {
            match &input {
                Input::Answered { request, .. } => {
                    self.questions.answered_in_step(*request);
                }
                Input::StreamEnded { session, .. } if self.session == Some(*session) => {
                    self.session = None;
                }
                _ => {}
            }
            return self.handle(input);
        }
        self.taken_out_of_step(input);
    }

    fn learn(&mut self, input: &Input) {
        let at = self.now.mono;
        match input {
            Input::Answered { request, answer } => {
                // The answer to a question of before the recording is of an unknown age.
                let (full, begun) = match self.questions.recorded(*request) {
                    Some((question, begun)) => (*question == Question::FullRelist, *begun),
                    None => (false, Mono(0)),
                };
                self.known.take_answer(answer, begun, at, full);
            }
            Input::StreamMessage { event, .. } => self.known.take_event(event, at),
            Input::StreamEnded { end, .. } => {
                self.known.set_stream(StreamState::Ended(end.clone()));
            }
            _ => {}
        }
    }

    /// Gives the engine an input now, and carries out what it wants.
    pub(super) fn handle(&mut self, input: Input) {
        let now = self.now;
        (self.show)(Tapped::Input { now, input: &input });
        self.engine.handle(now, input);
        while let Some(output) = self.engine.poll_output() {
            (self.show)(Tapped::Output(&output));
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Ask { request, question } => self.asked(request, question),
            Output::OpenStream { session } => {
                self.session = Some(session);
                if self.in_step {
                    self.wishes.push_back(Wish::Open(session));
                } else {
                    self.refuse_unless_open();
                }
            }
            Output::CloseStream { session } => {
                self.session = None;
                self.refusal = None;
                if self.in_step {
                    self.wishes.push_back(Wish::Close(session));
                }
            }
            Output::Deliver(_) => self.delivered += 1,
            Output::ModeChanged(_)
            | Output::Publish { .. }
            | Output::Observed { .. }
            | Output::ObservedAll { .. }
            | Output::Answer { .. }
            | Output::Note(_) => {}
        }
    }

    fn asked(&mut self, request: RequestId, question: Question) {
        let now = self.now.mono;
        if self.in_step {
            self.wishes.push_back(Wish::Ask(request, question.clone()));
            self.questions.ask_in_step(request, question, now);
        } else {
            self.questions.ask_out_of_step(request, question, now);
        }
    }

    fn leave_step(&mut self) {
        if !self.in_step {
            return;
        }
        self.in_step = false;
        self.deviations.line = self.line;
        self.wishes.clear();
        self.questions.leave_step(self.now.mono);
        if self.session.is_some() {
            self.refuse_unless_open();
        }
    }
}
