//! Writes the seeds of the corpora: `seeds <folder of the repository>`. They are where a fuzzer begins; the
//! committed corpora are what it made of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use prost::Message;

#[allow(dead_code, missing_docs, clippy::all, clippy::pedantic)]
mod cri {
    include!("../../src/cri/wire/generated/runtime.v1.rs");
}

/// One input of the target `wire`: steps, one after the other.
#[derive(Clone, Default)]
struct Steps(Vec<u8>);

impl Steps {
    fn step(mut self, what: u8, content: &[u8]) -> Self {
        let length = u16::try_from(content.len()).expect("seeds are small");
        self.0.push(what);
        self.0.extend(length.to_le_bytes());
        self.0.extend(content);
        self
    }

    fn event(self, id: &str, kind: i32, sandbox: i32, containers: &[(&str, i32)]) -> Self {
        let event = cri::ContainerEventResponse {
            container_id: id.into(),
            container_event_type: kind,
            // After the first relist, by the clock of the target.
            created_at: 1_700_000_001_500_000_000,
            pod_sandbox_status: Some(sandbox_status("s1", sandbox)),
            containers_statuses: containers
                .iter()
                .map(|(id, state)| container_status(id, *state))
                .collect(),
        };
        self.step(0, &event.encode_to_vec())
    }

    fn wait(self, milliseconds: u16) -> Self {
        self.step(4, &milliseconds.to_le_bytes())
    }

    /// Answers the call that waits at this place in the order of asking.
    fn answer(self, choice: u8, answer: &[u8]) -> Self {
        self.step(2, &[&[choice], answer].concat())
    }

    fn version(self, choice: u8) -> Self {
        let version = cri::VersionResponse {
            version: "0.1.0".into(),
            runtime_name: "containerd".into(),
            runtime_version: "v2.1.0".into(),
            runtime_api_version: "v1".into(),
        };
        self.answer(choice, &version.encode_to_vec())
    }

    fn lists(self, choice: u8, sandboxes: &[i32], containers: &[(&str, i32)]) -> Self {
        let items = sandboxes.iter().map(|state| listed_sandbox("s1", *state));
        let items = cri::ListPodSandboxResponse {
            items: items.collect(),
        };
        let containers = containers.iter().map(|(id, state)| listed(id, *state));
        let containers = cri::ListContainersResponse {
            containers: containers.collect(),
        };
        let sandboxes = piece(&items.encode_to_vec());
        self.answer(choice, &[sandboxes, containers.encode_to_vec()].concat())
    }

    fn statuses(self, choice: u8, sandbox: Option<i32>, containers: &[(&str, i32)]) -> Self {
        let mut pieces = Vec::new();
        if let Some(state) = sandbox {
            let answer = cri::PodSandboxStatusResponse {
                status: Some(sandbox_status("s1", state)),
                ..Default::default()
            };
            pieces.extend(piece(&answer.encode_to_vec()));
        }
        for (id, state) in containers {
            let answer = cri::ContainerStatusResponse {
                status: Some(container_status(id, *state)),
            };
            pieces.extend(piece(&answer.encode_to_vec()));
        }
        self.answer(choice, &pieces)
    }
}

fn piece(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("seeds are small");
    [&length.to_le_bytes(), content].concat()
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([
        ("io.kubernetes.pod.uid".into(), "u1".into()),
        ("io.kubernetes.pod.name".into(), "web".into()),
        ("io.kubernetes.pod.namespace".into(), "shop".into()),
    ])
}

fn sandbox_status(id: &str, state: i32) -> cri::PodSandboxStatus {
    let listed = listed_sandbox(id, state);
    cri::PodSandboxStatus {
        id: listed.id,
        metadata: listed.metadata,
        state,
        created_at: listed.created_at,
        network: Some(cri::PodSandboxNetworkStatus {
            ip: "10.0.0.1".into(),
            additional_ips: Vec::new(),
        }),
        linux: None,
        labels: listed.labels,
    }
}

fn listed_sandbox(id: &str, state: i32) -> cri::PodSandbox {
    cri::PodSandbox {
        id: id.into(),
        metadata: Some(cri::PodSandboxMetadata {
            name: "web".into(),
            uid: "u1".into(),
            namespace: "shop".into(),
            attempt: 0,
        }),
        state,
        created_at: 7,
        labels: labels(),
    }
}

fn listed(id: &str, state: i32) -> cri::Container {
    cri::Container {
        id: id.into(),
        pod_sandbox_id: "s1".into(),
        metadata: Some(cri::ContainerMetadata {
            name: "app".into(),
            attempt: 0,
        }),
        image: Some(cri::ImageSpec {
            image: "nginx".into(),
        }),
        image_ref: "sha256:1".into(),
        state,
        created_at: 7,
        labels: labels(),
    }
}

fn container_status(id: &str, state: i32) -> cri::ContainerStatus {
    let listed = listed(id, state);
    cri::ContainerStatus {
        id: listed.id,
        metadata: listed.metadata,
        state,
        created_at: 7,
        started_at: if state > 0 { 8 } else { 0 },
        finished_at: if state > 1 { 9 } else { 0 },
        image: listed.image,
        image_ref: listed.image_ref,
        labels: listed.labels,
        ..Default::default()
    }
}

/// A node with one running container, found by its first relist.
fn node() -> Steps {
    Steps::default()
        .version(0)
        .lists(0, &[0], &[("c1", 1)])
        .statuses(0, Some(0), &[("c1", 1)])
        .wait(1100)
}

fn wire() -> Vec<Steps> {
    let again = |steps: Steps, sandboxes: &[i32], containers: &[(&str, i32)]| {
        steps
            .wait(1100)
            .lists(0, sandboxes, containers)
            .lists(1, sandboxes, containers)
            .wait(1100)
    };
    let life = node()
        .event("c2", 0, 0, &[("c2", 0), ("c1", 1)])
        .event("c2", 1, 0, &[("c2", 1), ("c1", 1)])
        .event("c2", 2, 0, &[("c2", 2), ("c1", 1)])
        .event("c2", 3, 0, &[("c1", 1)])
        .wait(100);
    let stops = node().event("c1", 2, 0, &[("c1", 2)]);
    let revived = again(
        again(again(stops.clone(), &[0], &[("c1", 1)]), &[0], &[("c1", 1)]),
        &[0],
        &[("c1", 1)],
    );
    let gone = again(again(node(), &[1], &[]), &[], &[]);
    let later = again(gone.clone().wait(65_000), &[], &[]);
    let comes_back = again(later.clone().wait(5_000), &[0], &[("c1", 1)]);
    vec![
        node(),
        life.clone(),
        stops.clone(),
        revived,
        gone,
        later,
        comes_back,
        again(life, &[0], &[("c1", 1)]),
        node()
            .step(7, b"\x01u1")
            .lists(0, &[0], &[("c1", 1)])
            .statuses(0, Some(0), &[("c1", 1)]),
        node()
            .step(7, b"\x00u1")
            .step(7, b"\x03u1")
            .lists(0, &[0], &[("c1", 2)]),
        node()
            .step(8, b"u1")
            .lists(0, &[0], &[("c1", 1)])
            .statuses(0, None, &[]),
        again(node().step(8, b""), &[0], &[("c1", 2)]),
        node().step(9, b"u1").statuses(0, Some(1), &[("c1", 2)]),
        again(
            node().step(5, b"\x01").wait(2_000),
            &[0],
            &[("c1", 1), ("c2", 1)],
        ),
        node().step(5, b"\x00").wait(20_000),
        again(node().step(10, b"u1"), &[0], &[("c1", 1)]),
        node()
            .step(6, b"\x00\x01")
            .wait(2_000)
            .step(6, b"\x00\x02")
            .wait(2_000),
        stops.step(11, b"\x00\x00").event("c3", 1, 0, &[("c3", 1)]),
        again(node(), &[0], &[("c1", 3)]),
        node().step(0, b"\xff\xff").step(0, b""),
    ]
}

/// The smallest of these files, at most so many.
fn smallest(folder: &Path, ending: &str, most: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            all.push(fs::read(path)?);
        }
    }
    all.sort_by_key(Vec::len);
    all.truncate(most);
    Ok(all)
}

/// The first lines of the recordings.
fn recordings(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for whole in smallest(folder, "jsonl", usize::MAX)? {
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        for count in [1, 4, 12, 30] {
            let mut excerpt = Vec::new();
            for line in lines.iter().take(count) {
                if excerpt.len() + line.len() > 24_000 {
                    break;
                }
                excerpt.extend_from_slice(line);
            }
            all.push(excerpt);
        }
    }
    Ok(all)
}

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "..".to_owned());
    let repository = Path::new(&folder);
    let seeds: [(&str, Vec<Vec<u8>>); 3] = [
        ("wire", wire().into_iter().map(|steps| steps.0).collect()),
        (
            "scenario",
            smallest(&repository.join("scenarios"), "yaml", 30)?,
        ),
        (
            "recording",
            recordings(&repository.join("scenarios/recorded"))?,
        ),
    ];
    for (target, seeds) in seeds {
        let corpus = repository.join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(corpus.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}
