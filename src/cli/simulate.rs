//! `pleg simulate`: a runtime without containers on a socket, for other clients and as a load.
//!
//! It serves, lets things happen, and at the end prints what it was asked, what it told and what it
//! cost, so that a client's cost can be told from that of its runtime. What happens is [`drive`]'s.

mod account;
pub(super) mod args;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::signal::unix::{SignalKind, signal};

use super::attach::is_socket;
use super::say;
use super::unreachable::LONGEST_PATH;
use crate::clock::Clock;
use crate::cri::Endpoint;
use crate::scenario::{Scenario, Stage, enact};
use crate::simulate::{ChurnKind, SimulatedRuntime, UnixServer};
use account::Account;
use args::{AccountFormat, SimulateArgs};

/// Serves until something ends it.
pub(crate) async fn run(
    config: &SimulateArgs,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let play = match &config.scenario {
        Some(file) => Some(Play::open(file).await?),
        None => None,
    };
    let runtime = match &play {
        Some(play) => play.stage.runtime().clone(),
        None => build(config),
    };
    // Before the socket is there, so that whoever waits for that may send the signal at once.
    let asked = on_signal(SignalKind::user_defined1()).context("cannot listen for signals")?;
    let wants_account =
        on_signal(SignalKind::user_defined2()).context("cannot listen for signals")?;
    let server = serve(&runtime, &config.listen)?;
    let (pods, containers) =
        runtime.world(|world| (world.sandboxes().count(), world.containers().count()));
    let what = match &play {
        Some(play) => play.scenario.name.clone(),
        None => config.character.to_string(),
    };
    say(&format!(
        "pleg: {what} on {}: {pods} pods, {containers} containers",
        config.listen
    ));
    let account = Account::open(&runtime);
    let lasting = async {
        match config.lasting {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = stop => {}
        () = lasting => {}
        () = async {
            match play {
                Some(play) => play.go_on(config.speed).await,
                None => drive(&runtime, config, asked).await,
            }
        } => {}
        printed = print_when_asked(&account, config.output, wants_account) => printed?,
    }
    drop(server);
    print(&account, config.output)
}

fn print(account: &Account, format: AccountFormat) -> anyhow::Result<()> {
    account
        .print(format)
        .context("cannot write to standard output")
}

/// Ends only if it cannot print.
async fn print_when_asked(
    account: &Account,
    format: AccountFormat,
    mut asked: impl AsyncFnMut(),
) -> anyhow::Result<()> {
    loop {
        asked().await;
        print(account, format)?;
    }
}

/// A scenario whose runtime is served.
struct Play {
    scenario: Scenario,
    stage: Stage,
    file: PathBuf,
}

impl Play {
    async fn open(file: &Path) -> anyhow::Result<Self> {
        let scenario = Scenario::load(file)?;
        let mut stage = Stage::new(&scenario.runtime, &Clock::system());
        stage.set(&scenario, &mut cannot(file)).await;
        Ok(Self {
            scenario,
            stage,
            file: file.to_owned(),
        })
    }

    /// Lets it happen, and serves on when it is over.
    async fn go_on(self, speed: f64) {
        enact(&self.scenario, self.stage, speed, &mut cannot(&self.file)).await;
        say("pleg: the scenario is over; serving on as things are");
        std::future::pending::<()>().await;
    }
}

/// Says what of a scenario could not be done.
fn cannot(file: &Path) -> impl FnMut(u64, u64, &str) + '_ {
    move |line, column, why| say(&format!("pleg: {}:{line}:{column}: {why}", file.display()))
}

fn build(config: &SimulateArgs) -> SimulatedRuntime {
    let mut character = config.character.character();
    if let Some(items) = config.streaming_lists {
        character = character.with_streaming_lists(items);
    }
    let mut builder = SimulatedRuntime::builder()
        .character(character)
        .pods(config.pods)
        .churn(config.churn.0 * config.speed)
        // Nobody can ask this runtime for its past.
        .history(Duration::ZERO);
    if config.restarts_only {
        builder = builder.churn_kind(ChurnKind::Restarts);
    }
    if let Some(containers) = config.containers {
        builder = builder.containers(containers);
    }
    if let Some(seed) = config.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}

fn serve(runtime: &SimulatedRuntime, listen: &Endpoint) -> anyhow::Result<UnixServer> {
    runtime.serve_unix(listen.path()).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse if !is_socket(listen.path()) => {
                "a file or a folder is there; name a socket"
            }
            io::ErrorKind::AddrInUse => "something listens there; name another socket",
            io::ErrorKind::NotFound => "its folder does not exist; create it",
            io::ErrorKind::PermissionDenied => "name a socket in a folder of yours",
            io::ErrorKind::InvalidInput => {
                return anyhow!(
                    "cannot listen on {listen}: a socket's path has at most {LONGEST_PATH} bytes"
                );
            }
            _ => "name another socket",
        };
        anyhow::Error::new(error).context(format!("cannot listen on {listen}: {advice}"))
    })
}

/// Lets things happen: the churn, and bursts when they are due or asked for. It never ends. What
/// releases a runtime that was held asks for a burst too, unless one is due later.
async fn drive(runtime: &SimulatedRuntime, config: &SimulateArgs, mut asked: impl AsyncFnMut()) {
    if config.held {
        asked().await;
    }
    let burst = async {
        let Some(transitions) = config.burst else {
            return std::future::pending().await;
        };
        let at_once = config.held.then_some(Duration::ZERO);
        let mut due = config.burst_after.or(at_once);
        loop {
            let by_itself = async {
                match due {
                    Some(after) => tokio::time::sleep(at_speed(after, config.speed)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = by_itself => due = None,
                () = asked() => {}
            }
            let done = runtime.burst(transitions);
            say(&format!("pleg: burst of {done} container ends and starts"));
        }
    };
    tokio::select! {
        biased;
        () = burst => {}
        _ = runtime.churn() => {}
    }
}

/// How long something takes when things happen at another speed; the longest time there is if that
/// cannot be said.
fn at_speed(time: Duration, speed: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or(Duration::MAX)
}

/// Waits for a signal, each time anew.
fn on_signal(kind: SignalKind) -> io::Result<impl AsyncFnMut()> {
    let mut signals = signal(kind)?;
    Ok(async move || {
        signals.recv().await;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_is_due_after_the_end_of_time_is_no_panic() {
        assert_eq!(
            at_speed(Duration::from_secs(10), 2.0),
            Duration::from_secs(5)
        );
        assert_eq!(at_speed(Duration::MAX, 0.001), Duration::MAX);
    }

    #[tokio::test]
    async fn a_file_in_the_sockets_place_is_not_taken_for_a_listener() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "kept").unwrap();
        let listen = format!("unix://{}", path.display()).parse().unwrap();
        let runtime = SimulatedRuntime::builder().build();
        let error = serve(&runtime, &listen).unwrap_err().to_string();
        assert!(
            error.ends_with("a file or a folder is there; name a socket"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    }
}
