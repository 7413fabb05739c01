//! What the event stream brought and nobody has taken yet: bounded, and open about what it lost.
//!
//! Putting in never waits, for whoever puts in must go on reading. Past the bound messages are
//! dropped, and once that began everything is dropped until the inbox was emptied: what is lost is
//! then one gap with one report, not many. The report says how many messages it was and, as far as
//! that could be told, which pods they were about. An empty inbox takes any one message, so that a
//! bound set too low cannot make it deaf.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Notify, mpsc};

use super::client::StreamedMessage;
use crate::engine::{Input, SessionId, StreamEnd};
use crate::lifecycle::{ContainerStatus, PodUid, Refusal, RuntimeEvent};

/// What a message, and each container in it, weighs beside its texts. Whatever there may be any number of is
/// counted, for none of it needs more than a few bytes on the wire.
const WEIGHT_OF_A_MESSAGE: usize = size_of::<Weighed>();
const WEIGHT_OF_A_CONTAINER: usize = size_of::<ContainerStatus>();

fn weight(message: &StreamedMessage) -> usize {
    let parts = message.event.as_ref().map_or(0, |event| {
        let addresses = event.sandbox.iter().flat_map(|sandbox| &sandbox.ips);
        event.containers.len() * WEIGHT_OF_A_CONTAINER
            + addresses.count() * size_of::<Arc<str>>()
            + event.refused.len() * size_of::<Refusal>()
    });
    message.held + parts + WEIGHT_OF_A_MESSAGE
}

/// How many pods a report of a loss names at most, and how long a name it remembers. A node has a few
/// hundred pods, and their uids have 36 characters.
const PODS_REMEMBERED: usize = 10_000;
const LONGEST_UID_REMEMBERED: usize = 256;

/// How many items one batch holds at most, so that whoever takes them can do something else between.
const BATCH: usize = 1024;

/// Something that the event stream brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// A message.
    Message {
        /// Which stream.
        session: SessionId,
        /// The message.
        event: RuntimeEvent,
    },
    /// Bytes that are no message.
    Garbage {
        /// Which stream.
        session: SessionId,
        /// What was wrong with them.
        refusal: Refusal,
    },
    /// A gap: messages were dropped here because the inbox was full.
    Overflow {
        /// Which stream.
        session: SessionId,
        /// The pods that they were about, as far as could be told; 10,000 at most.
        pods: BTreeSet<PodUid>,
        /// How many were dropped.
        dropped: u64,
    },
    /// The stream ended.
    Ended {
        /// Which stream.
        session: SessionId,
        /// How.
        end: StreamEnd,
    },
}

impl From<StreamItem> for Input {
    fn from(item: StreamItem) -> Self {
        match item {
            StreamItem::Message { session, event } => Self::StreamMessage { session, event },
            StreamItem::Garbage { session, refusal } => Self::StreamGarbage { session, refusal },
            StreamItem::Overflow {
                session,
                pods,
                dropped,
            } => Self::StreamOverflow {
                session,
                pods,
                dropped,
            },
            StreamItem::Ended { session, end } => Self::StreamEnded { session, end },
        }
    }
}

/// What the reader and its inbox have counted since they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderCounts {
    /// Streams asked for.
    pub sessions: u64,
    /// Messages received, dropped ones and garbage included.
    pub messages: u64,
    /// Messages whose bytes were none.
    pub garbage: u64,
    /// Messages dropped because the inbox was full.
    pub dropped: u64,
    /// Gaps: how often dropping began.
    pub overflows: u64,
    /// The most that the inbox ever held, in bytes of memory, about.
    pub most_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The weight of what is inside.
    held: AtomicUsize,
    /// Told each time that the inbox was emptied.
    emptied: Notify,
    pub(super) sessions: AtomicU64,
    messages: AtomicU64,
    garbage: AtomicU64,
    dropped: AtomicU64,
    overflows: AtomicU64,
    most_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn counts(&self) -> ReaderCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReaderCounts {
            sessions: read(&self.sessions),
            messages: read(&self.messages),
            garbage: read(&self.garbage),
            dropped: read(&self.dropped),
            overflows: read(&self.overflows),
            most_bytes: read(&self.most_bytes),
        }
    }
}

#[derive(Debug)]
struct Weighed {
    weight: usize,
    item: StreamItem,
}

/// The consumer's end.
#[derive(Debug)]
pub struct Inbox {
    items: mpsc::UnboundedReceiver<Weighed>,
    taken: Vec<Weighed>,
    shared: Arc<Shared>,
}

impl Inbox {
    /// Waits until there is something, and appends up to 1,024 items to `batch`, in the order in which
    /// they came. Returns how many; 0 once the reader has ended and everything was taken.
    ///
    /// Cancel-safe: nothing is taken before the future resolves.
    pub async fn recv_batch(&mut self, batch: &mut Vec<StreamItem>) -> usize {
        let count = self.items.recv_many(&mut self.taken, BATCH).await;
        let weight: usize = self.taken.iter().map(|taken| taken.weight).sum();
        batch.extend(self.taken.drain(..).map(|taken| taken.item));
        // Only this end takes away, so the sum is never more than what is held.
        if weight > 0 && self.shared.held.fetch_sub(weight, Ordering::SeqCst) == weight {
            self.shared.emptied.notify_one();
        }
        count
    }

    /// Whether nothing waits to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// What was counted up to now.
    #[must_use]
    pub fn counts(&self) -> ReaderCounts {
        self.shared.counts()
    }
}

/// A loss that was not reported yet.
#[derive(Debug)]
struct Gap {
    session: SessionId,
    pods: BTreeSet<PodUid>,
    dropped: u64,
}

/// The reader's end.
#[derive(Debug)]
pub(super) struct InboxWriter {
    items: mpsc::UnboundedSender<Weighed>,
    limit: usize,
    gap: Option<Gap>,
    shared: Arc<Shared>,
}

/// An inbox that holds messages of about `limit` bytes of memory at most.
pub(super) fn inbox(limit: usize) -> (InboxWriter, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared::default());
    let writer = InboxWriter {
        items: sender,
        limit,
        gap: None,
        shared: Arc::clone(&shared),
    };
    let inbox = Inbox {
        items: receiver,
        taken: Vec::new(),
        shared,
    };
    (writer, inbox)
}

impl InboxWriter {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Resolves when nobody can take anything any more.
    pub(super) fn abandoned(&self) -> impl Future<Output = ()> + use<> {
        let items = self.items.clone();
        async move { items.closed().await }
    }

    /// Puts a message in, or drops it.
    pub(super) fn put(&mut self, session: SessionId, message: StreamedMessage) {
        let shared = &self.shared;
        shared.messages.fetch_add(1, Ordering::Relaxed);
        if message.event.is_err() {
            shared.garbage.fetch_add(1, Ordering::Relaxed);
        }
        let held = shared.held.load(Ordering::SeqCst);
        if held == 0 {
            self.report_gap();
        }
        let weight = weight(&message);
        let full = held > 0 && held.saturating_add(weight) > self.limit;
        if self.gap.is_some() || full {
            self.drop_message(session, &message);
            return;
        }
        let item = match message.event {
            Ok(event) => StreamItem::Message { session, event },
            Err(refusal) => StreamItem::Garbage { session, refusal },
        };
        self.send(weight, item);
    }

    fn drop_message(&mut self, session: SessionId, message: &StreamedMessage) {
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        let gap = self.gap.get_or_insert_with(|| {
            self.shared.overflows.fetch_add(1, Ordering::Relaxed);
            Gap {
                session,
                pods: BTreeSet::new(),
                dropped: 0,
            }
        });
        gap.dropped += 1;
        let Ok(event) = &message.event else { return };
        let in_sandbox = event.sandbox.iter().map(|sandbox| &sandbox.pod);
        let in_containers = event.containers.iter().filter_map(|c| c.pod.as_ref());
        for pod in in_sandbox.chain(in_containers) {
            if gap.pods.len() >= PODS_REMEMBERED {
                return;
            }
            if pod.uid.as_str().len() <= LONGEST_UID_REMEMBERED {
                gap.pods.insert(pod.uid.clone());
            }
        }
    }

    /// Resolves when a loss can be reported: messages were dropped, and the inbox has been emptied.
    pub(super) async fn gap_can_be_reported(&self) {
        if self.gap.is_none() {
            std::future::pending::<()>().await;
        }
        while self.shared.held.load(Ordering::SeqCst) > 0 {
            self.shared.emptied.notified().await;
        }
    }

    /// Reports what was dropped, if anything was.
    pub(super) fn report_gap(&mut self) {
        if let Some(gap) = self.gap.take() {
            let item = StreamItem::Overflow {
                session: gap.session,
                pods: gap.pods,
                dropped: gap.dropped,
            };
            // It weighs something, so that the next report waits until this one was taken.
            self.send(WEIGHT_OF_A_MESSAGE, item);
        }
    }

    /// Tells how a stream ended, after what it lost. This is never dropped.
    pub(super) fn end(&mut self, session: SessionId, end: StreamEnd) {
        self.report_gap();
        self.send(0, StreamItem::Ended { session, end });
    }

    fn send(&self, weight: usize, item: StreamItem) {
        // Only this end adds, so a limit checked before still stands.
        let held = self.shared.held.fetch_add(weight, Ordering::SeqCst) + weight;
        let most = u64::try_from(held).unwrap_or(u64::MAX);
        self.shared.most_bytes.fetch_max(most, Ordering::Relaxed);
        // An abandoned inbox ends the reader by itself.
        let _ = self.items.send(Weighed { weight, item });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::{EventKind, PodIdentity, ReportedState, SandboxId, SandboxStatus};

    const SESSION: SessionId = SessionId(1);

    fn about(pod: &str, held: usize) -> StreamedMessage {
        let sandbox = SandboxStatus {
            id: SandboxId::from("s1"),
            pod: PodIdentity {
                uid: PodUid::from(pod),
                namespace: "shop".into(),
                name: "web".into(),
            },
            attempt: 0,
            state: ReportedState::Running,
            created_at: None,
            ips: Vec::new(),
            host_network: false,
            labelled: true,
        };
        let event = RuntimeEvent {
            id: "s1".into(),
            kind: EventKind::Started,
            stamp: 1,
            sandbox: Some(sandbox),
            containers: Vec::new(),
            refused: Vec::new(),
        };
        StreamedMessage {
            held,
            event: Ok(event),
        }
    }

    fn kinds(batch: &[StreamItem]) -> Vec<String> {
        let kind = |item: &StreamItem| match item {
            StreamItem::Message { .. } => "message".to_owned(),
            StreamItem::Garbage { .. } => "garbage".to_owned(),
            StreamItem::Overflow { pods, dropped, .. } => format!("lost {dropped} of {pods:?}"),
            StreamItem::Ended { .. } => "end".to_owned(),
        };
        batch.iter().map(kind).collect()
    }

    #[tokio::test]
    async fn past_its_bound_it_drops_and_reports_the_gap_once_it_was_emptied() {
        let bound = 3 * (100 + WEIGHT_OF_A_MESSAGE);
        let (mut writer, mut inbox) = inbox(bound);
        for pod in ["a", "b", "b", "c", "d", "c"] {
            writer.put(SESSION, about(pod, 100));
        }
        let mut batch = Vec::new();
        assert_eq!(inbox.recv_batch(&mut batch).await, 3);
        writer.gap_can_be_reported().await;
        writer.report_gap();
        writer.put(SESSION, about("e", 100));
        assert_eq!(inbox.recv_batch(&mut batch).await, 2);
        assert_eq!(
            kinds(&batch),
            [
                "message",
                "message",
                "message",
                "lost 3 of {c, d}",
                "message"
            ]
        );
        let counts = inbox.counts();
        assert_eq!((counts.messages, counts.dropped), (7, 3));
        assert_eq!(counts.overflows, 1);
        assert_eq!(counts.most_bytes, u64::try_from(bound).expect("small"));
    }

    #[tokio::test]
    async fn a_gap_is_told_before_what_came_after_it_and_before_the_end() {
        let (mut writer, mut inbox) = inbox(100 + WEIGHT_OF_A_MESSAGE);
        writer.put(SESSION, about("a", 100));
        writer.put(SESSION, about("b", 1));
        // Small enough, but it would come before the report of what was dropped before it.
        writer.put(SESSION, about("c", 0));
        writer.end(SESSION, StreamEnd::Clean);
        drop(writer);
        let mut batch = Vec::new();
        while inbox.recv_batch(&mut batch).await > 0 {}
        assert_eq!(kinds(&batch), ["message", "lost 2 of {b, c}", "end"]);
    }

    #[tokio::test]
    async fn a_bound_below_one_message_neither_makes_it_deaf_nor_lets_reports_pile_up() {
        let (mut writer, mut inbox) = inbox(0);
        let mut batch = Vec::new();
        for _ in 0..3 {
            for _ in 0..100 {
                writer.put(SESSION, about("a", 100));
            }
            inbox.recv_batch(&mut batch).await;
        }
        let gap = "lost 99 of {a}";
        assert_eq!(kinds(&batch), ["message", gap, "message", gap, "message"]);
    }

    #[tokio::test]
    async fn the_next_message_reports_the_gap_if_nobody_else_did() {
        let (mut writer, mut inbox) = inbox(100 + WEIGHT_OF_A_MESSAGE);
        writer.put(SESSION, about("a", 100));
        writer.put(SESSION, about("b", 100));
        let mut batch = Vec::new();
        inbox.recv_batch(&mut batch).await;
        writer.put(SESSION, about("c", 100));
        inbox.recv_batch(&mut batch).await;
        assert_eq!(kinds(&batch), ["message", "lost 1 of {b}", "message"]);
    }

    #[tokio::test]
    async fn addresses_that_repeat_each_other_fill_it_too() {
        let (mut writer, inbox) = inbox(100_000);
        for _ in 0..10 {
            let mut message = about("a", 0);
            let sandbox = message.event.as_mut().ok().and_then(|e| e.sandbox.as_mut());
            sandbox.expect("it has one").ips = vec!["::1".into(); 4_000];
            writer.put(SESSION, message);
        }
        assert_eq!(inbox.counts().dropped, 9);
    }

    #[tokio::test]
    async fn empty_messages_fill_it_too() {
        let (mut writer, inbox) = inbox(10 * WEIGHT_OF_A_MESSAGE);
        for _ in 0..1000 {
            let event = Err(Refusal::Undecodable);
            writer.put(SESSION, StreamedMessage { held: 0, event });
        }
        assert_eq!(inbox.counts().dropped, 990);
        assert_eq!(inbox.counts().garbage, 1000);
    }

    #[tokio::test]
    async fn a_loss_of_more_pods_than_can_be_remembered_is_still_counted() {
        let (mut writer, mut inbox) = inbox(0);
        writer.put(SESSION, about("first", 1));
        for n in 0..PODS_REMEMBERED + 5 {
            writer.put(SESSION, about(&n.to_string(), 1));
        }
        writer.put(SESSION, about(&"x".repeat(10_000), 1));
        writer.report_gap();
        let mut batch = Vec::new();
        inbox.recv_batch(&mut batch).await;
        let [_, StreamItem::Overflow { pods, dropped, .. }] = &batch[..] else {
            panic!("not one report: {batch:?}");
        };
        assert_eq!(pods.len(), PODS_REMEMBERED);
        assert_eq!(*dropped, 10_006);
    }
}
