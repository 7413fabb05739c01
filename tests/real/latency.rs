//! How long news takes from the runtime to a subscriber. Measured and printed:
//!
//! ```text
//! cargo test --release --test real latency -- --nocapture
//! ```
//!
//! The runtimes are measured one after the other, each with a few pods at a time. Only the promise for
//! polling is asserted: the others are of milliseconds, which a busy machine takes by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use pleg::lifecycle::UnixNanos;
use tokio::time::sleep;

use crate::account::Account;
use crate::driver::Driver;
use crate::observer::{Heard, Observer};
use crate::raw_events::raw_events;
use crate::scenarios::LASTING;
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};
use crate::truth::Told;

/// From the end of a container to the news of it, at most, where one polls once a second; nanoseconds.
const POLLED_WITHIN: i64 = 1_500_000_000;

const WORKERS: usize = 3;
const ROUNDS: usize = 5;
const CONTAINERS: usize = 8;

/// A sample of times from one moment to another; clocks are one machine's, so none is negative but by
/// the clocks' own grain.
struct Times(Vec<i64>);

impl Times {
    fn of(spans: impl Iterator<Item = (UnixNanos, UnixNanos)>) -> Self {
        let mut nanos: Vec<i64> = spans.map(|(from, to)| to.0 - from.0).collect();
        nanos.sort_unstable();
        Self(nanos)
    }

    /// The smallest time that this share of the sample does not exceed.
    fn percentile(&self, percent: usize) -> i64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0[rank - 1]
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let millis = |nanos: i64| nanos as f64 / 1e6;
        write!(
            f,
            "{:>7} {:>11.3} {:>11.3} {:>11.3}",
            self.0.len(),
            millis(self.percentile(50)),
            millis(self.percentile(99)),
            millis(self.percentile(100)),
        )
    }
}

#[tokio::test]
async fn of_news_from_each_runtime_to_a_subscriber() {
    let mut table = vec![format!(
        "{:<10} {:<34} {:>7} {:>11} {:>11} {:>11}",
        "containerd", "from … to delivery, ms", "samples", "p50", "p99", "max"
    )];
    for version in [
        Version::Containerd16,
        Version::Containerd17,
        Version::Containerd21,
    ] {
        for (from, times) in measured(version).await {
            assert!(times.0.len() >= 100, "{from}: {} samples", times.0.len());
            if version == Version::Containerd16 {
                assert!(times.percentile(99) <= POLLED_WITHIN, "{from}: {times}");
            }
            table.push(format!("{:<10} {from:<34} {times}", version.label()));
        }
    }
    println!("{}", table.join("\n"));
}

async fn measured(version: Version) -> Vec<(&'static str, Times)> {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let observer = Observer::attach(&bed).await;
    assert!(
        observer
            .until_mode(Duration::from_secs(30), |mode| version.is_followed_by(mode))
            .await
    );
    // On containerd 2 a second client sees every event too, and says when it could be received.
    let witness = (version == Version::Containerd21).then(|| Witness::of(&bed));
    let begun = observer.heard().len();
    let workers = (0..WORKERS).map(|worker| pods_come_and_go(&driver, worker));
    let stories: Vec<Story> = join_all(workers).await.into_iter().flatten().collect();
    for story in &stories {
        assert!(observer.until_told(story.truth(), version.sight()).await);
    }
    let heard = observer.heard().split_off(begun);
    let counters = observer.stats().await.engine.counters;
    assert!(counters.missed.is_empty(), "{:?}", counters.missed);

    let mut measured = Vec::new();
    if version != Version::Containerd16 {
        let taken = heard.iter().map(|heard| (heard.event.seen_at, heard.at));
        measured.push(("taken from the inbox", Times::of(taken)));
        if let Some(witness) = witness {
            measured.push(("received by another client", witness.compared(&heard)));
        }
        let stamped = heard
            .iter()
            .filter_map(|heard| Some((heard.event.runtime_stamp?, heard.at)));
        measured.push(("created_at of the event", Times::of(stamped)));
    }
    let finished = heard.iter().filter_map(|heard| {
        let exit = heard.event.exit.as_ref()?;
        Some((exit.finished_at?, heard.at))
    });
    measured.push(("finished_at of the container", Times::of(finished)));
    measured
}

/// One after the other, pods in which containers run and end.
async fn pods_come_and_go(driver: &Driver, worker: usize) -> Vec<Story> {
    let mut stories = Vec::new();
    for round in 0..ROUNDS {
        let mut story = Story::new(driver, &format!("measured-{worker}-{round}"));
        let sandbox = story.run_sandbox().await;
        for number in 0..CONTAINERS {
            let name = format!("app-{number}");
            story.run(&sandbox, &name, Program::Exits(7), 7).await;
        }
        // Whoever polls sees them dead.
        sleep(LASTING).await;
        story.stop_sandbox(&sandbox).await;
        story.remove_sandbox(&sandbox).await;
        stories.push(story);
    }
    stories
}

/// Another client of the event stream.
struct Witness(Account);

impl Witness {
    fn of(bed: &Testbed) -> Self {
        Self(Account::of(raw_events(bed).boxed()))
    }

    /// From its receipt of an event to the observer's delivery of what it told. It is no part of the
    /// observer, so the time can be negative where it was the later of the two.
    fn compared(&self, heard: &[Heard]) -> Times {
        let mut received: BTreeMap<_, UnixNanos> = BTreeMap::new();
        for told in self.0.all() {
            received.entry((told.subject, told.kind)).or_insert(told.at);
        }
        let both = heard.iter().filter_map(|heard| {
            let Told {
                subject, kind, at, ..
            } = Told::from_event(&heard.event, heard.at)?;
            Some((*received.get(&(subject, kind))?, at))
        });
        Times::of(both)
    }
}
