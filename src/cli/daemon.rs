//! Whom to ask: the node's daemon if one runs, so that nobody becomes a second event client by
//! looking; else the runtime itself.

use std::error::Error as _;
use std::io;

use anyhow::{Context, anyhow};
use tokio::net::UnixStream;

use super::attach::is_socket;
use super::say;
use super::unreachable::{Why, refusal};
use crate::cri::Endpoint;
use crate::serve::grpc::{ClientError, DEFAULT_SOCKET, DaemonClient};

/// Which daemon is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DaemonChoice {
    /// None: the runtime itself was asked for.
    Direct,
    /// The one at the usual socket, if there is one.
    Usual,
    /// The one at this socket, and no other.
    At(Endpoint),
}

/// A daemon that takes connections.
pub(crate) struct Found {
    /// Its socket.
    pub(crate) socket: Endpoint,
    /// A client of it.
    pub(crate) client: DaemonClient,
}

/// Looks for the daemon, and says on stderr who is asked if that is not what was typed.
pub(crate) async fn find(choice: &DaemonChoice) -> anyhow::Result<Option<Found>> {
    match choice {
        DaemonChoice::Direct => Ok(None),
        DaemonChoice::At(socket) => found(socket).await.map(Some),
        DaemonChoice::Usual => {
            let socket = usual()?;
            match UnixStream::connect(socket.path()).await {
                Ok(_) => {
                    say(&format!(
                        "pleg: asking the daemon at {socket}; --direct goes past it"
                    ));
                    Ok(Some(Found::at(socket)))
                }
                Err(error) if is_nobody(&error) => {
                    say(&format!(
                        "pleg: no daemon at {socket}; asking the runtime itself"
                    ));
                    Ok(None)
                }
                // There is one: going past it would make this a second event client.
                Err(error) => Err(not_there(&socket, &error)),
            }
        }
    }
}

/// Whether nobody serves a socket.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory
    )
}

fn not_there(socket: &Endpoint, error: &io::Error) -> anyhow::Error {
    let is_deserted = error.kind() == io::ErrorKind::ConnectionRefused;
    let why = if is_deserted && !is_socket(socket.path()) {
        Why::NoSocket.to_string()
    } else {
        refusal(error)
    };
    anyhow!(
        "no daemon answers at {socket}: {why}\n\
         pleg run starts one; --daemon or PLEG_DAEMON names another socket; pleg pods --direct asks \
         the runtime itself"
    )
}

impl Found {
    fn at(socket: Endpoint) -> Self {
        Self {
            client: DaemonClient::at(&socket),
            socket,
        }
    }

    /// What could not be had of it, and why.
    pub(crate) fn failed(&self, what: &str, error: &ClientError) -> anyhow::Error {
        let why = match error {
            // Made on this side: what answers there speaks no gRPC, or has gone.
            ClientError::Call(status) if status.source().is_some() => format!(
                "what answers there is no daemon of pleg ({}); is it the socket of a `pleg run` that runs?",
                status.message()
            ),
            _ => error.to_string(),
        };
        anyhow!("cannot {what} at {}: {why}", self.socket)
    }
}

/// The daemon, which must be there.
pub(crate) async fn must_find(choice: &DaemonChoice) -> anyhow::Result<Found> {
    match choice {
        DaemonChoice::At(socket) => found(socket).await,
        DaemonChoice::Usual | DaemonChoice::Direct => found(&usual()?).await,
    }
}

fn usual() -> anyhow::Result<Endpoint> {
    DEFAULT_SOCKET.parse().context("no usual socket")
}

async fn found(socket: &Endpoint) -> anyhow::Result<Found> {
    // A plain connection first: its errors say more than a transport's.
    let connected = UnixStream::connect(socket.path()).await;
    connected.map_err(|error| not_there(socket, &error))?;
    Ok(Found::at(socket.clone()))
}

/// Who a daemon is told watches.
pub(crate) fn client_name(command: &str) -> String {
    format!("pleg {command} (pid {})", std::process::id())
}
