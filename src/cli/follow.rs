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
use super::output::event::{self, Columns};
use super::output::mode;
use super::output::style::Screen;
use super::output::text::shown;
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

/// What is followed.
#[derive(Clone, Debug)]
pub(crate) enum Followed {
    /// Something happened, or is there already.
    Event(Arc<LifecycleEvent>),
    /// The mode changed.
    ModeChanged(ModeChange),
    /// A snapshot follows, because what came in between cannot be told exactly.
    ListAgain(String),
    /// Something to be said beside it.
    Aside(String),
}

/// Where lines go.
pub(crate) struct Console<O, E> {
    /// Events, and in JSON the changes of mode.
    pub(crate) out: O,
    /// In a table the changes of mode.
    pub(crate) err: E,
    /// What `out` is shown on.
    pub(crate) out_screen: Screen,
    /// What `err` is shown on.
    pub(crate) err_screen: Screen,
}

/// Prints until something ends it. Whatever is ready is written and flushed at once.
///
/// # Errors
///
/// The output cannot be written, for another reason than that its reader has gone.
pub(crate) async fn follow(
    followed: impl Stream<Item = Followed>,
    config: &WatchConfig,
    console: Console<impl AsyncWrite + Unpin, impl AsyncWrite + Unpin>,
    stop: impl Future<Output = ()>,
) -> io::Result<Ending> {
    let Console {
        mut out,
        mut err,
        out_screen,
        err_screen,
    } = console;
    let columns = match (config.format, out_screen.width) {
        (WatchFormat::Table, Some(width)) => Some(Columns::fitting(width)),
        (WatchFormat::Table, None) | (WatchFormat::Wide, _) => Some(Columns::all()),
        (WatchFormat::Json, _) => None,
    };
    let deadline = async {
        match config.lasting {
            Some(lasting) => tokio::time::sleep(lasting).await,
            None => pending().await,
        }
    };
    let followed = followed.ready_chunks(BATCH).fuse();
    pin!(stop, deadline, followed);

    let mut left = config.count.unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut aside = String::new();
    if let Some(columns) = &columns {
        columns.push_header(&mut text);
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
            batch = followed.next() => {
                let Some(batch) = batch else { return Ok(Ending::FeedEnded) };
                for item in &batch {
                    match item {
                        Followed::Event(event) if config.filter.wants(event) => {
                            if left == 0 {
                                break;
                            }
                            left -= 1;
                            match &columns {
                                Some(columns) => {
                                    columns.push_event(&mut text, event, out_screen.colour);
                                }
                                None => event::push_event_json(&mut text, event)?,
                            }
                        }
                        Followed::Event(_) => {}
                        Followed::ModeChanged(change) => match columns {
                            Some(_) => aside.push_str(&mode::line(change, err_screen)),
                            None => text.push_str(&mode::json_line(change)?),
                        },
                        Followed::ListAgain(why) => match columns {
                            Some(_) => push_aside(&mut aside, why),
                            None => event::push_list_again(&mut text, why)?,
                        },
                        Followed::Aside(what) => push_aside(&mut aside, what),
                    }
                }
            }
        }
    }
}

fn push_aside(aside: &mut String, what: &str) {
    *aside += "pleg: ";
    *aside += &shown(what);
    aside.push('\n');
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
    use super::super::output::style::Colour;
    use super::*;
    use crate::cli::args::Begin;
    use crate::cli::config::EventFilter;
    use crate::engine::{Mode, PollingReason};
    use crate::lifecycle::{LifecycleKind, UnixNanos};
    use futures::stream;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    const PIPE: Screen = Screen {
        colour: Colour::Never,
        width: None,
    };

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
            daemon: crate::cli::daemon::DaemonChoice::Direct,
        }
    }

    fn died() -> Followed {
        Followed::Event(Arc::new(samples::died()))
    }

    fn deaths(number: usize) -> impl Stream<Item = Followed> {
        stream::iter((0..number).map(|_| died()))
    }

    fn to_polling() -> impl Stream<Item = Followed> {
        stream::iter([Followed::ModeChanged(ModeChange {
            from: Mode::Connecting,
            to: Mode::Polling {
                reason: PollingReason::Unsupported,
            },
            cause: "no such method".into(),
            at: UnixNanos(samples::NOON),
        })])
    }

    /// What was printed and how it ended.
    struct Seen {
        ending: io::Result<Ending>,
        out: String,
        err: String,
    }

    async fn seen(
        followed: impl Stream<Item = Followed>,
        config: &WatchConfig,
        stop: impl Future<Output = ()>,
    ) -> Seen {
        let mut out = Vec::new();
        let mut err = Vec::new();
        let console = Console {
            out: &mut out,
            err: &mut err,
            out_screen: PIPE,
            err_screen: PIPE,
        };
        let ending = follow(followed, config, console, stop).await;
        Seen {
            ending,
            out: String::from_utf8(out).unwrap(),
            err: String::from_utf8(err).unwrap(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_has_one_header_and_changes_of_mode_stand_aside() {
        let seen = seen(
            to_polling().chain(deaths(300)),
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
            to_polling().chain(deaths(2)),
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
    async fn a_gap_is_told_where_it_is() {
        let again = || stream::iter([Followed::ListAgain("the daemon \u{1b} restarted".into())]);
        let told = || deaths(1).chain(again()).chain(deaths(1));
        let json = seen(told(), &config(WatchFormat::Json), pending()).await;
        let types: Vec<_> = json
            .out
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].clone())
            .collect();
        assert_eq!(types, ["ContainerDied", "ListAgain", "ContainerDied"]);
        let table = seen(told(), &config(WatchFormat::Table), pending()).await;
        assert_eq!(table.out.lines().count(), 3);
        assert_eq!(table.err, "pleg: the daemon \\u{1b} restarted\n");
    }

    #[tokio::test(start_paused = true)]
    async fn count_counts_the_events_that_were_printed() {
        let mixed = stream::iter((0..100).map(|number| {
            Followed::Event(Arc::new(if number % 2 == 0 {
                samples::started()
            } else {
                samples::died()
            }))
        }));
        let mut config = config(WatchFormat::Json);
        config.count = Some(5);
        config.filter.kinds = vec![LifecycleKind::ContainerDied];
        let seen = seen(to_polling().chain(mixed), &config, pending()).await;
        assert_eq!(seen.ending.unwrap(), Ending::Counted);
        assert_eq!(seen.out.matches("ContainerDied").count(), 5);
        assert_eq!(seen.out.matches("ContainerStarted").count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn for_ends_a_quiet_watch_and_a_busy_one() {
        let mut config = config(WatchFormat::Json);
        config.lasting = Some(Duration::from_secs(10));
        let begun = Instant::now();
        let quiet = seen(stream::pending(), &config, pending()).await;
        assert_eq!(quiet.ending.unwrap(), Ending::Lasted);
        assert_eq!(
            Instant::now().duration_since(begun),
            Duration::from_secs(10)
        );

        let busy = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Some((died(), ()))
        });
        let busy = seen(busy, &config, pending()).await;
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
            out_screen: PIPE,
            err_screen: PIPE,
        };
        let ending = follow(deaths(3), &config(WatchFormat::Json), console, pending()).await;
        assert_eq!(ending.unwrap(), Ending::ReaderGone);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_cannot_keep_a_signal_from_ending_it() {
        let (out, mut reader) = tokio::io::duplex(64);
        let console = Console {
            out,
            err: tokio::io::sink(),
            out_screen: PIPE,
            err_screen: PIPE,
        };
        let ending = follow(
            deaths(1000),
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
            out_screen: PIPE,
            err_screen: PIPE,
        };
        let ending = follow(deaths(1), &config(WatchFormat::Json), console, pending()).await;
        assert_eq!(ending.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
