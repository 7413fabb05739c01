//! A thin layer over the client library's encoder: one call writes one family with its samples.

use std::fmt::{self, Debug};

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::stats::{BOUNDS, Durations};

/// Writes families one after the other.
pub(super) struct Families<'a>(pub(super) DescriptorEncoder<'a>);

impl Families<'_> {
    fn begin<'s>(
        &'s mut self,
        (name, unit, help): Named<'s>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    /// A counter without labels. Its name gets `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.begin((name, None, help), MetricType::Counter)?
            .encode_counter::<NoLabelSet, u64, f64>(&value, None)
    }

    /// A counter in a unit, which its name gets before `_total`.
    pub(super) fn measured_counter(&mut self, named: Named<'_>, value: f64) -> fmt::Result {
        self.begin(named, MetricType::Counter)?
            .encode_counter::<NoLabelSet, f64, f64>(&value, None)
    }

    /// A counter with labels. Without samples only its description is written.
    pub(super) fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.begin((name, None, help), MetricType::Counter)?;
        for (labels, value) in samples {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
        }
        Ok(())
    }

    /// A gauge that counts things.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result {
        self.begin((name, None, help), MetricType::Gauge)?
            .encode_gauge(&value)
    }

    /// A gauge in a unit, which its name gets; without a value only its description is written.
    pub(super) fn measured(&mut self, named: Named<'_>, value: Option<f64>) -> fmt::Result {
        let mut family = self.begin(named, MetricType::Gauge)?;
        value.map_or(Ok(()), |value| family.encode_gauge(&value))
    }

    /// A gauge with labels.
    pub(super) fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, usize)>,
    ) -> fmt::Result {
        let mut family = self.begin((name, None, help), MetricType::Gauge)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A fact in labels. Its name gets `_info`.
    pub(super) fn info<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        facts: Option<L>,
    ) -> fmt::Result {
        let mut family = self.begin((name, None, help), MetricType::Info)?;
        facts.map_or(Ok(()), |facts| family.encode_info(&facts))
    }

    /// A histogram of durations. Its name gets `_seconds`.
    pub(super) fn durations(
        &mut self,
        name: &str,
        help: &str,
        durations: &Durations,
    ) -> fmt::Result {
        let mut buckets: Vec<_> = BOUNDS
            .iter()
            .zip(durations.within)
            .map(|(bound, count)| (bound.as_secs_f64(), count))
            .collect();
        buckets.push((f64::INFINITY, durations.beyond));
        self.begin((name, SECONDS, help), MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(
                durations.sum.as_secs_f64(),
                durations.count(),
                &buckets,
                None,
            )
    }
}

/// A name without its unit, the unit, and the help text.
pub(super) type Named<'a> = (&'a str, Option<&'static Unit>, &'a str);

/// The unit of times.
pub(super) const SECONDS: Option<&Unit> = Some(&Unit::Seconds);

/// The unit of memory.
pub(super) const BYTES: Option<&Unit> = Some(&Unit::Bytes);

/// A variant's name, as it stands in the library.
pub(super) fn name(variant: &impl Debug) -> String {
    format!("{variant:?}")
}
