//! The record of one pod: which subjects it has, what was published of it, which reads it waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::subjects::Place;
use super::{Freshness, ReaderId, RequestId};
use crate::lifecycle::{Mono, PodIdentity, PodStatus, SeqPoint, SubjectId};

/// A read of one pod, from the lists to the statuses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PodRead {
    pub(super) request: RequestId,
    /// When the lists were sent: what the whole read vouches for.
    pub(super) begun: SeqPoint,
    /// Whether the statuses are read too.
    pub(super) details: bool,
}

/// An inspection in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PodInspection {
    pub(super) request: RequestId,
    pub(super) begun: SeqPoint,
    /// The subjects asked about.
    pub(super) subjects: BTreeSet<SubjectId>,
    /// When the lists that it completes were sent, if it completes any: what it vouches for.
    pub(super) completes: Option<SeqPoint>,
}

/// A wish for a read that is not sent yet. Wishes share it only until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DueRead {
    /// When it became due: only a read sent after this satisfies it.
    pub(super) since: SeqPoint,
    /// From when on it may be sent.
    pub(super) at: Mono,
    pub(super) details: bool,
    /// Whether nobody but readers wants it: if they give up, it is not sent.
    pub(super) for_readers_alone: bool,
}

/// Lists that vouched for the pod's phases, waiting for the statuses that complete them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ListedAt(pub(super) SeqPoint);

/// A place in the queue for requests: running pods before dead ones, then first come first served.
pub(super) type Turn = (bool, SeqPoint);

/// A caller of `get_newer_than`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    pub(super) id: ReaderId,
    pub(super) newer_than: SeqPoint,
    pub(super) freshness: Freshness,
}

/// The watch over an unsettled pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    /// When it looks next; `None` once it leaves the pod to the slow relist.
    pub(super) at: Option<Mono>,
    pub(super) delay: Duration,
    /// Whether lists would do, or statuses must be read.
    pub(super) details: bool,
}

/// Why the details of a pod are behind, and when they are tried again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct InspectionFailure {
    pub(super) message: Arc<str>,
    pub(super) retry_at: Mono,
    pub(super) failures: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Pod {
    /// `None` until an observation names it; a reader may wait for a pod that nobody has seen.
    pub(super) identity: Option<PodIdentity>,
    /// Live ones and tombstones, and where they lie.
    pub(super) subjects: BTreeMap<SubjectId, Place>,
    pub(super) published: Option<Arc<PodStatus>>,
    /// The newest sandbox's addresses; kept while only containers are left.
    pub(super) last_ips: Vec<Arc<str>>,
    pub(super) failure: Option<InspectionFailure>,
    pub(super) observed_phases: Option<SeqPoint>,
    pub(super) observed_details: Option<SeqPoint>,
    /// The observation that the cache was told last.
    pub(super) announced: Option<SeqPoint>,
    /// When the lists were sent whose inspection failed last: what an error answer rests on.
    pub(super) observed_error: Option<SeqPoint>,
    /// How it stands in the queue for requests.
    pub(super) queued: Option<Turn>,
    pub(super) due: Option<DueRead>,
    pub(super) read: Option<PodRead>,
    pub(super) listed: Option<ListedAt>,
    pub(super) inspection: Option<PodInspection>,
    /// From when on the next inspection may tell more than the last one.
    pub(super) inspect_at: Option<Mono>,
    pub(super) readers: Vec<Reader>,
    /// A reinspect was asked for here and is not answered yet.
    pub(super) reinspect: Option<SeqPoint>,
    /// A `PodSync` is owed because a subject stepped back or changed after that.
    pub(super) sync_owed: bool,
    pub(super) watch: Option<Watch>,
}

impl Pod {
    /// Whether nothing keeps the record.
    pub(super) fn is_idle(&self) -> bool {
        self.subjects.is_empty()
            && self.published.is_none()
            && self.readers.is_empty()
            && self.read.is_none()
            && self.inspection.is_none()
            && self.due.is_none()
            && self.reinspect.is_none()
    }

    /// Makes a read due. A wish that stands already is joined: it is not sent yet.
    pub(super) fn want_read(&mut self, since: SeqPoint, at: Mono, details: bool) {
        match &mut self.due {
            Some(due) => {
                due.since = due.since.max(since);
                due.at = due.at.min(at);
                due.details |= details;
                due.for_readers_alone = false;
            }
            None => {
                self.due = Some(DueRead {
                    since,
                    at,
                    details,
                    for_readers_alone: false,
                });
            }
        }
    }

    /// When something of it becomes due by the clock alone, after `now`. What is due already waits for
    /// something else than the clock.
    pub(super) fn next_wake(&self, now: Mono) -> Option<Mono> {
        let due = self.due.map(|due| due.at);
        let retry = self.failure.as_ref().map(|failure| failure.retry_at);
        let watch = self.watch.and_then(|watch| watch.at);
        let marks = self.readers.iter().map(|reader| reader.newer_than.at);
        [due, retry, watch, self.inspect_at]
            .into_iter()
            .flatten()
            .chain(marks)
            .filter(|at| *at > now)
            .min()
    }
}
