//! Where a runtime listens.
//!
//! CRI is spoken over unix sockets, and that is all that is accepted: a typing error must not become
//! a connection to somewhere else. An endpoint is a name; nothing is dialled here before a call.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tonic::transport::Channel;

/// A runtime's unix socket, by its absolute path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint {
    path: String,
}

/// Text that names no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no endpoint: {problem}; accepted are unix:///run/containerd/containerd.sock, \
     unix:/run/containerd/containerd.sock and /run/containerd/containerd.sock"
)]
#[non_exhaustive]
pub struct EndpointError {
    /// What was given.
    pub given: String,
    /// What is wrong with it.
    pub problem: EndpointProblem,
}

/// What is wrong with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointProblem {
    /// Nothing was given.
    #[error("it is empty")]
    Empty,
    /// It has a scheme other than `unix`.
    #[error("only unix sockets are spoken to")]
    OtherScheme,
    /// Its path does not begin with a slash.
    #[error("the socket's path must be absolute")]
    RelativePath,
    /// Its path names no file.
    #[error("it names no socket")]
    NoFile,
    /// It holds a NUL, which no path can.
    #[error("it holds a NUL character")]
    NulCharacter,
}

impl Endpoint {
    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A channel of its own, with a connection of its own, dialled with the first call and again
    /// with the first call after it broke.
    ///
    /// It has no timeout: that would end an idle event stream, whose call does not return before the
    /// first event. It sends no pings: grpc-go closes the connection of a client that pings more often
    /// than every five minutes. It has no connect timeout: a unix socket connects or fails at once.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, which runs the connection.
    #[must_use]
    pub fn channel(&self) -> Channel {
        let uri = self.to_string();
        // tonic refuses no text that begins with `unix:`, except one that is not UTF-8.
        tonic::transport::Endpoint::from_shared(uri)
            .unwrap_or_else(|_| tonic::transport::Endpoint::from_static("unix:/"))
            .connect_lazy()
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = |problem| EndpointError {
            given: text.to_owned(),
            problem,
        };
        if text.is_empty() {
            return Err(wrong(EndpointProblem::Empty));
        }
        let path = match text.strip_prefix("unix:") {
            Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
            None if text.starts_with('/') => text,
            None if text.contains(':') => return Err(wrong(EndpointProblem::OtherScheme)),
            None => return Err(wrong(EndpointProblem::RelativePath)),
        };
        if path.trim_matches('/').is_empty() || path.ends_with('/') {
            return Err(wrong(EndpointProblem::NoFile));
        }
        if !path.starts_with('/') {
            return Err(wrong(EndpointProblem::RelativePath));
        }
        if path.contains('\0') {
            return Err(wrong(EndpointProblem::NulCharacter));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.to_string()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_name_the_same_socket() {
        for text in ["unix:///run/a.sock", "unix:/run/a.sock", "/run/a.sock"] {
            let endpoint: Endpoint = text.parse().expect("accepted");
            assert_eq!(endpoint.path(), "/run/a.sock");
            assert_eq!(endpoint.to_string(), "unix:///run/a.sock");
        }
    }

    #[test]
    fn anything_else_is_refused_and_told_what_is_accepted() {
        use EndpointProblem::{Empty, NoFile, NulCharacter, OtherScheme, RelativePath};
        for (text, problem) in [
            ("", Empty),
            ("tcp://127.0.0.1:1234", OtherScheme),
            ("http:///run/a.sock", OtherScheme),
            ("npipe:////./pipe/containerd", OtherScheme),
            ("run/a.sock", RelativePath),
            ("unix:run/a.sock", RelativePath),
            ("unix://run/a.sock", RelativePath),
            ("unix:", NoFile),
            ("unix://", NoFile),
            ("unix:///", NoFile),
            ("/", NoFile),
            ("/run/", NoFile),
            ("/run/a\0.sock", NulCharacter),
        ] {
            let error = text.parse::<Endpoint>().expect_err(text);
            assert_eq!(error.problem, problem, "{text:?}");
            assert!(error.to_string().contains("unix:///run/"), "{error}");
        }
    }
}
