//! The calls that this crate makes, each with its request as bytes.

use std::collections::BTreeMap;

use http::uri::PathAndQuery;
use prost::Message;

use super::codec::BytesCodec;
use super::messages as wire;
use super::views::POD_UID_LABEL;
use crate::lifecycle::{ContainerId, PodUid, SandboxId};

/// One call, ready to be sent.
#[derive(Debug)]
pub(crate) struct Call {
    /// The method's name, for people.
    pub(crate) method: &'static str,
    path: &'static str,
    request: Vec<u8>,
}

impl Call {
    /// What tonic needs to send it.
    pub(crate) fn into_parts(self) -> (tonic::Request<Vec<u8>>, PathAndQuery, BytesCodec) {
        (
            tonic::Request::new(self.request),
            PathAndQuery::from_static(self.path),
            BytesCodec,
        )
    }
}

macro_rules! call {
    ($method:literal, $request:expr) => {
        Call {
            method: $method,
            path: concat!("/runtime.v1.RuntimeService/", $method),
            request: $request.encode_to_vec(),
        }
    };
}

pub(crate) fn version() -> Call {
    let request = wire::VersionRequest::default();
    call!("Version", request)
}

fn labels_of(pod: &PodUid) -> BTreeMap<String, String> {
    BTreeMap::from([(POD_UID_LABEL.to_owned(), pod.as_str().to_owned())])
}

/// Matches the sandboxes that carry the label of the pod's uid; all of them without a pod.
fn sandbox_filter(pod: Option<&PodUid>) -> Option<wire::PodSandboxFilter> {
    pod.map(|pod| wire::PodSandboxFilter {
        label_selector: labels_of(pod),
        ..Default::default()
    })
}

/// Matches the containers that carry the label of the pod's uid; all of them without a pod.
fn container_filter(pod: Option<&PodUid>) -> Option<wire::ContainerFilter> {
    pod.map(|pod| wire::ContainerFilter {
        label_selector: labels_of(pod),
        ..Default::default()
    })
}

pub(crate) fn list_sandboxes(pod: Option<&PodUid>) -> Call {
    let filter = sandbox_filter(pod);
    let request = wire::ListPodSandboxRequest { filter };
    call!("ListPodSandbox", request)
}

pub(crate) fn stream_sandboxes(pod: Option<&PodUid>) -> Call {
    let filter = sandbox_filter(pod);
    let request = wire::StreamPodSandboxesRequest { filter };
    call!("StreamPodSandboxes", request)
}

pub(crate) fn list_containers(pod: Option<&PodUid>) -> Call {
    let filter = container_filter(pod);
    let request = wire::ListContainersRequest { filter };
    call!("ListContainers", request)
}

pub(crate) fn stream_containers(pod: Option<&PodUid>) -> Call {
    let filter = container_filter(pod);
    let request = wire::StreamContainersRequest { filter };
    call!("StreamContainers", request)
}

pub(crate) fn sandbox_status(id: &SandboxId) -> Call {
    let request = wire::PodSandboxStatusRequest {
        pod_sandbox_id: id.as_str().to_owned(),
    };
    call!("PodSandboxStatus", request)
}

pub(crate) fn container_status(id: &ContainerId) -> Call {
    let request = wire::ContainerStatusRequest {
        container_id: id.as_str().to_owned(),
    };
    call!("ContainerStatus", request)
}

pub(crate) fn events() -> Call {
    let request = wire::GetEventsRequest {};
    call!("GetContainerEvents", request)
}
