//! Two agents share one daemon's feed over gRPC (`pleg.v1`). One of them stalls for so long that the
//! daemon cannot tell it what it missed: it is told to list again, and does.
//!
//! The daemon runs in this process, on a simulated node:
//!
//!     cargo run --example shared_feed

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use pleg::Pleg;
use pleg::lifecycle::{EventSubject, LifecycleKind, ReportedState};
use pleg::serve::grpc::{Begin, ClientError, DaemonClient, SocketConfig, Watched, Watching};
use pleg::serve::{Daemon, DaemonConfig, Limits, RingLimits, run};
use pleg::simulate::SimulatedRuntime;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

/// How much the daemon keeps for those who fall behind: little, so that it soon shows.
const KEPT_EVENTS: usize = 200;
/// How much may be on its way to an agent, in bytes. Most clients leave it at megabytes.
const WINDOW: u32 = 64 << 10;
/// The slow agent reads nothing while the brisk one takes so many events: more than the daemon, the
/// connection and the client hold together.
const STALL: u64 = 4_000;
/// When an agent hears nothing for so long on a node where nothing happens, it has heard everything.
const QUIET: Duration = Duration::from_secs(2);

/// Somebody who wants to know which containers run.
struct Agent {
    name: &'static str,
    watching: Watching,
    running: BTreeSet<String>,
    taken: u64,
}

impl Agent {
    fn new(name: &'static str, client: &DaemonClient) -> Self {
        Self {
            name,
            watching: client.watch(Begin::Snapshot, name),
            running: BTreeSet::new(),
            taken: 0,
        }
    }

    /// Takes the next thing that it is told. Whether that was the end of a snapshot.
    async fn take(&mut self) -> Result<bool, ClientError> {
        let name = self.name;
        match self.watching.next().await? {
            Watched::Event(event) => {
                self.taken += 1;
                if let Some(EventSubject::Container { id, .. }) = &event.subject {
                    match event.kind {
                        LifecycleKind::ContainerStarted => self.running.insert(id.to_string()),
                        _ => self.running.remove(&id.to_string()),
                    };
                }
            }
            Watched::SnapshotEnd => {
                println!("{name}: listed, {} containers run", self.running.len());
                return Ok(true);
            }
            // What it believed is worth nothing; the snapshot that follows is the new list.
            Watched::ListAgain(why) => {
                println!("{name}: told to {why}");
                self.running.clear();
            }
            // It comes back by itself, and goes on where it was.
            Watched::Lost(why) => println!("{name}: connection lost, {why}"),
            Watched::ModeChanged(change) => println!("{name}: the node is {} now", change.to),
            _ => {}
        }
        Ok(false)
    }

    /// Follows until nothing more is told, and gives what it believes then.
    async fn follow(
        mut self,
        taken: Option<watch::Sender<u64>>,
    ) -> Result<BTreeSet<String>, ClientError> {
        while let Ok(told) = timeout(QUIET, self.take()).await {
            told?;
            if let Some(taken) = &taken {
                taken.send_replace(self.taken);
            }
        }
        Ok(self.running)
    }
}

/// The containers that the daemon's list shows running.
async fn listed(client: &DaemonClient) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let pods = client.pods().await?;
    let containers = pods.iter().flat_map(|pod| &pod.containers);
    let running = containers.filter(|it| it.state == ReportedState::Running);
    Ok(running.map(|it| it.id.to_string()).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = SimulatedRuntime::builder()
        .busy_node()
        .churn(1_000.0)
        .build();
    let churn = runtime.spawn_churn();
    let builder = Pleg::builder().connector(move || runtime.channel());
    let socket = std::env::temp_dir().join(format!("pleg-shared-feed-{}.sock", std::process::id()));
    let config = DaemonConfig {
        grpc: Some(SocketConfig::at(&socket)),
        http: None,
        limits: Limits {
            ring: RingLimits {
                events: KEPT_EVENTS,
                ..RingLimits::default()
            },
            ..Limits::default()
        },
        ..DaemonConfig::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let daemon = tokio::spawn(run(Daemon::new(builder, config), async {
        let _ = stopped.await;
    }));

    let channel = tonic::transport::Endpoint::from_shared(format!("unix:{}", socket.display()))?
        .initial_stream_window_size(WINDOW)
        .connect_lazy();
    let client = DaemonClient::over(channel);
    while client.status().await.ok().and_then(|it| it.is_healthy()) != Some(true) {
        sleep(Duration::from_millis(50)).await;
    }

    let mut slow = Agent::new("slow", &client);
    while !slow.take().await? {}
    let (taken, mut taken_by_brisk) = watch::channel(0);
    let brisk = tokio::spawn(Agent::new("brisk", &client).follow(Some(taken)));
    println!("slow: stalls");
    taken_by_brisk.wait_for(|taken| *taken >= STALL).await?;
    println!("slow: reads again; brisk took {STALL} events meanwhile");
    let slow = tokio::spawn(slow.follow(None));
    sleep(QUIET).await;

    // Nothing happens any more, so that all can be compared.
    drop(churn);
    let (brisk, slow) = (brisk.await??, slow.await??);
    let listed = listed(&client).await?;
    if brisk != listed || slow != listed {
        let (brisk, slow, listed) = (brisk.len(), slow.len(), listed.len());
        return Err(format!("brisk knows {brisk} containers, slow {slow}, of {listed}").into());
    }
    println!(
        "brisk and slow agree with the daemon: {} containers run",
        listed.len()
    );
    let _ = stop.send(());
    daemon.await??;
    Ok(())
}
