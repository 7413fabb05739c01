//! The decoder by itself, for whoever has the bytes of a runtime's answers: benchmarks, budgets, fuzzing.
//!
//! No part of the promised interface.

use super::error::DecodeError;
use super::wire::listing::{Item, KnownItems, KnownLists, ListReader};
use super::wire::texts::{KnownTexts, RecentTexts};
use super::wire::{decode, event};
use crate::engine::RuntimeVersion;
use crate::lifecycle::{ContainerStatus, Listed, NodeList, Refusal, RuntimeEvent, SandboxStatus};

/// Reads one list after the other, as a client does.
#[derive(Debug, Default)]
pub struct Lists {
    known: KnownLists,
}

impl Lists {
    /// Reads a list of the node from the messages that it came in.
    ///
    /// # Errors
    ///
    /// If the bytes are no messages of CRI.
    pub fn read<'a>(
        &mut self,
        sandboxes: impl IntoIterator<Item = &'a [u8]>,
        containers: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<NodeList, DecodeError> {
        let mut known = std::mem::take(&mut self.known);
        let list = NodeList {
            sandboxes: read(&mut known.sandboxes, &mut known.texts, sandboxes)?,
            containers: read(&mut known.containers, &mut known.texts, containers)?,
        };
        self.known = known;
        Ok(list)
    }
}

fn read<'a, T: Item>(
    known: &mut KnownItems<T>,
    texts: &mut KnownTexts,
    messages: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Listed<T>, DecodeError> {
    let mut list = ListReader::begin(known, texts);
    for message in messages {
        list.take(message)?;
    }
    Ok(list.finish())
}

/// Reads a message of the event stream.
///
/// # Errors
///
/// If the bytes are no message of CRI.
pub fn event(message: &[u8]) -> Result<RuntimeEvent, Refusal> {
    event::event(message, &mut RecentTexts::default())
}

/// Reads the answer to `Version`.
///
/// # Errors
///
/// As every answer; no field may be empty.
pub fn version(message: &[u8]) -> Result<RuntimeVersion, DecodeError> {
    decode::version(message)
}

/// Reads the answer to `PodSandboxStatus`, and the statuses that it brought along.
///
/// # Errors
///
/// As every answer.
pub fn sandbox(message: &[u8]) -> Result<(SandboxStatus, Vec<ContainerStatus>), DecodeError> {
    let answer = decode::sandbox_answer(message, &mut RecentTexts::default())?;
    Ok((answer.sandbox, answer.containers))
}

/// Reads the answer to `ContainerStatus`.
///
/// # Errors
///
/// As every answer.
pub fn container(message: &[u8]) -> Result<ContainerStatus, DecodeError> {
    decode::container_answer(message, &mut RecentTexts::default())
}
