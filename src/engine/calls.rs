//! Questions on their way: what is out, what is due, and how many may be.
//!
//! Owns the relist schedule, the heartbeat, the mode that follows from the supervisor, and the queue of
//! pods that want a request. It never reads an answer's content.

use std::time::Duration;

use super::counters::bump;
use super::settings::{SETTLE, UNCONFIRMED_SUBJECTS};
use super::{
    Answer, Call, Engine, Failure, FailureKind, Mode, ModeChange, Note, Output, Question, RequestId,
};
use crate::law::Law;
use crate::lifecycle::{Mono, NodeList, PodUid, SeqPoint};

/// A question that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct InFlight {
    pub(super) call: Call,
    pub(super) uid: Option<PodUid>,
    pub(super) begun: SeqPoint,
}

/// When the node is relisted next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RelistSchedule {
    pub(super) begun: Option<SeqPoint>,
    pub(super) ended: Mono,
    pub(super) took: Duration,
    pub(super) failures: u32,
    /// Earlier than the schedule says, and not sent yet.
    pub(super) wanted: Option<Mono>,
    /// How far the next one for proofs alone keeps from the last one, whatever that was for. It doubles
    /// while relists follow each other.
    pub(super) proof_rest: Duration,
}

impl RelistSchedule {
    /// Makes a relist due. Only one sent from now on satisfies it.
    pub(super) fn want(&mut self, at: Mono) {
        self.wanted = Some(self.wanted.map_or(at, |wanted| wanted.min(at)));
    }

    fn begins(&mut self, at: SeqPoint) {
        let follows = self
            .begun
            .is_some_and(|last| at.at.since(last.at) <= LONGEST_PROOF);
        self.proof_rest = if follows {
            self.proof_rest
                .saturating_mul(2)
                .clamp(SETTLE, LONGEST_PROOF)
        } else {
            SETTLE
        };
        self.begun = Some(at);
        self.wanted = None;
    }

    fn next(&self, period: Duration, fast: Duration) -> Mono {
        let Some(begun) = self.begun else {
            return Mono(0);
        };
        let regular = if self.failures > 0 {
            let backed_off = fast.saturating_mul(1 << (self.failures - 1).min(16));
            self.ended.after(backed_off.min(period))
        } else {
            // A list that takes long is given as long a rest, up to the period: never back to back.
            let rest = self.ended.after(self.took.min(period));
            begun.at.after(period).max(rest)
        };
        self.wanted.map_or(regular, |wanted| wanted.min(regular))
    }
}

/// How many targeted reads the node's own needs may cause: past it one full relist, due soon, is
/// cheaper. Readers are not limited by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CallBudget {
    pub(super) since: Mono,
    pub(super) used: u32,
}

/// Targeted reads a second.
const TARGETED_READS: u32 = 8;

/// A call that is out for so long no longer counts against the cap: pods whose statuses hang must not
/// hold up the others.
const HANGING: Duration = Duration::from_secs(10);

/// How many times the cap may be out when calls hang.
const CAPS_OUT: usize = 4;

/// For how long running pods go before dead ones. Whoever has waited for longer is served before all that
/// came later: a node that is never done with its running pods still tells how the others ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// For how long the proof of a removal may wait for a full relist that serves many.
const LONGEST_PROOF: Duration = Duration::from_secs(10);

/// The least time between two full relists that readers of unlistable pods cause.
const READERS_GAP: Duration = Duration::from_millis(100);

impl CallBudget {
    pub(super) fn take(&mut self, now: Mono) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.used = 0;
        }
        let granted = self.used < TARGETED_READS;
        self.used = (self.used + 1).min(TARGETED_READS);
        granted
    }
}

impl Engine {
    pub(super) fn is_out(&self, call: Call) -> bool {
        self.calls.values().any(|out| out.call == call)
    }

    pub(super) fn ask(&mut self, question: Question) -> (RequestId, SeqPoint) {
        let (call, uid) = match &question {
            Question::Version => (Call::Version, None),
            Question::FullRelist => (Call::FullRelist, None),
            Question::PodRelist { uid } => (Call::PodRelist, Some(uid.clone())),
            Question::Inspect { uid, .. } => (Call::Inspect, Some(uid.clone())),
        };
        let begun = self.point();
        self.next_request += 1;
        let request = RequestId(self.next_request);
        bump(&mut self.counters.asked, call);
        self.calls.insert(request, InFlight { call, uid, begun });
        self.outputs.push_back(Output::Ask { request, question });
        (request, begun)
    }

    pub(super) fn answered(&mut self, request: RequestId, answer: Answer, at: SeqPoint) {
        let Some(call) = self.calls.remove(&request) else {
            return;
        };
        if let Some(failure) = failure_of(&answer).cloned() {
            self.call_failed(&call, failure);
        } else {
            self.supervisor.call_succeeded(at.at);
        }
        match (call.call, call.uid, answer) {
            (Call::Version, _, Answer::Version(result)) => self.version_answered(result, at),
            (Call::FullRelist, _, Answer::Listed(result)) => {
                self.full_relist_answered(call.begun, shown_by(result), at);
            }
            (Call::PodRelist, Some(uid), Answer::Listed(result)) => {
                self.pod_relist_answered(&uid, call.begun, shown_by(result), at);
            }
            (Call::Inspect, Some(uid), Answer::Inspected(inspection)) => {
                self.inspection_answered(&uid, inspection, at);
            }
            // An answer of another kind than its question: as good as none.
            (Call::FullRelist, _, _) => self.full_relist_answered(call.begun, None, at),
            (Call::PodRelist, Some(uid), _) => self.pod_relist_answered(&uid, call.begun, None, at),
            (Call::Inspect, Some(uid), _) => {
                self.inspection_answered(&uid, super::Inspection::default(), at);
            }
            _ => {}
        }
    }

    fn call_failed(&mut self, call: &InFlight, failure: Failure) {
        bump(&mut self.counters.failed, (call.call, failure.kind));
        // One pod that cannot be read says nothing about the runtime.
        let is_about_the_node = matches!(call.call, Call::Version | Call::FullRelist);
        if is_about_the_node
            && matches!(
                failure.kind,
                FailureKind::Unavailable | FailureKind::DeadlineExceeded
            )
        {
            self.supervisor.call_failed();
        }
        self.note(Note::CallFailed {
            call: call.call,
            uid: call.uid.clone(),
            failure,
        });
    }

    fn version_answered(&mut self, result: Result<super::RuntimeVersion, Failure>, at: SeqPoint) {
        let Ok(version) = result else {
            // Asked again soon: only a heartbeat ends what a heartbeat began.
            self.heartbeat_due = at.at.after(self.settings.fast_period);
            if !std::mem::replace(&mut self.supervisor.unresponsive, true) {
                self.trust.begin_hole(at, &self.settings);
            }
            return;
        };
        self.heartbeat_due = at.at.after(self.settings.heartbeat_period);
        if std::mem::take(&mut self.supervisor.unresponsive) {
            // What happened while it was frozen may be told by lists first, and is not held against the
            // stream.
            self.trust.begin_hole(at, &self.settings);
        }
        if self.runtime.as_ref().is_some_and(|known| *known != version) {
            self.trust.forget_gaps();
            self.supervisor.try_now(at.at);
            self.note(Note::RuntimeChanged {
                to: format!("{} {}", version.name, version.version).into(),
            });
        }
        self.runtime = Some(version);
    }

    pub(super) fn heartbeat_if_due(&mut self) {
        if self.heartbeat_due <= self.now.mono && !self.is_out(Call::Version) {
            self.ask(Question::Version);
        }
    }

    pub(super) fn next_relist(&self) -> Mono {
        self.relists.next(self.period(), self.settings.fast_period)
    }

    pub(super) fn relist_if_due(&mut self) {
        let waits_for_another = self.is_out(Call::FullRelist) && Law::OneRelistAtATime.holds();
        if self.next_relist() > self.now.mono || waits_for_another {
            return;
        }
        let (_, begun) = self.ask(Question::FullRelist);
        self.relists.begins(begun);
    }

    /// Makes a full relist due soon: at once, but no closer to the last one than a second or the fast
    /// period. For what costs a second and not a state.
    pub(super) fn want_relist_soon(&mut self) {
        self.want_relist_at(self.now.mono);
    }

    /// The same, but not before a moment.
    pub(super) fn want_relist_at(&mut self, at: Mono) {
        self.want_relist_after(SETTLE, at);
    }

    /// Makes a full relist due for what nobody waits for, not before a moment: the proof of a removal that
    /// was told, a container that was made while the last list was on its way. A busy node always has some
    /// of those, so relists for them alone come ever further apart, and take a hundredth of the time at most.
    pub(super) fn want_relist_for_proof(&mut self, at: Mono) {
        // Only so many subjects may be known by events alone; a list lets go of those that have passed. What
        // still waits to be read then is stale, so it is not for a burst that the bound has room for.
        if self.records.unconfirmed.len() > UNCONFIRMED_SUBJECTS / 2 {
            return self.want_relist_at(at);
        }
        let took = self.relists.took.saturating_mul(100).min(LONGEST_PROOF);
        self.want_relist_after(self.relists.proof_rest.max(took), at);
    }

    fn want_relist_after(&mut self, gap: Duration, at: Mono) {
        let gap = gap.max(self.settings.fast_period).max(SETTLE);
        let rested = self.relists.begun.map(|begun| begun.at.after(gap));
        let at = rested.unwrap_or(at).max(at);
        self.relists.want(at.max(self.now.mono));
    }

    /// The time between the beginnings of two relists, as the mode has it.
    pub(super) fn period(&self) -> Duration {
        match self.supervisor.mode {
            Mode::Evented { audit_period } => audit_period,
            Mode::Connecting | Mode::Polling { .. } => self.settings.fast_period,
        }
    }

    pub(super) fn threshold(&self) -> Duration {
        match self.supervisor.mode {
            Mode::Evented { .. } => self.settings.slow_threshold,
            Mode::Connecting | Mode::Polling { .. } => self.settings.fast_threshold,
        }
    }

    pub(super) fn open_stream_if_due(&mut self) {
        let asked = self.point();
        if let Some(session) = self.supervisor.open_if_due(asked) {
            self.counters.streams_opened += 1;
            self.trust.begin_stream(asked, &self.settings);
            // Until a relist that begins after this has been applied, the fast period is in force.
            self.outputs.push_back(Output::OpenStream { session });
        }
    }

    pub(super) fn update_mode(&mut self) {
        let from = self.supervisor.mode;
        let to = self
            .supervisor
            .mode_now(self.trust.distrusted, self.trust.period);
        self.supervisor.mode = to;
        if std::mem::discriminant(&from) == std::mem::discriminant(&to)
            && (matches!(to, Mode::Evented { .. }) || from == to)
        {
            return;
        }
        self.counters.mode_changes += 1;
        self.health
            .threshold_changed(self.now.mono, self.threshold());
        let cause = self.cause_of(to);
        self.outputs.push_back(Output::ModeChanged(ModeChange {
            from,
            to,
            cause,
            at: self.now.wall,
        }));
    }

    fn cause_of(&self, to: Mode) -> std::sync::Arc<str> {
        use super::PollingReason as Reason;
        let end = || self.last_stream_end.as_deref().unwrap_or("it ended");
        match to {
            Mode::Connecting => "the event stream was asked for".into(),
            Mode::Evented { .. } => {
                "the event stream stands and a full relist began after it".into()
            }
            Mode::Polling { reason } => match reason {
                Reason::Unsupported => format!("the runtime serves no events: {}", end()).into(),
                Reason::StreamBroken => format!("the event stream broke: {}", end()).into(),
                Reason::Unresponsive => "the heartbeat has no answer".into(),
                Reason::Untrusted => "the event stream loses events".into(),
                Reason::Disabled => "the EventedPLEG gate is off".into(),
            },
        }
    }

    /// Puts a pod into the queue if it wants a request that may be sent now. It keeps its place there,
    /// whatever else it comes to want.
    pub(super) fn enqueue(&mut self, uid: &PodUid) {
        let wanted = self.turn_of(uid);
        let Some(pod) = self.records.pods.get_mut(uid) else {
            return;
        };
        let before = pod.queued;
        let turn = wanted.map(|(is_dead, since)| {
            let place = before.map_or(since, |(_, place)| place.min(since));
            (is_dead, place)
        });
        pod.queued = turn;
        if before == turn {
            return;
        }
        if let Some(before) = before {
            self.queue.remove(&(before, uid.clone()));
        }
        if let Some(turn) = turn {
            self.queue.insert((turn, uid.clone()));
        }
    }

    fn turn_of(&mut self, uid: &PodUid) -> Option<super::pod::Turn> {
        let now = self.now.mono;
        let pod = self.records.pods.get(uid)?;
        if pod.read.is_some() || pod.inspection.is_some() {
            return None;
        }
        let is_dead = pod.readers.is_empty() && !self.has_unfinished(uid);
        if let Some(listed) = pod.listed {
            return Some((is_dead, listed.0));
        }
        if let Some(due) = pod.due
            && due.at <= now
            && self.full_observed.is_some()
        {
            if self.is_listable(uid) {
                return Some((is_dead, due.since));
            }
            // No filter would show all of it: only an unfiltered list can vouch for this pod.
            if self.relists.begun.is_none_or(|begun| begun < due.since) {
                let gap = self.relists.begun.map(|begun| begun.at.after(READERS_GAP));
                self.relists.want(gap.unwrap_or(now).max(now));
            }
        }
        let may_inspect = pod
            .failure
            .as_ref()
            .is_none_or(|failure| failure.retry_at <= now)
            && pod.inspect_at.is_none_or(|at| at <= now);
        let wanted_since = self
            .records
            .live_of_pod(uid)
            .filter_map(|(_, subject)| subject.inspect_since)
            .min();
        // Whoever has failed lines up anew: pods that hang for ever must not keep the others out.
        let retry_at = pod.failure.as_ref().map(|failure| SeqPoint {
            at: failure.retry_at,
            count: 0,
        });
        wanted_since
            .filter(|_| may_inspect)
            .map(|since| (is_dead, retry_at.map_or(since, |at| at.max(since))))
    }

    /// Whether a list filtered by the pod's uid shows every subject that it can have.
    pub(super) fn is_listable(&self, uid: &PodUid) -> bool {
        let mut subjects = self.records.of_pod(uid).peekable();
        subjects.peek().is_some() && subjects.all(|(_, subject)| subject.is_shown_by_filter())
    }

    /// Sends what the queue holds, as far as the cap allows.
    pub(super) fn send_queued(&mut self) {
        while self.may_read_a_pod() {
            let Some(uid) = self.next_in_queue() else {
                return;
            };
            if let Some(pod) = self.records.pods.get_mut(&uid) {
                pod.queued = None;
            }
            self.send_for(&uid);
            self.enqueue(&uid);
            self.records.index_wake(&uid, self.now.mono);
        }
    }

    /// Takes out of the queue whose turn it is.
    pub(super) fn next_in_queue(&mut self) -> Option<PodUid> {
        let first = self.queue.first()?;
        let first_dead = (true, SeqPoint::default());
        let kept_waiting = self
            .queue
            .range((first_dead, PodUid::from(""))..)
            .next()
            .filter(|((_, since), _)| {
                *since < first.0.1 && self.now.mono.since(since.at) >= PATIENCE
            });
        let next = kept_waiting.unwrap_or(first).clone();
        self.queue.remove(&next);
        Some(next.1)
    }

    fn pod_calls(&self) -> impl Iterator<Item = &InFlight> {
        self.calls
            .values()
            .filter(|call| matches!(call.call, Call::PodRelist | Call::Inspect))
    }

    fn may_read_a_pod(&self) -> bool {
        let cap = self.settings.parallel_inspections;
        let hanging = |call: &&InFlight| self.now.mono.since(call.begun.at) >= HANGING;
        self.pod_calls().filter(|call| !hanging(call)).count() < cap
            && self.pod_calls().count() < cap.saturating_mul(CAPS_OUT)
    }

    /// When a call begins to hang, and so makes room for those that wait.
    pub(super) fn next_room(&self) -> Option<Mono> {
        if self.queue.is_empty() {
            return None;
        }
        self.pod_calls()
            .map(|call| call.begun.at.after(HANGING))
            .filter(|at| *at > self.now.mono)
            .min()
    }
}

/// What a list shows. One that failed shows nothing, which is not that nothing is there.
fn shown_by(result: Result<NodeList, Failure>) -> Option<NodeList> {
    if Law::FailedReadsProveNothing.holds() {
        result.ok()
    } else {
        Some(result.unwrap_or_default())
    }
}

fn failure_of(answer: &Answer) -> Option<&Failure> {
    match answer {
        Answer::Version(result) => result.as_ref().err(),
        Answer::Listed(result) => result.as_ref().err(),
        Answer::Inspected(inspection) => {
            let sandboxes = inspection
                .sandboxes
                .iter()
                .map(|(_, result)| result.as_ref().err());
            let containers = inspection
                .containers
                .iter()
                .map(|(_, result)| result.as_ref().err());
            sandboxes
                .chain(containers)
                .flatten()
                .find(|failure| failure.kind != FailureKind::NotFound)
        }
    }
}

#[cfg(test)]
impl Failure {
    pub(crate) fn for_tests() -> Self {
        Self {
            kind: FailureKind::Unavailable,
            message: "connection refused".into(),
        }
    }
}
