//! The result of an audit: a verdict, the counts, the latencies, and what they mean.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::Auditor;
use super::findings::{self, Finding, FindingKind};
use super::latency::Latencies;
use super::tally::{Tallies, Tally};
use crate::engine::{MISSES_OF_A_GAP, RuntimeVersion, SubjectEvent};
use crate::lifecycle::{EventKind, SubjectKind};

/// What the audit comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Whatever is certain to have happened was told, but for what this runtime never tells.
    Passed,
    /// Something that this runtime usually tells was lost.
    Lost,
    /// There was nothing to judge by; the first finding says why.
    CannotTell,
}

/// One row of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventRow {
    /// Of what.
    pub subject: SubjectKind,
    /// Which event.
    pub event: EventKind,
    /// Its counts.
    #[serde(flatten)]
    pub tally: Tally,
}

/// The report of an audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// Which runtime.
    pub runtime: RuntimeVersion,
    /// How long the audit took. Serialised in seconds.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub lasted: Duration,
    /// Lists that were answered.
    pub lists: u64,
    /// Messages of the stream, of every kind.
    pub messages: u64,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was found, gravest first; each with one line of advice.
    pub findings: Vec<Finding>,
    /// The counts, in the order of a life, of sandboxes first; only of what was told or proven.
    pub events: Vec<EventRow>,
    /// How long news took.
    pub latency_ms: Latencies,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Report {
    /// Whether this was found.
    #[must_use]
    pub fn finds(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    /// The counts of one event of one kind of subject; all zero if nothing of it was told or proven.
    #[must_use]
    pub fn tally(&self, subject: SubjectKind, event: EventKind) -> Tally {
        self.events
            .iter()
            .find(|row| (row.subject, row.event) == (subject, event))
            .map(|row| row.tally)
            .unwrap_or_default()
    }

    /// Made of an auditor that has settled everything.
    pub(super) fn of(mut auditor: Auditor) -> Self {
        if auditor.habits.is_unknown() {
            excuse_what_is_never_sent(&mut auditor.tallies);
        }
        let judged = auditor.tallies.sum(|tally| tally.proven - tally.not_sent);
        let verdict = if auditor.tallies.sum(|tally| tally.missing) > 0 {
            Verdict::Lost
        } else if auditor.stream.no_events || judged == 0 {
            Verdict::CannotTell
        } else {
            Verdict::Passed
        };
        let [from_created, from_started, from_finished] = auditor
            .from_change
            .each_ref()
            .map(super::latency::Times::percentiles);
        Self {
            lasted: auditor.now.mono.since(auditor.began.mono),
            lists: auditor.counts.lists,
            messages: auditor.counts.messages,
            verdict,
            findings: findings::all(&auditor, verdict),
            events: rows(&auditor.tallies),
            latency_ms: Latencies {
                from_stamp: auditor.from_stamp.percentiles(),
                from_created,
                from_started,
                from_finished,
            },
            runtime: auditor.version,
        }
    }
}

fn rows(tallies: &Tallies) -> Vec<EventRow> {
    let row = |((subject, event), tally): (SubjectEvent, &Tally)| EventRow {
        subject,
        event,
        tally: *tally,
    };
    tallies.iter().map(row).collect()
}

/// A runtime of which nothing is known has a gap where it told nothing of one kind, again and again,
/// and told others of the same subjects.
fn excuse_what_is_never_sent(tallies: &mut Tallies) {
    let tells_of = [SubjectKind::Sandbox, SubjectKind::Container].map(|subject| {
        tallies
            .iter()
            .any(|((of, _), tally)| of == subject && tally.delivered > 0)
    });
    for ((subject, _), tally) in tallies.iter_mut() {
        let [of_sandboxes, of_containers] = tells_of;
        let tells_others = match subject {
            SubjectKind::Sandbox => of_sandboxes,
            SubjectKind::Container => of_containers,
        };
        if tells_others && tally.delivered == 0 && tally.missing >= MISSES_OF_A_GAP {
            tally.not_sent += std::mem::take(&mut tally.missing);
        }
    }
}
