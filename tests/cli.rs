//! The `pleg` command as a user meets it: its words, its exit codes, its output.
//!
//! Everything here runs the binary against the simulated runtime or against none. The clock is the
//! real one, but nothing is slept through: each test waits for output or for an end.
#![cfg(all(feature = "cli", feature = "simulate"))]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pleg::simulate::{Character, Rpc, SimulatedRuntime, UnixServer};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than any of this takes, shorter than anybody's patience.
const PATIENCE: Duration = Duration::from_secs(30);

/// The command with an environment of its own, so that no machine's settings reach it.
fn pleg(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleg"));
    command.env_clear().args(words.split_whitespace());
    command
}

fn output(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Each line of the output as an object.
fn objects(bytes: &[u8]) -> Vec<Value> {
    text(bytes)
        .lines()
        .map(|line| {
            let value: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(value.is_object(), "{line}");
            value
        })
        .collect()
}

fn is_event(object: &Value) -> bool {
    object["type"] != "ModeChanged"
}

/// Waits for an end that must come by itself, and gives its exit code.
#[expect(
    clippy::disallowed_methods,
    reason = "a test that hangs must end on the real clock"
)]
fn ends(mut child: Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waiting works") {
            return status.code();
        }
        if Instant::now().duration_since(begun) > PATIENCE {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
            panic!("it did not end by itself");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status()
        .expect("sh starts");
    assert!(status.success());
}

#[test]
fn settings_that_nobody_reads_are_no_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = pleg("run --print-config")
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(Child::wait_with_output)
        .expect("it ran");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_watch_of_the_simulation_tells_lives_as_objects_and_ends_in_time() {
    let output = output(&mut pleg("watch --simulate --for 2s -o json"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let objects = objects(&output.stdout);
    let events: Vec<_> = objects.iter().filter(|object| is_event(object)).collect();
    assert!(events.len() >= 4, "{}", text(&output.stdout));
    let mut newest = 0;
    for event in &events {
        let kind = event["type"].as_str().expect("a type");
        assert!(
            [
                "ContainerStarted",
                "ContainerDied",
                "ContainerRemoved",
                "PodSync"
            ]
            .contains(&kind),
            "{event}"
        );
        let revision = event["revision"].as_u64().expect("a revision");
        assert!(revision >= newest, "revisions never go back: {event}");
        newest = revision;
        assert!(event["pod"]["uid"].is_string(), "{event}");
        let seen_at = event["seenAt"].as_str().expect("a stamp");
        assert!(seen_at.ends_with('Z'), "{event}");
        if kind == "ContainerDied" && event["container"].is_object() {
            assert!(event["exitCode"].is_i64(), "{event}");
        }
    }
}

#[test]
fn a_change_of_mode_is_an_object_among_the_events() {
    let output = output(&mut pleg("watch --simulate --for 2s -o json"));
    let objects = objects(&output.stdout);
    let change = objects
        .iter()
        .find(|object| !is_event(object))
        .unwrap_or_else(|| panic!("no change of mode: {objects:?}"));
    assert_eq!(change["from"], "Connecting");
    assert_eq!(change["to"], "Evented");
    assert_eq!(change["auditPeriod"], "1s");
    assert!(change["cause"].is_string() && change["at"].is_string());
}

#[test]
fn without_events_everything_is_told_by_reads() {
    for words in ["--no-events", "--feature-gates EventedPLEG=false"] {
        let output = output(&mut pleg(&format!(
            "watch --simulate --for 2s -o json {words}"
        )));
        let objects = objects(&output.stdout);
        assert!(!objects.is_empty(), "{words}");
        for event in objects {
            let source = &event["source"];
            assert!(source == "relist" || source == "inspect", "{event}");
        }
    }
}

#[test]
fn from_now_leaves_out_what_is_there_already() {
    let output = output(&mut pleg("watch --simulate --count 3 -o json --from now"));
    let objects = objects(&output.stdout);
    let events: Vec<_> = objects.iter().filter(|object| is_event(object)).collect();
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|event| event["initial"] == false));
}

#[test]
fn count_ends_a_watch_after_so_many_events() {
    let output = output(&mut pleg(
        "watch --simulate --count 3 -o json --type Started",
    ));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let events: Vec<_> = objects(&output.stdout)
        .into_iter()
        .filter(is_event)
        .collect();
    assert_eq!(events.len(), 3);
    assert!(
        events
            .iter()
            .all(|event| event["type"] == "ContainerStarted")
    );
}

#[test]
fn a_table_is_plain_in_a_pipe_with_one_header_and_modes_on_stderr() {
    for variables in [
        [("TERM", "xterm"), ("A", "1")],
        [("TERM", "xterm"), ("NO_COLOR", "1")],
    ] {
        let words = "watch --simulate --count 2 --type Started";
        let output = output(pleg(words).envs(variables));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let table = text(&output.stdout);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[0].starts_with("TIME "), "{table}");
        assert!(lines[1].contains("ContainerStarted"), "{table}");
        assert!(!table.contains('\u{1b}'), "{table}");
        assert!(!text(&output.stderr).contains('\u{1b}'), "{output:?}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_success() {
    let mut child = pleg("watch --simulate -o json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    lines.read_line(&mut first).expect("a first line");
    assert!(first.starts_with('{'), "{first}");
    drop(lines);
    let mut complaint = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    assert_eq!(ends(child), Some(0));
    stderr.read_to_string(&mut complaint).expect("UTF-8");
    assert_eq!(complaint, "");
}

#[test]
fn a_signal_ends_a_watch_with_success() {
    for name in ["INT", "TERM"] {
        let mut child = pleg("watch --simulate -o json")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        lines.read_line(&mut String::new()).expect("a first line");
        signal(&child, name);
        assert_eq!(ends(child), Some(0), "SIG{name}");
    }
}

#[test]
fn pods_prints_the_simulated_nodes_pods_in_every_format() {
    let json = output(&mut pleg("pods --simulate --seed 7 -o json"));
    assert_eq!(json.status.code(), Some(0), "{json:?}");
    let list: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let pods = list["items"].as_array().expect("items");
    assert!(!pods.is_empty());
    for pod in pods {
        assert!(pod["uid"].is_string(), "{pod}");
        assert!(
            !pod["sandboxes"].as_array().expect("a list").is_empty(),
            "{pod}"
        );
    }

    let yaml = output(&mut pleg("pods --simulate --seed 7 -o yaml"));
    assert!(text(&yaml.stdout).starts_with("items:"), "{yaml:?}");

    let table = output(&mut pleg("pods --simulate --seed 7"));
    assert!(
        text(&table.stdout).starts_with("NAMESPACE/POD "),
        "{table:?}"
    );
    assert!(
        text(&table.stdout).lines().count() > pods.len(),
        "{table:?}"
    );
}

/// A simulated runtime behind a real socket, served until it is dropped.
struct Node {
    dir: TempDir,
    runtime: SimulatedRuntime,
    _server: UnixServer,
    _tokio: tokio::runtime::Runtime,
}

impl Node {
    fn running(character: Character) -> Self {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a tokio runtime");
        let _inside = tokio.enter();
        let dir = TempDir::new().expect("a directory");
        let runtime = SimulatedRuntime::builder()
            .character(character)
            .pods(2)
            .build();
        let server = runtime
            .serve_unix(dir.path().join("cri.sock"))
            .expect("a socket");
        Self {
            dir,
            runtime,
            _server: server,
            _tokio: tokio,
        }
    }

    fn pleg(&self, words: &str) -> Output {
        let endpoint = format!("unix://{}", self.dir.path().join("cri.sock").display());
        output(pleg(words).env("CONTAINER_RUNTIME_ENDPOINT", endpoint))
    }
}

#[test]
fn a_runtime_behind_a_socket_is_found_and_its_pods_are_listed() {
    let node = Node::running(Character::containerd_2());
    let pods = node.pleg("pods -o json");
    assert_eq!(pods.status.code(), Some(0), "{pods:?}");
    let list: Value = serde_json::from_slice(&pods.stdout).expect("JSON");
    assert_eq!(list["items"].as_array().expect("items").len(), 2);
    assert_eq!(
        text(&pods.stderr),
        "pleg: no daemon at unix:///run/pleg/pleg.sock; asking the runtime itself\n"
    );
}

#[test]
fn whoever_follows_events_that_others_then_miss_is_told_so_in_one_line() {
    let is_told = |character, words: &str| {
        let output = Node::running(character).pleg(words);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let lines = text(&output.stderr)
            .lines()
            .filter(|line| line.contains("takes events away"))
            .map(|line| assert!(line.contains("--no-events"), "{line}"))
            .count();
        assert!(lines <= 1, "{output:?}");
        lines == 1
    };
    assert!(is_told(Character::containerd_1_7(), "watch --count 1"));
    assert!(!is_told(
        Character::containerd_1_7(),
        "watch --count 1 --no-events"
    ));
    assert!(!is_told(Character::containerd_2(), "watch --count 1"));
    // It has no events that could be taken.
    assert!(!is_told(Character::containerd_1_6(), "watch --count 1"));
}

#[test]
fn without_a_runtime_the_error_names_what_was_tried_and_what_else_can_be_done() {
    let dir = TempDir::new().expect("a directory");
    let missing = format!("unix://{}/missing.sock", dir.path().display());
    let output_of = output(&mut pleg(&format!("pods -r {missing}")));
    assert_eq!(output_of.status.code(), Some(1));
    assert_eq!(text(&output_of.stdout), "");
    assert_eq!(
        text(&output_of.stderr),
        format!(
            "pleg: no container runtime answers; tried:\n  \
             {missing} (from --runtime-endpoint): no such file\n\
             Is the runtime up? --runtime-endpoint or CONTAINER_RUNTIME_ENDPOINT names its socket; \
             --simulate follows a simulated runtime instead.\n"
        )
    );
}

#[test]
fn a_socket_where_nobody_listens_and_one_that_is_no_runtime_are_told_apart() {
    let dir = TempDir::new().expect("a directory");
    let deserted = dir.path().join("deserted.sock");
    drop(UnixListener::bind(&deserted).expect("a socket"));
    let watch = output(pleg("watch").env(
        "CONTAINER_RUNTIME_ENDPOINT",
        format!("unix:{}", deserted.display()),
    ));
    assert_eq!(watch.status.code(), Some(1));
    let error = text(&watch.stderr);
    assert!(error.contains("from CONTAINER_RUNTIME_ENDPOINT"), "{error}");
    assert!(error.contains("nobody listens"), "{error}");

    let strange = dir.path().join("strange.sock");
    let listener = UnixListener::bind(&strange).expect("a socket");
    thread::spawn(move || {
        for connection in listener.incoming() {
            drop(connection);
        }
    });
    let config = dir.path().join("crictl.yaml");
    fs::write(
        &config,
        format!("runtime-endpoint: {}\ntimeout: 2\n", strange.display()),
    )
    .expect("written");
    let watch = output(&mut pleg(&format!("watch --config {}", config.display())));
    assert_eq!(watch.status.code(), Some(1));
    let error = text(&watch.stderr);
    assert!(error.contains("crictl.yaml"), "{error}");
    assert!(
        error.contains("answers, but not as a runtime does"),
        "{error}"
    );
}

#[test]
fn a_broken_file_is_a_failure_that_names_its_place() {
    let dir = TempDir::new().expect("a directory");
    let config = dir.path().join("crictl.yaml");
    fs::write(&config, "timeout: 2\nruntime-endpoint: [a]\n").expect("written");
    let pods = output(&mut pleg(&format!("pods -c {}", config.display())));
    assert_eq!(pods.status.code(), Some(1));
    let place = format!("{}:2:19:", config.display());
    assert!(text(&pods.stderr).contains(&place), "{pods:?}");
}

#[test]
fn a_usage_error_has_a_code_of_its_own() {
    for words in [
        "",
        "frobnicate",
        "watch --frobnicate",
        "watch --simulate --feature-gates Frobnicate=true",
        "watch -r run/relative.sock",
        "pods -r tcp://127.0.0.1:1234",
    ] {
        let output = output(&mut pleg(words));
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert_eq!(text(&output.stdout), "", "{words}");
    }
}

#[test]
fn help_and_version_are_answers_and_go_to_stdout() {
    for words in ["--help", "watch --help", "pods -h", "--version"] {
        let output = output(&mut pleg(words));
        assert_eq!(output.status.code(), Some(0), "{words}");
        assert!(text(&output.stdout).contains("pleg"), "{words}");
        assert_eq!(text(&output.stderr), "", "{words}");
    }
}

#[test]
fn an_audit_of_the_simulation_passes_and_prints_one_report() {
    let output = output(&mut pleg("verify --simulate --for 5s"));
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(report.contains("PASSED"), "{report}");
    assert!(report.contains("SUBJECT    EVENT    DELIVERED"), "{report}");
    assert!(report.contains("the message's stamp"), "{report}");
    let said = text(&output.stderr);
    assert!(said.starts_with("pleg: auditing containerd"), "{said}");
}

#[test]
fn an_audit_as_json_is_one_object() {
    let output = output(&mut pleg("verify --simulate --for 5s -o json"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(report["verdict"], "passed", "{report}");
    assert_eq!(report["findings"], serde_json::json!([]));
    assert_eq!(report["runtime"]["name"], "containerd");
    let rows = report["events"].as_array().expect("rows");
    let sum = |count: &str| {
        rows.iter()
            .filter_map(|row| row[count].as_u64())
            .sum::<u64>()
    };
    assert!(sum("proven") > 0, "{report}");
    assert_eq!(sum("missing"), 0, "{report}");
    assert!(report["latencyMs"]["fromStamp"]["p99"].is_f64(), "{report}");
}

#[test]
fn an_audit_without_a_runtime_cannot_tell() {
    let folder = TempDir::new().expect("a folder");
    let endpoint = format!("unix://{}/none.sock", folder.path().display());
    let output = output(pleg("verify --runtime-endpoint").arg(endpoint));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("no container runtime answers"));
    assert!(output.stdout.is_empty());
}

#[test]
fn an_audit_that_would_take_events_from_others_asks_first() {
    let node = Node::running(Character::containerd_1_7());
    let listened = || node.runtime.rpc_counts().of(Rpc::GetContainerEvents);
    let refused = node.pleg("verify --for 3s");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = text(&refused.stderr);
    assert!(
        said.contains("gives each event to one client only"),
        "{said}"
    );
    assert!(said.contains("add --take-events"), "{said}");
    assert_eq!(listened(), 0);

    let audited = node.pleg("verify --for 1s --take-events");
    // It could listen, and nothing happened.
    assert_eq!(audited.status.code(), Some(2), "{audited:?}");
    let said = text(&audited.stderr);
    assert!(said.starts_with("pleg: containerd 1.7"), "{said}");
    assert_eq!(listened(), 1);
}

#[test]
fn an_audit_of_a_runtime_without_events_says_so_at_once() {
    let node = Node::running(Character::containerd_1_6());
    let output = node.pleg("verify --for 1h");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let report = text(&output.stdout);
    assert!(
        report.contains("CANNOT TELL\n  no events: containerd 1.6"),
        "{report}"
    );
}
