//! What must hold once the world rests: convergence, completeness, that the owner heals by itself
//! what false or stale news left behind, and quiet.
//!
//! From any state with nothing old under way, every question is answered truly and time passes from
//! timeout to timeout; nothing else happens.

use std::time::Duration;

use super::oracle::{Violation, violated};
use super::run::{Run, STEPS_AT_ONE_INSTANT};
use crate::engine::{Mode, Question};
use crate::lifecycle::Mono;

/// A list this soon after an event need not show what the event told.
const SETTLE: Duration = Duration::from_secs(1);
/// By when the owner must have healed what one full relist could not, without waiting for its
/// period: two reads `settle` apart and the pauses between them.
const HEALED_WITHIN: Duration = Duration::from_secs(15);
/// By when whoever asked before the rest must be answered, whatever failed before.
const READERS_ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// The same where an inspection failed, which is tried again with back-off.
const RETRIED_WITHIN: Duration = Duration::from_secs(600);
/// How long until the pace of an idle node is the pace that it keeps.
const PACE_FOUND_AFTER: Duration = Duration::from_secs(1_500);
const QUIET_WATCHED_FOR: Duration = Duration::from_secs(900);
const STEPS_TO_CONVERGE: u32 = 5_000;

/// What convergence took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Effort {
    /// Full relists sent and applied since the world rests.
    pub full_relists: u64,
    /// Reads of the pod asked since.
    pub pod_reads: u64,
}

impl Run {
    /// Lets the world rest and checks what must come of it.
    pub(crate) fn rest(&mut self) -> Result<Effort, Violation> {
        self.deaf = false;
        let began = self.now.mono;
        let asked_before = self.asked;
        let mut older_relists = u64::from(self.full_relist_under_way());
        let mut applied = 0;
        let mut first_applied: Option<Mono> = None;
        let mut soon_after_an_event = None;
        let mut answers_at_once = 0;
        for _ in 0..STEPS_TO_CONVERGE {
            if self.asked.full_relists > asked_before.full_relists {
                soon_after_an_event.get_or_insert(self.now.mono.since(self.last_heard) < SETTLE);
            }
            let question = self.questions().next().cloned();
            if let Some(question) = question {
                let of_rest = question == Question::FullRelist && older_relists == 0;
                if question == Question::FullRelist {
                    older_relists = 0;
                }
                self.answer_now(0)?;
                applied += u64::from(of_rest);
                if of_rest {
                    first_applied.get_or_insert(self.now.mono);
                }
                answers_at_once += 1;
                if answers_at_once > STEPS_AT_ONE_INSTANT {
                    return violated("Quiet", format!("asks without end: {self:?}"));
                }
                continue;
            }
            answers_at_once = 0;
            let converged = self.oracle.converged(&self.truth);
            if converged.is_ok() && !self.oracle.somebody_waits() {
                self.oracle.complete(&self.truth)?;
                let is_present = self.oracle.status().is_some();
                self.subscriber.was_told_everything(is_present)?;
                return Ok(Effort {
                    full_relists: applied,
                    pod_reads: self.asked.pod_reads - asked_before.pod_reads,
                });
            }
            if self.oracle.readers_wait() && self.now.mono.since(began) > READERS_ANSWERED_WITHIN {
                return violated("Complete", format!("a reader waits too long: {self:?}"));
            }
            if let Some(first) = first_applied {
                let since = self.now.mono.since(first);
                self.must_be_done(
                    converged,
                    applied,
                    since,
                    soon_after_an_event.unwrap_or(false),
                )?;
            }
            self.wake()?;
        }
        violated("Convergence", format!("never: {self:?}"))
    }

    fn must_be_done(
        &self,
        converged: Result<(), Violation>,
        applied: u64,
        since: Duration,
        soon_after_an_event: bool,
    ) -> Result<(), Violation> {
        if self.oracle.inspections_failed() {
            return if since > RETRIED_WITHIN {
                converged
            } else {
                Ok(())
            };
        }
        let allowed =
            1 + u64::from(soon_after_an_event) + if self.oracle.heard_false_news() { 2 } else { 0 };
        if applied >= allowed
            && let Err(Violation { property, detail }) = converged
        {
            return violated(
                property,
                format!("not after {applied} full relists in a world at rest: {detail}"),
            );
        }
        if since > HEALED_WITHIN {
            converged?;
            if self.oracle.somebody_waits() {
                return violated("Complete", format!("somebody waits for ever: {self:?}"));
            }
        }
        Ok(())
    }

    /// Watches a converged engine while nothing happens.
    pub(crate) fn idle(&mut self) -> Result<(), Violation> {
        self.pass(PACE_FOUND_AFTER)?;
        let period_before = self.relist_period();
        let (asked, told, published) = (self.asked, self.deliveries, self.publications);
        self.pass(QUIET_WATCHED_FOR)?;
        let period = period_before.min(self.relist_period());
        let most = |period: Duration| QUIET_WATCHED_FOR.as_secs() / period.as_secs().max(1) + 2;
        let within = [
            ("deliveries", self.deliveries - told, 0),
            ("publications", self.publications - published, 0),
            (
                "full relists",
                self.asked.full_relists - asked.full_relists,
                most(period),
            ),
            (
                "reads of the pod",
                self.asked.pod_reads - asked.pod_reads,
                2,
            ),
            (
                "heartbeats",
                self.asked.versions - asked.versions,
                most(Duration::from_secs(10)),
            ),
        ];
        match within.iter().find(|(_, happened, most)| happened > most) {
            Some((what, happened, most)) => violated(
                "Quiet",
                format!(
                    "{happened} {what} in {QUIET_WATCHED_FOR:?} of an idle node, {most} are allowed: {self:?}"
                ),
            ),
            None => self.oracle.converged(&self.truth),
        }
    }

    fn relist_period(&self) -> Duration {
        match self.engine.mode() {
            Mode::Evented { audit_period } => audit_period,
            Mode::Connecting | Mode::Polling { .. } => Duration::from_secs(1),
        }
    }
}
