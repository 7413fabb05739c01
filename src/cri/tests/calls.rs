//! The unary calls and the lists.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;

use super::net::Net;
use crate::cri::wire::messages as wire;
use crate::cri::wire::samples::{container, container_status, sandbox, sandbox_status};
use crate::cri::{CallError, CallLimits, CriClient, DecodeError};
use crate::engine::{Answer, Failure, FailureKind, Question};
use crate::lifecycle::{ContainerId, PodUid, Refusal, ReportedState, SandboxId};

fn kind<T: std::fmt::Debug>(answer: Result<T, CallError>) -> FailureKind {
    answer.expect_err("it fails").kind()
}

#[tokio::test(start_paused = true)]
async fn a_version_has_five_seconds() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script().hanging.insert("Version");
    let began = Instant::now();
    let error = net.client().version().await.expect_err("it hangs");
    assert_eq!(error.kind(), FailureKind::DeadlineExceeded);
    assert_eq!(error.to_string(), "Version: no answer within 5 s");
    let took = Instant::now().duration_since(began);
    assert_eq!(took.as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_list_has_two_minutes_streamed_or_not() {
    for method in ["StreamPodSandboxes", "ListPodSandbox", "ListContainers"] {
        let (net, fake, _watched) = Net::to_a_fake();
        fake.script().hanging.insert(method);
        let began = Instant::now();
        let error = net.client().list_node().await.expect_err("it hangs");
        assert_eq!(
            error.to_string(),
            format!("{method}: no answer within 120 s")
        );
        let took = Instant::now().duration_since(began);
        assert_eq!(took.as_secs(), 120);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_tells_the_runtimes_name_and_its_own_version() {
    let (net, _fake, _watched) = Net::to_a_fake();
    let version = net.client().version().await.expect("it answers");
    assert_eq!(
        (&*version.name, &*version.version, &*version.api_version),
        ("fake", "v1.2.3", "v1")
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_with_an_empty_field_is_malformed_and_names_it() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script().version.runtime_name.clear();
    let error = net.client().version().await.expect_err("it lacks a field");
    assert_eq!(error.kind(), FailureKind::Malformed);
    assert_eq!(error.to_string(), "Version: the answer lacks runtime_name");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_without_streaming_lists_is_asked_for_them_once() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script().sandboxes = vec![sandbox("s1", "u1")];
    fake.script().containers = vec![container("c1", 1)];
    let client = net.client();
    let list = client.list_node().await.expect("it answers");
    assert_eq!(list.sandboxes.items.len(), 1);
    assert_eq!(list.containers.items.len(), 1);
    assert_eq!(
        fake.take_log(),
        [
            "StreamPodSandboxes",
            "ListPodSandbox",
            "StreamContainers",
            "ListContainers"
        ]
    );
    // A clone knows what the original learnt.
    client.clone().list_node().await.expect("it answers");
    assert_eq!(fake.take_log(), ["ListPodSandbox", "ListContainers"]);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_collected_whole_and_duplicates_are_found_across_its_pieces() {
    let (net, fake, _watched) = Net::to_a_fake();
    let first = vec![sandbox("s1", "u1"), sandbox("s2", "u2")];
    fake.script().sandbox_pieces = Some(vec![Ok(first), Ok(vec![sandbox("s1", "u1")])]);
    fake.script().container_pieces = Some(vec![
        Ok(vec![container("c1", 1)]),
        Ok(vec![container("c1", 2)]),
    ]);
    let list = net.client().list_node().await.expect("it answers");
    assert_eq!(fake.log(), ["StreamPodSandboxes", "StreamContainers"]);
    assert_eq!(list.sandboxes.items.len(), 2);
    assert_eq!(list.sandboxes.refused, [Refusal::DuplicateId]);
    assert_eq!(list.containers.items.len(), 1);
    assert_eq!(list.containers.items[0].state, ReportedState::Exited);
}

#[tokio::test(start_paused = true)]
async fn an_empty_streamed_list_is_a_list() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script().sandbox_pieces = Some(vec![]);
    fake.script().container_pieces = Some(vec![]);
    let list = net.client().list_node().await.expect("it answers");
    assert!(list.sandboxes.items.is_empty() && list.containers.items.is_empty());
    assert_eq!(fake.log(), ["StreamPodSandboxes", "StreamContainers"]);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_breaks_is_no_list_and_is_not_asked_for_again_as_a_whole() {
    let (net, fake, _watched) = Net::to_a_fake();
    let pieces = vec![Ok(vec![sandbox("s1", "u1")]), Err(Code::Internal)];
    fake.script().sandbox_pieces = Some(pieces);
    assert_eq!(kind(net.client().list_node().await), FailureKind::Other);
    assert_eq!(fake.log(), ["StreamPodSandboxes"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_listed_by_the_label_of_its_uid() {
    let (net, fake, _watched) = Net::to_a_fake();
    let uid = PodUid::from("u1");
    net.client().list_pod(&uid).await.expect("it answers");
    let label = "io.kubernetes.pod.uid=u1";
    let asked = [
        "StreamPodSandboxes",
        "ListPodSandbox",
        "StreamContainers",
        "ListContainers",
    ];
    assert_eq!(fake.log(), asked.map(|method| format!("{method} {label}")));
}

/// F10: tonic's own limit would be 4 MiB.
#[tokio::test(start_paused = true)]
async fn an_answer_may_have_sixteen_mebibytes_and_one_over_it_says_what_to_do() {
    let (net, fake, _watched) = Net::to_a_fake();
    let client = net.client();
    let mut big = container("c1", 1);
    big.labels.insert("padding".into(), "x".repeat(15 << 20));
    fake.script().containers = vec![big.clone()];
    let list = client.list_node().await.expect("it is under the limit");
    assert_eq!(list.containers.items.len(), 1);

    big.labels.insert("padding".into(), "x".repeat(16 << 20));
    let answer = wire::ListContainersResponse {
        containers: vec![big],
    };
    let size = prost::Message::encoded_len(&answer);
    fake.script().containers = answer.containers;
    let error = client.list_node().await.expect_err("it is over the limit");
    assert_eq!(error.kind(), FailureKind::TooLarge);
    assert_eq!(
        error.to_string(),
        format!(
            "ListContainers: the answer has {size} bytes, which is over the message limit of \
             16777216 bytes (--max-message-size raises it); this runtime cannot stream its lists"
        )
    );

    let limits = CallLimits {
        message_size: 32 << 20,
        ..CallLimits::default()
    };
    let raised = CriClient::new(net.channel(), limits);
    assert!(raised.list_node().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_may_be_larger_than_a_message_but_not_endless() {
    let (net, fake, _watched) = Net::to_a_fake();
    let limits = CallLimits {
        message_size: 1000,
        ..CallLimits::default()
    };
    let piece = Ok(vec![sandbox("s1", "u1"); 10]);
    fake.script().sandbox_pieces = Some(vec![piece.clone(); 10]);
    fake.script().container_pieces = Some(vec![]);
    let client = CriClient::new(net.channel(), limits);
    assert!(client.list_node().await.is_ok());
    fake.script().sandbox_pieces = Some(vec![piece; 1000]);
    assert_eq!(kind(client.list_node().await), FailureKind::TooLarge);
}

fn sandbox_answer(id: &str) -> wire::PodSandboxStatusResponse {
    wire::PodSandboxStatusResponse {
        status: Some(sandbox_status(id)),
        ..Default::default()
    }
}

async fn inspect(client: &CriClient, sandboxes: &[&str], containers: &[&str]) -> Vec<String> {
    let sandboxes: Vec<_> = sandboxes.iter().map(|id| SandboxId::from(*id)).collect();
    let containers: Vec<_> = containers.iter().map(|id| ContainerId::from(*id)).collect();
    let inspection = client.inspect(&sandboxes, &containers).await;
    let failed = |failure: Failure| format!("{:?}", failure.kind);
    let state = |answer: Result<ReportedState, Failure>| {
        answer.map_or_else(failed, |state| state.to_string())
    };
    let sandboxes = inspection.sandboxes.into_iter();
    let sandboxes = sandboxes.map(|(id, a)| format!("{id} {}", state(a.map(|s| s.state))));
    let containers = inspection.containers.into_iter();
    let containers = containers.map(|(id, a)| format!("{id} {}", state(a.map(|s| s.state))));
    sandboxes.chain(containers).collect()
}

#[tokio::test(start_paused = true)]
async fn an_inspection_answers_for_each_subject_in_the_order_asked() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script()
        .sandbox_statuses
        .insert("s1".into(), sandbox_answer("s1"));
    for (id, state) in [("c1", 1), ("c2", 2)] {
        let status = container_status(id, state);
        fake.script().container_statuses.insert(id.into(), status);
    }
    let told = inspect(&net.client(), &["s2", "s1"], &["c2", "c9", "c1"]).await;
    assert_eq!(
        told,
        [
            "s2 NotFound",
            "s1 Running",
            "c2 Exited",
            "c9 NotFound",
            "c1 Running"
        ]
    );
}

/// A8: containerd 2.0.0 sent the timestamp without the statuses; the kubelet took the pod for empty.
#[tokio::test(start_paused = true)]
async fn a_container_that_a_sandbox_did_not_bring_is_asked_for() {
    let (net, fake, _watched) = Net::to_a_fake();
    for id in ["c1", "c2"] {
        let status = container_status(id, 1);
        fake.script().container_statuses.insert(id.into(), status);
    }
    let with = |brought: Vec<wire::ContainerStatus>| wire::PodSandboxStatusResponse {
        containers_statuses: brought,
        timestamp: 5,
        ..sandbox_answer("s1")
    };
    let client = net.client();
    for (brought, asked) in [
        (
            vec![],
            vec![
                "PodSandboxStatus s1",
                "ContainerStatus c1",
                "ContainerStatus c2",
            ],
        ),
        (
            vec![container_status("c1", 1)],
            vec!["PodSandboxStatus s1", "ContainerStatus c2"],
        ),
        (
            vec![container_status("c2", 1), container_status("c1", 1)],
            vec!["PodSandboxStatus s1"],
        ),
    ] {
        let answer = with(brought);
        fake.script().sandbox_statuses.insert("s1".into(), answer);
        let told = inspect(&client, &["s1"], &["c1", "c2"]).await;
        assert_eq!(told, ["s1 Running", "c1 Running", "c2 Running"]);
        assert_eq!(fake.take_log(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_another_subject_is_malformed() {
    let (net, fake, _watched) = Net::to_a_fake();
    let other = container_status("c2", 1);
    fake.script().container_statuses.insert("c1".into(), other);
    let other = sandbox_answer("s2");
    fake.script().sandbox_statuses.insert("s1".into(), other);
    let told = inspect(&net.client(), &["s1"], &["c1"]).await;
    assert_eq!(told, ["s1 Malformed", "c1 Malformed"]);
    let other = DecodeError::OtherSubject {
        asked: "c1".into(),
        told: "c2".into(),
    };
    assert_eq!(other.to_string(), "the answer is about c2, not about c1");
}

#[tokio::test(start_paused = true)]
async fn one_call_that_hangs_does_not_keep_the_others_from_answering() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script().hanging.insert("PodSandboxStatus");
    let status = container_status("c1", 1);
    fake.script().container_statuses.insert("c1".into(), status);
    let began = Instant::now();
    let told = inspect(&net.client(), &["s1", "s2"], &["c1"]).await;
    assert_eq!(
        told,
        ["s1 DeadlineExceeded", "s2 DeadlineExceeded", "c1 Running"]
    );
    let took = Instant::now().duration_since(began);
    assert_eq!(took.as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn each_question_of_the_engine_has_its_answer() {
    let (net, fake, _watched) = Net::to_a_fake();
    let client = net.client();
    let uid = PodUid::from("u1");
    assert!(matches!(
        client.answer(Question::Version).await,
        Answer::Version(Ok(_))
    ));
    assert!(matches!(
        client.answer(Question::FullRelist).await,
        Answer::Listed(Ok(_))
    ));
    let question = Question::PodRelist { uid: uid.clone() };
    assert!(matches!(
        client.answer(question).await,
        Answer::Listed(Ok(_))
    ));
    let question = Question::Inspect {
        uid,
        sandboxes: vec![SandboxId::from("s1")],
        containers: vec![],
    };
    let Answer::Inspected(inspection) = client.answer(question).await else {
        panic!("not an inspection");
    };
    let (_, answer) = &inspection.sandboxes[0];
    let failure = answer.as_ref().expect_err("there is no such sandbox");
    assert_eq!(
        &*failure.message,
        "PodSandboxStatus: the runtime answered NotFound: no sandbox s1"
    );
    fake.script().failing.insert("Version", Code::Unavailable);
    let Answer::Version(Err(failure)) = client.answer(Question::Version).await else {
        panic!("not a failure");
    };
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

/// F12: after a cut the same channel dials again with the next call, and hides no wait.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_fails_at_once_and_the_next_one_dials_again() {
    let (net, fake, mut watched) = Net::to_a_fake();
    let client = net.client();
    fake.script().hanging.insert("Version");
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.version().await }
    });
    watched.until_told("Version").await;
    let began = Instant::now();
    net.cut();
    let error = call.await.expect("no panic").expect_err("it was cut");
    assert_eq!(error.kind(), FailureKind::Unavailable);
    assert!(matches!(error, CallError::Broken { .. }), "{error:?}");
    assert_eq!(Instant::now().duration_since(began), Duration::ZERO);
    fake.script().hanging.clear();
    client.version().await.expect("it dials again");
    assert_eq!(net.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_call_is_counted_once_by_its_method_and_how_it_ended() {
    let (net, fake, _watched) = Net::to_a_fake();
    fake.script().sandboxes = vec![sandbox("s1", "u1")];
    let client = net.client();
    client.list_node().await.expect("it answers");
    client.clone().version().await.expect("it answers");
    fake.script().version.runtime_name.clear();
    client.version().await.expect_err("it lacks a field");
    fake.script().hanging.insert("Version");
    client.version().await.expect_err("it hangs");
    let expected = [
        (("ListContainers", "OK"), 1),
        (("ListPodSandbox", "OK"), 1),
        (("StreamContainers", "Unimplemented"), 1),
        (("StreamPodSandboxes", "Unimplemented"), 1),
        (("Version", "DeadlineExceeded"), 1),
        (("Version", "Internal"), 1),
        (("Version", "OK"), 1),
    ];
    assert_eq!(client.rpcs(), expected.into());
}
