//! What all requests share, and which place answers which.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use dpcl::{Image, data};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    api,
    counts::Counts,
    follow::Standing,
    guard,
    keeper::Newest,
    metrics::Metrics,
    options::{Journal, Limits},
    predicting::Predictor,
    problem::Problem,
    published::Published,
    queue::Queue,
    tally::Tally,
    writer::Writer,
};

/// What all requests share.
pub struct Service {
    /// What is taken from clients.
    pub limits: Limits,
    /// What they must send.
    pub token: Option<String>,
    /// Where log lines go.
    pub journal: Journal,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What answers.
    pub published: Arc<Published>,
    /// Who answers.
    pub predictor: Predictor,
    /// Room for bodies.
    pub room: Arc<Semaphore>,
    /// Images that are decoded at a time.
    pub decoding: Semaphore,
    /// When the server started.
    pub started: Instant,
    /// What it does beside answering.
    pub part: Part,
}

/// What a server does beside answering.
pub enum Part {
    /// It learns.
    Learner(Teaching),
    /// It follows another.
    Replica(Arc<Standing>),
}

/// What requests to a learner share.
pub struct Teaching {
    /// How far it is.
    pub counts: Arc<Counts>,
    /// Where it is asked for checkpoints.
    pub queue: Arc<Queue>,
    /// Where samples are handed in.
    pub writer: Writer,
    /// What is counted.
    pub shown: Arc<Mutex<Tally>>,
    /// The newest checkpoint.
    pub newest: Newest,
}

/// What a handler gets.
pub type Shared = State<Arc<Service>>;

impl Service {
    /// Decodes images on threads that may block, as many at a time as there are cores.
    ///
    /// # Errors
    /// For the first image that cannot be taken.
    pub async fn decode(&self, files: Vec<Bytes>) -> Result<Vec<Image>, Problem> {
        let ended = |problem: &str| Problem::failed(problem.to_owned());
        let _turn = self.decoding.acquire().await.map_err(|_| ended("the server ends"))?;
        let (side, pixels) = (self.published.current().snapshot.shape().height, self.limits.pixels);
        let decode = move || {
            let one = |(position, bytes): (usize, &Bytes)| {
                data::decode_image(bytes, side, pixels).map_err(|problem| (position, problem))
            };
            (1..).zip(&files).map(one).collect::<Result<Vec<Image>, _>>()
        };
        let decoded = tokio::task::spawn_blocking(decode).await.map_err(|_| ended("decoding broke off"))?;
        decoded.map_err(|(position, problem)| match problem {
            data::BadBytes::NotAnImage(problem) => {
                Problem::not_an_image(format!("image {position} {problem}"))
            }
            data::BadBytes::TooLarge(problem) => {
                Problem::image_too_large(format!("image {position} {problem}"))
            }
        })
    }

    /// The part that learns.
    ///
    /// # Errors
    /// For a replica.
    pub fn teaching(&self) -> Result<&Teaching, Problem> {
        match &self.part {
            Part::Learner(teaching) => Ok(teaching),
            Part::Replica(standing) => Err(Problem::replica(format!("it follows {}", standing.source()))),
        }
    }

    /// Stored samples by class.
    pub fn stored(&self) -> BTreeMap<String, usize> {
        let version = self.published.current();
        let labels = version.snapshot.labels();
        let counts = version.snapshot.memory().map(dpcl::method::Memory::histogram).unwrap_or_default();
        labels.iter().zip(counts).map(|(label, count)| (label.to_string(), count)).collect()
    }
}

/// Places that answer, and whether they do without a token.
const PLACES: [(&str, bool); 8] = [
    ("/", true),
    ("/openapi.json", true),
    ("/observe", false),
    ("/predict", false),
    ("/status", false),
    ("/metrics", false),
    ("/memory", false),
    ("/checkpoint", false),
];

/// Everything there is to be asked.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/", get(api::page::page))
        .route("/openapi.json", get(api::openapi::document))
        .route("/observe", post(api::observe::observe))
        .route("/predict", post(api::predict::predict))
        .route("/status", get(api::status::status))
        .route("/metrics", get(api::metrics::metrics))
        .route("/memory", get(api::memory::memory))
        .route("/checkpoint", get(api::checkpoint::get).post(api::checkpoint::post))
        .fallback(async || Problem::not_found("no such path"))
        .method_not_allowed_fallback(async || Problem::method("no such method on this path"))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), watch))
        .with_state(service)
}

/// Lets a request in or not, and notes how it went.
async fn watch(State(service): Shared, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let (place, open) = place(request.uri().path());
    let allowed = guard::check(request.headers(), request.uri(), service.token.as_deref(), open);
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let resources = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resources, HeaderValue::from_static("same-origin"));
    let (status, took) = (response.status(), begun.elapsed());
    service.metrics.request(place, status.as_u16(), took);
    let level =
        if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE { "error" } else { "info" };
    (service.journal)(&json!({
        "level": level,
        "event": "request",
        "method": method.as_str(),
        "place": place,
        "status": status.as_u16(),
        "milliseconds": (took.as_secs_f64() * 1e5).round() / 100.0,
    }));
    response
}

/// The place of a path as it is noted, and whether it answers without a token. What a stranger makes up is not noted.
fn place(path: &str) -> (&'static str, bool) {
    PLACES.into_iter().find(|(place, _)| *place == path).unwrap_or(("other", false))
}
