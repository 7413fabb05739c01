//! The decoder is held against prost: whatever bytes come, both take them for the same, or both refuse.
//!
//! Deliberate differences, all towards refusing: groups, which prost skips; labels whose wire type is not
//! that of a map, which prost reads as if it were; more than 131,072 items in one message.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use prost::Message;

use super::{
    KnownItems, KnownTexts, ListReader, Malformed, RecentTexts, decode, oracle, read_list, wire,
};
use crate::cri::wire::decode::DecodeError;
use crate::cri::wire::event::read_event;
use crate::cri::wire::listing::Item;
use crate::lifecycle::{ContainerListing, Listed, Refusal, SandboxListing};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        select(vec![
            "a",
            "b",
            "web",
            "u1",
            "u2",
            "ß",
            "a-rather-long-text-of-a-runtime"
        ])
        .prop_map(str::to_owned),
    ]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(7), Just(-1), any::<i64>()]
}

fn state() -> impl Strategy<Value = i32> {
    prop_oneof![0..5_i32, any::<i32>()]
}

fn labels() -> impl Strategy<Value = std::collections::BTreeMap<String, String>> {
    let key = select(vec![
        "io.kubernetes.pod.uid",
        "io.kubernetes.pod.name",
        "io.kubernetes.pod.namespace",
        "io.kubernetes.container.name",
        "app",
        "",
    ]);
    btree_map(key.prop_map(str::to_owned), text(), 0..5)
}

prop_compose! {
    fn pod_metadata()(
        name in text(), uid in text(), namespace in text(), attempt in any::<u32>(),
    ) -> wire::PodSandboxMetadata {
        wire::PodSandboxMetadata { name, uid, namespace, attempt }
    }
}

prop_compose! {
    fn container_metadata()(name in text(), attempt in any::<u32>()) -> wire::ContainerMetadata {
        wire::ContainerMetadata { name, attempt }
    }
}

prop_compose! {
    fn sandbox()(
        id in text(), metadata in option::of(pod_metadata()), state in state(),
        created_at in number(), labels in labels(),
    ) -> wire::PodSandbox {
        wire::PodSandbox { id, metadata, state, created_at, labels }
    }
}

prop_compose! {
    fn image()(image in text()) -> wire::ImageSpec {
        wire::ImageSpec { image }
    }
}

prop_compose! {
    fn container()(
        id in text(), pod_sandbox_id in text(), metadata in option::of(container_metadata()),
        image in option::of(image()), image_ref in text(), state in state(), created_at in number(),
        labels in labels(),
    ) -> wire::Container {
        wire::Container {
            id, pod_sandbox_id, metadata, image, image_ref, state, created_at, labels,
        }
    }
}

prop_compose! {
    fn network()(ip in text(), more in vec(text(), 0..3)) -> wire::PodSandboxNetworkStatus {
        let additional_ips = more.into_iter().map(|ip| wire::PodIp { ip }).collect();
        wire::PodSandboxNetworkStatus { ip, additional_ips }
    }
}

fn linux() -> impl Strategy<Value = wire::LinuxPodSandboxStatus> {
    let options = option::of((0..4_i32).prop_map(|network| wire::NamespaceOption { network }));
    let namespaces = option::of(options.prop_map(|options| wire::Namespace { options }));
    namespaces.prop_map(|namespaces| wire::LinuxPodSandboxStatus { namespaces })
}

prop_compose! {
    fn sandbox_status()(
        id in text(), metadata in option::of(pod_metadata()), state in state(),
        created_at in number(), network in option::of(network()), linux in option::of(linux()),
        labels in labels(),
    ) -> wire::PodSandboxStatus {
        wire::PodSandboxStatus { id, metadata, state, created_at, network, linux, labels }
    }
}

prop_compose! {
    fn container_status()(
        (id, reason, message, image_ref) in (text(), text(), text(), text()),
        metadata in option::of(container_metadata()), state in state(),
        (created_at, started_at, finished_at) in (number(), number(), number()),
        exit_code in any::<i32>(), image in option::of(image()), labels in labels(),
    ) -> wire::ContainerStatus {
        wire::ContainerStatus {
            id, metadata, state, created_at, started_at, finished_at, exit_code, image, image_ref,
            reason, message, labels,
        }
    }
}

prop_compose! {
    fn event()(
        container_id in text(), container_event_type in state(), created_at in number(),
        pod_sandbox_status in option::of(sandbox_status()),
        containers_statuses in vec(container_status(), 0..20),
    ) -> wire::ContainerEventResponse {
        wire::ContainerEventResponse {
            container_id, container_event_type, created_at, pod_sandbox_status, containers_statuses,
        }
    }
}

/// The bytes of one answer or message of any kind.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let sandboxes = vec(sandbox(), 0..6).prop_map(|items| wire::ListPodSandboxResponse { items });
    let containers =
        vec(container(), 0..6).prop_map(|containers| wire::ListContainersResponse { containers });
    let sandbox_answer = (
        option::of(sandbox_status()),
        vec(container_status(), 0..4),
        number(),
    );
    let sandbox_answer = sandbox_answer.prop_map(|(status, containers_statuses, timestamp)| {
        wire::PodSandboxStatusResponse {
            status,
            containers_statuses,
            timestamp,
        }
    });
    let container_answer =
        option::of(container_status()).prop_map(|status| wire::ContainerStatusResponse { status });
    prop_oneof![
        sandboxes.prop_map(|message| message.encode_to_vec()),
        containers.prop_map(|message| message.encode_to_vec()),
        sandbox_answer.prop_map(|message| message.encode_to_vec()),
        container_answer.prop_map(|message| message.encode_to_vec()),
        event().prop_map(|message| message.encode_to_vec()),
    ]
}

/// Something done to the bytes of a message.
#[derive(Clone, Debug)]
enum Damage {
    Replace(Index, u8),
    Flip(Index, u8),
    Remove(Index),
    Insert(Index, Vec<u8>),
    /// A stretch of the message comes a second time, anywhere.
    Repeat(Index, Index, Index),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        any::<Index>().prop_map(Damage::Remove),
        (any::<Index>(), vec(any::<u8>(), 1..12)).prop_map(|(at, new)| Damage::Insert(at, new)),
        (any::<Index>(), any::<Index>(), any::<Index>())
            .prop_map(|(from, to, at)| Damage::Repeat(from, to, at)),
        any::<Index>().prop_map(Damage::Cut),
    ]
}

fn damaged(mut bytes: Vec<u8>, all: &[Damage]) -> Vec<u8> {
    for damage in all {
        if bytes.is_empty() {
            return bytes;
        }
        let length = bytes.len();
        match damage {
            Damage::Replace(at, byte) => bytes[at.index(length)] = *byte,
            Damage::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Damage::Remove(at) => {
                bytes.remove(at.index(length));
            }
            Damage::Insert(at, new) => {
                let at = at.index(length);
                bytes.splice(at..at, new.iter().copied());
            }
            Damage::Repeat(from, to, at) => {
                let (from, to) = (from.index(length), to.index(length));
                let again = bytes[from.min(to)..from.max(to)].to_vec();
                let at = at.index(length);
                bytes.splice(at..at, again);
            }
            Damage::Cut(at) => bytes.truncate(at.index(length)),
        }
    }
    bytes
}

/// What ours refuses and prost takes, on purpose.
fn is_deliberate(problem: &str) -> bool {
    [Malformed::Group, Malformed::NoMap]
        .map(|known| known.to_string())
        .contains(&problem.to_owned())
}

fn told<A>(answer: Result<A, DecodeError>) -> Result<A, String> {
    // What exactly is wrong with the bytes, the two say in their own words.
    answer.map_err(|error| match error {
        DecodeError::Undecodable(problem) if is_deliberate(&problem) => problem,
        DecodeError::Undecodable(_) => "undecodable".to_owned(),
        other => other.to_string(),
    })
}

fn assert_same<A: PartialEq + std::fmt::Debug>(
    ours: Result<A, DecodeError>,
    prosts: Result<A, DecodeError>,
    bytes: &[u8],
) {
    let (ours, prosts) = (told(ours), told(prosts));
    if matches!(&ours, Err(problem) if is_deliberate(problem)) {
        return;
    }
    assert_eq!(ours, prosts, "{bytes:?}");
}

/// Reads the bytes as every message there is.
fn assert_read_alike(bytes: &[u8]) {
    assert_same(decode::version(bytes), oracle::version(bytes), bytes);
    assert_same(
        read_list(bytes).map_err(Into::into),
        oracle::sandboxes(bytes),
        bytes,
    );
    assert_same(
        read_list(bytes).map_err(Into::into),
        oracle::containers(bytes),
        bytes,
    );
    assert_same(
        decode::sandbox_answer(bytes, &mut RecentTexts::default()),
        oracle::sandbox_answer(bytes),
        bytes,
    );
    assert_same(
        decode::container_answer(bytes, &mut RecentTexts::default()),
        oracle::container_answer(bytes),
        bytes,
    );
    let refused = |_: Refusal| DecodeError::Undecodable(String::new());
    assert_same(
        read_event(bytes, &mut RecentTexts::default()).map_err(Into::into),
        oracle::event(bytes).map_err(refused),
        bytes,
    );
}

/// A list that comes in these messages, to a reader that knows the list before it.
fn read_after<T: Item>(
    known: &mut KnownItems<T>,
    texts: &mut KnownTexts,
    messages: &[Vec<u8>],
) -> Listed<T> {
    let mut reader = ListReader::begin(known, texts);
    for message in messages {
        reader.take(message).expect("prost wrote it");
    }
    reader.finish()
}

/// A list of containers in up to three messages, and the same as one message.
fn list() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>)> {
    vec(vec(container(), 0..5), 1..4).prop_map(|pieces| {
        let message = |containers| wire::StreamContainersResponse { containers }.encode_to_vec();
        let whole = message(pieces.concat());
        (pieces.into_iter().map(message).collect(), whole)
    })
}

proptest! {
    #[test]
    fn what_prost_writes_is_read_as_prost_reads_it(bytes in message()) {
        assert_read_alike(&bytes);
    }

    #[test]
    fn damaged_messages_are_read_as_prost_reads_them(
        bytes in message(),
        damage in vec(damage(), 1..6),
    ) {
        assert_read_alike(&damaged(bytes, &damage));
    }

    #[test]
    fn two_messages_in_a_row_are_merged_as_prost_merges_them(
        first in message(),
        second in message(),
    ) {
        assert_read_alike(&[first, second].concat());
    }

    #[test]
    fn any_bytes_are_read_as_prost_reads_them(bytes in vec(any::<u8>(), 0..64)) {
        assert_read_alike(&bytes);
    }

    /// What a reader remembers of the last list shows in no list.
    #[test]
    fn a_list_says_the_same_whatever_the_reader_knew(lists in vec(list(), 1..6)) {
        let (mut known, mut texts) = (KnownItems::default(), KnownTexts::default());
        for (pieces, whole) in lists {
            let list = read_after::<ContainerListing>(&mut known, &mut texts, &pieces);
            prop_assert_eq!(Ok(list), told(oracle::containers(&whole)));
        }
    }
}

/// The items of an unchanged list are those of the list before, wherever they stand.
#[test]
fn an_unchanged_item_is_the_same_in_memory() {
    let mut items = vec![
        crate::cri::wire::samples::sandbox("s1", "u1"),
        crate::cri::wire::samples::sandbox("s2", "u2"),
    ];
    let write = |items: &[wire::PodSandbox]| {
        let items = items.to_vec();
        vec![wire::ListPodSandboxResponse { items }.encode_to_vec()]
    };
    let (mut known, mut texts) = (KnownItems::default(), KnownTexts::default());
    let first: Listed<SandboxListing> = read_after(&mut known, &mut texts, &write(&items));
    items.reverse();
    items[0].state = 1;
    let second = read_after(&mut known, &mut texts, &write(&items));
    assert!(std::sync::Arc::ptr_eq(&first.items[0], &second.items[1]));
    assert_ne!(first.items[1], second.items[0]);
    assert_eq!(second.items[0].id.as_str(), "s2");
}
