//! What the counts mean, in plain words, and what to do about it: one line each.

use serde::Serialize;

use super::Auditor;
use super::report::Verdict;
use super::tally::{Tallies, Tally};
use crate::engine::STAMP_TOLERANCE;
use crate::lifecycle::{EventKind, SubjectKind};

/// What kind of thing was found. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum FindingKind {
    /// The runtime has no events, or has them switched off.
    NoEvents,
    /// No list was answered, so nothing could be compared.
    ListsFailed,
    /// No stream held long enough to be compared with a list.
    NoStream,
    /// Nothing happened that could be judged.
    NothingHappened,
    /// The losses look like another client's share of a common queue.
    SecondConsumer,
    /// Changes that the stream never told.
    Missing,
    /// The stream broke.
    StreamBroke,
    /// Changes told long after lists showed them, or after their own stamps.
    Late,
    /// Changes told more than once.
    Repeated,
    /// Changes told after later ones of the same life.
    OutOfOrder,
    /// Messages whose snapshot denies what they say.
    Contradictory,
    /// Messages that lack a snapshot which this runtime usually gives.
    WithoutSnapshot,
    /// Stamps that no sane runtime makes.
    AbsurdStamps,
    /// Messages whose bytes are none, or that name nobody.
    Unreadable,
    /// Event types that CRI v1 does not have.
    UnknownTypes,
    /// Messages older than the stream.
    Backlog,
    /// Changes that this runtime never tells.
    KnownGap,
    /// The auditor itself dropped messages.
    Dropped,
    /// The wall clock stepped, so that stamps and latencies mean little.
    ClockStepped,
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// What.
    #[serde(rename = "finding")]
    pub kind: FindingKind,
    /// How often; 1 for what is so or is not.
    pub count: u64,
    /// What it is and what to do, in one line.
    pub advice: String,
}

/// Losses below this share are no other client's: the fairest share of two is a half.
const SHARE_OF_A_THIEF: u64 = 5;
/// Losses fewer than this are no pattern.
const LOSSES_OF_A_THIEF: u64 = 3;
/// A thief does not choose: losses of fewer kinds have another cause.
const KINDS_OF_A_THIEF: usize = 3;

/// All findings, gravest first.
pub(super) fn all(auditor: &Auditor, verdict: Verdict) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut find = |kind, count: u64, advice: &dyn Fn() -> String| {
        if count > 0 {
            found.push(Finding {
                kind,
                count,
                advice: advice(),
            });
        }
    };
    if verdict == Verdict::CannotTell {
        let (kind, advice) = why_not(auditor);
        find(kind, 1, &|| advice.clone());
    }
    let tallies = &auditor.tallies;
    let missing = tallies.sum(|tally| tally.missing);
    let thief = steals(auditor);
    if thief {
        find(FindingKind::SecondConsumer, missing, &|| {
            format!(
                "a second client takes events from this runtime: {missing} of {} changes, of \
                 several kinds, never came here, and the stream did not break; stop the other client (a kubelet \
                 with the gate EventedPLEG, another pleg, crictl events), or let one pleg serve both",
                tallies.sum(|tally| tally.proven)
            )
        });
    } else {
        find(FindingKind::Missing, missing, &|| {
            missing_advice(auditor, &named(tallies, |tally| tally.missing))
        });
    }
    let stream = &auditor.stream;
    find(FindingKind::StreamBroke, stream.breaks, &|| {
        let how = stream.last_end.as_deref().unwrap_or("no reason given");
        format!(
            "the stream broke {} (last: {how}); what happens between a break and the next stream is \
             told by nobody, so look why the runtime ended it",
            times(stream.breaks)
        )
    });
    for (kind, count, advice) in OF_MESSAGES {
        let sum = tallies.sum(*count);
        find(*kind, sum, &|| {
            format!("{}: {advice}", named(tallies, *count))
        });
    }
    of_the_stream(auditor, &mut find);
    found
}

/// Takes a finding, how often it was made, and what makes its advice if it was.
type Find<'a> = dyn FnMut(FindingKind, u64, &dyn Fn() -> String) + 'a;

type OfMessages = (FindingKind, fn(&Tally) -> u64, &'static str);

/// What single messages can be blamed for.
const OF_MESSAGES: &[OfMessages] = &[
    (
        FindingKind::Late,
        |tally| tally.late,
        "told more than 2 s late; the node's disks or the runtime are overloaded, and who acts on \
         events alone acts late",
    ),
    (
        FindingKind::Repeated,
        |tally| tally.repeated,
        "told again; who counts events counts these twice, who keeps states does not notice",
    ),
    (
        FindingKind::OutOfOrder,
        |tally| tally.out_of_order,
        "told after a later event of the same life; who takes the last event for the present state \
         brings the dead back",
    ),
    (
        FindingKind::Contradictory,
        |tally| tally.contradictory,
        "the message's own snapshot denies it; believe neither, ask for the status",
    ),
    (
        FindingKind::WithoutSnapshot,
        |tally| tally.without_snapshot,
        "the message lacks the status of its sandbox or of its container; ask for the status",
    ),
    (
        FindingKind::AbsurdStamps,
        |tally| tally.absurd_stamp,
        "the stamp is zero, in the future or not in nanoseconds; order nothing by stamps",
    ),
];

fn of_the_stream(auditor: &Auditor, find: &mut Find<'_>) {
    let counts = &auditor.counts;
    find(
        FindingKind::Unreadable,
        counts.garbage + counts.unnamed,
        &|| {
            format!(
                "{} no CRI messages or named nobody that is known; report them to the runtime's makers",
                verb(counts.garbage + counts.unnamed)
            )
        },
    );
    find(FindingKind::UnknownTypes, counts.unknown_types, &|| {
        format!(
            "{} of a type that CRI v1 does not have; a newer pleg may know it",
            verb(counts.unknown_types)
        )
    });
    find(FindingKind::Backlog, counts.backlog, &|| {
        format!(
            "{} older than this stream, by {:.1} s at most; the runtime kept them while nobody \
             listened, and their snapshots show that time, not now",
            verb(counts.backlog),
            counts.oldest_backlog.as_secs_f64()
        )
    });
    let tallies = &auditor.tallies;
    let not_sent = tallies.sum(|tally| tally.not_sent);
    find(FindingKind::KnownGap, not_sent, &|| {
        format!(
            "{}: never told by this runtime, no failure; only lists show these",
            named(tallies, |tally| tally.not_sent)
        )
    });
    find(FindingKind::Dropped, counts.dropped, &|| {
        format!(
            "pleg itself dropped {} messages, because it could not keep up; nothing around that moment \
             is judged, so run it with more processor time",
            counts.dropped
        )
    });
    let stepped = auditor.offsets.is_some_and(|(least, most)| {
        most.saturating_sub(least) > i64::try_from(STAMP_TOLERANCE.as_nanos()).unwrap_or(i64::MAX)
    });
    find(FindingKind::ClockStepped, u64::from(stepped), &|| {
        "the wall clock stepped during the audit; latencies, lateness and stamps mean little, run it \
         again"
            .to_owned()
    });
}

/// Why there is no verdict.
fn why_not(auditor: &Auditor) -> (FindingKind, String) {
    let stream = &auditor.stream;
    if stream.no_events {
        let advice = auditor.habits.event_switch().map_or_else(
            || "upgrade it (containerd has events from 1.7 on), or poll".to_owned(),
            |switch| format!("switch them on with {switch}, and restart it"),
        );
        return (
            FindingKind::NoEvents,
            format!(
                "{} {} has no events to audit; {advice}",
                auditor.version.name, auditor.version.version
            ),
        );
    }
    if auditor.counts.lists == 0 {
        let why = auditor.list_failure.as_ref();
        let why = why.map_or("none was answered in time", |failure| &failure.message);
        return (
            FindingKind::ListsFailed,
            format!("there is no list to compare the events with: {why}"),
        );
    }
    if auditor.covered.is_none() {
        let how = stream.last_end.as_deref();
        let how = how.unwrap_or("the audit was too short; give it 10 s at least (--for 10s)");
        return (
            FindingKind::NoStream,
            format!("no event stream was open long enough to be compared with a list: {how}"),
        );
    }
    (
        FindingKind::NothingHappened,
        "nothing happened that could be judged: no sandbox or container surely began, ended or went \
         away; run it while pods come and go, or for longer (--for 10m)"
            .to_owned(),
    )
}

/// Whether the losses are spread as another client of one queue would have them.
fn steals(auditor: &Auditor) -> bool {
    let missing = auditor.tallies.sum(|tally| tally.missing);
    let proven = auditor.tallies.sum(|tally| tally.proven);
    let kinds = auditor
        .tallies
        .iter()
        .filter(|(_, tally)| tally.missing > 0);
    auditor.habits.one_queue_for_all()
        && auditor.stream.breaks == 0
        && auditor.tallies.sum(|tally| tally.delivered) > 0
        && missing >= LOSSES_OF_A_THIEF
        && missing.saturating_mul(SHARE_OF_A_THIEF) >= proven
        && kinds.count() >= KINDS_OF_A_THIEF
}

fn missing_advice(auditor: &Auditor, what: &str) -> String {
    let cause = if auditor.habits.one_queue_for_all() {
        "on this runtime each event client that went away takes one more event with it, so run this \
         again; if they stay missing, look for a second client"
    } else if auditor.tallies.sum(|tally| tally.delivered) == 0 {
        "the stream is open and says nothing at all; restart the runtime, and poll until then"
    } else {
        "the runtime drops events, so whoever follows them must list often; look in its log for full \
         queues"
    };
    format!("{what}: lists prove it, the stream never told it; {cause}")
}

/// "3 STARTED of containers, 1 DELETED of sandboxes".
fn named(tallies: &Tallies, count: impl Fn(&Tally) -> u64) -> String {
    let counted: Vec<String> = tallies
        .iter()
        .filter(|(_, tally)| count(tally) > 0)
        .map(|((subject, event), tally)| format!("{} {}", count(tally), event_name(subject, event)))
        .collect();
    counted.join(", ")
}

fn event_name(subject: SubjectKind, event: EventKind) -> String {
    let event = match event {
        EventKind::Created => "CREATED",
        EventKind::Started => "STARTED",
        EventKind::Stopped => "STOPPED",
        EventKind::Deleted => "DELETED",
        EventKind::Other(_) => "OTHER",
    };
    let subjects = match subject {
        SubjectKind::Sandbox => "sandboxes",
        SubjectKind::Container => "containers",
    };
    format!("{event} of {subjects}")
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    }
}

fn verb(messages: u64) -> String {
    match messages {
        1 => "1 message was".to_owned(),
        _ => format!("{messages} messages were"),
    }
}
