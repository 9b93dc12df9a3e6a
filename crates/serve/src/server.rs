//! A server as a whole: it is started, has an address, and is stopped.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use dpcl::Snapshot;
use serde_json::json;
use tokio::{net::TcpListener, runtime::Runtime, sync::Semaphore, sync::watch};

use crate::{
    body, connections,
    error::{Error, Result},
    follow::Follower,
    metrics::Metrics,
    options::{Following, Options, Role},
    predicting::Predictor,
    published::Published,
    service::{self, Part, Service},
    start,
};

/// Threads that talk to clients; the work is done on others.
const TALKERS: usize = 2;

/// A running server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
    serving: Option<tokio::task::JoinHandle<()>>,
    /// Threads that end when the service is told to.
    threads: Vec<JoinHandle<()>>,
    /// The right to the folder; given back last.
    _claim: Option<dpcl::folder::Claim>,
}

/// What answers, what the server does beside, and what it needs for that.
struct Parts {
    published: Arc<Published>,
    part: Part,
    threads: Vec<JoinHandle<()>>,
    claim: Option<dpcl::folder::Claim>,
}

impl Server {
    /// Starts a server: takes up what its folder holds, and listens.
    ///
    /// # Errors
    /// When the folder cannot be taken up, another server has it, or the address cannot be listened on.
    pub fn start(options: Options) -> Result<Self> {
        if options.token.is_none() && !options.listen.ip().is_loopback() {
            return Err(Error::Open { address: options.listen });
        }
        let metrics = Arc::new(Metrics::default());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(TALKERS)
            .thread_name("dpcl-http")
            .enable_all()
            .build()
            .map_err(|source| system("start threads", source))?;
        // First the address: it is the cheaper one to be refused.
        let name = options.listen.to_string();
        let listener = runtime.block_on(TcpListener::bind(options.listen));
        let listener = listener.map_err(|source| Error::io("listen on", name.as_ref(), source))?;
        let address =
            listener.local_addr().map_err(|source| Error::io("listen on", name.as_ref(), source))?;
        let Parts { published, part, threads, claim } = match &options.role {
            Role::Learner(learning) => learner(learning, &options, &metrics)?,
            Role::Replica(following) => replica(following, &options)?,
        };
        let predictor = Predictor::start(Arc::clone(&published), Arc::clone(&metrics));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let service = Arc::new(Service {
            room: body::room(&options.limits),
            decoding: Semaphore::new(cores),
            limits: options.limits.clone(),
            token: options.token,
            journal: Arc::clone(&options.journal),
            metrics,
            published,
            predictor: predictor.map_err(|source| system("start threads", source))?,
            started: Instant::now(),
            part,
        });
        let (stop, stopped) = watch::channel(false);
        let router = service::router(Arc::clone(&service));
        let serving = runtime.spawn(connections::serve(listener, router, options.limits, stopped));
        let version = service.published.current().number;
        let event = json!({
            "level": "info", "event": "listening", "address": address.to_string(), "version": version
        });
        (options.journal)(&event);
        Ok(Self {
            address,
            service,
            stop,
            runtime: Some(runtime),
            serving: Some(serving),
            threads,
            _claim: claim,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets requests that are being answered finish, then writes a checkpoint of what has been learned. What waits stays in
    /// the log.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        (self.service.journal)(&json!({ "level": "info", "event": "stopping" }));
        if let Part::Learner(teaching) = &self.service.part {
            teaching.counts.stopping.store(true, Ordering::Release);
        }
        // Nobody listens for it only when it has ended by itself.
        let _ = self.stop.send(true);
        if let Some(serving) = self.serving.take() {
            let _ = runtime.block_on(serving);
        }
        match &self.service.part {
            Part::Learner(teaching) => teaching.queue.stop(),
            Part::Replica(standing) => standing.stop.store(true, Ordering::Release),
        }
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A panic there has been told; the log has everything.
            let _ = thread.join();
            // The one that learns goes first: it may have the other tidy the log.
            if let Part::Learner(teaching) = &self.service.part {
                teaching.writer.end();
            }
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
        (self.service.journal)(&json!({ "level": "info", "event": "stopped" }));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn learner(learning: &crate::options::Learning, options: &Options, metrics: &Arc<Metrics>) -> Result<Parts> {
    let start::Started { teaching, published, threads, claim } =
        start::learner(learning, &options.limits, &options.journal, metrics)?;
    Ok(Parts { published, part: Part::Learner(teaching), threads: threads.into(), claim: Some(claim) })
}

fn replica(following: &Following, options: &Options) -> Result<Parts> {
    let mut follower = Follower::new(&following.source, options.token.as_deref());
    let standing = follower.standing();
    let snapshot: Snapshot = follower.look()?.ok_or_else(|| Error::Follow {
        source_name: standing.source(),
        problem: "it has no checkpoint yet".into(),
    })?;
    let published = Arc::new(Published::new(snapshot));
    let (held, shown, journal) =
        (Arc::clone(&standing), Arc::clone(&published), Arc::clone(&options.journal));
    let every = following.every;
    let follow = move || follower.run(every, &held, &shown, &journal);
    let thread = std::thread::Builder::new().name("dpcl-follow".into()).spawn(follow);
    let thread = thread.map_err(|source| system("start threads", source))?;
    Ok(Parts { published, part: Part::Replica(standing), threads: vec![thread], claim: None })
}

/// What the system refuses that no path names.
pub fn system(action: &'static str, source: std::io::Error) -> Error {
    Error::io(action, "for the server".as_ref(), source)
}
