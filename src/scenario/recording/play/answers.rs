//! Answers to questions that the recorded engine did not ask, made of what the recording knows.

use super::super::known::Known;
use crate::engine::{Answer, Failure, FailureKind, Inspection, Question};

/// What a recording knows in answer to a question; `None` if not all of it.
pub(super) fn answer_from(known: &Known, question: &Question) -> Option<Answer> {
    Some(match question {
        Question::Version => Answer::Version(Ok(known.version()?.clone())),
        Question::FullRelist => {
            known.is_listed().then_some(())?;
            Answer::Listed(Ok(known.node_list()))
        }
        Question::PodRelist { uid } => {
            known.is_listed().then_some(())?;
            Answer::Listed(Ok(known.pod_list(uid)))
        }
        Question::Inspect {
            uid: _,
            sandboxes,
            containers,
        } => Answer::Inspected(Inspection {
            sandboxes: sandboxes
                .iter()
                .map(|id| Some((id.clone(), known.sandbox(id)?)))
                .collect::<Option<_>>()?,
            containers: containers
                .iter()
                .map(|id| Some((id.clone(), known.container(id)?)))
                .collect::<Option<_>>()?,
        }),
    })
}

/// The answer to a question that the recording has none to: what it knows, and failures for the rest.
pub(super) fn unrecorded(known: &Known, question: &Question) -> Answer {
    let failure = || Failure {
        kind: FailureKind::Other,
        message: "unrecorded: the recording has no answer to this".into(),
    };
    match question {
        Question::Version => Answer::Version(Err(failure())),
        Question::FullRelist | Question::PodRelist { .. } => Answer::Listed(Err(failure())),
        Question::Inspect {
            uid: _,
            sandboxes,
            containers,
        } => Answer::Inspected(Inspection {
            sandboxes: sandboxes
                .iter()
                .map(|id| {
                    let status = known.sandbox(id).unwrap_or_else(|| Err(failure()));
                    (id.clone(), status)
                })
                .collect(),
            containers: containers
                .iter()
                .map(|id| {
                    let status = known.container(id).unwrap_or_else(|| Err(failure()));
                    (id.clone(), status)
                })
                .collect(),
        }),
    }
}
