//! Signals: Ctrl-C, SIGTERM and a terminal that goes away, which are how people and service managers end
//! a watch (no failure: what was recorded is kept), and SIGUSR1, which asks for the last minutes.

use std::future::{Future, pending};
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Resolves at the first of the three. From this call on they no longer kill the process. A hang-up that
/// the process was started to ignore, as `nohup` does, stays ignored.
///
/// # Errors
///
/// The system refuses the handlers.
pub(crate) fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A system that does not tell is one on which nothing is changed.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut hang_up = match ignores(&status, SignalKind::hangup()) {
        Some(false) => Some(signal(SignalKind::hangup())?),
        Some(true) | None => None,
    };
    Ok(async move {
        let hung_up = async {
            match &mut hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
    })
}

/// Whether a process ignores a signal, by its `/proc/PID/status`.
fn ignores(status: &str, signal: SignalKind) -> Option<bool> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let bit = u32::try_from(signal.as_raw_value()).ok()?.checked_sub(1)?;
    Some(mask.checked_shr(bit)? & 1 == 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_started_to_ignore_a_hang_up_is_known() {
        let status =
            |mask: &str| format!("Name:\tpleg\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        let ignores = |status: &str| ignores(status, SignalKind::hangup());
        assert_eq!(ignores(&status("0000000000001000")), Some(false));
        assert_eq!(ignores(&status("0000000000001001")), Some(true));
        assert_eq!(ignores(&status("odd")), None);
        assert_eq!(ignores(""), None);
    }
}
