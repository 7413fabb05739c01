//! Reads messages of the event stream.

use std::collections::HashMap;

use super::fields::{Field, Fields, Malformed};
use super::listing::MOST_ITEMS;
use super::observe::{container_status, event_kind, sandbox_status};
use super::texts::Texts;
use super::views::{self, View};
use crate::lifecycle::{ContainerId, ContainerStatus, Refusal, RuntimeEvent};

/// One message of the event stream.
///
/// # Errors
///
/// [`Refusal::Undecodable`]. Parts that cannot be read are refused inside the event instead.
pub(crate) fn event(bytes: &[u8], texts: &mut impl Texts) -> Result<RuntimeEvent, Refusal> {
    read_event(bytes, texts).map_err(|_| Refusal::Undecodable)
}

pub(super) fn read_event(bytes: &[u8], texts: &mut impl Texts) -> Result<RuntimeEvent, Malformed> {
    let message = Message::read(bytes)?;
    let mut refused = Vec::new();
    if message.id.is_empty() {
        refused.push(Refusal::EmptyId);
    }
    let sandbox = match message.sandbox.map(|status| sandbox_status(&status, texts)) {
        Some(Ok(status)) => Some(status),
        Some(Err(refusal)) => {
            refused.push(refusal);
            None
        }
        None => None,
    };
    let mut containers = Containers {
        statuses: Vec::with_capacity(message.containers.min(ORDINARY)),
        ..Containers::default()
    };
    for field in Fields::of(bytes) {
        let field = field?;
        if field.number == Message::CONTAINERS {
            let status = views::ContainerStatus::read(field.message()?)?;
            containers.take(status.id, container_status(&status, texts))?;
        }
    }
    let (statuses, refusals) = containers.finish();
    refused.extend(refusals);
    Ok(RuntimeEvent {
        id: texts.share(message.id),
        kind: event_kind(message.kind),
        stamp: message.created_at,
        sandbox,
        containers: statuses,
        refused,
    })
}

/// `ContainerEventResponse`, but for its containers: there may be any number of them.
#[derive(Debug, Default)]
struct Message<'a> {
    id: &'a str,
    kind: i32,
    created_at: i64,
    sandbox: Option<views::SandboxStatus<'a>>,
    /// How many there are.
    containers: usize,
}

impl Message<'_> {
    const CONTAINERS: u32 = 5;
}

impl<'a> View<'a> for Message<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.id = field.text()?,
            2 => self.kind = field.int32()?,
            3 => self.created_at = field.int64()?,
            4 => self
                .sandbox
                .get_or_insert_default()
                .merge(field.message()?)?,
            Self::CONTAINERS => self.containers += 1,
            _ => {}
        }
        Ok(())
    }
}

/// Up to this many containers of a message are compared one by one; no ordinary pod has more.
const ORDINARY: usize = 16;

/// The container statuses of one message, each id once.
#[derive(Debug, Default)]
struct Containers<'a> {
    statuses: Vec<ContainerStatus>,
    /// Where each id stands, once there are more than [`ORDINARY`].
    places: HashMap<ContainerId, usize>,
    /// The ids of those that could not be read.
    unreadable: Vec<&'a str>,
    refused: Vec<Refusal>,
}

impl<'a> Containers<'a> {
    fn place(&self, id: &str) -> Option<usize> {
        if self.places.is_empty() {
            self.statuses
                .iter()
                .position(|known| known.id.as_str() == id)
        } else {
            self.places.get(id).copied()
        }
    }

    /// Takes the next one. Of two with one id the further state is kept, and the first of equal ones.
    fn take(
        &mut self,
        id: &'a str,
        status: Result<ContainerStatus, Refusal>,
    ) -> Result<(), Malformed> {
        let status = match status {
            Ok(status) => status,
            Err(refusal) => {
                self.refused.push(refusal);
                if !id.is_empty() {
                    self.unreadable.push(id);
                }
                return Ok(());
            }
        };
        let place = self.place(id);
        if let Some(known) = place.and_then(|place| self.statuses.get_mut(place)) {
            self.refused.push(Refusal::DuplicateId);
            if status.state > known.state {
                *known = status;
            }
            return Ok(());
        }
        if self.statuses.len() == MOST_ITEMS {
            return Err(Malformed::TooManyItems { most: MOST_ITEMS });
        }
        if self.statuses.len() == ORDINARY {
            let ids = self.statuses.iter().map(|known| known.id.clone());
            self.places.extend(ids.zip(0..));
        }
        if self.statuses.len() >= ORDINARY {
            self.places.insert(status.id.clone(), self.statuses.len());
        }
        self.statuses.push(status);
        Ok(())
    }

    /// The statuses, and what was refused. An id that was readable once is not among the unreadable
    /// ones; each that comes again is a duplicate.
    fn finish(mut self) -> (Vec<ContainerStatus>, Vec<Refusal>) {
        let told = self.unreadable.len();
        let mut unreadable = std::mem::take(&mut self.unreadable);
        unreadable.sort_unstable();
        unreadable.dedup();
        unreadable.retain(|id| self.place(id).is_none());
        let again = (unreadable.len()..told).map(|_| Refusal::DuplicateId);
        self.refused.extend(again);
        (self.statuses, self.refused)
    }
}
