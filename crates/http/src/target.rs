//! The server under test: its URL, which hosts are allowed, and credentials.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use crate::{Dialect, HttpError};

/// The environment variable with credentials.
const VARIABLE: &str = "TANDEM_CREDENTIALS";
/// Largest size of a file with credentials.
const MOST_CREDENTIALS: usize = 8192;

/// Credentials: the value of a header. They are never printed or written.
#[derive(Clone)]
pub struct Credentials(HeaderValue);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

impl Credentials {
    pub(crate) fn value(&self) -> &HeaderValue {
        &self.0
    }

    /// Credentials of the file, else of the environment variable `TANDEM_CREDENTIALS`; `None` if neither is there.
    ///
    /// # Errors
    /// If the file cannot be read, or the value cannot be a header. The error does not contain the value.
    pub fn load(file: Option<&Path>) -> Result<Option<Self>, HttpError> {
        let (source, text) = match (file, std::env::var(VARIABLE)) {
            (Some(path), _) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|e| HttpError::Target(format!("{}: {e}", path.display())))?;
                (path.display().to_string(), text)
            }
            (None, Ok(text)) => (VARIABLE.to_owned(), text),
            (None, Err(std::env::VarError::NotPresent)) => return Ok(None),
            (None, Err(_)) => return Err(HttpError::Target(format!("{VARIABLE} is not UTF-8"))),
        };
        let text = text.trim();
        let mut value = HeaderValue::try_from(text)
            .ok()
            .filter(|_| !text.is_empty() && text.len() <= MOST_CREDENTIALS)
            .ok_or_else(|| {
                HttpError::Target(format!("{source}: expected the value of a header, such as `Basic ...`"))
            })?;
        value.set_sensitive(true);
        Ok(Some(Self(value)))
    }
}

/// A server that may be driven.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL, which holds no credentials.
    pub url: String,
    pub(crate) address: SocketAddr,
    /// Host and port, as in the URL.
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    pub(crate) credentials: Option<(HeaderName, Credentials)>,
}

impl Target {
    /// The server at `url` for `dialect`. Hosts other than loopback must be in `allowed`.
    ///
    /// # Errors
    /// If the URL has another form, contains credentials, or its host is not allowed or not known.
    pub fn new(
        url: &str,
        dialect: &Dialect,
        allowed: &[String],
        credentials: Option<Credentials>,
    ) -> Result<Self, HttpError> {
        let fault = |why: &str| Err(HttpError::Target(format!("--target: {why}")));
        // An authority with credentials must not be repeated, not even in an error.
        if url.split('/').nth(2).unwrap_or(url).contains('@') {
            return fault("the URL contains credentials; give them in a file (--credentials) or in TANDEM_CREDENTIALS");
        }
        let parsed: Uri = match url.parse() {
            Ok(parsed) => parsed,
            Err(e) => return fault(&format!("{url}: {e}")),
        };
        let Some(authority) = parsed.authority() else {
            return fault(&format!("{url}, expected such as http://127.0.0.1:9200/index"));
        };
        let default_port = match parsed.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return fault(&format!("{url}, expected http:// or https://")),
        };
        if parsed.query().is_some() {
            return fault(&format!("{url} has a query; a dialect defines it"));
        }
        let host = authority.host().trim_matches(['[', ']']);
        let resolved = (host, authority.port_u16().unwrap_or(default_port)).to_socket_addrs();
        let addresses: Vec<SocketAddr> = match resolved {
            Ok(addresses) => addresses.collect(),
            Err(e) => return fault(&format!("{host}: {e}")),
        };
        let is_allowed = allowed.iter().any(|name| name.eq_ignore_ascii_case(host));
        // A name may resolve to several addresses. Without permission, only loopback ones are used.
        let Some(&address) = addresses.iter().find(|address| is_allowed || address.ip().is_loopback()) else {
            return fault(&format!("{host} is not this machine; name it with --allow-host {host} if you may load it"));
        };
        let tls = if default_port == 443 { Some((tls_config()?, server_name(host)?)) } else { None };
        let credentials = match credentials {
            Some(credentials) => {
                let name = HeaderName::try_from(dialect.credentials_header());
                Some((name.map_err(|e| HttpError::Target(e.to_string()))?, credentials))
            }
            None => None,
        };
        let path = if parsed.path() == "/" { String::new() } else { parsed.path().to_owned() };
        Ok(Self { url: url.to_owned(), address, authority: authority.to_string(), path, tls, credentials })
    }

    /// What of the credentials must not be repeated: the whole value, then its words.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let value = self.credentials.as_ref().and_then(|(_, credentials)| credentials.value().to_str().ok());
        value.into_iter().flat_map(|value| std::iter::once(value).chain(value.split_whitespace().skip(1)))
    }

    /// The path of the URL, which precedes the dialect's.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, HttpError> {
    ServerName::try_from(host.to_owned()).map_err(|e| HttpError::Target(format!("{host}: {e}")))
}

/// TLS with the certificates of the system, or those in `SSL_CERT_FILE`.
fn tls_config() -> Result<Arc<ClientConfig>, HttpError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = "no certificates of authorities found; name a file in SSL_CERT_FILE";
        return Err(HttpError::Target(why.to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| HttpError::Target(e.to_string()))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_driven_and_credentials_are_not_repeated() {
        let dialect = Dialect::named("opensearch").unwrap();
        let of = |url: &str, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
            Target::new(url, &dialect, &allowed, None).map_err(|e| e.to_string())
        };
        assert_eq!(of("http://127.0.0.1:9200/wiki", &[]).unwrap().path, "/wiki");
        assert!(of("http://[::1]:9200", &[]).is_ok() && of("http://127.8.8.8/", &[]).is_ok());
        assert!(of("http://192.0.2.1:9200/", &[]).unwrap_err().contains("--allow-host 192.0.2.1"));
        assert!(of("http://192.0.2.1:9200/", &["192.0.2.1"]).is_ok());
        for bad in ["127.0.0.1:9200", "ftp://127.0.0.1/", "http://", "http://127.0.0.1/?q=1", ""] {
            assert!(of(bad, &[]).is_err(), "{bad}");
        }
        let told = of("http://me:secret@127.0.0.1/", &[]).unwrap_err();
        assert!(told.contains("--credentials") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn credentials_come_from_a_file_and_are_never_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Basic c2VjcmV0\n").unwrap();
        let credentials = Credentials::load(Some(file.path())).unwrap().unwrap();
        let dialect = Dialect::named("seekstorm").unwrap();
        let target = Target::new("http://127.0.0.1/", &dialect, &[], Some(credentials)).unwrap();
        assert_eq!(target.credentials.as_ref().unwrap().0, "apikey");
        assert!(!format!("{target:?}").contains("c2VjcmV0"));
        std::fs::write(file.path(), "\u{7}secret").unwrap();
        assert!(!Credentials::load(Some(file.path())).unwrap_err().to_string().contains("secret"));
    }
}
