//! The command on a terminal of 80 columns, as a person sees it, and in a pipe: `script` gives it a
//! terminal of its own.
#![cfg(all(feature = "cli", feature = "simulate"))]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What the command shows on a terminal of so many columns, without the terminal's carriage returns.
fn shown(columns: usize, words: &str, variables: &[(&str, &str)]) -> String {
    let pleg = env!("CARGO_BIN_EXE_pleg");
    let typed = format!("stty cols {columns} && {pleg} {words}");
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &typed, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("`script`, of util-linux, starts");
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .replace('\r', "")
}

fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, code)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = code.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn fits(columns: usize, text: &str) {
    for line in without_colours(text).lines() {
        assert!(
            line.chars().count() <= columns,
            "{} characters: {line}",
            line.chars().count()
        );
    }
}

#[test]
fn everything_fits_80_columns() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let simulate = format!(
        "simulate --listen unix://{}/cri.sock --for 1s",
        folder.path().display()
    );
    for (words, lines) in [
        ("watch --simulate --for 2s", 10),
        ("watch --simulate --for 1s --no-events", 10),
        ("pods --simulate", 10),
        ("verify --simulate --for 2s", 10),
        ("replay tests/report/busy-node.yaml", 1),
        (&simulate, 4),
        // What goes wrong is told within the width too.
        ("pods -r /nowhere.sock || true", 4),
    ] {
        let text = shown(80, words, &[]);
        assert!(text.lines().count() >= lines, "{words}: {text}");
        fits(80, &text);
    }
    for words in ["watch --simulate --for 1s", "pods --simulate"] {
        fits(100, &shown(100, words, &[]));
        fits(160, &shown(160, words, &[]));
    }
}

/// A daemon on the simulated runtime, ended when this is dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It fails only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_daemon_tells_fits_80_columns_and_is_green_if_it_is_well() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let socket = format!("{}/pleg.sock", folder.path().display());
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_pleg"))
        .args([
            "run",
            "--simulate",
            "--http-listen",
            "off",
            "--grpc-listen",
            &socket,
        ])
        .env_clear()
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let log = BufReader::new(daemon.stderr.take().expect("a pipe"));
    let daemon = Daemon(daemon);
    // The mode changes once a relist has begun after the stream stood, and that one has ended.
    let mut lines = log.lines().map(|line| line.expect("UTF-8"));
    assert!(lines.any(|line| line.contains("to=Evented")));
    let status = shown(80, &format!("status --daemon {socket}"), &[]);
    assert!(
        status.starts_with("Events, audited every 1 s"),
        "{status:?}"
    );
    assert!(
        status.contains("\nHealth      \u{1b}[32mok\u{1b}[0m\n"),
        "{status:?}"
    );
    fits(80, &status);
    let watch = shown(80, &format!("watch --daemon {socket} --for 3s"), &[]);
    assert!(watch.contains("Started  "), "{watch}");
    fits(80, &watch);
    drop(daemon);
}

#[test]
fn a_wide_terminal_shows_more_and_wide_shows_all_on_any() {
    let narrow = shown(80, "watch --simulate --count 2", &[]);
    assert!(
        narrow.starts_with("TIME (UTC)    EVENT    NAMESPACE/POD "),
        "{narrow}"
    );
    assert!(!narrow.contains("SOURCE"), "{narrow}");
    for text in [
        shown(200, "watch --simulate --count 2 --type Started", &[]),
        shown(80, "watch --simulate --count 2 --type Started -o wide", &[]),
    ] {
        assert!(
            text.contains("TIME                      EVENT             NAMESPACE/POD"),
            "{text}"
        );
        assert!(
            text.contains("SOURCE") && text.contains("ContainerStarted"),
            "{text}"
        );
    }
    let pods = shown(80, "pods --simulate -o wide", &[]);
    assert!(pods.contains("SANDBOX ID"), "{pods}");
    let folded = shown(60, "pods --simulate", &[]);
    assert!(
        folded.contains("\n  etcd#0 "),
        "containers stand under their pods: {folded}"
    );
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let words = "watch --simulate --for 2s --direct";
    let coloured = shown(80, words, &[]);
    assert!(coloured.contains("\u{1b}[31mDied\u{1b}[0m"), "{coloured:?}");
    for variables in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        let plain = shown(80, words, &variables);
        assert!(
            plain.contains("Died") && !plain.contains('\u{1b}'),
            "{plain:?}"
        );
    }
    let verdict = shown(80, "verify --simulate --for 5s", &[]);
    assert!(verdict.contains("\u{1b}[32mPASSED"), "{verdict:?}");
}

#[test]
fn a_pipe_has_every_column_and_no_colour() {
    let output = Command::new(env!("CARGO_BIN_EXE_pleg"))
        .args(["watch", "--simulate", "--count", "2"])
        .env_clear()
        .env("TERM", "xterm")
        .output()
        .expect("the binary starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.starts_with("TIME                      EVENT             NAMESPACE/POD"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
}
