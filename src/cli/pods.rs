//! `pleg pods`: what the node's daemon knows, or one full relist with its inspections, printed.

use std::future::Future;
use std::io;
use std::sync::Arc;

use anyhow::{Context, bail};

use super::args::PodsFormat;
use super::attach;
use super::config::{PodsConfig, RuntimeConfig, in_namespace};
use super::daemon::{self, Found};
use super::follow::write;
use super::output::pods::{self as print, PodList};
use super::output::style::Screen;
use super::{Variable, say};
use crate::clock::Clock;
use crate::lifecycle::{PodStatus, UnixNanos};

/// Lists the node and prints it. Without a daemon the event stream is never asked for: one relist
/// needs none, and on containerd before 2 asking would take events away from others.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: &PodsConfig,
    variable: Variable<'_>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let listed = async {
        if let Some(found) = daemon::find(&config.daemon).await? {
            return ask(&found).await;
        }
        let following = attach::attach(runtime, false).await?.follow();
        let pods = following.pods().await;
        // If the driver broke off, its own error says why the pods are not there.
        following.stop().await?;
        pods
    };
    let pods = tokio::select! {
        biased;
        () = stop => return Ok(()),
        pods = listed => pods?,
    };
    let now = Clock::system().now().wall;
    let (text, aside) = rendered(pods, config, now, Screen::of(&io::stdout(), variable))?;
    if !aside.is_empty() {
        say(aside.trim_end());
    }
    match write(&mut tokio::io::stdout(), &text).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// What a daemon knows.
async fn ask(found: &Found) -> anyhow::Result<Vec<Arc<PodStatus>>> {
    let failed = |error| found.failed("ask the daemon", &error);
    let status = found.client.status().await.map_err(failed)?;
    if status.last_relist_seconds_ago.is_none() {
        bail!(
            "the daemon at {} has not listed the runtime yet: {}",
            found.socket,
            status.words
        );
    }
    found.client.pods().await.map_err(failed)
}

/// What goes to stdout, and what is said beside it.
fn rendered(
    mut pods: Vec<Arc<PodStatus>>,
    config: &PodsConfig,
    now: UnixNanos,
    screen: Screen,
) -> anyhow::Result<(String, String)> {
    pods.retain(|status| in_namespace(&status.pod, config.namespace.as_deref()));
    print::sort(&mut pods);
    let list = PodList { items: &pods };
    let text = match config.format {
        PodsFormat::Table => print::table(&pods, now, config.cut_ids, screen),
        PodsFormat::Wide => print::wide_table(&pods, now, config.cut_ids, screen.colour),
        PodsFormat::Json => {
            let mut json = serde_json::to_string_pretty(&list)?;
            json.push('\n');
            json
        }
        PodsFormat::Yaml => serde_saphyr::to_string(&list)?,
    };
    Ok((text, print::warnings(&pods)))
}

#[cfg(test)]
mod tests {
    use super::super::output::samples::{self, NOON};
    use super::super::output::style::Colour;
    use super::*;

    const PIPE: Screen = Screen {
        colour: Colour::Never,
        width: None,
    };

    fn config(format: PodsFormat, namespace: Option<&str>) -> PodsConfig {
        PodsConfig {
            format,
            cut_ids: true,
            namespace: namespace.map(ToOwned::to_owned),
            daemon: daemon::DaemonChoice::Direct,
        }
    }

    #[test]
    fn every_format_ends_its_last_line_and_knows_the_pod() {
        for format in [
            PodsFormat::Table,
            PodsFormat::Wide,
            PodsFormat::Json,
            PodsFormat::Yaml,
        ] {
            let pods = vec![Arc::new(samples::status())];
            let (text, aside) =
                rendered(pods, &config(format, Some("shop")), UnixNanos(NOON), PIPE).unwrap();
            assert!(text.contains("web-1"), "{format:?}: {text}");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
            assert_eq!(aside, "");
        }
    }

    #[test]
    fn another_namespaces_pods_are_neither_printed_nor_complained_about() {
        let mut status = samples::status();
        status.error = Some("DeadlineExceeded".into());
        let pods = vec![Arc::new(status)];
        let (text, aside) = rendered(
            pods,
            &config(PodsFormat::Json, Some("other")),
            UnixNanos(NOON),
            PIPE,
        )
        .unwrap();
        assert_eq!(text, "{\n  \"items\": []\n}\n");
        assert_eq!(aside, "");
    }
}
