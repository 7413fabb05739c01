//! Ctrl-C and SIGTERM, which are how people and service managers end a watch: no failure.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at the first of the two. From this call on they no longer kill the process.
///
/// # Errors
///
/// The system refuses the handlers.
pub(crate) fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
