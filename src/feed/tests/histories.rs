//! What holds for every history and every way of reading.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::lifecycle::EventSet;

use LifecycleKind::{
    ContainerDied as Died, ContainerRemoved as Removed, ContainerStarted as Started,
};

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Start(u8),
    Die(u8),
    FailToStart(u8),
    Remove(u8),
    Sync(u8),
    Deliver(usize),
    Subscribe(From),
    Read { who: usize, most: usize },
}

#[derive(Clone, Copy, Debug)]
enum From {
    Snapshot,
    Now,
    /// After what an earlier subscriber has read.
    Resume(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let pod = 0..5_u8;
    prop_oneof![
        3 => pod.clone().prop_map(Step::Create),
        3 => pod.clone().prop_map(Step::Start),
        3 => pod.clone().prop_map(Step::Die),
        1 => pod.clone().prop_map(Step::FailToStart),
        3 => pod.clone().prop_map(Step::Remove),
        1 => pod.prop_map(Step::Sync),
        4 => (1..6_usize).prop_map(Step::Deliver),
        1 => prop_oneof![
            Just(From::Snapshot),
            Just(From::Now),
            (0..4_usize).prop_map(From::Resume),
        ].prop_map(Step::Subscribe),
        3 => (0..4_usize, 1..6_usize).prop_map(|(who, most)| Step::Read { who, most }),
    ]
}

struct Watcher {
    subscription: Subscription,
    events: Vec<Arc<LifecycleEvent>>,
    /// How many of the events it took over from another subscriber.
    inherited: usize,
    /// Containers whose events it must have seen or have counted: those that changed since it came,
    /// and all that were present if it began with a snapshot.
    concerned: BTreeSet<String>,
    fast: bool,
}

impl Watcher {
    fn read(&mut self, most: usize) {
        let next = std::iter::from_fn(|| self.subscription.try_next()).take(most);
        let before = self.events.len();
        self.events.extend(next);
        // Each reading comes out by revision.
        assert!(
            self.events[before..]
                .iter()
                .filter(|event| !event.initial)
                .is_sorted_by_key(|event| event.revision)
        );
    }

    fn check(&self, node: &Node) {
        let mut seen: BTreeMap<SubjectId, EventSet> = BTreeMap::new();
        let mut last: BTreeMap<String, LifecycleKind> = BTreeMap::new();
        for event in &self.events {
            let Some(subject) = subject_of(event) else {
                continue;
            };
            let one = match event.kind {
                Started => EventSet::STARTED,
                Died => EventSet::DIED,
                _ => EventSet::REMOVED,
            };
            let seen = seen.entry(subject.clone()).or_default();
            assert!(
                seen.still_tellable().contains(one),
                "{subject} got {:?} after {seen:?}",
                event.kind
            );
            assert_eq!(event.exit.is_some(), event.kind == Died);
            *seen = seen.with(one);
            last.insert(subject.to_string(), event.kind);
        }
        let owed = node.last_owed();
        let mut unseen_and_gone = 0;
        for name in &self.concerned {
            match (owed.get(name), last.get(name)) {
                (Some(owed), last) => assert_eq!(owed.as_ref(), last, "{name}"),
                (None, Some(last)) => assert_eq!(*last, Removed, "{name}"),
                (None, None) => unseen_and_gone += 1,
            }
        }
        let counters = self.subscription.stats().counters;
        assert_eq!(counters.folded_whole, unseen_and_gone);
        assert_eq!(
            counters.delivered,
            (self.events.len() - self.inherited) as u64
        );
        if self.fast {
            assert_eq!((counters.folded, counters.folded_whole), (0, 0));
        }
    }

    fn check_bound(&self, most_alive: usize, capacity: usize, backlog: usize) {
        let (subjects, syncs) = self.subscription.fold_entries();
        // Told and gone, or alive.
        assert!(
            subjects <= 2 * most_alive,
            "{subjects} subjects in the fold"
        );
        assert!(syncs <= most_alive.max(capacity));
        let lag = self.subscription.stats().lag;
        assert!(lag <= backlog + capacity + 2 * subjects + syncs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_subscriber_is_told_each_subject_once_and_to_its_present_phase(
        capacity in 1..6_usize,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut node = Node::new(capacity);
        let mut watchers: Vec<Watcher> = Vec::new();
        // One that takes everything at once must never lose anything.
        watchers.push(Watcher {
            inherited: 0,
            subscription: node.watch(WatchFrom::Now),
            events: Vec::new(),
            concerned: BTreeSet::new(),
            fast: true,
        });
        for step in steps {
            match step {
                Step::Create(pod) => node.create(pod),
                Step::Start(pod) => node.start(pod),
                Step::Die(pod) => node.die(pod),
                Step::FailToStart(pod) => node.fail_to_start(pod),
                Step::Remove(pod) => node.remove(pod),
                Step::Sync(pod) => node.sync(pod),
                Step::Deliver(most) => {
                    let most = most.min(capacity);
                    let told: Vec<String> = node.held.iter().take(most)
                        .filter_map(|event| subject_of(event))
                        .map(|subject| subject.to_string())
                        .collect();
                    for watcher in &mut watchers {
                        watcher.concerned.extend(told.iter().cloned());
                    }
                    node.deliver(most);
                    watchers[0].read(usize::MAX);
                }
                Step::Subscribe(from) if watchers.len() < 5 => {
                    let mut events = Vec::new();
                    let mut concerned = BTreeSet::new();
                    let start = match from {
                        From::Now => WatchFrom::Now,
                        From::Snapshot => {
                            concerned.extend(node.present.values().map(|p| p.name.clone()));
                            WatchFrom::Snapshot
                        }
                        From::Resume(who) => {
                            // It carries on where a reader that never fell behind has come to.
                            let Some(before) = watchers.get(who).filter(|w| w.fast) else {
                                continue;
                            };
                            events.clone_from(&before.events);
                            let keep = events.len() / 2;
                            events.truncate(keep);
                            concerned.extend(before.concerned.iter().cloned());
                            let after = events.last().map_or(Revision(0), |e| e.revision);
                            WatchFrom::After(after)
                        }
                    };
                    match node.handle.watch(start, UnixNanos(7)) {
                        Ok(subscription) => watchers.push(Watcher {
                            inherited: events.len(), subscription, events, concerned, fast: false,
                        }),
                        Err(error) => {
                            let too_old = matches!(error, WatchError::TooOld { .. });
                            prop_assert!(too_old, "{}", error);
                        }
                    }
                }
                Step::Subscribe(_) => {}
                Step::Read { who, most } => {
                    if let Some(watcher) = watchers.get_mut(who) {
                        watcher.read(most);
                    }
                }
            }
            for watcher in &watchers {
                watcher.check_bound(5, capacity, 5 + capacity);
            }
        }
        let told: Vec<String> = node.held.iter()
            .filter_map(|event| subject_of(event))
            .map(|subject| subject.to_string())
            .collect();
        while !node.held.is_empty() {
            node.deliver(capacity);
            watchers[0].read(usize::MAX);
        }
        for watcher in &mut watchers {
            watcher.concerned.extend(told.iter().cloned());
            watcher.read(usize::MAX);
            watcher.check(&node);
        }
    }
}
