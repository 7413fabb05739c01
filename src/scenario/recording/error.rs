//! Why a recording cannot be read: where, and what was expected there.

use std::fmt;
use std::io;

use super::format::{FORMAT, VERSION};
use super::lists::ListProblem;

/// A recording that cannot be read, or no further than here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub struct ReadError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1; 0 if it is about the file.
    pub line: u64,
    /// The column, from 1; 0 if it is about the line.
    pub column: usize,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        // The problem is this error's source and says the rest.
        Ok(())
    }
}

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened or read.
    #[error("cannot read it")]
    Io(#[source] io::Error),
    /// The compressed data is damaged.
    #[error("the compressed data is damaged: {0}")]
    Damaged(String),
    /// The file ends before its header does.
    #[error("expected a recording's header in the first line, but the file ends there")]
    NoHeader,
    /// The first line is no header.
    #[error(
        "expected a recording's header, {{\"format\":\"{FORMAT}\",\"version\":{VERSION},...}}: {0}"
    )]
    NotAHeader(String),
    /// It was written in a newer format.
    #[error(
        "the recording has format version {found}, and this pleg reads up to {VERSION}: \
         replay it with a newer pleg"
    )]
    NewerVersion {
        /// The version in the header.
        found: u32,
    },
    /// The line is no entry.
    #[error("expected an entry, {{\"at\":NANOSECONDS,\"took\":...}} or the like: {0}")]
    NotAnEntry(String),
    /// The line has none or several of the keys of which an entry has one.
    #[error(
        "expected exactly one of took, list, asked, opened, closed, marked, gap and known, \
         found {found}"
    )]
    NotOneRecord {
        /// How many it has.
        found: usize,
    },
    /// The list refers to one that is not there.
    #[error(transparent)]
    List(ListProblem),
    /// The line is longer than any entry.
    #[error("the line has more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

/// What `serde_json` says without the position, which the error has already.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}
