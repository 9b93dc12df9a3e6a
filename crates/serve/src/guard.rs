//! Who is let in: the token, and pages of other sites that a browser would send here.

use axum::http::{HeaderMap, Uri, header};
use subtle::ConstantTimeEq;

use crate::problem::Problem;

/// Looks at a request before anything else does. Without a token the server listens on a loopback address only, and is then
/// asked by a name of it: a name that somebody else resolves to it is refused.
///
/// # Errors
/// When it is not let in.
pub fn check(headers: &HeaderMap, uri: &Uri, token: Option<&str>, open: bool) -> Result<(), Problem> {
    let host = match headers.get(header::HOST) {
        Some(host) => host.to_str().unwrap_or_default(),
        None => uri.authority().map_or("", axum::http::uri::Authority::as_str),
    };
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        if !authority.eq_ignore_ascii_case(host) {
            return Err(Problem::foreign("`Origin` is not this server"));
        }
    }
    match token {
        None if !is_loopback(host) => Err(Problem::foreign("`Host` is not a name of this machine itself")),
        Some(token) if !open && !bears(headers, token) => {
            Err(Problem::unauthorized("this server asks for a token"))
        }
        _ => Ok(()),
    }
}

/// Compares in a time that does not depend on where tokens differ.
fn bears(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(header::AUTHORIZATION).map(axum::http::HeaderValue::as_bytes).unwrap_or_default();
    let Some((scheme, given)) = given.split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.ct_eq(token.as_bytes()))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn checked(headers: &[(HeaderName, &str)], token: Option<&str>) -> Result<(), u16> {
        let pair = |(name, value): &(HeaderName, &str)| (name.clone(), HeaderValue::from_str(value).unwrap());
        let headers: HeaderMap = headers.iter().map(pair).collect();
        check(&headers, &Uri::from_static("/status"), token, false)
            .map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn only_the_right_token_is_let_in() {
        let with =
            |value: &str| checked(&[(header::HOST, "a.b"), (header::AUTHORIZATION, value)], Some("s3cret"));
        assert_eq!((with("Bearer s3cret"), with("bearer s3cret")), (Ok(()), Ok(())));
        for wrong in
            ["Bearer s3cre", "Bearer s3cret1", "Bearer S3cret", "Basic s3cret", "s3cret", "Bearer ", ""]
        {
            assert_eq!(with(wrong), Err(401), "{wrong}");
        }
        assert_eq!(checked(&[(header::HOST, "a.b")], Some("s3cret")), Err(401));
    }

    #[test]
    fn without_a_token_the_machine_itself_must_be_meant() {
        for host in ["localhost:80", "127.0.0.1", "127.0.0.1:9", "[::1]:80", "LOCALHOST"] {
            assert_eq!(checked(&[(header::HOST, host)], None), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.1:80", ""] {
            assert_eq!(checked(&[(header::HOST, host)], None), Err(403), "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused_with_any_token() {
        let from = |origin: &str| {
            let headers = [
                (header::HOST, "127.0.0.1:80"),
                (header::ORIGIN, origin),
                (header::AUTHORIZATION, "Bearer a"),
            ];
            checked(&headers, Some("a"))
        };
        assert_eq!(from("http://127.0.0.1:80"), Ok(()));
        for foreign in ["http://evil.example", "null", "http://127.0.0.1:81", ""] {
            assert_eq!(from(foreign), Err(403), "{foreign}");
        }
    }
}
