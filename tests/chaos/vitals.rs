//! Whether a process grew: its size in the first quarter of a run against the last.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::watcher::Vitals;

/// `pleg watch` keeps the last ten minutes of what it was told, up to 32 MiB of lines: until a quarter of
/// the run is longer than that, it grows by as much and what managing it costs.
const FLIGHT_RECORDER: Duration = Duration::from_secs(10 * 60);
const FILLING: u64 = 64 << 10;

/// What a process may be larger by for no reason: an allocator's leftovers.
const SLACK: u64 = 12 << 10;

/// The medians of the first and the last quarter.
pub(crate) fn quarters(vitals: &[Vitals]) -> Option<(Vitals, Vitals)> {
    let quarter = (vitals.len() / 4).max(1);
    let first = median(vitals.get(..quarter)?)?;
    let last = median(vitals.get(vitals.len() - quarter..)?)?;
    Some((first, last))
}

fn median(of: &[Vitals]) -> Option<Vitals> {
    let middle = |pick: fn(&Vitals) -> u64| {
        let mut all: Vec<u64> = of.iter().map(pick).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    };
    Some(Vitals {
        rss_kib: middle(|vitals| vitals.rss_kib)?,
        fds: middle(|vitals| vitals.fds)?,
    })
}

/// What has grown more than it may.
pub(crate) fn growth(first: Vitals, last: Vitals, lasted: Duration) -> Option<String> {
    let may = if lasted / 4 > FLIGHT_RECORDER {
        SLACK
    } else {
        SLACK + FILLING
    };
    (last.rss_kib > first.rss_kib + may)
        .then(|| format!("pleg watch grew from {first:?} to {last:?}"))
}

/// Open descriptors by kind.
pub(crate) type Descriptors = BTreeMap<String, u64>;

/// Kinds of which there are more at rest after the run than at rest before it: while it lasts,
/// connections come and go.
pub(crate) fn leaked(before: &Descriptors, after: &Descriptors) -> Option<String> {
    let had = |kind: &String| before.get(kind).copied().unwrap_or_default();
    let more = after.iter().any(|(kind, count)| *count > had(kind));
    more.then(|| format!("pleg watch had {before:?} open and has {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vitals(rss_kib: u64, fds: u64) -> Vitals {
        Vitals { rss_kib, fds }
    }

    #[test]
    fn growth_is_told_from_filling_the_flight_recorder() {
        let hour = Duration::from_secs(3_600);
        let all: Vec<Vitals> = (0..100).map(|n| vitals(20_000 + n * 1_000, 20)).collect();
        let (first, last) = quarters(&all).expect("there are some");
        assert!(growth(first, last, hour).is_some());
        assert!(growth(first, last, Duration::from_secs(60)).is_none());
        assert!(growth(vitals(20_000, 20), vitals(21_000, 30), hour).is_none());
    }

    #[test]
    fn a_leaked_descriptor_is_found() {
        let descriptors = |sockets| BTreeMap::from([("socket".to_owned(), sockets)]);
        assert!(leaked(&descriptors(6), &descriptors(7)).is_some());
        assert!(leaked(&descriptors(6), &descriptors(6)).is_none());
        assert!(leaked(&descriptors(6), &descriptors(5)).is_none());
    }
}
