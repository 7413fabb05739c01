//! Whatever the writer and the watchers do, a watcher has exactly what followed or is told to list.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::lifecycle::{LifecycleKind, PodIdentity, Source, UnixNanos};

const EPOCH: Epoch = Epoch(7);

fn event(revision: u64) -> Arc<LifecycleEvent> {
    Arc::new(LifecycleEvent {
        kind: LifecycleKind::PodSync,
        revision: Revision(revision),
        pod: PodIdentity {
            uid: "u".into(),
            namespace: "shop".into(),
            name: "web-1".into(),
        },
        subject: None,
        exit: None,
        source: Source::Inspect,
        initial: false,
        runtime_stamp: None,
        seen_at: UnixNanos(0),
        born: Revision(revision),
    })
}

fn at(revision: u64) -> Position {
    Position {
        epoch: EPOCH,
        revision: Revision(revision),
    }
}

fn revisions(taken: &[Arc<RingEvent>]) -> Vec<u64> {
    taken.iter().map(|held| held.event.revision.0).collect()
}

fn small(events: usize) -> RingLimits {
    RingLimits {
        events,
        ..RingLimits::default()
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// So many events, each so many revisions after the one before.
    Publish(Vec<u64>),
    /// The feed folded and has told up to so many revisions after the newest.
    Gap(u64),
    /// A watcher takes at most so many.
    Take { watcher: usize, most: usize },
    /// A watcher begins again after a revision of this epoch.
    Begin { watcher: usize, after: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(1_u64..4, 1..6).prop_map(Step::Publish),
        1 => (0_u64..3).prop_map(Step::Gap),
        6 => (0_usize..3, 1_usize..5).prop_map(|(watcher, most)| Step::Take { watcher, most }),
        2 => (0_usize..3, 0_u64..60).prop_map(|(watcher, after)| Step::Begin { watcher, after }),
    ]
}

/// What really happened, without limits.
#[derive(Default)]
struct Truth {
    published: Vec<u64>,
    /// Up to here something is not known.
    gap: u64,
    newest: u64,
}

impl Truth {
    fn after(&self, revision: u64) -> impl Iterator<Item = u64> + '_ {
        let published = self.published.iter().copied();
        published.filter(move |published| *published > revision)
    }

    /// Whether a ring of so many events can tell all that followed.
    fn can_tell(&self, revision: u64, events: usize) -> bool {
        revision >= self.gap && self.after(revision).count() <= events
    }
}

proptest! {
    #[test]
    fn any_interleaving_gives_exactly_what_followed_or_list_again(
        events in 1_usize..8,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut writer, ring) = ring(EPOCH, small(events), Revision(0));
        let mut truth = Truth::default();
        let mut watchers: Vec<Option<Cursor>> =
            (0..3).map(|_| ring.after(at(0), Revision(0)).ok()).collect();
        for step in steps {
            match step {
                Step::Publish(deltas) => {
                    let mut batch = Vec::new();
                    for delta in deltas {
                        truth.newest += delta;
                        truth.published.push(truth.newest);
                        batch.push(event(truth.newest));
                    }
                    writer.publish(batch);
                }
                Step::Gap(further) => {
                    truth.newest += further;
                    truth.gap = truth.newest;
                    writer.gap(Revision(truth.newest));
                }
                Step::Take { watcher, most } => {
                    let Some(cursor) = &mut watchers[watcher] else { continue };
                    let has = cursor.position().revision.0;
                    let expected: Vec<_> = truth.after(has).take(most).collect();
                    match cursor.take(most) {
                        Ok(taken) => {
                            prop_assert!(has >= truth.gap, "a gap was passed over in silence");
                            prop_assert_eq!(revisions(&taken), expected);
                        }
                        Err(why) => {
                            prop_assert_eq!(why, ListAgain::Behind);
                            prop_assert!(!truth.can_tell(has, events), "list again for nothing");
                            watchers[watcher] = None;
                        }
                    }
                }
                Step::Begin { watcher, after } => match ring.after(at(after), Revision(0)) {
                    Ok(cursor) => {
                        prop_assert!(after <= truth.newest);
                        prop_assert!(truth.can_tell(after, events));
                        watchers[watcher] = Some(cursor);
                    }
                    Err(ListAgain::Behind) => prop_assert!(!truth.can_tell(after, events)),
                    Err(ListAgain::Future) => prop_assert!(after > truth.newest),
                    Err(ListAgain::OtherEpoch) => prop_assert!(false, "it is this epoch"),
                },
            }
            prop_assert!(ring.stats().events <= events);
        }
    }
}

#[test]
fn a_position_of_another_life_or_of_the_future_is_told_apart() {
    let (mut writer, ring) = ring(EPOCH, small(2), Revision(0));
    writer.publish([event(1), event(2), event(3)]);
    let refusal = |position, known| {
        let refused = ring.after(position, Revision(known));
        refused.map(|_| ()).expect_err("must be refused")
    };
    let other = Position {
        epoch: Epoch(8),
        revision: Revision(3),
    };
    assert_eq!(refusal(other, 0), ListAgain::OtherEpoch);
    assert_eq!(refusal(at(0), 0), ListAgain::Behind);
    assert_eq!(refusal(at(5), 4), ListAgain::Future);
    // A list's position may be ahead of the ring.
    assert!(ring.after(at(5), Revision(5)).is_ok());
    assert!(ring.after(at(1), Revision(0)).is_ok());
}

#[test]
fn bytes_are_bounded_too_and_the_newest_event_is_always_kept() {
    let limits = RingLimits {
        events: 1_000,
        bytes: 5_000,
    };
    let (mut writer, ring) = ring(EPOCH, limits, Revision(0));
    for revision in 1..100 {
        writer.publish([event(revision)]);
        assert!(ring.stats().bytes <= 5_000);
    }
    let large = Arc::new(LifecycleEvent {
        pod: PodIdentity {
            uid: "u".into(),
            namespace: "n".repeat(10_000).into(),
            name: "".into(),
        },
        ..(*event(100)).clone()
    });
    writer.publish([large]);
    assert_eq!(ring.stats().events, 1);
    let mut cursor = ring.after(at(99), Revision(0)).unwrap();
    assert_eq!(revisions(&cursor.take(9).unwrap()), [100]);
}

#[test]
fn a_stalled_watcher_holds_no_event() {
    let (mut writer, ring) = ring(EPOCH, small(10), Revision(0));
    let mut stalled = ring.after(at(0), Revision(0)).unwrap();
    let first = event(1);
    let gone = Arc::downgrade(&first);
    writer.publish([first]);
    for revision in 2..1_000 {
        writer.publish([event(revision)]);
    }
    assert!(gone.upgrade().is_none());
    assert_eq!(ring.stats().events, 10);
    assert_eq!(ring.lag(Revision(0)), None);
    assert_eq!(ring.lag(Revision(995)), Some(4));
    assert_eq!(stalled.take(1).unwrap_err(), ListAgain::Behind);
}

#[test]
fn what_an_event_looks_like_is_made_once_for_all_watchers() {
    let (mut writer, ring) = ring(EPOCH, small(10), Revision(0));
    writer.publish([event(1)]);
    let mut made = 0;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut cursor = ring.after(at(0), Revision(0)).unwrap();
        let held = cursor.take(1).unwrap().remove(0);
        seen.push(held.protobuf(|_| {
            made += 1;
            Bytes::from_static(b"bytes")
        }));
        let json: serde_json::Value = serde_json::from_slice(&held.json()).unwrap();
        assert_eq!(json["epoch"], "0000000000000007");
        assert_eq!(json["revision"], 1);
        assert_eq!(json["type"], "PodSync");
    }
    assert_eq!(made, 1);
    assert_eq!(seen[0].as_ptr(), seen[2].as_ptr());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_woken_by_an_event_a_gap_and_the_end() {
    let (mut writer, ring) = ring(EPOCH, small(10), Revision(0));
    let mut cursor = ring.after(at(0), Revision(0)).unwrap();
    let writing = tokio::spawn(async move {
        let pause = || tokio::time::sleep(Duration::from_secs(1));
        pause().await;
        writer.publish([event(1), event(2)]);
        pause().await;
        writer.publish([event(3)]);
        writer
    });
    let first = cursor.next(9).await.unwrap().unwrap();
    assert_eq!(revisions(&first), [1, 2]);
    let second = cursor.next(9).await.unwrap().unwrap();
    assert_eq!(revisions(&second), [3]);
    let mut behind = ring.after(at(1), Revision(0)).unwrap();
    let mut writer = writing.await.unwrap();
    let waits = tokio::spawn(async move {
        let mut cursor = cursor;
        (cursor.next(9).await.map(|_| ()), cursor)
    });
    tokio::task::yield_now().await;
    writer.gap(Revision(5));
    let (told, _) = waits.await.unwrap();
    assert_eq!(told, Err(ListAgain::Behind));
    assert_eq!(behind.take(1).unwrap_err(), ListAgain::Behind);
    let mut last = ring.after(at(5), Revision(0)).unwrap();
    writer.publish([event(6)]);
    drop(writer);
    assert_eq!(revisions(&last.next(9).await.unwrap().unwrap()), [6]);
    assert!(last.next(9).await.unwrap().is_none());
}
