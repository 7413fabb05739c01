//! Signals: Ctrl-C and SIGTERM, which are how people and service managers end a watch (no failure), and
//! SIGUSR1, which asks for the last minutes.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

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

/// Each time that somebody asks for the last minutes. From this call on SIGUSR1 no longer kills the
/// process.
///
/// # Errors
///
/// The system refuses the handler.
pub(crate) fn asked_to_dump() -> io::Result<Signal> {
    signal(SignalKind::user_defined1())
}
