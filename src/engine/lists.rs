//! Relists: what becomes of the answer to a list of the node or of one pod, and whom it serves.
//!
//! A list that failed says nothing. One that was applied vouches for every pod for which its own verdict is
//! what the record says; wishes that stood before it was sent are served by it, those for pods that it could
//! not vouch for are due again.

use std::collections::{BTreeMap, BTreeSet};

use super::merging::{Scope, Unvouched};
use super::pod::DueRead;
use super::settings::SETTLE;
use super::{Engine, Output};
use crate::law::Law;
use crate::lifecycle::{Mark, NodeList, PodUid, SeqPoint, Window};

impl Engine {
    pub(super) fn full_relist_answered(
        &mut self,
        begun: SeqPoint,
        list: Option<NodeList>,
        at: SeqPoint,
    ) {
        self.relists.ended = at.at;
        self.relists.took = at.at.since(begun.at);
        let Some(list) = list else {
            self.relists.failures = self.relists.failures.saturating_add(1);
            return;
        };
        self.relists.failures = 0;
        self.counters.relists += 1;
        let wishes = self.take_wishes_before(begun);
        let Unvouched {
            pods: unvouched, ..
        } = self.merge_list(list, Window::of_read(begun, at), Scope::Node);
        self.put_back_unserved(&wishes, &unvouched, at);
        self.supervisor.relisted(begun);
        if self.supervisor.open().is_some_and(|open| open.relisted) {
            self.trust.begin_audit(begun, at);
        }
        self.supervisor.age(at.at);
        self.update_mode();
        self.health.relist_succeeded(begun.at, self.threshold());
        self.drop_hints_before(begun);
        self.keep_older_observation(&unvouched);
        self.full_observed = Some(begun);
        self.excepted.clone_from(&unvouched);
        // Readers wait for publications; the mark that they will be answered with comes after those.
        self.publish_touched();
        self.outputs.push_back(Output::ObservedAll {
            mark: Mark(begun),
            except: unvouched,
        });
        let waiting: BTreeSet<PodUid> = self.waiting.iter().chain(wishes.keys()).cloned().collect();
        for uid in waiting {
            self.full_relist_serves(&uid, begun, wishes.get(&uid));
        }
    }

    /// Takes the wishes that stood before a full relist was sent: it may serve them.
    fn take_wishes_before(&mut self, begun: SeqPoint) -> BTreeMap<PodUid, DueRead> {
        let is_served = |due: &DueRead| due.since < begun || !Law::WishesNeedLaterReads.holds();
        let mut wishes = BTreeMap::new();
        for uid in &self.waiting {
            if let Some(pod) = self.records.pods.get_mut(uid)
                && let Some(due) = pod.due.take_if(|due| is_served(due))
            {
                wishes.insert(uid.clone(), due);
            }
        }
        wishes
    }

    /// A list that could not vouch for a pod has served nobody: the next one is due when it may know
    /// more, never back to back.
    fn put_back_unserved(
        &mut self,
        wishes: &BTreeMap<PodUid, DueRead>,
        unvouched: &BTreeSet<PodUid>,
        at: SeqPoint,
    ) {
        for (uid, wish) in wishes {
            if unvouched.contains(uid)
                && let Some(pod) = self.records.pods.get_mut(uid)
            {
                let again = pod.due.map_or(at.at.after(SETTLE), |due| due.at);
                pod.want_read(at, again, wish.details);
                self.waiting.insert(uid.clone());
            }
        }
    }

    /// Pods that the newest full relist cannot vouch for keep what the one before it did.
    fn keep_older_observation(&mut self, unvouched: &BTreeSet<PodUid>) {
        for uid in unvouched {
            if let Some(pod) = self.records.pods.get(uid) {
                let observed = self.observed_phases(uid, pod);
                if let Some(pod) = self.records.pods.get_mut(uid) {
                    pod.observed_phases = observed;
                    self.touch(uid);
                }
            }
        }
    }

    pub(super) fn pod_relist_answered(
        &mut self,
        uid: &PodUid,
        begun: SeqPoint,
        list: Option<NodeList>,
        at: SeqPoint,
    ) {
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let wanted_details = pod.read.take().is_some_and(|read| read.details);
        self.touch(uid);
        let Some(list) = list else {
            // The wish stands; the fast period paces the next try.
            let again = at.at.after(self.settings.fast_period);
            if let Some(pod) = self.records.pods.get_mut(uid) {
                pod.want_read(at, again, wanted_details);
                self.waiting.insert(uid.clone());
            }
            return;
        };
        let unvouched = self.merge_list(list, Window::of_read(begun, at), Scope::Pod(uid));
        if !unvouched.pods.contains(uid) {
            self.lists_vouched(uid, begun, wanted_details);
        } else if let Some(pod) = self.records.pods.get_mut(uid)
            && (wanted_details || !pod.readers.is_empty())
        {
            // The record ran ahead of this read: the next one, at once. Anything else needs time
            // before a read can know more.
            let soonest = if unvouched.unclear.contains(uid) {
                at.at.after(SETTLE)
            } else {
                at.at
            };
            let again = pod.due.map_or(soonest, |due| due.at);
            pod.want_read(at, again, wanted_details);
            self.waiting.insert(uid.clone());
        }
    }

    /// Lists begun at `begun` agree with the record of a pod.
    pub(super) fn lists_vouched(&mut self, uid: &PodUid, begun: SeqPoint, details: bool) {
        self.touch(uid);
        let has_live = self.records.live_of_pod(uid).next().is_some();
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        pod.observed_phases = pod.observed_phases.max(Some(begun));
        if details && has_live {
            // A newer list may wait for its statuses already; they complete both.
            pod.listed = pod.listed.max(Some(super::pod::ListedAt(begun)));
        }
        // Its observation is published with the pod: after the status, before the readers' answers.
    }
}
