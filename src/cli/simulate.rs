//! `pleg simulate`: a runtime without containers on a socket, for other clients and as a load.
//!
//! It serves, lets things happen, and at the end prints what it was asked, what it told and what it
//! cost, so that a client's cost can be told from that of its runtime. What happens is [`drive`]'s.

mod account;
pub(super) mod args;

use std::future::Future;
use std::io;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::attach::is_socket;
use super::say;
use crate::cri::Endpoint;
use crate::simulate::{SimulatedRuntime, UnixServer};
use account::Account;
use args::SimulateArgs;

/// Serves until something ends it.
pub(crate) async fn run(
    config: &SimulateArgs,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let runtime = build(config);
    // Before the socket is there, so that whoever waits for that may send the signal at once.
    let bursts = asked_for_bursts().context("cannot listen for signals")?;
    let server = serve(&runtime, &config.listen)?;
    let (pods, containers) =
        runtime.world(|world| (world.sandboxes().count(), world.containers().count()));
    say(&format!(
        "pleg: {} on {}: {pods} pods, {containers} containers",
        config.character, config.listen
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
        () = drive(&runtime, config, bursts) => {}
    }
    drop(server);
    account
        .close(config.output)
        .context("cannot write to standard output")
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
            _ => "name another socket",
        };
        anyhow::Error::new(error).context(format!("cannot listen on {listen}: {advice}"))
    })
}

/// Lets things happen: the churn, and bursts when they are due or asked for. It never ends.
async fn drive(runtime: &SimulatedRuntime, config: &SimulateArgs, mut asked: impl AsyncFnMut()) {
    let burst = async {
        let Some(transitions) = config.burst else {
            return std::future::pending().await;
        };
        let mut due = config.burst_after;
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

/// Waits for SIGUSR1, each time anew.
fn asked_for_bursts() -> io::Result<impl AsyncFnMut()> {
    let mut signals = signal(SignalKind::user_defined1())?;
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
