//! The command on a terminal of 80 columns, as a person sees it, and in a pipe: `script` gives it a
//! terminal of its own.
#![cfg(all(feature = "cli", feature = "simulate"))]

use std::process::{Command, Stdio};

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
        .expect("script starts");
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
    for words in [
        "watch --simulate --for 2s",
        "watch --simulate --for 1s --no-events",
        "pods --simulate",
        "verify --simulate --for 2s",
        "replay tests/report/busy-node.yaml",
        "simulate --listen unix:///tmp/pleg-terminal.sock --for 1s",
    ] {
        let text = shown(80, words, &[]);
        assert!(
            text.lines().count() > 1 || words.starts_with("replay"),
            "{words}: {text}"
        );
        fits(80, &text);
    }
    for words in ["watch --simulate --for 1s", "pods --simulate"] {
        fits(100, &shown(100, words, &[]));
        fits(160, &shown(160, words, &[]));
    }
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
        shown(200, "watch --simulate --count 2", &[]),
        shown(80, "watch --simulate --count 2 -o wide", &[]),
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
