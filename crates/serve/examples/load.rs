//! Asks a server for predictions as fast as it answers, over connections that stay open; prints how it went as one JSON
//! object. Used by `benches/serve.py` on this server and on its peer.
//!
//! `load ADDRESS FILE.png CONNECTIONS SECONDS [PATH]`

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, file, connections, seconds, rest @ ..] = &arguments[..] else {
        return Err("usage: load ADDRESS FILE.png CONNECTIONS SECONDS [PATH]".into());
    };
    let path = rest.first().map_or("/predict", String::as_str);
    let image = std::fs::read(file)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        image.len()
    );
    let request = [head.as_bytes(), &image].concat();
    let length = Duration::from_secs_f64(seconds.parse()?);
    let begun = Instant::now();
    let clients: Vec<_> = (0..connections.parse()?)
        .map(|_| {
            let (address, request) = (address.clone(), request.clone());
            std::thread::spawn(move || ask(&address, &request, begun + length))
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.join().map_err(|_| "a client panicked")??);
    }
    let took = begun.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    let result = serde_json::json!({
        "requests": times.len(),
        "per_second": times.len() as f64 / took,
        "p50_ms": quantile(0.5) * 1e3,
        "p99_ms": quantile(0.99) * 1e3,
    });
    println!("{result}");
    Ok(())
}

/// Seconds that each answer took.
fn ask(address: &str, request: &[u8], until: Instant) -> Outcome<Vec<f64>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut out, mut answers) = (stream.try_clone()?, BufReader::new(stream));
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        out.write_all(request)?;
        read(&mut answers)?;
        times.push(begun.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// Reads an answer of status 200 to its end.
fn read(answers: &mut BufReader<TcpStream>) -> Outcome<()> {
    let (mut line, mut length) = (String::new(), None);
    answers.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200") {
        return Err(format!("answered {line:?}").into());
    }
    loop {
        line.clear();
        answers.read_line(&mut line)?;
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if let Some(value) = text.strip_prefix("content-length:") {
            length = Some(value.trim().parse()?);
        }
    }
    let mut body = vec![0; length.ok_or("an answer without length")?];
    answers.read_exact(&mut body)?;
    Ok(())
}
