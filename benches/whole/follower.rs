//! The measured process: the library with one subscriber, or more, as an embedder has it.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use pleg::clock::Clock;
use pleg::cri::Endpoint;
use pleg::engine::{Counters, Freshness, Mode};
use pleg::feed::{Subscription, WatchFrom};
use pleg::lifecycle::{LifecycleKind, Mark, Mono, PodUid, ReportedState, Source};
use pleg::{Builder, Pleg, Stats};
use tokio::time::{sleep, timeout};

use crate::limits::{self, BareClient, cri};
use crate::memory::{asked, live};
use crate::process::{cpu, resident};
use crate::spread::{middle, percentile};
use crate::task::{Figures, Task, What};

/// Longer than a relist or a burst takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// For so long nothing was told: perhaps that was all.
const SILENCE: Duration = Duration::from_secs(1);

/// Longer than any measurement: a relist that comes only when asked for.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Does what it is told and prints the figures.
pub(crate) fn run(task: &Task) {
    let figures = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop can be made")
        .block_on(measure(task));
    let text = serde_json::to_string(&figures).expect("numbers can be written");
    println!("{text}");
}

async fn measure(task: &Task) -> Figures {
    match task.what {
        What::Relists { times } => relists(task, times).await,
        What::Polling { window } => polling(task, window).await,
        What::Idle { audits, window } => idle(task, audits, window).await,
        What::Churn {
            audits,
            window,
            subscribers,
        } => churn(task, audits, window, subscribers).await,
        What::Burst { audits } => burst(task, audits).await,
        What::Newer { times } => newer(task, times).await,
    }
}

/// Says that things may happen now.
fn ready() {
    println!("ready");
}

/// What was spent up to a moment.
#[derive(Clone, Copy)]
struct Spent {
    cpu: Duration,
    allocations: u64,
    bytes: u64,
}

impl Spent {
    fn now() -> Self {
        let asked = asked();
        Self {
            cpu: cpu(),
            allocations: asked.allocations,
            bytes: asked.bytes,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            allocations: self.allocations - earlier.allocations,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

struct Followed {
    pleg: Pleg,
    clock: Clock,
    events: Subscription,
    first: Figures,
}

impl Followed {
    /// Follows a runtime and waits until everything on it has been told.
    async fn begin(task: &Task, set: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = Clock::system();
        let text = format!("unix://{}", task.socket.display());
        let endpoint: Endpoint = text.parse().expect("it is an endpoint");
        let before = Spent::now();
        let began = clock.now().mono;
        let (pleg, driver) = set(Pleg::builder().endpoint(endpoint))
            .build()
            .expect("the settings agree");
        tokio::spawn(driver.run());
        let mut events = pleg.watch(WatchFrom::Now).expect("the feed has begun");
        let mut missing = task.pods * (task.containers + 1);
        while missing > 0 {
            let event = within("the first relist", events.next()).await;
            let event = event.expect("the driver runs");
            missing -= usize::from(event.kind == LifecycleKind::ContainerStarted);
        }
        let wall = clock.now().mono.since(began);
        let spent = Spent::now().since(before);
        let stats = pleg.stats().await.expect("the driver runs");
        let mut first = Figures::new();
        put(&mut first, "first wall", millis(wall));
        put(&mut first, "first cpu", millis(spent.cpu));
        put(&mut first, "first allocations", float(spent.allocations));
        put(&mut first, "first rpcs", calls(&stats));
        Self {
            pleg,
            clock,
            events,
            first,
        }
    }

    fn now(&self) -> Mono {
        self.clock.now().mono
    }

    async fn stats(&self) -> Stats {
        self.pleg.stats().await.expect("the driver runs")
    }

    /// Waits until audits are so far apart: none comes for as long from then on.
    async fn audited_every(&mut self, period: Duration) {
        let far_apart = |mode: Mode| match mode {
            Mode::Evented { audit_period } => audit_period >= period,
            Mode::Connecting | Mode::Polling { .. } => false,
        };
        within("trust", async {
            while !far_apart(self.pleg.mode()) {
                // Not asleep altogether: what is told meanwhile is taken.
                let _ = timeout(Duration::from_millis(50), self.events.next()).await;
            }
        })
        .await;
    }

    /// Takes what is told for a while.
    async fn take_for(&mut self, time: Duration) {
        let _ = timeout(time, async { while self.events.next().await.is_some() {} }).await;
    }

    async fn relist(&self) {
        let mark = self.pleg.mark().await.expect("the driver runs");
        let asked = self.pleg.request_full_relist().await;
        asked.expect("the driver runs");
        let relisted = self.pleg.relisted_since(mark).await;
        relisted.expect("the driver runs");
    }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("never came: {what}"))
}

async fn relists(task: &Task, times: u32) -> Figures {
    let followed = Followed::begin(task, |builder| {
        builder
            .evented_pleg(false)
            .relist_period(NEVER)
            .relist_threshold(NEVER * 2)
            .evented_relist_period(NEVER)
            .evented_relist_threshold(NEVER * 2)
    })
    .await;
    let mut figures = followed.first.clone();
    for _ in 0..3 {
        followed.relist().await;
    }
    let told = followed.pleg.feed_stats().published;
    let rpcs = calls(&followed.stats().await);
    let mut walls = Vec::new();
    let before = Spent::now();
    for _ in 0..times {
        let began = followed.now();
        followed.relist().await;
        walls.push(millis(followed.now().since(began)));
    }
    let spent = Spent::now().since(before);
    let rpcs = calls(&followed.stats().await) - rpcs;
    assert_eq!(
        followed.pleg.feed_stats().published,
        told,
        "nothing is new in an unchanged list"
    );
    let each = f64::from(times);
    put(&mut figures, "wall", middle(&mut walls));
    put(&mut figures, "cpu", millis(spent.cpu) / each);
    put(&mut figures, "rpcs", rpcs / each);
    let allocations = float(spent.allocations) / each;
    put(&mut figures, "allocations", allocations);
    let containers = float((task.pods * task.containers) as u64);
    put(&mut figures, "allocations each", allocations / containers);
    put(&mut figures, "kib", float(spent.bytes) / each / 1024.0);
    put(&mut figures, "peak rss", resident("self").1);
    followed.pleg.shutdown().await;
    drop(followed);

    let channel = bare_channel(task).await;
    let limits = limits::of_lists(&mut BareClient::over(channel), times).await;
    put(&mut figures, "grpc", millis(limits.over_grpc));
    put(&mut figures, "grpc allocations", float(limits.allocations));
    put(&mut figures, "prost", millis(limits.through_prost));
    put(&mut figures, "socket", millis(limits.through_a_socket));
    put(
        &mut figures,
        "list kib",
        float(limits.bytes as u64) / 1024.0,
    );
    let cpu = figures["cpu"];
    put(&mut figures, "of prost", cpu / millis(limits.through_prost));
    figures
}

async fn polling(task: &Task, window: Duration) -> Figures {
    let mut followed = Followed::begin(task, |builder| builder.evented_pleg(false)).await;
    followed.take_for(Duration::from_millis(2500)).await;
    let mut figures = at_rest(&mut followed, window).await;
    put(&mut figures, "peak rss", resident("self").1);
    figures
}

async fn idle(task: &Task, audits: Duration, window: Duration) -> Figures {
    let mut followed = Followed::begin(task, |builder| builder).await;
    // A few events, so that the stream proves itself.
    followed.take_for(Duration::from_millis(1500)).await;
    ready();
    let began = followed.now();
    followed.audited_every(audits).await;
    let steady_from = Duration::from_secs(60).min(window);
    let passed = followed.now().since(began);
    followed.take_for(steady_from.saturating_sub(passed)).await;
    let mut figures = at_rest(&mut followed, window).await;
    let (now, most) = resident("self");
    put(&mut figures, "rss", now);
    put(&mut figures, "peak rss", most);
    put(&mut figures, "heap", float(live()) / 1024.0 / 1024.0);
    let before = Spent::now();
    followed.relist().await;
    let audit = Spent::now().since(before).cpu.as_secs_f64();
    // One audit in five minutes.
    let with_audits = figures["cpu a minute"] + audit / 5.0;
    put(&mut figures, "cpu with audits", with_audits);
    figures
}

/// Costs of a while in which nothing happens, by the minute.
async fn at_rest(followed: &mut Followed, window: Duration) -> Figures {
    let stats = followed.stats().await;
    let before = Spent::now();
    let began = followed.now();
    followed.take_for(window).await;
    let minutes = followed.now().since(began).as_secs_f64() / 60.0;
    let spent = Spent::now().since(before);
    let later = followed.stats().await;
    let mut figures = Figures::new();
    put(
        &mut figures,
        "cpu a minute",
        spent.cpu.as_secs_f64() / minutes,
    );
    put(
        &mut figures,
        "allocations a minute",
        float(spent.allocations) / minutes,
    );
    put(
        &mut figures,
        "rpcs a minute",
        (calls(&later) - calls(&stats)) / minutes,
    );
    between(&mut figures, &stats, &later);
    figures
}

async fn churn(task: &Task, audits: Duration, window: Duration, subscribers: usize) -> Figures {
    let mut followed = Followed::begin(task, |builder| builder).await;
    for _ in 1..subscribers {
        let watched = followed.pleg.watch(WatchFrom::Now);
        let mut events = watched.expect("the feed has begun");
        tokio::spawn(async move { while events.next().await.is_some() {} });
    }
    followed.audited_every(audits).await;
    ready();
    followed.take_for(Duration::from_secs(2)).await;
    let stats = followed.stats().await;
    let before = Spent::now();
    let began = followed.now();
    let mut ages = Vec::new();
    let mut delivered = 0;
    let _ = timeout(window, async {
        while let Some(event) = followed.events.next().await {
            delivered += 1;
            if event.source == Source::Event
                && let Some(stamp) = event.runtime_stamp
            {
                ages.push(followed.clock.now().wall.0 - stamp.0);
            }
        }
    })
    .await;
    let seconds = followed.now().since(began).as_secs_f64();
    let spent = Spent::now().since(before);
    let later = followed.stats().await;
    let messages = float(later.reader.messages - stats.reader.messages);
    let mut ages: Vec<f64> = ages.into_iter().map(micros).collect();
    let mut figures = Figures::new();
    put(&mut figures, "p50", percentile(&mut ages, 0.5));
    put(&mut figures, "p99", percentile(&mut ages, 0.99));
    put(&mut figures, "worst", percentile(&mut ages, 1.0));
    put(&mut figures, "messages a second", messages / seconds);
    put(
        &mut figures,
        "delivered a second",
        f64::from(delivered) / seconds,
    );
    per_message(&mut figures, spent, messages);
    put(
        &mut figures,
        "share of a core",
        100.0 * spent.cpu.as_secs_f64() / seconds,
    );
    between(&mut figures, &stats, &later);
    put(&mut figures, "peak rss", resident("self").1);
    followed.pleg.shutdown().await;
    let mut bare = BareClient::over(bare_channel(task).await);
    let bare = limits::of_messages(&mut bare, &followed.clock, window / 2).await;
    let each = bare.cpu.as_secs_f64() * 1e6 / float(bare.delays.len() as u64);
    put(&mut figures, "bare stream", each);
    let mut delays: Vec<f64> = bare.delays.into_iter().map(micros).collect();
    put(&mut figures, "bare p50", percentile(&mut delays, 0.5));
    put(&mut figures, "bare p99", percentile(&mut delays, 0.99));
    figures
}

/// What else was done meanwhile.
fn between(figures: &mut Figures, earlier: &Stats, later: &Stats) {
    let relists = later.engine.counters.relists - earlier.engine.counters.relists;
    put(figures, "relists", float(relists));
    put(figures, "calls", calls(later) - calls(earlier));
    let dropped = later.reader.dropped - earlier.reader.dropped;
    put(figures, "dropped", float(dropped));
    let (later, earlier) = (&later.engine.counters, &earlier.engine.counters);
    let grown = |count: fn(&Counters) -> u64| float(count(later) - count(earlier));
    put(figures, "missed", grown(|it| it.missed.values().sum()));
    put(
        figures,
        "contradictions",
        grown(|it| it.contradictions.values().sum()),
    );
    put(figures, "ignored", grown(|it| it.ignored.values().sum()));
    put(figures, "unjudged", grown(|it| it.unjudged_absences));
    put(figures, "unsettled", grown(|it| it.unsettled_reads));
}

async fn burst(task: &Task, audits: Duration) -> Figures {
    let mut followed = Followed::begin(task, |builder| builder).await;
    followed.audited_every(audits).await;
    let stats = followed.stats().await;
    let before = Spent::now();
    ready();
    let first = within("a burst", followed.events.next()).await;
    let stamp = first.and_then(|event| event.runtime_stamp);
    let began = stamp.expect("an event told it").0;
    let mut last = followed.clock.now();
    let mut delivered = 1;
    let mut heard = 0;
    loop {
        match timeout(SILENCE, followed.events.next()).await {
            Ok(Some(event)) => {
                delivered += 1;
                if event.source == Source::Event {
                    last = followed.clock.now();
                }
            }
            Ok(None) => break,
            // Messages may come of which nothing is told.
            Err(_) => {
                let before = heard;
                heard = followed.stats().await.reader.messages;
                if heard == before {
                    break;
                }
            }
        }
    }
    let spent = Spent::now().since(before);
    let later = followed.stats().await;
    let messages = float(later.reader.messages - stats.reader.messages);
    let mut figures = Figures::new();
    put(
        &mut figures,
        "right after",
        micros(last.wall.0 - began) / 1e3,
    );
    put(&mut figures, "messages", messages);
    put(&mut figures, "delivered", f64::from(delivered));
    per_message(&mut figures, spent, messages);
    between(&mut figures, &stats, &later);
    put(&mut figures, "peak rss", resident("self").1);
    put(
        &mut figures,
        "wrong",
        float(wrong(task, &followed.pleg).await),
    );
    figures
}

fn per_message(figures: &mut Figures, spent: Spent, messages: f64) {
    put(
        figures,
        "cpu each",
        spent.cpu.as_secs_f64() * 1e6 / messages,
    );
    put(
        figures,
        "allocations each",
        float(spent.allocations) / messages,
    );
}

/// Containers of which the cache says something else than the runtime's list.
async fn wrong(task: &Task, pleg: &Pleg) -> u64 {
    let channel = bare_channel(task).await;
    let (_, containers) = BareClient::over(channel).lists().await;
    let list: cri::ListContainersResponse = prost::Message::decode(containers).expect("a list");
    let states = [
        ReportedState::Created,
        ReportedState::Running,
        ReportedState::Exited,
        ReportedState::Unknown,
    ];
    let mut listed: BTreeMap<String, Option<ReportedState>> = list
        .containers
        .into_iter()
        .map(|container| {
            let state = usize::try_from(container.state).ok();
            (container.id, state.and_then(|at| states.get(at).copied()))
        })
        .collect();
    let mut wrong = 0;
    for pod in pleg.cache().list() {
        for container in &pod.status.containers {
            let state = listed.remove(container.id.as_str()).flatten();
            wrong += u64::from(state != Some(container.state));
        }
    }
    wrong + listed.len() as u64
}

async fn newer(task: &Task, times: u32) -> Figures {
    let mut followed = Followed::begin(task, |builder| builder).await;
    followed.take_for(Duration::from_secs(2)).await;
    let pods = followed.pleg.cache().list();
    let uids: Vec<PodUid> = pods.iter().map(|pod| pod.status.pod.uid.clone()).collect();
    let mut figures = Figures::new();
    for (name, freshness) in [
        ("details", Freshness::Details),
        ("phases", Freshness::Phases),
    ] {
        let stats = followed.stats().await;
        let before = Spent::now();
        let mut waits = Vec::new();
        for uid in uids.iter().cycle().take(times as usize) {
            let began = followed.now();
            let mark: Mark = followed.pleg.mark().await.expect("the driver runs");
            let asked = followed.pleg.get_newer_than(uid.clone(), mark, freshness);
            let reading = within("a reading", asked).await.expect("the driver runs");
            assert!(reading.status.is_some(), "the pod is there");
            let waited = followed.now().since(began).as_secs_f64() * 1e6;
            waits.push(waited);
        }
        let spent = Spent::now().since(before);
        let rpcs = calls(&followed.stats().await) - calls(&stats);
        let each = f64::from(times);
        put(
            &mut figures,
            &format!("{name} p50"),
            percentile(&mut waits, 0.5),
        );
        put(
            &mut figures,
            &format!("{name} p99"),
            percentile(&mut waits, 0.99),
        );
        put(&mut figures, &format!("{name} rpcs"), rpcs / each);
        let cpu = spent.cpu.as_secs_f64() * 1e6 / each;
        put(&mut figures, &format!("{name} cpu"), cpu);
        let allocations = float(spent.allocations) / each;
        put(&mut figures, &format!("{name} allocations"), allocations);
    }
    let channel = bare_channel(task).await;
    let bare = BareClient::over(channel);
    let mut waits = bare.versions(&followed.clock, times).await;
    put(&mut figures, "one call", percentile(&mut waits, 0.5));
    figures
}

async fn bare_channel(task: &Task) -> tonic::transport::Channel {
    // What ended a moment ago is still taking itself apart.
    sleep(Duration::from_millis(100)).await;
    let text = format!("unix://{}", task.socket.display());
    let endpoint = tonic::transport::Endpoint::from_shared(text).expect("it is an endpoint");
    endpoint.connect().await.expect("the runtime is there")
}

/// Calls that have ended, without the heartbeats.
fn calls(stats: &Stats) -> f64 {
    let ended = stats.rpcs.iter();
    let counted = ended.filter(|((method, _), _)| *method != "Version");
    float(counted.map(|(_, count)| count).sum())
}

fn put(figures: &mut Figures, name: &str, figure: f64) {
    figures.insert(name.to_owned(), figure);
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn micros(nanos: i64) -> f64 {
    nanos as f64 / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}
