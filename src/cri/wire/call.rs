//! The calls that this crate makes, each with its request as bytes and the reader of its answer.

use std::collections::BTreeMap;

use http::uri::PathAndQuery;
use prost::Message;

use super::codec::WireCodec;
use super::decode::{self, DecodeError, ListItem, POD_UID_LABEL, SandboxAnswer};
use super::messages as wire;
use crate::engine::RuntimeVersion;
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, PodUid, Refusal, RuntimeEvent, SandboxId,
    SandboxListing,
};

/// One call, ready to be sent.
#[derive(Debug)]
pub(crate) struct Call<A> {
    /// The method's name, for people.
    pub(crate) method: &'static str,
    path: &'static str,
    request: Vec<u8>,
    decode: fn(&[u8]) -> A,
}

impl<A> Call<A> {
    /// What tonic needs to send it.
    pub(crate) fn into_parts(self) -> (tonic::Request<Vec<u8>>, PathAndQuery, WireCodec<A>) {
        (
            tonic::Request::new(self.request),
            PathAndQuery::from_static(self.path),
            WireCodec {
                decode: self.decode,
            },
        )
    }
}

macro_rules! call {
    ($method:literal, $request:expr, $decode:path) => {
        Call {
            method: $method,
            path: concat!("/runtime.v1.RuntimeService/", $method),
            request: $request.encode_to_vec(),
            decode: $decode,
        }
    };
}

type Answer<T> = Result<T, DecodeError>;
type Items<T> = Answer<Vec<ListItem<T>>>;

pub(crate) fn version() -> Call<Answer<RuntimeVersion>> {
    call!("Version", wire::VersionRequest::default(), decode::version)
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

pub(crate) fn list_sandboxes(pod: Option<&PodUid>) -> Call<Items<SandboxListing>> {
    let filter = sandbox_filter(pod);
    let request = wire::ListPodSandboxRequest { filter };
    call!("ListPodSandbox", request, decode::sandboxes)
}

pub(crate) fn stream_sandboxes(pod: Option<&PodUid>) -> Call<Items<SandboxListing>> {
    let filter = sandbox_filter(pod);
    let request = wire::StreamPodSandboxesRequest { filter };
    call!("StreamPodSandboxes", request, decode::sandboxes_chunk)
}

pub(crate) fn list_containers(pod: Option<&PodUid>) -> Call<Items<ContainerListing>> {
    let filter = container_filter(pod);
    let request = wire::ListContainersRequest { filter };
    call!("ListContainers", request, decode::containers)
}

pub(crate) fn stream_containers(pod: Option<&PodUid>) -> Call<Items<ContainerListing>> {
    let filter = container_filter(pod);
    let request = wire::StreamContainersRequest { filter };
    call!("StreamContainers", request, decode::containers_chunk)
}

pub(crate) fn sandbox_status(id: &SandboxId) -> Call<Answer<SandboxAnswer>> {
    let request = wire::PodSandboxStatusRequest {
        pod_sandbox_id: id.as_str().to_owned(),
    };
    call!("PodSandboxStatus", request, decode::sandbox_answer)
}

pub(crate) fn container_status(id: &ContainerId) -> Call<Answer<ContainerStatus>> {
    let request = wire::ContainerStatusRequest {
        container_id: id.as_str().to_owned(),
    };
    call!("ContainerStatus", request, decode::container_answer)
}

pub(crate) fn events() -> Call<Result<RuntimeEvent, Refusal>> {
    let request = wire::GetEventsRequest {};
    call!("GetContainerEvents", request, decode::event)
}
