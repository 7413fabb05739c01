//! CRI's messages as they are read: only the fields that are used, each borrowed from the bytes.
//!
//! The rules are those of protocol buffers: of a scalar given twice the last counts, a message given
//! twice is merged, unknown fields are passed over, an enum's number is kept whatever it is. Texts are
//! checked to be UTF-8 even where nobody uses them, as every decoder of proto3 must.
//!
//! Field numbers are those of `proto/runtime/v1/api.proto`; the property tests hold every one of these
//! readers against prost's.

use super::fields::{Field, Fields, Malformed};

/// The kubelet's labels on sandboxes and containers.
pub(crate) const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";
const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
const CONTAINER_NAME_LABEL: &str = "io.kubernetes.container.name";

/// A message that is read field by field.
pub(crate) trait View<'a>: Default {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed>;

    fn merge(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        for field in Fields::of(message) {
            self.take(field?)?;
        }
        Ok(())
    }

    fn read(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut view = Self::default();
        view.merge(message)?;
        Ok(view)
    }
}

/// The labels that say whose a subject is; empty where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels<'a> {
    pub(crate) pod_uid: &'a str,
    pub(crate) pod_namespace: &'a str,
    pub(crate) pod_name: &'a str,
    pub(crate) container_name: &'a str,
}

impl<'a> Labels<'a> {
    fn take_entry(&mut self, entry: &'a [u8]) -> Result<(), Malformed> {
        let (mut key, mut value) = ("", "");
        for field in Fields::of(entry) {
            let field = field?;
            match field.number {
                1 => key = field.text()?,
                2 => value = field.text()?,
                _ => {}
            }
        }
        match key {
            POD_UID_LABEL => self.pod_uid = value,
            POD_NAMESPACE_LABEL => self.pod_namespace = value,
            POD_NAME_LABEL => self.pod_name = value,
            CONTAINER_NAME_LABEL => self.container_name = value,
            _ => {}
        }
        Ok(())
    }
}

/// `VersionResponse`.
#[derive(Debug, Default)]
pub(crate) struct VersionAnswer<'a> {
    pub(crate) version: &'a str,
    pub(crate) runtime_name: &'a str,
    pub(crate) runtime_version: &'a str,
    pub(crate) runtime_api_version: &'a str,
}

impl<'a> View<'a> for VersionAnswer<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.version = field.text()?,
            2 => self.runtime_name = field.text()?,
            3 => self.runtime_version = field.text()?,
            4 => self.runtime_api_version = field.text()?,
            _ => {}
        }
        Ok(())
    }
}

/// `PodSandboxMetadata`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PodMetadata<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) attempt: u32,
}

impl<'a> View<'a> for PodMetadata<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.name = field.text()?,
            2 => self.uid = field.text()?,
            3 => self.namespace = field.text()?,
            4 => self.attempt = field.uint32()?,
            _ => {}
        }
        Ok(())
    }
}

/// `ContainerMetadata`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContainerMetadata<'a> {
    pub(crate) name: &'a str,
    pub(crate) attempt: u32,
}

impl<'a> View<'a> for ContainerMetadata<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.name = field.text()?,
            2 => self.attempt = field.uint32()?,
            _ => {}
        }
        Ok(())
    }
}

/// A message of which one text is read, its field 1: `ImageSpec`, `PodIP`.
#[derive(Clone, Copy, Debug, Default)]
struct FirstText<'a>(&'a str);

impl<'a> View<'a> for FirstText<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number == 1 {
            self.0 = field.text()?;
        }
        Ok(())
    }
}

/// `PodSandbox`, an item of a list.
#[derive(Debug, Default)]
pub(crate) struct Sandbox<'a> {
    pub(crate) id: &'a str,
    pub(crate) metadata: Option<PodMetadata<'a>>,
    pub(crate) state: i32,
    pub(crate) created_at: i64,
    pub(crate) labels: Labels<'a>,
}

impl<'a> View<'a> for Sandbox<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.id = field.text()?,
            2 => self
                .metadata
                .get_or_insert_default()
                .merge(field.message()?)?,
            3 => self.state = field.int32()?,
            4 => self.created_at = field.int64()?,
            5 => self.labels.take_entry(field.map_entry()?)?,
            _ => {}
        }
        Ok(())
    }
}

/// `Container`, an item of a list.
#[derive(Debug, Default)]
pub(crate) struct Container<'a> {
    pub(crate) id: &'a str,
    pub(crate) sandbox: &'a str,
    pub(crate) metadata: Option<ContainerMetadata<'a>>,
    image: FirstText<'a>,
    pub(crate) image_ref: &'a str,
    pub(crate) state: i32,
    pub(crate) created_at: i64,
    pub(crate) labels: Labels<'a>,
}

impl<'a> Container<'a> {
    pub(crate) fn image(&self) -> &'a str {
        self.image.0
    }
}

impl<'a> View<'a> for Container<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.id = field.text()?,
            2 => self.sandbox = field.text()?,
            3 => self
                .metadata
                .get_or_insert_default()
                .merge(field.message()?)?,
            4 => self.image.merge(field.message()?)?,
            5 => self.image_ref = field.text()?,
            6 => self.state = field.int32()?,
            7 => self.created_at = field.int64()?,
            8 => self.labels.take_entry(field.map_entry()?)?,
            _ => {}
        }
        Ok(())
    }
}

/// `PodSandboxNetworkStatus`: the addresses that are not empty.
#[derive(Debug, Default)]
struct Network<'a> {
    ip: &'a str,
    additional: Vec<&'a str>,
}

impl<'a> View<'a> for Network<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.ip = field.text()?,
            2 => {
                let FirstText(ip) = FirstText::read(field.message()?)?;
                if !ip.is_empty() {
                    self.additional.push(ip);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// `PodSandboxStatus`.
#[derive(Debug, Default)]
pub(crate) struct SandboxStatus<'a> {
    pub(crate) id: &'a str,
    pub(crate) metadata: Option<PodMetadata<'a>>,
    pub(crate) state: i32,
    pub(crate) created_at: i64,
    network: Network<'a>,
    linux: Linux,
    pub(crate) labels: Labels<'a>,
}

impl<'a> SandboxStatus<'a> {
    /// The addresses, primary first.
    pub(crate) fn ips(&self) -> impl Iterator<Item = &'a str> {
        let primary = Some(self.network.ip).filter(|ip| !ip.is_empty());
        primary
            .into_iter()
            .chain(self.network.additional.iter().copied())
    }

    /// The number of the `NamespaceMode` of its network.
    pub(crate) fn network_mode(&self) -> i32 {
        self.linux.0.0.network
    }
}

impl<'a> View<'a> for SandboxStatus<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.id = field.text()?,
            2 => self
                .metadata
                .get_or_insert_default()
                .merge(field.message()?)?,
            3 => self.state = field.int32()?,
            4 => self.created_at = field.int64()?,
            5 => self.network.merge(field.message()?)?,
            6 => self.linux.merge(field.message()?)?,
            7 => self.labels.take_entry(field.map_entry()?)?,
            _ => {}
        }
        Ok(())
    }
}

/// `LinuxPodSandboxStatus`.
#[derive(Debug, Default)]
struct Linux(Namespaces);

impl<'a> View<'a> for Linux {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.0.merge(field.message()?),
            _ => Ok(()),
        }
    }
}

/// `Namespace`.
#[derive(Debug, Default)]
struct Namespaces(NamespaceOptions);

impl<'a> View<'a> for Namespaces {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            2 => self.0.merge(field.message()?),
            _ => Ok(()),
        }
    }
}

/// `NamespaceOption`.
#[derive(Debug, Default)]
struct NamespaceOptions {
    network: i32,
}

impl<'a> View<'a> for NamespaceOptions {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number == 1 {
            self.network = field.int32()?;
        }
        Ok(())
    }
}

/// `ContainerStatus`.
#[derive(Debug, Default)]
pub(crate) struct ContainerStatus<'a> {
    pub(crate) id: &'a str,
    pub(crate) metadata: Option<ContainerMetadata<'a>>,
    pub(crate) state: i32,
    pub(crate) created_at: i64,
    pub(crate) started_at: i64,
    pub(crate) finished_at: i64,
    pub(crate) exit_code: i32,
    image: FirstText<'a>,
    pub(crate) image_ref: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) labels: Labels<'a>,
}

impl<'a> ContainerStatus<'a> {
    pub(crate) fn image(&self) -> &'a str {
        self.image.0
    }
}

impl<'a> View<'a> for ContainerStatus<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.id = field.text()?,
            2 => self
                .metadata
                .get_or_insert_default()
                .merge(field.message()?)?,
            3 => self.state = field.int32()?,
            4 => self.created_at = field.int64()?,
            5 => self.started_at = field.int64()?,
            6 => self.finished_at = field.int64()?,
            7 => self.exit_code = field.int32()?,
            8 => self.image.merge(field.message()?)?,
            9 => self.image_ref = field.text()?,
            10 => self.reason = field.text()?,
            11 => self.message = field.text()?,
            12 => self.labels.take_entry(field.map_entry()?)?,
            _ => {}
        }
        Ok(())
    }
}
