//! A subscriber of the feed, who stalls now and then: the feed's own queue, with room for one event, so
//! that whatever else comes is folded.
//!
//! It judges law 3.4 and what section 8 promises of each subscriber: once, in order, complete but for
//! subjects that were folded whole, which are counted.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::oracle::{Violation, violated};
use super::truth::{Cast, MAX_SUBJECTS, Subject};
use crate::feed::Queue;
use crate::lifecycle::{EventSet, EventSubject, LifecycleEvent, LifecycleKind, Revision};

const CAPACITY: usize = 1;

#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    cast: Cast,
    queue: Queue,
    is_stalled: bool,
    /// The last event delivered of each subject, and what the subscriber took of it.
    delivered: [Option<LifecycleKind>; MAX_SUBJECTS],
    told: [EventSet; MAX_SUBJECTS],
    last_sync: Option<Revision>,
    last_sync_told: Option<Revision>,
}

impl Hash for Subscriber {
    /// What waits in the queue, without revisions.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_stalled.hash(state);
        self.told.hash(state);
        if self.is_stalled {
            let mut queue = self.queue.clone();
            while let Some(event) = queue.pop() {
                let subject = event.subject.as_ref().map(EventSubject::id);
                (event.kind, subject).hash(state);
            }
        }
    }
}

impl Subscriber {
    pub(super) fn new(cast: Cast) -> Self {
        Self {
            cast,
            queue: Queue::new(CAPACITY, Revision(0)),
            is_stalled: false,
            delivered: [None; MAX_SUBJECTS],
            told: [EventSet::EMPTY; MAX_SUBJECTS],
            last_sync: None,
            last_sync_told: None,
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    pub(super) fn stall(&mut self, stalled: bool) -> Result<(), Violation> {
        self.is_stalled = stalled;
        if stalled { Ok(()) } else { self.read() }
    }

    pub(super) fn offered(
        &mut self,
        event: &Arc<LifecycleEvent>,
        pod_is_present: bool,
    ) -> Result<(), Violation> {
        match self.subject(event) {
            Some(subject) => self.delivered[subject.index()] = Some(event.kind),
            None => self.last_sync = Some(event.revision),
        }
        self.queue.offer(event, &|_| pod_is_present);
        if self.is_stalled { Ok(()) } else { self.read() }
    }

    fn subject(&self, event: &LifecycleEvent) -> Option<Subject> {
        let id = event.subject.as_ref()?.id();
        self.cast.subject(&id)
    }

    fn read(&mut self) -> Result<(), Violation> {
        while let Some(event) = self.queue.pop() {
            let Some(subject) = self.subject(&event) else {
                self.last_sync_told = Some(event.revision);
                continue;
            };
            let bit = match event.kind {
                LifecycleKind::ContainerStarted => EventSet::STARTED,
                LifecycleKind::ContainerDied => EventSet::DIED,
                _ => EventSet::REMOVED,
            };
            let told = &mut self.told[subject.index()];
            if !told.still_tellable().contains(bit) {
                return violated(
                    "Once",
                    format!(
                        "a stalling subscriber is told {} after {told:?}",
                        event.kind
                    ),
                );
            }
            *told = told.with(bit);
        }
        Ok(())
    }

    /// Reads on, and holds what it was told against what was delivered.
    pub(super) fn was_told_everything(&mut self, pod_is_present: bool) -> Result<(), Violation> {
        self.stall(false)?;
        let mut whole = 0;
        for subject in self.cast.subjects() {
            let told = self.told[subject.index()].iter().last();
            match (self.delivered[subject.index()], told) {
                (Some(LifecycleKind::ContainerRemoved), None) => whole += 1,
                (owed, told) if owed == told => {}
                (owed, told) => {
                    return violated(
                        "Complete",
                        format!(
                            "{} ended with {owed:?}, a stalling subscriber was told {told:?}",
                            self.cast.id(subject)
                        ),
                    );
                }
            }
        }
        if self.queue.counters.folded_whole != whole {
            return violated(
                "Slow subscriber",
                format!(
                    "{} subjects are counted as folded whole, {whole} were",
                    self.queue.counters.folded_whole
                ),
            );
        }
        if pod_is_present && self.last_sync != self.last_sync_told {
            return violated(
                "Complete",
                "a stalling subscriber was not told the last PodSync".to_owned(),
            );
        }
        Ok(())
    }
}
