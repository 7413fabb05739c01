//! The families of what was asked of the runtime, and how long it took to answer.

use std::fmt;

use super::families::{Families, SECONDS, name};
use crate::Stats;
use crate::engine::{Call, Counters};
use crate::stats::Durations;

pub(super) fn write(families: &mut Families<'_>, stats: &Stats) -> fmt::Result {
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
