//! The daemon with watchers over gRPC.

use std::process::{Command, Stdio};
use std::time::Duration;

use pleg::clock::Clock;
use pleg::cri::Endpoint;
use pleg::serve::grpc::{Begin, DaemonClient, Watched};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::count;
use super::events::FOR_A_THOUSAND_MESSAGES;
use crate::measured::Extent;
use crate::process::{Owned, cpu_of, resident};
use crate::simulated::{Load, Simulated};
use crate::table::{Section, line};
use crate::task::Figures;

const WATCHERS: usize = 10;

pub(super) fn watchers(extent: Extent) -> Section {
    let mut section = Section::new(
        "`pleg run` with 10 watchers over gRPC, about 1,000 messages a second",
        "1,000 pods × 3; the daemon's CPU, HTTP and flight recorder as they come.",
    );
    let figures: Vec<Figures> = (0..extent.runs).map(|_| once(extent)).collect();
    section.add(
        &figures,
        &line("of one core", "share of a core", "%").at_most(25.0),
    );
    section.add(
        &figures,
        &line("events a second, to all", "delivered a second", ""),
    );
    section.add(&figures, &line("RSS", "rss", "MiB"));
    section.add(&figures, &line("peak RSS", "peak rss", "MiB"));
    section
}

fn once(extent: Extent) -> Figures {
    let load = Load::quiet(1000, 3).with_churn(FOR_A_THOUSAND_MESSAGES);
    let simulated = Simulated::start(&load);
    let socket = format!("unix://{}", simulated.folder().join("pleg.sock").display());
    let process = Command::new(env!("CARGO_BIN_EXE_pleg"))
        .env_clear()
        .arg("run")
        .arg(format!(
            "--runtime-endpoint=unix://{}",
            simulated.socket().display()
        ))
        .args(["--grpc-listen", &socket])
        .args(["--http-listen", "off"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let daemon = Owned(process);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop can be made")
        .block_on(watched(extent, &simulated, &daemon, &socket))
}

async fn watched(extent: Extent, simulated: &Simulated, daemon: &Owned, socket: &str) -> Figures {
    let endpoint: Endpoint = socket.parse().expect("it is an endpoint");
    while DaemonClient::at(&endpoint).status().await.is_err() {
        sleep(Duration::from_millis(50)).await;
    }
    // The first relist, and audits that are some seconds apart.
    sleep(Duration::from_secs(8)).await;
    let (told, mut events) = mpsc::unbounded_channel();
    for number in 0..WATCHERS {
        let told = told.clone();
        let client = DaemonClient::at(&endpoint);
        tokio::spawn(async move {
            let mut watching = client.watch(Begin::Now, &format!("watcher {number}"));
            while let Ok(watched) = watching.next().await {
                if matches!(watched, Watched::Event(_)) && told.send(()).is_err() {
                    break;
                }
            }
        });
    }
    sleep(Duration::from_millis(500)).await;
    simulated.release();
    sleep(Duration::from_secs(2)).await;
    let process = daemon.0.id();
    while events.try_recv().is_ok() {}
    let clock = Clock::system();
    let (began, before) = (clock.now().mono, cpu_of(process));
    let mut delivered = 0;
    let _ = timeout(extent.churn, async {
        while events.recv().await.is_some() {
            delivered += 1;
        }
    })
    .await;
    let seconds = clock.now().mono.since(began).as_secs_f64();
    let spent = cpu_of(process).saturating_sub(before).as_secs_f64();
    let (now, most) = resident(&process.to_string());
    let figures = [
        ("share of a core", 100.0 * spent / seconds),
        ("delivered a second", count(delivered) / seconds),
        ("rss", now),
        ("peak rss", most),
    ];
    figures
        .into_iter()
        .map(|(name, figure)| (name.to_owned(), figure))
        .collect()
}
