//! The flight recorder: the last minutes, in memory, for the fault that nobody saw coming.
//!
//! It keeps what passed as values, which share their texts with the engine's records, and makes lines of
//! them only when somebody asks: most are never asked for. What is dropped is the oldest entry, and what
//! it told goes into what an excerpt begins with, so that the rest can be replayed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use super::encode::Encoder;
use super::format::{Entry, Header, Record};
use super::known::{Known, StreamState};
use super::lists::{LastList, ListContent};
use super::queue::{Keeper, QueueLimits, Recorder, RecordingTap};
use super::weight;
use super::write::{Recorded, create, create_anew, output};
use crate::engine::{Answer, Input, Question, RequestId, RuntimeVersion, Settings};
use crate::lifecycle::{Mono, NodeList, Now};

/// A flight recorder: the thread on which a [`Flight`] is kept.
pub type FlightRecorder = Recorder<Flight>;

/// Lines that are made before they are handed on.
const CHUNK: usize = 64 << 10;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightLimits {
    /// At least so much time, if it fits; 10 minutes by default.
    pub span: Duration,
    /// About how many bytes of memory the entries take at most, beside what the newest state of the node
    /// takes once; 32 MiB by default.
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
    header: Option<Header>,
    /// What had been told before the oldest entry.
    before: Past,
    entries: VecDeque<Kept>,
    /// What the entries weigh together.
    bytes: usize,
    /// The newest full list, which the next one is likely to resemble.
    newest_list: LastList,
    /// Full relists that have no answer yet.
    relists: BTreeSet<RequestId>,
    /// Whether something was dropped already.
    is_excerpt: bool,
}

/// One entry, with its lists in the shortest form.
#[derive(Clone)]
struct Kept {
    at: Now,
    weight: usize,
    what: What,
}

#[derive(Clone)]
enum What {
    Record(Record),
    /// The answer to a full relist.
    List {
        request: RequestId,
        content: ListContent,
    },
}

impl Kept {
    fn new(at: Now, what: What) -> Self {
        let pointed_to = match &what {
            What::Record(record) => weight::of_record(record),
            What::List { content, .. } => weight::of_list(content),
        };
        Self {
            at,
            weight: size_of::<Self>() + pointed_to,
            what,
        }
    }
}

/// What a run of entries has told.
#[derive(Clone, Default)]
struct Past {
    known: Known,
    /// Questions that have no answer yet: when they were sent, and whether they are full relists.
    asked: BTreeMap<RequestId, (Mono, bool)>,
    lists: LastList,
}

impl Past {
    /// Remembers what an entry tells, and gives it with its list made out.
    fn pass(&mut self, kept: Kept) -> Option<Entry> {
        let Kept { at, what, .. } = kept;
        let record = match what {
            What::Record(record) => record,
            What::List { request, content } => {
                // It refers to the one before it, which has passed here.
                let list = self.lists.restore(content).ok()?;
                listed(request, list)
            }
        };
        let entry = Entry { at, record };
        self.learn(&entry);
        Some(entry)
    }

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

fn listed(request: RequestId, list: NodeList) -> Record {
    let answer = Answer::Listed(Ok(list));
    Record::Taken(Input::Answered { request, answer })
}

impl Flight {
    /// An empty one.
    #[must_use]
    pub fn new(limits: FlightLimits, runtime: Option<RuntimeVersion>) -> Self {
        Self {
            limits,
            runtime,
            header: None,
            before: Past::default(),
            entries: VecDeque::new(),
            bytes: 0,
            newest_list: LastList::default(),
            relists: BTreeSet::new(),
            is_excerpt: false,
        }
    }

    /// About how many bytes of memory the entries take at present.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
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
        let newest = self.entries.back().map(|kept| kept.at.mono);
        let is_early = |kept: &Kept| newest.is_some_and(|at| at.since(kept.at.mono) > span);
        self.write_from(self.entries.partition_point(is_early), out)
    }

    /// Writes the entries from one on.
    fn write_from(&self, first: usize, out: &mut dyn Write) -> io::Result<Recorded> {
        let Some(header) = &self.header else {
            return Err(io::Error::other("nothing has been recorded yet"));
        };
        let header = Header {
            excerpt: self.is_excerpt || first > 0,
            runtime: self.runtime_then(),
            ..header.clone()
        };
        let mut past = self.before.clone();
        for kept in self.entries.iter().take(first) {
            past.pass(kept.clone());
        }
        let mut lines = serde_json::to_vec(&header)?;
        lines.push(b'\n');
        let mut recorded = Recorded::default();
        let mut encoder = Encoder::new(header);
        let mut rest = self.entries.iter().skip(first).peekable();
        if let Some(oldest) = rest.peek()
            && encoder.header().excerpt
        {
            let record = Record::Known(Box::new(past.known.clone()));
            let at = oldest.at;
            encoder.push(&mut lines, &Entry { at, record });
            recorded.entries += 1;
        }
        for kept in rest {
            if let Some(entry) = past.pass(kept.clone()) {
                encoder.push(&mut lines, &entry);
                recorded.entries += 1;
            }
            if lines.len() >= CHUNK {
                out.write_all(&lines)?;
                recorded.bytes += lines.len() as u64;
                lines.clear();
            }
        }
        out.write_all(&lines)?;
        recorded.bytes += lines.len() as u64;
        out.flush()?;
        Ok(recorded)
    }

    /// The runtime, as whoever began knew it or as it told since.
    fn runtime_then(&self) -> Option<RuntimeVersion> {
        let answered = self.entries.iter().find_map(|kept| match &kept.what {
            What::Record(Record::Taken(Input::Answered {
                answer: Answer::Version(Ok(version)),
                ..
            })) => Some(version),
            _ => None,
        });
        let known = self.runtime.as_ref().or(self.before.known.version());
        known.or(answered).cloned()
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

    fn drop_oldest(&mut self, now: Mono) {
        let span = self.limits.span;
        loop {
            let covered = self
                .entries
                .get(1)
                .is_some_and(|next| now.since(next.at.mono) >= span);
            if !covered && self.bytes <= self.limits.bytes {
                return;
            }
            let Some(oldest) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= oldest.weight;
            self.before.pass(oldest);
            self.is_excerpt = true;
        }
    }

    /// Puts the answer to a full relist into the shortest form.
    fn shortened(&mut self, record: Record) -> What {
        match record {
            Record::Asked { request, question } => {
                if question == Question::FullRelist {
                    self.relists.insert(request);
                }
                What::Record(Record::Asked { request, question })
            }
            Record::Taken(Input::Answered { request, answer }) => {
                let is_full = self.relists.remove(&request);
                match answer {
                    Answer::Listed(Ok(list)) if is_full => What::List {
                        request,
                        content: self.newest_list.shorten(&list),
                    },
                    answer => What::Record(Record::Taken(Input::Answered { request, answer })),
                }
            }
            other => What::Record(other),
        }
    }
}

impl Keeper for Flight {
    type Kept = Self;

    fn begin(&mut self, at: Now, settings: Settings) -> io::Result<()> {
        self.header = Some(Header::new(at, settings, None));
        Ok(())
    }

    fn keep(&mut self, entry: Entry) -> io::Result<()> {
        let Entry { at, record } = entry;
        let kept = Kept::new(at, self.shortened(record));
        self.bytes += kept.weight;
        self.entries.push_back(kept);
        self.drop_oldest(at.mono);
        Ok(())
    }

    fn finish(self) -> io::Result<Self> {
        Ok(self)
    }
}
