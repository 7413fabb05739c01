//! Why a call to the runtime has no answer.
//!
//! Decisions look at the [`FailureKind`] alone; everything else is for people. What a failure means
//! for the node is not decided here.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tonic::{Code, ConnectError, Status};

pub use super::wire::decode::DecodeError;
use crate::engine::{Failure, FailureKind};

/// A call that has no answer. Every variant names the method.
///
/// The text is whole. What it was made of is kept beside it and is not the error's source, which
/// would say everything twice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer came within the deadline.
    #[error("{method}: no answer within {} s", after.as_secs_f64())]
    Deadline {
        /// The method.
        method: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// No connection could be made.
    #[error("{method}: cannot connect: {}", deepest(status))]
    Unreachable {
        /// The method.
        method: &'static str,
        /// What the transport says.
        status: Box<Status>,
    },
    /// The connection broke.
    #[error("{method}: the connection broke: {}", deepest(status))]
    Broken {
        /// The method.
        method: &'static str,
        /// What the transport says.
        status: Box<Status>,
    },
    /// The runtime answered with an error.
    #[error("{method}: the runtime answered {:?}: {}", status.code(), status.message())]
    Answered {
        /// The method.
        method: &'static str,
        /// The error.
        status: Box<Status>,
    },
    /// The answer is larger than a message may be.
    #[error("{method}: {}", TooLargeText { size, limit, lists })]
    TooLarge {
        /// The method.
        method: &'static str,
        /// The answer's size in bytes, if known.
        size: Option<u64>,
        /// The limit that it is over.
        limit: SizeLimit,
        /// Whether lists could come in pieces.
        lists: ListStreaming,
    },
    /// The answer is no message of CRI, or lacks what CRI requires.
    #[error("{method}: {problem}")]
    Malformed {
        /// The method.
        method: &'static str,
        /// What is wrong with it.
        problem: DecodeError,
    },
}

/// Whose limit, and how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeLimit {
    /// Our own, for one message.
    Message(u64),
    /// Our own, for all pieces of a list.
    List(u64),
    /// The runtime's, if it said.
    Runtime(Option<u64>),
}

/// Whether the runtime can send its lists in pieces, which no message limit stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListStreaming {
    /// Not asked yet.
    Unknown,
    /// It can.
    Supported,
    /// It answered Unimplemented.
    Unsupported,
}

impl fmt::Display for ListStreaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "whether this runtime can stream its lists is not known yet",
            Self::Supported => "this runtime can stream its lists",
            Self::Unsupported => "this runtime cannot stream its lists",
        })
    }
}

struct TooLargeText<'a> {
    size: &'a Option<u64>,
    limit: &'a SizeLimit,
    lists: &'a ListStreaming,
}

impl fmt::Display for TooLargeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer ")?;
        if let Some(size) = self.size {
            write!(f, "has {size} bytes, which ")?;
        }
        match self.limit {
            SizeLimit::Message(limit) => {
                write!(f, "is over the message limit of {limit} bytes")?;
                f.write_str(" (--max-message-size raises it)")?;
            }
            SizeLimit::List(limit) => {
                write!(f, "is over the limit of {limit} bytes for a streamed list")?;
                f.write_str(", 16 messages (--max-message-size raises it)")?;
            }
            SizeLimit::Runtime(Some(limit)) => {
                write!(
                    f,
                    "is over the runtime's own message limit of {limit} bytes"
                )?;
            }
            SizeLimit::Runtime(None) => f.write_str("is over the runtime's own message limit")?,
        }
        write!(f, "; {}", self.lists)
    }
}

/// The innermost cause that a transport's status names: `No such file or directory`, not
/// `transport error`.
fn deepest(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        text = error.to_string();
        source = error.source();
    }
    text
}

fn is_connect_error(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// The numbers in a text, in order.
fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

impl CallError {
    /// What the transport's or the runtime's status means.
    pub(super) fn from_status(
        method: &'static str,
        status: Status,
        message_limit: usize,
        lists: ListStreaming,
    ) -> Self {
        let text = status.message();
        // tonic's own text, "… too large: found 17 bytes, the limit is: 16 bytes".
        if status.code() == Code::OutOfRange && text.contains("message length too large") {
            return Self::TooLarge {
                method,
                size: numbers(text).next(),
                limit: SizeLimit::Message(message_limit.try_into().unwrap_or(u64::MAX)),
                lists,
            };
        }
        // grpc-go's, "… message larger than max (17 vs. 16)".
        if status.code() == Code::ResourceExhausted && text.contains("larger than max") {
            let mut told = numbers(text);
            return Self::TooLarge {
                method,
                size: told.next(),
                limit: SizeLimit::Runtime(told.next()),
                lists,
            };
        }
        let status = Box::new(status);
        // A status that the runtime sent has no source; one that tonic made of an error has.
        if status.source().is_none() {
            Self::Answered { method, status }
        } else if is_connect_error(&status) {
            Self::Unreachable { method, status }
        } else {
            Self::Broken { method, status }
        }
    }

    /// The method that was called.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Deadline { method, .. }
            | Self::Unreachable { method, .. }
            | Self::Broken { method, .. }
            | Self::Answered { method, .. }
            | Self::TooLarge { method, .. }
            | Self::Malformed { method, .. } => method,
        }
    }

    /// The class of failure, which is all that decisions look at.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Deadline { .. } => FailureKind::DeadlineExceeded,
            Self::Unreachable { .. } | Self::Broken { .. } => FailureKind::Unavailable,
            Self::TooLarge { .. } => FailureKind::TooLarge,
            Self::Malformed { .. } => FailureKind::Malformed,
            Self::Answered { status, .. } => match status.code() {
                Code::NotFound => FailureKind::NotFound,
                Code::Unimplemented => FailureKind::Unimplemented,
                Code::Unavailable => FailureKind::Unavailable,
                Code::DeadlineExceeded => FailureKind::DeadlineExceeded,
                _ => FailureKind::Other,
            },
        }
    }

    /// The gRPC code, as it is counted. What we refused of an answer counts as the protocol's own
    /// libraries count it: too large is `ResourceExhausted`, malformed is `Internal`.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Deadline { .. } => Code::DeadlineExceeded,
            Self::Unreachable { .. } | Self::Broken { .. } => Code::Unavailable,
            Self::TooLarge { .. } => Code::ResourceExhausted,
            Self::Malformed { .. } => Code::Internal,
            Self::Answered { status, .. } => status.code(),
        }
    }
}

impl From<&CallError> for Failure {
    fn from(error: &CallError) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string().into(),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: Code, text: &str) -> CallError {
        let lists = ListStreaming::Unsupported;
        CallError::from_status("ListContainers", Status::new(code, text), 16, lists)
    }

    #[test]
    fn codes_are_classed_for_decisions() {
        for (code, kind) in [
            (Code::NotFound, FailureKind::NotFound),
            (Code::Unimplemented, FailureKind::Unimplemented),
            (Code::Unavailable, FailureKind::Unavailable),
            (Code::DeadlineExceeded, FailureKind::DeadlineExceeded),
            (Code::Unknown, FailureKind::Other),
            (Code::OutOfRange, FailureKind::Other),
            (Code::ResourceExhausted, FailureKind::Other),
        ] {
            assert_eq!(answered(code, "no").kind(), kind, "{code:?}");
        }
    }

    #[test]
    fn a_limit_of_the_runtimes_own_is_told_as_such() {
        let text = "grpc: trying to send message larger than max (17 vs. 16)";
        let error = answered(Code::ResourceExhausted, text);
        assert_eq!(error.kind(), FailureKind::TooLarge);
        assert_eq!(
            error.to_string(),
            "ListContainers: the answer has 17 bytes, which is over the runtime's own message \
             limit of 16 bytes; this runtime cannot stream its lists"
        );
    }
}
