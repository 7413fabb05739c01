use std::collections::BTreeMap;
use std::time::Duration;

use pleg::simulate::{Character, Pod, Rpc};
use tokio::time::Instant;
use tonic::Code;

use crate::client::{Client, cri};
use crate::{EPOCH, builder, runtime};

#[tokio::test(start_paused = true)]
async fn version_tells_which_runtime_it_plays() {
    for (character, name, version) in [
        (Character::containerd_1_6(), "containerd", "1.6.20"),
        (Character::containerd_1_7(), "containerd", "1.7.24"),
        (Character::containerd_2(), "containerd", "2.1.9"),
        (Character::cri_o(), "cri-o", "1.36.3"),
    ] {
        let answer = Client::to(&runtime(character)).version().await.unwrap();
        assert_eq!(answer.runtime_name, name);
        assert_eq!(answer.runtime_version, version);
        assert_eq!(answer.version, "0.1.0");
        assert_eq!(answer.runtime_api_version, "v1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_what_the_kubelet_would_look_for() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);

    let sandboxes = client.sandboxes(None).await.unwrap();
    let metadata = sandboxes[0].metadata.clone().unwrap();
    assert_eq!(sandboxes.len(), 1);
    assert_eq!(sandboxes[0].id, web.sandbox.as_str());
    assert_eq!(sandboxes[0].state(), cri::PodSandboxState::SandboxReady);
    assert_eq!(metadata.name, "web-0");
    assert_eq!(metadata.namespace, "default");
    assert_eq!(metadata.uid, web.uid.as_str());
    assert_eq!(
        sandboxes[0].labels["io.kubernetes.pod.uid"],
        web.uid.as_str()
    );

    let containers = client.containers(None).await.unwrap();
    assert_eq!(containers.len(), 1);
    assert_eq!(containers[0].pod_sandbox_id, web.sandbox.as_str());
    assert_eq!(containers[0].state(), cri::ContainerState::ContainerRunning);
    assert_eq!(containers[0].labels["io.kubernetes.container.name"], "app");
    assert!(!containers[0].image.clone().unwrap().image.is_empty());
}

#[tokio::test(start_paused = true)]
async fn filters_are_all_applied_together() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app", "proxy"]);
    let db = runtime.run_pod("data", "db-0", &["postgres"]);
    runtime.run_sandbox(Pod::new("by-hand", "default", "probe").by_crictl());
    let client = Client::to(&runtime);
    let uid = |uid: &str| BTreeMap::from([("io.kubernetes.pod.uid".to_owned(), uid.to_owned())]);

    let of_web = cri::PodSandboxFilter {
        label_selector: uid(web.uid.as_str()),
        ..Default::default()
    };
    let found = client.sandboxes(Some(of_web.clone())).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, web.sandbox.as_str());
    let neither = cri::PodSandboxFilter {
        id: db.sandbox.to_string(),
        ..of_web
    };
    assert_eq!(client.sandboxes(Some(neither)).await.unwrap(), []);
    let unlabelled = cri::PodSandboxFilter {
        label_selector: uid("by-hand"),
        ..Default::default()
    };
    assert_eq!(client.sandboxes(Some(unlabelled)).await.unwrap(), []);

    let in_web = cri::ContainerFilter {
        pod_sandbox_id: web.sandbox.to_string(),
        ..Default::default()
    };
    assert_eq!(client.containers(Some(in_web)).await.unwrap().len(), 2);
    let one = cri::ContainerFilter {
        id: db.containers[0].to_string(),
        label_selector: uid(db.uid.as_str()),
        ..Default::default()
    };
    let found = client.containers(Some(one)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, db.containers[0].as_str());
}

#[tokio::test(start_paused = true)]
async fn a_status_tells_how_a_container_ended() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    tokio::time::advance(Duration::from_secs(5)).await;
    runtime.exit_container(&web.containers[0], 7).unwrap();
    let status = Client::to(&runtime)
        .container_status(&web.containers[0])
        .await
        .unwrap();
    assert_eq!(status.state(), cri::ContainerState::ContainerExited);
    assert_eq!(status.exit_code, 7);
    assert_eq!(status.reason, "Error");
    assert_eq!(status.finished_at, EPOCH.0 + 5_000_000_000 - 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_is_seen_by_a_read_only() {
    let runtime = runtime(Character::containerd_1_7());
    let web = runtime.run_pod("default", "web-0", &[]);
    let app = runtime.create_container(&web.sandbox, "app").unwrap();
    runtime.fail_start(&app).unwrap();
    let status = Client::to(&runtime).container_status(&app).await.unwrap();
    assert_eq!(status.state(), cri::ContainerState::ContainerExited);
    assert_eq!((status.exit_code, status.started_at), (128, 0));
    assert_eq!(status.reason, "StartError");
}

#[tokio::test(start_paused = true)]
async fn only_cri_o_with_events_fills_the_containers_into_a_sandbox_status() {
    for (character, listed) in [
        (Character::containerd_2(), 0),
        (Character::cri_o(), 1),
        (Character::cri_o_events_off(), 0),
    ] {
        let runtime = runtime(character);
        let web = runtime.run_pod("default", "web-0", &["app"]);
        let answer = Client::to(&runtime)
            .sandbox_status(&web.sandbox)
            .await
            .unwrap();
        assert_eq!(answer.containers_statuses.len(), listed);
        assert_eq!(answer.timestamp != 0, listed > 0);
        let ip = answer.status.unwrap().network.unwrap().ip;
        assert!(ip.starts_with("10.244."), "{ip}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() {
    let client = Client::to(&runtime(Character::containerd_2()));
    let status = client.container_status("nobody").await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let status = client.sandbox_status("nowhere").await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_come_in_parts_where_the_runtime_has_them() {
    let without = runtime(Character::containerd_2());
    let status = Client::to(&without).container_parts().await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);

    let character = Character::containerd_2().with_streaming_lists(2);
    let with = builder(character).pods(1).containers(5).build();
    let parts = Client::to(&with).container_parts().await.unwrap();
    assert_eq!(parts, [2, 2, 1]);
    let empty = runtime(Character::containerd_2().with_streaming_lists(2));
    assert!(
        Client::to(&empty)
            .container_parts()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_method_whatever_came_of_them() {
    let runtime = runtime(Character::containerd_1_6());
    let client = Client::to(&runtime);
    client.sandboxes(None).await.unwrap();
    client.containers(None).await.unwrap();
    client.containers(None).await.unwrap();
    client.container_status("nobody").await.unwrap_err();
    client.open_events().await.unwrap_err();
    let counts: Vec<_> = runtime.rpc_counts().iter().collect();
    assert_eq!(
        counts,
        [
            (Rpc::ListPodSandbox, 1),
            (Rpc::ListContainers, 2),
            (Rpc::ContainerStatus, 1),
            (Rpc::GetContainerEvents, 1),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_tells_what_was_when_it_was_read() {
    let latency = Duration::from_secs(2);
    let runtime = runtime(Character::containerd_2().with_latency(latency));
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    let asked = Instant::now();
    let list = tokio::spawn(async move { client.containers(None).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    runtime.exit_container(&web.containers[0], 0).unwrap();
    let seen = list.await.unwrap().unwrap();
    assert_eq!(Instant::now() - asked, latency);
    assert_eq!(seen[0].state(), cri::ContainerState::ContainerRunning);
}

/// What this crate does not read, but a kubelet's container has.
#[derive(Clone, PartialEq, prost::Message)]
struct KubeletsStatus {
    #[prost(btree_map = "string, string", tag = "13")]
    annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "14")]
    mounts: Vec<Mount>,
    #[prost(string, tag = "15")]
    log_path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Mount {
    #[prost(string, tag = "1")]
    container_path: String,
    #[prost(string, tag = "2")]
    host_path: String,
    #[prost(bool, tag = "3")]
    readonly: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KubeletsStatusAnswer {
    #[prost(message, optional, tag = "1")]
    status: Option<KubeletsStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KubeletsItem {
    #[prost(btree_map = "string, string", tag = "6")]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KubeletsList {
    #[prost(message, repeated, tag = "1")]
    items: Vec<KubeletsItem>,
}

#[tokio::test(start_paused = true)]
async fn the_kubelets_pods_carry_its_annotations_and_mounts_and_others_do_not() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let by_hand = runtime.run_sandbox(Pod::new("by-hand", "default", "probe").by_crictl());
    let probe = runtime.run_container(&by_hand, "probe").unwrap();
    let client = Client::to(&runtime);
    let status = async |container_id: String| {
        let asked = cri::ContainerStatusRequest { container_id };
        let answer: KubeletsStatusAnswer = client.unary("ContainerStatus", asked).await.unwrap();
        answer.status.unwrap()
    };
    let app = status(web.containers[0].to_string()).await;
    assert_eq!(app.annotations["io.kubernetes.container.restartCount"], "0");
    assert_eq!(app.mounts.len(), 3);
    assert!(app.mounts[0].readonly && app.mounts[0].host_path.contains(web.uid.as_str()));
    let log = format!("/var/log/pods/default_web-0_{}/app/0.log", web.uid);
    assert_eq!(app.log_path, log);
    assert_eq!(status(probe.to_string()).await, KubeletsStatus::default());

    let asked = cri::ListPodSandboxRequest::default();
    let list: KubeletsList = client.unary("ListPodSandbox", asked).await.unwrap();
    let annotated = list
        .items
        .iter()
        .filter(|item| !item.annotations.is_empty());
    assert_eq!((list.items.len(), annotated.count()), (2, 1));
}

#[derive(Clone, PartialEq, prost::Message)]
struct RuntimeCondition {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(bool, tag = "2")]
    status: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RuntimeStatus {
    #[prost(message, repeated, tag = "1")]
    conditions: Vec<RuntimeCondition>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusAnswer {
    #[prost(message, optional, tag = "1")]
    status: Option<RuntimeStatus>,
}

#[tokio::test(start_paused = true)]
async fn the_runtime_and_its_network_are_ready_and_it_knows_no_method_that_changes_anything() {
    let runtime = runtime(Character::containerd_2());
    let client = Client::to(&runtime);
    let answer: StatusAnswer = client.unary("Status", ()).await.unwrap();
    let conditions = answer.status.unwrap().conditions;
    let ready: Vec<_> = conditions
        .iter()
        .filter(|condition| condition.status)
        .map(|condition| condition.kind.as_str())
        .collect();
    assert_eq!(ready, ["RuntimeReady", "NetworkReady"]);
    let refused = client
        .unary::<(), ()>("RunPodSandbox", ())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(runtime.rpc_counts().total(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_each_change_at_once_though_its_items_are_kept() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["a", "b"]);
    let client = Client::to(&runtime);
    let states = async || -> Vec<_> {
        let items = client.containers(None).await.unwrap();
        items.iter().map(|item| item.state).collect()
    };
    assert_eq!(states().await, [1, 1]);
    for container in &web.containers {
        runtime.exit_container(container, 0).unwrap();
    }
    assert_eq!(states().await, [2, 2]);
    runtime.set_unknown(&web.containers[0]).unwrap();
    runtime.remove_container(&web.containers[1]).unwrap();
    assert_eq!(states().await, [3]);
    runtime.stop_sandbox(&web.sandbox).unwrap();
    let sandboxes = client.sandboxes(None).await.unwrap();
    assert_eq!(sandboxes[0].state(), cri::PodSandboxState::SandboxNotready);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_it_does_not_have_is_refused_by_its_name() {
    let runtime = runtime(Character::containerd_2());
    let mut grpc = tonic::client::Grpc::new(runtime.channel());
    grpc.ready().await.unwrap();
    let elsewhere = http::uri::PathAndQuery::from_static("/runtime.v1.ImageService/Version");
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    let refused = grpc.unary(tonic::Request::new(()), elsewhere, codec).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(refused.message(), "unknown service runtime.v1.ImageService");
    assert_eq!(runtime.rpc_counts().total(), 0);
}
