//! Recordings into files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::compress::Compressor;
use super::encode::Encoder;
use super::format::{Entry, Header};
use super::queue::Keeper;
use crate::engine::{RuntimeVersion, Settings};
use crate::lifecycle::{Mono, Now};

/// How much of a recording a kill may cost, by the recording's own clock.
const FLUSH_EVERY: Duration = Duration::from_secs(5);

/// Writes a recording, entry by entry.
#[derive(Debug)]
pub struct Writer<W: Write> {
    encoder: Encoder,
    out: W,
    line: Vec<u8>,
    flushed: Mono,
    recorded: Recorded,
}

/// How much was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Entries.
    pub entries: u64,
    /// Bytes of lines, before any compression.
    pub bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    ///
    /// # Errors
    ///
    /// If the header cannot be written.
    pub fn new(mut out: W, header: Header) -> io::Result<Self> {
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
        Ok(Self {
            flushed: header.began.mono,
            encoder: Encoder::new(header),
            out,
            recorded: Recorded {
                entries: 0,
                bytes: line.len() as u64,
            },
            line,
        })
    }

    /// Writes an entry.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&mut self, entry: &Entry) -> io::Result<()> {
        self.line.clear();
        self.encoder.push(&mut self.line, entry);
        self.out.write_all(&self.line)?;
        self.recorded.entries += 1;
        self.recorded.bytes += self.line.len() as u64;
        if entry.at.mono.since(self.flushed) >= FLUSH_EVERY {
            self.flushed = entry.at.mono;
            self.out.flush()?;
        }
        Ok(())
    }

    /// How much was written so far.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// Ends the recording and gives back what it was written to.
    ///
    /// # Errors
    ///
    /// If the rest cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Whether a file's name asks for compression.
fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Where a recording goes: a name that ends in `.zst` has it compressed.
pub(super) fn output(file: File, path: &Path) -> Box<dyn Write + Send> {
    if is_compressed(path) {
        Box::new(Compressor::new(file))
    } else {
        Box::new(BufWriter::new(file))
    }
}

/// A file for a recording that comes from elsewhere: only its owner may read it, and a name that ends
/// in `.zst` has it compressed.
///
/// # Errors
///
/// If it cannot be made.
pub fn recording_file(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    Ok(output(create(path)?, path))
}

/// Makes a file that only its owner may read: what runs on a node is nobody else's business.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// The same, unless there is something of that name, be it a link of somebody else's.
pub(super) fn create_anew(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Keeps a recording in a file. Made before anything is recorded, so that a file that cannot be
/// written is known at once.
pub struct FileRecorder {
    runtime: Option<RuntimeVersion>,
    state: FileState,
}

enum FileState {
    Waiting(Box<dyn Write + Send>),
    Writing(Box<Writer<Box<dyn Write + Send>>>),
    Broken,
}

impl FileRecorder {
    /// Makes the file, or empties it. A name that ends in `.zst` has it compressed.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn create(path: &Path, runtime: Option<RuntimeVersion>) -> io::Result<Self> {
        Ok(Self {
            runtime,
            state: FileState::Waiting(output(create(path)?, path)),
        })
    }
}

impl Keeper for FileRecorder {
    type Kept = Recorded;

    fn begin(&mut self, at: Now, settings: Settings) -> io::Result<()> {
        if let FileState::Waiting(out) = std::mem::replace(&mut self.state, FileState::Broken) {
            let header = Header::new(at, settings, self.runtime.take());
            self.state = FileState::Writing(Box::new(Writer::new(out, header)?));
        }
        Ok(())
    }

    fn keep(&mut self, entry: Entry) -> io::Result<()> {
        match &mut self.state {
            FileState::Writing(writer) => writer.write(&entry),
            FileState::Waiting(_) | FileState::Broken => Ok(()),
        }
    }

    fn finish(self) -> io::Result<Recorded> {
        match self.state {
            FileState::Writing(writer) => {
                let recorded = writer.recorded();
                writer.finish()?;
                Ok(recorded)
            }
            FileState::Waiting(_) | FileState::Broken => Ok(Recorded::default()),
        }
    }
}
