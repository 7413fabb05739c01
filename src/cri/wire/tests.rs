//! What a decoded message holds, and that no bytes can hurt.

mod equivalence;
mod oracle;
mod sizes;

use proptest::prelude::*;
use prost::Message;

use super::decode::{self, DecodeError};
use super::fields::Malformed;
use super::listing::{Item, KnownItems, ListReader};
use super::messages as wire;
use super::samples::{container, container_status, sandbox, sandbox_status};
use super::texts::{KnownTexts, RecentTexts};
use crate::lifecycle::{
    ContainerListing, EventKind, Listed, Refusal, ReportedState, RuntimeEvent, SandboxListing,
    UnixNanos,
};

/// A list that comes in one message, to a reader that knows nothing.
fn read_list<T: Item>(message: &[u8]) -> Result<Listed<T>, Malformed> {
    let (mut known, mut texts) = (KnownItems::default(), KnownTexts::default());
    let mut reader = ListReader::begin(&mut known, &mut texts);
    reader.take(message)?;
    Ok(reader.finish())
}

/// A message of the stream, to a reader that knows nothing.
fn read_event(message: &[u8]) -> Result<RuntimeEvent, Refusal> {
    super::event::event(message, &mut RecentTexts::default())
}

fn list_sandboxes(items: Vec<wire::PodSandbox>) -> Listed<SandboxListing> {
    let answer = wire::ListPodSandboxResponse { items };
    read_list(&answer.encode_to_vec()).expect("the bytes are a message")
}

fn list_containers(containers: Vec<wire::Container>) -> Listed<ContainerListing> {
    let answer = wire::ListContainersResponse { containers };
    read_list(&answer.encode_to_vec()).expect("the bytes are a message")
}

#[test]
fn a_listed_sandbox_is_read_whole() {
    let listed = list_sandboxes(vec![sandbox("s1", "u1")]);
    let item = &listed.items[0];
    assert_eq!(item.id.as_str(), "s1");
    assert_eq!(item.pod.uid.as_str(), "u1");
    assert_eq!((&*item.pod.namespace, &*item.pod.name), ("shop", "web"));
    assert_eq!((item.attempt, item.state), (1, ReportedState::Running));
    assert_eq!(item.created_at, Some(UnixNanos(7)));
    assert!(item.labelled);
    assert!(listed.unreadable.is_empty() && listed.refused.is_empty());
}

#[test]
fn a_sandbox_whose_label_names_another_uid_is_not_labelled() {
    let mut other = sandbox("s1", "u1");
    other
        .labels
        .insert("io.kubernetes.pod.uid".into(), "u2".into());
    let mut bare = sandbox("s2", "u1");
    bare.labels.clear();
    let listed = list_sandboxes(vec![other, bare]);
    assert!(listed.items.iter().all(|item| !item.labelled));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason_and_its_id_kept() {
    let without_metadata = wire::PodSandbox {
        metadata: None,
        ..sandbox("s2", "u1")
    };
    let mut nameless = sandbox("s3", "u1");
    nameless.metadata.as_mut().expect("set above").name.clear();
    let listed = list_sandboxes(vec![
        sandbox("", "u1"),
        without_metadata,
        nameless,
        sandbox("s4", ""),
        sandbox("s5", "u1"),
    ]);
    assert_eq!(
        listed.refused,
        [
            Refusal::EmptyId,
            Refusal::NoMetadata,
            Refusal::NoMetadata,
            Refusal::NoPodUid
        ]
    );
    assert_eq!(listed.unreadable, ["s2", "s3", "s4"].map(Into::into));
    assert_eq!(listed.items.len(), 1);
}

#[test]
fn a_container_without_a_name_takes_it_from_the_kubelets_label() {
    let mut unnamed = container("c1", 1);
    unnamed.metadata.as_mut().expect("set above").name.clear();
    let refused = list_containers(vec![unnamed.clone()]);
    assert_eq!(refused.refused, [Refusal::NoMetadata]);
    assert_eq!(refused.unreadable, ["c1".into()]);

    let label = "io.kubernetes.container.name";
    unnamed.labels.insert(label.into(), "sidecar".into());
    let listed = list_containers(vec![unnamed]);
    assert_eq!(&*listed.items[0].name, "sidecar");
}

#[test]
fn a_container_that_names_no_sandbox_and_no_pod_is_still_listed() {
    let mut orphan = container("c1", 1);
    orphan.labels.clear();
    orphan.pod_sandbox_id.clear();
    let listed = list_containers(vec![orphan]);
    assert_eq!(listed.items[0].pod, None);
    assert_eq!(listed.items[0].sandbox, None);
}

#[test]
fn of_two_items_with_one_id_the_further_state_is_kept_and_the_second_counted() {
    let forward = list_containers(vec![container("c1", 1), container("c1", 2)]);
    let backward = list_containers(vec![container("c1", 2), container("c1", 1)]);
    for listed in [forward, backward] {
        assert_eq!(listed.items.len(), 1);
        assert_eq!(listed.items[0].state, ReportedState::Exited);
        assert_eq!(listed.refused, [Refusal::DuplicateId]);
    }
}

#[test]
fn an_id_that_was_readable_once_is_not_unreadable() {
    let broken = wire::Container {
        metadata: None,
        ..container("c1", 1)
    };
    let listed = list_containers(vec![broken.clone(), container("c1", 1), broken]);
    assert_eq!(listed.items.len(), 1);
    assert!(listed.unreadable.is_empty());
    let doubles = listed.refused.iter();
    assert_eq!(doubles.filter(|r| **r == Refusal::DuplicateId).count(), 2);
}

#[test]
fn a_state_number_from_the_future_is_unknown() {
    use ReportedState::{Created, Exited, Running, Unknown};
    let states = [0, 1, 2, 3, 4, -1].map(|state| {
        let listed = list_containers(vec![container("c1", state)]);
        listed.items[0].state
    });
    assert_eq!(
        states,
        [Created, Running, Exited, Unknown, Unknown, Unknown]
    );

    let mut strange = sandbox("s1", "u1");
    strange.state = 2;
    assert_eq!(list_sandboxes(vec![strange]).items[0].state, Unknown);
}

#[test]
fn times_that_mean_not_yet_are_none() {
    let mut status = container_status("c1", 2);
    status.started_at = 0;
    status.finished_at = -5;
    let answer = wire::ContainerStatusResponse {
        status: Some(status),
    };
    let status = decode::container_answer(&answer.encode_to_vec(), &mut RecentTexts::default())
        .expect("complete");
    assert_eq!((status.started_at, status.finished_at), (None, None));
}

#[test]
fn addresses_come_primary_first_and_empty_ones_are_dropped() {
    let ip = |ip: &str| wire::PodIp { ip: ip.into() };
    let mut status = sandbox_status("s1");
    status.network = Some(wire::PodSandboxNetworkStatus {
        ip: "10.0.0.1".into(),
        additional_ips: vec![ip(""), ip("fd00::1")],
    });
    let answer = wire::PodSandboxStatusResponse {
        status: Some(status),
        ..Default::default()
    };
    let answer = decode::sandbox_answer(&answer.encode_to_vec(), &mut RecentTexts::default())
        .expect("complete");
    assert_eq!(answer.sandbox.ips, ["10.0.0.1", "fd00::1"].map(Into::into));
    assert!(!answer.sandbox.host_network);
}

#[test]
fn the_nodes_network_is_recognised() {
    let mut status = sandbox_status("s1");
    status.linux = Some(wire::LinuxPodSandboxStatus {
        namespaces: Some(wire::Namespace {
            options: Some(wire::NamespaceOption { network: 2 }),
        }),
    });
    let answer = wire::PodSandboxStatusResponse {
        status: Some(status),
        ..Default::default()
    };
    let answer = decode::sandbox_answer(&answer.encode_to_vec(), &mut RecentTexts::default())
        .expect("complete");
    assert!(answer.sandbox.host_network);
}

fn missing<T: std::fmt::Debug>(answer: Result<T, DecodeError>) -> Vec<&'static str> {
    match answer {
        Err(DecodeError::Missing(fields)) => fields,
        other => panic!("not a lack of fields: {other:?}"),
    }
}

/// V-SBX-1 to V-SBX-7.
#[test]
fn a_sandbox_status_without_what_cri_requires_names_the_field() {
    let read = |change: fn(&mut wire::PodSandboxStatus)| {
        let mut status = sandbox_status("s1");
        change(&mut status);
        let answer = wire::PodSandboxStatusResponse {
            status: Some(status),
            ..Default::default()
        };
        decode::sandbox_answer(&answer.encode_to_vec(), &mut RecentTexts::default())
    };
    assert!(read(|_| ()).is_ok());
    assert_eq!(missing(read(|s| s.id.clear())), ["status.id"]);
    assert_eq!(missing(read(|s| s.metadata = None)), ["status.metadata"]);
    assert_eq!(missing(read(|s| s.created_at = 0)), ["status.created_at"]);
    let metadata = |change: fn(&mut wire::PodSandboxMetadata)| {
        let mut status = sandbox_status("s1");
        change(status.metadata.as_mut().expect("set above"));
        let answer = wire::PodSandboxStatusResponse {
            status: Some(status),
            ..Default::default()
        };
        missing(decode::sandbox_answer(
            &answer.encode_to_vec(),
            &mut RecentTexts::default(),
        ))
    };
    assert_eq!(metadata(|m| m.name.clear()), ["status.metadata.name"]);
    assert_eq!(metadata(|m| m.uid.clear()), ["status.metadata.uid"]);
    let namespace = metadata(|m| m.namespace.clear());
    assert_eq!(namespace, ["status.metadata.namespace"]);
    assert_eq!(
        missing(decode::sandbox_answer(&[], &mut RecentTexts::default())),
        ["status"]
    );
}

/// V-CTR-1 to V-CTR-7.
#[test]
fn a_container_status_without_what_cri_requires_names_the_field() {
    let read = |change: fn(&mut wire::ContainerStatus)| {
        let mut status = container_status("c1", 1);
        change(&mut status);
        let answer = wire::ContainerStatusResponse {
            status: Some(status),
        };
        decode::container_answer(&answer.encode_to_vec(), &mut RecentTexts::default())
    };
    assert!(read(|_| ()).is_ok());
    assert_eq!(missing(read(|s| s.id.clear())), ["status.id"]);
    assert_eq!(missing(read(|s| s.metadata = None)), ["status.metadata"]);
    let nameless = read(|s| s.metadata.as_mut().expect("set above").name.clear());
    assert_eq!(missing(nameless), ["status.metadata.name"]);
    assert_eq!(missing(read(|s| s.created_at = 0)), ["status.created_at"]);
    assert_eq!(missing(read(|s| s.image = None)), ["status.image.image"]);
    assert_eq!(missing(read(|s| s.image_ref.clear())), ["status.image_ref"]);
    assert_eq!(
        missing(decode::container_answer(&[], &mut RecentTexts::default())),
        ["status"]
    );
}

#[test]
fn a_version_with_empty_fields_names_each() {
    let answer = wire::VersionResponse {
        version: "0.1.0".into(),
        runtime_version: "v2.1.0".into(),
        ..Default::default()
    };
    let fields = missing(decode::version(&answer.encode_to_vec()));
    assert_eq!(fields, ["runtime_name", "runtime_api_version"]);
}

/// A8: a container list without a timestamp means nothing.
#[test]
fn statuses_that_a_sandbox_brings_count_only_with_a_timestamp() {
    let answer = |timestamp| {
        let broken = container_status("", 1);
        let answer = wire::PodSandboxStatusResponse {
            status: Some(sandbox_status("s1")),
            containers_statuses: vec![container_status("c1", 1), broken],
            timestamp,
        };
        decode::sandbox_answer(&answer.encode_to_vec(), &mut RecentTexts::default())
            .expect("complete")
    };
    assert!(answer(0).containers.is_empty());
    let brought = answer(5).containers;
    assert_eq!(brought.len(), 1);
    assert_eq!(brought[0].id.as_str(), "c1");
}

#[test]
fn an_event_keeps_its_stamp_and_its_number_as_they_stood() {
    let event = wire::ContainerEventResponse {
        container_id: "c1".into(),
        container_event_type: 9,
        created_at: -3,
        ..Default::default()
    };
    let event = read_event(&event.encode_to_vec()).expect("a message");
    assert_eq!((event.kind, event.stamp), (EventKind::Other(9), -3));
    assert_eq!(event.sandbox, None);
    assert!(event.refused.is_empty());
}

#[test]
fn parts_of_an_event_that_cannot_be_read_are_left_out_and_counted() {
    let event = wire::ContainerEventResponse {
        container_id: String::new(),
        container_event_type: 2,
        created_at: 5,
        pod_sandbox_status: Some(wire::PodSandboxStatus {
            metadata: None,
            ..sandbox_status("s1")
        }),
        containers_statuses: vec![
            container_status("", 1),
            container_status("c1", 1),
            container_status("c1", 2),
        ],
    };
    let event = read_event(&event.encode_to_vec()).expect("a message");
    assert_eq!(event.kind, EventKind::Stopped);
    assert_eq!(event.sandbox, None);
    assert_eq!(event.containers.len(), 1);
    assert_eq!(event.containers[0].state, ReportedState::Exited);
    assert_eq!(
        event.refused,
        [
            Refusal::EmptyId,
            Refusal::NoMetadata,
            Refusal::EmptyId,
            Refusal::DuplicateId
        ]
    );
}

/// An event's statuses are hints: the image and the stamp that an answer needs may be missing.
#[test]
fn an_events_statuses_need_only_an_id_and_metadata() {
    let event = wire::ContainerEventResponse {
        container_id: "c1".into(),
        container_event_type: 1,
        created_at: 5,
        pod_sandbox_status: Some(wire::PodSandboxStatus {
            created_at: 0,
            ..sandbox_status("s1")
        }),
        containers_statuses: vec![wire::ContainerStatus {
            image: None,
            image_ref: String::new(),
            created_at: 0,
            ..container_status("c1", 1)
        }],
    };
    let event = read_event(&event.encode_to_vec()).expect("a message");
    assert!(event.sandbox.is_some() && event.containers.len() == 1);
    assert!(event.refused.is_empty());
}

#[test]
fn bytes_that_are_no_message_are_undecodable() {
    assert_eq!(read_event(&[0xff; 4]), Err(Refusal::Undecodable));
    assert!(matches!(
        decode::version(&[0xff; 4]),
        Err(DecodeError::Undecodable(_))
    ));
}

/// A hundred thousand containers in one event, and as many empty ones.
#[test]
fn a_huge_event_is_read() {
    let mut statuses: Vec<_> = (0..100_000)
        .map(|n| container_status(&format!("c{n}"), 1))
        .collect();
    statuses.resize(200_000, wire::ContainerStatus::default());
    let event = wire::ContainerEventResponse {
        container_id: "c1".into(),
        containers_statuses: statuses,
        ..Default::default()
    };
    let event = read_event(&event.encode_to_vec()).expect("a message");
    assert_eq!(event.containers.len(), 100_000);
    assert_eq!(event.refused.len(), 100_000);
}

/// Reads the bytes as every message there is.
fn decode_as_everything(bytes: &[u8]) {
    let _ = decode::version(bytes);
    let _ = read_list::<SandboxListing>(bytes);
    let _ = read_list::<ContainerListing>(bytes);
    let _ = decode::sandbox_answer(bytes, &mut RecentTexts::default());
    let _ = decode::container_answer(bytes, &mut RecentTexts::default());
    let _ = read_event(bytes);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        decode_as_everything(&bytes);
    }

    #[test]
    fn mangled_messages_never_panic(
        which in 0..3_usize,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        length in any::<proptest::sample::Index>(),
    ) {
        let event = wire::ContainerEventResponse {
            container_id: "c1".into(),
            container_event_type: 1,
            created_at: 1_700_000_000_000_000_000,
            pod_sandbox_status: Some(sandbox_status("s1")),
            containers_statuses: vec![container_status("c1", 1), container_status("c2", 2)],
        };
        let sandboxes = vec![sandbox("s1", "u1"), sandbox("s2", "u2")];
        let containers = vec![container("c1", 1), container("c1", 2)];
        let mut bytes = [
            event.encode_to_vec(),
            wire::ListPodSandboxResponse { items: sandboxes }.encode_to_vec(),
            wire::ListContainersResponse { containers }.encode_to_vec(),
        ][which].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        decode_as_everything(&bytes);
        bytes.truncate(length.index(bytes.len()));
        decode_as_everything(&bytes);
    }
}
