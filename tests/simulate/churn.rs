use std::collections::BTreeSet;
use std::time::Duration;

use pleg::lifecycle::UnixNanos;
use pleg::simulate::{Character, ChurnKind, SimulatedRuntime, World};

use crate::client::{Client, cri};
use crate::{EPOCH, builder};

/// A busy node and all that a client hears of it in `time`.
async fn watched(
    seed: u64,
    time: Duration,
) -> (SimulatedRuntime, Vec<cri::ContainerEventResponse>) {
    let runtime = builder(Character::containerd_2())
        .busy_node()
        .seed(seed)
        .build();
    let mut events = Client::to(&runtime).events(&runtime).await;
    let ended = tokio::time::timeout(time, runtime.churn()).await;
    assert!(ended.is_err(), "churn goes on for ever");
    let heard = events.drain().await;
    (runtime, heard)
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_starts_with_plausible_pods() {
    let runtime = builder(Character::containerd_2()).busy_node().build();
    runtime.world(|world| {
        let pods: Vec<_> = world.sandboxes().map(|sandbox| &sandbox.pod).collect();
        assert_eq!(pods.len(), 8);
        let has = |namespace: &str, name: &str| {
            pods.iter()
                .any(|pod| &*pod.namespace == namespace && pod.name.starts_with(name))
        };
        assert!(has("kube-system", "etcd-node-1"));
        assert!(has("kube-system", "coredns-"));
        assert!(has("shop", "payments-0"));
        assert!(has("default", "web-"));
        for sandbox in world.sandboxes() {
            let containers = world.containers_in(&sandbox.id).count();
            assert!((1..=3).contains(&containers));
            assert!(sandbox.created_at < EPOCH);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn ten_seconds_of_churn_tell_well_over_twenty_things() {
    let (runtime, heard) = watched(1, Duration::from_secs(10)).await;
    assert!((40..400).contains(&heard.len()), "{}", heard.len());
    assert_eq!(runtime.event_counts().dropped, 0);
    let subjects: BTreeSet<_> = heard.iter().map(|event| &event.container_id).collect();
    assert!(subjects.len() > 10);
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_events_at_the_same_moments() {
    let (_, first) = watched(7, Duration::from_mins(1)).await;
    let (_, second) = watched(7, Duration::from_mins(1)).await;
    let (_, other) = watched(8, Duration::from_mins(1)).await;
    assert_eq!(first, second);
    assert_ne!(first, other);
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_churn_show_every_kind_of_end_and_does_not_pile_up() {
    let (runtime, heard) = watched(3, Duration::from_mins(10)).await;
    let codes: BTreeSet<i32> = heard
        .iter()
        .flat_map(|event| &event.containers_statuses)
        .filter(|status| status.state() == cri::ContainerState::ContainerExited)
        .map(|status| status.exit_code)
        .collect();
    for code in [0, 1, 2, 128, 137, 139, 143, 255] {
        assert!(codes.contains(&code), "{code} of {codes:?}");
    }
    let attempts: BTreeSet<u32> = heard
        .iter()
        .filter_map(|event| event.pod_sandbox_status.as_ref()?.metadata.as_ref())
        .map(|metadata| metadata.attempt)
        .collect();
    assert!(attempts.contains(&1), "sandboxes are replaced");
    runtime.world(|world| {
        assert!((4..=16).contains(&world.sandboxes().count()));
        assert!(world.containers().count() <= 16 * 3 * 3);
    });
    let rate = heard.len() / 600;
    assert!((6..20).contains(&rate), "{rate} events a second");
}

#[tokio::test(start_paused = true)]
async fn the_runtime_can_drive_its_churn_itself() {
    let runtime = builder(Character::containerd_2()).busy_node().build();
    let churn = runtime.spawn_churn();
    tokio::time::sleep(Duration::from_secs(10)).await;
    drop(churn);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = runtime.event_counts().told;
    assert!(told > 20, "{told}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(runtime.event_counts().told, told);
}

#[tokio::test(start_paused = true)]
async fn churn_shares_the_runtime_with_whoever_operates_by_hand() {
    let runtime = builder(Character::containerd_1_7())
        .pods(3)
        .containers(2)
        .churn(20.0)
        .build();
    let _churn = runtime.spawn_churn();
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let first = runtime
            .world(|world: &World| world.sandboxes().next().map(|sandbox| sandbox.id.clone()));
        if let Some(sandbox) = first {
            runtime.remove_sandbox(&sandbox).unwrap();
        }
    }
    assert_eq!(runtime.now(), UnixNanos(EPOCH.0 + 50_000_000_000));
    assert!(runtime.event_counts().told > 500);
}

#[tokio::test(start_paused = true)]
async fn a_high_rate_is_kept_though_timers_are_coarse() {
    let runtime = builder(Character::containerd_2())
        .pods(50)
        .churn(2000.0)
        .build();
    let mut events = Client::to(&runtime).events(&runtime).await;
    let time = Duration::from_secs(5);
    let _ = tokio::time::timeout(time, runtime.churn()).await;
    let transitions = events
        .drain()
        .await
        .iter()
        .filter(|event| matches!(event.container_event_type, 1 | 2))
        .filter(|event| {
            let sandbox = event.pod_sandbox_status.as_ref().map(|sandbox| &sandbox.id);
            sandbox != Some(&event.container_id)
        })
        .count();
    assert!((9_000..=11_000).contains(&transitions), "{transitions}");
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_as_many_transitions_at_one_moment_and_all_are_heard() {
    let runtime = builder(Character::containerd_2())
        .pods(20)
        .containers(3)
        .build();
    let mut events = Client::to(&runtime).events(&runtime).await;
    assert_eq!(runtime.burst(501), 501);
    let heard = events.drain().await;
    let of = |kind: i32| {
        heard
            .iter()
            .filter(|event| event.container_event_type == kind)
            .count()
    };
    assert_eq!((of(1), of(2)), (250, 251));
    assert_eq!(of(0), 250);
    assert!(of(3) > 100, "dead containers are removed");
    assert_eq!(heard.len() as u64, runtime.event_counts().told);
    let moments: BTreeSet<i64> = heard.iter().map(|event| event.created_at).collect();
    assert_eq!(moments.len(), 1);
    let running = runtime.world(|world| {
        world
            .containers()
            .filter(|container| !container.is_exited())
            .count()
    });
    assert_eq!(running, 59);

    let empty = builder(Character::containerd_2()).build();
    assert_eq!(empty.burst(10), 0);
}

#[tokio::test(start_paused = true)]
async fn restarts_alone_leave_the_pods_as_they_are_and_tell_every_end_and_start() {
    let runtime = builder(Character::containerd_2())
        .pods(8)
        .containers(3)
        .churn(10.0)
        .churn_kind(ChurnKind::Restarts)
        .build();
    let sandboxes = |world: &World| -> Vec<_> {
        let ids = world.sandboxes().map(|sandbox| sandbox.id.clone());
        ids.collect()
    };
    let before = runtime.world(sandboxes);
    let mut events = Client::to(&runtime).events(&runtime).await;
    let ended = tokio::time::timeout(Duration::from_mins(1), runtime.churn()).await;
    assert!(ended.is_err(), "churn goes on for ever");
    let heard = events.drain().await;
    assert_eq!(runtime.world(sandboxes), before);
    let of = |kind: cri::ContainerEventType| {
        let its = heard.iter().filter(|it| it.container_event_type() == kind);
        its.count()
    };
    let (stopped, created, started) = (
        of(cri::ContainerEventType::ContainerStoppedEvent),
        of(cri::ContainerEventType::ContainerCreatedEvent),
        of(cri::ContainerEventType::ContainerStartedEvent),
    );
    assert!((270..330).contains(&stopped), "{stopped} ends");
    assert_eq!(created, started);
    assert!(stopped - started <= 1, "{stopped} ends, {started} starts");
    runtime.world(|world| {
        let running = world.containers().filter(|it| !it.is_exited()).count();
        assert!(running >= 8 * 3 - 1, "{running} run");
        // One dead one of each name at most, as the kubelet keeps them, and the last.
        assert!(world.containers().count() <= 8 * 3 * 2 + 1);
    });
}
