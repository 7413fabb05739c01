//! About how much memory recorded things take: what the bounds of a queue and of a flight count.
//!
//! Ids and names are shared with the engine's records as long as those have them; a bound need not be
//! exact, but must hold for whatever a runtime sends.

use super::format::Record;
use super::lists::ListContent;
use crate::engine::{Answer, Input};
use crate::lifecycle::{ContainerListing, ContainerStatus, NodeList, SandboxListing};

/// The texts of one message or status: ids, names, images, a reason.
const TEXTS: usize = 512;

/// What an input holds beside its own size.
pub(super) fn of_input(input: &Input) -> usize {
    match input {
        Input::Answered { answer, .. } => match answer {
            Answer::Listed(Ok(list)) => of_items(list),
            Answer::Inspected(inspection) => {
                (inspection.sandboxes.len() + inspection.containers.len())
                    * size_of::<ContainerStatus>()
            }
            Answer::Listed(Err(_)) | Answer::Version(_) => 0,
        },
        Input::StreamMessage { event, .. } => {
            // Their texts are new with each message.
            (event.containers.len() + 1) * (size_of::<ContainerStatus>() + TEXTS)
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
        ListContent::Full { list, .. } => of_items(list),
        ListContent::Same(_) => 0,
        ListContent::Changed {
            sandboxes,
            containers,
            ..
        } => {
            let new = sandboxes.put.len() + containers.put.len();
            let gone = sandboxes.gone.len() + containers.gone.len();
            new * (size_of::<ContainerListing>() + TEXTS) + gone * 96
        }
    }
}

fn of_items(list: &NodeList) -> usize {
    list.sandboxes.items.len() * size_of::<SandboxListing>()
        + list.containers.items.len() * size_of::<ContainerListing>()
}
