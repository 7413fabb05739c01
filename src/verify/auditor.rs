//! The auditor: what it is told, what it remembers, and in which order it judges.
//!
//! It owns the trails and the counts. What lists and statuses prove is [`super::evidence`]'s, what one
//! message says is [`super::message`]'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::habits::Habits;
use super::latency::Times;
use super::message::{self, Own};
use super::report::Report;
use super::tally::Tallies;
use super::trail::{Trail, phase_of};
use super::{KINDS, LATE};
use crate::engine::{
    ClockGuard, Failure, Inspection, RuntimeVersion, SHORT_ENDS, STREAM_MINIMUM_LIFE, StreamEnd,
};
use crate::lifecycle::{
    ContainerId, EventKind, Knowledge, Mono, NodeList, Now, Refusal, ReportedState, RuntimeEvent,
    SeqPoint, SubjectId, UnixNanos,
};

/// Subjects remembered at most; a node has a few thousand. Past it new ones are not judged.
const MOST_SUBJECTS: usize = 200_000;

/// What the auditor is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// The stream is being asked for, now.
    StreamAsked,
    /// A message of the stream.
    Message(RuntimeEvent),
    /// Bytes of the stream that are no message.
    Garbage(Refusal),
    /// The caller itself dropped messages.
    Overflow {
        /// How many.
        dropped: u64,
    },
    /// The stream ended.
    StreamEnded(StreamEnd),
    /// The two lists are being asked for, now.
    ListAsked,
    /// Their answer.
    Listed(Result<NodeList, Failure>),
    /// The answers to [`Auditor::wanted`].
    Inspected(Inspection),
}

/// The open stream, and what became of those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) asked: Option<Now>,
    /// Since when it brings everything, as far as it is ours to know: a list must begin after this.
    pub(super) whole_since: SeqPoint,
    has_told: bool,
    short_ends: u8,
    pub(super) breaks: u64,
    pub(super) last_end: Option<Arc<str>>,
    pub(super) no_events: bool,
}

/// What is counted besides the tallies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) messages: u64,
    pub(super) lists: u64,
    pub(super) garbage: u64,
    pub(super) unnamed: u64,
    pub(super) unknown_types: u64,
    pub(super) backlog: u64,
    pub(super) oldest_backlog: std::time::Duration,
    pub(super) dropped: u64,
    pub(super) unjudged: u64,
}

/// Audits one runtime.
#[derive(Clone, Debug)]
pub struct Auditor {
    pub(super) version: RuntimeVersion,
    pub(super) habits: Habits,
    pub(super) began: Now,
    pub(super) now: Now,
    count: u64,
    /// The smallest and the largest wall-minus-monotonic offset.
    pub(super) offsets: Option<(i64, i64)>,
    pub(super) stream: Stream,
    pub(super) list_asked: Option<(SeqPoint, Now)>,
    pub(super) list_failure: Option<Failure>,
    /// When the list began from which on things are judged.
    pub(super) covered: Option<Now>,
    /// Subjects that the first list had and nobody could read.
    pub(super) unreadable: BTreeSet<Arc<str>>,
    pub(super) trails: BTreeMap<SubjectId, Trail>,
    pub(super) wanted: BTreeSet<ContainerId>,
    pub(super) tallies: Tallies,
    pub(super) counts: Counts,
    pub(super) from_stamp: Times,
    /// From created, started and finished to the receipt.
    pub(super) from_change: [Times; 3],
}

impl Auditor {
    /// An audit of the runtime that answered so.
    #[must_use]
    pub fn new(version: RuntimeVersion, now: Now) -> Self {
        Self {
            habits: Habits::of(&version),
            version,
            began: now,
            now,
            count: 0,
            offsets: None,
            stream: Stream::default(),
            list_asked: None,
            list_failure: None,
            covered: None,
            unreadable: BTreeSet::new(),
            trails: BTreeMap::new(),
            wanted: BTreeSet::new(),
            tallies: Tallies::default(),
            counts: Counts::default(),
            from_stamp: Times::default(),
            from_change: <[Times; 3]>::default(),
        }
    }

    /// Takes what happened.
    pub fn take(&mut self, now: Now, input: Input) {
        let at = self.point(now);
        match input {
            Input::StreamAsked => {
                self.stream.asked = Some(now);
                self.stream.whole_since = at;
                self.stream.has_told = false;
            }
            Input::Message(event) => self.message(&event, at),
            Input::Garbage(_) => {
                self.stream.has_told = true;
                self.counts.messages += 1;
                self.counts.garbage += 1;
            }
            Input::Overflow { dropped } => {
                self.counts.dropped += dropped;
                self.begin_anew(at);
            }
            Input::StreamEnded(end) => self.stream_ended(&end, at),
            Input::ListAsked => self.list_asked = Some((at, now)),
            Input::Listed(answer) => self.listed(answer, at),
            Input::Inspected(inspection) => self.inspected(inspection, at.at),
        }
    }

    /// Containers whose status would tell whether they ever ran: asked for with the next list at the
    /// latest.
    #[must_use]
    pub fn wanted(&self) -> Vec<ContainerId> {
        self.wanted.iter().cloned().collect()
    }

    /// Whether the runtime has said that it has no events, so that there is nothing to wait for.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.stream.no_events
    }

    /// How many streams ended at once, in a row: what the next try should wait by.
    #[must_use]
    pub fn short_ends(&self) -> usize {
        self.stream.short_ends.into()
    }

    /// Whether a message may still come that would be missed otherwise.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let owed = |(id, trail): (&SubjectId, &Trail)| {
            KINDS
                .into_iter()
                .any(|kind| trail.is_owed(kind) && !self.habits.never_sends(id.kind(), kind, trail))
        };
        self.stream.asked.is_some() && self.trails.iter().any(owed)
    }

    /// Ends the audit and says what it found.
    #[must_use]
    pub fn report(mut self, now: Now) -> Report {
        self.point(now);
        self.settle_all();
        Report::of(self)
    }

    fn point(&mut self, now: Now) -> SeqPoint {
        let mono = self.now.mono.max(now.mono);
        self.now = Now { mono, ..now };
        self.count += 1;
        let offset = now.wall.0.saturating_sub(signed(mono));
        let (least, most) = self.offsets.unwrap_or((offset, offset));
        self.offsets = Some((least.min(offset), most.max(offset)));
        SeqPoint {
            at: mono,
            count: self.count,
        }
    }

    /// What a moment of the past would be by today's wall clock: steps of it in between do not count.
    pub(super) fn by_todays_clock(&self, then: Now) -> UnixNanos {
        let since = self.now.mono.since(then.mono);
        let nanos = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        UnixNanos(self.now.wall.0.saturating_sub(nanos))
    }

    fn message(&mut self, event: &RuntimeEvent, at: SeqPoint) {
        self.counts.messages += 1;
        self.stream.has_told = true;
        self.stream.short_ends = 0;
        let stamp = ClockGuard::usable(event.stamp, self.now);
        if let (Some(stamp), Some(asked)) = (stamp, self.stream.asked) {
            let asked = self.by_todays_clock(asked);
            if stamp < asked {
                self.counts.backlog += 1;
                let age = u64::try_from(asked.0 - stamp.0).unwrap_or(0);
                let age = std::time::Duration::from_nanos(age);
                self.counts.oldest_backlog = self.counts.oldest_backlog.max(age);
                return;
            }
        }
        let known = |id: &str| {
            let sandbox = SubjectId::Sandbox(id.into());
            let container = SubjectId::Container(id.into());
            [sandbox, container]
                .into_iter()
                .find(|id| self.trails.contains_key(id))
        };
        let Some((id, own)) = message::subject_of(event, known) else {
            self.counts.unnamed += 1;
            return;
        };
        if matches!(event.kind, EventKind::Other(_)) {
            self.counts.unknown_types += 1;
            return;
        }
        self.judge(&id, own, event, stamp, at);
    }

    fn judge(
        &mut self,
        id: &SubjectId,
        own: Own<'_>,
        event: &RuntimeEvent,
        stamp: Option<UnixNanos>,
        at: SeqPoint,
    ) {
        let kind = event.kind;
        let contradictory = message::contradicts(kind, id.kind(), own);
        let lacks_snapshot = message::lacks_snapshot(event, id.kind(), own, self.habits);
        let tally = self.tallies.of((id.kind(), kind));
        tally.absurd_stamp += u64::from(stamp.is_none());
        tally.contradictory += u64::from(contradictory);
        tally.without_snapshot += u64::from(lacks_snapshot);

        let is_new = !self.trails.contains_key(id);
        if is_new && (kind == EventKind::Deleted || self.trails.len() >= MOST_SUBJECTS) {
            // Nothing is known of it, so nothing can be judged.
            tally.delivered += 1;
            return;
        }
        let said = ReportedState::Created;
        let trail = self
            .trails
            .entry(id.clone())
            .or_insert_with(|| Trail::new(Knowledge::from_event(said, at)));
        if trail.heard_at(kind).is_some() {
            tally.repeated += 1;
            return;
        }
        tally.delivered += 1;
        tally.out_of_order += u64::from(trail.is_behind(kind));
        let proven_long_ago = trail
            .proven_at(kind)
            .is_some_and(|proven| at.at.since(proven) > LATE);
        let stamped_long_ago = stamp.is_some_and(|stamp| {
            self.now.wall.0.saturating_sub(stamp.0) > i64::try_from(LATE.as_nanos()).unwrap_or(0)
        });
        tally.late += u64::from(proven_long_ago || stamped_long_ago);
        trail.hear(kind, at.at);
        if let (Own::Container(_), Some(sandbox)) = (own, &event.sandbox) {
            trail.sandbox = Some(sandbox.id.clone());
        }
        if contradictory {
            return;
        }
        trail.knowledge.hear_event(phase_of(kind), at);
        if let Some(stamp) = stamp {
            self.measure(own, kind, stamp);
            self.learn_from_message(id, own, kind, is_new, at.at);
        }
    }

    fn measure(&mut self, own: Own<'_>, kind: EventKind, stamp: UnixNanos) {
        self.from_stamp.add(stamp, self.now.wall);
        let Own::Container(status) = own else { return };
        let [created, started, finished] = &mut self.from_change;
        let (times, changed) = match kind {
            EventKind::Created => (created, status.created_at),
            EventKind::Started => (started, status.started_at),
            EventKind::Stopped => (finished, status.finished_at),
            EventKind::Deleted | EventKind::Other(_) => return,
        };
        if let Some(changed) = changed {
            times.add(changed, self.now.wall);
        }
    }

    fn stream_ended(&mut self, end: &StreamEnd, at: SeqPoint) {
        let Some(asked) = self.stream.asked.take() else {
            return;
        };
        let lived = self.now.mono.since(asked.mono) >= STREAM_MINIMUM_LIFE || self.stream.has_told;
        self.stream.last_end = match end {
            StreamEnd::Unimplemented => None,
            StreamEnd::Clean => Some("the runtime ended it without an error".into()),
            StreamEnd::Broken(failure) => Some(failure.message.clone()),
        };
        if lived {
            self.stream.breaks += 1;
            self.stream.short_ends = 0;
        } else {
            self.stream.short_ends = self.stream.short_ends.saturating_add(1);
        }
        let never_one = *end == StreamEnd::Clean && self.stream.short_ends >= SHORT_ENDS;
        self.stream.no_events |= *end == StreamEnd::Unimplemented || never_one;
        self.begin_anew(at);
    }

    /// What was told is broken off: what is proven so far is booked, and the next list is the first.
    fn begin_anew(&mut self, at: SeqPoint) {
        self.settle_all();
        self.covered = None;
        self.unreadable.clear();
        self.wanted.clear();
        self.stream.whole_since = at;
    }

    fn settle_all(&mut self) {
        for (id, trail) in std::mem::take(&mut self.trails) {
            self.settle(&id, &trail);
        }
    }

    /// Books what became of each change that is certain to have happened.
    pub(super) fn settle(&mut self, id: &SubjectId, trail: &Trail) {
        for kind in KINDS {
            let Some(proven) = trail.proven_at(kind) else {
                continue;
            };
            let tally = self.tallies.of((id.kind(), kind));
            if trail.heard_at(kind).is_some() {
                tally.proven += 1;
            } else if self.now.mono.since(proven) < LATE {
                // It may have been on its way.
                self.counts.unjudged += 1;
            } else {
                tally.proven += 1;
                if self.habits.never_sends(id.kind(), kind, trail) {
                    tally.not_sent += 1;
                } else {
                    tally.missing += 1;
                }
            }
        }
    }
}

fn signed(moment: Mono) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}
