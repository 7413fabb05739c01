//! Calls, as the runtime counts them. Virtual time: nothing else is asked meanwhile.

use std::time::Duration;

use futures::StreamExt;
use pleg::Pleg;
use pleg::clock::Clock;
use pleg::engine::Freshness;
use pleg::feed::WatchFrom;
use pleg::lifecycle::{LifecycleKind, PodUid, UnixNanos};
use pleg::simulate::{Character, Rpc, SimulatedRuntime};

const PODS: usize = 20;
const CONTAINERS: usize = 3;
const EPOCH: UnixNanos = UnixNanos(1_768_210_306_000_000_000);

/// A node of which everything has been told.
struct Told {
    runtime: SimulatedRuntime,
    pleg: Pleg,
}

impl Told {
    /// Events are off, and relists far apart, so that every call is one that was caused.
    async fn by(character: Character) -> Self {
        let runtime = SimulatedRuntime::builder()
            .character(character)
            .epoch(EPOCH)
            .pods(PODS)
            .containers(CONTAINERS)
            .build();
        let hour = Duration::from_hours(1);
        let (pleg, driver) = Pleg::builder()
            .channel(runtime.channel())
            .clock(Clock::starting_at(EPOCH))
            .evented_pleg(false)
            .relist_period(hour)
            .relist_threshold(hour * 2)
            .evented_relist_period(hour)
            .evented_relist_threshold(hour * 2)
            .build()
            .expect("the settings agree");
        let mut events = pleg.watch(WatchFrom::Now).expect("the feed has begun");
        tokio::spawn(driver.run());
        for _ in 0..PODS * (CONTAINERS + 1) {
            let event = events.next().await.expect("the driver runs");
            assert_eq!(event.kind, LifecycleKind::ContainerStarted);
        }
        Self { runtime, pleg }
    }

    /// Calls so far, without the heartbeats.
    fn calls(&self) -> u64 {
        let counts = self.runtime.rpc_counts();
        counts.total() - counts.of(Rpc::Version)
    }

    fn a_pod(&self) -> PodUid {
        let pods = self.pleg.cache().list();
        pods.first().expect("there are pods").status.pod.uid.clone()
    }

    /// What a read of one pod costs.
    async fn read(&self, freshness: Freshness) -> u64 {
        let before = self.calls();
        let mark = self.pleg.mark().await.expect("the driver runs");
        let reading = self.pleg.get_newer_than(self.a_pod(), mark, freshness);
        let reading = reading.await.expect("the driver runs");
        assert!(reading.status.is_some());
        self.calls() - before
    }
}

/// Two lists, and two calls by which it learns, once, that this runtime does not stream them.
const LISTS: u64 = 2 + 2;

#[tokio::test(start_paused = true)]
async fn a_first_relist_asks_for_each_status_once() {
    let node = Told::by(Character::containerd_2()).await;
    let statuses = (PODS * (CONTAINERS + 1)) as u64;
    assert_eq!(node.calls(), LISTS + statuses);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_tells_the_containers_with_the_sandbox_is_asked_once_for_each_pod() {
    let node = Told::by(Character::cri_o()).await;
    assert_eq!(node.calls(), LISTS + PODS as u64);
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_relist_is_two_calls() {
    let node = Told::by(Character::containerd_2()).await;
    let before = node.calls();
    let mark = node.pleg.mark().await.expect("the driver runs");
    node.pleg.request_full_relist().await.expect("it runs");
    node.pleg.relisted_since(mark).await.expect("it runs");
    assert_eq!(node.calls() - before, 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_with_a_mark_is_two_lists_and_the_pods_statuses_or_the_lists_alone() {
    let node = Told::by(Character::containerd_2()).await;
    assert_eq!(node.read(Freshness::Phases).await, 2);
    let statuses = 1 + CONTAINERS as u64;
    assert_eq!(node.read(Freshness::Details).await, 2 + statuses);
}
