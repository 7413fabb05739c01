//! Each kind of finding by the fault that causes it, and runs without any, in virtual time against the
//! simulated runtime.

use std::future::Future;

use super::*;
use crate::lifecycle::{EventKind, SubjectKind, UnixNanos};
use crate::simulate::{Character, Fault, Pod, RawEvent, Rpc, Stamps, StreamFault};
use crate::verify::FindingKind;
use tonic::Code;

const NOON: i64 = 1_800_000_000_000_000_000;
const LASTING: Duration = Duration::from_secs(30);
const CONTAINER: SubjectKind = SubjectKind::Container;
const SANDBOX: SubjectKind = SubjectKind::Sandbox;

struct Bench {
    runtime: SimulatedRuntime,
    clock: Clock,
}

impl Bench {
    fn new(character: Character) -> Self {
        Self::of(SimulatedRuntime::builder().character(character))
    }

    fn of(simulation: crate::simulate::Builder) -> Self {
        let clock = Clock::starting_at(UnixNanos(NOON));
        let its = clock.clone();
        let runtime = simulation.clock(move || its.now()).build();
        Self { runtime, clock }
    }

    /// An audit of half a minute while the story is told.
    async fn audited(&self, story: impl Future<Output = ()>) -> Report {
        let client = CriClient::new(self.runtime.channel(), CallLimits::default());
        let version = client.version().await.unwrap();
        let source = StreamSource::Channel(self.runtime.channel());
        let audit = Audit::by(self.clock.clone(), client, source, version).unwrap();
        let (report, ()) = tokio::join!(audit.run(LASTING, pending()), story);
        report.unwrap()
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// From the third second on, four pods, one after the other: each phase lasts two seconds.
async fn lives(runtime: &SimulatedRuntime) {
    let life = async |number: u64| {
        seconds(3 + number).await;
        let pod = Pod::new(runtime.new_pod_uid(), "shop", "web");
        let sandbox = runtime.run_sandbox(pod);
        seconds(2).await;
        let app = runtime.create_container(&sandbox, "app").unwrap();
        seconds(2).await;
        runtime.start_container(&app).unwrap();
        seconds(2).await;
        runtime.exit_container(&app, 7).unwrap();
        seconds(2).await;
        runtime.remove_container(&app).unwrap();
        seconds(2).await;
        runtime.stop_sandbox(&sandbox).unwrap();
        seconds(2).await;
        runtime.remove_sandbox(&sandbox).unwrap();
    };
    tokio::join!(life(0), life(1), life(2), life(3));
}

fn kinds(report: &Report) -> Vec<FindingKind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// Lives under one fault of the stream, on containerd 2.
async fn lives_with(fault: StreamFault) -> Report {
    let bench = Bench::new(Character::containerd_2());
    bench.runtime.inject_stream(fault);
    bench.audited(lives(&bench.runtime)).await
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_tells_everything_passes_without_a_finding() {
    for character in [Character::containerd_2(), Character::containerd_1_7()] {
        let bench = Bench::new(character);
        let report = bench.audited(lives(&bench.runtime)).await;
        assert_eq!(report.findings, [], "{report:#?}");
        assert_eq!(report.verdict, Verdict::Passed);
        assert_eq!(report.events.len(), 8);
        for row in &report.events {
            assert_eq!((row.tally.delivered, row.tally.proven), (4, 4), "{row:?}");
        }
        assert!(report.lists >= 30, "{}", report.lists);
        assert!(report.lasted < LASTING + Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_of_any_kind_is_accused_of_nothing() {
    for character in [
        Character::containerd_1_7(),
        Character::containerd_2().with_latency(Duration::from_millis(300)),
        Character::cri_o(),
    ] {
        for seed in 1..=2 {
            let simulation = SimulatedRuntime::builder().busy_node().churn(30.0);
            let bench = Bench::of(simulation.character(character.clone()).seed(seed));
            let churn = async {
                let enough = tokio::time::sleep(LASTING * 2);
                tokio::select! {
                    biased;
                    () = enough => {}
                    _ = bench.runtime.churn() => {}
                }
            };
            let report = bench.audited(churn).await;
            assert_eq!(report.verdict, Verdict::Passed, "seed {seed}: {report:#?}");
            for finding in &report.findings {
                let expected = matches!(finding.kind, FindingKind::KnownGap);
                assert!(expected, "seed {seed}: {finding:?}");
            }
            let proven: u64 = report.events.iter().map(|row| row.tally.proven).sum();
            assert!(proven > 500, "seed {seed}: {proven}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cri_o_never_tells_is_shown_and_no_failure() {
    let bench = Bench::new(Character::cri_o());
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(kinds(&report), [FindingKind::KnownGap], "{report:#?}");
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.tally(SANDBOX, EventKind::Created).not_sent, 4);
    assert_eq!(report.tally(SANDBOX, EventKind::Deleted).not_sent, 4);
    assert_eq!(report.tally(CONTAINER, EventKind::Deleted).not_sent, 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_that_cri_o_usually_tells_is_a_loss() {
    let bench = Bench::new(Character::cri_o());
    let lost = StreamFault::lose().of_kind(EventKind::Deleted).times(1);
    bench.runtime.inject_stream(lost);
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(report.verdict, Verdict::Lost, "{report:#?}");
    assert_eq!(report.tally(CONTAINER, EventKind::Deleted).missing, 1);
}

#[tokio::test(start_paused = true)]
async fn each_event_that_is_lost_is_missing() {
    for kind in [
        EventKind::Created,
        EventKind::Started,
        EventKind::Stopped,
        EventKind::Deleted,
    ] {
        let report = lives_with(StreamFault::lose().of_kind(kind)).await;
        assert_eq!(kinds(&report), [FindingKind::Missing], "{report:#?}");
        assert_eq!(report.verdict, Verdict::Lost);
        for row in &report.events {
            let lost = if row.event == kind { 4 } else { 0 };
            assert_eq!(row.tally.missing, lost, "{row:?}");
            assert_eq!(row.tally.proven, 4, "{row:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_mute_stream_has_lost_everything_and_nobody_stole_it() {
    let bench = Bench::new(Character::containerd_1_7());
    bench.runtime.set_muted(true);
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(kinds(&report), [FindingKind::Missing], "{report:#?}");
    assert_eq!(report.verdict, Verdict::Lost);
    assert_eq!(report.messages, 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_no_list_saw_is_proven_by_the_end_that_was_told() {
    let bench = Bench::new(Character::containerd_2());
    let lost = StreamFault::lose().of_kind(EventKind::Started);
    let report = bench
        .audited(async {
            let pod = bench.runtime.run_pod("shop", "web", &[]);
            seconds(5).await;
            bench.runtime.inject_stream(lost);
            // Began and ended between two lists.
            let app = bench.runtime.run_container(&pod.sandbox, "job").unwrap();
            bench.runtime.exit_container(&app, 0).unwrap();
            bench.runtime.remove_container(&app).unwrap();
        })
        .await;
    assert_eq!(kinds(&report), [FindingKind::Missing], "{report:#?}");
    assert_eq!(report.tally(CONTAINER, EventKind::Started).missing, 1);
    assert_eq!(report.tally(CONTAINER, EventKind::Created).proven, 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_failed_owes_no_event() {
    let bench = Bench::new(Character::containerd_2());
    let report = bench
        .audited(async {
            seconds(3).await;
            let pod = bench.runtime.run_pod("shop", "web", &[]);
            seconds(3).await;
            let app = bench.runtime.create_container(&pod.sandbox, "app").unwrap();
            bench.runtime.fail_start(&app).unwrap();
        })
        .await;
    assert_eq!(report.findings, [], "{report:#?}");
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.tally(CONTAINER, EventKind::Stopped).proven, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_owes_nothing_of_its_past() {
    let bench = Bench::new(Character::containerd_2());
    bench.runtime.set_muted(true);
    let pod = bench.runtime.run_pod("shop", "web", &["app"]);
    bench.runtime.set_muted(false);
    let report = bench
        .audited(async {
            seconds(5).await;
            bench.runtime.exit_container(&pod.containers[0], 0).unwrap();
        })
        .await;
    assert_eq!(report.findings, [], "{report:#?}");
    let [row] = &report.events[..] else {
        panic!("{report:#?}")
    };
    assert_eq!((row.event, row.tally.proven), (EventKind::Stopped, 1));
}

#[tokio::test(start_paused = true)]
async fn a_second_client_of_one_queue_is_called_by_its_name() {
    let bench = Bench::new(Character::containerd_1_7());
    let thief = CriClient::new(bench.runtime.channel(), CallLimits::default());
    let stealing = tokio::spawn(async move {
        let mut events = thief.events().await.unwrap();
        while let Ok(Some(_)) = events.next().await {}
    });
    let report = bench.audited(lives(&bench.runtime)).await;
    stealing.abort();
    assert_eq!(kinds(&report), [FindingKind::SecondConsumer], "{report:#?}");
    assert_eq!(report.verdict, Verdict::Lost);
    let advice = &report.findings[0].advice;
    assert!(
        advice.starts_with("a second client takes events"),
        "{advice}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_client_of_containerd_2_harms_nobody() {
    let bench = Bench::new(Character::containerd_2());
    let other = CriClient::new(bench.runtime.channel(), CallLimits::default());
    let listening = tokio::spawn(async move {
        let mut events = other.events().await.unwrap();
        while let Ok(Some(_)) = events.next().await {}
    });
    let report = bench.audited(lives(&bench.runtime)).await;
    listening.abort();
    assert_eq!(report.findings, [], "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn late_messages_are_late_and_not_missing() {
    let delay = StreamFault::delay(Duration::from_secs(4)).of_kind(EventKind::Stopped);
    let report = lives_with(delay).await;
    assert!(report.finds(FindingKind::Late), "{report:#?}");
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.tally(CONTAINER, EventKind::Stopped).late, 4);
    assert_eq!(report.tally(SANDBOX, EventKind::Stopped).late, 4);
    assert_eq!(report.tally(SANDBOX, EventKind::Started).late, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_is_repeated() {
    let report = lives_with(StreamFault::duplicate().of_kind(EventKind::Started)).await;
    assert_eq!(kinds(&report), [FindingKind::Repeated], "{report:#?}");
    assert_eq!(report.tally(CONTAINER, EventKind::Started).repeated, 4);
    assert_eq!(report.tally(CONTAINER, EventKind::Started).delivered, 4);
    assert_eq!(report.verdict, Verdict::Passed);
}

#[tokio::test(start_paused = true)]
async fn a_started_behind_its_stopped_is_out_of_order() {
    let bench = Bench::new(Character::containerd_2());
    let report = bench
        .audited(async {
            let pod = bench.runtime.run_pod("shop", "web", &[]);
            seconds(5).await;
            let app = bench.runtime.create_container(&pod.sandbox, "job").unwrap();
            bench
                .runtime
                .inject_stream(StreamFault::behind(1).of_kind(EventKind::Started).times(1));
            bench.runtime.start_container(&app).unwrap();
            bench.runtime.exit_container(&app, 0).unwrap();
        })
        .await;
    assert_eq!(kinds(&report), [FindingKind::OutOfOrder], "{report:#?}");
    assert_eq!(report.tally(CONTAINER, EventKind::Started).out_of_order, 1);
    assert_eq!(report.verdict, Verdict::Passed);
}

/// The last honest message of a kind, bent and sent instead of it.
async fn one_bent_message(kind: EventKind, bend: impl Fn(&mut RawEvent)) -> Report {
    let bench = Bench::new(Character::containerd_2());
    bench
        .audited(async {
            let runtime = &bench.runtime;
            let pod = runtime.run_pod("shop", "web", &[]);
            seconds(5).await;
            let withheld = runtime.inject_stream(StreamFault::lose().of_kind(kind));
            let app = runtime.run_container(&pod.sandbox, "job").unwrap();
            runtime.exit_container(&app, 0).unwrap();
            runtime.lift(withheld);
            let honest = runtime.message_about(kind, app.as_str()).unwrap();
            let mut event = RawEvent::from(&honest);
            bend(&mut event);
            runtime.emit_raw(event);
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn a_stopped_that_shows_its_container_running_is_contradictory() {
    let running = |event: &mut RawEvent| event.containers_statuses[0].state = 1;
    let report = one_bent_message(EventKind::Stopped, running).await;
    assert_eq!(kinds(&report), [FindingKind::Contradictory], "{report:#?}");
    assert_eq!(report.tally(CONTAINER, EventKind::Stopped).contradictory, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_its_snapshot_is_told_as_that() {
    let without = |event: &mut RawEvent| event.containers_statuses.clear();
    let report = one_bent_message(EventKind::Stopped, without).await;
    assert_eq!(
        kinds(&report),
        [FindingKind::WithoutSnapshot],
        "{report:#?}"
    );
    let without = |event: &mut RawEvent| event.pod_sandbox_status = None;
    let report = one_bent_message(EventKind::Stopped, without).await;
    assert_eq!(
        kinds(&report),
        [FindingKind::WithoutSnapshot],
        "{report:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_type_of_the_future_is_no_loss_by_itself() {
    let future = |event: &mut RawEvent| event.container_event_type = 9;
    let report = one_bent_message(EventKind::Stopped, future).await;
    assert!(report.finds(FindingKind::UnknownTypes), "{report:#?}");
    // The STOPPED that it was made of did not come.
    assert_eq!(report.tally(CONTAINER, EventKind::Stopped).missing, 1);
}

#[tokio::test(start_paused = true)]
async fn stamps_of_a_wrong_unit_are_absurd_and_their_messages_are_heard() {
    let bench = Bench::new(Character::containerd_2());
    bench.runtime.set_stamps(Stamps::Seconds);
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(kinds(&report), [FindingKind::AbsurdStamps], "{report:#?}");
    assert_eq!(report.findings[0].count, 32);
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.latency_ms.from_stamp, None);
}

#[tokio::test(start_paused = true)]
async fn bytes_and_ids_that_say_nothing_are_unreadable() {
    let bench = Bench::new(Character::containerd_2());
    let report = bench
        .audited(async {
            tokio::join!(lives(&bench.runtime), async {
                seconds(4).await;
                bench.runtime.emit_bytes(&b"\xff\xff\xff"[..]);
                bench.runtime.emit_raw(RawEvent {
                    container_id: "nobody".to_owned(),
                    created_at: bench.runtime.now().0,
                    ..RawEvent::default()
                });
            });
        })
        .await;
    assert_eq!(kinds(&report), [FindingKind::Unreadable], "{report:#?}");
    assert_eq!(report.findings[0].count, 2);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_told_and_nothing_in_it_is_judged() {
    let bench = Bench::new(Character::containerd_1_7());
    let gone = bench.runtime.run_pod("shop", "gone", &["app"]);
    bench.runtime.stop_sandbox(&gone.sandbox).unwrap();
    bench.runtime.remove_sandbox(&gone.sandbox).unwrap();
    seconds(400).await;
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(kinds(&report), [FindingKind::Backlog], "{report:#?}");
    assert_eq!(report.findings[0].count, 8);
    let advice = &report.findings[0].advice;
    assert!(advice.contains("by 400.0 s at most"), "{advice}");
    assert_eq!(report.tally(SANDBOX, EventKind::Deleted).delivered, 4);
}

#[tokio::test(start_paused = true)]
async fn what_happens_across_a_break_is_not_held_against_the_stream() {
    let bench = Bench::new(Character::containerd_2());
    let report = bench
        .audited(async {
            let pod = bench.runtime.run_pod("shop", "web", &["app"]);
            seconds(5).await;
            bench.runtime.set_up(false);
            bench.runtime.exit_container(&pod.containers[0], 1).unwrap();
            seconds(3).await;
            bench.runtime.set_up(true);
            seconds(10).await;
            bench.runtime.stop_sandbox(&pod.sandbox).unwrap();
        })
        .await;
    assert_eq!(kinds(&report), [FindingKind::StreamBroke], "{report:#?}");
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.tally(CONTAINER, EventKind::Stopped).proven, 0);
    assert_eq!(report.tally(SANDBOX, EventKind::Stopped).proven, 1);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_without_events_is_told_at_once_and_in_plain_words() {
    for (character, words) in [
        (Character::containerd_1_6(), "has events from 1.7 on"),
        (Character::cri_o_events_off(), "enable_pod_events = true"),
    ] {
        let bench = Bench::new(character);
        let report = bench.audited(async {}).await;
        assert_eq!(kinds(&report), [FindingKind::NoEvents], "{report:#?}");
        assert_eq!(report.verdict, Verdict::CannotTell);
        assert!(report.lasted < Duration::from_secs(5), "{report:#?}");
        let advice = &report.findings[0].advice;
        assert!(advice.contains("has no events to audit"), "{advice}");
        assert!(advice.contains(words), "{advice}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_at_rest_gives_no_verdict() {
    let bench = Bench::new(Character::containerd_2());
    bench.runtime.run_pod("shop", "web", &["app"]);
    let report = bench.audited(async {}).await;
    assert_eq!(
        kinds(&report),
        [FindingKind::NothingHappened],
        "{report:#?}"
    );
    assert_eq!(report.verdict, Verdict::CannotTell);
    assert!(report.findings[0].advice.contains("--for 10m"));
}

#[tokio::test(start_paused = true)]
async fn without_lists_or_without_a_stream_there_is_no_verdict() {
    let bench = Bench::new(Character::containerd_2());
    bench
        .runtime
        .inject(Fault::fail(Rpc::ListContainers, Code::Internal).message("disk full"));
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(kinds(&report), [FindingKind::ListsFailed], "{report:#?}");
    assert!(report.findings[0].advice.contains("disk full"));
    assert_eq!(report.verdict, Verdict::CannotTell);

    let bench = Bench::new(Character::containerd_2());
    let never = Fault::fail(Rpc::GetContainerEvents, Code::Unavailable).message("not ready");
    bench.runtime.inject(never);
    let report = bench.audited(lives(&bench.runtime)).await;
    assert_eq!(kinds(&report), [FindingKind::NoStream], "{report:#?}");
    assert!(report.findings[0].advice.contains("not ready"));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_steps_is_told_and_accuses_nobody() {
    for step in [-100, 100] {
        let bench = Bench::new(Character::containerd_2());
        let report = bench
            .audited(async {
                tokio::join!(lives(&bench.runtime), async {
                    seconds(9).await;
                    bench.clock.step(step * 1_000_000_000);
                });
            })
            .await;
        assert_eq!(kinds(&report), [FindingKind::ClockStepped], "{report:#?}");
        assert_eq!(report.verdict, Verdict::Passed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_past_accuses_nobody() {
    let bench = Bench::new(Character::containerd_2());
    let report = bench
        .audited(async {
            tokio::join!(lives(&bench.runtime), async {
                seconds(11).await;
                for rpc in [Rpc::ListPodSandbox, Rpc::ListContainers] {
                    let past = crate::simulate::AsOf::Ago(Duration::from_secs(2));
                    bench.runtime.inject(Fault::stale(rpc, past).times(1));
                }
            });
        })
        .await;
    assert_eq!(report.verdict, Verdict::Passed, "{report:#?}");
    assert_eq!(report.findings, [], "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_ends_it_early_gets_the_report_at_once() {
    let bench = Bench::new(Character::containerd_2());
    let client = CriClient::new(bench.runtime.channel(), CallLimits::default());
    let version = client.version().await.unwrap();
    let source = StreamSource::Channel(bench.runtime.channel());
    let audit = Audit::by(bench.clock.clone(), client, source, version).unwrap();
    bench
        .runtime
        .inject_stream(StreamFault::lose().of_kind(EventKind::Started));
    let (report, ()) = tokio::join!(audit.run(LASTING, seconds(12)), lives(&bench.runtime));
    let report = report.unwrap();
    assert_eq!(report.lasted, Duration::from_secs(12));
    assert_eq!(report.verdict, Verdict::Lost, "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_latencies_are_those_of_the_stream() {
    let report = lives_with(StreamFault::delay(Duration::from_millis(250))).await;
    let latencies = report.latency_ms;
    for times in [
        latencies.from_stamp,
        latencies.from_created,
        latencies.from_started,
        latencies.from_finished,
    ] {
        let median = times.unwrap().p50.as_millis();
        // Tokio's timers are of a millisecond.
        assert!((250..=251).contains(&median), "{median}");
    }
    assert_eq!(report.findings, []);
}
