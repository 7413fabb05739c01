//! What readers cost: telling an event to subscribers, reading the cache, a read with a mark on a
//! simulated runtime in the same process.
//!
//! `cargo bench --bench readers`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macros write undocumented functions"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pleg::Pleg;
use pleg::cache::cache;
use pleg::engine::Freshness;
use pleg::feed::{Subscription, WatchFrom, feed};
use pleg::lifecycle::{LifecycleEvent, PodUid, UnixNanos};
use pleg::simulate::SimulatedRuntime;

const PODS: usize = 1000;

/// A container's end, as a daemon writes it.
fn ended(revision: u64) -> Arc<LifecycleEvent> {
    let told = serde_json::json!({
        "type": "ContainerDied",
        "revision": revision,
        "pod": {
            "uid": "6f0c1a52-91b4-4a3e-8d1e-0123456789ab",
            "namespace": "shop",
            "name": "payments-0",
        },
        "subject": {"container": {"id": "8a1c5f0e", "name": "envoy", "attempt": 0}},
        "source": "event",
        "initial": false,
        "runtimeStamp": "2026-11-30T12:00:00.000000001Z",
        "seenAt": "2026-11-30T12:00:00.000100000Z",
    });
    Arc::new(serde_json::from_value(told).unwrap())
}

/// To telling belongs that each takes it.
fn publish(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("an event told and taken");
    for subscribers in [1, 100] {
        let (_, cache) = cache();
        let (mut feed, handle) = feed(1000, cache);
        let watched = (0..subscribers).map(|_| handle.watch(WatchFrom::Now, UnixNanos(0)));
        let mut subscriptions: Vec<Subscription> = watched.map(Result::unwrap).collect();
        let mut revision = 1;
        group.bench_function(format!("{subscribers} subscribers"), |bench| {
            bench.iter_batched(
                || {
                    revision += 1;
                    [ended(revision)]
                },
                |batch| {
                    feed.publish(&batch);
                    for subscription in &mut subscriptions {
                        black_box(subscription.try_next().unwrap());
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// A node that is followed, and what follows it: on one thread, with nothing between them but memory.
struct Node {
    tokio: tokio::runtime::Runtime,
    pleg: Pleg,
    uids: Vec<PodUid>,
}

impl Node {
    fn new() -> Self {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (pleg, uids) = tokio.block_on(async {
            let runtime = SimulatedRuntime::builder().pods(PODS).containers(3).build();
            let simulated = runtime.clone();
            let (pleg, driver) = Pleg::builder()
                .connector(move || simulated.channel())
                .stream_thread(false)
                .build()
                .unwrap();
            tokio::spawn(driver.run());
            let mark = pleg.mark().await.unwrap();
            pleg.relisted_since(mark).await.unwrap();
            while pleg.cache().len() < PODS {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let pods = pleg.cache().list().into_iter();
            let uids = pods.map(|pod| pod.status.pod.uid.clone()).collect();
            (pleg, uids)
        });
        Self { tokio, pleg, uids }
    }
}

fn reads(bench: &mut Criterion) {
    let node = Node::new();
    let mut group = bench.benchmark_group("read of one pod of 1,000");
    let mut uids = node.uids.iter().cycle();
    group.bench_function("get", |bench| {
        bench.iter(|| node.pleg.cache().get(uids.next().unwrap()).unwrap());
    });
    for (name, freshness) in [
        ("phases", Freshness::Phases),
        ("details", Freshness::Details),
    ] {
        group.bench_function(
            format!("get_newer_than, {name}, runtime in memory"),
            |bench| {
                bench.iter(|| {
                    node.tokio.block_on(async {
                        let mark = node.pleg.mark().await.unwrap();
                        let uid = uids.next().unwrap().clone();
                        node.pleg.get_newer_than(uid, mark, freshness).await
                    })
                });
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = publish, reads
}
criterion_main!(benches);
