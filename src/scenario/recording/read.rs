//! Recordings out of files: one line at a time, whatever is in them.
//!
//! Memory is bounded by the longest line and the last list, never by the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::compress::{Decompressor, MAGIC};
use super::error::{Problem, ReadError, without_position};
use super::format::{Entry, FORMAT, Header, LONGEST_LINE, LineRead, Record, VERSION};
use super::lists::LastList;
use crate::engine::{Answer, Input};
use crate::lifecycle::Mono;

/// Reads a recording.
#[derive(Debug)]
pub struct Reader<R> {
    file: String,
    input: R,
    header: Header,
    lists: LastList,
    /// The number of the line that was read last.
    line: u64,
    text: Vec<u8>,
    is_cut_off: bool,
}

/// Opens a recording, compressed or not: its first bytes tell.
///
/// # Errors
///
/// If it cannot be read, or does not begin as a recording that this version understands.
pub fn open(path: &Path) -> Result<Reader<Box<dyn BufRead>>, ReadError> {
    let file = path.display().to_string();
    match File::open(path) {
        Ok(input) => read(file, BufReader::new(input)),
        Err(error) => Err(unopened(file, error)),
    }
}

/// The same for a recording that is no file. `file` is what errors call it.
///
/// # Errors
///
/// As [`open`].
pub fn read<'i>(
    file: impl Into<String>,
    mut input: impl BufRead + 'i,
) -> Result<Reader<Box<dyn BufRead + 'i>>, ReadError> {
    let is_compressed = match input.fill_buf() {
        Ok(first) => first.starts_with(&MAGIC),
        Err(error) => return Err(unopened(file.into(), error)),
    };
    let input: Box<dyn BufRead + 'i> = if is_compressed {
        Box::new(BufReader::new(Decompressor::new(input)))
    } else {
        Box::new(input)
    };
    Reader::new(file, input)
}

fn unopened(file: String, error: io::Error) -> ReadError {
    ReadError {
        file,
        line: 0,
        column: 0,
        problem: Problem::Io(error),
    }
}

/// What every header has, whatever its version.
#[derive(Deserialize)]
struct AnyHeader {
    format: String,
    version: u32,
}

/// How a line ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With a newline.
    Whole,
    /// With the file.
    WithFile,
    /// There was no more.
    Nothing,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header. `file` is what errors call the input.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is no header, or one of a newer format.
    pub fn new(file: impl Into<String>, input: R) -> Result<Self, ReadError> {
        let mut reader = Self {
            file: file.into(),
            input,
            header: Header::new(
                crate::lifecycle::Now::default(),
                crate::engine::Settings::default(),
                None,
            ),
            lists: LastList::default(),
            line: 0,
            text: Vec::new(),
            is_cut_off: false,
        };
        if reader.next_line()? == End::Nothing {
            reader.line = 1;
            return Err(reader.error(0, Problem::NoHeader));
        }
        reader.header = reader.read_header()?;
        Ok(reader)
    }

    fn read_header(&self) -> Result<Header, ReadError> {
        let no_header = |error: &serde_json::Error| {
            self.error(error.column(), Problem::NotAHeader(without_position(error)))
        };
        // Its version first: a newer header may look different.
        let any: AnyHeader =
            serde_json::from_slice(&self.text).map_err(|error| no_header(&error))?;
        if any.format != FORMAT {
            let found = format!("its format is {:?}", any.format);
            return Err(self.error(0, Problem::NotAHeader(found)));
        }
        if any.version > VERSION {
            return Err(self.error(0, Problem::NewerVersion { found: any.version }));
        }
        serde_json::from_slice(&self.text).map_err(|error| no_header(&error))
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of the line that was read last.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the file ended within a line or a compressed frame, which was left out. Known once
    /// [`next_entry`](Self::next_entry) has returned `None`.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The next entry; `None` after the last whole line.
    ///
    /// # Errors
    ///
    /// If the line cannot be read, or is no entry. The next one may be.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, ReadError> {
        loop {
            let end = self.next_line()?;
            if end == End::Nothing {
                return Ok(None);
            }
            if self.text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return match serde_json::from_slice::<LineRead>(&self.text) {
                Ok(line) => self.entry(line).map(Some),
                Err(error) if end == End::WithFile && error.is_eof() => {
                    self.is_cut_off = true;
                    Ok(None)
                }
                Err(error) => {
                    let problem = Problem::NotAnEntry(without_position(&error));
                    Err(self.error(error.column(), problem))
                }
            };
        }
    }

    fn entry(&mut self, line: LineRead) -> Result<Entry, ReadError> {
        let at = self.header.moment(Mono(line.at), line.drift);
        let list = match line.list {
            Some(list) => {
                let restored = self.lists.restore(list.content);
                let restored = restored.map_err(|problem| self.error(0, Problem::List(problem)))?;
                Some(Record::Taken(Input::Answered {
                    request: list.request,
                    answer: Answer::Listed(Ok(restored)),
                }))
            }
            None => None,
        };
        let records = [
            line.took.map(Record::Taken),
            list,
            line.asked.map(|asked| Record::Asked {
                request: asked.request,
                question: asked.question,
            }),
            line.opened.map(|session| Record::StreamOpened { session }),
            line.closed.map(|session| Record::StreamClosed { session }),
            line.marked.map(|_| Record::Marked),
            line.gap.map(|dropped| Record::Gap { dropped }),
            line.known.map(Record::Known),
        ];
        let mut records = records.into_iter().flatten();
        match (records.next(), records.count()) {
            (Some(record), 0) => Ok(Entry { at, record }),
            (first, more) => {
                let found = usize::from(first.is_some()) + more;
                Err(self.error(0, Problem::NotOneRecord { found }))
            }
        }
    }

    /// Reads a line into `text`, without its end.
    fn next_line(&mut self) -> Result<End, ReadError> {
        self.text.clear();
        self.line += 1;
        let limit = LONGEST_LINE as u64 + 1;
        let read = (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.text);
        if let Err(error) = read {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                // A compressed file that was cut off, maybe between two lines.
                self.is_cut_off = true;
                self.text.clear();
                self.line -= 1;
                return Ok(End::Nothing);
            }
            let problem = match error.kind() {
                io::ErrorKind::InvalidData => Problem::Damaged(error.to_string()),
                _ => Problem::Io(error),
            };
            return Err(self.error(0, problem));
        }
        match self.text.last() {
            None => {
                self.line -= 1;
                Ok(End::Nothing)
            }
            Some(b'\n') => {
                self.text.pop();
                Ok(End::Whole)
            }
            Some(_) if self.text.len() > LONGEST_LINE => {
                let limit = LONGEST_LINE;
                Err(self.error(0, Problem::TooLong { limit }))
            }
            Some(_) => Ok(End::WithFile),
        }
    }

    pub(super) fn error(&self, column: usize, problem: Problem) -> ReadError {
        ReadError {
            file: self.file.clone(),
            line: self.line,
            column,
            problem,
        }
    }
}
