//! What a subscriber is told, in stories.

use std::sync::Arc;
use std::task::Poll;

use futures::{FutureExt, StreamExt};

use super::*;

use LifecycleKind::{
    ContainerDied as Died, ContainerRemoved as Removed, ContainerStarted as Started, PodSync,
};

fn named(pairs: &[(&str, LifecycleKind)]) -> Vec<(String, LifecycleKind)> {
    pairs
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), *kind))
        .collect()
}

#[test]
fn a_fast_reader_gets_the_very_events_that_were_published() {
    let mut node = Node::new(4);
    let mut first = node.watch(WatchFrom::Now);
    let mut second = node.watch(WatchFrom::Now);
    node.create(1);
    node.start(1);
    let published = node.held.clone();
    node.deliver_all();
    let (first, second) = (drain(&mut first), drain(&mut second));
    assert!(Arc::ptr_eq(&first[0], &published[0]));
    assert!(Arc::ptr_eq(&second[0], &published[0]));
}

#[test]
fn a_sleeper_learns_of_the_untold_death_with_its_exit_and_of_nothing_in_between() {
    let mut node = Node::new(2);
    let mut sleeper = node.watch(WatchFrom::Now);
    for pod in [1, 2, 3] {
        node.create(pod);
        node.start(pod);
    }
    node.deliver_all();
    // 1 and 2 are queued; 3 is the first in the fold, and is overtaken by its own death.
    node.die(3);
    node.die(1);
    node.remove(1);
    node.deliver_all();
    let events = drain(&mut sleeper);
    assert_eq!(
        told(&events),
        named(&[
            ("1-1", Started),
            ("2-1", Started),
            ("3-1", Died),
            ("1-1", Died),
            ("1-1", Removed),
        ])
    );
    assert_eq!(events[2].exit.as_ref().map(|exit| exit.exit_code), Some(7));
    let counters = sleeper.stats().counters;
    assert_eq!((counters.delivered, counters.folded), (5, 1));
}

#[test]
fn a_subject_that_came_and_went_wholly_untold_leaves_only_a_count() {
    let mut node = Node::new(1);
    let mut sleeper = node.watch(WatchFrom::Now);
    node.create(9);
    node.start(9);
    node.deliver_all();
    for pod in 0..5 {
        node.live_once(pod);
    }
    node.create(6);
    node.fail_to_start(6);
    node.remove(6);
    node.deliver_all();
    assert_eq!(told(&drain(&mut sleeper)), named(&[("9-1", Started)]));
    let counters = sleeper.stats().counters;
    assert_eq!((counters.folded_whole, counters.folded), (6, 5 * 3 + 2));
}

#[test]
fn a_subject_known_before_the_fold_keeps_its_death_and_its_removal() {
    let mut node = Node::new(1);
    node.create(1);
    node.start(1);
    node.deliver_all();
    let mut sleeper = node.watch(WatchFrom::Now);
    node.create(2);
    node.start(2);
    node.die(1);
    node.remove(1);
    node.deliver_all();
    assert_eq!(
        told(&drain(&mut sleeper)),
        named(&[("2-1", Started), ("1-1", Died), ("1-1", Removed)])
    );
}

#[test]
fn a_subject_told_out_of_the_fold_is_told_to_its_end() {
    let mut node = Node::new(1);
    let mut slow = node.watch(WatchFrom::Now);
    for pod in [1, 2, 3] {
        node.create(pod);
        node.start(pod);
    }
    node.deliver_all();
    let first_two = [slow.try_next().unwrap(), slow.try_next().unwrap()];
    assert_eq!(
        told(&first_two),
        named(&[("1-1", Started), ("2-1", Started)])
    );
    // 2 was told out of the fold, which still holds 3.
    node.die(2);
    node.remove(2);
    node.die(3);
    node.remove(3);
    node.deliver_all();
    assert_eq!(
        told(&drain(&mut slow)),
        named(&[("2-1", Died), ("2-1", Removed)])
    );
    assert_eq!(slow.stats().counters.folded_whole, 1);
}

#[test]
fn syncs_fold_to_the_newest_of_each_pod() {
    let mut node = Node::new(1);
    let mut sleeper = node.watch(WatchFrom::Now);
    node.create(2);
    node.create(1);
    node.start(1);
    for pod in [1, 2, 1, 1] {
        node.sync(pod);
    }
    let newest = Arc::clone(node.held.last().unwrap());
    node.deliver_all();
    let events = drain(&mut sleeper);
    assert_eq!(
        told(&events),
        named(&[("1-1", Started), ("pod-2", PodSync), ("pod-1", PodSync)])
    );
    assert!(Arc::ptr_eq(&events[2], &newest));
}

/// A subject that stepped back after its death and then really went leaves no `ContainerRemoved`.
#[test]
fn what_a_sleeper_is_owed_of_subjects_that_stepped_back_and_went_does_not_pile_up() {
    let mut node = Node::new(2);
    let mut sleeper = node.watch(WatchFrom::Now);
    node.create(2);
    node.start(2);
    for _ in 0..5_000 {
        node.create(1);
        node.start(1);
        node.die(1);
        node.deliver_all();
        node.present.remove(&1);
        let revision = node.next_revision();
        node.writer.publish(uid(1), revision, None);
        node.sync(1);
        node.deliver_all();
        assert!(sleeper.stats().lag <= 1_010 && sleeper.fold_entries().0 <= 1_001);
    }
    // Whoever is still there, or was told as gone, is told to the end.
    node.die(2);
    node.create(3);
    node.start(3);
    node.deliver_all();
    let told = told(&drain(&mut sleeper));
    assert!(
        told.contains(&("2-1".to_owned(), Died)) && told.contains(&("3-1".to_owned(), Started))
    );
}

#[test]
fn syncs_of_pods_that_are_gone_do_not_pile_up() {
    let mut node = Node::new(4);
    let mut sleeper = node.watch(WatchFrom::Now);
    node.create(0);
    for round in 0..1_000_u32 {
        let revision = node.next_revision();
        let mut sync = event(1, None, PodSync, revision, revision);
        sync.pod.uid = format!("ghost-{round}").into();
        node.held.push(Arc::new(sync));
        node.sync(0);
        node.deliver_all();
    }
    assert!(sleeper.stats().lag < 20, "{:?}", sleeper.stats());
    let events = drain(&mut sleeper);
    let last = events.iter().rev().find(|event| event.pod.uid == uid(0));
    assert_eq!(
        last.map(|event| event.revision),
        Some(Revision(node.revision))
    );
}

#[test]
fn a_snapshot_tells_what_runs_and_what_has_ended_and_nothing_of_the_unstarted() {
    let mut node = Node::new(10);
    for pod in [1, 2, 3] {
        node.create(pod);
    }
    node.start(1);
    node.start(2);
    node.die(1);
    node.deliver_all();
    let events = drain(&mut node.watch(WatchFrom::Snapshot));
    assert_eq!(told(&events), named(&[("2-1", Started), ("1-1", Died)]));
    assert!(events.iter().all(|event| event.initial));
    assert_eq!(events[1].exit.as_ref().map(|exit| exit.exit_code), Some(7));
}

#[test]
fn a_snapshot_taken_while_a_death_waits_for_its_exit_repeats_nothing_and_leaves_no_gap() {
    let mut node = Node::new(10);
    node.create(1);
    node.start(1);
    node.deliver_all();
    // The cache shows 1 dead and 2 running; the feed has told neither.
    node.die(1);
    node.create(2);
    node.start(2);
    let mut watcher = node.watch(WatchFrom::Snapshot);
    assert_eq!(
        told(&drain(&mut watcher)),
        named(&[("1-1", Started), ("2-1", Started)])
    );
    node.deliver_all();
    node.die(2);
    node.deliver_all();
    assert_eq!(
        told(&drain(&mut watcher)),
        named(&[("1-1", Died), ("2-1", Died)])
    );
    assert_eq!(watcher.stats().counters.already_told, 1);
}

#[test]
fn a_snapshot_shows_where_a_subject_that_stepped_back_stands() {
    let mut node = Node::new(10);
    node.create(1);
    node.start(1);
    node.die(1);
    node.deliver_all();
    node.present.get_mut(&1).unwrap().state = ReportedState::Running;
    let revision = node.next_revision();
    node.write(1, revision);
    node.sync(1);
    node.deliver_all();
    let events = drain(&mut node.watch(WatchFrom::Snapshot));
    assert_eq!(told(&events), named(&[("1-1", Started)]));
}

#[test]
fn a_subject_that_stepped_back_and_then_went_is_in_no_later_snapshot() {
    let mut node = Node::new(10);
    node.create(1);
    node.start(1);
    node.die(1);
    node.deliver_all();
    // Its removal is told by a PodSync, as everything since its step back.
    node.present.clear();
    let revision = node.next_revision();
    node.writer.publish(uid(1), revision, None);
    node.sync(1);
    node.deliver_all();
    assert!(drain(&mut node.watch(WatchFrom::Snapshot)).is_empty());
    assert!(node.handle.hub.lock().delivered.is_empty());
}

#[test]
fn whoever_resumes_gets_what_came_after_and_is_told_when_that_is_gone() {
    let mut node = Node::new(3);
    node.live_once(1);
    let taken = drain(&mut node.watch(WatchFrom::After(Revision(0))));
    assert_eq!(
        told(&taken),
        named(&[("1-1", Started), ("1-1", Died), ("1-1", Removed)])
    );
    let resumed = drain(&mut node.watch(WatchFrom::After(taken[0].revision)));
    assert_eq!(told(&resumed), named(&[("1-1", Died), ("1-1", Removed)]));

    node.live_once(2);
    let too_old = node
        .handle
        .watch(WatchFrom::After(Revision(0)), UnixNanos(0));
    assert_eq!(
        too_old.err(),
        Some(WatchError::TooOld {
            asked: Revision(0),
            oldest: taken[2].revision,
        })
    );
    assert_eq!(
        told(&drain(&mut node.watch(WatchFrom::After(taken[2].revision)))).len(),
        3
    );
}

#[test]
fn a_revision_that_only_the_cache_has_reached_can_be_watched_after_but_no_later_one() {
    let mut node = Node::new(3);
    node.create(1);
    node.start(1);
    let newest = node.writer.reader().revision();
    let mut watcher = node.watch(WatchFrom::After(newest));
    node.deliver_all();
    assert_eq!(told(&drain(&mut watcher)), named(&[("1-1", Started)]));

    let asked = Revision(node.revision + 1);
    let refused = node.handle.watch(WatchFrom::After(asked), UnixNanos(0));
    let newest = Revision(node.revision);
    assert_eq!(
        refused.err(),
        Some(WatchError::FromTheFuture { asked, newest })
    );
}

#[test]
fn a_subscriber_that_left_is_forgotten_but_its_counts_stay() {
    let mut node = Node::new(10);
    let mut leaver = node.watch(WatchFrom::Now);
    let _stayer = node.watch(WatchFrom::Now);
    node.live_once(1);
    drain(&mut leaver);
    drop(leaver);
    let stats = node.handle.stats();
    assert_eq!((stats.published, stats.totals.delivered), (3, 3));
    assert_eq!(stats.subscribers.len(), 1);
    assert_eq!((stats.subscribers[0].id, stats.subscribers[0].lag), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_stream_wakes_once_for_a_batch_and_ends_when_the_feed_does() {
    let mut node = Node::new(10);
    let mut watcher = node.watch(WatchFrom::Now);
    let (count, waker) = futures_test_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    assert_eq!(watcher.poll_next_unpin(&mut cx), Poll::Pending);
    node.live_once(1);
    node.live_once(2);
    assert_eq!(count.wakes(), 1);
    node.feed.close();
    let events: Vec<_> = watcher.collect().await;
    assert_eq!(events.len(), 6);
    let late = node.handle.watch(WatchFrom::Now, UnixNanos(0));
    assert_eq!(late.err(), Some(WatchError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_feed_ends_a_sleeping_stream() {
    let Node { feed, handle, .. } = Node::new(10);
    let mut watcher = handle.watch(WatchFrom::Snapshot, UnixNanos(0)).unwrap();
    assert!(watcher.next().now_or_never().is_none());
    let end = tokio::spawn(async move { watcher.next().await });
    tokio::task::yield_now().await;
    drop(feed);
    assert_eq!(end.await.unwrap(), None);
}

#[derive(Default)]
struct WakeCount(std::sync::atomic::AtomicUsize);

impl WakeCount {
    fn wakes(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl std::task::Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn futures_test_waker() -> (Arc<WakeCount>, std::task::Waker) {
    let count = Arc::new(WakeCount::default());
    (Arc::clone(&count), std::task::Waker::from(count))
}

/// No event tells when the phase shows again: whoever came meanwhile would never have been told that the
/// container runs.
#[test]
fn a_snapshot_tells_of_a_state_that_is_not_known_what_everybody_else_was_told() {
    let mut node = Node::new(4);
    for pod in [1, 2, 3] {
        node.create(pod);
    }
    node.start(1);
    node.start(2);
    node.die(2);
    node.deliver_all();
    for pod in [1, 2, 3] {
        node.forget_state(pod);
    }
    let mut late = node.watch(WatchFrom::Snapshot);
    let events = drain(&mut late);
    assert_eq!(told(&events), named(&[("1-1", Started), ("2-1", Died)]));
    assert_eq!(events[1].exit.as_ref().map(|exit| exit.exit_code), Some(7));
}
