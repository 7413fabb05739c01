//! A node as a kubelet makes it, in CRI's bytes: the labels, annotations and mounts that every pod has
//! are there, though nobody reads them.

pub(crate) mod followed;

use std::collections::BTreeMap;

use prost::Message;

/// The messages of the subset that is read, as prost decodes them.
#[allow(
    dead_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    unreachable_pub
)]
pub(crate) mod cri {
    include!("../../src/cri/wire/generated/runtime.v1.rs");
}

pub(crate) const CONTAINERS_PER_POD: usize = 3;

/// `CONTAINER_RUNNING`.
pub(crate) const RUNNING: i32 = 1;

/// `CONTAINER_EXITED`.
pub(crate) const EXITED: i32 = 2;

/// 64 hexadecimal digits, as runtimes name things.
fn id(kind: u64, number: usize) -> String {
    let mut state = kind << 32 | number as u64;
    let words = [(); 4].map(|()| {
        // A step of SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    });
    let [a, b, c, d] = words;
    format!("{a:016x}{b:016x}{c:016x}{d:016x}")
}

pub(crate) fn sandbox_id(pod: usize) -> String {
    id(1, pod)
}

pub(crate) fn container_id(pod: usize, container: usize) -> String {
    id(2, pod * CONTAINERS_PER_POD + container)
}

fn uid(pod: usize) -> String {
    format!("6f0c1a52-91b4-4a3e-8d1e-{pod:012x}")
}

fn name(pod: usize) -> String {
    format!("checkout-service-7d9c5b6f4d-{pod:05}")
}

fn namespace(pod: usize) -> String {
    format!("team-{}", pod % 12)
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn of_pod(pod: usize) -> BTreeMap<String, String> {
    texts(&[
        ("io.kubernetes.pod.name", &name(pod)),
        ("io.kubernetes.pod.namespace", &namespace(pod)),
        ("io.kubernetes.pod.uid", &uid(pod)),
    ])
}

fn sandbox_labels(pod: usize) -> BTreeMap<String, String> {
    let mut labels = of_pod(pod);
    labels.extend(texts(&[
        ("app.kubernetes.io/name", "checkout"),
        ("app.kubernetes.io/part-of", "shop"),
        ("app.kubernetes.io/version", "2.31.4"),
        ("pod-template-hash", "7d9c5b6f4d"),
        ("tier", "backend"),
    ]));
    labels
}

fn container_labels(pod: usize, container: usize) -> BTreeMap<String, String> {
    let mut labels = of_pod(pod);
    let name = format!("container-{container}");
    labels.insert("io.kubernetes.container.name".to_owned(), name);
    labels
}

/// Fields that the subset lacks, put at the end of a message.
struct Unread(Vec<u8>);

impl Unread {
    fn map(mut self, number: u32, pairs: &[(&str, &str)]) -> Self {
        for (key, value) in pairs {
            let entry = Self(Vec::new()).text(1, key).text(2, value);
            self = self.message(number, &entry.0);
        }
        self
    }

    fn text(self, number: u32, text: &str) -> Self {
        self.message(number, text.as_bytes())
    }

    fn message(mut self, number: u32, content: &[u8]) -> Self {
        prost::encoding::encode_key(
            number,
            prost::encoding::WireType::LengthDelimited,
            &mut self.0,
        );
        prost::encoding::encode_varint(content.len() as u64, &mut self.0);
        self.0.extend_from_slice(content);
        self
    }
}

fn with(message: &impl Message) -> Unread {
    Unread(message.encode_to_vec())
}

const SANDBOX_ANNOTATIONS: [(&str, &str); 4] = [
    (
        "kubernetes.io/config.seen",
        "2026-01-12T09:31:44.018273645Z",
    ),
    ("kubernetes.io/config.source", "api"),
    ("prometheus.io/port", "9102"),
    ("prometheus.io/scrape", "true"),
];

const CONTAINER_ANNOTATIONS: [(&str, &str); 6] = [
    ("io.kubernetes.container.hash", "8a1c5f0e"),
    (
        "io.kubernetes.container.ports",
        r#"[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9102,"protocol":"TCP"}]"#,
    ),
    ("io.kubernetes.container.restartCount", "0"),
    (
        "io.kubernetes.container.terminationMessagePath",
        "/dev/termination-log",
    ),
    ("io.kubernetes.container.terminationMessagePolicy", "File"),
    ("io.kubernetes.pod.terminationGracePeriod", "30"),
];

const IMAGE_REF: &str = "registry.example/shop/checkout@sha256:0f4c9d0be5b7a2dd2b6c3bdfb4bb8e7c4f0a9f7a6c5e4d3b2a1908f7e6d5c4b3";

fn metadata(pod: usize) -> cri::PodSandboxMetadata {
    cri::PodSandboxMetadata {
        name: name(pod),
        uid: uid(pod),
        namespace: namespace(pod),
        attempt: 0,
    }
}

fn sandbox(pod: usize) -> Vec<u8> {
    let sandbox = cri::PodSandbox {
        id: sandbox_id(pod),
        metadata: Some(metadata(pod)),
        state: 0,
        created_at: 1_768_210_304_018_273_645,
        labels: sandbox_labels(pod),
    };
    with(&sandbox).map(6, &SANDBOX_ANNOTATIONS).0
}

fn container(pod: usize, container: usize, state: i32) -> Vec<u8> {
    let item = cri::Container {
        id: container_id(pod, container),
        pod_sandbox_id: sandbox_id(pod),
        metadata: Some(cri::ContainerMetadata {
            name: format!("container-{container}"),
            attempt: 0,
        }),
        image: Some(cri::ImageSpec {
            image: format!("registry.example/shop/checkout:{container}.31.4"),
        }),
        image_ref: IMAGE_REF.to_owned(),
        state,
        created_at: 1_768_210_305_118_273_645,
        labels: container_labels(pod, container),
    };
    let item = with(&item).map(9, &CONTAINER_ANNOTATIONS);
    item.text(10, IMAGE_REF).0
}

/// `ListPodSandboxResponse` of a node with so many pods.
pub(crate) fn sandboxes(pods: usize) -> Vec<u8> {
    let mut list = Unread(Vec::new());
    for pod in 0..pods {
        list = list.message(1, &sandbox(pod));
    }
    list.0
}

/// `ListContainersResponse` of a node with so many pods.
pub(crate) fn containers(pods: usize) -> Vec<u8> {
    let mut list = Unread(Vec::new());
    for pod in 0..pods {
        for number in 0..CONTAINERS_PER_POD {
            list = list.message(1, &container(pod, number, RUNNING));
        }
    }
    list.0
}

/// Where the state of each container stands in that list, one byte each.
pub(crate) fn places_of_states(pods: usize) -> Vec<usize> {
    let mut list = Unread(Vec::new());
    let mut places = Vec::new();
    for pod in 0..pods {
        for number in 0..CONTAINERS_PER_POD {
            let (runs, ended) = (
                container(pod, number, RUNNING),
                container(pod, number, EXITED),
            );
            list = list.message(1, &runs);
            let differs = runs
                .iter()
                .zip(&ended)
                .position(|(one, other)| one != other);
            places.push(list.0.len() - runs.len() + differs.expect("the state differs"));
        }
    }
    places
}

fn sandbox_status(pod: usize) -> Vec<u8> {
    let status = cri::PodSandboxStatus {
        id: sandbox_id(pod),
        metadata: Some(metadata(pod)),
        state: 0,
        created_at: 1_768_210_304_018_273_645,
        network: Some(cri::PodSandboxNetworkStatus {
            ip: format!("10.42.{}.{}", pod / 250, pod % 250),
            additional_ips: Vec::new(),
        }),
        linux: None,
        labels: sandbox_labels(pod),
    };
    with(&status).map(8, &SANDBOX_ANNOTATIONS).0
}

fn container_status(pod: usize, container: usize, state: i32) -> Vec<u8> {
    let created = 1_768_210_305_118_273_645;
    let status = cri::ContainerStatus {
        id: container_id(pod, container),
        metadata: Some(cri::ContainerMetadata {
            name: format!("container-{container}"),
            attempt: 0,
        }),
        state,
        created_at: created,
        started_at: created + 1,
        finished_at: if state == 2 { created + 2 } else { 0 },
        exit_code: 0,
        image: Some(cri::ImageSpec {
            image: format!("registry.example/shop/checkout:{container}.31.4"),
        }),
        image_ref: IMAGE_REF.to_owned(),
        reason: if state == 2 { "Completed" } else { "" }.to_owned(),
        message: String::new(),
        labels: container_labels(pod, container),
    };
    let mut status = with(&status).map(13, &CONTAINER_ANNOTATIONS);
    for inside in [
        "/etc/hosts",
        "/dev/termination-log",
        "/var/run/secrets/kubernetes.io/serviceaccount",
    ] {
        let outside = format!("/var/lib/kubelet/pods/{}{inside}", uid(pod));
        let mount = Unread(Vec::new()).text(1, inside).text(2, &outside);
        status = status.message(14, &mount.0);
    }
    status
        .text(15, "/var/log/pods/checkout/container/0.log")
        .text(17, IMAGE_REF)
        .0
}

/// `PodSandboxStatusResponse`.
pub(crate) fn sandbox_answer(pod: usize) -> Vec<u8> {
    Unread(Vec::new()).message(1, &sandbox_status(pod)).0
}

/// `ContainerStatusResponse`.
pub(crate) fn container_answer(pod: usize, container: usize, state: i32) -> Vec<u8> {
    let status = container_status(pod, container, state);
    Unread(Vec::new()).message(1, &status).0
}

/// A message of the event stream with the statuses of the whole pod: `container` is now in `state`, told
/// by an event of type `kind`.
pub(crate) fn event(pod: usize, container: usize, kind: i32, state: i32) -> Vec<u8> {
    let event = cri::ContainerEventResponse {
        container_id: container_id(pod, container),
        container_event_type: kind,
        created_at: 1_768_210_306_018_273_645,
        ..cri::ContainerEventResponse::default()
    };
    let mut message = with(&event).message(4, &sandbox_status(pod));
    for number in 0..CONTAINERS_PER_POD {
        let its = if number == container { state } else { RUNNING };
        message = message.message(5, &container_status(pod, number, its));
    }
    message.0
}
