//! `pleg watch`: lifecycle events, printed as they happen.
//!
//! A flight recorder goes along, because nobody records before the fault.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use futures::stream::{self, PollNext, select_with_strategy};
use rustix::fs::{Access, access};

use super::Variable;
use super::args::Begin;
use super::attach;
use super::config::{RuntimeConfig, WatchConfig};
use super::daemon::{self, Found};
use super::follow::{Console, Ending, Followed, follow};
use super::output::style::Screen;
use super::stdout::Stdout;
use super::{say, signals, without_numbers};
use crate::clock::Clock;
use crate::engine::RuntimeVersion;
use crate::scenario::recording::{Flight, FlightLimits, FlightRecorder, Recorded};
use crate::serve::grpc::{self, Watched};
use crate::verify::Habits;

/// How long the end may take: closing the event stream and its thread.
const GOODBYE: Duration = Duration::from_secs(2);

/// Follows the runtime until something ends it.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: &WatchConfig,
    variable: Variable<'_>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    tokio::pin!(stop);
    if let Some(path) = &config.dump_last {
        check_place(path)?;
    }
    if let Some(found) = daemon::find(&config.daemon).await? {
        return through(&found, config, variable, stop).await;
    }
    let dumps = signals::asked_to_dump().context("cannot listen for signals")?;
    let mut flight = None;
    let attaching = attach::attach_with(runtime, config.events, |builder, version| {
        let (tap, recorder) = Flight::start(FlightLimits::default(), Some(version.clone()))
            .context("cannot start the flight recorder")?;
        flight = Some(recorder);
        Ok(builder.tap(move |tapped| tap.see(tapped)))
    });
    let attached = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        attached = attaching => attached?,
    };
    if config.events {
        warn_of_taking_events(&attached.version);
    }
    let console = console(variable);
    let events = attached.watch(config.from)?.map(Followed::Event);
    let modes = attached.modes().map(Followed::ModeChanged);
    // Changes of mode are few and come first; the watch ends with the events.
    let followed = select_with_strategy(
        modes.map(Some).chain(stream::pending()),
        events.map(Some).chain(stream::iter([None])),
        |(): &mut ()| PollNext::Left,
    );
    let followed = followed
        .take_while(|item| ready(item.is_some()))
        .filter_map(ready);
    let following = attached.follow();
    let ending = tokio::select! {
        biased;
        never = dump_when_asked(dumps, flight.as_ref(), config.dump_last.as_deref()) => match never {},
        ending = follow(followed, config, console, &mut stop) => ending,
    };
    // Bounded: a driver that does not end must not keep the command.
    let stopped = tokio::time::timeout(GOODBYE, following.stop()).await;
    if let (Some(path), Some(flight)) = (&config.dump_last, flight) {
        let written = flight.finish().and_then(|flight| flight.dump(path));
        let written = written.with_context(|| format!("cannot write {}", path.display()))?;
        say_dumped(path, &Ok(written));
    }
    let ending = ending.context("cannot write to standard output")?;
    match ending {
        Ending::FeedEnded => {
            stopped.context("following the runtime broke off")??;
            bail!("following the runtime broke off")
        }
        Ending::Lasted | Ending::Counted | Ending::Stopped | Ending::ReaderGone => Ok(()),
    }
}

/// Watches what a daemon tells. It comes back after a restart by itself, and says so.
async fn through(
    found: &Found,
    config: &WatchConfig,
    variable: Variable<'_>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let begin = match config.from {
        Begin::Snapshot => grpc::Begin::Snapshot,
        Begin::Now => grpc::Begin::Now,
    };
    let name = daemon::client_name("watch");
    let watching = found.client.watch(begin, &name);
    let failure = RefCell::new(None);
    let followed = stream::unfold(watching, async |mut watching| {
        loop {
            let followed = match watching.next().await {
                Ok(Watched::Event(event)) => Followed::Event(event),
                Ok(Watched::ModeChanged(change)) => Followed::ModeChanged(change),
                Ok(Watched::ListAgain(why)) => Followed::ListAgain(why),
                Ok(Watched::Lost(why)) => Followed::Aside(format!("connecting again: {why}")),
                Ok(Watched::SnapshotEnd) => continue,
                Err(error) => {
                    failure.replace(Some(error));
                    return None;
                }
            };
            return Some((followed, watching));
        }
    });
    let ending = follow(followed, config, console(variable), stop)
        .await
        .context("cannot write to standard output")?;
    match failure.into_inner() {
        Some(error) if ending == Ending::FeedEnded => {
            Err(found.failed("watch through the daemon", &error))
        }
        _ => Ok(()),
    }
}

fn console(variable: Variable<'_>) -> Console<Stdout, tokio::io::Stderr> {
    Console {
        out: Stdout::of_the_process(),
        err: tokio::io::stderr(),
        out_screen: Screen::of(&std::io::stdout(), variable),
        err_screen: Screen::of(&std::io::stderr(), variable),
    }
}

/// Writes the last minutes whenever somebody asks for them.
async fn dump_when_asked(
    mut asked: tokio::signal::unix::Signal,
    flight: Option<&FlightRecorder>,
    path: Option<&Path>,
) -> Infallible {
    while asked.recv().await.is_some() {
        let Some(flight) = flight else { continue };
        let given = path.map(Path::to_path_buf);
        // On the recorder's thread: a slow disk must not hold up the events.
        flight.errand(|flight| {
            let (path, written) = if let Some(path) = given {
                (path.clone(), flight.dump(&path))
            } else {
                let path = unnamed_dump();
                (path.clone(), flight.dump_anew(&path))
            };
            say_dumped(&path, &written);
        });
    }
    std::future::pending().await
}

/// Where the last minutes go if nobody said where.
fn unnamed_dump() -> PathBuf {
    let seconds = Clock::system().now().wall.0 / 1_000_000_000;
    std::env::temp_dir().join(format!("pleg-last-{seconds}.jsonl.zst"))
}

fn say_dumped(path: &Path, written: &std::io::Result<Recorded>) {
    let path = path.display();
    match written {
        Ok(recorded) => say(&format!(
            "pleg: wrote the last minutes to {path} ({} entries); pleg replay {path} plays them",
            recorded.entries
        )),
        Err(error) => say(&format!(
            "pleg: cannot write the last minutes to {path}: {}",
            without_numbers(error.to_string())
        )),
    }
}

/// A file that cannot be written should not be found out at the end.
pub(super) fn check_place(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!(
            "cannot write {}: it is a folder; name a file in it",
            path.display()
        );
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        bail!(
            "cannot write {}: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
    }
    let needed = if path.exists() { path } else { folder };
    access(needed, Access::WRITE_OK)
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Says so if following the events of this runtime has a price for others.
pub(super) fn warn_of_taking_events(version: &RuntimeVersion) {
    if Habits::of(version).one_queue_for_all() {
        say(&format!(
            "pleg: {} {} has one queue of events for all its clients: following it takes events \
             away from any other event client of this node; --no-events polls instead",
            version.name, version.version
        ));
    }
}
