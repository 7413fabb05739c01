//! `pleg verify`: an audit of the runtime's event stream against its own lists.
//!
//! It uses the client and not the generator, because the generator is made to hide what this must
//! show. Here is only the shell: the stream's reader, a list each second, the clock, the console. What
//! any of it means is [`crate::verify`]'s.
//!
//! On containerd 1.7 asking for the stream takes events away from whoever else listens. Somebody who
//! asks for an audit does not expect that it disturbs, so there it wants to be told that it may; `watch`
//! and `record`, which exist to have the events, only say so.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::args::VerifyFormat;
use super::attach;
use super::config::{RuntimeChoice, RuntimeConfig, VerifyConfig};
use super::follow::write;
use super::output::audit;
use super::output::style::Screen;
use super::{Variable, say};
use crate::backoff::reconnect_delays;
use crate::clock::Clock;
use crate::cri::{
    CallLimits, CriClient, Inbox, ReaderLimits, ReaderPlace, StreamItem, StreamReader, StreamSource,
};
use crate::engine::{Failure, Inspection, RuntimeVersion, SessionId};
use crate::lifecycle::{Mono, NodeList};
#[cfg(feature = "simulate")]
use crate::simulate::SimulatedRuntime;
use crate::verify::{Auditor, Habits, Input, PATIENCE, Report, Verdict};

/// The exit code of an audit that has found no loss and cannot say that there was none.
pub(super) const CANNOT_TELL: u8 = 2;

/// The exit code of an audit that has found a loss.
const LOST: u8 = 1;

/// From one list to the next: as the kubelet polls, so that whatever lives for a second is seen.
const LIST_PERIOD: Duration = Duration::from_secs(1);

/// How long the end may take: closing the event stream and its thread.
const GOODBYE: Duration = Duration::from_secs(2);

/// Audits the runtime and prints the report.
///
/// # Errors
///
/// Whatever keeps it from judging.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: &VerifyConfig,
    variable: Variable<'_>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<ExitCode> {
    tokio::pin!(stop);
    let limits = CallLimits {
        message_size: runtime.max_message_size,
        ..CallLimits::default()
    };
    let audited = async {
        match &runtime.choice {
            RuntimeChoice::Node(candidates) => {
                let (endpoint, version) = tokio::select! {
                    biased;
                    () = &mut stop => bail!("stopped before a runtime had answered"),
                    found = attach::find(candidates, limits) => found?,
                };
                may_listen(&version, config)?;
                let client = CriClient::for_endpoint(&endpoint, limits);
                let source = StreamSource::Endpoint(endpoint);
                Audit::new(client, source, version)?
                    .run(config.lasting, &mut stop)
                    .await
            }
            RuntimeChoice::Simulated { seed } => simulated(*seed, limits, config, &mut stop).await,
        }
    };
    let report = audited.await?;
    print(&report, config.format, variable).await?;
    Ok(match report.verdict {
        Verdict::Passed => ExitCode::SUCCESS,
        Verdict::Lost => LOST.into(),
        Verdict::CannotTell => CANNOT_TELL.into(),
    })
}

/// Says what listening costs others, before it begins, and whether it may.
fn may_listen(version: &RuntimeVersion, config: &VerifyConfig) -> anyhow::Result<()> {
    let (name, number) = (&version.name, &version.version);
    if Habits::of(version).one_queue_for_all() {
        let price = format!(
            "{name} {number} gives each event to one client only: while it is audited, events are taken \
             away from any other client (a kubelet with the gate EventedPLEG, another pleg), and one \
             more when it is over"
        );
        if !config.may_take_events {
            bail!("{price}; if that harms nobody here, add --take-events");
        }
        say(&format!("pleg: {price}"));
    }
    say(&format!(
        "pleg: auditing {name} {number} for {}; Ctrl-C ends it early",
        humantime::format_duration(config.lasting)
    ));
    Ok(())
}

#[cfg(feature = "simulate")]
async fn simulated(
    seed: Option<u64>,
    limits: CallLimits,
    config: &VerifyConfig,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Report> {
    let mut simulation = SimulatedRuntime::builder().busy_node();
    if let Some(seed) = seed {
        simulation = simulation.seed(seed);
    }
    let runtime = simulation.build();
    let client = CriClient::new(runtime.channel(), limits);
    let version = client
        .version()
        .await
        .context("the simulated runtime does not answer")?;
    may_listen(&version, config)?;
    let _churn = runtime.spawn_churn();
    let source = StreamSource::Channel(runtime.channel());
    Audit::new(client, source, version)?
        .run(config.lasting, stop)
        .await
}

#[cfg(not(feature = "simulate"))]
async fn simulated(
    _: Option<u64>,
    _: CallLimits,
    _: &VerifyConfig,
    _: impl Future<Output = ()>,
) -> anyhow::Result<Report> {
    bail!("this build of pleg has no simulated runtime; build it with the feature simulate")
}

async fn print(
    report: &Report,
    format: VerifyFormat,
    variable: Variable<'_>,
) -> anyhow::Result<()> {
    let text = match format {
        VerifyFormat::Table => audit::table(report, Screen::of(&io::stdout(), variable)),
        VerifyFormat::Json => {
            let mut json = serde_json::to_string_pretty(report)?;
            json.push('\n');
            json
        }
    };
    match write(&mut tokio::io::stdout(), &text).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// An answer of the runtime.
enum Answered {
    List(Result<NodeList, Failure>),
    Statuses(Inspection),
}

type Asking = Pin<Box<dyn Future<Output = Answered>>>;

/// What an audit runs with.
struct Audit {
    auditor: Auditor,
    clock: Clock,
    client: CriClient,
    reader: StreamReader,
    inbox: Inbox,
    session: SessionId,
    /// One question is out at a time: the runtime is not to be slowed down.
    asking: Option<Asking>,
    reopen_at: Option<Instant>,
}

impl Audit {
    fn new(
        client: CriClient,
        source: StreamSource,
        version: RuntimeVersion,
    ) -> anyhow::Result<Self> {
        Self::by(Clock::system(), client, source, version)
    }

    fn by(
        clock: Clock,
        client: CriClient,
        source: StreamSource,
        version: RuntimeVersion,
    ) -> anyhow::Result<Self> {
        // A channel's connection runs here; of a socket's, no stall of ours may reach the runtime.
        let place = match &source {
            StreamSource::Endpoint(_) => ReaderPlace::OwnThread,
            StreamSource::Channel(_) | StreamSource::Connector(_) => ReaderPlace::CurrentRuntime,
        };
        let (reader, inbox) = StreamReader::start(source, place, ReaderLimits::default())
            .context("cannot read the event stream")?;
        Ok(Self {
            auditor: Auditor::new(version, clock.now()),
            clock,
            client,
            reader,
            inbox,
            session: SessionId(0),
            asking: None,
            reopen_at: None,
        })
    }

    /// Audits for so long, or until `stop`, and a little longer for what is on its way.
    async fn run(
        mut self,
        lasting: Duration,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<Report> {
        tokio::pin!(stop);
        let begun = self.clock.now().mono;
        let end = self.clock.instant(begun.after(lasting));
        self.open();
        let mut ticks = interval(LIST_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.auditor.is_hopeless() {
            let goes_on = tokio::select! {
                biased;
                () = &mut stop => false,
                happened = self.next() => happened?,
                () = sleep_until(end) => false,
                _ = ticks.tick(), if self.asking.is_none() => {
                    self.ask_for_lists();
                    true
                }
            };
            if !goes_on {
                self.wait_for_the_last(begun.after(lasting)).await?;
                break;
            }
        }
        let report = self.auditor.report(self.clock.now());
        // Bounded: a reader that does not end must not keep the command.
        let _ = tokio::time::timeout(GOODBYE, self.reader.shutdown()).await;
        Ok(report)
    }

    /// One last list, and the messages of what it proves.
    async fn wait_for_the_last(&mut self, planned: Mono) -> anyhow::Result<()> {
        let patience = sleep_until(self.clock.instant(self.clock.now().mono.after(PATIENCE)));
        tokio::pin!(patience);
        // Whoever ends it early does not want to wait.
        let mut lists_left = usize::from(self.clock.now().mono >= planned);
        loop {
            if self.asking.is_none() {
                if lists_left == 0
                    && !(self.auditor.is_waiting() && self.clock.now().mono >= planned)
                {
                    return Ok(());
                }
                if lists_left > 0 {
                    lists_left -= 1;
                    self.ask_for_lists();
                }
            }
            tokio::select! {
                biased;
                () = &mut patience => return Ok(()),
                happened = self.next() => {
                    happened?;
                }
            }
        }
    }

    /// Takes what comes next: messages, an answer, the time to open the stream again.
    async fn next(&mut self) -> anyhow::Result<bool> {
        let mut batch = Vec::new();
        let answer = async {
            match &mut self.asking {
                Some(asking) => asking.await,
                None => pending().await,
            }
        };
        let reopening = async {
            match self.reopen_at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        let answered = tokio::select! {
            biased;
            taken = self.inbox.recv_batch(&mut batch) => {
                if taken == 0 {
                    bail!("reading the event stream broke off");
                }
                None
            }
            answered = answer => Some(answered),
            () = reopening => {
                self.reopen_at = None;
                self.open();
                return Ok(true);
            }
        };
        for item in batch {
            self.hear(item);
        }
        if let Some(answered) = answered {
            self.asking = None;
            self.take_answer(answered);
        }
        Ok(true)
    }

    fn open(&mut self) {
        self.session = SessionId(self.session.0 + 1);
        self.auditor.take(self.clock.now(), Input::StreamAsked);
        self.reader.open(self.session);
    }

    fn hear(&mut self, item: StreamItem) {
        let input = match item {
            StreamItem::Message { event, .. } => Input::Message(event),
            StreamItem::Garbage { refusal, .. } => Input::Garbage(refusal),
            StreamItem::Overflow { dropped, .. } => Input::Overflow { dropped },
            StreamItem::Ended { end, .. } => Input::StreamEnded(end),
        };
        let has_ended = matches!(input, Input::StreamEnded(_));
        let now = self.clock.now();
        self.auditor.take(now, input);
        if has_ended {
            let delays = reconnect_delays();
            let wait = delays.get(self.auditor.short_ends()).or(delays.last());
            let wait = wait.copied().unwrap_or(LIST_PERIOD);
            self.reopen_at = Some(self.clock.instant(now.mono.after(wait)));
        }
    }

    fn ask_for_lists(&mut self) {
        self.auditor.take(self.clock.now(), Input::ListAsked);
        let client = self.client.clone();
        self.asking = Some(Box::pin(async move {
            Answered::List(client.list_node().await.map_err(Into::into))
        }));
    }

    fn take_answer(&mut self, answered: Answered) {
        let now = self.clock.now();
        match answered {
            Answered::List(list) => {
                self.auditor.take(now, Input::Listed(list));
                let wanted = self.auditor.wanted();
                if !wanted.is_empty() {
                    let client = self.client.clone();
                    self.asking = Some(Box::pin(async move {
                        Answered::Statuses(client.inspect(&[], &wanted).await)
                    }));
                }
            }
            Answered::Statuses(statuses) => self.auditor.take(now, Input::Inspected(statuses)),
        }
    }
}

#[cfg(all(test, feature = "simulate"))]
mod tests;
