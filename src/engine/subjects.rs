//! Every known subject, live or as a tombstone, by id; and, for whoever knows it, by its place.
//!
//! Looking an id up compares texts of 64 digits; a pod goes through its subjects many times for each
//! event, and so remembers their places. A place says nothing of the subject: no two engines that know
//! the same need have the same places.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use super::subject::Subject;
use crate::lifecycle::SubjectId;

/// Where a subject lies. It stays there until it is removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Clone, Debug, Default)]
pub(super) struct Subjects {
    by_id: BTreeMap<SubjectId, Place>,
    // Boxed: most places of a node that has calmed down are empty.
    places: Vec<Option<Box<Subject>>>,
    empty: Vec<Place>,
}

impl Subjects {
    pub(super) fn get(&self, id: &SubjectId) -> Option<&Subject> {
        self.at(*self.by_id.get(id)?)
    }

    pub(super) fn get_mut(&mut self, id: &SubjectId) -> Option<&mut Subject> {
        self.at_mut(*self.by_id.get(id)?)
    }

    pub(super) fn contains_key(&self, id: &SubjectId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn at(&self, place: Place) -> Option<&Subject> {
        self.places.get(place.0)?.as_deref()
    }

    pub(super) fn at_mut(&mut self, place: Place) -> Option<&mut Subject> {
        self.places.get_mut(place.0)?.as_deref_mut()
    }

    /// Puts a subject in, in place of the one with its id if there is one.
    pub(super) fn insert(&mut self, id: SubjectId, subject: Subject) -> Place {
        let place = self.by_id.get(&id).copied();
        let place = place.or_else(|| self.empty.pop()).unwrap_or_else(|| {
            self.places.push(None);
            Place(self.places.len() - 1)
        });
        if let Some(held) = self.places.get_mut(place.0) {
            *held = Some(Box::new(subject));
        }
        self.by_id.insert(id, place);
        place
    }

    pub(super) fn remove(&mut self, id: &SubjectId) -> Option<Box<Subject>> {
        let place = self.by_id.remove(id)?;
        self.empty.push(place);
        self.places.get_mut(place.0)?.take()
    }

    /// In order of id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SubjectId, &Subject)> {
        let held = |(id, place): (_, &Place)| Some((id, self.at(*place)?));
        self.by_id.iter().filter_map(held)
    }

    /// In order of id.
    pub(super) fn for_each_mut(&mut self, mut visit: impl FnMut(&SubjectId, &mut Subject)) {
        for (id, place) in &self.by_id {
            let held = self.places.get_mut(place.0);
            if let Some(subject) = held.and_then(Option::as_deref_mut) {
                visit(id, subject);
            }
        }
    }

    /// In no order that means anything: nothing that depends on it may be done.
    #[cfg(test)]
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Subject> {
        self.places.iter_mut().filter_map(Option::as_deref_mut)
    }
}

impl PartialEq for Subjects {
    fn eq(&self, other: &Self) -> bool {
        self.by_id.len() == other.by_id.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Subjects {}

impl Hash for Subjects {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.by_id.len().hash(state);
        for entry in self.iter() {
            entry.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;
    use crate::engine::subject::{Details, Origin};
    use crate::lifecycle::{
        Knowledge, ReportedState, SandboxDetails, SeqPoint, Source, UnixNanos, Window,
    };

    fn id(name: &str) -> SubjectId {
        SubjectId::Sandbox(name.into())
    }

    fn sandbox(state: ReportedState) -> Subject {
        let window = Window {
            begun: SeqPoint::default(),
            seen: SeqPoint::default(),
        };
        let origin = Origin {
            source: Source::Relist,
            runtime_stamp: None,
            seen_at: UnixNanos(0),
            initial: false,
        };
        let details = Details::Sandbox(SandboxDetails::default());
        let knowledge = Knowledge::from_read(state, window);
        Subject::new("pod".into(), knowledge, details, true, origin)
    }

    fn ready(names: &[&str]) -> Subjects {
        let mut subjects = Subjects::default();
        for name in names {
            subjects.insert(id(name), sandbox(ReportedState::Running));
        }
        subjects
    }

    fn hash_of(subjects: &Subjects) -> u64 {
        let mut hasher = DefaultHasher::new();
        subjects.hash(&mut hasher);
        hasher.finish()
    }

    /// The model check counts a state once: whatever it can be reached by.
    #[test]
    fn the_same_subjects_are_equal_whatever_places_they_came_to_lie_in() {
        let straight = ready(&["a", "b"]);
        let mut detour = ready(&["b", "c", "a"]);
        detour.remove(&id("c"));
        assert!(straight == detour);
        assert_eq!(hash_of(&straight), hash_of(&detour));
    }

    #[test]
    fn other_subjects_or_other_knowledge_of_them_are_not_equal() {
        let known = ready(&["a", "b"]);
        let mut ended = ready(&["a", "b"]);
        ended.insert(id("b"), sandbox(ReportedState::Exited));
        for other in [ready(&["a"]), ready(&["a", "c"]), ended] {
            assert!(known != other);
            assert_ne!(hash_of(&known), hash_of(&other));
        }
    }
}
