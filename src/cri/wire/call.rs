//! The calls that this crate makes, each with its request as bytes and the reader of its answer.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::uri::PathAndQuery;
use prost::Message;

use super::codec::{Reading, WireCodec};
use super::decode::{self, DecodeError};
use super::messages as wire;
use super::views::POD_UID_LABEL;
use crate::engine::RuntimeVersion;
use crate::lifecycle::{ContainerId, PodUid, SandboxId};

/// One call, ready to be sent.
#[derive(Debug)]
pub(crate) struct Call<A> {
    /// The method's name, for people.
    pub(crate) method: &'static str,
    path: &'static str,
    request: Vec<u8>,
    reading: Reading<A>,
}

impl<A> Call<A> {
    /// What tonic needs to send it.
    pub(crate) fn into_parts(self) -> (tonic::Request<Vec<u8>>, PathAndQuery, WireCodec<A>) {
        (
            tonic::Request::new(self.request),
            PathAndQuery::from_static(self.path),
            WireCodec {
                reading: self.reading,
            },
        )
    }
}

macro_rules! call {
    ($method:literal, $request:expr, $reading:expr) => {
        Call {
            method: $method,
            path: concat!("/runtime.v1.RuntimeService/", $method),
            request: $request.encode_to_vec(),
            reading: $reading,
        }
    };
}

type Answer<T> = Result<T, DecodeError>;

pub(crate) fn version() -> Call<Answer<RuntimeVersion>> {
    let request = wire::VersionRequest::default();
    call!("Version", request, Reading::InPlace(decode::version))
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

/// The bytes of a list's answer or of a piece of it, for a [`ListReader`](super::listing::ListReader).
pub(crate) type ListMessage = Bytes;

const HANDED_ON: Reading<Bytes> = Reading::HandedOn(|bytes| bytes);

pub(crate) fn list_sandboxes(pod: Option<&PodUid>) -> Call<ListMessage> {
    let filter = sandbox_filter(pod);
    let request = wire::ListPodSandboxRequest { filter };
    call!("ListPodSandbox", request, HANDED_ON)
}

pub(crate) fn stream_sandboxes(pod: Option<&PodUid>) -> Call<ListMessage> {
    let filter = sandbox_filter(pod);
    let request = wire::StreamPodSandboxesRequest { filter };
    call!("StreamPodSandboxes", request, HANDED_ON)
}

pub(crate) fn list_containers(pod: Option<&PodUid>) -> Call<ListMessage> {
    let filter = container_filter(pod);
    let request = wire::ListContainersRequest { filter };
    call!("ListContainers", request, HANDED_ON)
}

pub(crate) fn stream_containers(pod: Option<&PodUid>) -> Call<ListMessage> {
    let filter = container_filter(pod);
    let request = wire::StreamContainersRequest { filter };
    call!("StreamContainers", request, HANDED_ON)
}

pub(crate) fn sandbox_status(id: &SandboxId) -> Call<Bytes> {
    let request = wire::PodSandboxStatusRequest {
        pod_sandbox_id: id.as_str().to_owned(),
    };
    call!("PodSandboxStatus", request, HANDED_ON)
}

pub(crate) fn container_status(id: &ContainerId) -> Call<Bytes> {
    let request = wire::ContainerStatusRequest {
        container_id: id.as_str().to_owned(),
    };
    call!("ContainerStatus", request, HANDED_ON)
}

pub(crate) fn events() -> Call<Bytes> {
    let request = wire::GetEventsRequest {};
    call!("GetContainerEvents", request, HANDED_ON)
}
