//! What must hold once the node rests: convergence, completeness, everybody answered, quiet.

use std::time::Duration;

use super::play::Play;
use super::witness::snapshot_is_right;
use crate::engine::Mode;
use crate::engine::model::{Violation, violated};
use crate::lifecycle::Mono;

/// By when what is under way at the beginning of the rest must have ended: a call's deadline.
const DRAINED_WITHIN: Duration = Duration::from_secs(130);
/// By when a full relist must have come: the longest period, and the longest wait after failures.
const RELISTED_WITHIN: Duration = Duration::from_secs(700);
/// By when whoever asked before must be answered, whatever failed before.
const READERS_ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// By when the owner must have healed what one full relist could not, without waiting for its period:
/// two reads `settle` apart, the pauses between them, and the last retry of a failed inspection.
const HEALED_WITHIN: Duration = Duration::from_secs(75);
const PACE_FOUND_AFTER_MILLIS: u32 = 1_500_000;
const QUIET_WATCHED_FOR_MILLIS: u32 = 900_000;

impl Play {
    /// Heals everything, lets the node rest and checks what must come of it.
    pub(super) fn rest(&mut self) -> Result<(), Violation> {
        self.heal()?;
        let began = self.now.mono;
        let until = began.after(DRAINED_WITHIN);
        while !self.is_drained(began) && self.step(until)? {}
        if !self.is_drained(began) {
            return violated("Bounded", "calls outlive their deadline".to_owned());
        }
        let drained = self.now.mono;
        let relisted = |play: &Self| play.relisted.iter().any(|asked| *asked > drained);
        let until = drained.after(RELISTED_WITHIN);
        let answered_by = drained.after(READERS_ANSWERED_WITHIN);
        while !relisted(self) && self.step(until)? {
            if self.now.mono > answered_by {
                self.witness.nobody_asks()?;
            }
        }
        if !relisted(self) {
            return violated(
                "Convergence",
                format!(
                    "no full relist in {RELISTED_WITHIN:?}, {:?}",
                    self.engine.mode()
                ),
            );
        }
        self.converges(self.now.mono.after(HEALED_WITHIN))?;
        self.witness.complete(&self.node)?;
        self.watchers.subscribe()?;
        let Self {
            watchers,
            witness,
            node,
            ..
        } = self;
        watchers.check(&|id| node.place(id).is_some_and(|at| witness.is_slandered(at)))?;
        let snapshot = self.watchers.snapshot()?;
        snapshot_is_right(&snapshot, &self.node)?;
        if self.engine.tombstones() > self.node.subjects.len() {
            return violated(
                "Bounded",
                "more tombstones than subjects ever were".to_owned(),
            );
        }
        Ok(())
    }

    /// Ends as soon as the cache is right and nobody waits; it must be by `until`.
    fn converges(&mut self, until: Mono) -> Result<(), Violation> {
        loop {
            if self.is_unasked() {
                let outcome = self
                    .witness
                    .converged(&self.node)
                    .and_then(|()| self.witness.nobody_waits());
                if outcome.is_ok() {
                    return outcome;
                }
            }
            if !self.step(until)? {
                self.witness.converged(&self.node)?;
                return self.witness.nobody_waits();
            }
        }
    }

    /// Watches a node where nothing happens.
    pub(super) fn idle(&mut self) -> Result<(), Violation> {
        self.pass(PACE_FOUND_AFTER_MILLIS)?;
        let period = self.period();
        let told = self.watchers.delivered().len();
        let (published, relists) = (self.witness.publications, self.full_relists_asked);
        self.pass(QUIET_WATCHED_FOR_MILLIS)?;
        let told = self.watchers.delivered().len() - told;
        let published = self.witness.publications - published;
        let relists = self.full_relists_asked - relists;
        let watched = Duration::from_millis(u64::from(QUIET_WATCHED_FOR_MILLIS));
        let most = watched.as_secs() / period.min(self.period()).as_secs().max(1) + 2;
        if told > 0 || published > 0 || relists > most {
            return violated(
                "Quiet",
                format!(
                    "{told} deliveries, {published} publications and {relists} full relists (of {most}) \
                     in {watched:?} of an idle node, {:?}",
                    self.engine.mode()
                ),
            );
        }
        self.witness.converged(&self.node)
    }

    fn period(&self) -> Duration {
        match self.engine.mode() {
            Mode::Evented { audit_period } => audit_period,
            Mode::Connecting | Mode::Polling { .. } => Duration::from_secs(1),
        }
    }
}
