//! The shell alone, with a scripted machine in the engine's place, in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::engine::{
    Answer, Failure, FailureKind, Freshness, Health, HealthState, Input, Mode, ModeChange, Output,
    PollingReason, Question, Reading, RequestId, SessionId,
};
use crate::feed::{WatchError, WatchFrom};
use crate::lifecycle::{
    EventSubject, LifecycleEvent, LifecycleKind, Mark, Mono, Now, PodIdentity, PodStatus, PodUid,
    Revision, SeqPoint, Source, UnixNanos,
};
use crate::pleg::driver::{Machine, run};
use crate::pleg::{Driver, EngineStats, Pleg, Stopped};

/// What the machine was told, and when.
type Told = Arc<Mutex<Vec<(Mono, Input)>>>;

/// Answers each input with what the script says.
struct Scripted<F> {
    told: Told,
    outputs: std::collections::VecDeque<Output>,
    script: F,
    timeout: Option<Mono>,
    mode: Mode,
    count: u64,
}

impl<F: FnMut(&Input) -> Vec<Output>> Machine for Scripted<F> {
    fn handle(&mut self, now: Now, input: Input) {
        if input == Input::Wake && self.timeout.is_some_and(|at| at <= now.mono) {
            self.timeout = None;
        }
        let outputs = (self.script)(&input);
        for output in &outputs {
            if let Output::ModeChanged(change) = output {
                self.mode = change.to;
            }
        }
        self.outputs.extend(outputs);
        self.told.lock().unwrap().push((now.mono, input));
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.timeout
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn health(&self, _now: Now) -> Health {
        Health {
            state: HealthState::NotYetRelisted,
            mode: self.mode,
            last_relist_age: None,
            threshold: Duration::from_mins(3),
            last_event_age: None,
            stream_age: None,
            pending: None,
        }
    }

    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }

    fn mark(&mut self, now: Now) -> Mark {
        self.count += 1;
        Mark(SeqPoint {
            at: now.mono,
            count: self.count,
        })
    }
}

/// A running shell over a runtime that nobody answers for.
struct Shell {
    pleg: Pleg,
    told: Told,
    driver: JoinHandle<Result<(), crate::cri::StartError>>,
}

impl Shell {
    fn run(script: impl FnMut(&Input) -> Vec<Output> + Send + 'static) -> Self {
        Self::run_until(None, script)
    }

    fn run_until(
        timeout: Option<Mono>,
        script: impl FnMut(&Input) -> Vec<Output> + Send + 'static,
    ) -> Self {
        let nobody = tonic::transport::Endpoint::from_static("unix:///no/such/runtime.sock");
        let clock = Clock::starting_at(UnixNanos(0));
        let (pleg, inlets, outlets) = Pleg::builder()
            .channel(nobody.connect_lazy())
            .channel_capacity(10)
            .join(clock.clone(), Mode::Connecting)
            .expect("a runtime is named");
        let told = Told::default();
        let machine = Scripted {
            told: Arc::clone(&told),
            outputs: std::collections::VecDeque::new(),
            script,
            timeout,
            mode: Mode::Connecting,
            count: 0,
        };
        let driver = tokio::spawn(run(machine, clock, inlets, outlets));
        Self { pleg, told, driver }
    }

    fn told(&self) -> Vec<Input> {
        let told = self.told.lock().unwrap();
        told.iter().map(|(_, input)| input.clone()).collect()
    }
}

fn nothing(_: &Input) -> Vec<Output> {
    Vec::new()
}

fn uid() -> PodUid {
    "pod-1".into()
}

fn pod() -> PodIdentity {
    PodIdentity {
        uid: uid(),
        namespace: "ns".into(),
        name: "pod".into(),
    }
}

fn publish(revision: u64) -> Output {
    let status = PodStatus {
        pod: pod(),
        ips: Vec::new(),
        error: None,
        sandboxes: Vec::new(),
        containers: Vec::new(),
        revision: Revision(revision),
    };
    Output::Publish {
        uid: uid(),
        revision: Revision(revision),
        status: Some(Arc::new(status)),
    }
}

fn deliver(revision: u64) -> Output {
    Output::Deliver(Arc::new(LifecycleEvent {
        kind: LifecycleKind::ContainerStarted,
        revision: Revision(revision),
        pod: pod(),
        subject: Some(EventSubject::Container {
            id: format!("c{revision}").into(),
            name: "main".into(),
            attempt: 0,
        }),
        exit: None,
        source: Source::Relist,
        initial: false,
        runtime_stamp: None,
        seen_at: UnixNanos(0),
        born: Revision(revision),
    }))
}

fn to_polling() -> ModeChange {
    ModeChange {
        from: Mode::Connecting,
        to: Mode::Polling {
            reason: PollingReason::Unsupported,
        },
        cause: "unknown method".into(),
        at: UnixNanos(1),
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_shows_a_change_before_anybody_is_told_of_it() {
    let mut revision = 0;
    let shell = Shell::run(move |input| match input {
        Input::RequestRelist { .. } => {
            revision += 1;
            vec![publish(revision), deliver(revision)]
        }
        _ => Vec::new(),
    });
    let mut events = shell.pleg.watch(WatchFrom::Now).unwrap();
    for _ in 0..20 {
        shell.pleg.request_relist(uid()).await.unwrap();
        let event = events.next().await.unwrap();
        let cached = shell.pleg.cache().get(&uid()).unwrap();
        assert!(cached.status.revision >= event.revision);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_was_answered_finds_the_events_before_the_answer_in_the_feed() {
    let shell = Shell::run(|input| match input {
        Input::Read { reader, .. } => vec![
            publish(1),
            deliver(1),
            Output::Answer {
                reader: *reader,
                reading: Reading {
                    status: None,
                    observed: Mark::default(),
                },
            },
        ],
        _ => Vec::new(),
    });
    let mut events = shell.pleg.watch(WatchFrom::Now).unwrap();
    let mark = shell.pleg.mark().await.unwrap();
    let reading = shell
        .pleg
        .get_newer_than(uid(), mark, Freshness::Phases)
        .await
        .unwrap();
    assert_eq!(reading.status, None);
    assert!(events.try_next().is_some());
    // It was answered, so there is nothing to take back.
    shell.pleg.mark().await.unwrap();
    let cancelled = |input: &Input| matches!(input, Input::CancelRead { .. });
    assert!(!shell.told().iter().any(cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_gives_up_takes_its_wish_back_once() {
    let shell = Shell::run(nothing);
    let reading = shell
        .pleg
        .get_newer_than(uid(), Mark::default(), Freshness::Details);
    let given_up = tokio::time::timeout(Duration::from_secs(5), reading).await;
    assert!(given_up.is_err());
    shell.pleg.mark().await.unwrap();
    let told = shell.told();
    let [
        Input::Start,
        Input::Read { reader, .. },
        Input::CancelRead { reader: cancelled },
    ] = told.as_slice()
    else {
        panic!("{told:?}");
    };
    assert_eq!(reader, cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_gave_up_before_its_wish_was_taken_is_never_heard_of() {
    let shell = Shell::run(nothing);
    {
        let reading = shell
            .pleg
            .get_newer_than(uid(), Mark::default(), Freshness::Details);
        tokio::pin!(reading);
        // Asked, but the driver has not had its turn.
        assert!(futures::poll!(&mut reading).is_pending());
    }
    shell.pleg.mark().await.unwrap();
    assert_eq!(shell.told(), [Input::Start]);
}

#[tokio::test(start_paused = true)]
async fn the_machine_is_woken_at_the_moment_that_it_named() {
    let at = Mono(7_000_000_000);
    let shell = Shell::run_until(Some(at), nothing);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let told = shell.told.lock().unwrap().clone();
    assert_eq!(told, [(Mono(0), Input::Start), (at, Input::Wake)]);
}

/// A process that was stopped and continued: the timers are due at once, and what the stream brought
/// meanwhile is still in the socket. A relist that began now would make it stale.
#[tokio::test(start_paused = true)]
async fn after_the_process_was_held_up_the_stream_is_read_before_the_machine_is_woken() {
    let due = Mono(7_000_000_000);
    let shell = Shell::run_until(Some(due), nothing);
    tokio::time::sleep(Duration::from_secs(1)).await;
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::sleep(Duration::from_millis(99)).await;
    assert_eq!(shell.told(), [Input::Start]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let told = shell.told.lock().unwrap().clone();
    assert_eq!(told[1..], [(Mono(11_100_000_000), Input::Wake)]);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_ready_together_are_taken_in_the_order_of_their_numbers() {
    let shell = Shell::run(|input| match input {
        // Numbered against the order in which they become ready, so that only the number can tell.
        Input::Start => (1..=40)
            .rev()
            .map(|request| Output::Ask {
                request: RequestId(request),
                question: Question::Version,
            })
            .collect(),
        _ => Vec::new(),
    });
    while shell.told().len() < 41 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answered: Vec<u64> = shell
        .told()
        .into_iter()
        .filter_map(|input| match input {
            Input::Answered {
                request,
                answer:
                    Answer::Version(Err(Failure {
                        kind: FailureKind::Unavailable,
                        ..
                    })),
            } => Some(request.0),
            _ => None,
        })
        .collect();
    assert_eq!(answered, (1..=40).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_opened_is_told_as_broken_with_its_session() {
    let shell = Shell::run(|input| match input {
        Input::Start => vec![Output::OpenStream {
            session: SessionId(3),
        }],
        _ => Vec::new(),
    });
    while shell.told().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let told = shell.told();
    assert!(
        matches!(
            &told[1],
            Input::StreamEnded {
                session: SessionId(3),
                ..
            }
        ),
        "{told:?}"
    );
    assert_eq!(shell.pleg.stats().await.unwrap().reader.sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_never_reads_holds_nobody_up_and_stays_bounded() {
    let mut revision = 0;
    let shell = Shell::run(move |input| match input {
        Input::RequestReinspect { .. } => {
            revision += 1;
            let Output::Deliver(mut event) = deliver(revision) else {
                unreachable!()
            };
            let sync = Arc::make_mut(&mut event);
            sync.kind = LifecycleKind::PodSync;
            sync.subject = None;
            vec![publish(revision), Output::Deliver(event)]
        }
        _ => Vec::new(),
    });
    let sleeper = shell.pleg.watch(WatchFrom::Now).unwrap();
    let mut reader = shell.pleg.watch(WatchFrom::Now).unwrap();
    for _ in 0..1_000 {
        shell.pleg.request_reinspect(uid()).await.unwrap();
        assert!(reader.try_next().is_some());
    }
    assert_eq!(sleeper.stats().lag, 11);
    let stats = shell.pleg.stats().await.unwrap().feed;
    assert_eq!((stats.published, stats.totals.folded), (1_000, 989));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_mode_reaches_those_who_watch_and_those_who_ask() {
    let shell = Shell::run(|input| match input {
        Input::RequestRelist { uid: None } => vec![Output::ModeChanged(to_polling())],
        _ => Vec::new(),
    });
    let mut modes = shell.pleg.modes();
    assert_eq!(shell.pleg.mode(), Mode::Connecting);
    shell.pleg.request_full_relist().await.unwrap();
    assert_eq!(modes.next().await, Some(to_polling()));
    assert_eq!(shell.pleg.mode(), to_polling().to);
    let health = shell.pleg.health().await.unwrap();
    assert_eq!(health.mode, to_polling().to);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_relist_waits_for_one_that_began_late_enough() {
    let mark = |count| Mark(SeqPoint { at: Mono(0), count });
    let mut begun = 0;
    let shell = Shell::run(move |input| match input {
        Input::RequestRelist { uid: None } => {
            begun += 10;
            vec![Output::ObservedAll {
                mark: mark(begun),
                except: std::collections::BTreeSet::new(),
            }]
        }
        _ => Vec::new(),
    });
    let pleg = shell.pleg.clone();
    let waiting = tokio::spawn(async move { pleg.relisted_since(mark(15)).await });
    shell.pleg.request_full_relist().await.unwrap();
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    shell.pleg.request_full_relist().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(mark(20)));
    assert_eq!(shell.pleg.cache().observed_all(), Some(mark(20)));
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_nothing_is_asked_nothing_delivered_and_nobody_waits() {
    let shell = Shell::run(|input| match input {
        Input::Start => vec![
            publish(1),
            deliver(1),
            Output::OpenStream {
                session: SessionId(1),
            },
        ],
        _ => Vec::new(),
    });
    let events = shell.pleg.watch(WatchFrom::Snapshot).unwrap();
    shell.pleg.mark().await.unwrap();
    let modes = shell.pleg.modes();
    let reader = shell.pleg.clone();
    let waiting = tokio::spawn(async move {
        reader
            .get_newer_than(uid(), Mark::default(), Freshness::Phases)
            .await
    });
    tokio::task::yield_now().await;

    tokio::join!(shell.pleg.shutdown(), shell.pleg.shutdown());
    assert_eq!(waiting.await.unwrap(), Err(Stopped));
    assert!(shell.driver.await.unwrap().is_ok());
    // What had been delivered is still there to be taken, then the stream ends.
    assert_eq!(events.count().await, 1);
    assert_eq!(modes.count().await, 0);
    assert_eq!(shell.pleg.modes().count().await, 0);
    assert_eq!(shell.pleg.mark().await, Err(Stopped));
    assert_eq!(
        shell.pleg.relisted_since(Mark::default()).await,
        Err(Stopped)
    );
    assert_eq!(
        shell.pleg.watch(WatchFrom::Now).err(),
        Some(WatchError::Stopped)
    );
    shell.pleg.shutdown().await;
    assert_eq!(
        shell.told.lock().unwrap().last().unwrap().1,
        Input::Shutdown
    );
    // The cache stays readable.
    assert!(shell.pleg.cache().contains(&uid()));
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_dropped_leaves_nobody_waiting() {
    let shell = Shell::run(nothing);
    let mut events = shell.pleg.watch(WatchFrom::Now).unwrap();
    shell.pleg.mark().await.unwrap();
    shell.driver.abort();
    assert_eq!(events.next().await, None);
    assert_eq!(shell.pleg.mark().await, Err(Stopped));
    shell.pleg.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions_live_on_when_every_handle_is_gone() {
    let shell = Shell::run_until(Some(Mono(5_000_000_000)), |input| match input {
        Input::Wake => vec![publish(1), deliver(1)],
        _ => Vec::new(),
    });
    let mut events = shell.pleg.watch(WatchFrom::Now).unwrap();
    drop(shell.pleg);
    let event = events.next().await.unwrap();
    assert_eq!(event.revision, Revision(1));
    assert!(!shell.driver.is_finished());
}

#[test]
fn handles_and_drivers_go_where_the_embedder_wants_them() {
    fn goes_anywhere<T: Send + Sync + 'static>() {}
    fn can_be_spawned(
        _: impl Future<Output = Result<(), crate::cri::StartError>> + Send + 'static,
    ) {
    }
    goes_anywhere::<Pleg>();
    goes_anywhere::<crate::feed::Subscription>();
    let _ = |driver: Driver| can_be_spawned(driver.run());
}
