//! The figures as written, and as documented.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn the_better_liked_format_is_chosen_and_plain_text_in_doubt() {
    for (accept, format) in [
        ("", Format::Text),
        ("*/*", Format::Text),
        ("text/plain", Format::Text),
        ("application/openmetrics-text", Format::OpenMetrics),
        (
            "text/plain;q=0.9, application/openmetrics-text;version=1.0.0",
            Format::OpenMetrics,
        ),
        (
            "application/openmetrics-text;q=0.2,text/plain;version=0.0.4;q=0.6",
            Format::Text,
        ),
        ("application/openmetrics-text;q=0", Format::Text),
        ("Application/OpenMetrics-Text; q=x", Format::Text),
    ] {
        assert_eq!(Format::accepted(accept), format, "{accept}");
    }
}

#[cfg(feature = "scenarios")]
mod served {
    use super::*;
    use crate::clock::Clock;
    use crate::lifecycle::Mark;
    use crate::serve::http::HttpTally;
    use crate::serve::status::Notebook;
    use crate::serve::{Epoch, Limits, Serving};
    use crate::simulate::SimulatedRuntime;

    const NOON: UnixNanos = UnixNanos(1_796_040_000_000_000_000);

    struct Scraped {
        runtime: SimulatedRuntime,
        serving: Serving,
    }

    impl Scraped {
        async fn node() -> Self {
            let runtime = SimulatedRuntime::builder().epoch(NOON).seed(7).build();
            let (pleg, driver) = Pleg::builder()
                .channel(runtime.channel())
                .clock(Clock::starting_at(NOON))
                .seed(1)
                .build()
                .expect("nothing contradicts itself");
            tokio::spawn(driver.run());
            let (serving, feeder) =
                Serving::new(pleg, Epoch(1), Limits::default(), Notebook::default(), None)
                    .expect("nothing has ended");
            tokio::spawn(feeder.run());
            let pleg = serving.pleg();
            pleg.relisted_since(Mark::default()).await.expect("it runs");
            runtime.streams_opened(1).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            Self { runtime, serving }
        }

        async fn text(&self, format: Format) -> String {
            let served = Served::of(&self.serving, HttpTally::default());
            let figures = Figures::gather(self.serving.pleg(), served).await;
            figures.write(format).expect("a string takes everything")
        }

        async fn values(&self) -> BTreeMap<String, f64> {
            let text = self.text(Format::Text).await;
            let samples = text.lines().filter(|line| !line.starts_with('#'));
            samples
                .map(|line| {
                    let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                    (name.to_owned(), value.parse().expect("a number"))
                })
                .collect()
        }
    }

    /// The kubelet's gauges add differences to absolute values, and states that fall to zero keep
    /// their last value.
    #[tokio::test(start_paused = true)]
    async fn gauges_are_what_the_cache_holds_at_that_moment() {
        let node = Scraped::node().await;
        let pod = node.runtime.run_pod("shop", "web", &["app", "helper"]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let values = node.values().await;
        assert!((values["pleg_running_pods"] - 1.0).abs() < 1e-9);
        assert!((values["pleg_containers{container_state=\"running\"}"] - 2.0).abs() < 1e-9);
        for container in &pod.containers {
            node.runtime.exit_container(container, 0).unwrap();
        }
        node.runtime.stop_sandbox(&pod.sandbox).unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let values = node.values().await;
        assert!(values["pleg_running_pods"].abs() < 1e-9);
        assert!((values["pleg_pods"] - 1.0).abs() < 1e-9);
        assert!(values["pleg_containers{container_state=\"running\"}"].abs() < 1e-9);
        assert!((values["pleg_containers{container_state=\"exited\"}"] - 2.0).abs() < 1e-9);
        // Each of them was told by the stream.
        let died = "pleg_events_total{type=\"ContainerDied\",source=\"event\"}";
        assert!((values[died] - 3.0).abs() < 1e-9, "{}", values[died]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_mode_is_on_and_its_changes_are_counted() {
        let node = Scraped::node().await;
        let modes = |values: &BTreeMap<String, f64>| -> Vec<String> {
            let on = values.iter().filter(|(_, value)| **value > 0.5);
            let names = on.map(|(name, _)| name.clone());
            names
                .filter(|name| name.starts_with("pleg_mode{"))
                .collect()
        };
        let values = node.values().await;
        assert_eq!(modes(&values), ["pleg_mode{mode=\"Evented\",reason=\"\"}"]);
        assert!(values["pleg_audit_period_seconds"] >= 1.0);
        node.runtime.set_up(false);
        tokio::time::sleep(Duration::from_secs(90)).await;
        let values = node.values().await;
        let polling = modes(&values);
        assert_eq!(polling.len(), 1);
        assert!(
            polling[0].starts_with("pleg_mode{mode=\"Polling\""),
            "{polling:?}"
        );
        assert!(!values.contains_key("pleg_audit_period_seconds"));
        let broke = values.iter().find(|(name, _)| {
            name.starts_with("pleg_mode_transitions_total{from=\"Evented\",to=\"Polling\"")
        });
        assert!(broke.is_some_and(|(_, count)| (*count - 1.0).abs() < 1e-9));
        assert!(values["pleg_rpcs_total{method=\"ListPodSandbox\",code=\"Unavailable\"}"] > 1.0);
        let age = 1_796_040_095.0 - values["pleg_last_seen_timestamp_seconds"];
        assert!((80.0..100.0).contains(&age), "{age}");
    }

    #[tokio::test(start_paused = true)]
    async fn histograms_have_every_bound_and_end_with_all_of_it() {
        let node = Scraped::node().await;
        let values = node.values().await;
        for name in [
            "pleg_relist_duration_seconds",
            "pleg_relist_interval_seconds",
            "pleg_pod_relist_duration_seconds",
            "pleg_inspection_duration_seconds",
            "pleg_heartbeat_duration_seconds",
            "pleg_event_age_seconds",
        ] {
            let buckets = values
                .keys()
                .filter(|key| key.starts_with(&format!("{name}_bucket{{")))
                .count();
            assert_eq!(buckets, 17, "{name}");
            let all = values[&format!("{name}_bucket{{le=\"+Inf\"}}")];
            let count = values[&format!("{name}_count")];
            assert!((all - count).abs() < 1e-9, "{name}");
        }
        assert!(values["pleg_relist_duration_seconds_count"] >= 1.0);
    }

    /// The families of a scrape, with their types.
    fn families(text: &str) -> BTreeMap<String, String> {
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types
            .map(|line| {
                let (name, kind) = line.split_once(' ').expect("a name and a type");
                (name.to_owned(), kind.to_owned())
            })
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn every_family_is_documented_with_its_type_and_nothing_else_is() {
        let node = Scraped::node().await;
        let served = families(&node.text(Format::Text).await);
        let docs = include_str!("../../../docs/metrics.md");
        let documented: BTreeMap<String, String> = docs
            .lines()
            .filter_map(|line| {
                let mut cells = line.split('|').map(str::trim).skip(1);
                let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
                let kind = cells.next()?;
                let is_type = matches!(kind, "counter" | "gauge" | "histogram");
                is_type.then(|| (name.to_owned(), kind.to_owned()))
            })
            .collect();
        assert_eq!(served, documented);
        assert!(served.len() > 60);
    }

    /// Prometheus' own words for the metrics of ours that a query names.
    fn named_in(text: &str) -> BTreeSet<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        text.split(|c| !is_part(c))
            .filter(|word| word.starts_with("pleg_") || word.starts_with("process_"))
            .map(ToOwned::to_owned)
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn rules_and_dashboard_name_only_metrics_that_exist() {
        let node = Scraped::node().await;
        let served = families(&node.text(Format::Text).await);
        let mut names: BTreeSet<String> = served.keys().cloned().collect();
        for (name, kind) in &served {
            if kind == "histogram" {
                names.extend(["bucket", "sum", "count"].map(|end| format!("{name}_{end}")));
            }
        }
        let queries = |file: &str| -> String {
            let rules: serde_json::Value = if file.ends_with("json") {
                let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(path).expect("it is there");
                serde_json::from_str(&text).expect("JSON")
            } else {
                let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(path).expect("it is there");
                serde_saphyr::from_str(&text).expect("YAML")
            };
            let mut found = Vec::new();
            collect(&rules, &mut found);
            found.join("\n")
        };
        for file in [
            "deploy/prometheus/rules.yaml",
            "deploy/prometheus/alerts.yaml",
            "deploy/grafana/pleg.json",
        ] {
            let asked = named_in(&queries(file));
            assert!(asked.len() > 4, "{file} asks for {asked:?}");
            let unknown: Vec<_> = asked.difference(&names).collect();
            assert!(unknown.is_empty(), "{file} names {unknown:?}");
        }
    }

    /// The expressions in a file of rules or a dashboard.
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    match (key.as_str(), value.as_str()) {
                        ("expr" | "query" | "definition", Some(text)) => {
                            found.push(text.to_owned());
                        }
                        _ => collect(value, found),
                    }
                }
            }
            serde_json::Value::Array(items) => {
                for item in items {
                    collect(item, found);
                }
            }
            _ => {}
        }
    }
}
