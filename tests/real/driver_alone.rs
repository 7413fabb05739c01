//! The test bed, the driver and the scenarios without `pleg`: that they work, and that the runtimes'
//! own events tell what a story says is true.

use std::time::Duration;

use pleg::lifecycle::{LifecycleKind, SubjectId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::disturbances::{
    OtherEventClient, a_client_that_stops_reading, a_container_exits_while_the_runtime_is_dead,
    a_container_exits_while_the_runtime_is_frozen, a_pod_with_large_events, create_until_blocked,
    pods_can_be_made,
};
use crate::driver::{Driver, container_events, wall_clock};
use crate::scenarios;
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};
use crate::truth::{Sight, Told, Truth};
use crate::wire::{ContainerEventResponse, ContainerEventType};

/// Makes one test for each runtime of a function that takes the version.
macro_rules! on_each_runtime {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::testbed::Version;

            #[tokio::test]
            async fn containerd_16() {
                super::$test(Version::Containerd16).await;
            }

            #[tokio::test]
            async fn containerd_17() {
                super::$test(Version::Containerd17).await;
            }

            #[tokio::test]
            async fn containerd_21() {
                super::$test(Version::Containerd21).await;
            }
        }
    )+};
}

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
    assert!(number.starts_with(version.label()), "{number} for {version:?}");
}

/// On the shared daemon: the steps themselves check that the runtime does what they say.
async fn every_scenario_can_be_played(version: Version) {
    let driver = Driver::new(&Testbed::shared(version).await.socket());
    for truth in scenarios::all_at_once(&driver).await {
        assert!(truth.lives.iter().all(|life| life.is_past(LifecycleKind::ContainerRemoved)));
    }
    let failed = driver.operations().into_iter().filter(|done| done.failure.is_some());
    assert_eq!(failed.count(), 1, "the start that fails");
}

async fn a_runtime_that_dies_can_be_started_again(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let mut story = Story::new(&driver, "dies-in-the-dark");
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    a_container_exits_while_the_runtime_is_dead(&bed, &mut story, &app).await;
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
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let socket = bed.socket();
    let reader = tokio::spawn(async move {
        let mut events = container_events(&socket).await.expect("the stream opens");
        while let Ok(Some(event)) = events.message().await {
            if sender.send((wall_clock(), event)).is_err() {
                return;
            }
        }
    });
    let driver = Driver::new(&bed.socket());
    let truths = scenarios::all_at_once(&driver).await;

    let mut told = Vec::new();
    let silence = Duration::from_secs(2);
    while let Ok(Some((at, event))) = timeout(silence, receiver.recv()).await {
        told.extend(truths.iter().find_map(|truth| told_by(&event, at, truth)));
    }
    reader.abort();
    for truth in &truths {
        let wrong = truth.discrepancies(&told, Sight::EveryChange);
        if &*truth.pod.name == "a-start-fails" {
            let gap = "not told: Change { kind: ContainerDied, exit_code: Some(128)";
            assert!(wrong.len() == 1 && wrong[0].starts_with(gap), "{wrong:#?}");
        } else {
            assert_eq!(wrong, [""; 0], "of {}", truth.pod.name);
        }
    }
}

/// What a stream message says about a subject of this pod.
fn told_by(
    event: &ContainerEventResponse,
    at: pleg::lifecycle::UnixNanos,
    truth: &Truth,
) -> Option<Told> {
    let mut subjects = truth.lives.iter().map(|life| life.subject.id());
    let subject = subjects.find(|subject| subject.as_str() == event.container_id)?;
    let kind = match event.container_event_type() {
        ContainerEventType::ContainerCreatedEvent => return None,
        ContainerEventType::ContainerStartedEvent => LifecycleKind::ContainerStarted,
        ContainerEventType::ContainerStoppedEvent => LifecycleKind::ContainerDied,
        ContainerEventType::ContainerDeletedEvent => LifecycleKind::ContainerRemoved,
    };
    // A sandbox is ready when created and again when started: containerd tells both.
    let statuses = &event.containers_statuses;
    let own = statuses.iter().find(|status| status.id == event.container_id);
    let exit_code = match (&subject, kind) {
        (SubjectId::Container(_), LifecycleKind::ContainerDied) => own.map(|own| own.exit_code),
        _ => None,
    };
    Some(Told {
        pod: truth.pod.uid.clone(),
        subject,
        kind,
        exit_code,
        at,
    })
}

#[tokio::test]
async fn two_event_clients_of_containerd_17_take_events_from_each_other() {
    let bed = Testbed::start(Version::Containerd17).await;
    let driver = Driver::new(&bed.socket());
    let (one, other) = (OtherEventClient::open(&bed), OtherEventClient::open(&bed));
    sleep(Duration::from_millis(200)).await;
    assert!(pods_can_be_made(&driver).await);
    // Two of a sandbox's start, four of a container's life less its removal, two or three of the end.
    let deadline = Instant::now() + Duration::from_secs(5);
    while one.received() + other.received() < 8 {
        timeout_at(deadline, sleep(Duration::from_millis(20))).await.expect("the events come");
    }
    assert!(one.received() > 0 && other.received() > 0);
    assert_eq!(one.received() + other.received(), 8, "each event went to one of them");
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
