//! The families of what is served: watchers, the ring, HTTP.

use std::collections::BTreeMap;
use std::fmt;

use super::families::{BYTES, Families};
use crate::serve::http::HttpTally;
use crate::serve::{RingStats, Serving, WatcherTotals};

/// What the servers count.
#[derive(Debug)]
pub(crate) struct Served {
    watchers: BTreeMap<String, usize>,
    totals: WatcherTotals,
    ring: RingStats,
    http: HttpTally,
}

impl Served {
    /// Everything that is counted beside the driver.
    pub(crate) fn of(serving: &Serving, http: HttpTally) -> Self {
        let mut watchers = BTreeMap::from([("grpc".to_owned(), 0), ("http".to_owned(), 0)]);
        for watcher in serving.watchers().reports(serving.ring()) {
            *watchers.entry(watcher.transport).or_default() += 1;
        }
        Self {
            watchers,
            totals: serving.watchers().totals(),
            ring: serving.ring().stats(),
            http,
        }
    }

    pub(super) fn write(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauges(
            "watchers",
            "Clients that watch this daemon, by how they are connected.",
            self.watchers
                .iter()
                .map(|(transport, count)| ([("transport", transport.as_str())], *count)),
        )?;
        let WatcherTotals {
            begun,
            refused,
            behind,
            other_epoch,
            future,
        } = self.totals;
        families.counter("watchers_begun", "Watchers that began.", begun)?;
        families.counter(
            "watchers_refused",
            "Watchers refused because there were too many.",
            refused,
        )?;
        families.counters(
            "list_agains",
            "Watchers that were told to list again because what followed was not known.",
            [
                ("Behind", behind),
                ("OtherEpoch", other_epoch),
                ("Future", future),
            ]
            .map(|(reason, count)| ([("reason", reason)], count)),
        )?;
        self.ring(families)?;
        self.http(families)
    }

    fn ring(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "ring_events",
            "Events that watchers can resume from.",
            self.ring.events,
        )?;
        #[expect(clippy::cast_precision_loss, reason = "a ring is far below 2^52 bytes")]
        let bytes = self.ring.bytes as f64;
        families.measured(
            ("ring", BYTES, "About how much memory they take."),
            Some(bytes),
        )?;
        families.counter(
            "ring_published",
            "Events put into the ring.",
            self.ring.published,
        )?;
        families.counter(
            "ring_dropped",
            "Events that had to go for newer ones.",
            self.ring.dropped,
        )?;
        families.counter(
            "ring_gaps",
            "Times that every watcher had to list again, because the feed had folded.",
            self.ring.gaps,
        )
    }

    fn http(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "http_connections",
            "HTTP connections that are open.",
            self.http.open,
        )?;
        families.counter(
            "http_connections_accepted",
            "HTTP connections that were taken.",
            self.http.accepted,
        )?;
        families.counter(
            "http_connections_refused",
            "HTTP connections that came when there were too many.",
            self.http.refused,
        )?;
        families.counters(
            "http_requests",
            "HTTP requests answered, by route and status code.",
            self.http.requests.iter().map(|((route, code), count)| {
                (
                    [("route", (*route).to_owned()), ("code", code.to_string())],
                    *count,
                )
            }),
        )
    }
}
