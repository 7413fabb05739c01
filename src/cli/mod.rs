//! The `pleg` command: what was typed, what it means, and one file for each subcommand.
//!
//! Exit codes: 0 for success, which a reader that goes away and a signal that ends a watch are too (a
//! terminal that is closed included);
//! 1 for a failure; 2 for a usage error. `status` and `verify` judge: their 1 is a verdict, and
//! whatever keeps them from one is 2. Results go to stdout, everything said beside them to stderr.

mod args;
mod attach;
mod config;
mod daemon;
mod discover;
mod follow;
mod output;
mod pods;
mod record;
mod replay;
mod run;
mod signals;
#[cfg(feature = "simulate")]
mod simulate;
mod status;
mod stdout;
mod unreachable;
mod verify;
mod watch;

use std::fmt::Debug;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use args::{Args, CommandArgs};
use config::{Command, Config, ConfigError};
use discover::{DEFAULT_CONFIG, Surroundings, USUAL_SOCKETS};
use output::style::{self, Colour};
use output::text;
use run::{LogFormat, RunConfig};

/// Reads an environment variable.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Does what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout and is success, a usage error to stderr. If nobody reads either,
            // there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let variable =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let judges = matches!(
        args.command,
        CommandArgs::Verify(_) | CommandArgs::Status(_)
    );
    run(args, &variable).unwrap_or_else(|error| {
        complain(&error);
        // Settings that make no sense are a usage error, wherever they were written.
        let is_usage = matches!(
            error.downcast_ref(),
            Some(ConfigError::Settings(_) | ConfigError::Variable { .. })
        );
        ExitCode::from(if judges || is_usage { 2 } else { 1 })
    })
}

/// All that can be typed, for completions and manual pages: with the flags that the help leaves out
/// because it must fit a screen.
#[must_use]
pub fn command() -> clap::Command {
    let mut command = Args::command();
    for subcommand in command.get_subcommands_mut() {
        *subcommand = std::mem::take(subcommand).mut_args(|arg| arg.hide(false));
    }
    command
}

fn run(args: Args, variable: Variable<'_>) -> anyhow::Result<ExitCode> {
    let config = Config::from_args(
        args,
        &Surroundings {
            variable,
            default_config: Path::new(DEFAULT_CONFIG),
            usual_sockets: &USUAL_SOCKETS,
        },
    )?;
    if let Command::Run(RunConfig {
        print: Some(printed),
        ..
    }) = &config.command
    {
        match std::io::stdout().write_all(printed.as_bytes()) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.context("cannot print the settings")?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Replay(replay) = &config.command {
        // What the generator would log is in the trace, with its virtual time.
        return replay::run(replay, variable).map(|()| ExitCode::SUCCESS);
    }
    log_to_stderr(&config, variable);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    let result = runtime.block_on(async {
        let stop = signals::asked_to_stop().context("cannot listen for signals")?;
        let runtime = &config.runtime;
        match config.command {
            Command::Watch(watch) => watch::run(runtime, &watch, variable, stop).await?,
            Command::Record(record) => record::run(runtime, &record, stop).await?,
            Command::RecordLast(record) => record::fetch(&record, stop).await?,
            Command::Pods(pods) => pods::run(runtime, &pods, variable, stop).await?,
            Command::Run(run) => run::run(runtime, run, stop).await?,
            Command::Verify(verify) => return verify::run(runtime, &verify, variable, stop).await,
            Command::Status(status) => return status::run(&status, variable, stop).await,
            // Played above: virtual time wants event loops of its own.
            Command::Replay(_) => {}
            #[cfg(feature = "simulate")]
            Command::Simulate(simulate) => simulate::run(&simulate, stop).await?,
        }
        Ok(ExitCode::SUCCESS)
    });
    // A write that nobody reads may hang in a thread of its own; it must not keep the process.
    runtime.shutdown_background();
    result
}

fn log_to_stderr(config: &Config, variable: Variable<'_>) {
    let colour = Colour::suiting(&std::io::stderr(), variable);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colour == Colour::Ansi && config.log_format == LogFormat::Text)
        .log_internal_errors(false);
    let wanted = tracing_subscriber::registry().with(config.log.filter());
    // Fails only if something in this process logs already.
    let _ = match config.log_format {
        LogFormat::Text => wanted.with(lines.fmt_fields(harmless_fields())).try_init(),
        LogFormat::Json => wanted.with(lines.json().flatten_event(true)).try_init(),
    };
}

/// The fields of a log line, each on that line: a runtime's words could else move the cursor, or look like
/// lines of ours.
fn harmless_fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(
        |writer: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
            let value = text::line(&format!("{value:?}"));
            if field.name() == "message" {
                write!(writer, "{value}")
            } else {
                write!(writer, "{field}={value}")
            }
        },
    )
    .delimited(" ")
}

/// Says why something could not be done, without the numbers of the system's errors, whose words stand
/// before them.
fn complain(error: &anyhow::Error) {
    say(&without_numbers(format!("pleg: {error:#}")));
}

fn without_numbers(mut words: String) -> String {
    while let Some(begin) = words.find(" (os error ") {
        let Some(length) = words.get(begin..).and_then(|rest| rest.find(')')) else {
            break;
        };
        words.replace_range(begin..=begin + length, "");
    }
    words
}

/// Says something beside the results. Text of a runtime may be in it, so it is made harmless.
fn say(message: &str) {
    // If stderr cannot be written there is nowhere left to complain.
    let width = style::width(&std::io::stderr());
    let _ = writeln!(
        std::io::stderr(),
        "{}",
        text::wrapped(&text::message(message), 2, width)
    );
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_runtimes_words_stay_within_their_line_of_the_log() {
        let page = Page::default();
        let written = page.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || written.clone())
            .with_ansi(false)
            .fmt_fields(harmless_fields());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let err = "red \u{1b}[31m\n2026-11-30T12:00:00Z  INFO pleg: all is well";
            tracing::warn!(%err, times = 1, "Call failed");
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let ending = "Call failed err=red \\u{1b}[31m\\u{a}2026-11-30T12:00:00Z  INFO pleg: all is well times=1\n";
        assert!(text.ends_with(ending), "{text}");
    }
}
