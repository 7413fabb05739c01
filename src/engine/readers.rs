//! Readers: who waits for which freshness, and the reads of one pod that serve them.
//!
//! Freshness is only ever claimed from a read that began at or after the mark and that vouches: no timer
//! and no event moves it. A reader causes a read instead of waiting for luck, and shares one only with
//! wishes that stood before it was sent.

use super::pod::{DueRead, Pod, Reader};
use super::{Engine, Freshness, Output, ReaderId, Reading};
use crate::law::Law;
use crate::lifecycle::{Mark, PodUid, SeqPoint};

impl Engine {
    pub(super) fn read_asked(
        &mut self,
        id: ReaderId,
        uid: PodUid,
        newer_than: Mark,
        freshness: Freshness,
    ) {
        let now = self.now.mono;
        let pod = self.records.pods.entry(uid.clone()).or_default();
        pod.readers.push(Reader {
            id,
            newer_than: newer_than.0,
            freshness,
        });
        // A wish that waits, for the retry of an inspection perhaps, does not make a reader wait.
        if let Some(due) = &mut pod.due
            && newer_than.0.at <= now
        {
            due.at = due.at.min(now);
        }
        self.touch(&uid);
        self.reading.insert(id, uid.clone());
        self.waiting.insert(uid);
    }

    pub(super) fn read_cancelled(&mut self, id: ReaderId) {
        if let Some(uid) = self.reading.remove(&id)
            && let Some(pod) = self.records.pods.get_mut(&uid)
        {
            pod.readers.retain(|reader| reader.id != id);
            if pod.due.is_some_and(|due| due.for_readers_alone) {
                // Whoever still waits makes it due again.
                pod.due = None;
            }
            self.touch(&uid);
        }
    }

    pub(super) fn relist_requested(&mut self, uid: PodUid, at: SeqPoint) {
        let pod = self.records.pods.entry(uid.clone()).or_default();
        pod.want_read(at, at.at, true);
        self.touch(&uid);
        self.waiting.insert(uid);
    }

    pub(super) fn reinspect_requested(&mut self, uid: PodUid, at: SeqPoint) {
        let pod = self.records.pods.entry(uid.clone()).or_default();
        pod.reinspect = Some(at);
        self.relist_requested(uid, at);
    }

    /// A full relist that began at `begun` was applied: it serves the wishes that stood before it.
    pub(super) fn full_relist_serves(
        &mut self,
        uid: &PodUid,
        begun: SeqPoint,
        wish: Option<&DueRead>,
    ) {
        self.touch(uid);
        if self.excepted.contains(uid) {
            return;
        }
        let is_absent = self.records.live_of_pod(uid).next().is_none();
        let Some(pod) = self.records.pods.get_mut(uid) else {
            self.waiting.remove(uid);
            return;
        };
        if is_absent && pod.reinspect.is_some_and(|asked| asked < begun) {
            pod.reinspect = None;
            self.counters.reinspects_of_absent_pods += 1;
        }
        if let Some(wish) = wish {
            self.lists_vouched(uid, begun, wish.details);
        }
    }

    /// The mark that vouches for a pod's membership and phases now.
    pub(super) fn observed_phases(&self, uid: &PodUid, pod: &Pod) -> Option<SeqPoint> {
        let by_full_relist = self.full_observed.filter(|_| !self.excepted.contains(uid));
        pod.observed_phases.max(by_full_relist)
    }

    /// Answers every reader that can be, and makes a read due for the others.
    pub(super) fn serve_readers(&mut self, uid: &PodUid) {
        let Some(pod) = self.records.pods.get(uid) else {
            return;
        };
        if pod.readers.is_empty() || self.full_observed.is_none() {
            return;
        }
        // What is gone, or new, on the word of an event alone is nothing that a read vouches for: an
        // event's content may be older than every read. The next read that judges it answers.
        let is_hearsay = self.records.of_pod(uid).any(|(id, subject)| {
            subject.is_removal_unproven() || self.records.unconfirmed.contains(id)
        });
        if is_hearsay && Law::HearsayVouchesForNothing.holds() {
            return self.want_read_for_readers(uid);
        }
        let phases = self.observed_phases(uid, pod);
        let is_absent = self.records.live_of_pod(uid).next().is_none();
        // A list may have moved a subject on since its details were read.
        let awaits_details = self
            .records
            .live_of_pod(uid)
            .any(|(_, subject)| subject.inspect_since.is_some());
        let details = if is_absent {
            phases
        } else {
            pod.observed_details.filter(|_| !awaits_details)
        };
        let (status, error) = (pod.published.clone(), pod.observed_error);
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let mut answers = Vec::new();
        pod.readers.retain(|reader| {
            let observed = match reader.freshness {
                Freshness::Phases => phases,
                Freshness::Details => details,
            };
            let is_fresh = observed.is_some_and(|observed| {
                observed >= reader.newer_than || !Law::MarksAreHonoured.holds()
            });
            // A pod that cannot be read is answered with its error, which claims no freshness.
            let is_error = reader.freshness == Freshness::Details
                && status.as_ref().is_some_and(|status| status.error.is_some())
                && error.is_some_and(|error| error >= reader.newer_than);
            if is_fresh || is_error {
                self.reading.remove(&reader.id);
                answers.push(Output::Answer {
                    reader: reader.id,
                    reading: Reading {
                        status: status.clone(),
                        observed: Mark(observed.unwrap_or_default()),
                    },
                });
            }
            !(is_fresh || is_error)
        });
        self.outputs.extend(answers);
        self.want_read_for_readers(uid);
    }

    fn want_read_for_readers(&mut self, uid: &PodUid) {
        let at = self.point();
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let mut newest: Option<SeqPoint> = None;
        let mut details = false;
        // No read that begins before the moment of a mark serves it: a mark of another engine's, or made
        // up, waits for its time and costs nothing meanwhile.
        let may_be_served = pod
            .readers
            .iter()
            .filter(|reader| reader.newer_than.at <= at.at);
        for reader in may_be_served {
            let on_its_way = match reader.freshness {
                Freshness::Phases => pod.read.as_ref().map(|read| read.begun),
                Freshness::Details => {
                    let read = pod.read.as_ref().filter(|read| read.details);
                    let inspection = pod.inspection.as_ref().and_then(|sent| sent.completes);
                    let listed = pod.listed.map(|listed| listed.0);
                    read.map(|read| read.begun).max(inspection).max(listed)
                }
            };
            if on_its_way.is_none_or(|begun| begun < reader.newer_than) {
                newest = newest.max(Some(reader.newer_than));
                details |= reader.freshness == Freshness::Details;
            }
        }
        if newest.is_some() && Law::ReadersCauseReads.holds() {
            match &mut pod.due {
                Some(due) => due.details |= details,
                None => {
                    pod.due = Some(DueRead {
                        since: at,
                        at: at.at,
                        details,
                        for_readers_alone: true,
                    });
                }
            }
        }
    }
}
