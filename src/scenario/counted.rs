//! Counters under one flat name each: `relists`, `missed` and `missed.container.stopped`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Stats;

/// All counters by name. A group's own name holds its sum, so that none is missing at zero.
pub(super) fn counted(stats: &Stats) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let engine = &stats.engine.counters;
    group(&mut counts, "asked", &engine.asked);
    group(&mut counts, "failed", &engine.failed);
    group(&mut counts, "messages", &engine.messages);
    group(&mut counts, "ignored", &engine.ignored);
    group(&mut counts, "refused", &engine.refused);
    group(&mut counts, "contradictions", &engine.contradictions);
    group(&mut counts, "missed", &engine.missed);
    group(
        &mut counts,
        "missedInKnownGaps",
        &engine.missed_in_known_gaps,
    );
    group(&mut counts, "delivered", &engine.delivered);
    let totals = &stats.feed.totals;
    for (name, count) in [
        ("stepsBack", engine.steps_back),
        ("doubts", engine.doubts),
        ("unjudgedAbsences", engine.unjudged_absences),
        ("relists", engine.relists),
        ("unsettledReads", engine.unsettled_reads),
        ("readsFoldedIntoRelists", engine.reads_folded_into_relists),
        ("tombstonesEvicted", engine.tombstones_evicted),
        ("streamsOpened", engine.streams_opened),
        ("streamsEnded", engine.streams_ended),
        ("modeChanges", engine.mode_changes),
        ("reinspectsOfAbsentPods", engine.reinspects_of_absent_pods),
        ("unsettledPods", stats.engine.unsettled_pods as u64),
        ("tombstones", stats.engine.tombstones as u64),
        ("published", stats.feed.published),
        ("folded", totals.folded),
        ("foldedWhole", totals.folded_whole),
        ("alreadyTold", totals.already_told),
        ("notesSuppressed", stats.notes_suppressed),
    ] {
        counts.insert(name.to_owned(), count);
    }
    counts
}

fn group<K: Serialize>(counts: &mut BTreeMap<String, u64>, name: &str, group: &BTreeMap<K, u64>) {
    counts.insert(name.to_owned(), group.values().sum());
    for (key, count) in group {
        let key = serde_json::to_value(key).map(|value| words(&value));
        counts.insert(format!("{name}.{}", key.unwrap_or_default()), *count);
    }
}

/// An enum's name, or several joined by dots.
fn words(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(name) => name.clone(),
        serde_json::Value::Array(names) => {
            let names: Vec<_> = names.iter().map(words).collect();
            names.join(".")
        }
        serde_json::Value::Object(variant) => variant.keys().next().cloned().unwrap_or_default(),
        other => other.to_string(),
    }
}
