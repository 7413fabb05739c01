//! Which steps may come next: everything that the world could do, within the budget.

use super::run::{LONGEST_GATHERING, Run};
use super::step::{Fault, Lie, Step, Told};
use super::truth::{Stage, Subject};
use crate::engine::{Freshness, Question, ReaderId};
use crate::lifecycle::EventKind;

impl Run {
    /// Every step that may come next.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::with_capacity(32);
        self.calls_steps(&mut steps);
        self.stream_steps(&mut steps);
        self.world_steps(&mut steps);
        if self.budget.readers > 0 {
            if self.held.is_none() {
                steps.push(Step::TakeMark);
            }
            for freshness in [Freshness::Phases, Freshness::Details] {
                steps.push(Step::Read { freshness });
            }
        }
        if self.budget.requests > 0 {
            if self.oracle.waits(ReaderId(self.last_reader)) {
                steps.push(Step::GiveUp);
            }
            for of_pod in [false, true] {
                steps.push(Step::RequestRelist { of_pod });
            }
            steps.push(Step::RequestReinspect);
        }
        if self.budget.wakes > 0 && self.engine.poll_timeout().is_some() {
            steps.push(Step::Wake);
        }
        if self.budget.lingers > 0 {
            steps.extend(
                self.habits
                    .lingers
                    .iter()
                    .map(|&millis| Step::Linger { millis }),
            );
        }
        steps
    }

    fn calls_steps(&self, steps: &mut Vec<Step>) {
        for (call, waiting) in (0u8..).zip(&self.calls) {
            let worlds = (0u8..).take(waiting.worlds.len());
            for sandboxes in worlds.clone() {
                for containers in worlds.clone().filter(|&later| later >= sandboxes) {
                    steps.push(Step::Answer {
                        call,
                        sandboxes,
                        containers,
                    });
                }
            }
            if self.budget.failures > 0 {
                steps.push(Step::Fail { call });
                if let Question::Inspect {
                    sandboxes,
                    containers,
                    ..
                } = &waiting.question
                    && !sandboxes.is_empty()
                    && !containers.is_empty()
                {
                    steps.push(Step::FailContainers { call });
                }
            }
            let is_list = !matches!(waiting.question, Question::Inspect { .. });
            if is_list && self.may(Fault::Unreadable) {
                let listed = self.cast.subjects().filter(|&subject| {
                    self.truth.stage(subject).is_present()
                        && (self.cast.labelled || waiting.question == Question::FullRelist)
                });
                steps.extend(listed.map(|subject| Step::AnswerUnreadable { call, subject }));
            }
        }
    }

    fn may(&self, fault: Fault) -> bool {
        self.budget.faults > 0 && self.habits.faults.contains(&fault)
    }

    fn stream_steps(&self, steps: &mut Vec<Step>) {
        for (nth, message) in (0u8..).zip(&self.messages) {
            if self.stream.is_some() && (nth == 0 || self.may(Fault::Reorder)) {
                steps.push(Step::Deliver { nth });
            }
            if self.stream.is_some() && nth == 0 && self.may(Fault::Duplicate) {
                steps.push(Step::DeliverTwice { nth });
            }
            let age = self.now.mono.since(message.gathered);
            if self.may(Fault::Lateness)
                && message.stamp < self.now.wall
                && age <= LONGEST_GATHERING
            {
                steps.push(Step::StampLate { nth });
            }
        }
        if self.may(Fault::ClockStep) {
            steps.push(Step::ClockBack { seconds: 3_600 });
            steps.push(Step::ClockForward { seconds: 3_600 });
        }
        if self.deaf || self.may(Fault::Deafness) {
            steps.push(Step::BeDeaf { deaf: !self.deaf });
        }
        if self.can_deliver() && self.may(Fault::Overflow) {
            for of_pod in [false, true] {
                steps.push(Step::Overflow { of_pod });
            }
        }
        let stalled = self.subscriber.is_stalled();
        if stalled || self.may(Fault::Stall) {
            steps.push(Step::Stall { stalled: !stalled });
        }
        if self.stream.is_some() && self.may(Fault::Break) {
            steps.push(Step::Break { backlog: true });
            if !self.messages.is_empty() {
                steps.push(Step::Break { backlog: false });
            }
        }
    }

    fn world_steps(&self, steps: &mut Vec<Step>) {
        let room = self.messages.len() < self.habits.in_flight;
        for subject in self.cast.subjects() {
            let stage = self.truth.stage(subject);
            if self.cast.is_sandbox(subject) && !self.habits.sandboxes_change {
                continue;
            }
            let nexts = self
                .truth
                .nexts(self.cast, subject, self.habits.addresses_late);
            match stage {
                Stage::Running if !self.cast.is_sandbox(subject) && self.may(Fault::Unknown) => {
                    steps.push(eventless(subject, Stage::Obscured));
                }
                Stage::Obscured => steps.push(eventless(subject, Stage::Running)),
                _ => {}
            }
            for to in nexts {
                let mut change = |told| steps.push(Step::Change { subject, to, told });
                if news_of(stage, to).is_none() {
                    change(Told::Silently);
                    continue;
                }
                if room {
                    change(Told::Truly);
                }
                if self.may(Fault::Loss) {
                    change(Told::Silently);
                }
                if room && self.may(Fault::BadSnapshot) {
                    change(Told::WithoutSnapshot);
                    change(Told::WithOldSnapshot);
                }
            }
            if room {
                self.false_news(subject, stage, steps);
            }
        }
    }

    fn false_news(&self, subject: Subject, stage: Stage, steps: &mut Vec<Step>) {
        for (kind, since) in [
            (EventKind::Created, Stage::Created),
            (EventKind::Started, Stage::Running),
            (EventKind::Stopped, Stage::Exited),
        ] {
            if stage > since && self.may(Fault::Lateness) {
                steps.push(Step::TellLate { subject, kind });
            }
        }
        if stage.is_present() && self.may(Fault::FalseDeleted) {
            steps.push(Step::TellFalseDeleted {
                subject,
                lie: Lie::Whole,
            });
            // Of a sandbox that is being removed, containerd 2.x still shows that it is not ready:
            // no contradiction.
            if !self.cast.is_sandbox(subject) || stage != Stage::Exited {
                steps.push(Step::TellFalseDeleted {
                    subject,
                    lie: Lie::Contradicted,
                });
            }
        }
    }
}

fn eventless(subject: Subject, to: Stage) -> Step {
    Step::Change {
        subject,
        to,
        told: Told::Silently,
    }
}

/// The message that a runtime sends of a change, if it sends one.
pub(super) fn news_of(before: Stage, after: Stage) -> Option<EventKind> {
    match (before, after) {
        (Stage::Addressless | Stage::Obscured, Stage::Running)
        | (_, Stage::Obscured | Stage::StartFailed | Stage::Absent) => None,
        (_, Stage::Created) => Some(EventKind::Created),
        (_, Stage::Running | Stage::Addressless) => Some(EventKind::Started),
        (_, Stage::Exited) => Some(EventKind::Stopped),
        (_, Stage::Removed) => Some(EventKind::Deleted),
    }
}
