//! Lists: how a relist of the node or of one pod is merged into the records, and what it vouches for.
//!
//! A list speaks of every subject that its filter would have matched and that was first heard of before
//! the list was sent; of nothing else. A list that failed says nothing. Lists lack exit codes, addresses
//! and times, so what they change is inspected before it is told.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::bump;
use super::pod::DueRead;
use super::settings::{GRACE, KEEP, SETTLE};
use super::subject::{Details, Expected, Origin, Subject};
use super::{Engine, Ignored, Note, Output};
use crate::lifecycle::{
    ContainerDetails, ContainerListing, EventKind, Knowledge, Mark, NodeList, Phase, PodIdentity,
    PodUid, Refusal, SandboxDetails, SandboxId, SandboxListing, SeqPoint, Source, SubjectId,
    SubjectKind, Verdict, Window,
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
struct Unvouched {
    pods: BTreeSet<PodUid>,
    /// Of those, the ones for which asking again at once would tell no more.
    unclear: BTreeSet<PodUid>,
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
            _ if verdict.vouches() => {}
            Verdict::Behind => self.behind(uid),
            _ => self.unclear(uid),
        }
    }
}

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
        } = self.merge_list(list, Window { begun, seen: at }, Scope::Node);
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
        let mut wishes = BTreeMap::new();
        for uid in &self.waiting {
            if let Some(pod) = self.records.pods.get_mut(uid)
                && let Some(due) = pod.due.take_if(|due| due.since < begun)
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
        let unvouched = self.merge_list(list, Window { begun, seen: at }, Scope::Pod(uid));
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
            pod.listed = Some(super::pod::ListedAt(begun));
        }
        // Its observation is published with the pod: after the status, before the readers' answers.
    }

    /// Merges a list; returns the pods that it cannot vouch for.
    fn merge_list(&mut self, list: NodeList, window: Window, scope: Scope) -> Unvouched {
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
            if let Some(id) = self.records.find(id)
                && let Some(subject) = self.records.subjects.get_mut(&id)
            {
                subject.listed = scope.covers(&subject.pod);
                unvouched.unclear(&subject.pod);
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
            if self.is_stale_read(window, scope, listing.id.as_str()) {
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
            );
            return;
        };
        subject.listed = scope.covers(&subject.pod);
        if subject.pod != listing.pod.uid {
            unvouched.unclear(&subject.pod);
            unvouched.unclear(&listing.pod.uid);
            self.refuse(Refusal::PodChanged);
            return;
        }
        subject.labelled = listing.labelled;
        if let Details::Sandbox(details) = &mut subject.details {
            details.take_listing(listing);
        }
        let verdict = subject.knowledge.hear_read(listing.state, window, SETTLE);
        unvouched.judge(verdict, &listing.pod.uid);
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
            if self.is_stale_read(window, scope, listing.id.as_str()) {
                unvouched.behind(&pod.uid);
                return;
            }
            let labelled = labelled_pod.is_some();
            let knowledge = Knowledge::from_read(listing.state, window);
            let details = Details::Container(ContainerDetails::from_listing(listing));
            self.first_listed(&id, details, knowledge, labelled, &pod);
            return;
        };
        subject.listed = scope.covers(&subject.pod);
        if labelled_pod.is_some_and(|uid| subject.pod != *uid) {
            unvouched.unclear(&subject.pod);
            self.refuse(Refusal::PodChanged);
            return;
        }
        subject.labelled = labelled_pod.is_some();
        if let Details::Container(details) = &mut subject.details {
            details.take_listing(listing);
        }
        let verdict = subject.knowledge.hear_read(listing.state, window, SETTLE);
        unvouched.judge(verdict, &subject.pod);
        self.read_judged(&id, verdict, window, Source::Relist);
    }

    /// A read that was sent before the newest full relist may show what that one proved gone.
    fn is_stale_read(&mut self, window: Window, scope: Scope, id: &str) -> bool {
        let stale = matches!(scope, Scope::Pod(_))
            && self.relists.begun.is_some_and(|begun| window.begun < begun);
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
    ) {
        let seen = knowledge.seen();
        let origin = self.origin(Source::Relist, None);
        let mut subject = Subject::new(pod.uid.clone(), knowledge, details, labelled, origin);
        subject.listed = true;
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
                for (id, subject) in &mut self.records.subjects {
                    if !std::mem::take(&mut subject.listed) {
                        absent.push(id.clone());
                    }
                }
            }
            Scope::Pod(uid) => {
                let of_pod: Vec<SubjectId> =
                    self.records.of_pod(uid).map(|(id, _)| id.clone()).collect();
                for id in of_pod {
                    if let Some(subject) = self.records.subjects.get_mut(&id)
                        && !std::mem::take(&mut subject.listed)
                        && subject.labelled
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
            && subject
                .knowledge
                .removal_proven()
                .is_some_and(|proven| window.begun.is_past(proven, KEEP));
        if forgettable && subject.owed.is_empty() {
            self.records.forget(id);
            return;
        }
        let verdict = subject.knowledge.hear_absence(window, SETTLE);
        unvouched.judge(verdict, &subject.pod);
        self.read_judged(id, verdict, window, Source::Relist);
    }

    /// Draws the consequences of a read's verdict about a known subject.
    pub(super) fn read_judged(
        &mut self,
        id: &SubjectId,
        verdict: Verdict,
        window: Window,
        source: Source,
    ) {
        let origin = self.origin(source, None);
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return;
        };
        let uid = subject.pod.clone();
        let owes_sync = subject.account(verdict, origin);
        let is_removed = subject.knowledge.is_removed();
        let newly_proven = subject.knowledge.removal_proven() == Some(window.seen);
        let agreed = verdict == Verdict::Agrees
            && subject
                .told_by_stream
                .is_some_and(|told| window.begun > told);
        if verdict == Verdict::Agrees && subject.hint.is_some_and(|hint| hint.at < window.begun) {
            subject.hint = None;
        }
        if agreed {
            subject.told_by_stream = None;
            self.trust.agreed();
        }
        match verdict {
            Verdict::Moved { .. } | Verdict::SteppedBack => {
                if source == Source::Relist && !is_removed {
                    subject.inspect_since = Some(window.seen);
                }
                if owes_sync && let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.sync_owed = true;
                }
                self.records.index_tombstone(id, window.seen);
                self.touch(&uid);
            }
            Verdict::Agrees if newly_proven => self.touch(&uid),
            Verdict::TooSoon { ask_at } | Verdict::Doubted { ask_at } => {
                self.counters.doubts += 1;
                if let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.want_read(window.seen, ask_at, false);
                }
                self.waiting.insert(uid.clone());
                self.touch(&uid);
            }
            Verdict::Unjudged { ask_at } => {
                self.counters.unjudged_absences += 1;
                self.want_relist_soon();
                self.relists.want(ask_at.max(self.now.mono));
                if let Some(pod) = self.records.pods.get_mut(&uid)
                    && !pod.readers.is_empty()
                {
                    pod.want_read(window.seen, ask_at, false);
                }
                self.touch(&uid);
            }
            Verdict::Agrees | Verdict::Behind => {}
        }
        if !matches!(verdict, Verdict::Unjudged { .. }) {
            self.records.unconfirmed.remove(id);
        }
        match verdict {
            Verdict::SteppedBack => {
                self.counters.steps_back += 1;
                self.note(Note::SteppedBack {
                    id: id.as_str().into(),
                });
            }
            Verdict::Moved { from } => self.expect_from_stream(id, from, window.seen),
            _ => {}
        }
    }

    /// A read told a change first: the stream has `GRACE` to tell it too.
    fn expect_from_stream(&mut self, id: &SubjectId, from: Option<Phase>, seen: SeqPoint) {
        if !self.trust.baseline || self.supervisor.open().is_none() {
            return;
        }
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return;
        };
        let phase = subject.knowledge.phase();
        if phase == from || subject.expected.is_some() {
            return;
        }
        let Some(event) = phase.map(event_of) else {
            return;
        };
        if subject.hint.take().is_some_and(|hint| hint.event >= event) {
            return self.trust.delivered((id.kind(), event));
        }
        let deadline = seen.at.after(GRACE);
        subject.expected = Some(Expected { event, deadline });
        self.expectations.insert((deadline, id.clone()));
    }

    /// Books the changes that the stream has not told within their grace.
    pub(super) fn judge_expectations(&mut self, now: SeqPoint) {
        while let Some((deadline, id)) = self.expectations.first().cloned()
            && deadline <= now.at
        {
            self.expectations.pop_first();
            let Some(subject) = self.records.subjects.get_mut(&id) else {
                continue;
            };
            let Some(expected) = subject.expected.take() else {
                continue;
            };
            let start_failed = subject.container().is_some_and(ContainerDetails::never_ran);
            if self.supervisor.open().is_none()
                || (expected.event == EventKind::Stopped && start_failed)
            {
                continue;
            }
            let kind: SubjectKind = id.kind();
            let known_gap = self.trust.miss((kind, expected.event), now, &self.settings);
            bump(&mut self.counters.missed, (kind, expected.event));
            if known_gap {
                bump(
                    &mut self.counters.missed_in_known_gaps,
                    (kind, expected.event),
                );
            }
            self.note(Note::Missed {
                subject: kind,
                event: expected.event,
                id: id.as_str().into(),
                known_gap,
            });
        }
    }

    pub(super) fn origin(
        &self,
        source: Source,
        runtime_stamp: Option<crate::lifecycle::UnixNanos>,
    ) -> Origin {
        Origin {
            source,
            runtime_stamp,
            seen_at: self.now.wall,
            initial: source == Source::Relist && self.full_observed.is_none(),
        }
    }
}

/// The event that tells of a phase. Ready is a sandbox's first phase, and its STARTED tells it.
fn event_of(phase: Phase) -> EventKind {
    match phase {
        Phase::Created => EventKind::Created,
        Phase::Running => EventKind::Started,
        Phase::Exited => EventKind::Stopped,
        Phase::Removed => EventKind::Deleted,
    }
}
