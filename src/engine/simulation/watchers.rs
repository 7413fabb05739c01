//! Two subscribers of the real feed, over the real cache: one that reads at once, and one that stalls
//! now and then while its queue folds.
//!
//! What each was told is held against what was delivered (laws 3.2 to 3.4 and section 8, items 2 and 3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cache::{Cache, CacheWriter, cache};
use crate::engine::model::{Violation, violated};
use crate::feed::{Feed, FeedHandle, Subscription, WatchFrom, feed};
use crate::lifecycle::{
    EventSet, EventSubject, LifecycleEvent, LifecycleKind, PodStatus, PodUid, Revision, SubjectId,
    UnixNanos,
};

pub(crate) struct Watchers {
    pub(crate) writer: CacheWriter,
    pub(crate) cache: Cache,
    feed: Feed,
    handle: FeedHandle,
    prompt: Subscriber,
    stalling: Subscriber,
    /// Who came later, with how many events had been delivered by then.
    late: Vec<(usize, Subscriber)>,
    is_stalled: bool,
    delivered: Vec<Arc<LifecycleEvent>>,
    /// When each pod last came into the cache: a fold drops the `PodSync`s of pods that are gone, even if
    /// they come back.
    came: BTreeMap<PodUid, Revision>,
}

struct Subscriber {
    subscription: Subscription,
    told: Vec<Arc<LifecycleEvent>>,
}

impl Subscriber {
    fn read(&mut self) {
        self.told
            .extend(std::iter::from_fn(|| self.subscription.try_next()));
    }
}

pub(crate) fn subject_of(event: &LifecycleEvent) -> Option<SubjectId> {
    event.subject.as_ref().map(EventSubject::id)
}

/// Per subject a part of its life, in order, each event at most once.
fn in_order(events: &[Arc<LifecycleEvent>]) -> Result<(), Violation> {
    let mut told: BTreeMap<SubjectId, EventSet> = BTreeMap::new();
    for event in events {
        let Some(subject) = subject_of(event) else {
            continue;
        };
        let told = told.entry(subject.clone()).or_default();
        if !told.still_tellable().contains(bit(event.kind)) {
            return violated(
                "Once",
                format!(
                    "a subscriber is told {} of {subject} after {told:?}",
                    event.kind
                ),
            );
        }
        *told = told.with(bit(event.kind));
    }
    Ok(())
}

pub(crate) fn bit(kind: LifecycleKind) -> EventSet {
    match kind {
        LifecycleKind::ContainerStarted => EventSet::STARTED,
        LifecycleKind::ContainerDied => EventSet::DIED,
        LifecycleKind::ContainerRemoved => EventSet::REMOVED,
        LifecycleKind::PodSync => EventSet::EMPTY,
    }
}

impl Watchers {
    pub(crate) fn new(capacity: usize) -> Result<Self, Violation> {
        let (writer, cache) = cache();
        let (feed, handle) = feed(capacity, cache.clone());
        let subscribe = || match handle.watch(WatchFrom::Now, UnixNanos(0)) {
            Ok(subscription) => Ok(Subscriber {
                subscription,
                told: Vec::new(),
            }),
            Err(error) => violated("Feed", error.to_string()),
        };
        let (prompt, stalling) = (subscribe()?, subscribe()?);
        Ok(Self {
            writer,
            cache,
            feed,
            handle,
            prompt,
            stalling,
            late: Vec::new(),
            is_stalled: false,
            delivered: Vec::new(),
            came: BTreeMap::new(),
        })
    }

    pub(crate) fn publish(
        &mut self,
        uid: PodUid,
        revision: Revision,
        status: Option<Arc<PodStatus>>,
    ) {
        if status.is_some() && !self.cache.contains(&uid) {
            self.came.insert(uid.clone(), revision);
        }
        self.writer.publish(uid, revision, status);
    }

    pub(crate) fn deliver(&mut self, event: Arc<LifecycleEvent>) {
        self.feed.publish(std::slice::from_ref(&event));
        self.delivered.push(event);
        self.prompt.read();
        for (_, subscriber) in &mut self.late {
            subscriber.read();
        }
        if !self.is_stalled {
            self.stalling.read();
        }
    }

    /// Somebody comes who wants to know what is there, and reads at once what follows.
    pub(crate) fn subscribe(&mut self) -> Result<(), Violation> {
        match self.handle.watch(WatchFrom::Snapshot, UnixNanos(0)) {
            Ok(subscription) => {
                let mut subscriber = Subscriber {
                    subscription,
                    told: Vec::new(),
                };
                subscriber.read();
                self.late.push((self.delivered.len(), subscriber));
                Ok(())
            }
            Err(error) => violated("Feed", error.to_string()),
        }
    }

    pub(crate) fn stall(&mut self, stalled: bool) {
        self.is_stalled = stalled;
        if !stalled {
            self.stalling.read();
        }
    }

    pub(crate) fn delivered(&self) -> &[Arc<LifecycleEvent>] {
        &self.delivered
    }

    /// Both have read everything: holds what they were told against what was delivered.
    /// Of a subject that false news was heard of, only that it is told nothing twice.
    pub(crate) fn check(
        &mut self,
        is_slandered: &dyn Fn(&SubjectId) -> bool,
    ) -> Result<(), Violation> {
        self.stall(false);
        if self.prompt.told != self.delivered {
            return violated(
                "Slow subscriber",
                "one that reads at once was not told everything".to_owned(),
            );
        }
        in_order(&self.stalling.told)?;
        self.all_were_delivered()?;
        self.check_folded()?;
        for (since, late) in &self.late {
            self.check_late(*since, &late.told, is_slandered)?;
        }
        Ok(())
    }

    /// Whoever came later was told, by the snapshot or since, how far each subject has come.
    fn check_late(
        &self,
        since: usize,
        told: &[Arc<LifecycleEvent>],
        is_slandered: &dyn Fn(&SubjectId) -> bool,
    ) -> Result<(), Violation> {
        in_order(told)?;
        let last_told: BTreeMap<_, _> = told
            .iter()
            .filter_map(|event| Some((subject_of(event)?, event.kind)))
            .collect();
        let last_delivered: BTreeMap<_, _> = self
            .delivered
            .iter()
            .enumerate()
            .filter_map(|(nth, event)| Some((subject_of(event)?, (nth, event.kind))))
            .collect();
        for (subject, &(nth, kind)) in &last_delivered {
            let was_gone = nth < since && kind == LifecycleKind::ContainerRemoved;
            let owed = (!was_gone).then_some(kind);
            let told = last_told.get(subject).copied();
            if told != owed && !is_slandered(subject) {
                return violated(
                    "Complete",
                    format!("{subject} ended with {kind}, one who came later was told {told:?}"),
                );
            }
        }
        Ok(())
    }

    /// Deaths with their exits.
    fn all_were_delivered(&self) -> Result<(), Violation> {
        for event in &self.stalling.told {
            if subject_of(event).is_none() {
                continue;
            }
            let was_delivered = self
                .delivered
                .binary_search_by_key(&event.revision, |delivered| delivered.revision)
                .is_ok_and(|at| self.delivered[at] == *event);
            if !was_delivered {
                return violated("Slow subscriber", format!("never delivered: {event:?}"));
            }
        }
        Ok(())
    }

    /// The last event of each subject and the last `PodSync` of each pod get through; who came and
    /// went untold is counted.
    fn check_folded(&self) -> Result<(), Violation> {
        let last = |events: &[Arc<LifecycleEvent>]| {
            let mut last = BTreeMap::new();
            let mut syncs: BTreeMap<PodUid, Revision> = BTreeMap::new();
            for event in events {
                match subject_of(event) {
                    Some(subject) => {
                        last.insert(subject, event.kind);
                    }
                    None => {
                        syncs.insert(event.pod.uid.clone(), event.revision);
                    }
                }
            }
            (last, syncs)
        };
        let (owed, owed_syncs) = last(&self.delivered);
        let (told, told_syncs) = last(&self.stalling.told);
        let mut whole = BTreeSet::new();
        for (subject, kind) in &owed {
            match told.get(subject) {
                Some(told) if told == kind => {}
                None if *kind == LifecycleKind::ContainerRemoved => {
                    whole.insert(subject.clone());
                }
                told => {
                    return violated(
                        "Complete",
                        format!(
                            "{subject} ended with {kind}, a stalling subscriber was told {told:?}"
                        ),
                    );
                }
            }
        }
        let counted = self.stalling.subscription.stats().counters.folded_whole;
        if counted != whole.len() as u64 {
            return violated(
                "Slow subscriber",
                format!("{counted} subjects are counted as folded whole, these were: {whole:?}"),
            );
        }
        let unsynced = owed_syncs.iter().find(|(uid, at)| {
            let has_stayed = self.came.get(*uid).is_some_and(|came| came < at);
            has_stayed && self.cache.contains(uid) && told_syncs.get(*uid) != Some(*at)
        });
        match unsynced {
            Some((uid, at)) => violated(
                "Complete",
                format!("a stalling subscriber was not told the PodSync of {uid} at {at}"),
            ),
            None => Ok(()),
        }
    }

    /// What somebody is told who comes now and wants to know what is there.
    pub(crate) fn snapshot(&self) -> Result<BTreeMap<SubjectId, LifecycleKind>, Violation> {
        let mut told = BTreeMap::new();
        match self.handle.watch(WatchFrom::Snapshot, UnixNanos(0)) {
            Ok(mut subscription) => {
                while let Some(event) = subscription.try_next() {
                    if let Some(subject) = subject_of(&event)
                        && told.insert(subject.clone(), event.kind).is_some()
                    {
                        return violated("Once", format!("a snapshot tells twice of {subject}"));
                    }
                }
                Ok(told)
            }
            Err(error) => violated("Feed", error.to_string()),
        }
    }
}
