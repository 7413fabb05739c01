//! What must always hold, judged from what the engine puts out and what the node really is. It never
//! looks into the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::act::{BY_CRICTL, PODS};
use super::node::{Node, Role, Stage, uid};
use super::watchers::{bit, subject_of};
use crate::engine::model::{Violation, violated};
use crate::engine::{Freshness, ReaderId, Reading};
use crate::lifecycle::{
    EventSet, LifecycleEvent, LifecycleKind, Mark, NodeList, Phase, PodStatus, PodUid,
    ReportedState, Revision, SubjectId,
};

#[derive(Clone, Debug)]
struct Reader {
    pod: u8,
    mark: Mark,
    freshness: Freshness,
}

/// What was said of one subject so far.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// The furthest that the cache says; Removed if it said more once.
    published: Option<Phase>,
    /// The cache showed it, be it without a phase.
    was_shown: bool,
    told: EventSet,
    /// False news of it was heard.
    slandered: bool,
    stepped_back: bool,
    /// It stepped back and has changed since the pod's last `PodSync`.
    unsynced: bool,
}

#[derive(Clone, Debug, Default)]
struct Pod {
    status: Option<Arc<PodStatus>>,
    observed: Option<Mark>,
    /// An inspection of it failed, so that an exit code may be missing.
    inspection_failed: bool,
    sync_wanted: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Witness {
    said: BTreeMap<usize, Said>,
    pods: [Pod; PODS as usize],
    readers: BTreeMap<ReaderId, Reader>,
    last_reader: u64,
    /// Subjects that nobody knew and that the full relist which is being applied hides.
    pub(crate) hides: Vec<usize>,
    /// The newest full relist that hid each such subject. Nobody can say whose an item is that cannot
    /// be read, so that list vouches without it; no later one does.
    hidden: BTreeMap<usize, Mark>,
    revision: Revision,
    pub(crate) publications: u64,
}

/// What a status says of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Not,
    Unknown,
    As(Phase),
}

fn shown(status: Option<&PodStatus>, id: &SubjectId) -> Shown {
    let state = status.and_then(|status| match id {
        SubjectId::Sandbox(id) => status
            .sandboxes
            .iter()
            .find(|sandbox| sandbox.id == *id)
            .map(|sandbox| sandbox.state),
        SubjectId::Container(id) => status
            .containers
            .iter()
            .find(|container| container.id == *id)
            .map(|container| container.state),
    });
    match state {
        None => Shown::Not,
        Some(state) => state.phase().map_or(Shown::Unknown, Shown::As),
    }
}

fn pod_number(pod: &PodUid) -> Option<u8> {
    (0..PODS).find(|&number| uid(number) == *pod)
}

impl Witness {
    pub(crate) fn false_news_of(&mut self, at: usize) {
        self.said.entry(at).or_default().slandered = true;
    }

    pub(crate) fn an_inspection_failed(&mut self, pod: &PodUid) {
        if let Some(pod) = pod_number(pod) {
            self.pods[usize::from(pod)].inspection_failed = true;
        }
    }

    pub(crate) fn asks(&mut self, pod: u8, mark: Mark, freshness: Freshness) -> ReaderId {
        self.last_reader += 1;
        let id = ReaderId(self.last_reader);
        let reader = Reader {
            pod,
            mark,
            freshness,
        };
        self.readers.insert(id, reader);
        id
    }

    /// A full relist is about to be applied: notes whom its items that cannot be read hide.
    pub(crate) fn is_hidden_by(&mut self, list: &NodeList, node: &Node) {
        let is_unreadable = |at: usize| {
            let id = node.subjects[at].id.as_str();
            let unreadable = list
                .sandboxes
                .unreadable
                .iter()
                .chain(&list.containers.unreadable);
            unreadable.into_iter().any(|one| &**one == id)
        };
        // Only its sandbox says whose a container is that crictl made.
        let is_hidden = |at: usize| {
            let is_lost = node.subjects[at].pod == BY_CRICTL && is_unreadable(node.sandbox_of(at));
            is_lost || is_unreadable(at)
        };
        let was_shown = |at: usize| self.said.get(&at).is_some_and(|said| said.was_shown);
        self.hides = (0..node.subjects.len())
            .filter(|&at| is_hidden(at) && !was_shown(at))
            .collect();
    }

    /// The reader who asked last, if he still waits, does not any more.
    pub(crate) fn gives_up(&mut self) -> Option<ReaderId> {
        let (id, _) = self.readers.pop_last()?;
        Some(id)
    }

    pub(crate) fn is_slandered(&self, at: usize) -> bool {
        self.said.get(&at).is_some_and(|said| said.slandered)
    }

    pub(crate) fn nobody_asks(&self) -> Result<(), Violation> {
        match self.readers.values().next() {
            Some(reader) => violated("Complete", format!("waits for ever: {reader:?}")),
            None => Ok(()),
        }
    }

    /// For a pod that is not there, or goes, a reinspection ends with a count and no event.
    pub(crate) fn wants_sync(&mut self, pod: u8) {
        let pod = &mut self.pods[usize::from(pod)];
        pod.sync_wanted = pod.status.is_some();
    }

    pub(crate) fn published(
        &mut self,
        pod: &PodUid,
        revision: Revision,
        status: Option<&Arc<PodStatus>>,
        node: &Node,
    ) -> Result<(), Violation> {
        self.grows(revision)?;
        self.publications += 1;
        let Some(number) = pod_number(pod) else {
            return violated("Nothing invented", format!("no such pod: {pod}"));
        };
        for id in status.into_iter().flat_map(|status| ids(status)) {
            if node
                .place(&id)
                .is_none_or(|at| node.subjects[at].pod != number)
            {
                return violated("Nothing invented", format!("{id} is no subject of {pod}"));
            }
        }
        for at in node.of_pod(number) {
            let subject = &node.subjects[at];
            let said = self.said.entry(at).or_default();
            let before = said.published;
            let shown = shown(status.map(|status| &**status), &subject.id);
            let after = match shown {
                Shown::As(phase) => Some(phase),
                Shown::Unknown => before,
                Shown::Not => said.was_shown.then_some(Phase::Removed),
            };
            said.was_shown |= shown != Shown::Not;
            if after > Some(subject.stage.phase()) && !said.slandered {
                return violated(
                    "Nothing invented",
                    format!(
                        "{} published as {after:?}, is {:?}",
                        subject.id, subject.stage
                    ),
                );
            }
            if after < before {
                if !said.slandered {
                    return violated(
                        "No regress",
                        format!("{} published as {before:?}, then as {after:?}", subject.id),
                    );
                }
                said.stepped_back = true;
            }
            said.unsynced |= after != before && said.stepped_back;
            said.published = after;
        }
        let pod = &mut self.pods[usize::from(number)];
        pod.sync_wanted &= status.is_some();
        pod.status = status.cloned();
        Ok(())
    }

    fn grows(&mut self, revision: Revision) -> Result<(), Violation> {
        if revision <= self.revision {
            return violated(
                "Revision",
                format!("{revision} comes after {}", self.revision),
            );
        }
        self.revision = revision;
        Ok(())
    }

    pub(crate) fn delivered(
        &mut self,
        event: &LifecycleEvent,
        node: &Node,
    ) -> Result<(), Violation> {
        self.grows(event.revision)?;
        let Some(pod) = pod_number(&event.pod.uid) else {
            return violated("Nothing invented", format!("nobody's event: {event:?}"));
        };
        let Some(id) = subject_of(event) else {
            self.pods[usize::from(pod)].sync_wanted = false;
            for at in node.of_pod(pod) {
                self.said.entry(at).or_default().unsynced = false;
            }
            return Ok(());
        };
        let Some(at) = node.place(&id) else {
            return violated("Nothing invented", format!("nobody's event: {event:?}"));
        };
        let said = self.said.entry(at).or_default();
        if !said.told.still_tellable().contains(bit(event.kind)) {
            return violated(
                "Once",
                format!("{id}: {} after {:?}", event.kind, said.told),
            );
        }
        said.told = said.told.with(bit(event.kind));
        let phase = match event.kind {
            LifecycleKind::ContainerStarted => Phase::Running,
            LifecycleKind::ContainerDied => Phase::Exited,
            _ => Phase::Removed,
        };
        if said.published < Some(phase) {
            return violated(
                "Cache first",
                format!(
                    "{id}: {} while the cache says {:?}",
                    event.kind, said.published
                ),
            );
        }
        let slandered = said.slandered;
        let subject = &node.subjects[at];
        if event.kind != LifecycleKind::ContainerDied || subject.role == Role::Sandbox {
            return Ok(());
        }
        let failed = self.pods[usize::from(pod)].inspection_failed;
        match (&event.exit, subject.stage.exit_code()) {
            (Some(exit), Some(code)) if exit.exit_code != code => violated(
                "Nothing invented",
                format!("{id} died with {exit:?}, not with {code}"),
            ),
            (None, Some(_)) if !failed && !slandered => violated(
                "Cache first",
                format!("{id} died without an exit code, which a read could have told"),
            ),
            _ => Ok(()),
        }
    }

    pub(crate) fn answered(
        &mut self,
        id: ReaderId,
        reading: &Reading,
        node: &Node,
    ) -> Result<(), Violation> {
        let Some(reader) = self.readers.remove(&id) else {
            return violated("Honest freshness", format!("{id:?} answered twice"));
        };
        let status = reading.status.as_deref();
        let is_error = status.is_some_and(|status| status.error.is_some());
        if is_error && reader.freshness == Freshness::Details {
            // Its error claims no freshness.
            return self.between(reader.pod, status, reader.mark, None, node);
        }
        if reading.observed < reader.mark {
            return violated(
                "Honest freshness",
                format!("answered with an older observation: {reading:?}"),
            );
        }
        let untold = status
            .into_iter()
            .flat_map(|status| &status.containers)
            .find(|one| one.state == ReportedState::Exited && one.exit_code.is_none());
        if let (Freshness::Details, Some(container)) = (reader.freshness, untold) {
            return violated(
                "Honest freshness",
                format!("a reader of details is not told how {} ended", container.id),
            );
        }
        let list = Some(reading.observed);
        self.hide(reader.pod, reading.observed, node);
        self.between(reader.pod, status, reader.mark, list, node)
    }

    /// A read that began at `mark` vouches for what the cache says of a pod.
    pub(crate) fn vouched(
        &mut self,
        pod: &PodUid,
        mark: Mark,
        node: &Node,
    ) -> Result<(), Violation> {
        match pod_number(pod) {
            Some(pod) => self.vouched_by_number(pod, mark, node),
            None => violated("Nothing invented", format!("no such pod: {pod}")),
        }
    }

    pub(crate) fn vouched_for_all(
        &mut self,
        mark: Mark,
        excepted: impl Fn(&PodUid) -> bool,
        node: &Node,
    ) -> Result<(), Violation> {
        for pod in (0..PODS).filter(|&pod| !excepted(&uid(pod))) {
            self.vouched_by_number(pod, mark, node)?;
        }
        Ok(())
    }

    fn vouched_by_number(&mut self, pod: u8, mark: Mark, node: &Node) -> Result<(), Violation> {
        let record = &mut self.pods[usize::from(pod)];
        if record.observed >= Some(mark) {
            return Ok(());
        }
        record.observed = Some(mark);
        let status = record.status.clone();
        self.hide(pod, mark, node);
        self.between(pod, status.as_deref(), mark, Some(mark), node)
    }

    /// The full relist that is being applied, from `mark` on, hides subjects of a pod.
    fn hide(&mut self, pod: u8, mark: Mark, node: &Node) {
        for &at in &self.hides {
            if node.subjects[at].pod == pod && !self.said.get(&at).is_some_and(|one| one.was_shown)
            {
                self.hidden.insert(at, mark);
            }
        }
    }

    /// Never behind the node at the mark, never ahead of it now. `list` is the one that vouches.
    fn between(
        &self,
        pod: u8,
        status: Option<&PodStatus>,
        mark: Mark,
        list: Option<Mark>,
        node: &Node,
    ) -> Result<(), Violation> {
        for at in node.of_pod(pod) {
            let subject = &node.subjects[at];
            let (earliest, latest) = (subject.phase_at(mark), subject.stage.phase());
            let shown = shown(status, &subject.id);
            let honest = match shown {
                Shown::As(phase) => earliest <= Some(phase) && phase <= latest,
                Shown::Not => {
                    earliest.is_none()
                        || latest == Phase::Removed
                        || self
                            .hidden
                            .get(&at)
                            .is_some_and(|hiding| list.is_none_or(|list| list <= *hiding))
                }
                Shown::Unknown => true,
            };
            if !honest {
                return violated(
                    "Honest freshness",
                    format!(
                        "{} is shown as {shown:?}; it was {earliest:?} at the mark and is {latest:?}",
                        subject.id
                    ),
                );
            }
        }
        Ok(())
    }

    /// Whether anybody waits for an answer or a `PodSync`.
    pub(crate) fn nobody_waits(&self) -> Result<(), Violation> {
        self.nobody_asks()?;
        match (0..PODS).find(|&pod| self.pods[usize::from(pod)].sync_wanted) {
            Some(pod) => violated(
                "Complete",
                format!("the reinspection of p{pod} is never answered"),
            ),
            None => Ok(()),
        }
    }

    /// Whether the cache is what the node is, details included.
    pub(crate) fn converged(&self, node: &Node) -> Result<(), Violation> {
        for number in 0..PODS {
            let status = self.pods[usize::from(number)].status.as_deref();
            for at in node.of_pod(number) {
                let subject = &node.subjects[at];
                let is_right = match (shown(status, &subject.id), subject.stage) {
                    (Shown::Not, Stage::Removed) | (Shown::Unknown, Stage::Unknown) => true,
                    (Shown::As(_), Stage::Unknown | Stage::Removed) => false,
                    (Shown::As(phase), stage) => phase == stage.phase(),
                    _ => false,
                };
                if !is_right {
                    return violated(
                        "Convergence",
                        format!(
                            "{} is {:?}, the cache has {status:?}",
                            subject.id, subject.stage
                        ),
                    );
                }
                if let Some(wrong) = status.and_then(|status| wrong_detail(status, at, node)) {
                    return violated("Convergence", wrong);
                }
            }
            match status {
                Some(status) if status.error.is_some() => {
                    return violated("Convergence", format!("an error stays: {status:?}"));
                }
                Some(status) if status.sandboxes.is_empty() && status.containers.is_empty() => {
                    return violated("Convergence", format!("an empty pod stays: {status:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the last delivered event of each subject tells its present phase.
    pub(crate) fn complete(&self, node: &Node) -> Result<(), Violation> {
        for (&at, said) in &self.said {
            let subject = &node.subjects[at];
            if said.stepped_back {
                if said.unsynced {
                    return violated(
                        "Complete",
                        format!("{} changed without a PodSync", subject.id),
                    );
                }
                continue;
            }
            let told = said.told;
            let is_told = match said.published {
                None => true,
                Some(Phase::Created) => told == EventSet::EMPTY,
                Some(Phase::Running) => told == EventSet::STARTED,
                Some(Phase::Exited) => {
                    told.contains(EventSet::DIED) && !told.contains(EventSet::REMOVED)
                }
                Some(Phase::Removed) => told.contains(EventSet::DIED.with(EventSet::REMOVED)),
            };
            if !is_told {
                return violated(
                    "Complete",
                    format!("{} is {:?}, told were {told:?}", subject.id, subject.stage),
                );
            }
        }
        Ok(())
    }
}

fn ids(status: &PodStatus) -> Vec<SubjectId> {
    let sandboxes = status
        .sandboxes
        .iter()
        .map(|sandbox| SubjectId::Sandbox(sandbox.id.clone()));
    let containers = status
        .containers
        .iter()
        .map(|container| SubjectId::Container(container.id.clone()));
    sandboxes.chain(containers).collect()
}

fn wrong_detail(status: &PodStatus, at: usize, node: &Node) -> Option<String> {
    let subject = &node.subjects[at];
    match &subject.id {
        SubjectId::Sandbox(id) => {
            let sandbox = status.sandboxes.iter().find(|one| one.id == *id)?;
            (subject.stage == Stage::Running && sandbox.ips != node.ips(at))
                .then(|| format!("{id} has the addresses {:?}", sandbox.ips))
        }
        SubjectId::Container(id) => {
            let container = status.containers.iter().find(|one| one.id == *id)?;
            (container.exit_code != subject.stage.exit_code())
                .then(|| format!("{id} has the exit code {:?}", container.exit_code))
        }
    }
}

/// Whether who comes now is told what is there.
pub(super) fn snapshot_is_right(
    told: &BTreeMap<SubjectId, LifecycleKind>,
    node: &Node,
) -> Result<(), Violation> {
    for subject in &node.subjects {
        // Of a state that the runtime does not know, what was told before: whoever came later is held
        // against that.
        if subject.stage == Stage::Unknown {
            continue;
        }
        let owed = match subject.stage.reported() {
            Some(ReportedState::Running) => Some(LifecycleKind::ContainerStarted),
            Some(ReportedState::Exited) => Some(LifecycleKind::ContainerDied),
            _ => None,
        };
        if told.get(&subject.id) != owed.as_ref() {
            return violated(
                "Snapshot",
                format!(
                    "{} is {:?}, a snapshot tells {:?}",
                    subject.id,
                    subject.stage,
                    told.get(&subject.id)
                ),
            );
        }
    }
    Ok(())
}
