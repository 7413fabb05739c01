//! A message on its way to the event streams: what an operation told, or bytes of any content.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::raw::RawEvent;
use super::subject::StreamMessage;
use super::wire;
use crate::lifecycle::{EventKind, PodUid};

/// A message on its way. It is encoded once, however many streams send it.
#[derive(Debug)]
pub(super) struct Message {
    content: Content,
    encoded: OnceLock<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Told(StreamMessage),
    Raw(RawEvent),
    Bytes(Bytes),
}

impl Message {
    pub(super) fn bytes(bytes: Bytes) -> Self {
        Self::new(Content::Bytes(bytes))
    }

    /// As it goes over the wire.
    pub(super) fn encoded(&self) -> Bytes {
        self.encoded
            .get_or_init(|| match &self.content {
                Content::Told(message) => wire::event(message),
                Content::Raw(raw) => raw.encode(),
                Content::Bytes(bytes) => bytes.clone(),
            })
            .clone()
    }

    /// Whether its type is this one. Bytes have none.
    pub(super) fn is_of_kind(&self, kind: EventKind) -> bool {
        match &self.content {
            Content::Told(message) => message.kind == kind,
            Content::Raw(raw) => raw.container_event_type == wire::kind_number(kind),
            Content::Bytes(_) => false,
        }
    }

    /// Whether it is about this container or sandbox.
    pub(super) fn is_about(&self, id: &str) -> bool {
        match &self.content {
            Content::Told(message) => &*message.id == id,
            Content::Raw(raw) => raw.container_id == id,
            Content::Bytes(_) => false,
        }
    }

    /// Whether it concerns this pod.
    pub(super) fn concerns(&self, pod: &PodUid) -> bool {
        match &self.content {
            Content::Told(message) => message.pod.as_ref() == Some(pod),
            Content::Raw(raw) => raw
                .pod_sandbox_status
                .as_ref()
                .and_then(|sandbox| sandbox.metadata.as_ref())
                .is_some_and(|metadata| metadata.uid == pod.as_str()),
            Content::Bytes(_) => false,
        }
    }

    fn new(content: Content) -> Self {
        Self {
            content,
            encoded: OnceLock::new(),
        }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for Message {}

impl From<StreamMessage> for Message {
    fn from(message: StreamMessage) -> Self {
        Self::new(Content::Told(message))
    }
}

impl From<RawEvent> for Message {
    fn from(raw: RawEvent) -> Self {
        Self::new(Content::Raw(raw))
    }
}

/// Messages in the order in which they are sent.
pub(super) type Messages = Vec<Arc<Message>>;
