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
    /// Takes what a list shows.
    pub fn take_listing(&mut self, listing: &SandboxListing) {
        self.attempt = listing.attempt;
        self.created_at = listing.created_at.or(self.created_at);
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

    /// Takes what a list shows: the only place that names the sandbox.
    pub fn take_listing(&mut self, listing: &ContainerListing) {
        if self.sandbox.is_none() {
            self.sandbox.clone_from(&listing.sandbox);
        }
        self.attempt = listing.attempt;
        self.created_at = listing.created_at.or(self.created_at);
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
