//! Names of pods, sandboxes and containers: cheap to clone, ordered, never interchangeable.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", &self.0)
            }
        }
    };
}

name_type! {
    /// A pod's uid, from the sandbox's metadata. The kubelet's are UUIDs; other clients of the
    /// runtime may use any text.
    PodUid
}
name_type! {
    /// A sandbox's runtime id (64 hexadecimal digits on containerd and CRI-O). Never reused.
    SandboxId
}
name_type! {
    /// A container's runtime id (64 hexadecimal digits on containerd and CRI-O). Never reused.
    ContainerId
}

/// What a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SubjectKind {
    /// A pod sandbox.
    Sandbox,
    /// A container.
    Container,
}

/// A container or a sandbox: what phases and lifecycle events are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SubjectId {
    /// A pod sandbox.
    Sandbox(SandboxId),
    /// A container.
    Container(ContainerId),
}

impl SubjectId {
    /// The runtime id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sandbox(id) => id.as_str(),
            Self::Container(id) => id.as_str(),
        }
    }

    /// What the subject is.
    #[must_use]
    pub fn kind(&self) -> SubjectKind {
        match self {
            Self::Sandbox(_) => SubjectKind::Sandbox,
            Self::Container(_) => SubjectKind::Container,
        }
    }
}

impl fmt::Display for SubjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which pod something belongs to, as people name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodIdentity {
    /// The pod's uid.
    pub uid: PodUid,
    /// The pod's namespace; empty if the runtime did not say.
    pub namespace: Arc<str>,
    /// The pod's name; empty if the runtime did not say.
    pub name: Arc<str>,
}
