//! The watch over unsettled pods: those with a subject that may change without an event.
//!
//! A failed start, an address that comes late, a removal that only an event told, everything that CRI-O
//! removes in one call: no event tells of them. Such a pod gets targeted reads with back-off that ends at
//! the slow period, within a budget for the node; from then on the slow relist watches it. An address is
//! in no list: for one that is awaited the reads go on, at that period.

use std::time::Duration;

use super::pod::Watch;
use super::settings::SETTLE;
use super::subject::Subject;
use super::{Call, Engine};
use crate::law::Law;
use crate::lifecycle::{EventKind, Phase, PodUid, ReportedState, SeqPoint, SubjectKind};

/// The first wait of a watch.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// How long a wish that was folded into a full relist waits for it before the pod is read by itself.
const LONGEST_FOLD: Duration = Duration::from_secs(30);

impl Engine {
    /// Begins, restarts or ends the watch over a pod, as its records have it.
    pub(super) fn review_watch(&mut self, uid: &PodUid, changed: bool) {
        let unsettled = self.unsettled(uid);
        let now = self.now.mono;
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        pod.watch = match (unsettled, pod.watch) {
            (None, _) => None,
            (Some(details), Some(watch)) if !changed => Some(Watch { details, ..watch }),
            (Some(details), _) => Some(Watch {
                at: Some(now.after(FIRST_LOOK)),
                delay: FIRST_LOOK,
                details,
            }),
        };
    }

    /// Whether a pod is unsettled, and if so whether lists are not enough to see it settle.
    fn unsettled(&self, uid: &PodUid) -> Option<bool> {
        let mut phases = false;
        let mut details = false;
        let (mut has_sandbox, mut has_ready_sandbox) = (false, false);
        for (_, subject) in self.records.of_pod(uid) {
            phases |= subject.is_removal_unproven();
            let Some(state) = subject.knowledge.state() else {
                continue;
            };
            phases |= matches!(state, ReportedState::Unknown | ReportedState::Created);
            if let Some(sandbox) = subject.sandbox() {
                has_sandbox = true;
                let is_ready = state == ReportedState::Running;
                has_ready_sandbox |= is_ready;
                details |= is_ready
                    && sandbox.ips.is_empty()
                    && !sandbox.host_network
                    && subject.inspect_since.is_none();
            }
        }
        let is_finished = has_sandbox && !has_ready_sandbox;
        let removal_is_sent = self.supervisor.is_established()
            && self
                .trust
                .is_sent((SubjectKind::Sandbox, EventKind::Deleted));
        phases |= is_finished && !removal_is_sent;
        let is_watched = (phases || details) && Law::UnsettledAreWatched.holds();
        is_watched.then_some(details)
    }

    /// Does what the clock alone makes due for pods.
    pub(super) fn wake_pods(&mut self, at: SeqPoint) {
        while let Some((due, uid)) = self.records.wakes.first().cloned()
            && due <= at.at
        {
            self.look_at_unsettled(&uid, at);
            self.retry_inspection(&uid, at);
            let pod = self.records.pods.get(&uid);
            if pod.is_some_and(|pod| !pod.readers.is_empty()) {
                // The time of a reader's mark may have come.
                self.touch(&uid);
            }
            self.enqueue(&uid);
            self.records.index_wake(&uid, at.at);
        }
    }

    fn look_at_unsettled(&mut self, uid: &PodUid, at: SeqPoint) {
        let period = self.period();
        let slow = self.settings.slow_period;
        let is_relisted_now = self.next_relist() <= at.at && !self.is_out(Call::FullRelist);
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let Some(watch) = &mut pod.watch else {
            return;
        };
        if watch.at.is_none_or(|look| look > at.at) {
            return;
        }
        let waited = watch.delay;
        let details = watch.details;
        watch.delay = waited.saturating_mul(2).min(slow);
        // The slow relist sees phases settle, never an address.
        watch.at = (details || watch.delay < slow).then(|| at.at.after(watch.delay));
        if !details && (period <= waited || is_relisted_now) {
            // The relist of the node looks at it, now or as often as this watch would.
            return;
        }
        if self.budget.take(at.at) {
            self.counters.unsettled_reads += 1;
            pod.want_read(at, at.at, details);
            self.waiting.insert(uid.clone());
        } else {
            self.fold_into_relist(uid, at, details);
            self.want_relist_for_proof(at.at);
        }
    }

    /// A full relist, due soon, looks at the pod instead of a read of its own: the budget is spent, or there
    /// may be many such pods. Lists have no details, so a wish for those stands: the relist serves it like
    /// any other, and has the pod inspected.
    pub(super) fn fold_into_relist(&mut self, uid: &PodUid, at: SeqPoint, details: bool) {
        self.counters.reads_folded_into_relists += 1;
        if details && let Some(pod) = self.records.pods.get_mut(uid) {
            pod.want_read(at, at.at.after(LONGEST_FOLD), true);
            self.waiting.insert(uid.clone());
            self.touch(uid);
        }
    }

    /// An inspection failed and nothing else wants the pod read: it is read whole, so that its error ends.
    pub(super) fn retry_inspection(&mut self, uid: &PodUid, at: SeqPoint) {
        let is_gone = self.records.live_of_pod(uid).next().is_none();
        if is_gone && let Some(pod) = self.records.pods.get_mut(uid) {
            // Nothing is left to inspect.
            pod.failure = None;
            return;
        }
        let wants = |subject: &Subject| subject.inspect_since.is_some();
        let is_wanted = self
            .records
            .live_of_pod(uid)
            .any(|(_, subject)| wants(subject));
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let is_due = pod
            .failure
            .as_ref()
            .is_some_and(|failure| failure.retry_at <= at.at);
        // A wish that stands, or lists without statuses on their way, would not end the error.
        let is_on_its_way =
            pod.inspection.is_some() || pod.read.as_ref().is_some_and(|read| read.details);
        if is_due && !is_wanted && !is_on_its_way {
            pod.want_read(at, at.at, true);
            self.waiting.insert(uid.clone());
            if let Some(failure) = &mut pod.failure {
                // Lists that cannot vouch yet bring no inspection: not back to back.
                failure.retry_at = at.at.after(SETTLE);
            }
        }
    }

    /// Has a pod looked at because of what a message said, within the node's budget.
    pub(super) fn want_look(&mut self, uid: &PodUid, at: SeqPoint, details: bool) {
        let is_read_anyway = self.records.pods.get(uid).is_some_and(|pod| {
            !pod.readers.is_empty() || pod.due.is_some_and(|due| due.at <= at.at)
        });
        if is_read_anyway || self.budget.take(at.at) {
            if let Some(pod) = self.records.pods.get_mut(uid) {
                pod.want_read(at, at.at, details);
                self.waiting.insert(uid.clone());
                self.touch(uid);
            }
        } else {
            self.fold_into_relist(uid, at, details);
            if details {
                self.want_relist_soon();
            } else {
                self.want_relist_for_proof(at.at);
            }
        }
    }

    /// Whether any live subject of a pod has not come to its end.
    pub(super) fn has_unfinished(&self, uid: &PodUid) -> bool {
        self.records
            .live_of_pod(uid)
            .any(|(_, subject)| subject.knowledge.phase() < Some(Phase::Exited))
    }
}
