//! What goes wrong on purpose: faults of calls, how a stream is ended.
//!
//! A table that the server asks at each call; the first fault that fits decides. Pure: a delay or a
//! hang is data here, the server does the waiting.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Status};

use super::Rpc;

/// Something that happens to calls instead of, or before, their answer.
///
/// ```
/// use pleg::simulate::{Fault, Rpc};
/// use tonic::Code;
///
/// let flaky = Fault::fail(Rpc::ListContainers, Code::Unavailable).times(3);
/// let stuck = Fault::hang(Rpc::PodSandboxStatus).for_id("6f1d");
/// # let _ = (flaky, stuck);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The method that it happens to; `None`: all of them.
    pub rpc: Option<Rpc>,
    /// Only calls that ask for this sandbox or container.
    pub id: Option<Arc<str>>,
    /// How often it happens; `None`: until it is taken out.
    pub times: Option<u32>,
    /// How long nothing happens first.
    pub delay: Duration,
    /// What happens then.
    pub outcome: Outcome,
}

/// What a fault does to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is answered.
    Answer,
    /// It fails.
    Fail(Code, String),
    /// It is never answered.
    Hang,
}

impl Fault {
    /// `rpc` fails with `code`.
    pub fn fail(rpc: impl Into<Option<Rpc>>, code: Code) -> Self {
        let message = format!("simulated fault: {}", code.description());
        Self::new(rpc.into(), Outcome::Fail(code, message))
    }

    /// `rpc` is never answered.
    pub fn hang(rpc: impl Into<Option<Rpc>>) -> Self {
        Self::new(rpc.into(), Outcome::Hang)
    }

    /// `rpc` is answered, but its content is read only `delay` after the call came.
    pub fn delay(rpc: impl Into<Option<Rpc>>, delay: Duration) -> Self {
        Self::new(rpc.into(), Outcome::Answer).after(delay)
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
        if let Outcome::Fail(_, message) = &mut self.outcome {
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
            outcome,
        }
    }

    fn fits(&self, rpc: Rpc, id: Option<&str>) -> bool {
        self.rpc.is_none_or(|mine| mine == rpc)
            && self.id.as_deref().is_none_or(|mine| id == Some(mine))
    }
}

/// How the runtime ends a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// Without an error.
    Clean,
    /// With this status.
    Failed(Code, String),
}

impl StreamEnd {
    pub(super) fn runtime_gone() -> Self {
        Self::Failed(Code::Unavailable, "the runtime went away".into())
    }

    pub(super) fn status(&self) -> Option<Status> {
        match self {
            Self::Clean => None,
            Self::Failed(code, message) => Some(Status::new(*code, message.clone())),
        }
    }
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean end"),
            Self::Failed(code, message) => write!(f, "{code:?}: {message}"),
        }
    }
}

/// The faults in force, in the order in which they were put in.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        if fault.times != Some(0) {
            self.0.push(fault);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// What happens to this call, which uses the fault up by one.
    pub(super) fn take(&mut self, rpc: Rpc, id: Option<&str>) -> Option<(Duration, Outcome)> {
        let at = self.0.iter().position(|fault| fault.fits(rpc, id))?;
        let fault = self.0.get_mut(at)?;
        let taken = (fault.delay, fault.outcome.clone());
        if let Some(times) = &mut fault.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.0.remove(at);
            }
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_happens_as_often_as_it_says_and_only_to_its_calls() {
        let mut faults = Faults::default();
        faults.add(Fault::hang(Rpc::ContainerStatus).for_id("a").times(1));
        faults.add(Fault::fail(Rpc::Version, Code::Unavailable).times(2));
        assert_eq!(faults.take(Rpc::ListContainers, None), None);
        assert_eq!(faults.take(Rpc::ContainerStatus, Some("b")), None);
        assert_eq!(
            faults.take(Rpc::ContainerStatus, Some("a")),
            Some((Duration::ZERO, Outcome::Hang))
        );
        assert_eq!(faults.take(Rpc::ContainerStatus, Some("a")), None);
        assert!(faults.take(Rpc::Version, None).is_some());
        assert!(faults.take(Rpc::Version, None).is_some());
        assert_eq!(faults.take(Rpc::Version, None), None);
    }

    #[test]
    fn a_fault_without_a_method_happens_to_all_until_it_is_taken_out() {
        let mut faults = Faults::default();
        faults.add(Fault::delay(None, Duration::from_secs(1)));
        let slow = Some((Duration::from_secs(1), Outcome::Answer));
        assert_eq!(faults.take(Rpc::Version, None), slow);
        assert_eq!(faults.take(Rpc::ListPodSandbox, None), slow);
        faults.clear();
        assert_eq!(faults.take(Rpc::Version, None), None);
    }
}
