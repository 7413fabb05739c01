//! The engine's questions that have no answer yet, the recorded ones, and which of these answers which
//! of those.

use std::collections::BTreeMap;
use std::time::Duration;

use super::LATENCY;
use crate::engine::{Question, RequestId};
use crate::lifecycle::Mono;

/// How far a question may lie before the recorded one that it is taken for.
const SAME_QUESTION: Duration = Duration::from_secs(1);

/// The deadline of all calls but `Version`, as live.
const CALL_DEADLINE: Duration = Duration::from_secs(120);
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// A question of the engine's that has no answer yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) question: Question,
    pub(super) asked: Mono,
    pub(super) answer: Awaited,
}

/// Where its answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The answer to this recorded question.
    Recorded(RequestId),
    /// What the recording knows, at this moment.
    Known(Mono),
    /// The next that the recording tells of it.
    Next,
}

impl Pending {
    /// When something is to be done about it, if the recording does nothing before.
    fn due(&self) -> Mono {
        match self.answer {
            Awaited::Known(at) => at,
            Awaited::Recorded(_) => Mono(u64::MAX),
            Awaited::Next => self.asked.after(match self.question {
                Question::Version => VERSION_DEADLINE,
                _ => CALL_DEADLINE,
            }),
        }
    }
}

/// All that is asked and not answered, by the engine and in the recording.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Recorded questions without an answer so far, and when they were sent.
    recorded: BTreeMap<RequestId, (Question, Mono)>,
    pending: BTreeMap<RequestId, Pending>,
}

impl Questions {
    /// The engine asks, in step: the recording has the same question, under the same number.
    pub(super) fn ask_in_step(&mut self, request: RequestId, question: Question, asked: Mono) {
        let answer = Awaited::Recorded(request);
        self.pend(request, question, asked, answer);
    }

    /// The engine asks, out of step.
    pub(super) fn ask_out_of_step(&mut self, request: RequestId, question: Question, asked: Mono) {
        let answer = self.source_of(&question, asked);
        self.pend(request, question, asked, answer);
    }

    fn pend(&mut self, request: RequestId, question: Question, asked: Mono, answer: Awaited) {
        let pending = Pending {
            question,
            asked,
            answer,
        };
        self.pending.insert(request, pending);
    }

    /// Where the answer to a question comes from that the engine asks out of step.
    fn source_of(&self, question: &Question, asked: Mono) -> Awaited {
        let is_free = |request: &RequestId| {
            self.pending
                .values()
                .all(|pending| pending.answer != Awaited::Recorded(*request))
        };
        // One that is out in the recording too, and was sent about now.
        let same = self.recorded.iter().find(|(request, (recorded, begun))| {
            recorded == question && asked.since(*begun) <= SAME_QUESTION && is_free(request)
        });
        match same {
            Some((request, _)) => Awaited::Recorded(*request),
            None => Awaited::Known(asked.after(LATENCY)),
        }
    }

    /// A question was recorded.
    pub(super) fn record(&mut self, request: RequestId, question: Question, at: Mono) {
        self.recorded.insert(request, (question, at));
    }

    /// The recorded question without an answer so far, and when it was sent.
    pub(super) fn recorded(&self, request: RequestId) -> Option<&(Question, Mono)> {
        self.recorded.get(&request)
    }

    /// A question was recorded that the engine has perhaps just asked as well.
    pub(super) fn bind(&mut self, request: RequestId, question: &Question, now: Mono) {
        let same = self.pending.values_mut().find(|pending| {
            pending.question == *question
                && !matches!(pending.answer, Awaited::Recorded(_))
                && now.since(pending.asked) <= SAME_QUESTION
        });
        if let Some(pending) = same {
            pending.answer = Awaited::Recorded(request);
        }
    }

    /// An answer was recorded, in step: it is the engine's.
    pub(super) fn answered_in_step(&mut self, request: RequestId) {
        self.recorded.remove(&request);
        self.pending.remove(&request);
    }

    /// An answer was recorded, out of step. Gives the engine's question that waited for it.
    pub(super) fn answered_out_of_step(&mut self, request: RequestId) -> Option<RequestId> {
        self.recorded.remove(&request);
        let bound = self
            .pending
            .iter()
            .find(|(_, pending)| pending.answer == Awaited::Recorded(request))
            .map(|(request, _)| *request)?;
        self.pending.remove(&bound);
        Some(bound)
    }

    /// In step the numbers agree; what the recording did not ask must be answered otherwise.
    pub(super) fn leave_step(&mut self, now: Mono) {
        for (request, pending) in &mut self.pending {
            let is_recorded = self
                .recorded
                .get(request)
                .is_some_and(|(question, _)| *question == pending.question);
            if !is_recorded {
                pending.answer = Awaited::Known(now.after(LATENCY));
            }
        }
    }

    /// The question about which something is to be done first.
    pub(super) fn next_due(&self) -> Option<(Mono, RequestId)> {
        self.pending
            .iter()
            .map(|(request, pending)| (pending.due(), *request))
            .min()
    }

    pub(super) fn pending_mut(&mut self, request: RequestId) -> Option<&mut Pending> {
        self.pending.get_mut(&request)
    }

    pub(super) fn remove(&mut self, request: RequestId) {
        self.pending.remove(&request);
    }

    /// The engine's questions that wait for what the recording tells next.
    pub(super) fn waiting_for_next(&self) -> impl Iterator<Item = (RequestId, &Question)> {
        self.pending
            .iter()
            .filter(|(_, pending)| pending.answer == Awaited::Next)
            .map(|(request, pending)| (*request, &pending.question))
    }
}
