//! What a runtime is known to do, by its name and version: what it never tells, and who shares its
//! queue. Knowledge of the field, kept in one place; nothing here is measured.

use super::trail::Trail;
use crate::engine::RuntimeVersion;
use crate::lifecycle::{EventKind, SubjectKind};

/// A runtime's ways with events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    family: Family,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Has no events: `GetContainerEvents` came with 1.7.
    OldContainerd,
    /// One queue for all clients.
    Containerd17,
    /// A queue for each client.
    Containerd2,
    CriO,
    Other,
}

impl Habits {
    /// The ways of the runtime that answered so.
    #[must_use]
    pub fn of(version: &RuntimeVersion) -> Self {
        let mut numbers = version.version.trim_start_matches('v').split('.');
        let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        let family = match &*version.name {
            "containerd" => match (next(), next()) {
                (Some(0), _) | (Some(1), Some(0..=6)) => Family::OldContainerd,
                (Some(1), _) => Family::Containerd17,
                _ => Family::Containerd2,
            },
            "cri-o" => Family::CriO,
            _ => Family::Other,
        };
        Self { family }
    }

    /// Whether each event goes to one client only, so that listening takes events away from others.
    #[must_use]
    pub fn one_queue_for_all(self) -> bool {
        self.family == Family::Containerd17
    }

    /// Whether events are something that can be switched off, and by which words.
    pub(super) fn event_switch(self) -> Option<&'static str> {
        (self.family == Family::CriO).then_some("enable_pod_events = true under [crio.runtime]")
    }

    /// Whether nothing is known of what it never sends, so that its own record must tell.
    pub(super) fn is_unknown(self) -> bool {
        self.family == Family::Other
    }

    /// Whether this runtime does not tell this change of this subject.
    pub(super) fn never_sends(self, subject: SubjectKind, event: EventKind, life: &Trail) -> bool {
        if self.family != Family::CriO {
            return false;
        }
        match (subject, event) {
            // The event is made before the sandbox can be asked for, or after, and then suppressed.
            (SubjectKind::Sandbox, EventKind::Created | EventKind::Deleted) => true,
            // RemovePodSandbox removes what runs and what has ended, and says nothing of either.
            (SubjectKind::Sandbox, EventKind::Stopped) => life.end_inferred,
            (SubjectKind::Container, EventKind::Stopped) => {
                life.end_inferred && life.went_with_sandbox
            }
            // A failed start removes the container at once, without a word.
            (SubjectKind::Container, EventKind::Deleted) => life.went_with_sandbox || !life.ran(),
            _ => false,
        }
    }

    /// Whether this runtime leaves the sandbox's status out of this message.
    pub(super) fn omits_sandbox(self, subject: SubjectKind, event: EventKind) -> bool {
        // It asks for the status after the sandbox has left its store.
        self.family == Family::Containerd17
            && (subject, event) == (SubjectKind::Sandbox, EventKind::Deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containerd_17_has_one_queue_of_events_for_all() {
        for (name, version, expected) in [
            ("containerd", "1.7.24~ds1", true),
            ("containerd", "v1.7.0-rc.1", true),
            ("containerd", "1.6.20~ds1", false),
            ("containerd", "2.1.9", false),
            ("containerd", "10.0.0", false),
            ("containerd", "unknown", false),
            ("cri-o", "1.36.3", false),
            ("docker", "1.7.0", false),
        ] {
            let version = RuntimeVersion {
                name: name.into(),
                version: version.into(),
                api_version: "v1".into(),
            };
            let habits = Habits::of(&version);
            assert_eq!(habits.one_queue_for_all(), expected, "{name} {version:?}");
        }
    }
}
