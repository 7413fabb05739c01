//! Between the driver and whoever keeps a recording: a queue that never makes the driver wait.
//!
//! Writing may take as long as a disk takes, so it is done on a thread of its own. What waits for it
//! is bounded by weight; past the bound entries are dropped, and the recording says how many and where.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::format::{Entry, Record};
use super::weight;
use crate::cri::Tapped;
use crate::engine::{Output, Settings};
use crate::lifecycle::Now;

/// Keeps what passes: in a file, in memory. Runs on the recorder's thread.
pub trait Keeper: Send + 'static {
    /// What is there to say at the end.
    type Kept: Send + 'static;

    /// The driver begins.
    ///
    /// # Errors
    ///
    /// If nothing can be kept.
    fn begin(&mut self, at: Now, settings: Settings) -> io::Result<()>;

    /// Something passed.
    ///
    /// # Errors
    ///
    /// If it cannot be kept; nothing more is given then.
    fn keep(&mut self, entry: Entry) -> io::Result<()>;

    /// Nothing more will pass.
    ///
    /// # Errors
    ///
    /// If the end cannot be kept.
    fn finish(self) -> io::Result<Self::Kept>;
}

/// How much may wait for the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// About how many bytes of memory; 32 MiB by default.
    pub bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { bytes: 32 << 20 }
    }
}

type Errand<K> = Box<dyn FnOnce(&mut K) + Send>;

enum Message<K> {
    Begun(Now, Box<Settings>),
    Entry(usize, Entry),
    Do(Errand<K>),
    End,
}

/// The driver's end of the queue.
pub struct RecordingTap<K> {
    messages: Sender<Message<K>>,
    waiting: Arc<AtomicUsize>,
    limits: QueueLimits,
    /// Dropped, and not told yet.
    dropped: AtomicU64,
    sorter: Mutex<Sorter>,
}

impl<K: Keeper> RecordingTap<K> {
    /// Sees something, and returns at once.
    pub fn see(&self, tapped: Tapped<'_>) {
        if let Tapped::Begun { now, settings } = tapped {
            // Sending fails once the recorder has ended: then nobody wants it.
            let begun = Message::Begun(now, Box::new(settings.clone()));
            let _ = self.messages.send(begun);
            return;
        }
        let weight = weight(tapped);
        if self.waiting.load(Ordering::Relaxed).saturating_add(weight) > self.limits.bytes {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The driver alone comes here: nobody else holds this lock.
        let mut sorter = self.sorter.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = sorter.entry(tapped) else {
            return;
        };
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let record = Record::Gap { dropped };
            let at = entry.at;
            self.send(Entry { at, record }, WEIGHT_OF_AN_ENTRY);
        }
        self.send(entry, weight);
    }

    fn send(&self, entry: Entry, weight: usize) {
        self.waiting.fetch_add(weight, Ordering::Relaxed);
        if self.messages.send(Message::Entry(weight, entry)).is_err() {
            self.waiting.fetch_sub(weight, Ordering::Relaxed);
        }
    }
}

/// Makes entries of what a tap is shown.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    /// The moment of the last input, which is that of what follows from it.
    now: Now,
}

impl Sorter {
    /// The entry, if this is worth one: what only the cache and subscribers are told is not, for it
    /// follows.
    pub(super) fn entry(&mut self, tapped: Tapped<'_>) -> Option<Entry> {
        let record = match tapped {
            Tapped::Begun { .. } => return None,
            Tapped::Input { now, input } => {
                self.now = now;
                Record::Taken(input.clone())
            }
            Tapped::Marked { now } => {
                let record = Record::Marked;
                return Some(Entry { at: now, record });
            }
            Tapped::Output(output) => match output {
                Output::Ask { request, question } => Record::Asked {
                    request: *request,
                    question: question.clone(),
                },
                Output::OpenStream { session } => Record::StreamOpened { session: *session },
                Output::CloseStream { session } => Record::StreamClosed { session: *session },
                _ => return None,
            },
        };
        Some(Entry {
            at: self.now,
            record,
        })
    }
}

/// The place that an entry takes beside what it points to.
const WEIGHT_OF_AN_ENTRY: usize = size_of::<Entry>() + 64;

fn weight(tapped: Tapped<'_>) -> usize {
    let pointed_to = match tapped {
        Tapped::Input { input, .. } => weight::of_input(input),
        _ => 0,
    };
    WEIGHT_OF_AN_ENTRY + pointed_to
}

/// A recorder: the thread on which a [`Keeper`] works.
pub struct Recorder<K: Keeper> {
    messages: Sender<Message<K>>,
    thread: thread::JoinHandle<io::Result<K::Kept>>,
    failed: oneshot::Receiver<()>,
}

impl<K: Keeper> Recorder<K> {
    /// Starts a recorder. [`Builder::tap`](crate::Builder::tap) wants
    /// `move |tapped| tap.see(tapped)`.
    ///
    /// # Errors
    ///
    /// If there is no thread to be had.
    pub fn start(keeper: K, limits: QueueLimits) -> io::Result<(Arc<RecordingTap<K>>, Self)> {
        let (messages, received) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let tap = Arc::new(RecordingTap {
            messages: messages.clone(),
            waiting: Arc::clone(&waiting),
            limits,
            dropped: AtomicU64::new(0),
            sorter: Mutex::default(),
        });
        let (failing, failed) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("pleg-recorder".to_owned())
            .spawn(move || work(keeper, &received, &waiting, failing))?;
        let recorder = Self {
            messages,
            thread,
            failed,
        };
        Ok((tap, recorder))
    }

    /// Has something done on the recorder's thread, after everything that has passed so far. Nothing is
    /// done if the recorder has failed.
    pub fn errand(&self, errand: impl FnOnce(&mut K) + Send + 'static) {
        let _ = self.messages.send(Message::Do(Box::new(errand)));
        self.thread.thread().unpark();
    }

    /// Resolves when the recorder has failed, and only then. [`finish`](Self::finish) says why.
    pub async fn failed(&mut self) {
        if (&mut self.failed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until everything that has passed so far is kept, and ends.
    ///
    /// # Errors
    ///
    /// Whatever could not be kept.
    pub fn finish(self) -> io::Result<K::Kept> {
        let _ = self.messages.send(Message::End);
        self.thread.thread().unpark();
        match self.thread.join() {
            Ok(kept) => kept,
            Err(_) => Err(io::Error::other("the recorder panicked")),
        }
    }
}

/// How long the recorder lets entries gather: on a busy node they come in hundreds a second, and waking
/// it for each would cost more than keeping it. An errand and the end wake it at once.
const REST: Duration = Duration::from_millis(50);

fn work<K: Keeper>(
    mut keeper: K,
    messages: &Receiver<Message<K>>,
    waiting: &AtomicUsize,
    failing: oneshot::Sender<()>,
) -> io::Result<K::Kept> {
    let error = loop {
        let message = messages.try_recv().or_else(|_| {
            thread::park_timeout(REST);
            messages.recv()
        });
        let done = match message {
            Ok(Message::Begun(at, settings)) => keeper.begin(at, *settings),
            Ok(Message::Entry(weight, entry)) => {
                let kept = keeper.keep(entry);
                waiting.fetch_sub(weight, Ordering::Relaxed);
                kept
            }
            Ok(Message::Do(errand)) => {
                errand(&mut keeper);
                Ok(())
            }
            Ok(Message::End) | Err(_) => return keeper.finish(),
        };
        if let Err(error) = done {
            break error;
        }
    };
    // The receiver goes with this thread, so what comes from now on is not even queued.
    let _ = failing.send(());
    Err(error)
}
