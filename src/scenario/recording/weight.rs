//! How much memory recorded things take: what the bounds of a queue and of a flight count.
//!
//! Ids and names are shared with the engine's records as long as those have them, and are counted all the
//! same: a bound must hold for whatever a runtime sends, and any text may be as long as a message.

use std::sync::Arc;

use super::format::Record;
use super::lists::{Changes, ListContent};
use crate::engine::{Answer, Input};
use crate::lifecycle::{
    ContainerListing, ContainerStatus, Listed, PodIdentity, Refusal, SandboxListing, SandboxStatus,
};

/// Something that a list, an inspection or a message has any number of.
trait Weigh: Sized {
    /// Its texts, in bytes.
    fn texts(&self) -> usize;

    fn weight(&self) -> usize {
        size_of::<Self>() + self.texts()
    }
}

fn of_all<'a, T: Weigh + 'a>(things: impl IntoIterator<Item = &'a T>) -> usize {
    things.into_iter().map(Weigh::weight).sum()
}

impl Weigh for PodIdentity {
    fn texts(&self) -> usize {
        self.uid.as_str().len() + self.namespace.len() + self.name.len()
    }
}

impl Weigh for SandboxListing {
    fn texts(&self) -> usize {
        self.id.as_str().len() + self.pod.texts()
    }
}

impl Weigh for ContainerListing {
    fn texts(&self) -> usize {
        self.id.as_str().len()
            + self.sandbox.as_ref().map_or(0, |id| id.as_str().len())
            + self.pod.as_ref().map_or(0, Weigh::texts)
            + self.name.len()
            + self.image.len()
            + self.image_ref.len()
    }
}

impl Weigh for SandboxStatus {
    fn texts(&self) -> usize {
        let addresses = self.ips.iter().map(|ip| size_of_val(ip) + ip.len());
        self.id.as_str().len() + self.pod.texts() + addresses.sum::<usize>()
    }
}

impl Weigh for ContainerStatus {
    fn texts(&self) -> usize {
        self.id.as_str().len()
            + self.pod.as_ref().map_or(0, Weigh::texts)
            + self.name.len()
            + self.reason.len()
            + self.message.len()
            + self.image.len()
            + self.image_ref.len()
    }
}

impl<T: Weigh> Weigh for Arc<T> {
    fn texts(&self) -> usize {
        T::weight(self)
    }
}

/// What an input holds beside its own size.
pub(super) fn of_input(input: &Input) -> usize {
    match input {
        Input::Answered { answer, .. } => match answer {
            Answer::Listed(Ok(list)) => of_listed(&list.sandboxes) + of_listed(&list.containers),
            Answer::Inspected(inspection) => {
                let sandboxes = inspection.sandboxes.iter();
                let containers = inspection.containers.iter();
                of_all(sandboxes.filter_map(|(_, status)| status.as_ref().ok()))
                    + of_all(containers.filter_map(|(_, status)| status.as_ref().ok()))
            }
            Answer::Listed(Err(_)) | Answer::Version(_) => 0,
        },
        Input::StreamMessage { event, .. } => {
            event.id.len()
                + of_all(&event.sandbox)
                + of_all(&event.containers)
                + size_of_val::<[Refusal]>(&event.refused)
        }
        Input::StreamOverflow { pods, .. } => pods.len() * 96,
        _ => 0,
    }
}

/// What a record holds beside its own size.
pub(super) fn of_record(record: &Record) -> usize {
    match record {
        Record::Taken(input) => of_input(input),
        _ => 0,
    }
}

/// What a list in its shortest form holds beside its own size.
pub(super) fn of_list(content: &ListContent) -> usize {
    match content {
        ListContent::Full { list, .. } => of_listed(&list.sandboxes) + of_listed(&list.containers),
        ListContent::Same(_) => 0,
        ListContent::Changed {
            sandboxes,
            containers,
            ..
        } => of_changes(sandboxes) + of_changes(containers),
    }
}

fn of_listed<T: Weigh>(listed: &Listed<T>) -> usize {
    let unreadable = listed
        .unreadable
        .iter()
        .map(|id| size_of_val(id) + id.len());
    of_all(&listed.items) + unreadable.sum::<usize>() + size_of_val::<[Refusal]>(&listed.refused)
}

fn of_changes<T: Weigh>(changes: &Changes<T>) -> usize {
    let gone = changes.gone.iter().map(|id| size_of_val(id) + id.len());
    of_all(&changes.put) + gone.sum::<usize>()
}
