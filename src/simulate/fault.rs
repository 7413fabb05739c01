//! What goes wrong with calls on purpose.
//!
//! A table that the server asks at each call; the first fault that fits decides. Pure: a delay or a
//! hang is data here, the server does the waiting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonic::Code;

use super::spelling::{code, duration};
use super::{Rpc, StreamEnd};

/// Names a fault that was put in, of calls or of the event stream. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub(super) u64);

/// Something that happens to calls instead of, before, or with their answer.
///
/// ```
/// use std::time::Duration;
/// use pleg::simulate::{AsOf, Fault, Rpc};
/// use tonic::Code;
///
/// let flaky = Fault::fail(Rpc::ListContainers, Code::Unavailable).times(3);
/// let stuck = Fault::hang(Rpc::PodSandboxStatus).for_id("6f1d");
/// let behind = Fault::stale(Rpc::ListContainers, AsOf::Ago(Duration::from_secs(5)));
/// # let _ = (flaky, stuck, behind);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Fault {
    /// The method that it happens to; `None`: all of them.
    #[serde(default, rename = "method", skip_serializing_if = "Option::is_none")]
    pub rpc: Option<Rpc>,
    /// Only calls that ask for this sandbox or container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// How often it happens; `None`: until it is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// How long nothing happens first.
    #[serde(default, with = "duration", skip_serializing_if = "Duration::is_zero")]
    pub delay: Duration,
    /// How long an answer is under way after its content was read, besides the character's latency.
    #[serde(default, with = "duration", skip_serializing_if = "Duration::is_zero")]
    pub slow: Duration,
    /// What happens then.
    #[serde(default)]
    pub outcome: Outcome,
}

/// What a fault does to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// It is answered.
    #[default]
    Answer,
    /// It fails.
    #[serde(rename_all = "camelCase")]
    Fail {
        /// With this code.
        #[serde(with = "code")]
        code: Code,
        /// And this message.
        #[serde(default)]
        message: String,
    },
    /// It is not answered until the fault is lifted, then as if nothing had been.
    Hang,
    /// It is answered from an older state of the runtime.
    Stale(AsOf),
    /// A streamed list ends early. A call with one answer fails as the list would.
    #[serde(rename_all = "camelCase")]
    Cut {
        /// After this many items.
        after: usize,
        /// In this way. After a clean end nobody can tell that anything is missing.
        #[serde(default)]
        end: StreamEnd,
    },
}

/// A past state of the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum AsOf {
    /// As it was this long before the call. What is older than the history is as the oldest.
    Ago(#[serde(with = "duration")] Duration),
    /// As it was [remembered](super::SimulatedRuntime::remember) under this name. A name that is not
    /// known is answered as it is now.
    Remembered(Arc<str>),
}

impl Fault {
    /// `rpc` fails with `code`.
    pub fn fail(rpc: impl Into<Option<Rpc>>, code: Code) -> Self {
        let message = format!("simulated fault: {}", code.description());
        Self::new(rpc.into(), Outcome::Fail { code, message })
    }

    /// `rpc` does not find this sandbox or container, as between a list and a status.
    pub fn not_found(rpc: impl Into<Option<Rpc>>, id: impl Into<Arc<str>>) -> Self {
        Self::fail(rpc, Code::NotFound).for_id(id)
    }

    /// `rpc` is not answered until the fault is lifted.
    pub fn hang(rpc: impl Into<Option<Rpc>>) -> Self {
        Self::new(rpc.into(), Outcome::Hang)
    }

    /// `rpc` is answered, but its content is read only `delay` after the call came.
    pub fn delay(rpc: impl Into<Option<Rpc>>, delay: Duration) -> Self {
        Self::new(rpc.into(), Outcome::Answer).after(delay)
    }

    /// `rpc` is answered, but the answer is under way for `slow` after its content was read.
    pub fn slow(rpc: impl Into<Option<Rpc>>, slow: Duration) -> Self {
        Self {
            slow,
            ..Self::new(rpc.into(), Outcome::Answer)
        }
    }

    /// `rpc` is answered from an older state of the runtime.
    pub fn stale(rpc: impl Into<Option<Rpc>>, as_of: AsOf) -> Self {
        Self::new(rpc.into(), Outcome::Stale(as_of))
    }

    /// The streamed list `rpc` breaks off after this many items.
    pub fn cut(rpc: impl Into<Option<Rpc>>, after: usize) -> Self {
        let end = StreamEnd::default();
        Self::new(rpc.into(), Outcome::Cut { after, end })
    }

    /// The same, this often only.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// The same, but nothing happens for `delay` first.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same, for calls that ask for this sandbox or container only.
    #[must_use]
    pub fn for_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same with this message in the error.
    #[must_use]
    pub fn message(mut self, text: impl Into<String>) -> Self {
        if let Outcome::Fail { message, .. } = &mut self.outcome {
            *message = text.into();
        }
        self
    }

    fn new(rpc: Option<Rpc>, outcome: Outcome) -> Self {
        Self {
            rpc,
            id: None,
            times: None,
            delay: Duration::ZERO,
            slow: Duration::ZERO,
            outcome,
        }
    }

    fn fits(&self, rpc: Rpc, id: Option<&str>) -> bool {
        self.rpc.is_none_or(|mine| mine == rpc)
            && self.id.as_deref().is_none_or(|mine| id == Some(mine))
    }
}

/// What happens to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) id: FaultId,
    pub(super) delay: Duration,
    pub(super) slow: Duration,
    pub(super) outcome: Outcome,
}

/// The faults in force, in the order in which they were put in.
#[derive(Debug, Default)]
pub(super) struct Faults {
    in_force: Vec<(FaultId, Fault)>,
    /// Those that calls hang by, used up or not.
    hanging: BTreeSet<(FaultId, Option<Rpc>)>,
    /// Grows whenever some are taken out.
    pub(super) lifts: u64,
}

impl Faults {
    pub(super) fn add(&mut self, id: FaultId, fault: Fault) {
        if fault.times != Some(0) {
            self.in_force.push((id, fault));
        }
    }

    /// Takes one out; calls that hang by it go on.
    pub(super) fn lift(&mut self, id: FaultId) {
        self.lifts += 1;
        self.in_force.retain(|(other, _)| *other != id);
        self.hanging.retain(|(other, _)| *other != id);
    }

    /// Takes out those of one method; without one, all.
    pub(super) fn lift_all(&mut self, rpc: Option<Rpc>) {
        self.lifts += 1;
        let stays = |mine: Option<Rpc>| rpc.is_some() && mine != rpc;
        self.in_force.retain(|(_, fault)| stays(fault.rpc));
        self.hanging.retain(|(_, mine)| stays(*mine));
    }

    /// Whether calls that met this fault still hang.
    pub(super) fn hangs(&self, id: FaultId) -> bool {
        self.hanging.iter().any(|(other, _)| *other == id)
    }

    /// What happens to this call, which uses the fault up by one.
    pub(super) fn take(&mut self, rpc: Rpc, id: Option<&str>) -> Option<Taken> {
        let at = self
            .in_force
            .iter()
            .position(|(_, fault)| fault.fits(rpc, id))?;
        let (id, fault) = self.in_force.get_mut(at)?;
        let taken = Taken {
            id: *id,
            delay: fault.delay,
            slow: fault.slow,
            outcome: fault.outcome.clone(),
        };
        if fault.outcome == Outcome::Hang {
            self.hanging.insert((*id, fault.rpc));
        }
        if let Some(times) = &mut fault.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.in_force.remove(at);
            }
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(list: impl IntoIterator<Item = Fault>) -> Faults {
        let mut faults = Faults::default();
        for (id, fault) in (1..).zip(list) {
            faults.add(FaultId(id), fault);
        }
        faults
    }

    #[test]
    fn a_fault_happens_as_often_as_it_says_and_only_to_its_calls() {
        let mut faults = faults([
            Fault::hang(Rpc::ContainerStatus).for_id("a").times(1),
            Fault::fail(Rpc::Version, Code::Unavailable).times(2),
        ]);
        assert_eq!(faults.take(Rpc::ListContainers, None), None);
        assert_eq!(faults.take(Rpc::ContainerStatus, Some("b")), None);
        let taken = faults.take(Rpc::ContainerStatus, Some("a")).unwrap();
        assert_eq!(taken.outcome, Outcome::Hang);
        assert_eq!(faults.take(Rpc::ContainerStatus, Some("a")), None);
        assert!(faults.take(Rpc::Version, None).is_some());
        assert!(faults.take(Rpc::Version, None).is_some());
        assert_eq!(faults.take(Rpc::Version, None), None);
    }

    #[test]
    fn a_fault_without_a_method_happens_to_all_until_it_is_lifted() {
        let mut faults = faults([Fault::delay(None, Duration::from_secs(1))]);
        for rpc in [Rpc::Version, Rpc::ListPodSandbox] {
            let taken = faults.take(rpc, None).unwrap();
            assert_eq!(taken.delay, Duration::from_secs(1));
        }
        faults.lift_all(None);
        assert_eq!(faults.take(Rpc::Version, None), None);
    }

    #[test]
    fn a_hang_that_is_used_up_hangs_until_it_is_lifted() {
        let mut faults = faults([
            Fault::hang(Rpc::ContainerStatus).times(1),
            Fault::hang(Rpc::ListContainers),
        ]);
        faults.take(Rpc::ContainerStatus, None).unwrap();
        faults.take(Rpc::ListContainers, None).unwrap();
        assert!(faults.hangs(FaultId(1)) && faults.hangs(FaultId(2)));
        faults.lift_all(Some(Rpc::ContainerStatus));
        assert!(!faults.hangs(FaultId(1)) && faults.hangs(FaultId(2)));
        faults.lift(FaultId(2));
        assert!(!faults.hangs(FaultId(2)));
        assert_eq!(faults.take(Rpc::ListContainers, None), None);
    }
}
