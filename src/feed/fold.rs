//! What a subscriber that fell behind is told instead of everything that it missed.
//!
//! The fold holds, for each subject that the subscriber was told of or that is still present, what
//! brings it from the last phase told to the present one: a `ContainerStarted` that its
//! `ContainerDied` overtook is folded away, a `ContainerDied` keeps its exit, and a
//! `ContainerRemoved` keeps both. A subject that came and went wholly untold leaves only a count. So
//! its size is bounded by the subjects alive and told, never by how long the subscriber sleeps. Of a
//! subject that stepped back, a `PodSync` tells even the removal: those that are gone are looked for
//! now and then.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::subject_of;
use crate::law::Law;
use crate::lifecycle::{LifecycleEvent, LifecycleKind, PodUid, Revision, SubjectId};

/// How many subjects are kept track of, at least, before those that are gone untold are looked for.
const WORTH_A_LOOK: usize = 1_000;

/// Where an event comes out: by revision, then as it came in.
type Place = (Revision, u64);

/// What a subscriber has still to be told, folded.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    /// Whatever was first published up to here, the subscriber was told of, or could have been.
    began: Revision,
    arrivals: u64,
    order: BTreeMap<Place, Arc<LifecycleEvent>>,
    subjects: BTreeMap<SubjectId, Folded>,
    syncs: BTreeMap<PodUid, Place>,
    /// How many `PodSync`s may wait before those of pods that are gone are looked for.
    sweep_at: usize,
    /// The same for subjects.
    look_at: usize,
}

/// One subject in the fold. It stays, once told of, until its `ContainerRemoved` is taken.
#[derive(Clone, Debug)]
struct Folded {
    pod: PodUid,
    /// Whether the subscriber was told of it.
    shown: bool,
    started: Option<Place>,
    died: Option<Place>,
    removed: Option<Place>,
}

impl Folded {
    fn of(event: &LifecycleEvent, shown: bool) -> Self {
        Self {
            pod: event.pod.uid.clone(),
            shown,
            started: None,
            died: None,
            removed: None,
        }
    }
}

/// What absorbing an event made away with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Absorbed {
    /// Events that will not be told.
    pub(super) events: u64,
    /// Subjects that came and went wholly untold.
    pub(super) whole: u64,
}

impl Fold {
    /// Begins to fold. `offered` is the last revision that the subscriber was offered before, and
    /// `least` how many `PodSync`s may wait before the fold looks for those of pods that are gone.
    pub(super) fn begin(&mut self, offered: Revision, least: usize) {
        self.began = offered;
        self.sweep_at = least;
        self.look_at = least.max(WORTH_A_LOOK);
    }

    /// Takes an event in. `is_present` says whether a pod is in the cache.
    pub(super) fn absorb(
        &mut self,
        event: &Arc<LifecycleEvent>,
        is_present: &dyn Fn(&PodUid) -> bool,
    ) -> Absorbed {
        match subject_of(event) {
            Some(subject) => self.absorb_change(&subject, event),
            None => self.absorb_sync(event, is_present),
        }
    }

    /// Takes out the event that comes next.
    pub(super) fn pop(&mut self) -> Option<Arc<LifecycleEvent>> {
        let (_, event) = self.order.pop_first()?;
        match subject_of(&event) {
            Some(subject) => self.tell(subject, &event),
            None => {
                self.syncs.remove(&event.pod.uid);
            }
        }
        if self.order.is_empty() {
            // The subscriber has caught up: from here on its queue holds everything again.
            self.subjects.clear();
        }
        Some(event)
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many subjects and pods are kept track of.
    #[cfg(test)]
    pub(super) fn entries(&self) -> (usize, usize) {
        (self.subjects.len(), self.syncs.len())
    }

    fn absorb_change(&mut self, subject: &SubjectId, event: &Arc<LifecycleEvent>) -> Absorbed {
        let mut absorbed = Absorbed::default();
        let place = self.place(event);
        // A ContainerStarted is always a subject's first event, so whoever gets it now was told
        // nothing of the subject before.
        let shown = event.kind != LifecycleKind::ContainerStarted && event.born <= self.began;
        let folded = self
            .subjects
            .entry(subject.clone())
            .or_insert_with(|| Folded::of(event, shown));
        match event.kind {
            LifecycleKind::ContainerStarted => folded.started = Some(place),
            LifecycleKind::ContainerDied => {
                if let Some(overtaken) = folded.started.take() {
                    self.order.remove(&overtaken);
                    absorbed.events += 1;
                }
                folded.died = Some(place);
            }
            LifecycleKind::ContainerRemoved
                if !(folded.shown && Law::FoldsKeepOwedEnds.holds()) =>
            {
                let untold = [folded.started, folded.died];
                for place in untold.into_iter().flatten() {
                    self.order.remove(&place);
                    absorbed.events += 1;
                }
                self.subjects.remove(subject);
                absorbed.events += 1;
                absorbed.whole += 1;
                return absorbed;
            }
            LifecycleKind::ContainerRemoved => folded.removed = Some(place),
            // A PodSync has no subject.
            LifecycleKind::PodSync => {}
        }
        self.order.insert(place, Arc::clone(event));
        absorbed
    }

    fn absorb_sync(
        &mut self,
        event: &Arc<LifecycleEvent>,
        is_present: &dyn Fn(&PodUid) -> bool,
    ) -> Absorbed {
        let mut absorbed = Absorbed::default();
        let place = self.place(event);
        // The newest stays: it must be newer than the change that it tells of.
        if let Some(older) = self.syncs.insert(event.pod.uid.clone(), place) {
            self.order.remove(&older);
            absorbed.events += 1;
        }
        self.order.insert(place, Arc::clone(event));
        if self.syncs.len() > self.sweep_at {
            absorbed.events += self.sweep(is_present);
        }
        absorbed
    }

    /// Drops the `PodSync`s of pods that are gone: their subjects' `ContainerRemoved` tells more.
    fn sweep(&mut self, is_present: &dyn Fn(&PodUid) -> bool) -> u64 {
        let Self { order, syncs, .. } = self;
        let mut dropped = 0;
        syncs.retain(|uid, place| {
            let keep = is_present(uid);
            if !keep {
                order.remove(place);
                dropped += 1;
            }
            keep
        });
        self.sweep_at = self.sweep_at.max(self.syncs.len() * 2);
        dropped
    }

    /// Lets go of subjects that the cache no longer shows and that no `ContainerRemoved` will tell of: it
    /// would have come with what was absorbed last, since the cache was written for both. Returns how many
    /// events will not be told for that.
    pub(super) fn forget_gone(&mut self, is_shown: &dyn Fn(&PodUid, &SubjectId) -> bool) -> u64 {
        if self.subjects.len() <= self.look_at {
            return 0;
        }
        let Self {
            order, subjects, ..
        } = self;
        let mut dropped = 0;
        subjects.retain(|subject, folded| {
            let keep = folded.removed.is_some() || is_shown(&folded.pod, subject);
            if !keep {
                for place in [folded.started, folded.died].into_iter().flatten() {
                    order.remove(&place);
                    dropped += 1;
                }
            }
            keep
        });
        self.look_at = self.look_at.max(self.subjects.len() * 2);
        dropped
    }

    /// Notes that the subscriber takes a subject's event.
    fn tell(&mut self, subject: SubjectId, event: &LifecycleEvent) {
        if event.kind == LifecycleKind::ContainerRemoved {
            self.subjects.remove(&subject);
            return;
        }
        let folded = self
            .subjects
            .entry(subject)
            .or_insert_with(|| Folded::of(event, true));
        folded.shown = true;
        match event.kind {
            LifecycleKind::ContainerStarted => folded.started = None,
            LifecycleKind::ContainerDied => folded.died = None,
            LifecycleKind::ContainerRemoved | LifecycleKind::PodSync => {}
        }
    }

    fn place(&mut self, event: &LifecycleEvent) -> Place {
        self.arrivals += 1;
        (event.revision, self.arrivals)
    }
}
