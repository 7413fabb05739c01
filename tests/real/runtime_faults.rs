//! What `pleg` reports while the runtime itself dies, freezes and comes back. Each test has a daemon and an
//! observer of its own.

use std::time::Duration;

use pleg::engine::{Mode, ModeChange, PollingReason};
use pleg::lifecycle::{ContainerId, EventSubject, LifecycleKind, PodIdentity, UnixNanos};
use tokio::time::sleep;

use crate::disturbances::{
    a_container_exits_while_the_runtime_is_dead, a_container_exits_while_the_runtime_is_frozen,
};
use crate::driver::{Driver, Sandbox, wall_clock};
use crate::observer::Observer;
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};

/// The longest wait between two tries to reopen the stream.
const BACK_OFF_CAP: Duration = Duration::from_secs(60);

/// From the return of the runtime's socket to the news of what happened meanwhile.
const NEWS_AFTER_RESTART: Duration = Duration::from_millis(2_500);

on_each_runtime![
    an_exit_while_the_runtime_is_dead_is_told_once_it_is_back,
    an_exit_while_the_runtime_is_frozen_is_told_once_it_goes_on,
];

async fn an_exit_while_the_runtime_is_dead_is_told_once_it_is_back(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let observer = Observer::attach(&bed).await;
    let (mut story, sandbox, app) = an_app_that_runs(&observer, &driver, version).await;

    let dead_for = Duration::from_secs(15);
    let served_again =
        a_container_exits_while_the_runtime_is_dead(&bed, &mut story, &app, dead_for).await;
    assert!(observer.until_told(story.truth(), version.sight()).await);
    let deaths = deaths_of(&observer, story.pod(), &app);
    let [told] = deaths[..] else {
        panic!("told {} times", deaths.len());
    };
    let late = Duration::from_nanos(u64::try_from(told.0 - served_again.0).unwrap_or(0));
    println!(
        "containerd {}: the death was told {} ms after the socket was back",
        version.label(),
        (told.0 - served_again.0) / 1_000_000
    );
    assert!(late <= NEWS_AFTER_RESTART, "told after {late:?}");

    assert!(
        observer
            .until_mode(BACK_OFF_CAP, |mode| version.is_followed_by(mode))
            .await,
        "{}",
        observer.pleg.mode()
    );
    println!(
        "containerd {}: {} again {} ms after the socket was back",
        version.label(),
        observer.pleg.mode(),
        (wall_clock().0 - served_again.0) / 1_000_000
    );
    if version != Version::Containerd16 {
        let broken = PollingReason::StreamBroken;
        assert!(was_polling(&observer.mode_changes(), broken));
    }
    the_story_ends_well(&observer, &driver, story, &sandbox, version).await;
}

async fn an_exit_while_the_runtime_is_frozen_is_told_once_it_goes_on(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let observer = Observer::attach(&bed).await;
    let (mut story, sandbox, app) = an_app_that_runs(&observer, &driver, version).await;

    let frozen_for = Duration::from_secs(20);
    a_container_exits_while_the_runtime_is_frozen(&bed, &mut story, &app, frozen_for).await;
    assert!(observer.until_told(story.truth(), version.sight()).await);
    assert_eq!(deaths_of(&observer, story.pod(), &app).len(), 1);
    if version != Version::Containerd16 {
        let frozen = PollingReason::Unresponsive;
        assert!(
            was_polling(&observer.mode_changes(), frozen),
            "{:?}",
            observer.mode_changes()
        );
    }
    assert!(
        observer
            .until_mode(BACK_OFF_CAP, |mode| version.is_followed_by(mode))
            .await,
        "{}",
        observer.pleg.mode()
    );
    the_story_ends_well(&observer, &driver, story, &sandbox, version).await;
}

/// A pod whose container runs, on a runtime that is followed as it should be.
async fn an_app_that_runs(
    observer: &Observer,
    driver: &Driver,
    version: Version,
) -> (Story, Sandbox, ContainerId) {
    let mut story = Story::new(driver, "outlives-the-runtime");
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    assert!(observer.until_told(story.truth(), version.sight()).await);
    assert!(
        observer
            .until_mode(BACK_OFF_CAP, |mode| version.is_followed_by(mode))
            .await
    );
    // Long enough to be seen by a poller too.
    sleep(Duration::from_secs(3)).await;
    (story, sandbox, app)
}

/// What follows is told as if nothing had happened, and the cache is what the runtime lists.
async fn the_story_ends_well(
    observer: &Observer,
    driver: &Driver,
    mut story: Story,
    sandbox: &Sandbox,
    version: Version,
) {
    let second = story.create(sandbox, "app", Program::Forever).await;
    story.start(&second).await;
    sleep(Duration::from_secs(3)).await;
    let differences = observer.differences_of_node(driver).await;
    assert!(differences.is_empty(), "{differences:#?}");
    story.stop_sandbox(sandbox).await;
    story.remove_sandbox(sandbox).await;
    let wrong = observer
        .mistakes(story.truth(), version.sight(), driver)
        .await;
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nheard: {:#?}\nmodes: {:#?}",
        observer.heard_of(story.pod()),
        observer.mode_changes()
    );
    let differences = observer.differences_of_node(driver).await;
    assert!(differences.is_empty(), "{differences:#?}");
    let counters = observer.stats().await.engine.counters;
    assert!(counters.missed.is_empty(), "{:?}", counters.missed);
}

/// When the death of a container was told.
fn deaths_of(observer: &Observer, pod: &PodIdentity, id: &ContainerId) -> Vec<UnixNanos> {
    let heard = observer.heard_of(pod);
    let deaths = heard.iter().filter(|heard| {
        let is_its = matches!(
            &heard.event.subject,
            Some(EventSubject::Container { id: its, .. }) if its == id
        );
        is_its && heard.event.kind == LifecycleKind::ContainerDied
    });
    deaths.map(|heard| heard.at).collect()
}

fn was_polling(changes: &[ModeChange], why: PollingReason) -> bool {
    changes
        .iter()
        .any(|change| change.to == Mode::Polling { reason: why })
}
