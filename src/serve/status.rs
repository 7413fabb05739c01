//! What an operator sees at a glance: the mode and why, relists, misses, calls that hang, subscribers.
//!
//! Built on demand from what the driver answers and from what the [`Notebook`] saw pass. If the driver
//! does not answer within its deadline, that is what the status says; it never waits for longer, so
//! it can be read while everything else hangs. One shape for `pleg status`, HTTP and gRPC.

mod notebook;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

#[doc(hidden)]
pub use notebook::{Notebook, Noted};
pub use words::{Age, in_words};

use super::position::Epoch;
use super::ring::RingStats;
use crate::Stats;
use crate::engine::{
    Call, Health, HealthState, Mode, PendingCall, PollingReason, RuntimeVersion, SubjectEvent,
};
use crate::lifecycle::{EventKind, Mono, Now, PodUid, SubjectKind, UnixNanos};
use crate::stats::EngineStats;

/// The daemon's whole state, for people and for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The mode and its reason in one sentence.
    pub words: String,
    /// The health.
    pub health: HealthReport,
    /// How the runtime is followed.
    pub mode: ModeReport,
    /// The runtime, once it has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeVersion>,
    /// How long ago the last successful full relist began, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_relist_seconds_ago: Option<f64>,
    /// How long ago the last message of the present stream came, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_seconds_ago: Option<f64>,
    /// The call to the runtime that has been out longest, if one is out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_call: Option<PendingReport>,
    /// Pods in the cache.
    pub pods: usize,
    /// Full relists that were applied.
    pub relists: u64,
    /// Changes that the stream never told, by kind.
    pub misses: Vec<MissReport>,
    /// When the last of them was found that is no known gap of the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_missed_at: Option<UnixNanos>,
    /// Who watches this daemon, in the order in which they came.
    pub subscribers: Vec<SubscriberReport>,
    /// The ring that they read.
    pub ring: RingReport,
    /// Whether the driver answers.
    pub driver: DriverReport,
    /// The daemon's life.
    pub epoch: Epoch,
    /// When it began, by the clock as it is set now: `at` less its age, however the clock was stepped.
    pub started_at: UnixNanos,
    /// When this was put together.
    pub at: UnixNanos,
    /// The version of `pleg`.
    pub version: String,
}

/// Whether relists succeed often enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// They do.
    Healthy,
    /// They do not.
    Unhealthy,
    /// None has succeeded yet.
    NotYetRelisted,
    /// The driver does not answer, so nobody can tell.
    Unknown,
}

/// The health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HealthReport {
    /// The verdict.
    pub verdict: Verdict,
    /// The kubelet's words for it: `ok`, or `pleg was last seen active ...`.
    pub words: String,
}

/// How the runtime is followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModeReport {
    /// `Connecting`, `Evented` or `Polling`.
    pub name: String,
    /// Why it polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<PollingReason>,
    /// What brought the mode about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Since when.
    pub since: UnixNanos,
    /// The same in seconds, by the monotonic clock.
    pub since_seconds: f64,
    /// The time between two relists while events drive, as trust stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_period_seconds: Option<f64>,
    /// The time between two relists while polling.
    pub relist_period_seconds: f64,
    /// When the event stream is asked for again, if it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_in_seconds: Option<f64>,
}

/// A call that has no answer yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingReport {
    /// Which.
    pub call: Call,
    /// The pod, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<PodUid>,
    /// For how long.
    pub seconds: f64,
}

/// Changes of one kind that the stream never told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissReport {
    /// Of what.
    pub subject: SubjectKind,
    /// Which event did not come.
    pub event: EventKind,
    /// How often.
    pub count: u64,
    /// How many of those this runtime is known never to send.
    pub in_known_gap: u64,
}

/// A watcher of this daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriberReport {
    /// Its number, never used twice in one life of the daemon.
    pub id: u64,
    /// How it is connected: `grpc`, `http`.
    pub transport: String,
    /// Who it says it is; empty if it does not.
    pub client: String,
    /// Since when.
    pub since: UnixNanos,
    /// Events handed to it.
    pub delivered: u64,
    /// Events that wait for it; absent if it has fallen behind the ring and will be told to list again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<usize>,
}

/// The ring that watchers read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RingReport {
    /// Events that can be resumed from.
    pub events: usize,
    /// About how many bytes they take.
    pub bytes: usize,
    /// Times that everybody had to list again, because the feed had folded.
    pub gaps: u64,
}

impl From<RingStats> for RingReport {
    fn from(stats: RingStats) -> Self {
        Self {
            events: stats.events,
            bytes: stats.bytes,
            gaps: stats.gaps,
        }
    }
}

/// Whether the driver answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DriverReport {
    /// Whether it did within the deadline.
    pub answers: bool,
    /// How long ago it last did, in seconds; absent if it never has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_seconds_ago: Option<f64>,
}

/// What the driver answered, and when.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct DriverAnswer {
    /// The health.
    pub health: Health,
    /// All counts.
    pub stats: Stats,
    /// When.
    pub at: Mono,
}

/// Everything that a status is made of.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct Sources<'a> {
    /// The last answer of the driver, if it ever gave one.
    pub answer: Option<&'a DriverAnswer>,
    /// Whether that answer was given to this very question.
    pub answers_now: bool,
    /// The mode, which needs no driver to be read.
    pub mode: Mode,
    /// What passed.
    pub noted: &'a Noted,
    /// Who watches.
    pub subscribers: Vec<SubscriberReport>,
    /// The ring.
    pub ring: RingStats,
    /// Pods in the cache.
    pub pods: usize,
    /// The daemon's life.
    pub epoch: Epoch,
    /// When it began.
    pub started: Now,
    /// Now.
    pub now: Now,
}

impl Status {
    /// Puts a status together.
    #[must_use]
    pub fn new(sources: Sources<'_>) -> Self {
        let Sources {
            answer,
            answers_now,
            noted,
            now,
            ..
        } = sources;
        // What was answered a while ago has aged since.
        let aged = answer.map_or(0.0, |answer| now.mono.since(answer.at).as_secs_f64());
        let age = |of: fn(&Health) -> Option<std::time::Duration>| {
            let age = answer.and_then(|answer| of(&answer.health))?;
            Some(age.as_secs_f64() + aged)
        };
        let engine = answer.map(|answer| &answer.stats.engine);
        let pending = answer.and_then(|answer| answer.health.pending.as_ref());
        let mut status = Self {
            words: String::new(),
            health: health(answer, answers_now, aged),
            mode: mode(sources.mode, noted, sources.started, now),
            runtime: engine.and_then(|engine| engine.runtime.clone()),
            last_relist_seconds_ago: age(|health| health.last_relist_age),
            last_event_seconds_ago: age(|health| health.last_event_age),
            pending_call: pending.map(|pending| pending_report(pending, aged)),
            pods: sources.pods,
            relists: engine.map_or(0, |engine| engine.counters.relists),
            misses: engine.map(misses).unwrap_or_default(),
            last_missed_at: noted.last_missed.map(|missed| missed.wall),
            subscribers: sources.subscribers,
            ring: sources.ring.into(),
            driver: DriverReport {
                answers: answers_now,
                answered_seconds_ago: answer.map(|_| aged),
            },
            epoch: sources.epoch,
            started_at: by_todays_clock(sources.started, now),
            at: now.wall,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        status.words = in_words(&status, noted, sources.started, now);
        status
    }

    /// Whether the verdict is good; `None` if nobody can tell.
    #[must_use]
    pub fn is_healthy(&self) -> Option<bool> {
        match self.health.verdict {
            Verdict::Healthy => Some(true),
            Verdict::Unhealthy | Verdict::NotYetRelisted => Some(false),
            Verdict::Unknown => None,
        }
    }
}

fn by_todays_clock(moment: Now, now: Now) -> UnixNanos {
    let age = i64::try_from(now.mono.since(moment.mono).as_nanos()).unwrap_or(i64::MAX);
    UnixNanos(now.wall.0.saturating_sub(age))
}

fn health(answer: Option<&DriverAnswer>, answers_now: bool, aged: f64) -> HealthReport {
    match answer {
        Some(answer) if answers_now => HealthReport {
            verdict: match answer.health.state {
                HealthState::Healthy => Verdict::Healthy,
                HealthState::Unhealthy => Verdict::Unhealthy,
                HealthState::NotYetRelisted => Verdict::NotYetRelisted,
            },
            words: answer.health.to_string(),
        },
        Some(_) => HealthReport {
            verdict: Verdict::Unknown,
            words: format!("the driver has not answered for {}", Age(aged)),
        },
        None => HealthReport {
            verdict: Verdict::Unknown,
            words: "the driver has not answered yet".to_owned(),
        },
    }
}

fn mode(mode: Mode, noted: &Noted, started: Now, now: Now) -> ModeReport {
    let since = noted.mode_since.unwrap_or(started);
    let (name, reason, audit_period) = match mode {
        Mode::Connecting => ("Connecting", None, None),
        Mode::Evented { audit_period } => ("Evented", None, Some(audit_period)),
        Mode::Polling { reason } => ("Polling", Some(reason), None),
    };
    let next = noted.retry_at.filter(|_| reason.is_some());
    ModeReport {
        name: name.to_owned(),
        reason,
        cause: noted.cause.as_deref().map(ToOwned::to_owned),
        since: since.wall,
        since_seconds: now.mono.since(since.mono).as_secs_f64(),
        audit_period_seconds: audit_period.map(|period| period.as_secs_f64()),
        relist_period_seconds: noted.relist_period.as_secs_f64(),
        next_attempt_in_seconds: next.map(|at| at.since(now.mono).as_secs_f64()),
    }
}

fn pending_report(pending: &PendingCall, aged: f64) -> PendingReport {
    PendingReport {
        call: pending.call,
        uid: pending.uid.clone(),
        seconds: pending.age.as_secs_f64() + aged,
    }
}

fn misses(engine: &EngineStats) -> Vec<MissReport> {
    let known = |kind: &SubjectEvent| {
        let gaps = &engine.counters.missed_in_known_gaps;
        gaps.get(kind).copied().unwrap_or(0)
    };
    let counted = engine.counters.missed.iter();
    counted
        .map(|(kind, count)| MissReport {
            subject: kind.0,
            event: kind.1,
            count: *count,
            in_known_gap: known(kind),
        })
        .collect()
}
