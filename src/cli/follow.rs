//! The loop of `watch`: events and changes of mode in, lines out.
//!
//! It knows streams and writers, no runtime and no terminal, so that its ends can be told apart in
//! tests. A reader of the output that stalls stalls only this loop: the feed folds meanwhile, and
//! Ctrl-C still ends it.

use std::future::{Future, pending};
use std::io;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::pin;

use super::args::WatchFormat;
use super::config::WatchConfig;
use super::output::style::Colour;
use super::output::{event, mode};
use crate::engine::ModeChange;
use crate::lifecycle::LifecycleEvent;

/// How many waiting events share one write.
const BATCH: usize = 256;

/// Why following ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `--for` is over.
    Lasted,
    /// `--count` is reached.
    Counted,
    /// A signal, or whatever else the caller stops for.
    Stopped,
    /// Nobody reads the output any more.
    ReaderGone,
    /// The feed has ended by itself.
    FeedEnded,
}

/// Where lines go.
pub(crate) struct Console<O, E> {
    /// Events, and in JSON the changes of mode.
    pub(crate) out: O,
    /// In a table the changes of mode.
    pub(crate) err: E,
    /// Whether `out` is coloured.
    pub(crate) out_colour: Colour,
    /// Whether `err` is coloured.
    pub(crate) err_colour: Colour,
}

/// Prints until something ends it. Whatever is ready is written and flushed at once.
///
/// # Errors
///
/// The output cannot be written, for another reason than that its reader has gone.
pub(crate) async fn follow(
    events: impl Stream<Item = Arc<LifecycleEvent>>,
    modes: impl Stream<Item = ModeChange>,
    config: &WatchConfig,
    console: Console<impl AsyncWrite + Unpin, impl AsyncWrite + Unpin>,
    stop: impl Future<Output = ()>,
) -> io::Result<Ending> {
    let Console {
        mut out,
        mut err,
        out_colour,
        err_colour,
    } = console;
    let deadline = async {
        match config.lasting {
            Some(lasting) => tokio::time::sleep(lasting).await,
            None => pending().await,
        }
    };
    let events = events.ready_chunks(BATCH).fuse();
    let modes = modes.fuse();
    pin!(stop, deadline, events, modes);

    let mut left = config.count.unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut aside = String::new();
    if config.format == WatchFormat::Table {
        event::push_header(&mut text);
    }
    loop {
        let written = async {
            if !aside.is_empty() {
                // Events matter more than what is said beside them.
                let _ = write(&mut err, &aside).await;
            }
            write(&mut out, &text).await
        };
        tokio::select! {
            biased;
            () = &mut stop => return Ok(Ending::Stopped),
            result = written => match result {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(Ending::ReaderGone);
                }
                other => other?,
            },
        }
        if left == 0 {
            return Ok(Ending::Counted);
        }
        text.clear();
        aside.clear();
        tokio::select! {
            biased;
            () = &mut stop => return Ok(Ending::Stopped),
            () = &mut deadline => return Ok(Ending::Lasted),
            Some(change) = modes.next() => match config.format {
                WatchFormat::Table => aside.push_str(&mode::line(&change, err_colour)),
                WatchFormat::Json => text.push_str(&mode::json_line(&change)?),
            },
            batch = events.next() => {
                let Some(batch) = batch else { return Ok(Ending::FeedEnded) };
                for event in batch.iter().filter(|event| config.filter.wants(event)) {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    match config.format {
                        WatchFormat::Table => event::push_event(&mut text, event, out_colour),
                        WatchFormat::Json => event::push_event_json(&mut text, event)?,
                    }
                }
            }
        }
    }
}

/// Writes all of it and waits until it has left the process.
pub(crate) async fn write(out: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    out.write_all(text.as_bytes()).await?;
    out.flush().await
}

#[cfg(test)]
mod tests {
    use super::super::output::samples;
    use super::*;
    use crate::cli::args::Begin;
    use crate::cli::config::EventFilter;
    use crate::engine::{Mode, PollingReason};
    use crate::lifecycle::{LifecycleKind, UnixNanos};
    use futures::stream;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    const fn config(format: WatchFormat) -> WatchConfig {
        WatchConfig {
            format,
            from: Begin::Snapshot,
            lasting: None,
            count: None,
            filter: EventFilter {
                kinds: Vec::new(),
                namespace: None,
                pod: None,
            },
            events: true,
            dump_last: None,
        }
    }

    fn deaths(number: usize) -> impl Stream<Item = Arc<LifecycleEvent>> {
        stream::iter((0..number).map(|_| Arc::new(samples::died())))
    }

    fn to_polling() -> ModeChange {
        ModeChange {
            from: Mode::Connecting,
            to: Mode::Polling {
                reason: PollingReason::Unsupported,
            },
            cause: "no such method".into(),
            at: UnixNanos(samples::NOON),
        }
    }

    /// What was printed and how it ended.
    struct Seen {
        ending: io::Result<Ending>,
        out: String,
        err: String,
    }

    async fn seen(
        events: impl Stream<Item = Arc<LifecycleEvent>>,
        modes: impl Stream<Item = ModeChange>,
        config: &WatchConfig,
        stop: impl Future<Output = ()>,
    ) -> Seen {
        let mut out = Vec::new();
        let mut err = Vec::new();
        let console = Console {
            out: &mut out,
            err: &mut err,
            out_colour: Colour::Never,
            err_colour: Colour::Never,
        };
        let ending = follow(events, modes, config, console, stop).await;
        Seen {
            ending,
            out: String::from_utf8(out).unwrap(),
            err: String::from_utf8(err).unwrap(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_has_one_header_and_changes_of_mode_stand_aside() {
        let seen = seen(
            deaths(300),
            stream::iter([to_polling()]),
            &config(WatchFormat::Table),
            pending(),
        )
        .await;
        assert_eq!(seen.ending.unwrap(), Ending::FeedEnded);
        assert_eq!(seen.out.lines().count(), 301);
        assert_eq!(seen.out.matches("NAMESPACE/POD").count(), 1);
        assert!(
            seen.err.contains("mode Polling(Unsupported)"),
            "{}",
            seen.err
        );
    }

    #[tokio::test(start_paused = true)]
    async fn in_json_everything_is_one_stream_of_objects_that_type_tells_apart() {
        let seen = seen(
            deaths(2),
            stream::iter([to_polling()]),
            &config(WatchFormat::Json),
            pending(),
        )
        .await;
        let types: Vec<_> = seen
            .out
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].clone())
            .collect();
        assert_eq!(types, ["ModeChanged", "ContainerDied", "ContainerDied"]);
        assert_eq!(seen.err, "");
    }

    #[tokio::test(start_paused = true)]
    async fn count_counts_the_events_that_were_printed() {
        let mixed = stream::iter((0..100).map(|number| {
            Arc::new(if number % 2 == 0 {
                samples::started()
            } else {
                samples::died()
            })
        }));
        let mut config = config(WatchFormat::Json);
        config.count = Some(5);
        config.filter.kinds = vec![LifecycleKind::ContainerDied];
        let seen = seen(mixed, stream::iter([to_polling()]), &config, pending()).await;
        assert_eq!(seen.ending.unwrap(), Ending::Counted);
        assert_eq!(seen.out.matches("ContainerDied").count(), 5);
        assert_eq!(seen.out.matches("ContainerStarted").count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn for_ends_a_quiet_watch_and_a_busy_one() {
        let mut config = config(WatchFormat::Json);
        config.lasting = Some(Duration::from_secs(10));
        let begun = Instant::now();
        let quiet = seen(stream::pending(), stream::pending(), &config, pending()).await;
        assert_eq!(quiet.ending.unwrap(), Ending::Lasted);
        assert_eq!(
            Instant::now().duration_since(begun),
            Duration::from_secs(10)
        );

        let busy = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Some((Arc::new(samples::died()), ()))
        });
        let busy = seen(busy, stream::pending(), &config, pending()).await;
        assert_eq!(busy.ending.unwrap(), Ending::Lasted);
        assert_eq!(busy.out.lines().count(), 33);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_goes_away_ends_it_without_an_error() {
        let (out, reader) = tokio::io::duplex(64);
        drop(reader);
        let console = Console {
            out,
            err: tokio::io::sink(),
            out_colour: Colour::Never,
            err_colour: Colour::Never,
        };
        let ending = follow(
            deaths(3),
            stream::pending(),
            &config(WatchFormat::Json),
            console,
            pending(),
        )
        .await;
        assert_eq!(ending.unwrap(), Ending::ReaderGone);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_cannot_keep_a_signal_from_ending_it() {
        let (out, mut reader) = tokio::io::duplex(64);
        let console = Console {
            out,
            err: tokio::io::sink(),
            out_colour: Colour::Never,
            err_colour: Colour::Never,
        };
        let ending = follow(
            deaths(1000),
            stream::pending(),
            &config(WatchFormat::Json),
            console,
            tokio::time::sleep(Duration::from_secs(3)),
        )
        .await;
        assert_eq!(ending.unwrap(), Ending::Stopped);
        let mut first = [0; 64];
        reader.read_exact(&mut first).await.unwrap();
        assert!(first.starts_with(b"{\"type\":"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_disk_is_a_failure() {
        struct Full;
        impl AsyncWrite for Full {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                _: &[u8],
            ) -> std::task::Poll<io::Result<usize>> {
                std::task::Poll::Ready(Err(io::ErrorKind::StorageFull.into()))
            }
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }
            fn poll_shutdown(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }
        }
        let console = Console {
            out: Full,
            err: tokio::io::sink(),
            out_colour: Colour::Never,
            err_colour: Colour::Never,
        };
        let ending = follow(
            deaths(1),
            stream::pending(),
            &config(WatchFormat::Json),
            console,
            pending(),
        )
        .await;
        assert_eq!(ending.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
