//! What the command says when something is wrong: what failed, where, and what to do, in words that need
//! no manual. One test for each kind of thing that goes wrong, each by its whole wording.
#![cfg(all(feature = "cli", feature = "simulate"))]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use tempfile::TempDir;

/// A folder with everything in it that is not what somebody takes it for.
struct Place {
    dir: TempDir,
    _deaf: UnixListener,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("folder")).expect("a folder");
        fs::write(at("text"), "hello\nworld\n").expect("written");
        fs::write(at("odd.yaml"), "name: x\nwhat: y\n").expect("written");
        fs::write(at("broken.yaml"), "a: [\n").expect("written");
        drop(UnixListener::bind(at("deserted.sock")).expect("a socket"));
        let web = UnixListener::bind(at("web.sock")).expect("a socket");
        thread::spawn(move || {
            for mut connection in web.incoming().flatten() {
                // Whoever asks may be gone already.
                let _ = connection.read(&mut [0; 1024]);
                let _ =
                    connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let deaf = UnixListener::bind(at("deaf.sock")).expect("a socket");
        Self { dir, _deaf: deaf }
    }

    /// Words in which `@` stands for this place.
    fn with_paths(&self, words: &str) -> String {
        words.replace('@', &self.dir.path().display().to_string())
    }

    /// Runs the command; gives its exit code and what it said, with `@` for this place.
    fn said(&self, words: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleg"));
        self.outcome(command.env_clear(), words, variables)
    }

    fn outcome(
        &self,
        command: &mut Command,
        words: &str,
        variables: &[(&str, &str)],
    ) -> (Option<i32>, String) {
        let variables = variables
            .iter()
            .map(|(name, value)| (name, self.with_paths(value)));
        let words = self.with_paths(words);
        let output = command
            .args(words.split_whitespace())
            .envs(variables)
            .stdin(Stdio::null())
            .output()
            .expect("the binary starts");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(!said.contains("panicked"), "{words}: {said}");
        (
            output.status.code(),
            said.replace(&self.dir.path().display().to_string(), "@"),
        )
    }

    /// Holds what the command says against whole wordings, each with its exit code.
    fn says(&self, expected: &[(&str, i32, &str)]) {
        for (words, code, wording) in expected {
            let (ended, said) = self.said(words, &[]);
            assert_eq!(said, format!("pleg: {wording}\n"), "pleg {words}");
            assert_eq!(ended, Some(*code), "pleg {words}");
        }
    }
}

const RUNTIME_ADVICE: &str = "Is the runtime up? --runtime-endpoint or CONTAINER_RUNTIME_ENDPOINT names its \
                              socket; --simulate follows a simulated runtime instead.";

#[test]
fn what_is_no_runtime_is_named_with_what_it_is_instead() {
    let place = Place::new();
    for (name, why) in [
        ("none.sock", "no such file"),
        ("text/x.sock", "Not a directory"),
        ("folder", "is a file or a folder, no socket"),
        ("text", "is a file or a folder, no socket"),
        (
            "deserted.sock",
            "connection refused: the socket is there, but nobody listens",
        ),
        (
            "web.sock",
            "answers, but not as a runtime does: Version: the connection broke: ",
        ),
    ] {
        for command in ["pods", "watch", "record --out @/out.jsonl"] {
            let (code, said) = place.said(&format!("{command} -r unix://@/{name}"), &[]);
            let beginning = format!(
                "pleg: no container runtime answers; tried:\n  unix://@/{name} (from \
                 --runtime-endpoint): {why}"
            );
            assert!(said.starts_with(&beginning), "{command}: {said}");
            assert!(said.ends_with(&format!("\n{RUNTIME_ADVICE}\n")), "{said}");
            assert!(!said.contains("os error"), "{said}");
            assert_eq!(code, Some(1), "{command}: {said}");
        }
        let (code, _) = place.said(&format!("verify -r unix://@/{name}"), &[]);
        assert_eq!(code, Some(2), "an audit of nothing cannot tell");
    }
    assert!(!place.dir.path().join("out.jsonl").exists());
}

#[test]
fn a_runtime_that_takes_connections_and_says_nothing_is_waited_for_and_not_for_ever() {
    let place = Place::new();
    let (code, said) = place.said("pods -r unix://@/deaf.sock", &[]);
    assert_eq!(code, Some(1));
    let why = "accepts, but does not answer: Version: no answer within ";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_told_as_that() {
    let place = Place::new();
    let long = format!("/tmp/{}.sock", "x".repeat(120));
    let why = "a socket's path has at most 107 bytes";
    for (words, code) in [
        (format!("pods -r {long}"), 1),
        (format!("status --daemon {long}"), 2),
        (format!("simulate --listen {long}"), 1),
        (format!("run --simulate --grpc-listen {long}"), 2),
    ] {
        let (ended, said) = place.said(&words, &[]);
        assert!(said.contains(why), "{words}: {said}");
        assert_eq!(ended, Some(code), "{words}: {said}");
    }
}

#[test]
fn whoever_may_not_connect_is_told_so_and_not_that_nobody_is_there() {
    let place = Place::new();
    let closed = place.dir.path().join("web.sock");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o600)).expect("ours");
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    // Root may do anything, so it becomes somebody else, who must be able to reach the command.
    let binary = place.dir.path().join("pleg");
    // By another process: what another test starts meanwhile would hold our copy open for writing.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_pleg"))
        .arg(&binary)
        .status();
    assert!(copied.is_ok_and(|it| it.success()));
    let nobody = || {
        let mut command = Command::new(&binary);
        command.env_clear();
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        } else {
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("ours");
        }
        command
    };
    let (code, said) = place.outcome(&mut nobody(), "pods -r @/web.sock", &[]);
    let why = "unix://@/web.sock (from --runtime-endpoint): permission denied; try sudo\n";
    assert!(said.contains(why), "{said}");
    assert_eq!(code, Some(1));
    let (code, said) = place.outcome(&mut nobody(), "status --daemon @/web.sock", &[]);
    let why = "no daemon answers at unix://@/web.sock: permission denied; try sudo\n";
    assert!(said.contains(why), "{said}");
    assert_eq!(code, Some(2));
    let words = "run --simulate --http-listen off --grpc-listen @/closed/pleg.sock";
    fs::create_dir(place.dir.path().join("closed")).expect("a folder");
    let shut = fs::Permissions::from_mode(0o500);
    fs::set_permissions(place.dir.path().join("closed"), shut).expect("ours");
    let (code, said) = place.outcome(&mut nobody(), words, &[]);
    assert!(
        said.contains("Permission denied\nThe usual socket is root's: try sudo"),
        "{said}"
    );
    assert_eq!(code, Some(1));
    // Told before the watch and not after it.
    let words = "watch --simulate --dump-last @/closed/last.jsonl";
    let (code, said) = place.outcome(&mut nobody(), words, &[]);
    assert_eq!(
        said,
        "pleg: cannot write @/closed/last.jsonl: Permission denied\n"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn what_is_no_daemon_is_named_with_what_it_is_instead() {
    let place = Place::new();
    let advice = "pleg run starts one; --daemon or PLEG_DAEMON names another socket; pleg pods --direct asks \
                  the runtime itself";
    for (name, why) in [
        ("none.sock", "no such file"),
        ("folder", "is a file or a folder, no socket"),
        ("text", "is a file or a folder, no socket"),
        (
            "deserted.sock",
            "connection refused: the socket is there, but nobody listens",
        ),
    ] {
        let expected = format!("pleg: no daemon answers at unix://@/{name}: {why}\n{advice}\n");
        for (words, code) in [
            ("status", 2),
            ("pods", 1),
            ("watch", 1),
            ("record --last 1m --out @/out.jsonl", 1),
        ] {
            let (ended, said) = place.said(&format!("{words} --daemon @/{name}"), &[]);
            assert_eq!(said, expected, "{words}");
            assert_eq!(ended, Some(code), "{words}: {said}");
        }
        let (_, said) = place.said("status", &[("PLEG_DAEMON", &format!("@/{name}"))]);
        assert_eq!(said, expected);
    }
    for words in ["status", "pods", "record --last 1m --out @/out.jsonl"] {
        let (_, said) = place.said(&format!("{words} --daemon @/web.sock"), &[]);
        assert!(said.starts_with("pleg: cannot "), "{said}");
        assert!(said.contains(" at unix://@/web.sock: "), "{said}");
        assert!(
            said.ends_with("); is it the socket of a `pleg run` that runs?\n"),
            "{said}"
        );
    }
}

#[test]
fn variables_that_mean_nothing_are_usage_errors_that_name_the_variable() {
    let place = Place::new();
    for (words, name, value, wording) in [
        (
            "pods --simulate",
            "PLEG_LOG",
            "loud",
            "PLEG_LOG: the levels are off, error, warn, info, debug and trace; a filter looks like \
             pleg=debug,h2=info",
        ),
        (
            "status",
            "PLEG_DAEMON",
            "tcp://1.2.3.4:5",
            "PLEG_DAEMON: \"tcp://1.2.3.4:5\" is no endpoint: only unix sockets are spoken to; accepted are \
             unix:///run/containerd/containerd.sock, unix:/run/containerd/containerd.sock and \
             /run/containerd/containerd.sock",
        ),
        (
            "run --simulate",
            "PLEG_RELIST_PERIOD",
            "soon",
            "PLEG_RELIST_PERIOD: \"soon\" is no time; write 1s, 500ms, 5m or 1h30m",
        ),
    ] {
        let (code, said) = place.said(words, &[(name, value)]);
        assert_eq!(said, format!("pleg: {wording}\n"));
        assert_eq!(code, Some(2), "{said}");
    }
    let (code, said) = place.said("pods", &[("CONTAINER_RUNTIME_ENDPOINT", "tcp://1.2.3.4:5")]);
    let why = "tcp://1.2.3.4:5 (from CONTAINER_RUNTIME_ENDPOINT): only unix sockets are spoken to; write \
               it as unix:///run/containerd/containerd.sock";
    assert!(said.contains(why), "{said}");
    assert_eq!(code, Some(1));
}

#[test]
fn files_that_cannot_be_read_are_named_with_whose_they_are() {
    Place::new().says(&[
        (
            "pods -c @/none.yaml",
            1,
            "cannot read crictl's file @/none.yaml: No such file or directory",
        ),
        (
            "pods -c @/folder",
            1,
            "cannot read crictl's file @/folder: Is a directory",
        ),
        ("pods -c @/broken.yaml", 1, "@/broken.yaml:1:4: unclosed bracket '['"),
        (
            "run --settings-file @/none.yaml",
            2,
            "cannot read the settings in @/none.yaml: No such file or directory",
        ),
        (
            "run --settings-file @/broken.yaml",
            2,
            "@/broken.yaml:1: unclosed bracket '['",
        ),
        (
            "replay --expect-same-as @/none @/odd.yaml",
            1,
            "cannot read @/none: No such file or directory",
        ),
        (
            "replay --expect-same-as @/text @/odd.yaml",
            1,
            "@/text is neither a trace nor what `pleg watch -o json` prints: line 1: expected value at \
             line 1 column 1",
        ),
        (
            "replay @/folder",
            1,
            "there are no scenarios (*.yaml) and no recordings (*.jsonl, *.jsonl.zst) in @/folder",
        ),
        (
            "simulate --listen @/s.sock --scenario @/odd.yaml",
            1,
            "@/odd.yaml: line 2, column 1: unknown field `what`, expected one of version, name, story, covers, \
             settings, runtime, initial, plegStartsAt, steps",
        ),
    ]);
}

#[test]
fn files_that_cannot_be_written_are_found_before_the_work_is_done() {
    Place::new().says(&[
        (
            "record --simulate --out @/none/x",
            1,
            "cannot write @/none/x: there is no folder @/none; make it first",
        ),
        (
            "record --simulate --out @/folder",
            1,
            "cannot write @/folder: it is a folder; name a file in it",
        ),
        (
            "watch --simulate --dump-last @/folder",
            1,
            "cannot write @/folder: it is a folder; name a file in it",
        ),
        (
            "replay @/odd.yaml --report @/none/x",
            1,
            "cannot write the report to @/none/x: No such file or directory",
        ),
        (
            "record --simulate --for 2s --out /dev/full",
            1,
            "cannot write /dev/full; what it has so far can be replayed: No space left on device",
        ),
    ]);
}

#[test]
fn what_cannot_be_replayed_is_told_with_its_place_and_what_it_was_taken_for() {
    let place = Place::new();
    for (name, wording) in [
        (
            "none.yaml",
            "@/none.yaml: cannot read it: No such file or directory",
        ),
        (
            "text",
            "taken for a recording, since a scenario's name ends in .yaml (pleg record makes one): \
             @/text:1:1: expected a recording's header",
        ),
        (
            "odd.yaml",
            "@/odd.yaml: line 2, column 1: unknown field `what`, expected one of ",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_pleg"))
            .env_clear()
            .args(["replay", &place.with_paths(&format!("@/{name}"))])
            .output()
            .expect("the binary starts");
        let told = String::from_utf8(output.stdout).expect("UTF-8");
        let told = told.replace(&place.with_paths("@"), "@");
        assert!(
            told.starts_with(&format!("error  @/{name}\n  {wording}")),
            "{told}"
        );
        assert_eq!(output.stderr, b"pleg: 1 of 1 replays failed\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_socket_that_cannot_be_served_is_told_with_what_stands_in_its_way() {
    let place = Place::new();
    place.says(&[
        (
            "simulate --listen @/text",
            1,
            "cannot listen on unix://@/text: a file or a folder is there; name a socket: Address \
             already in use",
        ),
        (
            "simulate --listen @/web.sock",
            1,
            "cannot listen on unix://@/web.sock: something listens there; name another socket: Address \
             already in use",
        ),
        (
            "simulate --listen @/none/x.sock",
            1,
            "cannot listen on unix://@/none/x.sock: its folder does not exist; create it: No such file or \
             directory",
        ),
        (
            "run --simulate --http-listen off --grpc-listen @/text",
            1,
            "@/text exists and is no socket; move it away, or listen elsewhere\n\
             --grpc-listen names another socket; off serves none.",
        ),
        (
            "run --simulate --http-listen off --grpc-listen @/web.sock",
            1,
            "another process serves @/web.sock; stop it, or listen elsewhere\n\
             --grpc-listen names another socket; off serves none.",
        ),
        (
            "run --simulate --http-listen off --grpc-listen @/no/such/x.sock",
            1,
            "cannot make the folder @/no/such: No such file or directory\n\
             --grpc-listen names another socket; off serves none.",
        ),
        (
            "run --grpc-listen off --http-listen off",
            2,
            "--http-listen: with grpcListen off as well nobody could read anything; leave one of them on",
        ),
        (
            "run --http-listen localhost:1",
            2,
            "--http-listen: \"localhost:1\": must be an address and a port, like 127.0.0.1:9641 or \
             [::1]:9641, or off",
        ),
    ]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let words = format!("run --simulate --grpc-listen off --http-listen {address}");
    let (code, said) = place.said(&words, &[]);
    assert_eq!(
        said,
        format!(
            "pleg: cannot serve HTTP on {address}: Address already in use\nAnother pleg run? --http-listen \
             names another address, port 0 takes a free one, off serves none.\n"
        )
    );
    assert_eq!(code, Some(1));
}

#[test]
fn words_that_mean_nothing_are_refused_with_what_may_be_written() {
    let place = Place::new();
    for (words, wording) in [
        ("wach", "a similar subcommand exists: 'watch'"),
        (
            "pods --namespce x",
            "a similar argument exists: '--namespace'",
        ),
        ("--simulate watch", "'watch --simulate' exists"),
        (
            "replay --simulate x",
            "unexpected argument '--simulate' found",
        ),
        ("watch --for 10", "time unit needed, for example 10sec"),
        (
            "watch --type Changed",
            "the types are Started, Died, Removed and PodSync",
        ),
        ("watch --count 0", "must be a whole number of at least 1"),
        ("pods --max-message-size 1", "must be from 64KiB to 1GiB"),
        (
            "pods -r tcp://1.2.3.4:5",
            "accepted are unix:///run/containerd/containerd.sock",
        ),
        (
            "pods --simulate -r /x.sock",
            "'--simulate' cannot be used with '--runtime-endpoint",
        ),
        ("record", "--out <FILE>"),
        ("simulate", "--listen <SOCKET>"),
    ] {
        let (code, said) = place.said(words, &[]);
        assert_eq!(code, Some(2), "{words}: {said}");
        assert!(said.contains(wording), "{words}: {said}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_a_failure_and_a_closed_pipe_is_none() {
    for words in [
        "pods --simulate",
        "watch --simulate --count 3",
        "replay --random 1",
    ] {
        let run = |out: PathBuf| {
            let out = fs::OpenOptions::new()
                .write(true)
                .open(out)
                .expect("opened");
            let mut command = Command::new(env!("CARGO_BIN_EXE_pleg"));
            let command = command.env_clear().args(words.split_whitespace());
            command.stdout(out).output().expect("the binary starts")
        };
        let full = run("/dev/full".into());
        let said = String::from_utf8_lossy(&full.stderr);
        let wording = "pleg: cannot write to standard output: No space left on device\n";
        assert!(said.ends_with(wording), "{words}: {said}");
        assert_eq!(full.status.code(), Some(1), "{words}");

        let mut child = Command::new(env!("CARGO_BIN_EXE_pleg"))
            .env_clear()
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{words}: {output:?}");
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("cannot"),
            "{output:?}"
        );
    }
}
