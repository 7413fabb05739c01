//! The test bed, the driver and the scenarios without `pleg`: that they work, and that the runtimes'
//! own events tell what a story says is true.

use std::time::Duration;

use pleg::lifecycle::LifecycleKind;
use tokio::time::{Instant, sleep, timeout_at};

use crate::account::Account;
use crate::disturbances::{
    OtherEventClient, a_backlog_of_events, a_client_that_stops_reading,
    a_container_exits_while_the_runtime_is_dead, a_container_exits_while_the_runtime_is_frozen,
    a_pod_with_large_events, a_short_pod, create_until_blocked, pods_can_be_made,
};
use crate::driver::{Call, Driver};
use crate::raw_events::raw_events;
use crate::scenarios;
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};
use crate::truth::Sight;

/// Enough for whatever the runtime says by itself.
const SOON: Duration = Duration::from_secs(5);

on_each_runtime![
    the_version_is_the_one_asked_for,
    every_scenario_can_be_played,
    a_runtime_that_dies_can_be_started_again,
    a_frozen_runtime_goes_on,
];

async fn the_version_is_the_one_asked_for(version: Version) {
    let driver = Driver::new(&Testbed::shared(version).await.socket());
    let (name, number) = driver.version().await.expect("it answers");
    assert_eq!(name, "containerd");
    assert!(
        number.starts_with(version.label()),
        "{number} for {version:?}"
    );
}

/// On the shared daemon: the steps themselves check that the runtime does what they say.
async fn every_scenario_can_be_played(version: Version) {
    let driver = Driver::new(&Testbed::shared(version).await.socket());
    for truth in scenarios::all_at_once(&driver).await {
        assert!(
            truth
                .lives
                .iter()
                .all(|life| life.is_past(LifecycleKind::ContainerRemoved))
        );
    }
    let operations = driver.operations();
    assert!(
        operations
            .iter()
            .all(|done| done.span.begun <= done.span.ended)
    );
    let failed = operations.iter().filter(|done| done.failure.is_some());
    let failed: Vec<_> = failed.map(|done| &done.call).collect();
    assert!(
        matches!(failed[..], [Call::Start(_)]),
        "only one start fails: {failed:?}"
    );
}

async fn a_runtime_that_dies_can_be_started_again(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let mut story = Story::new(&driver, "dies-in-the-dark");
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    a_container_exits_while_the_runtime_is_dead(&bed, &mut story, &app, Duration::ZERO).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
    bed.terminate().await;
    assert!(!bed.is_running());
    assert!(bed.stop(), "nothing is left behind");
}

async fn a_frozen_runtime_goes_on(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let mut story = Story::new(&driver, "dies-unheard");
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    let frozen_for = Duration::from_secs(2);
    a_container_exits_while_the_runtime_is_frozen(&bed, &mut story, &app, frozen_for).await;
    // The daemon is ended frozen and with a running pod: the guard cleans that up too.
    bed.freeze();
    assert!(bed.is_running());
    assert!(bed.stop(), "nothing is left behind");
}

#[tokio::test]
async fn the_events_of_containerd_17_tell_the_truth() {
    the_runtimes_events_tell_the_truth(Version::Containerd17).await;
}

#[tokio::test]
async fn the_events_of_containerd_21_tell_the_truth() {
    the_runtimes_events_tell_the_truth(Version::Containerd21).await;
}

/// But for a start that fails, which gives no event.
async fn the_runtimes_events_tell_the_truth(version: Version) {
    let bed = Testbed::start(version).await;
    let account = Account::of(raw_events(&bed));
    let driver = Driver::new(&bed.socket());
    for truth in scenarios::all_at_once(&driver).await {
        let wrong = account.mistakes(&truth, Sight::EveryChange, SOON).await;
        if &*truth.pod.name == "a-start-fails" {
            let gap = "not told: Change { kind: ContainerDied, exit_code: Some(128)";
            assert!(wrong.len() == 1 && wrong[0].starts_with(gap), "{wrong:#?}");
        } else {
            assert_eq!(wrong, [""; 0], "of {}", truth.pod.name);
        }
    }
}

#[tokio::test]
async fn containerd_17_keeps_a_backlog_for_who_comes_late() {
    the_runtime_keeps_a_backlog(Version::Containerd17).await;
}

#[tokio::test]
async fn containerd_21_keeps_a_backlog_for_who_comes_late() {
    the_runtime_keeps_a_backlog(Version::Containerd21).await;
}

async fn the_runtime_keeps_a_backlog(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let (gone, story, _) = a_backlog_of_events(&driver).await;
    let account = Account::of(raw_events(&bed));
    assert!(
        account
            .until_told(story.truth(), Sight::EveryChange, SOON)
            .await
    );
    for pod in gone {
        assert_eq!(
            account.of_pod(&pod).len(),
            6,
            "start, death and end of sandbox and container"
        );
    }
}

#[tokio::test]
async fn two_event_clients_of_containerd_17_take_events_from_each_other() {
    let bed = Testbed::start(Version::Containerd17).await;
    let driver = Driver::new(&bed.socket());
    let (one, other) = (OtherEventClient::open(&bed), OtherEventClient::open(&bed));
    sleep(Duration::from_millis(200)).await;
    a_short_pod(&driver).await;
    // Created, started, stopped and deleted: the sandbox and the container.
    let deadline = Instant::now() + Duration::from_secs(5);
    while one.received().len() + other.received().len() < 8 {
        timeout_at(deadline, sleep(Duration::from_millis(20)))
            .await
            .expect("the events come");
    }
    assert!(!one.received().is_empty() && !other.received().is_empty());
    assert_eq!(
        one.received().len() + other.received().len(),
        8,
        "each event went to one of them"
    );
}

#[tokio::test]
async fn a_client_that_stops_reading_freezes_containerd_21_until_it_is_gone() {
    let bed = Testbed::start(Version::Containerd21).await;
    let driver = Driver::new(&bed.socket());
    let asleep = tokio::spawn(a_client_that_stops_reading(bed.socket()));
    sleep(Duration::from_millis(200)).await;
    let (mut story, sandbox) = a_pod_with_large_events(&driver).await;
    let asleep = asleep.await.expect("it has had its first event");
    let created = create_until_blocked(&mut story, &sandbox).await;
    assert!(created.is_some(), "the runtime went on");
    assert!(!pods_can_be_made(&driver).await);
    drop(asleep);
    assert!(pods_can_be_made(&driver).await);
}
