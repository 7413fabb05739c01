//! Everything joined: the real engine, the client, the reader, the cache and the feed, in front of a
//! simulated runtime over memory.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::engine::{Freshness, Mode, PollingReason};
use crate::feed::{Subscription, WatchFrom};
use crate::lifecycle::{
    EventSet, EventSubject, LifecycleEvent, LifecycleKind, Mark, PodContainer, ReportedState,
    SubjectId, UnixNanos,
};
use crate::pleg::{Builder, Driver, Pleg};
use crate::simulate::{Character, Rpc, SimulatedRuntime};

use LifecycleKind::{
    ContainerDied as Died, ContainerRemoved as Removed, ContainerStarted as Started,
};

const EPOCH: UnixNanos = UnixNanos(1_700_000_000_000_000_000);

struct Node {
    runtime: SimulatedRuntime,
    pleg: Pleg,
    driver: JoinHandle<()>,
}

impl Node {
    /// A runtime that is followed, after the first relist.
    async fn followed(character: Character, build: impl FnOnce(Builder) -> Builder) -> Self {
        let runtime = SimulatedRuntime::builder()
            .character(character)
            .epoch(EPOCH)
            .busy_node()
            .seed(7)
            .build();
        Self::following(runtime, build).await
    }

    async fn following(runtime: SimulatedRuntime, build: impl FnOnce(Builder) -> Builder) -> Self {
        let builder = Pleg::builder()
            .channel(runtime.channel())
            .clock(Clock::starting_at(EPOCH))
            .seed(1);
        let (pleg, driver) = build(builder).build().expect("nothing contradicts itself");
        let driver = tokio::spawn(run(driver));
        pleg.relisted_since(Mark::default()).await.expect("runs");
        Self {
            runtime,
            pleg,
            driver,
        }
    }

    /// What the runtime has, and what the cache says that it has.
    fn truth_and_cache(&self) -> (States, States) {
        let truth = self.runtime.world(|world| {
            let sandboxes = world.sandboxes().map(|sandbox| {
                let state = if sandbox.ready {
                    ReportedState::Running
                } else {
                    ReportedState::Exited
                };
                (SubjectId::Sandbox(sandbox.id.clone()), (state, None))
            });
            let containers = world.containers().map(|container| {
                let code = container.is_exited().then_some(container.exit.code);
                (
                    SubjectId::Container(container.id.clone()),
                    (container.state, code),
                )
            });
            sandboxes.chain(containers).collect()
        });
        let mut cached = States::new();
        for pod in self.pleg.cache().list() {
            for sandbox in &pod.status.sandboxes {
                let id = SubjectId::Sandbox(sandbox.id.clone());
                cached.insert(id, (sandbox.state, None));
            }
            for container in &pod.status.containers {
                let id = SubjectId::Container(container.id.clone());
                cached.insert(id, (container.state, container.exit_code));
            }
        }
        (truth, cached)
    }
}

type States = BTreeMap<SubjectId, (ReportedState, Option<i32>)>;

async fn run(driver: Driver) {
    driver.run().await.expect("a task can be spawned");
}

/// What one subscriber has seen of each subject.
#[derive(Default)]
struct Seen {
    told: BTreeMap<SubjectId, (EventSet, LifecycleKind)>,
    /// Containers whose death came without its exit: gone before anybody could read it.
    ends_unknown: BTreeSet<SubjectId>,
}

impl Seen {
    fn take(&mut self, event: &LifecycleEvent) {
        let Some(id) = event.subject.as_ref().map(EventSubject::id) else {
            return;
        };
        let told = match event.kind {
            Started => EventSet::STARTED,
            Died => EventSet::DIED,
            _ => EventSet::REMOVED,
        };
        let (before, last) = self
            .told
            .entry(id.clone())
            .or_insert((EventSet::EMPTY, event.kind));
        assert!(
            before.still_tellable().contains(told),
            "{:?} of {id} after {before:?}",
            event.kind
        );
        let is_container = matches!(event.subject, Some(EventSubject::Container { .. }));
        if event.kind == Died && is_container && event.exit.is_none() {
            self.ends_unknown.insert(id.clone());
        }
        *before = before.with(told);
        *last = event.kind;
    }

    fn drain(&mut self, events: &mut Subscription) {
        while let Some(event) = events.try_next() {
            self.take(&event);
        }
    }

    /// Whether the last event of each subject tells where it stands.
    fn check(&self, truth: &States) {
        for (id, (state, _)) in truth {
            let owed = match state {
                ReportedState::Running => Some(Started),
                ReportedState::Exited => Some(Died),
                ReportedState::Created | ReportedState::Unknown => None,
            };
            let last = self.told.get(id).map(|(_, last)| *last);
            assert_eq!(last, owed, "{id} is {state:?}");
        }
        for id in &self.ends_unknown {
            assert!(!truth.contains_key(id), "{id} could have been read");
        }
        for (id, (_, last)) in &self.told {
            assert!(truth.contains_key(id) || *last == Removed, "{id} is gone");
        }
    }
}

fn container(node: &Node, pod: &crate::simulate::RunningPod) -> Option<PodContainer> {
    let cached = node.pleg.cache().get(&pod.uid)?;
    cached.status.containers.first().cloned()
}

async fn next_of(events: &mut Subscription, id: &str) -> Arc<LifecycleEvent> {
    loop {
        let event = events.next().await.expect("the driver runs");
        let subject = event.subject.as_ref().map(EventSubject::id);
        if subject.is_some_and(|subject| subject.as_str() == id) {
            return event;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_is_told_from_start_to_removal_and_the_cache_is_never_behind() {
    for (character, events) in [
        (Character::containerd_2(), true),
        (Character::containerd_1_7(), true),
        (Character::containerd_1_6(), true),
        (Character::containerd_2(), false),
    ] {
        let node = Node::followed(character, |builder| builder.evented_pleg(events)).await;
        let mut watcher = node.pleg.watch(WatchFrom::Now).unwrap();
        let pod = node.runtime.run_pod("shop", "web", &["app"]);
        let id = pod.containers[0].clone();

        let started = next_of(&mut watcher, id.as_str()).await;
        assert_eq!(started.kind, Started);
        let cached = container(&node, &pod).expect("present");
        assert_eq!(cached.state, ReportedState::Running);

        node.runtime.exit_container(&id, 7).unwrap();
        let died = next_of(&mut watcher, id.as_str()).await;
        assert_eq!(died.kind, Died);
        assert_eq!(died.exit.as_ref().map(|exit| exit.exit_code), Some(7));
        assert_eq!(container(&node, &pod).unwrap().exit_code, Some(7));

        node.runtime.remove_container(&id).unwrap();
        let removed = next_of(&mut watcher, id.as_str()).await;
        assert_eq!(removed.kind, Removed);
        assert_eq!(container(&node, &pod), None);
    }
}

#[tokio::test(start_paused = true)]
async fn who_changes_something_and_asks_for_newer_sees_the_change() {
    let node = Node::followed(Character::containerd_2(), |builder| builder).await;
    let pod = node.runtime.run_pod("shop", "web", &["app"]);
    for freshness in [Freshness::Phases, Freshness::Details] {
        let mark = node.pleg.mark().await.unwrap();
        let reading = node
            .pleg
            .get_newer_than(pod.uid.clone(), mark, freshness)
            .await
            .unwrap();
        assert!(reading.observed >= mark);
        let status = reading.status.expect("present");
        assert_eq!(status.containers[0].state, ReportedState::Running);
        assert!(node.pleg.cache().observed(&pod.uid) >= mark);
    }
    node.runtime
        .exit_container(&pod.containers[0], 137)
        .unwrap();
    node.runtime.remove_container(&pod.containers[0]).unwrap();
    node.runtime.stop_sandbox(&pod.sandbox).unwrap();
    node.runtime.remove_sandbox(&pod.sandbox).unwrap();
    let mark = node.pleg.mark().await.unwrap();
    let reading = node
        .pleg
        .get_newer_than(pod.uid.clone(), mark, Freshness::Details)
        .await
        .unwrap();
    assert_eq!(reading.status, None);
    assert_eq!(node.pleg.cache().get(&pod.uid), None);
}

#[tokio::test(start_paused = true)]
async fn three_minutes_of_churn_end_with_everybody_knowing_how_things_stand() {
    for events in [true, false] {
        let node = Node::followed(Character::containerd_2(), |builder| {
            builder.evented_pleg(events).channel_capacity(50)
        })
        .await;
        let mut watchers: Vec<(Subscription, Seen)> = Vec::new();
        let churn = node.runtime.spawn_churn();
        for round in 0_usize..180 {
            if round.is_multiple_of(36) {
                let events = node.pleg.watch(WatchFrom::Snapshot).unwrap();
                watchers.push((events, Seen::default()));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            // The first reads at once, each other rarer than the one before.
            for (slowness, (events, seen)) in watchers.iter_mut().enumerate() {
                if round.is_multiple_of(1 + slowness * 20) {
                    seen.drain(events);
                }
            }
        }
        drop(churn);
        let mark = node.pleg.mark().await.unwrap();
        node.pleg.request_full_relist().await.unwrap();
        node.pleg.relisted_since(mark).await.unwrap();
        // The inspections that the relist caused, and the events that were under way.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (truth, cached) = node.truth_and_cache();
        assert_eq!(truth, cached);
        for (events, seen) in &mut watchers {
            seen.drain(events);
            seen.check(&truth);
        }
        let totals = node.pleg.stats().await.unwrap().feed.totals;
        assert!(totals.folded > 0, "nobody was slow enough: {totals:?}");
        let first = watchers[0].0.stats().counters;
        assert_eq!(first.folded, 0, "the fast reader missed something");
    }
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_the_runtime_hears_nothing_more_and_has_no_stream_open() {
    let node = Node::followed(Character::containerd_2(), |builder| builder).await;
    node.runtime.streams_opened(1).await;
    let watcher = node.pleg.watch(WatchFrom::Snapshot).unwrap();
    node.pleg.shutdown().await;
    node.driver.await.unwrap();
    let calls = node.runtime.rpc_counts();
    node.runtime.run_pod("shop", "late", &["app"]);
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(node.runtime.rpc_counts(), calls);
    assert_eq!(node.runtime.open_streams(), 0);
    let told: Vec<_> = watcher.collect().await;
    assert!(!told.is_empty() && told.iter().all(|event| event.initial));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_goes_and_comes_back_is_followed_again() {
    let node = Node::followed(Character::containerd_2(), |builder| builder).await;
    node.runtime.streams_opened(1).await;
    let mut modes = node.pleg.modes();
    let mut watcher = node.pleg.watch(WatchFrom::Now).unwrap();
    let pod = node.runtime.run_pod("shop", "web", &["app"]);
    let started = next_of(&mut watcher, pod.containers[0].as_str()).await;
    assert_eq!(started.kind, Started);
    while !matches!(node.pleg.mode(), Mode::Evented { .. }) {
        modes.next().await.unwrap();
    }
    node.runtime.set_up(false);
    while !matches!(modes.next().await.unwrap().to, Mode::Polling { .. }) {}
    // It dies unheard.
    node.runtime.exit_container(&pod.containers[0], 7).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    node.runtime.set_up(true);
    let died = next_of(&mut watcher, pod.containers[0].as_str()).await;
    assert_eq!(
        (died.kind, died.exit.as_ref().map(|e| e.exit_code)),
        (Died, Some(7))
    );
    while !matches!(node.pleg.mode(), Mode::Evented { .. }) {
        modes.next().await.unwrap();
    }
    assert!(node.pleg.health().await.unwrap().is_healthy());
}

/// Runs the driver except while it hangs, as it does when the embedder's executor does.
async fn run_but_hang(driver: Driver, mut hangs: watch::Receiver<bool>) {
    let mut driver = pin!(run(driver));
    while hangs.wait_for(|hangs| !hangs).await.is_ok() {
        let hung = pin!(hangs.wait_for(|hangs| *hangs));
        // The left one first: once it hangs, it does nothing.
        if let Either::Right(_) = select(hung, driver.as_mut()).await {
            return;
        }
    }
}

/// The relist that has been due for long waits for what the stream brought meanwhile; had it begun first,
/// pods that are gone by now would be stale news (law 2.5).
#[tokio::test(start_paused = true)]
async fn pods_that_came_and_went_while_the_driver_hung_are_told() {
    let runtime = SimulatedRuntime::builder().epoch(EPOCH).build();
    let builder = Pleg::builder()
        .channel(runtime.channel())
        .clock(Clock::starting_at(EPOCH))
        .channel_capacity(4_000)
        .seed(1);
    let (pleg, driver) = builder.build().expect("nothing contradicts itself");
    let (hang, hangs) = watch::channel(false);
    let _driver = tokio::spawn(run_but_hang(driver, hangs));
    runtime.streams_opened(1).await;
    pleg.relisted_since(Mark::default()).await.expect("runs");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut watcher = pleg.watch(WatchFrom::Now).unwrap();

    hang.send_replace(true);
    let mut containers = Vec::new();
    // More messages than one turn takes: eight for each pod.
    for _ in 0..400 {
        let pod = runtime.run_pod("shop", "web", &["app"]);
        let container = pod.containers[0].clone();
        runtime.exit_container(&container, 7).unwrap();
        runtime.remove_container(&container).unwrap();
        runtime.stop_sandbox(&pod.sandbox).unwrap();
        runtime.remove_sandbox(&pod.sandbox).unwrap();
        containers.push(SubjectId::Container(container));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Somebody asks first thing.
    let asked = tokio::spawn({
        let pleg = pleg.clone();
        async move { pleg.request_full_relist().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    hang.send_replace(false);
    asked.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;

    let mut seen = Seen::default();
    seen.drain(&mut watcher);
    let ends: Vec<_> = containers.iter().map(|id| seen.told.get(id)).collect();
    let whole = EventSet::STARTED
        .with(EventSet::DIED)
        .with(EventSet::REMOVED);
    assert!(ends.iter().all(|end| *end == Some(&(whole, Removed))));
    let counters = pleg.stats().await.unwrap().engine.counters;
    assert!(counters.ignored.is_empty(), "{:?}", counters.ignored);
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_no_stream_is_ever_asked_for() {
    let node = Node::followed(Character::containerd_2(), |b| b.evented_pleg(false)).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let disabled = Mode::Polling {
        reason: PollingReason::Disabled,
    };
    assert_eq!(node.pleg.mode(), disabled);
    let asked = node.runtime.rpc_counts();
    assert_eq!(asked.of(Rpc::GetContainerEvents), 0);
    assert_eq!(node.pleg.stats().await.unwrap().reader.sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_repeats_itself_to_the_byte() {
    async fn told() -> Vec<Arc<LifecycleEvent>> {
        let node = Node::followed(Character::containerd_1_7(), |builder| builder).await;
        let watcher = node.pleg.watch(WatchFrom::Snapshot).unwrap();
        let _churn = node.runtime.spawn_churn();
        let events = watcher.take_until(tokio::time::sleep(Duration::from_mins(1)));
        events.collect().await
    }
    let first = told().await;
    assert!(first.len() > 50, "{}", first.len());
    assert_eq!(first, told().await);
}

#[test]
fn the_stream_has_a_thread_of_its_own_and_leaves_it_at_shutdown() {
    // On the real clock, because the thread has a runtime of its own.
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio.block_on(async {
        let runtime = SimulatedRuntime::builder().busy_node().build();
        let dialled = runtime.clone();
        let (pleg, driver) = Pleg::builder()
            .connector(move || dialled.channel())
            .build()
            .unwrap();
        let driver = tokio::spawn(run(driver));
        runtime.streams_opened(1).await;
        let mut watcher = pleg.watch(WatchFrom::Now).unwrap();
        let pod = runtime.run_pod("shop", "web", &["app"]);
        let started = next_of(&mut watcher, pod.containers[0].as_str()).await;
        assert_eq!(started.kind, Started);
        pleg.shutdown().await;
        driver.await.unwrap();
        while watcher.next().await.is_some() {}
        // The connection has been closed by then; the runtime may notice a moment later.
        while runtime.open_streams() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_that_is_trusted_costs_one_relist_a_slow_period_and_the_heartbeats() {
    let runtime = SimulatedRuntime::builder()
        .character(Character::containerd_2())
        .epoch(EPOCH)
        .build();
    for n in 0..110 {
        runtime.run_pod("shop", &format!("web-{n}"), &["app", "proxy"]);
    }
    let node = Node::following(runtime, |builder| builder).await;
    // The stream earns its trust with an event that a later relist agrees with.
    tokio::time::sleep(Duration::from_secs(10)).await;
    node.runtime.run_pod("shop", "late", &["app"]);
    let trusted = Mode::Evented {
        audit_period: Duration::from_mins(5),
    };
    while node.pleg.mode() != trusted {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Half a period off, so that exactly three audits fall into three periods.
    tokio::time::sleep(Duration::from_secs(150)).await;
    let before = node.runtime.rpc_counts();
    tokio::time::sleep(Duration::from_mins(15)).await;
    let asked: Vec<_> = node.runtime.rpc_counts().since(&before).iter().collect();
    let expected = [
        (Rpc::Version, 90),
        (Rpc::ListPodSandbox, 3),
        (Rpc::ListContainers, 3),
    ];
    assert_eq!(asked, expected);
    assert_eq!(node.pleg.mode(), trusted);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_readers_of_one_pod_share_one_read_and_those_that_give_up_cost_none() {
    let node = Node::followed(Character::containerd_1_7(), |builder| {
        // No relist of the node comes to their help.
        builder
            .relist_period(Duration::from_secs(100))
            .evented_relist_period(Duration::from_secs(100))
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let uid = node.pleg.cache().list()[0].status.pod.uid.clone();
    let before = node.runtime.rpc_counts();
    let mark = node.pleg.mark().await.unwrap();
    let read = || {
        node.pleg
            .get_newer_than(uid.clone(), mark, Freshness::Phases)
    };
    let readings = futures::future::join_all((0..100).map(|_| read())).await;
    assert!(readings.iter().all(std::result::Result::is_ok));
    let asked = node.runtime.rpc_counts().since(&before);
    assert_eq!(
        (asked.of(Rpc::ListPodSandbox), asked.of(Rpc::ListContainers)),
        (1, 1)
    );

    // Given up before the driver had its turn.
    let before = node.runtime.rpc_counts();
    let mark = node.pleg.mark().await.unwrap();
    for _ in 0..100 {
        let given_up = node
            .pleg
            .get_newer_than(uid.clone(), mark, Freshness::Phases);
        assert!(given_up.now_or_never().is_none());
    }
    node.pleg.mark().await.unwrap();
    assert_eq!(node.runtime.rpc_counts().since(&before).total(), 0);
}
