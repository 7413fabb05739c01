//! What `pleg` reports of pods on a runtime that is well, held against what the driver did.
//!
//! The topics of one runtime share a daemon and an observer and run side by side, as on a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pleg::cache::Cached;
use pleg::engine::{Mode, PollingReason};
use pleg::lifecycle::{PodStatus, ReportedState, SubjectKind};
use tokio::time::sleep;

use crate::driver::Driver;
use crate::observer::Observer;
use crate::runtime_lists::{Entry, listed_of_pod};
use crate::scenarios::{self, LASTING};
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};
use crate::truth::Sight;

/// What a poller sees on a busy machine, which relists each second: less than every phase of a
/// scenario that is meant to be seen, more than every other.
const POLLED: Duration = Duration::from_millis(2_500);

impl Version {
    /// What `pleg` can be expected to tell of this runtime.
    pub(crate) fn sight(self) -> Sight {
        match self {
            Self::Containerd16 => Sight::PhasesOf(POLLED),
            Self::Containerd17 | Self::Containerd21 => Sight::EveryChange,
        }
    }

    /// The mode that follows this runtime while all is well.
    pub(crate) fn is_followed_by(self, mode: Mode) -> bool {
        match self {
            Self::Containerd16 => matches!(
                mode,
                Mode::Polling {
                    reason: PollingReason::Unsupported
                }
            ),
            Self::Containerd17 | Self::Containerd21 => matches!(mode, Mode::Evented { .. }),
        }
    }
}

/// Makes one test for each runtime of each scenario.
macro_rules! on_the_shared_daemons {
    ($($scenario:ident),+ $(,)?) => {
        $(async fn $scenario(version: Version) {
            let driver = Driver::new(&Testbed::shared(version).await.socket());
            let observer = Observer::shared(version).await;
            let mut story = Story::new(&driver, &stringify!($scenario).replace('_', "-"));
            scenarios::$scenario(&mut story).await;
            holds(observer, &driver, &story).await;
        })+
        on_each_runtime![$($scenario),+];
    };
}

on_the_shared_daemons![
    a_sandbox_runs_stops_and_is_removed,
    a_container_exits_with_zero,
    a_container_exits_with_seven,
    a_container_is_terminated,
    a_container_is_killed,
    a_start_fails,
    a_container_lives_under_ten_milliseconds,
    three_containers_share_a_pod,
];

on_each_runtime![
    a_pod_with_a_new_sandbox_keeps_it,
    the_cache_is_what_the_runtime_lists_in_every_state,
];

/// Told rightly and once, by the right mode; nothing was missed, for nobody takes events away.
async fn holds(observer: &Observer, driver: &Driver, story: &Story) {
    let version = Version::of(driver).await;
    let wrong = observer
        .mistakes(story.truth(), version.sight(), driver)
        .await;
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nheard: {:#?}",
        observer.heard_of(story.pod())
    );
    assert_eq!(observer.cached(story.pod()), None, "its pod is gone");
    assert!(
        observer
            .until_mode(Duration::from_secs(5), |mode| version.is_followed_by(mode))
            .await,
        "{}",
        observer.pleg.mode()
    );
    let counters = observer.stats().await.engine.counters;
    assert!(counters.missed.is_empty(), "{:?}", counters.missed);
    assert_eq!(counters.steps_back, 0);
}

impl Version {
    async fn of(driver: &Driver) -> Self {
        let (_, number) = driver.version().await.expect("it answers");
        [Self::Containerd16, Self::Containerd17, Self::Containerd21]
            .into_iter()
            .find(|version| number.starts_with(version.label()))
            .expect("a version of the suite")
    }
}

/// While the first sandbox is stopped and removed, the cache shows the second one first, with its
/// address and its container, at every moment.
async fn a_pod_with_a_new_sandbox_keeps_it(version: Version) {
    let driver = Driver::new(&Testbed::shared(version).await.socket());
    let observer = Observer::shared(version).await;
    let mut story = Story::new(&driver, "a-pod-with-a-new-sandbox-keeps-it");
    let pod = story.pod().clone();
    let over = Arc::new(AtomicBool::new(false));
    let watch = {
        let over = Arc::clone(&over);
        let cache = observer.pleg.cache().clone();
        let cached = move || cache.get(&pod.uid);
        tokio::spawn(async move { losses_of_the_second_sandbox(cached, &over).await })
    };
    scenarios::a_sandbox_is_re_created_under_the_same_pod(&mut story).await;
    over.store(true, Ordering::Relaxed);
    let (complete, losses) = watch.await.expect("the watch ends");
    assert!(losses.is_empty(), "{losses:#?}");
    // At least for as long as it lasted beside and after the first one.
    assert!(complete > 100, "seen only {complete} times");
    holds(observer, &driver, &story).await;
}

/// Looks at a pod's status until `over`. Returns how often the second sandbox was seen ready with its
/// address and its container, and what was wrong from the first such moment until it ended.
async fn losses_of_the_second_sandbox(
    cached: impl Fn() -> Option<Cached>,
    over: &AtomicBool,
) -> (usize, Vec<String>) {
    let (mut complete, mut wrong) = (0, Vec::new());
    let mut address = None;
    let mut has_ended = false;
    while !over.load(Ordering::Relaxed) && !has_ended {
        let pod = cached();
        let status = pod.as_ref().map(|pod| &*pod.status);
        match status.and_then(address_of_the_second) {
            Some(seen) => {
                complete += 1;
                let first = address.get_or_insert_with(|| seen.clone());
                if *first != seen {
                    wrong.push(format!("its address was {first}: {status:?}"));
                }
            }
            None if address.is_some() => {
                has_ended = status.is_some_and(|status| {
                    let second = status.sandboxes.first();
                    let containers = &status.containers;
                    let app = containers.iter().find(|app| app.attempt == 1);
                    second.is_some_and(|second| second.attempt == 1)
                        && app.is_none_or(|app| app.state == ReportedState::Exited)
                });
                if !has_ended {
                    wrong.push(format!("the second sandbox was lost: {status:?}"));
                }
            }
            None => {}
        }
        sleep(Duration::from_millis(3)).await;
    }
    (complete, wrong)
}

/// The pod's address, if its second sandbox is ready, stands first, gave the pod that address, and has
/// its container running.
fn address_of_the_second(status: &PodStatus) -> Option<String> {
    let second = status.sandboxes.first()?;
    let address = status.ips.first()?;
    let app = status.container("app")?;
    (second.attempt == 1
        && second.state == ReportedState::Running
        && second.ips.first() == Some(address)
        && app.attempt == 1
        && app.state == ReportedState::Running
        && app.sandbox_id.as_ref() == Some(&second.id))
    .then(|| address.to_string())
}

/// Created, running, exited, failed to start; ready and not ready; with codes, reasons, times and
/// addresses.
async fn the_cache_is_what_the_runtime_lists_in_every_state(version: Version) {
    let driver = Driver::new(&Testbed::shared(version).await.socket());
    let observer = Observer::shared(version).await;
    let mut story = Story::new(&driver, "every-state");
    let first = story.run_sandbox().await;
    story.run(&first, "old", Program::Exits(0), 0).await;
    story.stop_sandbox(&first).await;
    let second = story.run_sandbox().await;
    story.create(&second, "created", Program::Forever).await;
    let failed = story.create(&second, "failed", Program::Missing).await;
    story.start_fails(&failed).await;
    story.run(&second, "dead", Program::Exits(7), 7).await;
    let running = story.create(&second, "running", Program::Forever).await;
    story.start(&running).await;
    let differences = observer.differences(story.pod(), &driver).await;
    assert!(differences.is_empty(), "{differences:#?}");

    let listed = listed_of_pod(&driver, story.pod()).await;
    let of_kind = |kind| {
        let is_of_kind = move |entry: &&Entry| match entry {
            Entry::Sandbox { .. } => kind == SubjectKind::Sandbox,
            Entry::Container { .. } => kind == SubjectKind::Container,
        };
        listed.iter().filter(is_of_kind).count()
    };
    assert_eq!(of_kind(SubjectKind::Sandbox), 2);
    assert_eq!(of_kind(SubjectKind::Container), 5);

    sleep(LASTING).await;
    story.stop_sandbox(&second).await;
    let differences = observer.differences(story.pod(), &driver).await;
    assert!(differences.is_empty(), "stopped: {differences:#?}");
    story.remove_sandbox(&first).await;
    story.remove_sandbox(&second).await;
    let differences = observer.differences(story.pod(), &driver).await;
    assert!(differences.is_empty(), "gone: {differences:#?}");
    assert_eq!(observer.cached(story.pod()), None);
}
