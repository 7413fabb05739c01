//! The details of what consumers do.

use serde::Deserialize;

#[cfg(doc)]
use super::Action;
use crate::scenario::values::PodName;

/// See [`Action::Subscribe`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Subscribe {
    /// Its name.
    #[serde(rename = "as")]
    pub name: String,
    /// Whether it begins with what is there.
    #[serde(default)]
    pub with_snapshot: bool,
    /// Whether it does not read for the time being.
    #[serde(default)]
    pub asleep: bool,
}

/// See [`Action::Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ask {
    /// What the answer is called in expectations.
    #[serde(rename = "as")]
    pub name: String,
    /// The pod.
    pub pod: PodName,
    /// Newer than this mark; than this moment if absent.
    #[serde(default)]
    pub newer_than: Option<String>,
    /// Whether phases are enough.
    #[serde(default)]
    pub phases_only: bool,
}
