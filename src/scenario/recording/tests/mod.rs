//! Recordings of the whole product on the simulated runtime, and of hands that slipped.

mod bad_input;
mod excerpts;
mod replays;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;

use super::*;
use crate::clock::Clock;
use crate::cri::Tapped;
use crate::engine::{Output, Settings};
use crate::feed::WatchFrom;
use crate::lifecycle::{LifecycleEvent, Now, UnixNanos};
use crate::simulate::SimulatedRuntime;
use crate::{Builder, Pleg};

/// 1 January 2026.
const EPOCH: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

/// Records on the driver's own task: virtual time runs faster than any thread could follow.
struct AtOnce<K>(Mutex<Option<(K, queue::Sorter)>>);

impl<K: Keeper> AtOnce<K> {
    fn new(keeper: K) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some((keeper, queue::Sorter::default())))))
    }

    fn finish(&self) -> K::Kept {
        let (keeper, _) = self.0.lock().unwrap().take().unwrap();
        keeper.finish().unwrap()
    }

    fn see(&self, tapped: Tapped<'_>) {
        let mut keeper = self.0.lock().unwrap();
        let (keeper, sorter) = keeper.as_mut().unwrap();
        if let Tapped::Begun { now, settings } = tapped {
            keeper.begin(now, settings.clone()).unwrap();
        } else if let Some(entry) = sorter.entry(tapped) {
            keeper.keep(entry).unwrap();
        }
    }
}

/// Keeps a recording in memory.
#[derive(Default)]
struct InMemory(Option<Writer<Vec<u8>>>);

impl Keeper for InMemory {
    type Kept = Vec<u8>;

    fn begin(&mut self, at: Now, settings: Settings) -> std::io::Result<()> {
        let header = Header::new(at, settings, None);
        self.0 = Some(Writer::new(Vec::new(), header)?);
        Ok(())
    }

    fn keep(&mut self, entry: Entry) -> std::io::Result<()> {
        self.0.as_mut().unwrap().write(&entry)
    }

    fn finish(self) -> std::io::Result<Vec<u8>> {
        self.0.unwrap().finish()
    }
}

/// A run of the whole product: what was kept of it, and what a subscriber was told live.
struct Run<T> {
    kept: T,
    live: Vec<Arc<LifecycleEvent>>,
}

/// Follows a runtime that is churned for so long, while `disturb` does what it likes.
async fn run<K: Keeper>(
    keeper: K,
    runtime: SimulatedRuntime,
    set_up: impl FnOnce(Builder) -> Builder,
    lasting: Duration,
    disturb: impl Future<Output = ()>,
) -> Run<K::Kept> {
    let tap = AtOnce::new(keeper);
    let connect = runtime.clone();
    let seeing = Arc::clone(&tap);
    let builder = Pleg::builder()
        .connector(move || connect.channel())
        .stream_thread(false)
        .clock(Clock::starting_at(EPOCH))
        .channel_capacity(1_000_000)
        .tap(move |tapped| seeing.see(tapped));
    let (pleg, driver) = set_up(builder).build().unwrap();
    let told = pleg.watch(WatchFrom::Now).unwrap();
    let told = tokio::spawn(told.collect::<Vec<_>>());
    let driver = tokio::spawn(driver.run());
    let churned = async {
        tokio::select! {
            biased;
            never = runtime.churn() => match never {},
            () = async { disturb.await; std::future::pending().await } => {}
        }
    };
    let _ = tokio::time::timeout(lasting, churned).await;
    pleg.shutdown().await;
    driver.await.unwrap().unwrap();
    Run {
        live: told.await.unwrap(),
        kept: tap.finish(),
    }
}

/// What a replay told, and how it went.
fn replay(recording: &[u8], settings: Option<Settings>) -> (Vec<Arc<LifecycleEvent>>, Replayed) {
    let mut reader = Reader::new("recording", recording).unwrap();
    let mut told = Vec::new();
    let replayed = play(&mut reader, settings, &mut |tapped| {
        if let Tapped::Output(Output::Deliver(event)) = tapped {
            told.push(Arc::clone(event));
        }
    })
    .unwrap();
    (told, replayed)
}

fn deliveries<'a>(events: impl IntoIterator<Item = &'a Arc<LifecycleEvent>>) -> Deliveries {
    let mut deliveries = Deliveries::default();
    for event in events {
        deliveries.push(event);
    }
    deliveries
}

fn compressed(recording: &[u8]) -> Vec<u8> {
    let mut out = compress::Compressor::new(Vec::new());
    out.write_all(recording).unwrap();
    out.flush().unwrap();
    out.into_inner()
}
