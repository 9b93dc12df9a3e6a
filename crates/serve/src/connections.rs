//! Connections: how many there are, how slow they may be, and how they end.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tokio_io_timeout::TimeoutStream;

use crate::options::Limits;

/// Pause after the system gave no connection, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes connections until told to stop, then lets those that are busy finish what they are at.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: watch::Receiver<bool>) {
    let seats = Arc::new(Semaphore::new(limits.connections));
    let mut open = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        // Beyond so many, clients wait where the system lets them wait.
        let seat = tokio::select! {
            seat = Arc::clone(&seats).acquire_owned() => seat,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = taken else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (router, stop, patience) = (router.clone(), stop.clone(), limits.patience);
        open.spawn(async move {
            converse(stream, router, patience, stop).await;
            drop(seat);
        });
        while open.try_join_next().is_some() {}
    }
    drop(listener);
    let finished = async { while open.join_next().await.is_some() {} };
    // Whoever is not done by then is cut off.
    let _ = tokio::time::timeout(limits.patience, finished).await;
}

/// One client. A head must arrive in time, and some of an answer must be taken in time; bodies have their own time.
async fn converse(stream: TcpStream, router: Router, patience: Duration, mut stop: watch::Receiver<bool>) {
    // Without it small answers wait for the client's confirmation of earlier ones.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(patience));
    let stream = TokioIo::new(Box::pin(stream));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_headers(64);
    let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // Clients break off as they like; there is nobody to tell.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
