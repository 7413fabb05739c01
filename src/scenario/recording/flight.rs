//! The flight recorder: the last minutes, in memory, for the fault that nobody saw coming.
//!
//! It keeps whole segments of lines, ready to be written. Each begins with what had been told before
//! it, a full list among it, so that whatever was dropped the rest can be replayed; within a segment
//! lists refer to nothing outside it. The oldest segments go first.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use super::encode::Encoder;
use super::format::{Entry, Header, Record};
use super::known::{Known, StreamState};
use super::queue::{Keeper, QueueLimits, Recorder, RecordingTap};
use super::write::{Recorded, create, create_anew, output};
use crate::engine::{Input, Question, RequestId, RuntimeVersion, Settings};
use crate::lifecycle::{Mono, Now};

/// A flight recorder: the thread on which a [`Flight`] is kept.
pub type FlightRecorder = Recorder<Flight>;

/// Segments that the limits are divided into. What is dropped at once is one of them.
const SEGMENTS: u32 = 16;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightLimits {
    /// At least so much time, if it fits; 10 minutes by default.
    pub span: Duration,
    /// At most so many bytes of lines; 32 MiB by default.
    pub bytes: usize,
}

impl Default for FlightLimits {
    fn default() -> Self {
        Self {
            span: Duration::from_mins(10),
            bytes: 32 << 20,
        }
    }
}

/// The last minutes of what passed.
pub struct Flight {
    limits: FlightLimits,
    runtime: Option<RuntimeVersion>,
    encoder: Option<Encoder>,
    known: Known,
    /// Questions that have no answer yet, and when they were sent.
    asked: BTreeMap<RequestId, (Mono, bool)>,
    segments: VecDeque<Segment>,
    /// Whether something was dropped already.
    is_excerpt: bool,
    /// The moment of the newest entry.
    newest: Mono,
}

struct Segment {
    began: Now,
    /// What had been told before, as a line; empty at the very beginning.
    known: Vec<u8>,
    lines: Vec<u8>,
    entries: u64,
}

impl Segment {
    fn bytes(&self) -> usize {
        self.known.len() + self.lines.len()
    }
}

impl Flight {
    /// An empty one.
    #[must_use]
    pub fn new(limits: FlightLimits, runtime: Option<RuntimeVersion>) -> Self {
        Self {
            limits,
            runtime,
            encoder: None,
            known: Known::default(),
            asked: BTreeMap::new(),
            segments: VecDeque::new(),
            is_excerpt: false,
            newest: Mono::default(),
        }
    }

    /// Bytes of lines that are kept at present.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(Segment::bytes).sum()
    }

    /// Writes what is kept as a recording. Nothing is dropped by it.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<Recorded> {
        self.write_from(0, out)
    }

    /// The same, but of what is kept no more than is needed for the last `span`.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write_last(&self, span: Duration, out: &mut dyn Write) -> io::Result<Recorded> {
        let is_early = |segment: &Segment| self.newest.since(segment.began.mono) >= span;
        let early = self.segments.iter().take_while(|segment| is_early(segment));
        self.write_from(early.count().saturating_sub(1), out)
    }

    /// Writes the segments from one on.
    fn write_from(&self, first: usize, out: &mut dyn Write) -> io::Result<Recorded> {
        let Some(encoder) = &self.encoder else {
            return Err(io::Error::other("nothing has been recorded yet"));
        };
        let is_excerpt = self.is_excerpt || first > 0;
        let mut header = Header {
            excerpt: is_excerpt,
            ..encoder.header().clone()
        };
        // A daemon begins before its runtime has told who it is.
        if header.runtime.is_none() {
            header.runtime = self.known.version().cloned();
        }
        let mut recorded = Recorded::default();
        let mut head = serde_json::to_vec(&header)?;
        head.push(b'\n');
        if let Some(first) = self.segments.get(first)
            && is_excerpt
        {
            head.extend_from_slice(&first.known);
            recorded.entries += 1;
        }
        out.write_all(&head)?;
        recorded.bytes += head.len() as u64;
        for segment in self.segments.iter().skip(first) {
            out.write_all(&segment.lines)?;
            recorded.bytes += segment.lines.len() as u64;
            recorded.entries += segment.entries;
        }
        out.flush()?;
        Ok(recorded)
    }

    /// Writes what is kept into a file. A name that ends in `.zst` has it compressed.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn dump(&self, path: &Path) -> io::Result<Recorded> {
        let mut out = output(create(path)?, path);
        self.write_to(&mut *out)
    }

    /// The same into a file that must not exist: for a name that nobody chose.
    ///
    /// # Errors
    ///
    /// If it exists or cannot be written.
    pub fn dump_anew(&self, path: &Path) -> io::Result<Recorded> {
        let mut out = output(create_anew(path)?, path);
        self.write_to(&mut *out)
    }

    /// Starts to keep the last minutes. [`Builder::tap`](crate::Builder::tap) wants
    /// `move |tapped| tap.see(tapped)`.
    ///
    /// # Errors
    ///
    /// If there is no thread to be had.
    pub fn start(
        limits: FlightLimits,
        runtime: Option<RuntimeVersion>,
    ) -> io::Result<(std::sync::Arc<RecordingTap<Self>>, FlightRecorder)> {
        Recorder::start(Self::new(limits, runtime), QueueLimits::default())
    }

    fn begin_segment(&mut self, at: Now) {
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        encoder.begin_anew();
        let mut known = Vec::new();
        if !self.segments.is_empty() || self.is_excerpt {
            let record = Record::Known(Box::new(self.known.clone()));
            encoder.push(&mut known, &Entry { at, record });
        }
        self.segments.push_back(Segment {
            began: at,
            known,
            lines: Vec::new(),
            entries: 0,
        });
    }

    fn is_due_for_a_segment(&self, at: Now) -> bool {
        let Some(segment) = self.segments.back() else {
            return true;
        };
        segment.lines.len() >= self.limits.bytes / SEGMENTS as usize
            || at.mono.since(segment.began.mono) >= self.limits.span / SEGMENTS
    }

    fn drop_oldest(&mut self, at: Now) {
        while self.segments.len() > 1 {
            let covered = self
                .segments
                .get(1)
                .is_some_and(|next| at.mono.since(next.began.mono) >= self.limits.span);
            if !covered && self.bytes() <= self.limits.bytes {
                return;
            }
            self.segments.pop_front();
            self.is_excerpt = true;
        }
        // One segment that is too large alone: an entry of enormous size.
        if self.bytes() > self.limits.bytes {
            self.segments.clear();
            self.is_excerpt = true;
        }
    }

    /// Remembers what an entry tells.
    fn learn(&mut self, entry: &Entry) {
        let at = entry.at.mono;
        match &entry.record {
            Record::Asked { request, question } => {
                let is_full = *question == Question::FullRelist;
                self.asked.insert(*request, (at, is_full));
            }
            Record::Taken(Input::Answered { request, answer }) => {
                if let Some((begun, is_full)) = self.asked.remove(request) {
                    self.known.take_answer(answer, begun, at, is_full);
                }
            }
            Record::Taken(Input::StreamMessage { event, .. }) => self.known.take_event(event, at),
            Record::Taken(Input::StreamEnded { end, .. }) => {
                self.known.set_stream(StreamState::Ended(end.clone()));
            }
            Record::StreamOpened { session } => {
                self.known.set_stream(StreamState::Open(*session));
            }
            _ => {}
        }
    }
}

impl Keeper for Flight {
    type Kept = Self;

    fn begin(&mut self, at: Now, settings: Settings) -> io::Result<()> {
        let header = Header::new(at, settings, self.runtime.clone());
        self.encoder = Some(Encoder::new(header));
        Ok(())
    }

    fn keep(&mut self, entry: Entry) -> io::Result<()> {
        self.newest = entry.at.mono;
        if self.is_due_for_a_segment(entry.at) {
            self.begin_segment(entry.at);
        }
        self.learn(&entry);
        if let (Some(encoder), Some(segment)) = (&mut self.encoder, self.segments.back_mut()) {
            encoder.push(&mut segment.lines, &entry);
            segment.entries += 1;
        }
        self.drop_oldest(entry.at);
        Ok(())
    }

    fn finish(self) -> io::Result<Self> {
        Ok(self)
    }
}
