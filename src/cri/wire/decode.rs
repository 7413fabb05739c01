//! From the bytes of an answer to what it says.
//!
//! Nothing that a runtime may send can panic here or vanish without a count: what cannot be read is
//! left out with its refusal, and an answer that lacks what CRI requires is a typed error. No answer
//! takes more memory than a small multiple of its own size.

use super::fields::{Field, Fields, Malformed};
use super::listing::MOST_ITEMS;
use super::observe;
use super::texts::Texts;
use super::views::{self, View};
use crate::engine::RuntimeVersion;
use crate::lifecycle::{ContainerStatus, SandboxStatus};

/// Why an answer cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are no message of CRI.
    #[error("the bytes are no message of CRI: {0}")]
    Undecodable(String),
    /// The message lacks fields that CRI requires, named as in the proto.
    #[error("the answer lacks {}", .0.join(", "))]
    Missing(Vec<&'static str>),
    /// The message is about another subject than the one asked about.
    #[error("the answer is about {told}, not about {asked}")]
    OtherSubject {
        /// The id in the request.
        asked: String,
        /// The id in the answer.
        told: String,
    },
}

impl From<Malformed> for DecodeError {
    fn from(problem: Malformed) -> Self {
        Self::Undecodable(problem.to_string())
    }
}

/// Every field that is required and missing, or nothing.
fn require<const N: usize>(fields: [(&'static str, bool); N]) -> Result<(), DecodeError> {
    if fields.iter().all(|(_, present)| *present) {
        return Ok(());
    }
    let missing = fields
        .into_iter()
        .filter_map(|(name, present)| (!present).then_some(name));
    Err(DecodeError::Missing(missing.collect()))
}

/// Reads `VersionResponse`. As for the reference client, none of the four fields may be empty.
pub(crate) fn version(bytes: &[u8]) -> Result<RuntimeVersion, DecodeError> {
    let answer = views::VersionAnswer::read(bytes)?;
    require([
        ("version", !answer.version.is_empty()),
        ("runtime_name", !answer.runtime_name.is_empty()),
        ("runtime_version", !answer.runtime_version.is_empty()),
        (
            "runtime_api_version",
            !answer.runtime_api_version.is_empty(),
        ),
    ])?;
    Ok(RuntimeVersion {
        name: answer.runtime_name.into(),
        version: answer.runtime_version.into(),
        api_version: answer.runtime_api_version.into(),
    })
}

/// What `PodSandboxStatus` brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SandboxAnswer {
    pub(crate) sandbox: SandboxStatus,
    /// Statuses of containers that the runtime sent along unasked. They say what they say, and
    /// nothing of containers that are not among them.
    pub(crate) containers: Vec<ContainerStatus>,
}

/// `PodSandboxStatusResponse`, but for its containers: there may be any number of them.
#[derive(Debug, Default)]
struct SandboxMessage<'a> {
    status: Option<views::SandboxStatus<'a>>,
    timestamp: i64,
}

impl SandboxMessage<'_> {
    const CONTAINERS: u32 = 3;
}

impl<'a> View<'a> for SandboxMessage<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self
                .status
                .get_or_insert_default()
                .merge(field.message()?)?,
            4 => self.timestamp = field.int64()?,
            _ => {}
        }
        Ok(())
    }
}

/// Reads `PodSandboxStatusResponse`, checked as the reference client does.
pub(crate) fn sandbox_answer(
    bytes: &[u8],
    texts: &mut impl Texts,
) -> Result<SandboxAnswer, DecodeError> {
    let answer = SandboxMessage::read(bytes)?;
    let mut containers = Vec::new();
    for field in Fields::of(bytes) {
        let field = field?;
        if field.number == SandboxMessage::CONTAINERS {
            let status = views::ContainerStatus::read(field.message()?)?;
            // Without the timestamp the list means nothing. One that fails the check is asked for by
            // itself.
            if answer.timestamp != 0
                && let Ok(status) = checked_container(&status, texts)
            {
                if containers.len() == MOST_ITEMS {
                    return Err(Malformed::TooManyItems { most: MOST_ITEMS }.into());
                }
                containers.push(status);
            }
        }
    }
    let Some(status) = answer.status else {
        return Err(DecodeError::Missing(vec!["status"]));
    };
    let metadata = status.metadata;
    require([
        ("status.id", !status.id.is_empty()),
        ("status.metadata", metadata.is_some()),
        (
            "status.metadata.name",
            metadata.is_none_or(|m| !m.name.is_empty()),
        ),
        (
            "status.metadata.namespace",
            metadata.is_none_or(|m| !m.namespace.is_empty()),
        ),
        (
            "status.metadata.uid",
            metadata.is_none_or(|m| !m.uid.is_empty()),
        ),
        ("status.created_at", status.created_at != 0),
    ])?;
    let sandbox = observe::sandbox_status(&status, texts)
        .map_err(|_| DecodeError::Missing(vec!["status"]))?;
    Ok(SandboxAnswer {
        sandbox,
        containers,
    })
}

/// `ContainerStatusResponse`.
#[derive(Debug, Default)]
struct ContainerMessage<'a> {
    status: Option<views::ContainerStatus<'a>>,
}

impl<'a> View<'a> for ContainerMessage<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.status.get_or_insert_default().merge(field.message()?),
            _ => Ok(()),
        }
    }
}

/// Reads `ContainerStatusResponse`, checked as the reference client does.
pub(crate) fn container_answer(
    bytes: &[u8],
    texts: &mut impl Texts,
) -> Result<ContainerStatus, DecodeError> {
    match ContainerMessage::read(bytes)?.status {
        Some(status) => checked_container(&status, texts),
        None => Err(DecodeError::Missing(vec!["status"])),
    }
}

/// A container's status with everything in it that CRI requires.
fn checked_container(
    status: &views::ContainerStatus<'_>,
    texts: &mut impl Texts,
) -> Result<ContainerStatus, DecodeError> {
    let metadata = status.metadata;
    require([
        ("status.id", !status.id.is_empty()),
        ("status.metadata", metadata.is_some()),
        (
            "status.metadata.name",
            metadata.is_none_or(|m| !m.name.is_empty()),
        ),
        ("status.created_at", status.created_at != 0),
        ("status.image.image", !status.image().is_empty()),
        ("status.image_ref", !status.image_ref.is_empty()),
    ])?;
    observe::container_status(status, texts).map_err(|_| DecodeError::Missing(vec!["status"]))
}
