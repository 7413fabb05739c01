//! A stranger's program: ten lines that watch a simulated runtime.
use futures::StreamExt;
use pleg::{Pleg, feed::WatchFrom, simulate::SimulatedRuntime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = SimulatedRuntime::builder().busy_node().build();
    let _churn = runtime.spawn_churn();
    let (pleg, driver) = Pleg::builder()
        .connector(move || runtime.channel())
        .build()?;
    tokio::spawn(driver.run());
    let mut events = pleg.watch(WatchFrom::Now)?.take(10);
    while let Some(event) = events.next().await {
        println!("{} {}/{}", event.kind, event.pod.namespace, event.pod.name);
    }
    Ok(())
}
