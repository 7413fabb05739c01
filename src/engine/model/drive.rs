//! How time passes and how the engine is driven: each input is followed by whatever it puts out, by
//! an answer to each heartbeat, and by a wake-up for what is due at once.

use std::time::Duration;

use super::oracle::{Violation, violated};
use super::run::{Call, Run, STEPS_AT_ONE_INSTANT, version};
use super::truth::{pod, unavailable};
use crate::engine::{Answer, Input, Output, Question, RequestId};
use crate::lifecycle::{LifecycleKind, Mono};

impl Run {
    /// Jumps to the engine's next timeout.
    pub(crate) fn wake(&mut self) -> Result<(), Violation> {
        match self.engine.poll_timeout() {
            Some(timeout) => {
                self.pass_until(timeout);
                self.take(Input::Wake)
            }
            None => Ok(()),
        }
    }

    /// Lets time pass; the engine is woken whenever it asked to be.
    pub(crate) fn linger(&mut self, time: Duration) -> Result<(), Violation> {
        let until = self.now.mono.after(time);
        while let Some(timeout) = self.engine.poll_timeout()
            && timeout <= until
        {
            self.wake()?;
        }
        self.pass_until(until);
        self.take(Input::Wake)
    }

    /// Lets time pass and answers truly whatever is asked meanwhile.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), Violation> {
        let until = self.now.mono.after(time);
        self.catch_up()?;
        while let Some(timeout) = self.engine.poll_timeout()
            && timeout <= until
        {
            self.wake()?;
            self.catch_up()?;
        }
        self.pass_until(until);
        self.take(Input::Wake)?;
        self.catch_up()
    }
    pub(crate) fn reader_waits(&self) -> bool {
        self.oracle.readers_wait()
    }
    pub(super) fn pass_until(&mut self, until: Mono) {
        let passed = until.since(self.now.mono);
        self.now.mono = self.now.mono.after(passed);
        self.now.wall.0 += i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
    }

    /// Answers everything that is asked, truly, until nothing is.
    pub(crate) fn catch_up(&mut self) -> Result<(), Violation> {
        for _ in 0..STEPS_AT_ONE_INSTANT {
            if self.calls.is_empty() {
                return Ok(());
            }
            self.answer_now(0)?;
        }
        violated(
            "Quiet",
            format!("{STEPS_AT_ONE_INSTANT} answers at one instant, and more asked: {self:?}"),
        )
    }
    /// Gives the engine an input, does what it puts out, and wakes it for what is due at once.
    pub(super) fn take(&mut self, input: Input) -> Result<(), Violation> {
        self.engine.handle(self.now, input);
        for _ in 0..STEPS_AT_ONE_INSTANT {
            let mut heartbeat = None;
            while let Some(output) = self.engine.poll_output() {
                if let Some(request) = self.carry_out(output)? {
                    heartbeat = Some(request);
                }
            }
            if let Some(request) = heartbeat {
                let answer = Answer::Version(if self.deaf {
                    Err(unavailable())
                } else {
                    Ok(version())
                });
                self.engine
                    .handle(self.now, Input::Answered { request, answer });
                continue;
            }
            match self.engine.poll_timeout() {
                Some(timeout) if timeout <= self.now.mono => {
                    self.engine.handle(self.now, Input::Wake);
                }
                _ => return Ok(()),
            }
        }
        violated(
            "Quiet",
            format!("{STEPS_AT_ONE_INSTANT} wake-ups at one instant, and more due: {self:?}"),
        )
    }

    /// Does what the engine wants; names a heartbeat, which is answered at once.
    fn carry_out(&mut self, output: Output) -> Result<Option<RequestId>, Violation> {
        match output {
            Output::Ask {
                request,
                question: Question::Version,
            } => {
                self.asked.versions += 1;
                return Ok(Some(request));
            }
            Output::Ask { request, question } => self.ask(request, question)?,
            Output::OpenStream { session } => {
                if self.stream.replace(session).is_some() {
                    return violated("Bounded", "a second stream is asked for".to_owned());
                }
            }
            Output::CloseStream { session } => {
                if self.stream.take() != Some(session) {
                    return violated("Bounded", format!("{session:?} is not open"));
                }
            }
            Output::Publish {
                revision, status, ..
            } => {
                self.publications += 1;
                self.oracle.published(revision, status, &self.truth)?;
            }
            Output::Observed { mark, .. } => self.oracle.vouched(mark, &self.truth)?,
            Output::ObservedAll { mark, except } => {
                if !except.contains(&pod().uid) {
                    self.oracle.vouched(mark, &self.truth)?;
                }
            }
            Output::Deliver(event) => {
                if event.kind == LifecycleKind::PodSync {
                    self.pod_syncs += 1;
                } else {
                    self.deliveries += 1;
                }
                self.oracle.delivered(&event, &self.truth)?;
                let is_present = self.oracle.status().is_some();
                self.subscriber.offered(&event, is_present)?;
            }
            Output::Answer { reader, reading } => {
                self.oracle.reader_answered(reader, &reading, &self.truth)?;
            }
            Output::ModeChanged(_) | Output::Note(_) => {}
        }
        Ok(None)
    }

    fn ask(&mut self, request: RequestId, question: Question) -> Result<(), Violation> {
        let same_kind = |other: &&Call| {
            matches!(
                (&other.question, &question),
                (Question::FullRelist, Question::FullRelist)
                    | (Question::PodRelist { .. }, Question::PodRelist { .. })
                    | (Question::Inspect { .. }, Question::Inspect { .. })
            )
        };
        if let Some(other) = self.calls.iter().find(same_kind) {
            return violated(
                "Bounded",
                format!("{question:?} is asked while {other:?} is under way"),
            );
        }
        match question {
            Question::FullRelist => self.asked.full_relists += 1,
            _ => self.asked.pod_reads += 1,
        }
        self.calls.push(Call {
            request,
            question,
            worlds: vec![self.truth],
            after_held: self.held.is_some(),
        });
        Ok(())
    }
}
