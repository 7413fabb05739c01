//! The one error of a node without a runtime: each endpoint tried, who named it, why it failed, and
//! what else can be done.

use std::fmt;
use std::io;

use super::discover::{Candidate, ENDPOINT_VARIABLE};
use crate::cri::EndpointError;
use crate::engine::{Failure, FailureKind};

/// An endpoint that did not answer as a runtime does.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The endpoint.
    pub(crate) candidate: Candidate,
    /// Why not.
    pub(crate) why: Why,
}

/// Why an endpoint is of no use.
#[derive(Debug)]
pub(crate) enum Why {
    /// It is no endpoint.
    Misspelt(EndpointError),
    /// What is there is a folder or a file.
    NoSocket,
    /// Nothing could be reached there.
    Connect(io::Error),
    /// Something is there, and it gave no answer to `Version`.
    Answer(Failure),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misspelt(error) => write!(
                f,
                "{}; write it as unix:///run/containerd/containerd.sock",
                error.problem
            ),
            Self::NoSocket => f.write_str("is a file or a folder, no socket"),
            Self::Connect(error) => f.write_str(&refusal(error)),
            Self::Answer(failure) => match failure.kind {
                FailureKind::Unimplemented => f.write_str(
                    "answers, but serves no CRI v1: it is an older runtime, or no runtime",
                ),
                FailureKind::DeadlineExceeded => {
                    write!(f, "accepts, but does not answer: {failure}")
                }
                _ => write!(f, "answers, but not as a runtime does: {failure}"),
            },
        }
    }
}

/// Why a socket takes no connection, and whose affair that is.
pub(crate) fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; try sudo".to_owned(),
        io::ErrorKind::ConnectionRefused => {
            "connection refused: the socket is there, but nobody listens".to_owned()
        }
        io::ErrorKind::InvalidInput => {
            format!("a socket's path has at most {LONGEST_PATH} bytes, and this has more")
        }
        io::ErrorKind::WouldBlock => {
            "so many wait to be let in that nobody else may: whoever serves it hangs".to_owned()
        }
        _ => error.to_string(),
    }
}

/// What the kernel has room for in a socket's address, without the NUL at its end.
pub(crate) const LONGEST_PATH: usize = 107;

/// No runtime can be followed.
#[derive(Debug)]
pub(crate) struct NoRuntime {
    /// What was tried, in order.
    pub(crate) tried: Vec<Attempt>,
}

impl std::error::Error for NoRuntime {}

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no container runtime answers; tried:\n")?;
        for attempt in &self.tried {
            let Candidate { endpoint, origin } = &attempt.candidate;
            writeln!(f, "  {endpoint} ({origin}): {}", attempt.why)?;
        }
        write!(
            f,
            "Is the runtime up? --runtime-endpoint or {ENDPOINT_VARIABLE} names its socket; \
             --simulate follows a simulated runtime instead."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::discover::Origin;
    use crate::cri::Endpoint;

    fn attempt(endpoint: &str, origin: Origin, why: Why) -> Attempt {
        Attempt {
            candidate: Candidate {
                endpoint: endpoint.into(),
                origin,
            },
            why,
        }
    }

    fn answer(kind: FailureKind, message: &str) -> Why {
        Why::Answer(Failure {
            kind,
            message: message.into(),
        })
    }

    #[test]
    fn every_endpoint_is_named_with_its_origin_and_its_failure_and_then_what_to_do() {
        let error = NoRuntime {
            tried: vec![
                attempt(
                    "unix:///run/containerd/containerd.sock",
                    Origin::UsualSocket,
                    Why::Connect(io::ErrorKind::NotFound.into()),
                ),
                attempt(
                    "unix:///run/crio/crio.sock",
                    Origin::UsualSocket,
                    Why::Connect(io::ErrorKind::PermissionDenied.into()),
                ),
                attempt(
                    "unix:///var/run/cri-dockerd.sock",
                    Origin::UsualSocket,
                    Why::Connect(io::ErrorKind::ConnectionRefused.into()),
                ),
            ],
        };
        assert_eq!(
            error.to_string(),
            "\
no container runtime answers; tried:
  unix:///run/containerd/containerd.sock (a usual socket): no such file
  unix:///run/crio/crio.sock (a usual socket): permission denied; try sudo
  unix:///var/run/cri-dockerd.sock (a usual socket): connection refused: the socket is there, but nobody listens
Is the runtime up? --runtime-endpoint or CONTAINER_RUNTIME_ENDPOINT names its socket; --simulate follows a simulated runtime instead."
        );
    }

    #[test]
    fn an_endpoint_of_a_file_is_told_with_the_file() {
        let error = NoRuntime {
            tried: vec![attempt(
                "tcp://1.2.3.4",
                Origin::ConfigFile("/etc/crictl.yaml".into()),
                answer(FailureKind::Unimplemented, "Version: unknown service"),
            )],
        };
        assert_eq!(
            error.to_string(),
            "\
no container runtime answers; tried:
  tcp://1.2.3.4 (from /etc/crictl.yaml): answers, but serves no CRI v1: it is an older runtime, or no runtime
Is the runtime up? --runtime-endpoint or CONTAINER_RUNTIME_ENDPOINT names its socket; --simulate follows a simulated runtime instead."
        );
    }

    #[test]
    fn a_silent_and_a_strange_runtime_and_a_remote_endpoint_are_told_apart() {
        let silent = answer(FailureKind::DeadlineExceeded, "no answer within 5s");
        assert!(
            silent
                .to_string()
                .starts_with("accepts, but does not answer")
        );
        let strange = answer(FailureKind::Malformed, "not HTTP/2");
        assert!(
            strange
                .to_string()
                .starts_with("answers, but not as a runtime does")
        );
        let remote = Why::Misspelt("tcp://1.2.3.4".parse::<Endpoint>().unwrap_err());
        assert_eq!(
            remote.to_string(),
            "only unix sockets are spoken to; write it as unix:///run/containerd/containerd.sock"
        );
    }
}
