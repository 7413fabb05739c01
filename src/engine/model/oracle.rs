//! What must always hold, judged from outside: from what the engine puts out and what the world
//! really is. It never looks into the engine.
//!
//! Each check carries the name of the property of which it is a part. Those that hold at every
//! moment are here; those that hold only when the world rests are in `rest`.

use super::truth::{Cast, MAX_SUBJECTS, Role, Stage, Subject, Truth, address};
use crate::engine::{Freshness, ReaderId, Reading};
use crate::lifecycle::{
    EventSet, LifecycleEvent, LifecycleKind, Mark, Phase, PodStatus, ReportedState, Revision,
    SubjectId,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Which.
    pub property: &'static str,
    /// How.
    pub detail: String,
}

/// A detail for a place where there is one line for it.
pub(crate) fn as_one_line(detail: &str) -> String {
    detail.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn violated<T>(property: &'static str, detail: String) -> Result<T, Violation> {
    Err(Violation { property, detail })
}

/// A reader that waits.
#[derive(Clone, Debug)]
struct Reader {
    id: ReaderId,
    mark: Mark,
    freshness: Freshness,
    /// The world when the mark was taken.
    then: Truth,
}

/// What was published and delivered so far, as far as it matters to the properties.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    cast: Cast,
    /// The status in the cache.
    status: Option<Arc<PodStatus>>,
    /// The furthest that the cache says of each subject; Removed if it said more once.
    published: [Option<Phase>; MAX_SUBJECTS],
    /// Subjects that the cache showed, be it without a phase.
    was_shown: [bool; MAX_SUBJECTS],
    told: [EventSet; MAX_SUBJECTS],
    /// Subjects that false news was delivered of.
    slandered: [bool; MAX_SUBJECTS],
    /// The subject whose item cannot be read in the full relist that is being applied.
    pub(super) hides: Option<Subject>,
    /// The newest full relist in which the item of a subject that nobody knew could not be read. Nobody
    /// can say whose it is, so that list vouches without it; no later one does.
    hidden: [Option<Mark>; MAX_SUBJECTS],
    stepped_back: [bool; MAX_SUBJECTS],
    /// Subjects that stepped back and have changed since the last `PodSync`.
    unsynced: [bool; MAX_SUBJECTS],
    /// Whether an inspection ever failed, so that an exit code may be missing.
    inspections_failed: bool,
    /// Whether somebody waits for a `PodSync`.
    reinspect_waits: bool,
    readers: Vec<Reader>,
    revision: Revision,
    /// The newest mark that the cache was said to be observed at.
    observed: Option<Mark>,
    /// The world, each with the mark taken just before it became so.
    history: Vec<(Mark, Truth)>,
}

impl Hash for Oracle {
    /// Leaves out what only grows: marks, revisions and the history that belongs to old marks.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.published.hash(state);
        self.was_shown.hash(state);
        self.told.hash(state);
        self.slandered.hash(state);
        self.hidden.map(|list| list.is_some()).hash(state);
        self.stepped_back.hash(state);
        self.unsynced.hash(state);
        self.inspections_failed.hash(state);
        self.reinspect_waits.hash(state);
        for reader in &self.readers {
            (reader.freshness, reader.then).hash(state);
        }
    }
}

impl Oracle {
    pub(super) fn new(cast: Cast, mark: Mark, truth: Truth) -> Self {
        Self {
            cast,
            status: None,
            published: [None; MAX_SUBJECTS],
            was_shown: [false; MAX_SUBJECTS],
            told: [EventSet::EMPTY; MAX_SUBJECTS],
            slandered: [false; MAX_SUBJECTS],
            hides: None,
            hidden: [None; MAX_SUBJECTS],
            stepped_back: [false; MAX_SUBJECTS],
            unsynced: [false; MAX_SUBJECTS],
            inspections_failed: false,
            reinspect_waits: false,
            readers: Vec::new(),
            revision: Revision(0),
            observed: None,
            history: vec![(mark, truth)],
        }
    }

    pub(super) fn world_becomes(&mut self, mark: Mark, truth: Truth) {
        self.history.push((mark, truth));
    }

    pub(super) fn false_news_of(&mut self, subject: Subject) {
        self.slandered[subject.index()] = true;
    }

    pub(super) fn an_inspection_failed(&mut self) {
        self.inspections_failed = true;
    }

    pub(super) fn reader_asks(
        &mut self,
        id: ReaderId,
        mark: Mark,
        freshness: Freshness,
        then: Truth,
    ) {
        self.readers.push(Reader {
            id,
            mark,
            freshness,
            then,
        });
    }

    pub(super) fn reader_gives_up(&mut self, id: ReaderId) {
        self.readers.retain(|reader| reader.id != id);
    }

    pub(super) fn waits(&self, id: ReaderId) -> bool {
        self.readers.iter().any(|reader| reader.id == id)
    }

    pub(super) fn inspections_failed(&self) -> bool {
        self.inspections_failed
    }

    /// For a pod that is not there, or goes, a reinspection ends with a count and no event.
    pub(super) fn reinspect_asked(&mut self) {
        self.reinspect_waits = self.status.is_some();
    }

    /// Whether a reader waits for its answer, or somebody for the `PodSync` of a pod that is there.
    pub(super) fn somebody_waits(&self) -> bool {
        self.readers_wait() || self.reinspect_waits
    }

    pub(super) fn heard_false_news(&self) -> bool {
        self.slandered.contains(&true)
    }

    pub(super) fn readers_wait(&self) -> bool {
        !self.readers.is_empty()
    }

    pub(crate) fn status(&self) -> Option<&PodStatus> {
        self.status.as_deref()
    }

    pub(crate) fn shows(&self, subject: Subject) -> bool {
        !matches!(shown(self.cast, self.status(), subject), Shown::Not)
    }

    pub(crate) fn told(&self, subject: Subject) -> Vec<LifecycleKind> {
        self.told[subject.index()].iter().collect()
    }

    pub(crate) fn has_stepped_back(&self, subject: Subject) -> bool {
        self.stepped_back[subject.index()]
    }

    pub(super) fn published(
        &mut self,
        revision: Revision,
        status: Option<Arc<PodStatus>>,
        truth: &Truth,
    ) -> Result<(), Violation> {
        if revision <= self.revision {
            return violated(
                "Revision",
                format!("{revision} published after {}", self.revision),
            );
        }
        self.revision = revision;
        if let Some(status) = &status
            && status.revision != revision
        {
            return violated("Revision", format!("{revision} publishes {status:?}"));
        }
        for subject in self.cast.subjects() {
            let before = self.published[subject.index()];
            let shown = shown(self.cast, status.as_deref(), subject);
            let was_shown = &mut self.was_shown[subject.index()];
            let after = match shown {
                Shown::As(phase) => Some(phase),
                Shown::Unknown => before,
                Shown::Not => was_shown.then_some(Phase::Removed),
            };
            *was_shown |= !matches!(shown, Shown::Not);
            self.one_published(subject, before, after, truth)?;
        }
        self.reinspect_waits &= status.is_some();
        self.status = status;
        Ok(())
    }

    fn one_published(
        &mut self,
        subject: Subject,
        before: Option<Phase>,
        after: Option<Phase>,
        truth: &Truth,
    ) -> Result<(), Violation> {
        let at = subject.index();
        let name = self.cast.id(subject);
        if after > truth.stage(subject).phase() && !self.slandered[at] {
            return violated(
                "Nothing invented",
                format!(
                    "{name} published as {after:?}, is {:?}",
                    truth.stage(subject)
                ),
            );
        }
        if after < before {
            if !self.slandered[at] {
                return violated(
                    "No regress",
                    format!("{name} published as {before:?}, then as {after:?}"),
                );
            }
            self.stepped_back[at] = true;
        }
        if after != before && self.stepped_back[at] {
            self.unsynced[at] = true;
        }
        self.published[at] = after;
        Ok(())
    }

    pub(super) fn delivered(
        &mut self,
        event: &LifecycleEvent,
        truth: &Truth,
    ) -> Result<(), Violation> {
        if event.kind == LifecycleKind::PodSync {
            self.unsynced = [false; MAX_SUBJECTS];
            self.reinspect_waits = false;
            return Ok(());
        }
        let Some(subject) = event
            .subject
            .as_ref()
            .and_then(|subject| self.cast.subject(&subject.id()))
        else {
            return violated("Nothing invented", format!("nobody's event: {event:?}"));
        };
        let at = subject.index();
        let name = self.cast.id(subject);
        let (bit, told_phase) = match event.kind {
            LifecycleKind::ContainerStarted => (EventSet::STARTED, Phase::Running),
            LifecycleKind::ContainerDied => (EventSet::DIED, Phase::Exited),
            _ => (EventSet::REMOVED, Phase::Removed),
        };
        if !self.told[at].still_tellable().contains(bit) {
            return violated(
                "Once",
                format!("{name}: {} after {:?}", event.kind, self.told[at]),
            );
        }
        self.told[at] = self.told[at].with(bit);
        if self.published[at] < Some(told_phase) {
            return violated(
                "Cache first",
                format!(
                    "{name}: {} while the cache says {:?}",
                    event.kind, self.published[at]
                ),
            );
        }
        if event.kind == LifecycleKind::ContainerDied && !self.cast.is_sandbox(subject) {
            self.exit_told(subject, event, truth)?;
        }
        Ok(())
    }

    fn exit_told(
        &self,
        subject: Subject,
        event: &LifecycleEvent,
        truth: &Truth,
    ) -> Result<(), Violation> {
        let stage = truth.stage(subject);
        match &event.exit {
            Some(exit) if ![7, 128].contains(&exit.exit_code) => violated(
                "Nothing invented",
                format!("{} died with {exit:?}", self.cast.id(subject)),
            ),
            None if stage.exit_code().is_some()
                && !self.inspections_failed
                && !self.slandered[subject.index()] =>
            {
                violated(
                    "Cache first",
                    format!(
                        "{} died without an exit code, which a read could have told",
                        self.cast.id(subject)
                    ),
                )
            }
            _ => Ok(()),
        }
    }

    pub(super) fn reader_answered(
        &mut self,
        id: ReaderId,
        reading: &Reading,
        now: &Truth,
    ) -> Result<(), Violation> {
        let Some(at) = self.readers.iter().position(|reader| reader.id == id) else {
            return violated("Honest freshness", format!("{id:?} answered twice"));
        };
        let reader = self.readers.remove(at);
        // A pod whose statuses cannot be read is answered with its error: for details, no freshness
        // is claimed then.
        let is_error = reader.freshness == Freshness::Details
            && reading
                .status
                .as_ref()
                .is_some_and(|status| status.error.is_some());
        if is_error {
            let status = reading.status.as_deref();
            return self.between(status, &reader.then, now, None, "a reader");
        }
        if reading.observed < reader.mark {
            return violated(
                "Honest freshness",
                format!("answered with an older observation: {reading:?}"),
            );
        }
        let list = Some(reading.observed);
        self.hide(reading.observed);
        self.between(
            reading.status.as_deref(),
            &reader.then,
            now,
            list,
            "a reader",
        )?;
        if reader.freshness == Freshness::Details {
            Self::details_told(reading.status.as_deref())?;
        }
        Ok(())
    }

    /// The list that is being applied, from `mark` on, hides a subject, and with a sandbox the containers
    /// whose pod only that sandbox names.
    fn hide(&mut self, mark: Mark) {
        let Some(hidden) = self.hides else { return };
        let names_its_containers = self.cast.is_sandbox(hidden) && !self.cast.labelled;
        for subject in self.cast.subjects() {
            let is_hidden =
                subject == hidden || names_its_containers && !self.cast.is_sandbox(subject);
            if is_hidden && !self.was_shown[subject.index()] {
                self.hidden[subject.index()] = Some(mark);
            }
        }
    }

    fn details_told(status: Option<&PodStatus>) -> Result<(), Violation> {
        let untold = status
            .into_iter()
            .flat_map(|status| &status.containers)
            .find(|container| {
                container.state == ReportedState::Exited && container.exit_code.is_none()
            });
        match untold {
            Some(container) => violated(
                "Honest freshness",
                format!("a reader of details is not told how {} ended", container.id),
            ),
            None => Ok(()),
        }
    }

    /// A read that began at `mark` vouches for what is in the cache. Saying again what was said
    /// before claims nothing new.
    pub(super) fn vouched(&mut self, mark: Mark, now: &Truth) -> Result<(), Violation> {
        if self.observed >= Some(mark) {
            return Ok(());
        }
        self.observed = Some(mark);
        self.hide(mark);
        let then = self
            .history
            .iter()
            .rev()
            .find(|(since, _)| *since <= mark)
            .or(self.history.first());
        match then {
            Some((_, then)) => {
                self.between(self.status.as_deref(), then, now, Some(mark), "the cache")
            }
            None => Ok(()),
        }
    }

    /// Never behind the world of then, never ahead of the world of now. `list` is the one that vouches.
    fn between(
        &self,
        status: Option<&PodStatus>,
        then: &Truth,
        now: &Truth,
        list: Option<Mark>,
        who: &str,
    ) -> Result<(), Violation> {
        for subject in self.cast.subjects() {
            let (earliest, latest) = (then.stage(subject), now.stage(subject));
            let honest = match shown(self.cast, status, subject) {
                Shown::As(phase) => {
                    earliest.phase() <= Some(phase) && Some(phase) <= latest.phase()
                }
                Shown::Not => {
                    earliest == Stage::Absent
                        || latest == Stage::Removed
                        || self.hidden[subject.index()]
                            .is_some_and(|hiding| list.is_none_or(|list| list <= hiding))
                }
                Shown::Unknown => true,
            };
            if !honest {
                return violated(
                    "Honest freshness",
                    format!(
                        "{who} is told of {}: {:?}; it was {earliest:?} at the mark and is {latest:?}",
                        self.cast.id(subject),
                        shown(self.cast, status, subject)
                    ),
                );
            }
        }
        Ok(())
    }

    /// Whether the cache is what the runtime is, details included.
    pub(super) fn converged(&self, truth: &Truth) -> Result<(), Violation> {
        let wrong = |detail: String| violated("Convergence", detail);
        let status = self.status.as_deref();
        for subject in self.cast.subjects() {
            let stage = truth.stage(subject);
            let right = match shown(self.cast, status, subject) {
                Shown::As(phase) => stage != Stage::Obscured && stage.phase() == Some(phase),
                Shown::Not => !stage.is_present(),
                Shown::Unknown => stage == Stage::Obscured,
            };
            if !right {
                return wrong(format!(
                    "{} is {stage:?}, the cache has {status:?}",
                    self.cast.id(subject)
                ));
            }
            if let Some(detail) = self.wrong_detail(status, subject, stage) {
                return wrong(detail);
            }
        }
        match status {
            Some(status) if status.error.is_some() => {
                wrong(format!("an error stays: {:?}", status.error))
            }
            Some(status) if status.sandboxes.is_empty() && status.containers.is_empty() => {
                wrong("a pod without anything stays in the cache".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn wrong_detail(
        &self,
        status: Option<&PodStatus>,
        subject: Subject,
        stage: Stage,
    ) -> Option<String> {
        let status = status?;
        match (self.cast.role(subject), self.cast.id(subject)) {
            (Role::Sandbox { .. }, SubjectId::Sandbox(id)) if stage == Stage::Running => {
                let sandbox = status.sandboxes.iter().find(|sandbox| sandbox.id == id)?;
                (sandbox.ips != [address(subject)])
                    .then(|| format!("{id} has the addresses {:?}", sandbox.ips))
            }
            (Role::Container { .. }, SubjectId::Container(id)) => {
                let container = status.containers.iter().find(|one| one.id == id)?;
                (container.exit_code != stage.exit_code())
                    .then(|| format!("{id} has the exit code {:?}", container.exit_code))
            }
            _ => None,
        }
    }

    /// Whether the last delivered event of each subject tells its present phase.
    pub(super) fn complete(&self, truth: &Truth) -> Result<(), Violation> {
        for subject in self.cast.subjects() {
            let at = subject.index();
            let told = self.told[at];
            if self.stepped_back[at] {
                if self.unsynced[at] {
                    return violated(
                        "Complete",
                        format!("{} changed without a PodSync", self.cast.id(subject)),
                    );
                }
                continue;
            }
            let owed = match self.published[at] {
                None => continue,
                Some(Phase::Created) => told == EventSet::EMPTY,
                Some(Phase::Running) => told == EventSet::STARTED,
                Some(Phase::Exited) => {
                    told.contains(EventSet::DIED) && !told.contains(EventSet::REMOVED)
                }
                Some(Phase::Removed) => told.contains(EventSet::DIED.with(EventSet::REMOVED)),
            };
            if !owed {
                return violated(
                    "Complete",
                    format!(
                        "{} is {:?}, told were {told:?}",
                        self.cast.id(subject),
                        truth.stage(subject)
                    ),
                );
            }
        }
        Ok(())
    }
}

/// What a status says of a subject.
#[derive(Debug)]
enum Shown {
    Not,
    Unknown,
    As(Phase),
}

fn shown(cast: Cast, status: Option<&PodStatus>, subject: Subject) -> Shown {
    let state = status.and_then(|status| match cast.id(subject) {
        SubjectId::Sandbox(id) => status
            .sandboxes
            .iter()
            .find(|sandbox| sandbox.id == id)
            .map(|sandbox| sandbox.state),
        SubjectId::Container(id) => status
            .containers
            .iter()
            .find(|container| container.id == id)
            .map(|container| container.state),
    });
    match state {
        None => Shown::Not,
        Some(state) => state.phase().map_or(Shown::Unknown, Shown::As),
    }
}
