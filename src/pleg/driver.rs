//! The driver: inputs in, outputs out, one at a time.
//!
//! Each turn takes what is ready, always in the same order: commands, answers (those that are ready
//! together in the order in which they were asked), what the stream brought, the timer. Nothing can
//! starve the rest, because each turn looks at all of them; only the timer waits: a few turns while the
//! stream has brought more than one turn takes, and for a moment after the whole process was held up
//! (stopped, starved), when the stream's reader has not read yet what came meanwhile. After each single input every output is
//! carried out, in order, before the next is taken; so the cache is written before an event is
//! delivered, and a reader's answer comes after both.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Sleep;
use tracing::info;

use super::command::Command;
use super::handle::{EngineStats, Stats};
use super::measures::Meter;
use super::notes::NoteLog;
use super::tap::Traced;
use crate::cache::CacheWriter;
use crate::clock::Clock;
use crate::cri::{
    CallLimits, CriClient, Inbox, ReaderLimits, ReaderPlace, StartError, StreamItem, StreamReader,
    StreamSource, Tap,
};
use crate::engine::{
    Answer, Engine, Health, Input, Mode, ModeChange, Note, Output, Question, ReaderId, Reading,
    RequestId,
};
use crate::feed::{Feed, FeedHandle};
use crate::lifecycle::{LifecycleEvent, Mark, Mono, Now};

/// How many commands one turn takes.
const COMMANDS: usize = 64;

/// For how many turns a wake waits for the inbox to be emptied; a full inbox holds about as many
/// batches. Whatever floods it for longer holds up neither relist nor heartbeat.
const TURNS_BEFORE_A_WAKE: u32 = 16;

/// A wake that is late by this much tells that the process was held up.
const HELD_UP: Duration = Duration::from_millis(250);

/// For how long such a wake waits for the stream's reader. It reads some thousand messages meanwhile.
const CATCHING_UP: Duration = Duration::from_millis(100);

/// Where inputs come from.
#[derive(Debug)]
pub(super) struct Inlets {
    pub(super) source: StreamSource,
    pub(super) place: ReaderPlace,
    pub(super) calls: CallLimits,
    pub(super) reader: ReaderLimits,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
}

/// Where outputs go.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) cache: CacheWriter,
    pub(super) feed: Feed,
    pub(super) feed_stats: FeedHandle,
    pub(super) mode: watch::Sender<Mode>,
    pub(super) mode_changes: broadcast::Sender<ModeChange>,
    pub(super) relisted: watch::Sender<Option<Mark>>,
}

/// The owner of everything, as a future to run: see [`Driver::run`].
#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    tap: Option<Tap>,
    clock: Clock,
    inlets: Inlets,
    outlets: Outlets,
}

impl Driver {
    pub(super) fn new(
        engine: Engine,
        tap: Option<Tap>,
        clock: Clock,
        inlets: Inlets,
        outlets: Outlets,
    ) -> Self {
        Self {
            engine,
            tap,
            clock,
            inlets,
            outlets,
        }
    }

    /// Follows the runtime until [`Pleg::shutdown`](super::Pleg::shutdown), whatever the runtime does.
    ///
    /// Runs where it is awaited; spawn it to go on meanwhile. Dropping the future stops everything
    /// too, but does not wait for the stream's reader to end.
    ///
    /// # Errors
    ///
    /// If the event stream's reader cannot be started.
    pub async fn run(self) -> Result<(), StartError> {
        let Self {
            engine,
            tap,
            clock,
            inlets,
            outlets,
        } = self;
        match tap {
            None => run(engine, clock, inlets, outlets).await,
            Some(tap) => {
                let traced = Traced::begin(engine, tap, clock.now());
                run(traced, clock, inlets, outlets).await
            }
        }
    }
}

/// The engine, as the driver sees it: tests of the shell alone put a scripted one in its place.
pub(super) trait Machine {
    fn handle(&mut self, now: Now, input: Input);
    fn poll_output(&mut self) -> Option<Output>;
    fn poll_timeout(&self) -> Option<Mono>;
    fn mode(&self) -> Mode;
    fn health(&self, now: Now) -> Health;
    fn stats(&self) -> EngineStats;
    fn mark(&mut self, now: Now) -> Mark;
}

impl Machine for Engine {
    fn handle(&mut self, now: Now, input: Input) {
        self.handle(now, input);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.poll_output()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.poll_timeout()
    }

    fn mode(&self) -> Mode {
        self.mode()
    }

    fn health(&self, now: Now) -> Health {
        self.health(now)
    }

    fn stats(&self) -> EngineStats {
        EngineStats {
            counters: self.counters().clone(),
            runtime: self.runtime().cloned(),
            known_gaps: self.known_gaps().collect(),
            unsettled_pods: self.unsettled_pods(),
            tombstones: self.tombstones(),
        }
    }

    fn mark(&mut self, now: Now) -> Mark {
        self.mark(now)
    }
}

/// Runs a machine.
pub(super) async fn run(
    machine: impl Machine,
    clock: Clock,
    inlets: Inlets,
    outlets: Outlets,
) -> Result<(), StartError> {
    let Inlets {
        source,
        place,
        calls,
        reader: limits,
        commands,
    } = inlets;
    let client = match &source {
        StreamSource::Endpoint(endpoint) => CriClient::for_endpoint(endpoint, calls),
        StreamSource::Channel(channel) => CriClient::new(channel.clone(), calls),
        StreamSource::Connector(connect) => CriClient::new(connect(), calls),
    };
    let (reader, inbox) = StreamReader::start(source, place, limits)?;
    let mut turning = Turning {
        machine,
        clock,
        due: None,
        catching_up_until: None,
        sources: Sources {
            commands,
            answers: FuturesUnordered::new(),
            inbox,
            timer: None,
        },
        client,
        reader,
        outlets,
        untold: Vec::new(),
        readers: BTreeMap::new(),
        notes: NoteLog::default(),
        meter: Meter::default(),
    };
    turning.take(Input::Start);
    let mut taken = Taken::default();
    let mut turns_waited = 0;
    'running: loop {
        turning.set_timer();
        turning.sources.next(&mut taken).await;
        for command in taken.commands.drain(..) {
            if turning.obey(command).is_break() {
                break 'running;
            }
        }
        for (request, answer) in taken.answers.drain(..) {
            turning.take(Input::Answered { request, answer });
        }
        for item in taken.items.drain(..) {
            turning.take(item.into());
        }
        // Messages that came before a relist begins are taken before it does, or it makes them stale.
        if std::mem::take(&mut taken.woken) && !turning.must_catch_up() {
            if turning.sources.inbox.is_empty() || turns_waited >= TURNS_BEFORE_A_WAKE {
                turns_waited = 0;
                turning.take(Input::Wake);
            } else {
                turns_waited += 1;
            }
        }
    }
    turning.stop().await;
    Ok(())
}

/// A running driver.
struct Turning<M> {
    machine: M,
    clock: Clock,
    /// When the machine wanted to be woken, as the timer was last set.
    due: Option<Mono>,
    /// No wake before this.
    catching_up_until: Option<Mono>,
    sources: Sources,
    client: CriClient,
    reader: StreamReader,
    outlets: Outlets,
    /// Events that the feed has not been told yet.
    untold: Vec<Arc<LifecycleEvent>>,
    readers: BTreeMap<ReaderId, oneshot::Sender<Reading>>,
    notes: NoteLog,
    meter: Meter,
}

impl<M: Machine> Turning<M> {
    /// Gives the engine one input and carries out what it wants.
    fn take(&mut self, input: Input) {
        let now = self.clock.now();
        self.meter.look_in(now, &input);
        self.machine.handle(now, input);
        while let Some(output) = self.machine.poll_output() {
            self.meter.look_out(now, &output);
            self.carry_out(output);
        }
        self.tell();
        let mode = self.machine.mode();
        self.outlets.mode.send_if_modified(|shown| {
            let changed = *shown != mode;
            *shown = mode;
            changed
        });
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Ask { request, question } => {
                let asked = ask(self.client.clone(), request, question);
                self.sources.answers.push(asked);
            }
            Output::OpenStream { session } => self.reader.open(session),
            Output::CloseStream { session } => self.reader.close(session),
            Output::Publish {
                uid,
                revision,
                status,
            } => self.outlets.cache.publish(uid, revision, status),
            Output::Observed { uid, mark } => self.outlets.cache.observed(uid, mark),
            Output::ObservedAll { mark, except } => {
                self.outlets.cache.observed_all(mark, except);
                self.outlets.relisted.send_replace(Some(mark));
            }
            Output::Deliver(event) => self.untold.push(event),
            Output::Answer { reader, reading } => {
                // Whoever reads after this answer finds nothing older in the feed.
                self.tell();
                if let Some(reply) = self.readers.remove(&reader) {
                    // It fails if the reader has just given up.
                    let _ = reply.send(reading);
                }
            }
            Output::ModeChanged(change) => {
                info!(from = %change.from, to = %change.to, cause = %change.cause, "Mode changed");
                // It fails if nobody listens.
                let _ = self.outlets.mode_changes.send(change);
            }
            Output::Note(note) => {
                if matches!(note, Note::RuntimeChanged { .. }) {
                    self.client = self.client.for_changed_runtime();
                }
                self.notes.write(&note);
            }
        }
    }

    /// Tells the feed what is to be delivered. The cache shows it already.
    fn tell(&mut self) {
        self.outlets.feed.publish(&self.untold);
        self.untold.clear();
    }

    fn obey(&mut self, command: Command) -> std::ops::ControlFlow<()> {
        match command {
            Command::Mark(reply) => {
                let mark = self.machine.mark(self.clock.now());
                let _ = reply.send(mark);
            }
            // Given up before it was taken.
            Command::Read { reply, .. } if reply.is_closed() => {}
            Command::Read {
                reader,
                uid,
                newer_than,
                freshness,
                reply,
            } => {
                self.readers.insert(reader, reply);
                self.take(Input::Read {
                    reader,
                    uid,
                    newer_than,
                    freshness,
                });
            }
            Command::CancelRead(reader) => {
                if self.readers.remove(&reader).is_some() {
                    self.take(Input::CancelRead { reader });
                }
            }
            Command::Relist(uid, reply) => {
                self.take(Input::RequestRelist { uid });
                let _ = reply.send(());
            }
            Command::Reinspect(uid, reply) => {
                self.take(Input::RequestReinspect { uid });
                let _ = reply.send(());
            }
            Command::Health(reply) => {
                let _ = reply.send(self.machine.health(self.clock.now()));
            }
            Command::Stats(reply) => {
                let _ = reply.send(Stats {
                    engine: self.machine.stats(),
                    feed: self.outlets.feed_stats.stats(),
                    reader: self.reader.counts(),
                    rpcs: self.client.rpcs(),
                    measures: self.meter.read(self.clock.now()),
                    notes_suppressed: self.notes.suppressed,
                });
            }
            Command::Shutdown => {
                self.take(Input::Shutdown);
                return std::ops::ControlFlow::Break(());
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Whether a wake that has just come is late because the process was held up, and so waits for
    /// what the stream brought meanwhile. It waits once.
    fn must_catch_up(&mut self) -> bool {
        let now = self.clock.now().mono;
        if self.catching_up_until.take().is_some() {
            return false;
        }
        let is_late = self.due.is_some_and(|due| now.since(due) >= HELD_UP);
        if is_late {
            self.catching_up_until = Some(now.after(CATCHING_UP));
        }
        is_late
    }

    fn set_timer(&mut self) {
        self.due = self.machine.poll_timeout();
        let Some(at) = self.due else {
            self.sources.timer = None;
            return;
        };
        let at = self
            .clock
            .instant(at.max(self.catching_up_until.unwrap_or(at)));
        match &mut self.sources.timer {
            Some(timer) if timer.deadline() == at => {}
            Some(timer) => timer.as_mut().reset(at),
            none => *none = Some(Box::pin(tokio::time::sleep_until(at))),
        }
    }

    /// Ends calls, stream and feed, in that order. What handles wait for fails as the rest is dropped.
    async fn stop(self) {
        let Self {
            sources,
            client,
            reader,
            mut outlets,
            ..
        } = self;
        let Sources {
            answers,
            commands,
            inbox,
            timer,
        } = sources;
        drop((answers, client, timer));
        // With the inbox gone the reader has nobody left to read for.
        drop(inbox);
        reader.shutdown().await;
        outlets.feed.close();
        drop(outlets);
        // Last, because it tells the handles that everything has ended.
        drop(commands);
    }
}

async fn answered(
    client: CriClient,
    request: RequestId,
    question: Question,
) -> (RequestId, Answer) {
    (request, client.answer(question).await)
}

fn ask(
    client: CriClient,
    request: RequestId,
    question: Question,
) -> BoxFuture<'static, (RequestId, Answer)> {
    answered(client, request, question).boxed()
}

/// What one turn takes.
#[derive(Default)]
struct Taken {
    commands: Vec<Command>,
    answers: Vec<(RequestId, Answer)>,
    items: Vec<StreamItem>,
    woken: bool,
}

impl Taken {
    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.answers.is_empty() && self.items.is_empty() && !self.woken
    }
}

/// What is waited for.
struct Sources {
    commands: mpsc::UnboundedReceiver<Command>,
    answers: FuturesUnordered<BoxFuture<'static, (RequestId, Answer)>>,
    inbox: Inbox,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Sources {
    /// Waits until something is ready, and takes all that is.
    async fn next(&mut self, taken: &mut Taken) {
        poll_fn(|cx| self.poll_next(cx, taken)).await;
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, taken: &mut Taken) -> Poll<()> {
        // Without handles left there are no commands, but subscriptions may live on.
        let _ = self
            .commands
            .poll_recv_many(cx, &mut taken.commands, COMMANDS);
        while let Poll::Ready(Some(answer)) = self.answers.poll_next_unpin(cx) {
            taken.answers.push(answer);
        }
        taken.answers.sort_by_key(|(request, _)| *request);
        // Cancel-safe: nothing is taken unless it is ready now. Without a reader nothing comes.
        let _ = pin!(self.inbox.recv_batch(&mut taken.items)).poll(cx);
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            self.timer = None;
            taken.woken = true;
        }
        if taken.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}
