//! The canonical form of an engine's state: two states with one form behave alike for ever.
//!
//! Sequence points are renumbered in their order, moments are counted from now (ages past every
//! threshold look alike), in-flight requests and sessions are renumbered, and what decides nothing
//! (revisions, counters, stamps for people) is left out. The model check explores states in this form.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::supervisor::Stream;
use super::{Counters, Engine, RequestId, SessionId};
use crate::lifecycle::{Mono, Now, PodStatus, Revision, SeqPoint, UnixNanos};

/// Older than every threshold that looks back: ages past this one are alike.
const OLD: u64 = 400_000_000_000;

impl Engine {
    /// This state's canonical form at `now`.
    pub(crate) fn canonical(&self, now: Now) -> Self {
        let mut state = self.clone();
        let now = now.mono.max(state.now.mono);
        let offset = state.clock.largest;
        state.now = Now::default();
        state.renumber_points(now);
        state.shift_moments(now);
        state.drop_what_decides_nothing();
        state.clock.largest = offset.map(|_| 0);
        state.clock.largest_before = match (self.clock.largest_before, offset) {
            (Some(before), Some(largest)) => Some((before - largest).max(0)),
            _ => None,
        };
        state.renumber_requests();
        state
    }

    fn renumber_points(&mut self, now: Mono) {
        let mut points = Vec::new();
        self.visit_points(&mut |point| points.push(*point));
        points.sort_unstable();
        points.dedup();
        let numbers: BTreeMap<SeqPoint, u64> = points.into_iter().zip(1..).collect();
        self.count = u64::try_from(numbers.len()).unwrap_or(u64::MAX) + 1;
        self.visit_points(&mut |point| {
            *point = SeqPoint {
                at: from_now(point.at, now),
                count: numbers.get(point).copied().unwrap_or_default(),
            };
        });
        // Indexes are keyed by points.
        let tombstones = std::mem::take(&mut self.records.tombstones);
        for (_, id) in tombstones {
            if let Some(at) = self.records.subjects.get(&id).and_then(|s| s.removed_at) {
                self.records.tombstones.insert((at, id));
            }
        }
        let queue = std::mem::take(&mut self.queue);
        for (_, uid) in queue {
            if let Some(turn) = self.records.pods.get(&uid).and_then(|pod| pod.queued) {
                self.queue.insert((turn, uid));
            }
        }
    }

    fn visit_points(&mut self, visit: &mut dyn FnMut(&mut SeqPoint)) {
        for subject in self.records.subjects.values_mut() {
            subject.knowledge.visit_points(visit);
            visit(&mut subject.details_seen);
            subject.inspect_since.iter_mut().for_each(&mut *visit);
            subject.removed_at.iter_mut().for_each(&mut *visit);
            subject.told_by_stream.iter_mut().for_each(&mut *visit);
            subject.hint.iter_mut().for_each(|hint| visit(&mut hint.at));
        }
        for pod in self.records.pods.values_mut() {
            pod.observed_phases.iter_mut().for_each(&mut *visit);
            pod.observed_details.iter_mut().for_each(&mut *visit);
            pod.observed_error.iter_mut().for_each(&mut *visit);
            pod.announced.iter_mut().for_each(&mut *visit);
            pod.reinspect.iter_mut().for_each(&mut *visit);
            pod.queued.iter_mut().for_each(|turn| visit(&mut turn.1));
            pod.due.iter_mut().for_each(|due| visit(&mut due.since));
            pod.read.iter_mut().for_each(|read| visit(&mut read.begun));
            pod.listed
                .iter_mut()
                .for_each(|listed| visit(&mut listed.0));
            if let Some(sent) = &mut pod.inspection {
                visit(&mut sent.begun);
                sent.completes.iter_mut().for_each(&mut *visit);
            }
            for reader in &mut pod.readers {
                visit(&mut reader.newer_than);
            }
        }
        self.hints.values_mut().for_each(|hint| visit(&mut hint.at));
        self.calls
            .values_mut()
            .for_each(|call| visit(&mut call.begun));
        self.relists.begun.iter_mut().for_each(&mut *visit);
        self.full_observed.iter_mut().for_each(&mut *visit);
        if let Stream::Open(open) = &mut self.supervisor.stream {
            visit(&mut open.asked);
        }
        visit(&mut self.trust.ramp_from);
        for audit in &mut self.trust.audits {
            visit(&mut audit.begun);
        }
    }

    fn shift_moments(&mut self, now: Mono) {
        let shift = |moment: &mut Mono| *moment = from_now(*moment, now);
        for pod in self.records.pods.values_mut() {
            pod.due.iter_mut().for_each(|due| shift(&mut due.at));
            pod.inspect_at.iter_mut().for_each(shift);
            if let Some(failure) = &mut pod.failure {
                shift(&mut failure.retry_at);
                failure.failures = failure.failures.min(7);
            }
            if let Some(watch) = &mut pod.watch {
                watch.at.iter_mut().for_each(shift);
            }
        }
        let mut expectations = std::mem::take(&mut self.expectations);
        for (mut at, id) in std::mem::take(&mut expectations) {
            shift(&mut at);
            expectations.insert((at, id));
        }
        self.expectations = expectations;
        for subject in self.records.subjects.values_mut() {
            subject
                .expected
                .iter_mut()
                .for_each(|expected| shift(&mut expected.deadline));
        }
        self.records.shift_wakes(shift);
        shift(&mut self.relists.ended);
        self.relists.wanted.iter_mut().for_each(shift);
        self.relists.failures = self.relists.failures.min(17);
        shift(&mut self.budget.since);
        shift(&mut self.heartbeat_due);
        shift(&mut self.clock.stretch_began);
        match &mut self.supervisor.stream {
            Stream::Off => {}
            Stream::Waiting(due) => shift(due),
            Stream::Open(open) => open.last_message.iter_mut().for_each(shift),
        }
        self.trust
            .audits
            .iter_mut()
            .for_each(|audit| shift(&mut audit.closes));
    }

    fn drop_what_decides_nothing(&mut self) {
        self.revision = Revision(0);
        self.counters = Counters::default();
        self.health = super::HealthWatch::default();
        self.last_stream_end = None;
        self.relists.took = Duration::ZERO;
        self.supervisor.jitter = 0;
        for subject in self.records.subjects.values_mut() {
            subject.born = Revision(subject.born.0.min(1));
            subject.origin.seen_at = UnixNanos(0);
            subject.origin.runtime_stamp = None;
        }
        for pod in self.records.pods.values_mut() {
            if let Some(published) = &mut pod.published {
                let status = PodStatus::clone(published);
                *published = Arc::new(PodStatus {
                    revision: Revision(0),
                    ..status
                });
            }
        }
        for record in self.trust.kinds.values_mut() {
            record.delivered = record.delivered.min(1);
            record.missed = record.missed.min(super::settings::MISSES_OF_A_GAP);
        }
    }

    fn renumber_requests(&mut self) {
        let numbers: BTreeMap<RequestId, RequestId> = self
            .calls
            .keys()
            .copied()
            .zip((1..).map(RequestId))
            .collect();
        let renumber = |request: RequestId| numbers.get(&request).copied().unwrap_or_default();
        self.calls = std::mem::take(&mut self.calls)
            .into_iter()
            .map(|(request, call)| (renumber(request), call))
            .collect();
        self.next_request = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        for pod in self.records.pods.values_mut() {
            if let Some(read) = &mut pod.read {
                read.request = renumber(read.request);
            }
            if let Some(sent) = &mut pod.inspection {
                sent.request = renumber(sent.request);
            }
        }
        self.supervisor.next_session = 1;
        if let Stream::Open(open) = &mut self.supervisor.stream {
            open.session = SessionId(1);
        }
    }
}

/// A moment counted from now, in the middle of what a `Mono` holds.
fn from_now(moment: Mono, now: Mono) -> Mono {
    const NOW: u64 = 1 << 62;
    let age = now.0.saturating_sub(moment.0).min(OLD);
    let ahead = moment.0.saturating_sub(now.0);
    Mono(NOW - age + ahead)
}
