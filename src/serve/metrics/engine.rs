//! The families of what is followed: mode, health, relists, the event stream, misses, the feed.

use std::fmt;
use std::fmt::Debug;
use std::time::Duration;

use super::families::{BYTES, Families, SECONDS};
use super::{Figures, Followed, PodFigures};
use crate::engine::{Call, Counters, Mode, PollingReason};
use crate::feed::SubscriberCounters;
use crate::lifecycle::{EventKind, SubjectKind, UnixNanos};
use crate::{Durations, Stats};

/// Everything that is known without the driver.
pub(super) fn known(families: &mut Families<'_>, figures: &Figures) -> fmt::Result {
    families.info(
        "build",
        "The build that runs.",
        Some([("version", env!("CARGO_PKG_VERSION"))]),
    )?;
    mode(families, figures.mode)?;
    families.gauge(
        "driver_responsive",
        "Whether the driver answered this scrape in time. If not, most other figures are missing.",
        usize::from(figures.followed.is_some()),
    )?;
    pods(families, &figures.pods)
}

fn mode(families: &mut Families<'_>, mode: Mode) -> fmt::Result {
    let polling = PollingReason::ALL.map(|reason| Mode::Polling { reason });
    let evented = Mode::Evented {
        audit_period: Duration::ZERO,
    };
    let all = [Mode::Connecting, evented].into_iter().chain(polling);
    families.gauges(
        "mode",
        "How the runtime is followed: 1 for the present mode, 0 for the others.",
        all.map(|shown| {
            let labels = [("mode", shown.name().to_owned()), ("reason", reason(shown))];
            let is_present = shown.name() == mode.name() && reason(shown) == reason(mode);
            (labels, usize::from(is_present))
        }),
    )?;
    let audit_period = match mode {
        Mode::Evented { audit_period } => Some(audit_period.as_secs_f64()),
        Mode::Connecting | Mode::Polling { .. } => None,
    };
    families.measured(
        (
            "audit_period",
            SECONDS,
            "The time between two relists that trust in the event stream has earned. Evented only.",
        ),
        audit_period,
    )
}

/// The label for why a node polls; empty, which is no label at all, if it does not.
fn reason(mode: Mode) -> String {
    match mode {
        Mode::Polling { reason } => reason.to_string(),
        Mode::Connecting | Mode::Evented { .. } => String::new(),
    }
}

fn pods(families: &mut Families<'_>, pods: &PodFigures) -> fmt::Result {
    families.gauge("pods", "Pods in the cache.", pods.all)?;
    families.gauge(
        "running_pods",
        "Pods with a ready sandbox (kubelet_running_pods).",
        pods.running,
    )?;
    families.gauge(
        "pods_with_stale_details",
        "Pods whose last inspection failed.",
        pods.with_errors,
    )?;
    families.gauges(
        "containers",
        "Containers by state (kubelet_running_containers).",
        pods.containers.iter().map(|(state, count)| {
            let labels = [("container_state", state.to_string().to_lowercase())];
            (labels, *count)
        }),
    )
}

/// Everything that the driver told.
pub(super) fn followed(
    families: &mut Families<'_>,
    now: UnixNanos,
    Followed { stats, health }: &Followed,
) -> fmt::Result {
    let past = |age: Option<Duration>| age.map(|age| seconds_since_1970(now) - age.as_secs_f64());
    families.gauge(
        "healthy",
        "Whether the last successful full relist is recent enough, in the kubelet's sense.",
        usize::from(health.is_healthy()),
    )?;
    families.measured(
        (
            "health_threshold",
            SECONDS,
            "How old the last successful full relist may be.",
        ),
        Some(health.threshold.as_secs_f64()),
    )?;
    families.measured(
        (
            "last_seen_timestamp",
            SECONDS,
            "When the last successful full relist began (kubelet_pleg_last_seen_seconds).",
        ),
        past(health.last_relist_age),
    )?;
    families.measured(
        (
            "stream_last_event_timestamp",
            SECONDS,
            "When the last message of the present event stream came.",
        ),
        past(health.last_event_age),
    )?;
    families.measured(
        (
            "stream_opened_timestamp",
            SECONDS,
            "When the present event stream was asked for.",
        ),
        past(health.stream_age),
    )?;
    families.info(
        "runtime",
        "The runtime, as it last answered Version.",
        stats.engine.runtime.as_ref().map(|runtime| {
            [
                ("name", runtime.name.to_string()),
                ("version", runtime.version.to_string()),
                ("api_version", runtime.api_version.to_string()),
            ]
        }),
    )?;
    families.counters(
        "mode_transitions",
        "Changes of mode. The reason is why the node polls, or polled.",
        stats
            .measures
            .mode_steps
            .iter()
            .map(|((from, to, reason), n)| {
                let reason = reason.map(|reason| reason.to_string()).unwrap_or_default();
                let labels = [
                    ("from", (*from).to_owned()),
                    ("to", (*to).to_owned()),
                    ("reason", reason),
                ];
                (labels, *n)
            }),
    )?;
    calls(families, stats)?;
    stream(families, stats)?;
    beliefs(families, stats)?;
    feed(families, stats)
}

fn calls(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
    let measures = &stats.measures;
    let none = Durations::default();
    let took = |call| measures.calls.get(&call).unwrap_or(&none);
    for (name, help, durations) in [
        (
            "relist_duration",
            "How long the two lists of a full relist took, failed ones included.",
            took(Call::FullRelist),
        ),
        (
            "relist_interval",
            "From the beginning of the last full relist that succeeded to that of the next.",
            &measures.relist_intervals,
        ),
        (
            "pod_relist_duration",
            "How long the two lists of a relist of one pod took, failed ones included.",
            took(Call::PodRelist),
        ),
        (
            "inspection_duration",
            "How long the status reads of one pod took together, failed ones included.",
            took(Call::Inspect),
        ),
        (
            "heartbeat_duration",
            "How long the runtime took to answer Version, failures included.",
            took(Call::Version),
        ),
        (
            "event_age",
            "How old stream messages were when taken, by the runtime's stamp.",
            &measures.event_ages,
        ),
    ] {
        families.durations(name, help, durations)?;
    }
    let out = |call| measures.in_flight.get(&call).copied().unwrap_or_default();
    families.measured(
        (
            "relist_in_flight",
            SECONDS,
            "How long the full relist that has no answer yet has been out; 0 if none is.",
        ),
        Some(out(Call::FullRelist).oldest.as_secs_f64()),
    )?;
    let oldest = measures.in_flight.values().map(|out| out.oldest).max();
    families.measured(
        (
            "oldest_call",
            SECONDS,
            "How long the oldest call that has no answer yet has been out; 0 if none is.",
        ),
        Some(oldest.unwrap_or_default().as_secs_f64()),
    )?;
    let every = [
        Call::Version,
        Call::FullRelist,
        Call::PodRelist,
        Call::Inspect,
    ];
    families.gauges(
        "calls_in_flight",
        "Questions that have no answer yet.",
        every.map(|call| ([("call", name(&call))], out(call).count)),
    )?;
    let Counters { asked, failed, .. } = &stats.engine.counters;
    families.counters(
        "calls",
        "Questions put to the runtime: heartbeats, relists of the node and of one pod, inspections.",
        every.map(|call| {
            let labels = [("call", name(&call))];
            (labels, asked.get(&call).copied().unwrap_or_default())
        }),
    )?;
    families.counters(
        "call_failures",
        "Questions that failed, by kind of failure.",
        failed.iter().map(|((call, kind), count)| {
            let labels = [("call", name(call)), ("kind", name(kind))];
            (labels, *count)
        }),
    )?;
    families.counters(
        "rpcs",
        "CRI calls that have ended, by method and gRPC code. The event stream is counted apart.",
        stats
            .rpcs
            .iter()
            .map(|((method, code), count)| ([("method", *method), ("code", *code)], *count)),
    )
}

fn stream(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
    let Counters {
        messages,
        ignored,
        streams_opened,
        streams_ended,
        ..
    } = &stats.engine.counters;
    families.counter(
        "streams_opened",
        "Event streams asked for.",
        *streams_opened,
    )?;
    families.counter("streams_ended", "Event streams that ended.", *streams_ended)?;
    families.counters(
        "stream_messages",
        "Messages of the event stream that were taken, by type.",
        messages
            .iter()
            .map(|(kind, count)| ([("type", event(*kind))], *count)),
    )?;
    families.counters(
        "stream_messages_ignored",
        "Messages or parts of them that changed nothing.",
        ignored
            .iter()
            .map(|(why, count)| ([("reason", name(why))], *count)),
    )?;
    let reader = &stats.reader;
    families.counter(
        "stream_garbage",
        "Messages whose bytes were none of CRI.",
        reader.garbage,
    )?;
    families.counter(
        "inbox_dropped",
        "Messages dropped because the inbox was full; a relist makes them good.",
        reader.dropped,
    )?;
    families.counter(
        "inbox_overflows",
        "How often dropping began.",
        reader.overflows,
    )?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "an inbox is far below 2^52 bytes"
    )]
    let most = reader.most_bytes as f64;
    families.measured(
        ("inbox_most", BYTES, "The most that the inbox ever held."),
        Some(most),
    )
}

fn beliefs(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
    let engine = &stats.engine;
    let counters = &engine.counters;
    let missed = |known_gap: bool| {
        let kinds = [SubjectKind::Sandbox, SubjectKind::Container]
            .into_iter()
            .flat_map(|subject| KINDS.map(|kind| (subject, kind)));
        kinds.map(move |kind| {
            let all = counters.missed.get(&kind).copied().unwrap_or_default();
            let in_gaps = counters.missed_in_known_gaps.get(&kind).copied();
            let in_gaps = in_gaps.unwrap_or_default();
            let labels = [
                ("subject", name(&kind.0)),
                ("type", event(kind.1)),
                ("known_gap", known_gap.to_string()),
            ];
            let count = if known_gap {
                in_gaps
            } else {
                all.saturating_sub(in_gaps)
            };
            (labels, count)
        })
    };
    families.counters(
        "missed_events",
        "Changes that the event stream never told (KEP-3386's kube_pod_missed_events). A known gap \
         is a kind that this runtime never sends.",
        missed(false).chain(missed(true)),
    )?;
    families.counters(
        "contradictions",
        "Messages that contradicted themselves, so that their pod was looked at instead.",
        reasons(&counters.contradictions, "kind"),
    )?;
    families.counters(
        "refused",
        "Parts of answers and messages that were left out.",
        reasons(&counters.refused, "reason"),
    )?;
    for (name, help, count) in [
        (
            "relists",
            "Full relists that were applied.",
            counters.relists,
        ),
        (
            "relists_for_unsettled_pods",
            "Targeted relists because a subject may change without an event.",
            counters.unsettled_reads,
        ),
        (
            "reads_folded_into_relists",
            "Full relists in place of many targeted ones.",
            counters.reads_folded_into_relists,
        ),
        (
            "steps_back",
            "Subjects that two reads agreed had gone back.",
            counters.steps_back,
        ),
        (
            "doubts",
            "Reads that contradicted the record and were not believed at once.",
            counters.doubts,
        ),
        (
            "unjudged_absences",
            "Lists that lacked a subject which they could not judge.",
            counters.unjudged_absences,
        ),
        (
            "tombstones_evicted",
            "Tombstones dropped past the limit.",
            counters.tombstones_evicted,
        ),
        (
            "reinspects_of_absent_pods",
            "Requests to inspect pods that the runtime does not have.",
            counters.reinspects_of_absent_pods,
        ),
        (
            "log_lines_suppressed",
            "Log lines left out because one like them had just been written.",
            stats.notes_suppressed,
        ),
    ] {
        families.counter(name, help, count)?;
    }
    for (name, help, count) in [
        (
            "unsettled_pods",
            "Pods with a subject that may change without an event.",
            engine.unsettled_pods,
        ),
        (
            "tombstones",
            "Removed subjects that are remembered.",
            engine.tombstones,
        ),
        (
            "known_gaps",
            "Kinds of event that this runtime is known never to send.",
            engine.known_gaps.len(),
        ),
    ] {
        families.gauge(name, help, count)?;
    }
    Ok(())
}

fn feed(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
    families.counters(
        "events",
        "Lifecycle events told to subscribers, by what told them first.",
        stats
            .engine
            .counters
            .delivered
            .iter()
            .map(|((kind, source), count)| {
                let labels = [("type", kind.to_string()), ("source", source.to_string())];
                (labels, *count)
            }),
    )?;
    let feed = &stats.feed;
    let lags = feed.subscribers.iter().map(|subscriber| subscriber.lag);
    families.gauge(
        "subscribers",
        "Subscribers of the feed; the daemon's own ring is one.",
        feed.subscribers.len(),
    )?;
    families.gauge(
        "subscriber_lag_events",
        "The most events that wait for one subscriber.",
        lags.max().unwrap_or_default(),
    )?;
    let SubscriberCounters {
        delivered,
        folded,
        folded_whole,
        already_told,
    } = feed.totals;
    for (name, help, count) in [
        (
            "subscriber_events",
            "Events that subscribers have taken.",
            delivered,
        ),
        (
            "events_folded",
            "Events that a slow subscriber will not see, because a later one says more \
             (kubelet_pleg_discard_events).",
            folded,
        ),
        (
            "subjects_folded_whole",
            "Subjects that came and went while a subscriber was behind.",
            folded_whole,
        ),
        (
            "events_already_told",
            "Events that a subscriber's snapshot had told already.",
            already_told,
        ),
    ] {
        families.counter(name, help, count)?;
    }
    Ok(())
}

/// The types of CRI v1.
const KINDS: [EventKind; 4] = [
    EventKind::Created,
    EventKind::Started,
    EventKind::Stopped,
    EventKind::Deleted,
];

fn reasons<K: Debug>(
    counts: &std::collections::BTreeMap<K, u64>,
    label: &'static str,
) -> impl Iterator<Item = ([(&'static str, String); 1], u64)> {
    counts
        .iter()
        .map(move |(why, count)| ([(label, name(why))], *count))
}

/// A variant's name, as it stands in the library.
fn name(variant: &impl Debug) -> String {
    format!("{variant:?}")
}

/// All types that CRI does not have yet share a label, or a runtime could make up any number.
fn event(kind: EventKind) -> String {
    match kind {
        EventKind::Other(_) => "Other".to_owned(),
        known => name(&known),
    }
}

/// As Prometheus counts moments.
pub(super) fn seconds_since_1970(moment: UnixNanos) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds are left of a moment of this century"
    )]
    let nanos = moment.0 as f64;
    nanos / 1e9
}
