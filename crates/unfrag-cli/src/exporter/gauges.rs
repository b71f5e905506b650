//! Gauges of one name, told apart by labels.
//!
//! Invariant: what is not known has no gauge.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Gauges of one name.
pub struct Named(Gauges);

impl Named {
    /// Makes the name known, with a sentence about it without its full stop.
    pub fn new(registry: &mut Registry, name: &str, help: &str) -> Named {
        let family = Gauges::default();
        registry.register(name, help, family.clone());
        Named(family)
    }

    /// Sets what is known.
    pub fn set_known(&self, labels: Labels, value: Option<f64>) {
        if let Some(value) = value {
            self.set(labels, value);
        }
    }

    /// Sets a value.
    pub fn set(&self, labels: Labels, value: impl Into<f64>) {
        self.0.get_or_create(&labels).set(value.into());
    }
}

/// The labels of a zone.
pub fn of_zone(node: u32, zone: &str) -> Labels {
    vec![("node", node.to_string()), ("zone", zone.to_owned())]
}
