//! A generator in front of a simulated runtime, with subscribers that count; and the line that says
//! what a case cost.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use pleg::clock::Clock;
use pleg::feed::WatchFrom;
use pleg::lifecycle::{LifecycleKind, Mark, UnixNanos};
use pleg::simulate::{Builder as Runtime, Character, SimulatedRuntime};
use pleg::{Builder, Pleg};
use tokio::task::JoinHandle;

const EPOCH: UnixNanos = UnixNanos(1_700_000_000_000_000_000);

/// One at a time, so that memory is each case's own.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) fn is_full() -> bool {
    std::env::var("PLEG_LOAD").is_ok_and(|form| form == "full")
}

/// The line of a case.
pub(crate) struct Case {
    line: String,
    began: Instant,
    resident: u64,
}

/// Plays a case in virtual time, on one thread.
pub(crate) fn play(name: &str, case: impl AsyncFnOnce(&mut Case)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The peak is then this case's.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    #[expect(clippy::disallowed_methods, reason = "says how long the case took")]
    let began = Instant::now();
    let mut line = Case {
        line: format!("{name:28}"),
        began,
        resident: memory("VmRSS"),
    };
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    tokio.block_on(case(&mut line));
}

impl Case {
    pub(crate) fn note(&mut self, what: &str, value: impl Display) {
        let _ = write!(self.line, " {what} {value};");
    }

    pub(crate) async fn finish(&mut self, bed: &Bed) {
        let stats = bed.pleg.stats().await.unwrap();
        let held = stats.reader.most_bytes / 1_000;
        let folds = stats.feed.totals.folded;
        let delay = bed
            .counts
            .first()
            .map_or(0, |first| first.longest.load(Ordering::Relaxed));
        println!(
            "{} folds {folds}; delay at most {delay} ms on the node; inbox at most {held} kB; \
             memory {} MB before, {} MB at most; {:.1} s",
            self.line,
            self.resident / 1_000,
            memory("VmHWM") / 1_000,
            self.began.elapsed().as_secs_f64()
        );
    }
}

/// Of this process, in kB; 0 where there is no /proc.
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// What one subscriber heard.
#[derive(Default)]
struct Counts {
    kinds: [AtomicUsize; 4],
    /// The longest from a message's stamp to its delivery, in milliseconds of the node's time.
    longest: AtomicUsize,
}

impl Counts {
    fn all(&self) -> usize {
        let kinds = self.kinds.iter();
        kinds.map(|kind| kind.load(Ordering::Relaxed)).sum()
    }
}

pub(crate) struct Bed {
    pub(crate) runtime: SimulatedRuntime,
    pub(crate) pleg: Pleg,
    driver: Option<JoinHandle<()>>,
    clock: Clock,
    counts: Vec<Arc<Counts>>,
}

impl Bed {
    /// A runtime that is followed, after the first relist.
    pub(crate) async fn new(character: Character, build: impl FnOnce(Runtime) -> Runtime) -> Self {
        let mut bed = Self::unfollowed(character, build);
        bed.follow(|builder| builder).await;
        bed
    }

    /// A runtime that nobody follows yet.
    pub(crate) fn unfollowed(character: Character, build: impl FnOnce(Runtime) -> Runtime) -> Self {
        let clock = Clock::starting_at(EPOCH);
        let of_runtime = clock.clone();
        let builder = SimulatedRuntime::builder()
            .character(character)
            .clock(move || of_runtime.now())
            .history(Duration::ZERO)
            .seed(7);
        let runtime = build(builder).build();
        // Replaced as soon as it is followed.
        let (pleg, _) = Pleg::builder().channel(runtime.channel()).build().unwrap();
        Self {
            runtime,
            pleg,
            driver: None,
            clock,
            counts: Vec::new(),
        }
    }

    /// Starts the generator, with one subscriber.
    pub(crate) fn begin(&mut self, build: impl FnOnce(Builder) -> Builder) {
        let runtime = self.runtime.clone();
        let builder = Pleg::builder()
            .connector(move || runtime.channel())
            .stream_thread(false)
            .clock(self.clock.clone())
            .seed(1);
        let (pleg, driver) = build(builder).build().unwrap();
        self.pleg = pleg;
        self.listen();
        self.driver = Some(tokio::spawn(async move { driver.run().await.unwrap() }));
    }

    /// The same, and waits for the first relist.
    pub(crate) async fn follow(&mut self, build: impl FnOnce(Builder) -> Builder) {
        self.begin(build);
        self.pleg.relisted_since(Mark::default()).await.unwrap();
    }

    /// One more subscriber that reads all it is told.
    pub(crate) fn listen(&mut self) {
        let counts = Arc::new(Counts::default());
        self.counts.push(Arc::clone(&counts));
        let mut events = self.pleg.watch(WatchFrom::Now).unwrap();
        let clock = self.clock.clone();
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if let Some(count) = counts.kinds.get(event.kind as usize) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                if let Some(stamp) = event.runtime_stamp {
                    let delay = (clock.now().wall.0 - stamp.0) / 1_000_000;
                    let delay = usize::try_from(delay).unwrap_or(0);
                    counts.longest.fetch_max(delay, Ordering::Relaxed);
                }
            }
        });
    }

    /// Lets the time pass.
    pub(crate) async fn settle(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// A container is made, runs, ends and is removed: four messages.
    pub(crate) async fn live_and_die(&mut self, number: usize) {
        let sandbox = self.runtime.world(|world| {
            let sandboxes = world.sandboxes().count().max(1);
            world
                .sandboxes()
                .nth(number % sandboxes)
                .map(|sandbox| sandbox.id.clone())
        });
        let id = self
            .runtime
            .run_container(&sandbox.unwrap(), "job")
            .unwrap();
        self.runtime.exit_container(&id, 1).unwrap();
        self.runtime.remove_container(&id).unwrap();
        self.runtime.unblocked().await;
    }

    /// How many events of a kind the first subscriber heard.
    pub(crate) fn told(&self, kind: LifecycleKind) -> usize {
        let first = self.counts.first();
        first.map_or(0, |first| {
            first.kinds[kind as usize].load(Ordering::Relaxed)
        })
    }

    /// How many events it heard in all.
    pub(crate) fn heard(&self) -> usize {
        self.counts.first().map_or(0, |first| first.all())
    }

    pub(crate) fn heard_by_each(&self) -> Vec<usize> {
        self.counts.iter().map(|counts| counts.all()).collect()
    }

    /// Each container is shown as it is, and no other.
    pub(crate) fn assert_converged(&self) {
        let mut shown: Vec<_> = Vec::new();
        for pod in self.pleg.cache().list() {
            let containers = pod.status.containers.iter();
            shown.extend(containers.map(|container| (container.id.clone(), container.state)));
        }
        shown.sort();
        let mut real: Vec<_> = self.runtime.world(|world| {
            let containers = world.containers();
            containers
                .map(|container| (container.id.clone(), container.state))
                .collect()
        });
        real.sort();
        assert!(shown == real, "{} shown, {} real", shown.len(), real.len());
    }

    /// The reader took every message as it came, and the runtime had to drop and to block nothing.
    pub(crate) async fn assert_nothing_lost(&self) {
        assert_eq!(self.runtime.blocked_producers(), 0);
        let runtime = self.runtime.event_counts();
        assert_eq!(
            (runtime.dropped, runtime.expired, runtime.swallowed),
            (0, 0, 0)
        );
        let reader = self.pleg.stats().await.unwrap().reader;
        assert_eq!(
            (reader.dropped, reader.overflows, reader.garbage),
            (0, 0, 0)
        );
        assert_eq!(reader.messages, runtime.sent, "the reader is behind");
    }
}
