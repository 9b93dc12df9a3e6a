//! Counts for Prometheus. Gauges are read where they are kept; here are the counters and histograms of requests.

use std::{
    fmt::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use std::collections::BTreeMap;

/// Upper ends of the bars of durations, in seconds.
const BARS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0];

/// Durations of requests by where they went.
#[derive(Clone, Copy, Default)]
struct Durations {
    bars: [u64; BARS.len()],
    count: u64,
    seconds: f64,
}

/// What is counted.
#[derive(Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    durations: Mutex<BTreeMap<&'static str, Durations>>,
    passes: AtomicU64,
    rows: AtomicU64,
    /// Syncs of the log.
    pub syncs: AtomicU64,
    /// Requests that were written to the log.
    pub entries: AtomicU64,
}

impl Metrics {
    /// A request was answered.
    pub fn request(&self, route: &'static str, status: u16, took: Duration) {
        *lock(&self.requests).entry((route, status)).or_default() += 1;
        let mut durations = lock(&self.durations);
        let durations = durations.entry(route).or_default();
        let seconds = took.as_secs_f64();
        let bars = BARS.iter().zip(&mut durations.bars).filter(|(end, _)| seconds <= **end);
        bars.for_each(|(_, count)| *count += 1);
        durations.count += 1;
        durations.seconds += seconds;
    }

    /// So many images went through the network together.
    pub fn pass(&self, rows: usize) {
        self.passes.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Everything that is counted here, as text.
    pub fn write(&self, text: &mut Text) {
        text.describe("dpcl_requests_total", "counter", "Requests answered.");
        for ((route, status), count) in lock(&self.requests).iter() {
            text.line(
                "dpcl_requests_total",
                &[("route", route), ("status", &status.to_string())],
                *count as f64,
            );
        }
        text.describe("dpcl_request_seconds", "histogram", "Time until a request was answered.");
        for (route, durations) in lock(&self.durations).iter() {
            for (end, count) in BARS.iter().zip(durations.bars) {
                let labels = [("route", *route), ("le", &end.to_string())];
                text.line("dpcl_request_seconds_bucket", &labels, count as f64);
            }
            let labels = [("route", *route), ("le", "+Inf")];
            text.line("dpcl_request_seconds_bucket", &labels, durations.count as f64);
            text.line("dpcl_request_seconds_sum", &[("route", *route)], durations.seconds);
            text.line("dpcl_request_seconds_count", &[("route", *route)], durations.count as f64);
        }
        let counters = [
            ("dpcl_prediction_passes_total", "Passes through the network.", &self.passes),
            ("dpcl_predicted_images_total", "Images that were answered.", &self.rows),
            ("dpcl_log_syncs_total", "Syncs of the log.", &self.syncs),
            ("dpcl_log_entries_total", "Requests that were written to the log.", &self.entries),
        ];
        for (name, help, count) in counters {
            text.describe(name, "counter", help);
            text.line(name, &[], count.load(Ordering::Relaxed) as f64);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Text in Prometheus' format.
#[derive(Default)]
pub struct Text(String);

impl Text {
    /// What a name means; goes before its lines.
    pub fn describe(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("text takes what is written");
    }

    /// A value.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.0, "{name}{labels} {value}").expect("text takes what is written");
    }

    /// A described gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.describe(name, "gauge", help);
        self.line(name, &[], value);
    }

    /// The whole.
    pub fn finish(self) -> String {
        self.0
    }
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_break_out() {
        let mut text = Text::default();
        text.line("a", &[("class", "x\"} 1\nb\\")], 2.0);
        assert_eq!(text.finish(), "a{class=\"x\\\"} 1\\nb\\\\\"} 2\n");
    }

    #[test]
    fn bars_are_cumulative() {
        let metrics = Metrics::default();
        metrics.request("/predict", 200, Duration::from_millis(3));
        metrics.request("/predict", 200, Duration::from_secs(9));
        let mut text = Text::default();
        metrics.write(&mut text);
        let text = text.finish();
        for line in [
            "dpcl_requests_total{route=\"/predict\",status=\"200\"} 2",
            "dpcl_request_seconds_bucket{route=\"/predict\",le=\"0.002\"} 0",
            "dpcl_request_seconds_bucket{route=\"/predict\",le=\"0.005\"} 1",
            "dpcl_request_seconds_bucket{route=\"/predict\",le=\"5\"} 1",
            "dpcl_request_seconds_bucket{route=\"/predict\",le=\"+Inf\"} 2",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} is not in\n{text}");
        }
    }
}
