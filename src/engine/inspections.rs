//! Inspections: the status reads that complete what lists lack, and what they vouch for.
//!
//! An inspection is one more observation, judged by its own window; it never overrides. One of a pod at
//! a time. One that fails becomes the pod's error, is tried again with back-off, and holds back the
//! events of that pod's unread subjects only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::counters::{Contradiction, bump};
use super::pod::{InspectionFailure, PodInspection, PodRead};
use super::settings::SETTLE;
use super::subject::Details;
use super::{Engine, FailureKind, Inspection, Note, Question};
use crate::law::Law;
use crate::lifecycle::{
    ContainerStatus, PodUid, Refusal, SandboxStatus, SeqPoint, Source, Standing, SubjectId,
    Verdict, Window,
};

/// The longest wait between two tries of an inspection that keeps failing.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// What one status did to its subject.
enum Outcome {
    /// It was read, and is what the record says.
    Vouched,
    /// It was read and is not what the record says.
    Differs,
    /// It could not be read.
    Failed(Arc<str>),
}

impl Engine {
    /// Sends the request that a pod wants most.
    pub(super) fn send_for(&mut self, uid: &PodUid) {
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        if let Some(listed) = pod.listed.take() {
            return self.send_inspection(uid, Some(listed.0));
        }
        let list_is_due = pod
            .due
            .is_some_and(|due| due.at <= self.now.mono && self.full_observed.is_some());
        if list_is_due && self.is_listable(uid) {
            let question = Question::PodRelist { uid: uid.clone() };
            let (request, begun) = self.ask(question);
            if let Some(pod) = self.records.pods.get_mut(uid) {
                let details = pod.due.take().is_some_and(|due| due.details);
                pod.read = Some(PodRead {
                    request,
                    begun,
                    details,
                });
            }
            return;
        }
        self.send_inspection(uid, None);
    }

    /// Inspects every live subject if that completes lists, and what wants it otherwise.
    fn send_inspection(&mut self, uid: &PodUid, completes: Option<SeqPoint>) {
        let mut subjects = BTreeSet::new();
        let (mut sandboxes, mut containers) = (Vec::new(), Vec::new());
        for (id, subject) in self.records.live_of_pod(uid) {
            if completes.is_none() && subject.inspect_since.is_none() {
                continue;
            }
            subjects.insert(id.clone());
            match id {
                SubjectId::Sandbox(id) => sandboxes.push(id.clone()),
                SubjectId::Container(id) => containers.push(id.clone()),
            }
        }
        if subjects.is_empty() {
            // Everything went away meanwhile: there is nothing to read, and the lists stand alone.
            return;
        }
        // An inspection of the whole pod completes whichever lists vouched for it last.
        let is_whole = subjects.len() == self.records.live_of_pod(uid).count();
        let lists = self
            .records
            .pods
            .get(uid)
            .and_then(|pod| self.observed_phases(uid, pod));
        let completes = completes.or(lists.filter(|_| is_whole));
        let (request, begun) = self.ask(Question::Inspect {
            uid: uid.clone(),
            sandboxes,
            containers,
        });
        if let Some(pod) = self.records.pods.get_mut(uid) {
            pod.inspect_at = None;
            pod.inspection = Some(PodInspection {
                request,
                begun,
                subjects,
                completes,
            });
        }
    }

    pub(super) fn inspection_answered(&mut self, uid: &PodUid, answer: Inspection, at: SeqPoint) {
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let Some(sent) = pod.inspection.take() else {
            return;
        };
        let window = Window::of_read(sent.begun, at);
        let mut unanswered = sent.subjects.clone();
        let mut failure: Option<Arc<str>> = None;
        let mut vouches = true;
        for (id, result) in answer.sandboxes {
            let id = SubjectId::Sandbox(id);
            unanswered.remove(&id);
            let outcome = match result {
                Ok(status) => self.take_sandbox(&id, &status, window),
                Err(error) if error.kind == FailureKind::NotFound => {
                    self.take_not_found(&id, window)
                }
                Err(error) => Outcome::Failed(error.message),
            };
            collect(outcome, &mut failure, &mut vouches);
        }
        for (id, result) in answer.containers {
            let id = SubjectId::Container(id);
            unanswered.remove(&id);
            let outcome = match result {
                Ok(status) => self.take_container(&id, &status, window),
                Err(error) if error.kind == FailureKind::NotFound => {
                    self.take_not_found(&id, window)
                }
                Err(error) => Outcome::Failed(error.message),
            };
            collect(outcome, &mut failure, &mut vouches);
        }
        if let Some(id) = unanswered.first() {
            failure.get_or_insert_with(|| format!("no status of {id} was answered").into());
        }
        let all_read = self
            .records
            .live_of_pod(uid)
            .all(|(id, _)| sent.subjects.contains(id));
        self.conclude_inspection(uid, &sent, failure, vouches && all_read, at);
    }

    fn conclude_inspection(
        &mut self,
        uid: &PodUid,
        sent: &PodInspection,
        failure: Option<Arc<str>>,
        vouches: bool,
        at: SeqPoint,
    ) {
        self.touch(uid);
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let failed = failure.is_some();
        pod.failure = failure.map(|message| {
            let failures = pod.failure.as_ref().map_or(0, |failure| failure.failures);
            let wait = Duration::from_secs(1 << failures.min(6)).min(LONGEST_RETRY);
            InspectionFailure {
                message,
                retry_at: at.at.after(wait),
                failures: failures.saturating_add(1),
            }
        });
        let Some(listed) = sent.completes else {
            return;
        };
        if failed {
            if vouches {
                // The record is still what the lists showed.
                pod.observed_error = pod.observed_error.max(Some(listed));
            }
            if let (Some(_), Some(failure)) = (pod.reinspect, &pod.failure) {
                // Readers are answered with the error; whoever waits for a `PodSync` is not.
                let retry_at = failure.retry_at;
                pod.want_read(at, retry_at, true);
                self.waiting.insert(uid.clone());
            }
            return;
        }
        if !vouches {
            pod.want_read(at, at.at, true);
            self.waiting.insert(uid.clone());
            return;
        }
        pod.observed_details = pod.observed_details.max(Some(listed));
        if pod.reinspect.is_some_and(|asked| listed > asked) {
            pod.reinspect = None;
            pod.sync_owed = true;
        }
    }

    fn take_sandbox(&mut self, id: &SubjectId, status: &SandboxStatus, window: Window) -> Outcome {
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return Outcome::Differs;
        };
        if subject.pod != status.pod.uid {
            self.refuse(Refusal::PodChanged);
            return Outcome::Failed("the runtime names another pod for this sandbox".into());
        }
        let verdict = subject.knowledge.hear_read(status.state, window, SETTLE);
        let standing = standing(window, subject.details_seen);
        let conflict = match &mut subject.details {
            Details::Sandbox(details) => details.take_status(status, standing),
            Details::Container(_) => false,
        };
        self.status_taken(id, verdict, conflict, window)
    }

    fn take_container(
        &mut self,
        id: &SubjectId,
        status: &ContainerStatus,
        window: Window,
    ) -> Outcome {
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return Outcome::Differs;
        };
        if status
            .pod
            .as_ref()
            .is_some_and(|pod| pod.uid != subject.pod)
        {
            self.refuse(Refusal::PodChanged);
            return Outcome::Failed("the runtime names another pod for this container".into());
        }
        let verdict = subject.knowledge.hear_read(status.state, window, SETTLE);
        let standing = standing(window, subject.details_seen);
        let conflict = match &mut subject.details {
            Details::Container(details) => details.take_status(status, standing),
            Details::Sandbox(_) => false,
        };
        self.status_taken(id, verdict, conflict, window)
    }

    fn take_not_found(&mut self, id: &SubjectId, window: Window) -> Outcome {
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return Outcome::Differs;
        };
        let verdict = subject.knowledge.hear_absence(window, SETTLE);
        if let Verdict::Unjudged { ask_at } = verdict
            && let Some(pod) = self.records.pods.get_mut(&subject.pod)
        {
            // Just born, or gone: no status can tell before a list may.
            pod.inspect_at = Some(ask_at);
        }
        self.read_judged(id, verdict, window, Source::Inspect);
        if verdict.vouches() {
            Outcome::Vouched
        } else {
            Outcome::Differs
        }
    }

    fn status_taken(
        &mut self,
        id: &SubjectId,
        verdict: Verdict,
        conflict: bool,
        window: Window,
    ) -> Outcome {
        let mut asked_since = false;
        if let Some(subject) = self.records.subjects.get_mut(id) {
            subject.details_seen = subject.details_seen.max(window.seen);
            asked_since = subject
                .inspect_since
                .is_some_and(|since| since < window.begun);
            if verdict.vouches() && asked_since {
                subject.inspect_since = None;
            }
            let uid = subject.pod.clone();
            if conflict {
                self.details_conflict(id);
                if let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.want_read(window.seen, window.seen.at, true);
                    self.waiting.insert(uid);
                }
            }
        }
        self.read_judged(id, verdict, window, Source::Inspect);
        if verdict.vouches() && !conflict {
            Outcome::Vouched
        } else if asked_since && !verdict.vouches() {
            // A list had shown it further than its status does: wait before asking again. One that came
            // while the status was on its way proves nothing of that.
            Outcome::Failed("the status of a subject is behind its list".into())
        } else {
            Outcome::Differs
        }
    }

    /// Two reports of one phase differ and cannot be ordered: the published one stays.
    pub(super) fn details_conflict(&mut self, id: &SubjectId) {
        bump(&mut self.counters.contradictions, Contradiction::Details);
        self.note(Note::Contradicted {
            how: Contradiction::Details,
            id: id.as_str().into(),
        });
    }
}

fn collect(outcome: Outcome, failure: &mut Option<Arc<str>>, vouches: &mut bool) {
    match outcome {
        Outcome::Vouched => {}
        Outcome::Differs => *vouches = false,
        Outcome::Failed(message) => {
            failure.get_or_insert(message);
        }
    }
}

fn standing(window: Window, details_seen: SeqPoint) -> Standing {
    if window.begun > details_seen || !Law::DetailsInDoubtStay.holds() {
        Standing::Later
    } else {
        Standing::Overlapping
    }
}
