//! Between the library's values and the wire's messages, both ways: the daemon writes, our own client
//! reads. What a newer daemon says that this client has no word for is an error, never a guess.

mod event;
mod pod;
mod status;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::messages;
use crate::lifecycle::{PodIdentity, UnixNanos};

pub use event::{event, event_from, mode_change, mode_change_from};
pub use pod::{pod, pod_from};
pub use status::{status, status_from};

/// An answer that this client cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the daemon's answer has no {0} that this client can read; are both of one version?")]
pub struct Unreadable(pub &'static str);

fn identity(pod: &PodIdentity) -> messages::PodIdentity {
    messages::PodIdentity {
        uid: pod.uid.to_string(),
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
    }
}

fn identity_from(pod: Option<messages::PodIdentity>) -> Result<PodIdentity, Unreadable> {
    let pod = pod.ok_or(Unreadable("pod"))?;
    Ok(PodIdentity {
        uid: pod.uid.into(),
        namespace: pod.namespace.into(),
        name: pod.name.into(),
    })
}

fn nanos(moment: Option<UnixNanos>) -> Option<i64> {
    moment.map(|moment| moment.0)
}

fn texts(list: &[Arc<str>]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn arcs(list: Vec<String>) -> Vec<Arc<str>> {
    list.into_iter().map(Into::into).collect()
}

/// A small value as its JSON spells it, without the quotes of a plain word.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        // Nothing in these types can fail to serialise.
        Err(_) => String::new(),
    }
}

fn from_word<T: DeserializeOwned>(word: &str, what: &'static str) -> Result<T, Unreadable> {
    let plain = serde_json::Value::String(word.to_owned());
    serde_json::from_value(plain)
        .or_else(|_| serde_json::from_str(word))
        .map_err(|_| Unreadable(what))
}

/// A count as the wire has it.
fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A count as this machine has it.
fn narrow(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
