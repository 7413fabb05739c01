//! Load: big nodes, bursts, a flood of events, subscribers that never read, lists of 50 MB. In virtual
//! time, over memory; what is asserted are counts, never timings.
//!
//! `cargo test --test load` plays the short form. By hand, in full, with a line for each case:
//! `PLEG_LOAD=full cargo test --profile model --test load -- --nocapture`.
#![cfg(feature = "simulate")]

mod bed;

use std::time::Duration;

use pleg::engine::HealthState;
use pleg::feed::WatchFrom;
use pleg::lifecycle::{LifecycleKind, ReportedState};
use pleg::simulate::{Character, Pod};

use self::bed::{Bed, is_full, play};

/// A time in which everything that is to follow has followed.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_node_of_a_thousand_pods_is_told_whole_and_a_burst_of_ten_thousand_ends_too() {
    play("1,000 pods x 10, burst", async |case| {
        let (pods, containers) = if is_full() { (1_000, 10) } else { (150, 10) };
        let mut bed = Bed::new(Character::default(), |builder| {
            builder.pods(pods).containers(containers)
        })
        .await;
        bed.settle(SOON).await;
        assert_eq!(
            bed.told(LifecycleKind::ContainerStarted),
            pods * containers + pods
        );
        bed.assert_converged();
        case.note("started", bed.heard());

        let running: Vec<_> = bed.runtime.world(|world| {
            let running = world.containers();
            running
                .filter(|container| container.state == ReportedState::Running)
                .map(|container| container.id.clone())
                .collect()
        });
        for id in &running {
            bed.runtime.exit_container(id, 137).unwrap();
        }
        bed.runtime.unblocked().await;
        bed.settle(SOON).await;
        assert_eq!(bed.told(LifecycleKind::ContainerDied), pods * containers);
        bed.assert_converged();
        bed.assert_nothing_lost().await;
        case.note("died", running.len());
        case.finish(&bed).await;
    });
}

#[test]
fn a_flood_of_events_is_told_event_by_event() {
    play("5,000 events/s for 5 min", async |case| {
        let (rate, seconds) = if is_full() { (5_000, 300) } else { (1_000, 4) };
        let mut bed = Bed::new(Character::default(), |builder| {
            builder.pods(100).containers(2)
        })
        .await;
        bed.settle(SOON).await;
        let before = bed.heard();
        let told_before = bed.runtime.event_counts().told;
        // A life is four messages, and three things to tell.
        let lives = rate * seconds / 4;
        for number in 0..lives {
            bed.live_and_die(number).await;
            if number % (rate / 4 / 100).max(1) == 0 {
                bed.settle(Duration::from_millis(10)).await;
            }
        }
        bed.settle(SOON).await;
        assert_eq!(
            bed.runtime.event_counts().told - told_before,
            lives as u64 * 4
        );
        assert_eq!(bed.heard() - before, lives * 3);
        bed.assert_converged();
        bed.assert_nothing_lost().await;
        let stats = bed.pleg.stats().await.unwrap();
        assert!(
            stats.engine.tombstones <= 10_000,
            "{}",
            stats.engine.tombstones
        );
        case.note("messages", lives * 4);
        case.note("tombstones", stats.engine.tombstones);
        case.finish(&bed).await;
    });
}

#[test]
fn subscribers_that_never_read_cost_the_others_nothing() {
    play("100 subscribers, 30 stalled", async |case| {
        let (pods, lives) = if is_full() {
            (100, 100_000)
        } else {
            (20, 1_500)
        };
        let mut bed = Bed::new(Character::default(), |builder| {
            builder.pods(pods).containers(2)
        })
        .await;
        bed.settle(SOON).await;
        let mut stalled: Vec<_> = (0..30)
            .map(|_| bed.pleg.watch(WatchFrom::Now).unwrap())
            .collect();
        for _ in 0..69 {
            bed.listen();
        }
        let before = bed.heard_by_each();
        for number in 0..lives {
            bed.live_and_die(number).await;
            if number % 50 == 0 {
                bed.settle(Duration::from_millis(10)).await;
            }
        }
        bed.settle(SOON).await;
        for (now, before) in bed.heard_by_each().iter().zip(&before) {
            assert_eq!(now - before, lives * 3);
        }
        bed.assert_converged();
        bed.assert_nothing_lost().await;
        // What waits for a stalled one is bounded by its capacity and by what is present.
        let stats = bed.pleg.stats().await.unwrap();
        let present = pods * 3;
        let most = stats.feed.subscribers.iter().map(|one| one.lag).max();
        assert!(
            most.is_some_and(|lag| lag <= 1_000 + 3 * present),
            "{most:?}"
        );
        assert!(stats.feed.totals.folded_whole > 0);
        // And when one reads at last, it is told what it still can be.
        let mut late = stalled.pop().unwrap();
        let mut read = 0;
        while late.try_next().is_some() {
            read += 1;
        }
        assert!(read >= 1_000, "{read}");
        case.note("events for each", lives * 3);
        case.note("longest queue", most.unwrap_or_default());
        case.note("folded whole", stats.feed.totals.folded_whole);
        case.finish(&bed).await;
    });
}

#[test]
fn five_thousand_exited_containers_at_the_start_are_each_told_once() {
    play("5,000 exited at start", async |case| {
        let (pods, each) = if is_full() { (50, 100) } else { (20, 25) };
        let mut bed = Bed::unfollowed(Character::containerd_1_7(), |builder| {
            builder.pods(pods).containers(1)
        });
        let sandboxes: Vec<_> = bed.runtime.world(|world| {
            world
                .sandboxes()
                .map(|sandbox| sandbox.id.clone())
                .collect()
        });
        bed.runtime.set_muted(true);
        for sandbox in &sandboxes {
            for _ in 0..each {
                let id = bed.runtime.run_container(sandbox, "job").unwrap();
                bed.runtime.exit_container(&id, 0).unwrap();
            }
        }
        bed.runtime.set_muted(false);
        bed.follow(|builder| builder).await;
        bed.settle(SOON).await;
        assert_eq!(bed.told(LifecycleKind::ContainerDied), pods * each);
        assert_eq!(bed.told(LifecycleKind::ContainerStarted), pods * 2);
        bed.settle(Duration::from_secs(600)).await;
        assert_eq!(
            bed.told(LifecycleKind::ContainerDied),
            pods * each,
            "told again"
        );
        bed.assert_converged();
        bed.assert_nothing_lost().await;
        case.note("exited", pods * each);
        case.finish(&bed).await;
    });
}

/// Pods whose sandboxes carry as much as makes the list so many bytes long.
fn heavy(bed: &Bed, bytes: usize) -> usize {
    const LABEL: usize = 100_000;
    let pods = bytes / LABEL;
    for number in 0..pods {
        let pod = Pod::new(
            bed.runtime.new_pod_uid(),
            "default",
            format!("heavy-{number}"),
        );
        let sandbox = bed
            .runtime
            .run_sandbox(pod.label("note", "x".repeat(LABEL)));
        bed.runtime.run_container(&sandbox, "app").unwrap();
    }
    pods
}

#[test]
fn a_list_of_fifty_megabytes_comes_by_streaming() {
    play("50 MB list by streaming", async |case| {
        let bytes = if is_full() { 50_000_000 } else { 20_000_000 };
        let mut bed = Bed::unfollowed(Character::default().with_streaming_lists(20), |builder| {
            builder
        });
        bed.runtime.set_muted(true);
        let pods = heavy(&bed, bytes);
        bed.runtime.set_muted(false);
        bed.follow(|builder| builder).await;
        bed.settle(SOON).await;
        assert_eq!(bed.told(LifecycleKind::ContainerStarted), pods * 2);
        bed.assert_converged();
        bed.assert_nothing_lost().await;
        case.note("bytes", bytes);
        case.finish(&bed).await;
    });
}

#[test]
fn a_unary_list_over_the_limit_is_said_so_and_nothing_is_made_up() {
    play("unary list over the limit", async |case| {
        let bytes = if is_full() { 50_000_000 } else { 20_000_000 };
        let mut bed = Bed::unfollowed(Character::default(), |builder| builder);
        bed.runtime.set_muted(true);
        let pods = heavy(&bed, bytes);
        bed.runtime.set_muted(false);
        bed.begin(|builder| builder);
        // Longer than any threshold.
        bed.settle(Duration::from_secs(200)).await;
        assert_eq!(bed.heard(), 0);
        assert!(bed.pleg.cache().list().is_empty());
        let health = bed.pleg.health().await.unwrap();
        assert_ne!(health.state, HealthState::Healthy);
        case.note("says", format!("{health}"));
        // It is upgraded to one that streams, and all is told.
        let mut upgraded = Character::default().with_streaming_lists(20);
        upgraded.runtime_version = "v2.9.0".into();
        bed.runtime.become_character(upgraded);
        bed.settle(Duration::from_secs(120)).await;
        assert_eq!(bed.told(LifecycleKind::ContainerStarted), pods * 2);
        bed.assert_converged();
        case.finish(&bed).await;
    });
}
