//! Which steps may come next: everything that the world could do, within the budget.

use super::run::{LONGEST_GATHERING, Run};
use super::step::{Lie, Step, Told};
use super::truth::{Stage, Subject};
use crate::engine::Freshness;
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
            for of_pod in [false, true] {
                steps.push(Step::RequestRelist { of_pod });
            }
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
            }
        }
    }

    fn stream_steps(&self, steps: &mut Vec<Step>) {
        let faulty = self.budget.faults > 0;
        for (nth, message) in (0u8..).zip(&self.messages) {
            if self.stream.is_some() && (nth == 0 || faulty) {
                steps.push(Step::Deliver { nth });
                if faulty {
                    steps.push(Step::DeliverTwice { nth });
                }
            }
            let age = self.now.mono.since(message.gathered);
            if faulty && message.stamp < self.now.wall && age <= LONGEST_GATHERING {
                steps.push(Step::StampLate { nth });
            }
        }
        if !faulty {
            return;
        }
        steps.push(Step::ClockBack { seconds: 3_600 });
        if self.stream.is_some() {
            steps.push(Step::Break { backlog: true });
            if !self.messages.is_empty() {
                steps.push(Step::Break { backlog: false });
            }
        }
    }

    fn world_steps(&self, steps: &mut Vec<Step>) {
        let faulty = self.budget.faults > 0;
        let room = self.messages.len() < self.habits.in_flight;
        for subject in self.cast.subjects() {
            let stage = self.truth.stage(subject);
            let nexts = self
                .truth
                .nexts(self.cast, subject, self.habits.addresses_late);
            for to in nexts {
                let mut change = |told| steps.push(Step::Change { subject, to, told });
                let Some(_) = news_of(stage, to) else {
                    change(Told::Silently);
                    continue;
                };
                if room {
                    change(Told::Truly);
                }
                if faulty {
                    change(Told::Silently);
                    if room {
                        change(Told::WithoutSnapshot);
                        change(Told::WithOldSnapshot);
                    }
                }
            }
            if faulty && room {
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
            if stage > since {
                steps.push(Step::TellLate { subject, kind });
            }
        }
        if stage.is_present() {
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

/// The message that a runtime sends of a change, if it sends one.
pub(super) fn news_of(before: Stage, after: Stage) -> Option<EventKind> {
    match (before, after) {
        (Stage::Addressless, Stage::Running) | (_, Stage::StartFailed) => None,
        (_, Stage::Created) => Some(EventKind::Created),
        (_, Stage::Running | Stage::Addressless) => Some(EventKind::Started),
        (_, Stage::Exited) => Some(EventKind::Stopped),
        (_, Stage::Removed) => Some(EventKind::Deleted),
        (_, Stage::Absent) => None,
    }
}
