//! The cache: what is known of each pod, and when the runtime was last asked about it.
//!
//! [`CacheWriter`] is not `Clone`: the driver owns the only one, so two writers cannot exist (the
//! kubelet's `EventedPLEG` had two, which is what undid it). [`Cache`] is a cheap, read-only handle.
//! Nothing here decides anything: statuses and marks are written as the engine gives them. The lock
//! is held for moments; readers get clones of `Arc`s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::lifecycle::{Mark, PodStatus, PodUid, Revision};

/// How many marks of absent pods are kept beyond one per present pod. Whoever asks about more pods
/// that do not exist, between two full relists, is told the older mark of the last full relist.
const ABSENT_MARKS: usize = 10_000;

/// A pod as it stands in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cached {
    /// The status.
    pub status: Arc<PodStatus>,
    /// When the newest read that vouches for it began; [`Mark::default`] before any did. It never
    /// goes back.
    pub observed: Mark,
}

/// Every pod as of one moment, and what to watch after to miss nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The revision of the newest change in it.
    pub revision: Revision,
    /// The pods, in order of uid.
    pub pods: Vec<Cached>,
}

/// Makes an empty cache: the one writer, and a reader to clone. The driver does; it is public for this
/// repository's own benchmarks.
#[doc(hidden)]
#[must_use]
pub fn cache() -> (CacheWriter, Cache) {
    let cache = Cache {
        shared: Arc::default(),
    };
    let writer = CacheWriter {
        cache: cache.clone(),
    };
    (writer, cache)
}

/// The one writer.
#[doc(hidden)]
#[derive(Debug)]
pub struct CacheWriter {
    cache: Cache,
}

/// A reader. Clones see the same cache.
#[derive(Clone, Debug)]
pub struct Cache {
    shared: Arc<RwLock<Contents>>,
}

#[derive(Debug, Default)]
struct Contents {
    pods: BTreeMap<PodUid, Arc<PodStatus>>,
    revision: Revision,
    /// When the last full relist that was believed began.
    all: Option<Mark>,
    /// Pods, present or absent, that a read of their own vouched for after `all`.
    own: BTreeMap<PodUid, Mark>,
    /// Pods that the last full relist could not vouch for, with what had vouched for them before it.
    excepted: BTreeMap<PodUid, Mark>,
}

impl CacheWriter {
    /// Puts a pod's new status in, or takes the pod out.
    pub fn publish(&mut self, uid: PodUid, revision: Revision, status: Option<Arc<PodStatus>>) {
        let mut contents = self.contents();
        contents.revision = contents.revision.max(revision);
        // What was there is dropped after the lock is released.
        let _before = match status {
            Some(status) => contents.pods.insert(uid, status),
            None => contents.pods.remove(&uid),
        };
        drop(contents);
    }

    /// Notes that a read that began at `mark` vouched for a pod, present or absent.
    pub fn observed(&mut self, uid: PodUid, mark: Mark) {
        let mut contents = self.contents();
        if let Some(held) = contents.excepted.get_mut(&uid) {
            *held = mark.max(*held);
        } else if Some(mark) > contents.all {
            let own = contents.own.entry(uid).or_default();
            *own = mark.max(*own);
            contents.forget_absent_marks();
        }
    }

    /// Notes that a full relist that began at `mark` vouched for every pod, present or absent, but
    /// those in `except`.
    pub fn observed_all(&mut self, mark: Mark, except: BTreeSet<PodUid>) {
        let mut contents = self.contents();
        if contents.all >= Some(mark) {
            return;
        }
        let excepted: BTreeMap<_, _> = except
            .into_iter()
            .map(|uid| {
                let held = contents.observed(&uid);
                (uid, held)
            })
            .collect();
        let released = std::mem::replace(&mut contents.excepted, excepted);
        contents.own.extend(released);
        contents.all = Some(mark);
        let Contents { own, excepted, .. } = &mut *contents;
        own.retain(|uid, own| *own > mark && !excepted.contains_key(uid));
    }

    /// A reader of this cache.
    #[must_use]
    pub fn reader(&self) -> Cache {
        self.cache.clone()
    }

    fn contents(&mut self) -> RwLockWriteGuard<'_, Contents> {
        // A writer that panicked half-way is not possible: nothing in here can.
        self.cache
            .shared
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// A pod's status; `None` if the runtime has nothing of it. See [`Cache::observed`] for how fresh
    /// a `None` is.
    #[must_use]
    pub fn get(&self, uid: &PodUid) -> Option<Cached> {
        self.contents().cached(uid)
    }

    /// Every pod, in order of uid, as of one moment.
    #[must_use]
    pub fn list(&self) -> Vec<Cached> {
        self.listing().pods
    }

    /// Every pod, with the revision to watch after: whoever does so misses nothing that is not in the
    /// list, but may be told of a change that is.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let contents = self.contents();
        let pods = contents
            .pods
            .iter()
            .map(|(uid, status)| Cached {
                status: Arc::clone(status),
                observed: contents.observed(uid),
            })
            .collect();
        Listing {
            revision: contents.revision,
            pods,
        }
    }

    /// When the newest read began that vouches for what the cache says of a pod, be it that the pod
    /// is absent; [`Mark::default`] before any did.
    #[must_use]
    pub fn observed(&self, uid: &PodUid) -> Mark {
        self.contents().observed(uid)
    }

    /// When the newest full relist that was believed began; `None` before the first.
    #[must_use]
    pub fn observed_all(&self) -> Option<Mark> {
        self.contents().all
    }

    /// The revision of the newest change in the cache. To list and watch after, see
    /// [`Cache::listing`]: what is read in two steps may have changed in between.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.contents().revision
    }

    /// Whether the cache holds a pod.
    #[must_use]
    pub fn contains(&self, uid: &PodUid) -> bool {
        self.contents().pods.contains_key(uid)
    }

    /// How many pods there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.contents().pods.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn contents(&self) -> RwLockReadGuard<'_, Contents> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn cached(&self, uid: &PodUid) -> Option<Cached> {
        self.pods.get(uid).map(|status| Cached {
            status: Arc::clone(status),
            observed: self.observed(uid),
        })
    }

    fn observed(&self, uid: &PodUid) -> Mark {
        if let Some(held) = self.excepted.get(uid) {
            return *held;
        }
        let own = self.own.get(uid).copied().unwrap_or_default();
        own.max(self.all.unwrap_or_default())
    }

    fn forget_absent_marks(&mut self) {
        if self.own.len() > self.pods.len() + ABSENT_MARKS {
            let Self { own, pods, .. } = self;
            own.retain(|uid, _| pods.contains_key(uid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::{Mono, PodIdentity, SeqPoint};

    fn mark(count: u64) -> Mark {
        Mark(SeqPoint {
            at: Mono(count),
            count,
        })
    }

    fn status(uid: &str, revision: u64) -> Arc<PodStatus> {
        Arc::new(PodStatus {
            pod: PodIdentity {
                uid: uid.into(),
                namespace: "ns".into(),
                name: uid.into(),
            },
            ips: Vec::new(),
            error: None,
            sandboxes: Vec::new(),
            containers: Vec::new(),
            revision: Revision(revision),
        })
    }

    fn uid(text: &str) -> PodUid {
        text.into()
    }

    #[test]
    fn a_full_relist_vouches_for_the_present_and_the_absent_but_not_for_the_excepted() {
        let (mut writer, cache) = cache();
        writer.publish(uid("a"), Revision(1), Some(status("a", 1)));
        writer.publish(uid("b"), Revision(2), Some(status("b", 2)));
        assert_eq!(cache.observed_all(), None);
        assert_eq!(cache.observed(&uid("a")), Mark::default());

        writer.observed_all(mark(10), BTreeSet::from([uid("b")]));
        assert_eq!(cache.get(&uid("a")).unwrap().observed, mark(10));
        assert_eq!(cache.get(&uid("b")).unwrap().observed, Mark::default());
        assert_eq!(cache.get(&uid("gone")), None);
        assert_eq!(cache.observed(&uid("gone")), mark(10));
        assert_eq!(cache.observed_all(), Some(mark(10)));
    }

    #[test]
    fn what_a_pod_was_observed_at_never_goes_back() {
        let (mut writer, cache) = cache();
        let a = uid("a");
        writer.observed_all(mark(10), BTreeSet::new());
        writer.observed(a.clone(), mark(15));
        writer.observed(a.clone(), mark(12));
        assert_eq!(cache.observed(&a), mark(15));

        // A full relist that began before the pod's own read adds nothing for it.
        writer.observed_all(mark(13), BTreeSet::new());
        assert_eq!(cache.observed(&a), mark(15));

        // Excepted, it keeps what it had, and a read of its own still counts.
        writer.observed_all(mark(20), BTreeSet::from([a.clone()]));
        assert_eq!(cache.observed(&a), mark(15));
        writer.observed(a.clone(), mark(25));
        assert_eq!(cache.observed(&a), mark(25));

        // No longer excepted by a relist that began before that read: the read stands.
        writer.observed_all(mark(22), BTreeSet::new());
        assert_eq!(cache.observed(&a), mark(25));
        assert_eq!(cache.observed(&uid("b")), mark(22));

        // Late news of an older relist changes nothing.
        writer.observed_all(mark(21), BTreeSet::from([uid("b")]));
        assert_eq!(cache.observed(&uid("b")), mark(22));
    }

    #[test]
    fn a_pod_taken_out_is_gone_and_the_revision_tells_that_something_changed() {
        let (mut writer, cache) = cache();
        writer.publish(uid("b"), Revision(1), Some(status("b", 1)));
        writer.publish(uid("a"), Revision(2), Some(status("a", 2)));
        let listing = cache.listing();
        assert_eq!(listing.revision, Revision(2));
        let listed: Vec<_> = listing
            .pods
            .into_iter()
            .map(|cached| cached.status.pod.uid.clone())
            .collect();
        assert_eq!(listed, [uid("a"), uid("b")]);

        writer.publish(uid("a"), Revision(3), None);
        assert_eq!(cache.get(&uid("a")), None);
        assert!(cache.contains(&uid("b")));
        assert_eq!((cache.len(), cache.revision()), (1, Revision(3)));
    }

    #[test]
    fn asking_about_pods_that_do_not_exist_does_not_grow_memory() {
        let (mut writer, cache) = cache();
        writer.publish(uid("here"), Revision(1), Some(status("here", 1)));
        writer.observed(uid("here"), mark(5));
        for n in 0..(ABSENT_MARKS as u64 * 3) {
            writer.observed(uid(&format!("ghost-{n}")), mark(10 + n));
        }
        assert!(cache.contents().own.len() <= ABSENT_MARKS + 1);
        assert_eq!(cache.observed(&uid("here")), mark(5));
    }
}
