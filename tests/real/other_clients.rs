//! What `pleg` makes of an event stream that is not its own from the first event to the last: containerd
//! 1.7 has one queue for all clients and keeps it while nobody listens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use pleg::engine::{Ignored, Mode, PollingReason, SubjectEvent};
use pleg::lifecycle::{EventKind, EventSubject, LifecycleKind, Source, SubjectId, SubjectKind};
use tokio::time::sleep;

use crate::disturbances::{OtherEventClient, a_backlog_of_events, a_short_pod};
use crate::driver::Driver;
use crate::observer::{Heard, Observer};
use crate::scenarios::LASTING;
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};
use crate::truth::Sight;
use crate::wire::ContainerEventType;

/// How long each phase lasts where events are stolen: longer than the longest audit period there and
/// the time that the stream has to tell a change after a read has.
const PHASE: Duration = Duration::from_secs(8);
const LONGEST_AUDIT_PERIOD: Duration = Duration::from_secs(4);

/// Many enough that of each kind of change some events go to either client.
const PODS: usize = 8;

#[tokio::test]
async fn every_change_that_another_client_stole_is_found_and_counted() {
    let bed = Testbed::start(Version::Containerd17).await;
    let driver = Driver::new(&bed.socket());
    let observer = Observer::attach_with(&bed, |builder| {
        builder.evented_relist_period(LONGEST_AUDIT_PERIOD)
    })
    .await;
    let trusted = |mode| matches!(mode, Mode::Evented { audit_period } if audit_period == LONGEST_AUDIT_PERIOD);
    assert!(observer.until_mode(Duration::from_secs(30), trusted).await);

    let thief = OtherEventClient::open(&bed);
    // Its call reaches the runtime; before the first event nothing says so.
    sleep(Duration::from_secs(1)).await;
    let mut stories: Vec<Story> = (0..PODS)
        .map(|number| Story::new(&driver, &format!("robbed-{number}")))
        .collect();
    join_all(stories.iter_mut().map(a_slow_life)).await;

    for story in &stories {
        let wrong = observer
            .mistakes(story.truth(), Sight::PhasesOf(PHASE / 2), &driver)
            .await;
        assert!(
            wrong.is_empty(),
            "{wrong:#?}\nheard: {:#?}",
            observer.heard_of(story.pod())
        );
    }
    // The last changes have their grace.
    sleep(Duration::from_secs(3)).await;
    let stolen = stolen_changes(&thief, &stories);
    let heard = observer.heard();
    let found = found_by_reads(&heard, &stolen);
    let counters = observer.stats().await.engine.counters;
    let mut missed = BTreeMap::new();
    for ((subject, event), count) in counters.missed {
        // A read between the two stolen events of a creation and a start has the first one missed, and
        // the second within the grace of the first.
        let event = event.max(EventKind::Started);
        *missed.entry((subject, event)).or_default() += count;
    }
    assert_eq!(missed, found, "stolen: {stolen:#?}\nheard: {heard:#?}");
    let found: u64 = found.values().sum();
    println!("{} changes stolen, {found} found by reads", stolen.len());
    // Of a sandbox's two first events either shows it ready; each other stolen change takes a read.
    let others = stolen.iter().filter(|(id, kind)| {
        (id.kind(), *kind) != (SubjectKind::Sandbox, LifecycleKind::ContainerStarted)
    });
    let others = others.count();
    assert!(others >= PODS, "it stole only {others}");
    assert!(found >= others as u64, "{found} of {others} found by reads");

    let untrusted = |change: &pleg::engine::ModeChange| {
        change.to
            == Mode::Polling {
                reason: PollingReason::Untrusted,
            }
    };
    assert!(
        observer.mode_changes().iter().any(untrusted),
        "{:#?}",
        observer.mode_changes()
    );
    let differences = observer.differences_of_node(&driver).await;
    assert!(differences.is_empty(), "{differences:#?}");

    drop(thief);
    // Trust comes back by relists that agree with the events between them.
    let evented = |mode| matches!(mode, Mode::Evented { .. });
    for _ in 0..20 {
        if observer.until_mode(Duration::from_secs(2), evented).await {
            return;
        }
        a_short_pod(&driver).await;
    }
    panic!("still {}", observer.pleg.mode());
}

/// Each phase lasts.
async fn a_slow_life(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    sleep(PHASE).await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    sleep(PHASE).await;
    story.stop(&app, LASTING, 143).await;
    sleep(PHASE).await;
    story.remove(&app).await;
    sleep(PHASE).await;
    story.stop_sandbox(&sandbox).await;
    sleep(PHASE).await;
    story.remove_sandbox(&sandbox).await;
}

type Change = (SubjectId, LifecycleKind);

/// The changes of which the other client has had the only event.
fn stolen_changes(thief: &OtherEventClient, stories: &[Story]) -> BTreeSet<Change> {
    let received: BTreeSet<_> = thief.received().into_iter().collect();
    let lives = stories.iter().flat_map(|story| &story.truth().lives);
    let changes = lives.flat_map(|life| {
        let id = life.subject.id();
        let kinds = life.changes.iter().map(|change| change.kind);
        kinds.map(move |kind| (id.clone(), kind))
    });
    changes
        .filter(|(id, kind)| {
            let event = match kind {
                LifecycleKind::ContainerStarted => ContainerEventType::ContainerStartedEvent,
                LifecycleKind::ContainerDied => ContainerEventType::ContainerStoppedEvent,
                LifecycleKind::ContainerRemoved => ContainerEventType::ContainerDeletedEvent,
                LifecycleKind::PodSync => return false,
            };
            received.contains(&(id.as_str().to_owned(), event))
        })
        .collect()
}

/// The stolen changes that a read told, by the kind of event that did not come.
fn found_by_reads(heard: &[Heard], stolen: &BTreeSet<Change>) -> BTreeMap<SubjectEvent, u64> {
    let mut found = BTreeMap::new();
    for Heard { event, .. } in heard {
        let Some(id) = event.subject.as_ref().map(EventSubject::id) else {
            continue;
        };
        let missing = match event.kind {
            LifecycleKind::ContainerStarted => EventKind::Started,
            LifecycleKind::ContainerDied => EventKind::Stopped,
            LifecycleKind::ContainerRemoved => EventKind::Deleted,
            LifecycleKind::PodSync => continue,
        };
        if event.source != Source::Event && stolen.contains(&(id.clone(), event.kind)) {
            *found.entry((id.kind(), missing)).or_default() += 1;
        }
    }
    found
}

#[tokio::test]
async fn a_backlog_of_containerd_17_brings_nobody_back() {
    a_backlog_brings_nobody_back(Version::Containerd17).await;
}

#[tokio::test]
async fn a_backlog_of_containerd_21_brings_nobody_back() {
    a_backlog_brings_nobody_back(Version::Containerd21).await;
}

/// Nothing is told of what was gone before we came, and no cache ever shows it.
async fn a_backlog_brings_nobody_back(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let (gone, mut story, sandbox) = a_backlog_of_events(&driver).await;
    let observer = Observer::attach(&bed).await;
    let over = Arc::new(AtomicBool::new(false));
    let ghosts = {
        let (cache, over) = (observer.pleg.cache().clone(), Arc::clone(&over));
        let gone: Vec<_> = gone.iter().map(|pod| pod.uid.clone()).collect();
        tokio::spawn(async move {
            let mut ghosts = BTreeSet::new();
            while !over.load(Ordering::Relaxed) {
                ghosts.extend(gone.iter().filter(|uid| cache.contains(uid)).cloned());
                sleep(Duration::from_millis(1)).await;
            }
            ghosts
        })
    };
    assert!(
        observer
            .until_mode(Duration::from_secs(10), |mode| version.is_followed_by(mode))
            .await
    );
    sleep(LASTING).await;
    story.stop_sandbox(&sandbox).await;
    sleep(LASTING).await;
    story.remove_sandbox(&sandbox).await;
    // What began before is told by the first relist: phases, not changes.
    let wrong = observer
        .mistakes(story.truth(), Sight::PhasesOf(LASTING / 2), &driver)
        .await;
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nheard: {:#?}",
        observer.heard_of(story.pod())
    );
    over.store(true, Ordering::Relaxed);
    assert_eq!(ghosts.await.expect("it ends"), BTreeSet::new());
    for pod in &gone {
        assert!(observer.heard_of(pod).is_empty());
    }
    // The backlog did come.
    let counters = observer.stats().await.engine.counters;
    let ignored = |why| counters.ignored.get(&why).copied().unwrap_or(0);
    assert!(
        ignored(Ignored::Stale) + ignored(Ignored::UnknownDeleted) >= 8,
        "{:?}",
        counters.ignored
    );
    assert!(counters.missed.is_empty(), "{:?}", counters.missed);
    let differences = observer.differences_of_node(&driver).await;
    assert!(differences.is_empty(), "{differences:#?}");
}
