//! The calls of a simulation: what is asked, when each part of the answer is read, how it ends.

use std::time::Duration;

use super::act::{BY_CRICTL, Method, PODS};
use super::node::uid;
use super::play::{Call, Due, Play, failure, unavailable};
use super::trouble::Outcome;
use crate::engine::model::{Violation, violated};
use crate::engine::{
    Answer, Failure, FailureKind, Input, Inspection, Question, RequestId, RuntimeVersion,
};
use crate::lifecycle::{NodeList, PodUid};

const VERSION_DEADLINE: Duration = Duration::from_secs(5);
const READ_DEADLINE: Duration = Duration::from_secs(120);
/// A call that is out for so long makes room for another, up to so many times the cap.
const HANGING: Duration = Duration::from_secs(10);
const CAPS_WHEN_CALLS_HANG: usize = 4;

impl Play {
    pub(super) fn ask(&mut self, request: RequestId, question: Question) -> Result<(), Violation> {
        self.check_bounds(&question)?;
        let deadline = match question {
            Question::Version => VERSION_DEADLINE,
            _ => READ_DEADLINE,
        };
        if question == Question::FullRelist {
            self.full_relists_asked += 1;
        }
        let mut call = Call {
            question,
            asked: self.now.mono,
            list: NodeList::default(),
            inspection: Inspection::default(),
            fails: false,
        };
        if !self.is_up {
            self.calls.insert(request, call);
            self.set_off(self.later(1), Due::Refused(request));
            return Ok(());
        }
        let latency = u64::from(self.character.latency);
        let mut draw = |most: u64| u32::try_from(self.dice.below(most + 1)).unwrap_or(0);
        let mut first = draw(latency);
        let mut second = first + draw(latency);
        let mut transit = 1 + draw(latency);
        let methods = match call.question {
            Question::Version => [Some(Method::Version), None],
            Question::FullRelist | Question::PodRelist { .. } => {
                [Some(Method::ListSandboxes), Some(Method::ListContainers)]
            }
            // The statuses are asked for one by one; who fails is drawn as each is read.
            Question::Inspect { .. } => [None, None],
        };
        for (part, method) in methods.into_iter().enumerate() {
            let Some(method) = method else { continue };
            match self.trouble.befalls_call(method) {
                None => {}
                Some(Outcome::Fails | Outcome::BreaksOff) => call.fails = true,
                Some(Outcome::Slow {
                    millis,
                    read_late: true,
                }) => {
                    if part == 0 {
                        first += millis;
                    }
                    second += millis;
                }
                Some(Outcome::Slow { millis, .. }) => transit += millis,
            }
        }
        second = second.max(first);
        if let Question::Inspect { uid, .. } = &call.question {
            let uid = uid.clone();
            let (slow, late) = self.befalls_statuses(&mut call, &uid);
            second += late;
            first += late;
            transit += slow;
        }
        self.calls.insert(request, call);
        self.set_off(self.later(first), Due::ReadSandboxes(request));
        self.set_off(self.later(second), Due::ReadContainers(request));
        self.set_off(self.later(second + transit), Due::Answer(request));
        self.set_off(self.now.mono.after(deadline), Due::Deadline(request));
        Ok(())
    }

    /// Which statuses fail, and how long the slowest takes.
    pub(super) fn befalls_statuses(&mut self, call: &mut Call, uid: &PodUid) -> (u32, u32) {
        let Question::Inspect {
            sandboxes,
            containers,
            ..
        } = &call.question
        else {
            return (0, 0);
        };
        let (mut slow, mut late, mut failed) = (0, 0, false);
        let mut befalls = |method| match self.trouble.befalls_call(method) {
            None => false,
            Some(Outcome::Fails | Outcome::BreaksOff) => {
                failed = true;
                true
            }
            Some(Outcome::Slow { millis, read_late }) => {
                let which = if read_late { &mut late } else { &mut slow };
                *which = millis.max(*which);
                false
            }
        };
        for id in sandboxes {
            if befalls(Method::SandboxStatus) {
                let failure = Err(unavailable());
                call.inspection.sandboxes.push((id.clone(), failure));
            }
        }
        for id in containers {
            if befalls(Method::ContainerStatus) {
                let failure = Err(unavailable());
                call.inspection.containers.push((id.clone(), failure));
            }
        }
        if failed {
            self.witness.an_inspection_failed(uid);
        }
        (slow, late)
    }

    pub(super) fn check_bounds(&self, question: &Question) -> Result<(), Violation> {
        let cap = self.engine.settings().parallel_inspections;
        let of_pods = |call: &&Call| {
            matches!(
                call.question,
                Question::PodRelist { .. } | Question::Inspect { .. }
            )
        };
        let at_all = self.calls.values().filter(of_pods).count();
        let hang = |call: &&Call| self.now.mono.since(call.asked) >= HANGING;
        let hanging = self.calls.values().filter(of_pods).filter(hang).count();
        let same = |call: &&Call| match (&call.question, question) {
            (Question::FullRelist, Question::FullRelist)
            | (Question::Version, Question::Version) => true,
            (Question::Inspect { uid: one, .. }, Question::Inspect { uid: other, .. })
            | (Question::PodRelist { uid: one }, Question::PodRelist { uid: other }) => {
                one == other
            }
            _ => false,
        };
        if let Some(other) = self.calls.values().find(same) {
            return violated(
                "Bounded",
                format!(
                    "{question:?} is asked while {:?} is under way",
                    other.question
                ),
            );
        }
        let is_of_pod = !matches!(question, Question::FullRelist | Question::Version);
        if is_of_pod && (at_all - hanging >= cap || at_all >= cap * CAPS_WHEN_CALLS_HANG) {
            return violated(
                "Bounded",
                format!("{at_all} pods are read at once, of which {hanging} hang"),
            );
        }
        Ok(())
    }

    pub(super) fn read_sandboxes(&mut self, request: RequestId) {
        let Some(call) = self.calls.get_mut(&request) else {
            return;
        };
        match &call.question {
            Question::Version => {}
            Question::FullRelist | Question::PodRelist { .. } => {
                let of_pod = filter(&call.question);
                call.list.sandboxes = self.node.list_sandboxes(of_pod, &self.trouble.garbled);
            }
            Question::Inspect { sandboxes, .. } => {
                let failed = std::mem::take(&mut call.inspection.sandboxes);
                for id in sandboxes {
                    let result = match failed.iter().find(|(failed, _)| failed == id) {
                        Some((_, failure)) => failure.clone(),
                        None => self.node.status_of_sandbox(id).ok_or_else(not_found),
                    };
                    call.inspection.sandboxes.push((id.clone(), result));
                }
            }
        }
    }

    pub(super) fn read_containers(&mut self, request: RequestId) {
        let Some(call) = self.calls.get_mut(&request) else {
            return;
        };
        match &call.question {
            Question::Version => {}
            Question::FullRelist | Question::PodRelist { .. } => {
                let of_pod = filter(&call.question);
                call.list.containers = self.node.list_containers(of_pod, &self.trouble.garbled);
            }
            Question::Inspect { containers, .. } => {
                let failed = std::mem::take(&mut call.inspection.containers);
                for id in containers {
                    let result = match failed.iter().find(|(failed, _)| failed == id) {
                        Some((_, failure)) => failure.clone(),
                        None => self.node.status_of_container(id).ok_or_else(not_found),
                    };
                    call.inspection.containers.push((id.clone(), result));
                }
            }
        }
    }

    /// Ends a call: with what was read, or with a failure of this kind.
    pub(super) fn answer(
        &mut self,
        request: RequestId,
        kind: Option<FailureKind>,
    ) -> Result<(), Violation> {
        let Some(call) = self.calls.remove(&request) else {
            return Ok(());
        };
        let failure = kind
            .or(call.fails.then_some(FailureKind::Unavailable))
            .map(failure);
        let answer = match (call.question, failure) {
            (Question::Version, None) => Answer::Version(Ok(version())),
            (Question::Version, Some(failure)) => Answer::Version(Err(failure)),
            (Question::FullRelist, None) => {
                self.relisted.push(call.asked);
                self.witness.is_hidden_by(&call.list, &self.node);
                Answer::Listed(Ok(call.list))
            }
            (Question::PodRelist { .. }, None) => Answer::Listed(Ok(call.list)),
            (Question::FullRelist | Question::PodRelist { .. }, Some(failure)) => {
                Answer::Listed(Err(failure))
            }
            (Question::Inspect { .. }, None) => Answer::Inspected(call.inspection),
            (
                Question::Inspect {
                    uid,
                    sandboxes,
                    containers,
                },
                Some(failure),
            ) => {
                self.witness.an_inspection_failed(&uid);
                Answer::Inspected(Inspection {
                    sandboxes: each(sandboxes, &failure),
                    containers: each(containers, &failure),
                })
            }
        };
        let outcome = self.take(Input::Answered { request, answer });
        self.witness.hides.clear();
        outcome
    }
}

fn each<Id: Clone, T>(ids: Vec<Id>, failure: &Failure) -> Vec<(Id, Result<T, Failure>)> {
    ids.into_iter()
        .map(|id| (id, Err(failure.clone())))
        .collect()
}

/// The pod by whose uid a list is filtered; none: it is of the node.
fn filter(question: &Question) -> Option<u8> {
    match question {
        Question::PodRelist { uid } => Some(number(uid)),
        _ => None,
    }
}

fn number(pod: &PodUid) -> u8 {
    // A pod that is none of the node's has a filter that matches nothing, as crictl's has.
    let number = (0..PODS).find(|&number| uid(number) == *pod);
    number.unwrap_or(BY_CRICTL)
}

fn version() -> RuntimeVersion {
    RuntimeVersion {
        name: "containerd".into(),
        version: "2.1.0".into(),
        api_version: "v1".into(),
    }
}

fn not_found() -> Failure {
    failure(FailureKind::NotFound)
}
