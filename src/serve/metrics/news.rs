//! The families of news: what the event stream brought, what it did not, and what was told of it.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use super::families::{BYTES, Families, name};
use crate::Stats;
use crate::engine::Counters;
use crate::feed::SubscriberCounters;
use crate::lifecycle::{EventKind, SubjectKind};

pub(super) fn write(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
    stream(families, stats)?;
    beliefs(families, stats)?;
    feed(families, stats)
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
    let counters = &stats.engine.counters;
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
    records(families, stats)
}

fn records(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
    let engine = &stats.engine;
    let counters = &engine.counters;
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
    counts: &BTreeMap<K, u64>,
    label: &'static str,
) -> impl Iterator<Item = ([(&'static str, String); 1], u64)> {
    counts
        .iter()
        .map(move |(why, count)| ([(label, name(why))], *count))
}

/// All types that CRI does not have yet share a label, or a runtime could make up any number.
fn event(kind: EventKind) -> String {
    match kind {
        EventKind::Other(_) => "Other".to_owned(),
        known => name(&known),
    }
}
