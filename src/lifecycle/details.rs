//! What is known of a subject besides its phase, and how two reports of it merge.
//!
//! Per detail, absent is less than present. Details of one phase that differ and cannot be ordered keep
//! the value already published; the caller is told, and has the subject inspected.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    ContainerListing, ContainerStatus, ReportedState, SandboxId, SandboxListing, SandboxStatus,
    UnixNanos,
};

/// How a report stands to what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was asked for after everything known was seen: it replaces.
    Later,
    /// It cannot be ordered: it fills gaps.
    Overlapping,
}

/// What is known of a sandbox besides its phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SandboxDetails {
    /// Which try of the pod it is.
    pub attempt: u32,
    /// When it was made.
    pub created_at: Option<UnixNanos>,
    /// Its addresses, as last reported while it was ready.
    pub ips: Vec<Arc<str>>,
    /// Whether it uses the node's network.
    pub host_network: bool,
}

impl SandboxDetails {
    /// Takes what a list shows; returns whether that is anything new.
    pub fn take_listing(&mut self, listing: &SandboxListing) -> bool {
        let before = (self.attempt, self.created_at);
        self.attempt = listing.attempt;
        self.created_at = listing.created_at.or(self.created_at);
        before != (self.attempt, self.created_at)
    }

    /// Takes a status; returns whether it contradicts what is kept.
    pub fn take_status(&mut self, status: &SandboxStatus, standing: Standing) -> bool {
        self.attempt = status.attempt;
        self.created_at = status.created_at.or(self.created_at);
        self.host_network = status.host_network;
        // A runtime goes on reporting addresses for a while after the network is gone, or stops at
        // once: only a ready sandbox's word counts.
        if status.state != ReportedState::Running {
            return false;
        }
        if standing == Standing::Later || self.ips.is_empty() {
            self.ips.clone_from(&status.ips);
            return false;
        }
        !status.ips.is_empty() && status.ips != self.ips
    }
}

/// What is known of a container besides its phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContainerDetails {
    /// The sandbox that it runs in.
    pub sandbox: Option<SandboxId>,
    /// Its name in the pod.
    pub name: Arc<str>,
    /// Which try of that name it is.
    pub attempt: u32,
    /// When it was made.
    pub created_at: Option<UnixNanos>,
    /// When it began to run.
    pub started_at: Option<UnixNanos>,
    /// How it ended, once that was told.
    pub end: Option<ContainerEnd>,
    /// The image as asked for.
    pub image: Arc<str>,
    /// The image as resolved.
    pub image_ref: Arc<str>,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContainerEnd {
    /// The exit code.
    pub exit_code: i32,
    /// When.
    pub finished_at: Option<UnixNanos>,
    /// Why; empty if not told.
    pub reason: Arc<str>,
    /// More of why; empty if not told.
    pub message: Arc<str>,
}

impl ContainerDetails {
    /// What a list shows of a container that nobody knew.
    #[must_use]
    pub fn from_listing(listing: &ContainerListing) -> Self {
        Self {
            sandbox: listing.sandbox.clone(),
            name: listing.name.clone(),
            attempt: listing.attempt,
            created_at: listing.created_at,
            started_at: None,
            end: None,
            image: listing.image.clone(),
            image_ref: listing.image_ref.clone(),
        }
    }

    /// What a status shows of a container that nobody knew.
    #[must_use]
    pub fn from_status(status: &ContainerStatus) -> Self {
        let mut details = Self {
            sandbox: None,
            name: status.name.clone(),
            attempt: status.attempt,
            created_at: status.created_at,
            started_at: None,
            end: None,
            image: status.image.clone(),
            image_ref: status.image_ref.clone(),
        };
        details.take_status(status, Standing::Later);
        details
    }

    /// Takes what a list shows, the only place that surely names the sandbox; returns whether that is
    /// anything new.
    pub fn take_listing(&mut self, listing: &ContainerListing) -> bool {
        let before = (self.attempt, self.created_at);
        self.attempt = listing.attempt;
        self.created_at = listing.created_at.or(self.created_at);
        let moves = listing.sandbox.is_some() && self.sandbox != listing.sandbox;
        if moves {
            self.sandbox.clone_from(&listing.sandbox);
        }
        moves || before != (self.attempt, self.created_at)
    }

    /// Takes a status; returns whether it contradicts what is kept.
    pub fn take_status(&mut self, status: &ContainerStatus, standing: Standing) -> bool {
        let later = standing == Standing::Later;
        self.attempt = status.attempt;
        self.created_at = status.created_at.or(self.created_at);
        if later || self.image.is_empty() {
            fill(&mut self.image, &status.image);
        }
        if later || self.image_ref.is_empty() {
            fill(&mut self.image_ref, &status.image_ref);
        }
        if later || self.started_at.is_none() {
            self.started_at = status.started_at.or(self.started_at);
        }
        if status.state != ReportedState::Exited {
            return false;
        }
        let told = ContainerEnd {
            exit_code: status.exit_code,
            finished_at: status.finished_at,
            reason: status.reason.clone(),
            message: status.message.clone(),
        };
        match &mut self.end {
            Some(known) if !later => known.join(&told),
            end => {
                *end = Some(told);
                false
            }
        }
    }

    /// Whether the container ended without ever having run: a start that failed, which no runtime
    /// sends an event for.
    #[must_use]
    pub fn never_ran(&self) -> bool {
        self.end.is_some() && self.started_at.is_none()
    }
}

impl ContainerEnd {
    /// Fills gaps from `told`; returns whether the two contradict each other.
    fn join(&mut self, told: &Self) -> bool {
        let differs = self.exit_code != told.exit_code
            || (!self.reason.is_empty() && !told.reason.is_empty() && self.reason != told.reason)
            || (self.finished_at.is_some()
                && told.finished_at.is_some()
                && self.finished_at != told.finished_at);
        self.finished_at = self.finished_at.or(told.finished_at);
        if self.reason.is_empty() {
            self.reason.clone_from(&told.reason);
        }
        if self.message.is_empty() {
            self.message.clone_from(&told.message);
        }
        differs
    }
}

fn fill(kept: &mut Arc<str>, told: &Arc<str>) {
    // What is kept is shared with lists; an equal text of a message's own is let go.
    if !told.is_empty() && kept != told {
        kept.clone_from(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: UnixNanos = UnixNanos(1);
    const SINCE: UnixNanos = UnixNanos(2);

    fn status(state: ReportedState) -> ContainerStatus {
        ContainerStatus {
            id: "c1".into(),
            pod: None,
            name: "app".into(),
            attempt: 0,
            state,
            created_at: Some(MADE),
            started_at: None,
            finished_at: None,
            exit_code: 0,
            reason: "".into(),
            message: "".into(),
            image: "image:1".into(),
            image_ref: "sha256:1".into(),
        }
    }

    fn ended(reason: &str, finished_at: Option<UnixNanos>) -> ContainerStatus {
        ContainerStatus {
            reason: reason.into(),
            finished_at,
            ..status(ReportedState::Exited)
        }
    }

    #[test]
    fn a_list_tells_of_a_sandbox_which_try_it_is_and_when_it_was_made() {
        let mut known = SandboxDetails::default();
        let mut listing = SandboxListing {
            id: "S1".into(),
            pod: crate::lifecycle::PodIdentity {
                uid: "P".into(),
                namespace: "default".into(),
                name: "p".into(),
            },
            attempt: 2,
            state: ReportedState::Running,
            created_at: Some(MADE),
            labelled: true,
        };
        known.take_listing(&listing);
        assert_eq!((known.attempt, known.created_at), (2, Some(MADE)));
        listing.created_at = None;
        known.take_listing(&listing);
        assert_eq!(known.created_at, Some(MADE));
    }

    #[test]
    fn a_list_tells_of_a_container_in_which_sandbox_it_runs_and_which_try_it_is() {
        let mut unseen = status(ReportedState::Running);
        unseen.created_at = None;
        let mut known = ContainerDetails::from_status(&unseen);
        known.take_listing(&ContainerListing {
            id: "c1".into(),
            sandbox: Some("S1".into()),
            pod: None,
            name: "app".into(),
            attempt: 3,
            state: ReportedState::Running,
            created_at: Some(MADE),
            image: "".into(),
            image_ref: "".into(),
        });
        assert_eq!(known.sandbox, Some("S1".into()));
        assert_eq!((known.attempt, known.created_at), (3, Some(MADE)));
    }

    #[test]
    fn images_are_replaced_by_a_later_status_alone_and_never_by_nothing() {
        let mut known = ContainerDetails::from_status(&status(ReportedState::Running));
        let images = |known: &ContainerDetails| [known.image.clone(), known.image_ref.clone()];
        let mut newer = status(ReportedState::Running);
        newer.image = "image:2".into();
        newer.image_ref = "sha256:2".into();
        known.take_status(&newer, Standing::Overlapping);
        assert_eq!(images(&known), ["image:1".into(), "sha256:1".into()]);
        known.take_status(&newer, Standing::Later);
        assert_eq!(images(&known), ["image:2".into(), "sha256:2".into()]);
        newer.image = "".into();
        newer.image_ref = "".into();
        known.take_status(&newer, Standing::Later);
        assert_eq!(images(&known), ["image:2".into(), "sha256:2".into()]);
    }

    #[test]
    fn a_report_of_an_end_that_lacks_what_another_has_contradicts_nothing() {
        let whole = ended("Error", Some(SINCE));
        for less in [ended("", Some(SINCE)), ended("Error", None)] {
            for (first, second) in [(&whole, &less), (&less, &whole), (&less, &less)] {
                let mut known = ContainerDetails::from_status(first);
                assert!(!known.take_status(second, Standing::Overlapping));
            }
            let mut known = ContainerDetails::from_status(&less);
            known.take_status(&whole, Standing::Overlapping);
            let end = known.end.expect("it ended");
            assert_eq!((&*end.reason, end.finished_at), ("Error", Some(SINCE)));
        }
    }

    #[test]
    fn two_reports_of_one_end_that_differ_contradict_each_other_and_the_first_stays() {
        let whole = ended("Error", Some(SINCE));
        let mut another_code = whole.clone();
        another_code.exit_code = 1;
        let others = [
            another_code,
            ended("OOMKilled", Some(SINCE)),
            ended("Error", Some(MADE)),
        ];
        for other in others {
            let mut known = ContainerDetails::from_status(&whole);
            let before = known.clone();
            assert!(known.take_status(&other, Standing::Overlapping));
            assert_eq!(known, before);
        }
    }
}
