//! What a node runs: names, namespaces and containers as one meets them.

use std::sync::Arc;

use super::World;
use super::seed::Seeded;
use super::subject::Pod;
use crate::lifecycle::{SandboxId, UnixNanos};

/// How a workload's pods are named.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// `etcd-node-1`: a static pod of this node.
    Static,
    /// `payments-0`, `payments-1`.
    StatefulSet,
    /// `web-7d9f8b6c54-x2klp`.
    Deployment,
    /// `node-exporter-x2klp`.
    DaemonSet,
}

struct Workload {
    namespace: &'static str,
    name: &'static str,
    naming: Naming,
    host_network: bool,
    containers: &'static [&'static str],
}

const WORKLOADS: &[Workload] = &[
    Workload {
        namespace: "kube-system",
        name: "etcd",
        naming: Naming::Static,
        host_network: true,
        containers: &["etcd"],
    },
    Workload {
        namespace: "kube-system",
        name: "coredns",
        naming: Naming::Deployment,
        host_network: false,
        containers: &["coredns"],
    },
    Workload {
        namespace: "default",
        name: "web",
        naming: Naming::Deployment,
        host_network: false,
        containers: &["nginx", "app"],
    },
    Workload {
        namespace: "shop",
        name: "payments",
        naming: Naming::StatefulSet,
        host_network: false,
        containers: &["payments", "envoy", "audit"],
    },
    Workload {
        namespace: "kube-system",
        name: "kube-proxy",
        naming: Naming::DaemonSet,
        host_network: true,
        containers: &["kube-proxy"],
    },
    Workload {
        namespace: "shop",
        name: "cart",
        naming: Naming::Deployment,
        host_network: false,
        containers: &["cart", "envoy"],
    },
    Workload {
        namespace: "monitoring",
        name: "node-exporter",
        naming: Naming::DaemonSet,
        host_network: true,
        containers: &["node-exporter"],
    },
    Workload {
        namespace: "batch",
        name: "report",
        naming: Naming::Deployment,
        host_network: false,
        containers: &["report"],
    },
    Workload {
        namespace: "data",
        name: "postgres",
        naming: Naming::StatefulSet,
        host_network: false,
        containers: &["postgres", "exporter"],
    },
    Workload {
        namespace: "shop",
        name: "search",
        naming: Naming::Deployment,
        host_network: false,
        containers: &["search", "envoy", "warmup"],
    },
];

/// Names for containers past a workload's own.
const SIDECARS: &[&str] = &["logs", "metrics", "proxy", "cache", "sync"];

/// Thinks of pods, one workload after the other.
#[derive(Clone, Debug)]
pub(super) struct Population {
    names: Seeded,
    made: usize,
    containers: Option<usize>,
}

/// A pod and the containers that it is to have.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) pod: Arc<Pod>,
    pub(super) containers: Vec<Arc<str>>,
}

impl Population {
    /// Pods with `containers` containers each, or with their workload's own one to three.
    pub(super) fn new(seed: u64, containers: Option<usize>) -> Self {
        Self {
            names: Seeded::new(seed),
            made: 0,
            containers,
        }
    }

    pub(super) fn next(&mut self, world: &mut World) -> Option<Blueprint> {
        let round = self.made.checked_div(WORKLOADS.len())?;
        let workload = WORKLOADS.get(self.made % WORKLOADS.len())?;
        self.made = self.made.wrapping_add(1);
        // What its controller labels it with, as kubelets pass it on.
        let mut template = None;
        let name = match workload.naming {
            Naming::Static if round == 0 => format!("{}-node-1", workload.name),
            Naming::StatefulSet => format!("{}-{round}", workload.name),
            Naming::Deployment => {
                let hash = self.names.name_suffix(10);
                let name = format!("{}-{hash}-{}", workload.name, self.names.name_suffix(5));
                template = Some(hash);
                name
            }
            Naming::Static | Naming::DaemonSet => {
                format!("{}-{}", workload.name, self.names.name_suffix(5))
            }
        };
        let mut pod = Pod::new(world.new_pod_uid(), workload.namespace, name)
            .label("app", workload.name)
            .label("app.kubernetes.io/name", workload.name)
            .label("app.kubernetes.io/part-of", workload.namespace);
        if let Some(hash) = template {
            pod = pod.label("pod-template-hash", hash);
        }
        pod.host_network = workload.host_network;
        let own = workload.containers.iter().map(|name| Arc::from(*name));
        let containers = match self.containers {
            None => own.collect(),
            Some(count) => own.chain(sidecars()).take(count).collect(),
        };
        Some(Blueprint {
            pod: Arc::new(pod),
            containers,
        })
    }

    /// Puts `pods` running pods into the world, made in the hours before `at`. Nobody is told.
    pub(super) fn settle(
        &mut self,
        world: &mut World,
        at: UnixNanos,
        pods: usize,
    ) -> Vec<SandboxId> {
        const MINUTE: i64 = 60_000_000_000;
        let mut sandboxes = Vec::new();
        for _ in 0..pods {
            let Some(blueprint) = self.next(world) else {
                break;
            };
            let age = MINUTE * i64::try_from(3 + self.names.below(600)).unwrap_or(3);
            let made = UnixNanos(at.0.saturating_sub(age));
            let (sandbox, _untold) = world.run_sandbox(made, blueprint.pod);
            for name in &blueprint.containers {
                if let Ok((container, _untold)) = world.create_container(made, &sandbox, name) {
                    let started = UnixNanos(made.0.saturating_add(MINUTE / 60));
                    // It was created a line above, in a ready sandbox.
                    let _ = world.start_container(started, &container);
                }
            }
            sandboxes.push(sandbox);
        }
        sandboxes
    }
}

fn sidecars() -> impl Iterator<Item = Arc<str>> {
    (0_usize..).map(|at| {
        let name = SIDECARS
            .get(at % SIDECARS.len())
            .copied()
            .unwrap_or("sidecar");
        match at / SIDECARS.len() {
            0 => name.into(),
            round => format!("{name}-{round}").into(),
        }
    })
}
