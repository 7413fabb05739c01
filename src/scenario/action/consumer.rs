//! The details of what consumers do.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Action;
use crate::scenario::values::{PodName, is_default};

/// See [`Action::Subscribe`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Subscribe {
    /// Its name.
    #[serde(rename = "as")]
    pub name: String,
    /// Whether it begins with what is there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub with_snapshot: bool,
    /// Whether it does not read for the time being.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asleep: bool,
}

/// See [`Action::Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ask {
    /// What the answer is called in expectations.
    #[serde(rename = "as")]
    pub name: String,
    /// The pod.
    pub pod: PodName,
    /// Newer than this mark; than this moment if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub newer_than: Option<String>,
    /// Whether phases are enough.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phases_only: bool,
}
