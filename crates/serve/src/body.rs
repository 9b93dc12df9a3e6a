//! Bodies of requests: read within limits of size, time and memory, then taken apart into images and labels.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use std::sync::Arc;

use crate::{options::Limits, problem::Problem};

/// Memory for bodies is counted in pieces of this size.
const PIECE: usize = 1024;

/// Room for all bodies that are being read or worked on.
pub fn room(limits: &Limits) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(limits.bodies_bytes / PIECE))
}

/// A body, and the room it takes as long as it is there.
pub struct Held {
    /// The bytes.
    pub bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

/// Reads a body.
///
/// # Errors
/// When it is too large, too slow, broken off, or when there is no room for it.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
    room: &Arc<Semaphore>,
) -> Result<Held, Problem> {
    let most = limits.body_bytes;
    let too_large = || Problem::too_large(format!("at most {most} bytes are taken"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length: usize = length.unwrap_or(most);
    if length > most {
        return Err(too_large());
    }
    let pieces = u32::try_from(length.div_ceil(PIECE)).map_err(|_| too_large())?;
    let full = |_| Problem::busy("too many requests with large bodies at once").after(1);
    let held = Arc::clone(room).try_acquire_many_owned(pieces).map_err(full)?;
    let bytes = within(limits.patience, Limited::new(body, most).collect()).await?.map_err(|error| {
        match error.is::<LengthLimitError>() {
            true => too_large(),
            false => Problem::malformed("the body was broken off"),
        }
    })?;
    Ok(Held { bytes: bytes.to_bytes(), _room: held })
}

async fn within<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, Problem> {
    let slow = |_| Problem::slow(format!("the body took longer than {} s", patience.as_secs_f64()));
    tokio::time::timeout(patience, work).await.map_err(slow)
}

/// An image as it was sent, with its label where one was.
#[derive(Debug, PartialEq, Eq)]
pub struct Sent {
    /// What it is said to show.
    pub label: Option<String>,
    /// The file.
    pub bytes: Bytes,
}

/// What a body holds: the images of a request in order. `label` is what holds where the body says nothing.
///
/// # Errors
/// When it is of a kind that is not taken, cannot be read, or holds too many.
pub async fn images(
    headers: &HeaderMap,
    bytes: Bytes,
    label: Option<&str>,
    most: usize,
) -> Result<Vec<Sent>, Problem> {
    let kind = match headers.get(header::CONTENT_TYPE) {
        Some(kind) => kind.to_str().map_err(|_| Problem::unsupported("Content-Type cannot be read"))?,
        None => "application/octet-stream",
    };
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let label = label.map(str::to_owned);
    let found = match essence.as_str() {
        // What `curl --data-binary @image.png` sends unless told otherwise.
        "application/x-www-form-urlencoded" => vec![Sent { label, bytes }],
        "image/png" | "image/jpeg" | "application/octet-stream" => vec![Sent { label, bytes }],
        "application/json" => json(&bytes, label.as_ref())?,
        "multipart/form-data" => multipart(kind, bytes, label, most).await?,
        other => return Err(Problem::unsupported(format!("it is `{}`", shortened(other)))),
    };
    match found.len() {
        0 => Err(Problem::malformed("the request holds no image")),
        count if count > most => Err(too_many(most)),
        _ => Ok(found),
    }
}

fn too_many(most: usize) -> Problem {
    Problem::too_large(format!("at most {most} images are taken at once"))
}

/// What came from outside, short enough to be repeated.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A JSON body: one image, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Json {
    Many(Many),
    One(One),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    samples: Vec<One>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    label: Option<String>,
    image: String,
}

fn json(bytes: &[u8], label: Option<&String>) -> Result<Vec<Sent>, Problem> {
    let broken = |error: serde_json::Error| Problem::malformed(format!("the JSON cannot be read: {error}"));
    // First as JSON, so that the place of a mistake can be told.
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(broken)?;
    let wrong = |_| {
        let wanted = r#"{"label": NAME, "image": BASE64} or {"samples": [{"label": …, "image": …}, …]}"#;
        Problem::malformed(format!("the JSON should be {wanted}"))
    };
    let samples = match serde_json::from_value::<Json>(value).map_err(wrong)? {
        Json::Many(Many { samples }) => samples,
        Json::One(one) => vec![one],
    };
    let sent = |(position, One { label: own, image }): (usize, One)| {
        let broken = |_| Problem::malformed(format!("image {position} is not base64"));
        let bytes = STANDARD.decode(image).map_err(broken)?.into();
        Ok(Sent { label: own.or_else(|| label.cloned()), bytes })
    };
    (1..).zip(samples).map(sent).collect()
}

/// A form: a part `label` holds for the parts `image` behind it.
async fn multipart(
    kind: &str,
    bytes: Bytes,
    mut label: Option<String>,
    most: usize,
) -> Result<Vec<Sent>, Problem> {
    let broken = |error: multer::Error| Problem::malformed(format!("the form cannot be read: {error}"));
    let boundary = multer::parse_boundary(kind).map_err(broken)?;
    let whole = futures_util::stream::once(async move { Ok::<_, std::convert::Infallible>(bytes) });
    let mut parts = multer::Multipart::new(whole, boundary);
    let mut found = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        let name = part.name().unwrap_or_default().to_owned();
        let bytes = part.bytes().await.map_err(broken)?;
        match name.as_str() {
            "label" => {
                let text = String::from_utf8(bytes.to_vec());
                label = Some(text.map_err(|_| Problem::bad_label("a label is not UTF-8"))?);
            }
            "image" => found.push(Sent { label: label.clone(), bytes }),
            other => {
                let problem = format!("a part is called `{}`, not `image` or `label`", shortened(other));
                return Err(Problem::malformed(problem));
            }
        }
        if found.len() > most {
            return Err(too_many(most));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn taken(kind: &str, body: &str, label: Option<&str>) -> Result<Vec<(String, String)>, u16> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        let found = images(&headers, Bytes::from(body.to_owned()), label, 2);
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        match runtime.block_on(found) {
            Ok(found) => {
                let pair = |sent: &Sent| (sent.label.clone().unwrap_or_default(), text(&sent.bytes));
                Ok(found.iter().map(pair).collect())
            }
            Err(problem) => Err(problem.status().as_u16()),
        }
    }

    fn pairs(expected: &[(&str, &str)]) -> Result<Vec<(String, String)>, u16> {
        Ok(expected.iter().map(|(label, bytes)| ((*label).to_owned(), (*bytes).to_owned())).collect())
    }

    #[test]
    fn every_kind_of_body_is_taken_apart() {
        assert_eq!(taken("image/png", "x", Some("a")), pairs(&[("a", "x")]));
        assert_eq!(taken("application/json", r#"{"label":"a","image":"eA=="}"#, None), pairs(&[("a", "x")]));
        let two = r#"{"samples":[{"label":"a","image":"eA=="},{"image":"eQ=="}]}"#;
        assert_eq!(taken("application/json", two, Some("b")), pairs(&[("a", "x"), ("b", "y")]));
        let part = |name: &str, text: &str| {
            format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
        };
        let form =
            part("label", "a") + &part("image", "x") + &part("label", "b") + &part("image", "y") + "--B--";
        assert_eq!(taken("multipart/form-data; boundary=B", &form, None), pairs(&[("a", "x"), ("b", "y")]));
    }

    #[test]
    fn what_cannot_be_taken_apart_has_its_status() {
        let three = r#"{"samples":[{"image":""},{"image":""},{"image":""}]}"#;
        for (kind, body, status) in [
            ("application/json", "{", 400),
            ("application/json", "[]", 400),
            ("application/json", r#"{"image":"eA==","labell":"a"}"#, 400),
            ("application/json", r#"{"image":"not base64"}"#, 400),
            ("application/json", r#"{"samples":[]}"#, 400),
            ("application/json", three, 413),
            ("multipart/form-data", "", 400),
            ("multipart/form-data; boundary=B", "--B--", 400),
            ("text/html", "x", 415),
        ] {
            assert_eq!(taken(kind, body, None), Err(status), "{kind}: {body}");
        }
    }
}
