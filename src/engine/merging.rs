//! How a list is merged into the records.
//!
//! A list speaks of every subject that its filter would have matched and that was first heard of before
//! the list was sent; of nothing else. Lists lack exit codes, addresses and times, so what they change is
//! inspected before it is told.
//!
//! Where building went past the plan: news of an unknown id was to be stale only if its read was sent before
//! the newest full relist. The model check showed the same need the other way round: a full relist that was
//! sent before a read that has vouched for the pod since may bring back what that read saw gone.
//!
//! What a full list shows of a pod that nobody can name (an unknown item that cannot be read, a container
//! without labels whose sandbox is such an item) keeps the list from vouching for nobody: one sandbox without
//! metadata would otherwise leave every reader of a removed pod waiting for ever.

use std::collections::BTreeSet;

use super::settings::{KEEP, SETTLE};
use super::subject::{Details, Subject};
use super::{Engine, Ignored};
use crate::law::Law;
use crate::lifecycle::{
    ContainerDetails, ContainerListing, Knowledge, NodeList, PodIdentity, PodUid, Refusal,
    SandboxDetails, SandboxId, SandboxListing, Source, SubjectId, Verdict, Window,
};

/// What a list is about.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    Node,
    Pod(&'a PodUid),
}

impl Scope<'_> {
    /// Whether the list is about this pod at all. What it says of another's is not looked at again
    /// when absences are judged.
    fn covers(self, pod: &PodUid) -> bool {
        match self {
            Self::Node => true,
            Self::Pod(uid) => uid == pod,
        }
    }
}

/// The pods that a list could not vouch for.
#[derive(Default)]
pub(super) struct Unvouched {
    pub(super) pods: BTreeSet<PodUid>,
    /// Of those, the ones for which asking again at once would tell no more.
    pub(super) unclear: BTreeSet<PodUid>,
}

impl Unvouched {
    /// The record ran ahead of the list, so the next one may vouch at once.
    fn behind(&mut self, uid: &PodUid) {
        self.pods.insert(uid.clone());
    }

    fn unclear(&mut self, uid: &PodUid) {
        self.pods.insert(uid.clone());
        self.unclear.insert(uid.clone());
    }

    fn judge(&mut self, verdict: Verdict, uid: &PodUid) {
        match verdict {
            _ if verdict.vouches() || !Law::OnlyAgreementVouches.holds() => {}
            Verdict::Behind => self.behind(uid),
            _ => self.unclear(uid),
        }
    }
}

impl Engine {
    /// Merges a list; returns the pods that it cannot vouch for.
    pub(super) fn merge_list(&mut self, list: NodeList, window: Window, scope: Scope) -> Unvouched {
        let mut unvouched = Unvouched::default();
        let NodeList {
            sandboxes,
            containers,
        } = list;
        for refusal in sandboxes.refused.iter().chain(&containers.refused) {
            self.refuse(*refusal);
        }
        for id in sandboxes.unreadable.iter().chain(&containers.unreadable) {
            // Present, and no more is known: neither absent nor vouched for.
            let known = self.records.find(id);
            match (
                known.and_then(|id| self.records.subjects.get_mut(&id)),
                scope,
            ) {
                (Some(subject), _) => {
                    subject.listed = scope.covers(&subject.pod);
                    unvouched.unclear(&subject.pod);
                }
                // Whatever it is, the filter says whose.
                (None, Scope::Pod(uid)) => unvouched.unclear(uid),
                // It is of no pod that anybody can name: the list vouches for what could be read.
                (None, Scope::Node) => {}
            }
        }
        for listing in &sandboxes.items {
            self.merge_sandbox(listing, window, scope, &mut unvouched);
        }
        for listing in &containers.items {
            self.merge_container(listing, window, scope, &mut unvouched);
        }
        self.merge_absences(window, scope, &mut unvouched);
        unvouched
    }

    fn merge_sandbox(
        &mut self,
        listing: &SandboxListing,
        window: Window,
        scope: Scope,
        unvouched: &mut Unvouched,
    ) {
        let id = SubjectId::Sandbox(listing.id.clone());
        let Some(subject) = self.records.subjects.get_mut(&id) else {
            if self.is_stale_read(window, scope, &listing.pod.uid, listing.id.as_str()) {
                unvouched.behind(&listing.pod.uid);
                return;
            }
            let mut details = SandboxDetails::default();
            details.take_listing(listing);
            let knowledge = Knowledge::from_read(listing.state, window);
            self.first_listed(
                &id,
                Details::Sandbox(details),
                knowledge,
                listing.labelled,
                &listing.pod,
                scope,
            );
            return;
        };
        subject.listed = scope.covers(&subject.pod);
        if subject.pod != listing.pod.uid {
            // A filter by its pod's uid would not match it any more.
            subject.labelled = false;
            unvouched.unclear(&subject.pod);
            unvouched.unclear(&listing.pod.uid);
            self.refuse(Refusal::PodChanged);
            return;
        }
        subject.labelled = listing.labelled;
        let is_news = match &mut subject.details {
            Details::Sandbox(details) => details.take_listing(listing),
            Details::Container(_) => false,
        };
        let verdict = subject.knowledge.hear_read(listing.state, window, SETTLE);
        unvouched.judge(verdict, &listing.pod.uid);
        if is_news {
            self.touched.insert(subject.pod.clone());
        }
        if subject.is_done_with(verdict, window) && !self.records.unconfirmed.contains(&id) {
            return;
        }
        self.read_judged(&id, verdict, window, Source::Relist);
    }

    fn merge_container(
        &mut self,
        listing: &ContainerListing,
        window: Window,
        scope: Scope,
        unvouched: &mut Unvouched,
    ) {
        let id = SubjectId::Container(listing.id.clone());
        let labelled_pod = listing.pod.as_ref().map(|pod| &pod.uid);
        let Some(subject) = self.records.subjects.get_mut(&id) else {
            let by_sandbox = || self.pod_of_sandbox(listing.sandbox.as_ref());
            let Some(pod) = listing.pod.clone().or_else(by_sandbox) else {
                self.refuse(Refusal::NoPod);
                return;
            };
            if self.is_stale_read(window, scope, &pod.uid, listing.id.as_str()) {
                unvouched.behind(&pod.uid);
                return;
            }
            let labelled = labelled_pod.is_some();
            let knowledge = Knowledge::from_read(listing.state, window);
            let details = Details::Container(ContainerDetails::from_listing(listing));
            self.first_listed(&id, details, knowledge, labelled, &pod, scope);
            return;
        };
        subject.listed = scope.covers(&subject.pod);
        if labelled_pod.is_some_and(|uid| subject.pod != *uid) {
            subject.labelled = false;
            unvouched.unclear(&subject.pod);
            self.refuse(Refusal::PodChanged);
            return;
        }
        subject.labelled = labelled_pod.is_some();
        let is_news = match &mut subject.details {
            Details::Container(details) => details.take_listing(listing),
            Details::Sandbox(_) => false,
        };
        let verdict = subject.knowledge.hear_read(listing.state, window, SETTLE);
        unvouched.judge(verdict, &subject.pod);
        if is_news {
            self.touched.insert(subject.pod.clone());
        }
        if subject.is_done_with(verdict, window) && !self.records.unconfirmed.contains(&id) {
            return;
        }
        self.read_judged(&id, verdict, window, Source::Relist);
    }

    /// A read that was sent before the newest full relist, or a full relist that was sent before a
    /// read that vouched for the pod, may show what that one proved gone.
    fn is_stale_read(&mut self, window: Window, scope: Scope, uid: &PodUid, id: &str) -> bool {
        let newer = match scope {
            Scope::Pod(_) => self.relists.begun,
            Scope::Node => self
                .records
                .pods
                .get(uid)
                .and_then(|pod| pod.observed_phases),
        };
        let stale =
            newer.is_some_and(|newer| window.begun < newer) && Law::StaleReadsAreNotTaken.holds();
        if stale {
            self.ignore(Ignored::Stale, id);
            self.want_relist_soon();
        }
        stale
    }

    fn pod_of_sandbox(&self, sandbox: Option<&SandboxId>) -> Option<PodIdentity> {
        let id = SubjectId::Sandbox(sandbox?.clone());
        let uid = &self.records.subjects.get(&id)?.pod;
        self.records.pods.get(uid)?.identity.clone()
    }

    /// A list shows a subject that nobody knew.
    fn first_listed(
        &mut self,
        id: &SubjectId,
        details: Details,
        knowledge: Knowledge,
        labelled: bool,
        pod: &PodIdentity,
        scope: Scope,
    ) {
        let seen = knowledge.seen();
        let origin = self.origin(Source::Relist, None);
        let mut subject = Subject::new(pod.uid.clone(), knowledge, details, labelled, origin);
        subject.listed = scope.covers(&pod.uid);
        subject.inspect_since = Some(seen);
        subject.hint = self.hints.remove(id.as_str());
        self.records.insert(id.clone(), subject, pod);
        self.touch(&pod.uid);
        self.expect_from_stream(id, None, seen);
    }

    /// Judges the absence of everything that the list should have shown and did not.
    fn merge_absences(&mut self, window: Window, scope: Scope, unvouched: &mut Unvouched) {
        let mut absent = Vec::new();
        match scope {
            Scope::Node => {
                self.records.subjects.for_each_mut(|id, subject| {
                    if !std::mem::take(&mut subject.listed) {
                        absent.push(id.clone());
                    }
                });
            }
            Scope::Pod(uid) => {
                let of_pod: Vec<SubjectId> =
                    self.records.of_pod(uid).map(|(id, _)| id.clone()).collect();
                for id in of_pod {
                    if let Some(subject) = self.records.subjects.get_mut(&id)
                        && !std::mem::take(&mut subject.listed)
                        && subject.is_shown_by_filter()
                    {
                        absent.push(id);
                    }
                }
            }
        }
        for id in absent {
            self.merge_absence(&id, window, scope, unvouched);
        }
    }

    fn merge_absence(
        &mut self,
        id: &SubjectId,
        window: Window,
        scope: Scope,
        unvouched: &mut Unvouched,
    ) {
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return;
        };
        let forgettable = matches!(scope, Scope::Node)
            && subject.knowledge.removal_proven().is_some_and(|proven| {
                window.begun.is_past(proven, KEEP) || !Law::TombstonesOutlastTheirProof.holds()
            });
        if forgettable && subject.owed.is_empty() {
            self.records.forget(id);
            return;
        }
        let verdict = subject.knowledge.hear_absence(window, SETTLE);
        unvouched.judge(verdict, &subject.pod);
        self.read_judged(id, verdict, window, Source::Relist);
    }
}
