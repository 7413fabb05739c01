//! The methods that the simulated runtime serves, and how often each was called.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A method of `runtime.v1.RuntimeService`. Files name it as CRI does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Rpc {
    /// `Version`.
    Version,
    /// `Status`.
    Status,
    /// `ListPodSandbox`.
    ListPodSandbox,
    /// `StreamPodSandboxes`.
    StreamPodSandboxes,
    /// `PodSandboxStatus`.
    PodSandboxStatus,
    /// `ListContainers`.
    ListContainers,
    /// `StreamContainers`.
    StreamContainers,
    /// `ContainerStatus`.
    ContainerStatus,
    /// `GetContainerEvents`.
    GetContainerEvents,
}

impl Rpc {
    /// Every method that is served.
    pub const ALL: [Self; 9] = [
        Self::Version,
        Self::Status,
        Self::ListPodSandbox,
        Self::StreamPodSandboxes,
        Self::PodSandboxStatus,
        Self::ListContainers,
        Self::StreamContainers,
        Self::ContainerStatus,
        Self::GetContainerEvents,
    ];

    /// The method's name in CRI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Version => "Version",
            Self::Status => "Status",
            Self::ListPodSandbox => "ListPodSandbox",
            Self::StreamPodSandboxes => "StreamPodSandboxes",
            Self::PodSandboxStatus => "PodSandboxStatus",
            Self::ListContainers => "ListContainers",
            Self::StreamContainers => "StreamContainers",
            Self::ContainerStatus => "ContainerStatus",
            Self::GetContainerEvents => "GetContainerEvents",
        }
    }
}

impl fmt::Display for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How often each method was called, whatever came of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcCounts(BTreeMap<Rpc, u64>);

impl RpcCounts {
    /// Calls of one method.
    #[must_use]
    pub fn of(&self, rpc: Rpc) -> u64 {
        self.0.get(&rpc).copied().unwrap_or(0)
    }

    /// Calls of all methods.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The methods that were called, in CRI's order, with their calls.
    pub fn iter(&self) -> impl Iterator<Item = (Rpc, u64)> + '_ {
        self.0.iter().map(|(rpc, calls)| (*rpc, *calls))
    }

    /// What was called since `earlier`, which was read from the same runtime.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = self
            .iter()
            .map(|(rpc, calls)| (rpc, calls.saturating_sub(earlier.of(rpc))))
            .filter(|(_, calls)| *calls > 0);
        Self(grown.collect())
    }

    pub(super) fn count(&mut self, rpc: Rpc) {
        *self.0.entry(rpc).or_default() += 1;
    }
}

impl fmt::Display for RpcCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (rpc, calls)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{rpc} {calls}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_per_method_and_can_be_compared() {
        let mut counts = RpcCounts::default();
        counts.count(Rpc::Version);
        let before = counts.clone();
        counts.count(Rpc::ListContainers);
        counts.count(Rpc::ListContainers);
        assert_eq!(counts.total(), 3);
        assert_eq!(counts.to_string(), "Version 1, ListContainers 2");
        let since: Vec<_> = counts.since(&before).iter().collect();
        assert_eq!(since, [(Rpc::ListContainers, 2)]);
    }
}
