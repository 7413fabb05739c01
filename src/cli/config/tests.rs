//! What was typed, what the environment and crictl's file say, and which of them wins.

use super::*;
use clap::Parser;
use std::path::Path;

fn config(words: &str) -> Config {
    let args = Args::try_parse_from(std::iter::once("pleg").chain(words.split_whitespace()))
        .unwrap_or_else(|error| panic!("{words}: {error}"));
    Config::from_args(
        args,
        &Surroundings {
            variable: &|_| None,
            default_config: Path::new("/nonexistent/crictl.yaml"),
            usual_sockets: &["unix:///usual.sock"],
        },
    )
    .unwrap()
}

fn watch(words: &str) -> WatchConfig {
    match config(words).command {
        Command::Watch(watch) => watch,
        other => panic!("{words} watches: {other:?}"),
    }
}

/// What a refused invocation prints; every one of them is a usage error, code 2.
fn refusal(words: &str) -> String {
    let error = Args::try_parse_from(std::iter::once("pleg").chain(words.split_whitespace()))
        .map(|_| ())
        .expect_err(words);
    assert_eq!(error.exit_code(), 2, "{words}");
    error.to_string()
}

#[test]
fn a_bare_watch_follows_events_of_the_usual_runtime_from_a_snapshot() {
    let config = config("watch");
    assert_eq!(
        config.runtime.choice,
        RuntimeChoice::Node(vec![Candidate {
            endpoint: "unix:///usual.sock".into(),
            origin: discover::Origin::UsualSocket,
        }])
    );
    assert_eq!(config.runtime.max_message_size, 16 << 20);
    assert_eq!(
        config.command,
        Command::Watch(WatchConfig {
            format: WatchFormat::Table,
            from: Begin::Snapshot,
            lasting: None,
            count: None,
            filter: EventFilter::default(),
            events: true,
            dump_last: None,
            daemon: DaemonChoice::Usual,
        })
    );
}

#[test]
fn every_word_of_watch_arrives() {
    let watch = watch(
        "watch --simulate --for 1h30m --count 7 --type Died --type ContainerStarted \
         --namespace kube-system --pod dns --from now -o json --no-events \
         --dump-last last.zst",
    );
    assert_eq!(
        watch,
        WatchConfig {
            format: WatchFormat::Json,
            from: Begin::Now,
            lasting: Some(Duration::from_mins(90)),
            count: Some(7),
            filter: EventFilter {
                kinds: vec![
                    LifecycleKind::ContainerDied,
                    LifecycleKind::ContainerStarted
                ],
                namespace: Some("kube-system".into()),
                pod: Some("dns".into()),
            },
            events: false,
            dump_last: Some("last.zst".into()),
            daemon: DaemonChoice::Direct,
        }
    );
}

#[test]
fn every_word_about_the_runtime_arrives() {
    assert_eq!(
        config("pods --simulate --seed 3").runtime.choice,
        RuntimeChoice::Simulated { seed: Some(3) }
    );
    let before = refusal("--simulate pods");
    assert!(before.contains("'pods --simulate' exists"), "{before}");
    let named = config("pods -r unix:///x.sock --no-trunc -o yaml --namespace default");
    assert!(matches!(
        &named.runtime.choice,
        RuntimeChoice::Node(found) if found[0].endpoint == "unix:///x.sock" && found.len() == 1
    ));
    assert_eq!(
        named.command,
        Command::Pods(PodsConfig {
            format: PodsFormat::Yaml,
            cut_ids: false,
            namespace: Some("default".into()),
            daemon: DaemonChoice::Direct,
        })
    );
}

#[test]
fn a_daemon_is_asked_unless_something_is_typed_that_only_the_runtime_can_do() {
    let socket = DaemonChoice::At("unix:///d.sock".parse().unwrap());
    for (words, expected) in [
        ("", DaemonChoice::Usual),
        ("--from now", DaemonChoice::Usual),
        ("--daemon /d.sock", socket),
        ("--direct", DaemonChoice::Direct),
        ("--no-events", DaemonChoice::Direct),
        ("--simulate", DaemonChoice::Direct),
        ("-r unix:///x.sock", DaemonChoice::Direct),
        ("--dump-last last.zst", DaemonChoice::Direct),
    ] {
        assert_eq!(watch(&format!("watch {words}")).daemon, expected, "{words}");
    }
    for words in [
        "watch --direct --daemon /d.sock",
        "watch --no-events --daemon /d.sock",
        "watch --dump-last last.zst --daemon /d.sock",
        "watch --simulate --daemon /d.sock",
        "pods -r /x.sock --daemon /d.sock",
        "record --out x --last 10m --for 1m",
        "record --out x --daemon /d.sock",
    ] {
        let text = refusal(words);
        assert!(
            text.contains("cannot be used with") || text.contains("--last"),
            "{text}"
        );
    }
}

#[test]
fn a_variable_names_the_daemon_unless_a_flag_says_otherwise() {
    let whom = |words: &str, variable: &str| {
        let args = Args::try_parse_from(["pleg"].into_iter().chain(words.split_whitespace()));
        let config = Config::from_args(
            args.unwrap(),
            &Surroundings {
                variable: &|name| (name == DAEMON_VARIABLE).then(|| variable.to_owned()),
                default_config: Path::new("/nonexistent/crictl.yaml"),
                usual_sockets: &["unix:///usual.sock"],
            },
        );
        config.map(|config| match config.command {
            Command::Pods(pods) => pods.daemon,
            other => panic!("{words} lists pods: {other:?}"),
        })
    };
    let at = |socket: &str| DaemonChoice::At(socket.parse().unwrap());
    assert_eq!(whom("pods", "/d.sock").unwrap(), at("/d.sock"));
    assert_eq!(
        whom("pods --daemon /e.sock", "/d.sock").unwrap(),
        at("/e.sock")
    );
    assert_eq!(
        whom("pods --direct", "/d.sock").unwrap(),
        DaemonChoice::Direct
    );
    assert_eq!(
        whom("pods --simulate", "/d.sock").unwrap(),
        DaemonChoice::Direct
    );
    assert_eq!(whom("pods", " ").unwrap(), DaemonChoice::Usual);
    let error = whom("pods", "tcp://1.2.3.4").unwrap_err().to_string();
    assert!(error.starts_with("PLEG_DAEMON: "), "{error}");
}

#[test]
fn feature_gates_are_read_as_the_kubelet_reads_them() {
    for off in ["EventedPLEG=false", "EventedPLEG=0", "EventedPLEG=F,"] {
        assert!(
            !watch(&format!("watch --feature-gates {off}")).events,
            "{off}"
        );
    }
    for on in ["EventedPLEG=true", "EventedPLEG=false,EventedPLEG=T"] {
        assert!(watch(&format!("watch --feature-gates {on}")).events, "{on}");
    }
    let twice = "watch --feature-gates EventedPLEG=true --feature-gates EventedPLEG=false";
    assert!(!watch(twice).events);
}

#[test]
fn an_unknown_gate_is_a_usage_error_that_lists_the_known_ones() {
    let text = refusal("watch --feature-gates EventedPleg=true");
    assert!(text.contains("EventedPleg"), "{text}");
    assert!(text.contains("the known gates are: EventedPLEG"), "{text}");
    refusal("watch --feature-gates EventedPLEG");
    refusal("watch --feature-gates EventedPLEG=maybe");
}

#[test]
fn contradictions_and_nonsense_are_usage_errors() {
    for words in [
        "",
        "watch --simulate --runtime-endpoint unix:///x",
        "watch --simulate --config /etc/crictl.yaml",
        "watch --seed 1",
        "watch --no-events --feature-gates EventedPLEG=true",
        "watch -r run/relative.sock",
        "watch -r tcp://127.0.0.1:1234",
        "watch --count 0",
        "watch --count -1",
        "watch --for ten",
        "watch --for 10",
        "watch --type Changed",
        "watch -o yaml",
        "pods -o go-template",
        "pods --for 1s",
        "watch --log-level loud",
        "watch --max-message-size 1KiB",
        "watch --max-message-size 2GiB",
        "watch --max-message-size 16MB",
        "watch --max-message-size 99999999999999999999Gi",
        "frobnicate",
    ] {
        refusal(words);
    }
}

#[test]
fn sizes_are_binary() {
    for (text, bytes) in [
        ("16MiB", 16 << 20),
        ("64Ki", 64 << 10),
        ("1 GiB", 1 << 30),
        ("70000", 70_000),
    ] {
        assert_eq!(text.parse(), Ok(ByteLimit(bytes)), "{text}");
    }
}

#[test]
fn a_level_is_for_pleg_and_leaves_the_transport_quiet() {
    let level = |text: &str| text.parse::<LogLevel>().unwrap().to_string();
    assert_eq!(level("debug"), "warn,pleg=debug");
    assert_eq!(level("off"), "off,pleg=off");
    assert_eq!(level(""), "warn,pleg=warn");
    assert_eq!(level("pleg=trace,h2=info"), "pleg=trace,h2=info");
}

#[test]
fn a_filter_takes_a_pod_by_name_or_by_uid_and_nothing_else() {
    let event = crate::cli::output::samples::died();
    let wants = |words: &str| watch(&format!("watch {words}")).filter.wants(&event);
    assert!(wants(""));
    assert!(wants(
        "--pod web-1 --namespace shop --type Died --type Started"
    ));
    assert!(wants("--pod 0d5e3f6a-8f3e-4a55-9a3b-5a1f0d7f2c11"));
    assert!(!wants("--pod web"));
    assert!(!wants("--namespace sho"));
    assert!(!wants("--type Removed"));
}
