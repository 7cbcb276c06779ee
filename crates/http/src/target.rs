//! The server under test: its URL, which hosts are allowed, and credentials.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
    /// All addresses of the host that may be used.
    addresses: Vec<SocketAddr>,
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
        // Credentials must not be repeated, not even in an error about the rest of the address.
        if url.contains('@') {
            return fault("the URL contains credentials; give them in a file (--credentials) or in TANDEM_CREDENTIALS");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return fault("expected an address such as http://127.0.0.1:9200/index");
        };
        let default_port = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return fault("expected http:// or https://"),
        };
        let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
        if path.contains(['?', '#']) {
            return fault(&format!("the address of {authority:?} has a query or a fragment; a dialect defines it"));
        }
        let is_port = |text: &str| text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            None => (authority, Some(default_port)),
            Some((host, port)) => (host, Some(port).filter(|port| is_port(port)).and_then(|port| port.parse().ok())),
        };
        let Some(port) = port.filter(|&port: &u16| port > 0) else {
            return fault(&format!("{authority:?}: expected a port from 1 to 65535 behind the colon"));
        };
        let parsed: Result<Uri, _> = format!("http://{authority}{path}").parse();
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        if parsed.is_err() || host.is_empty() || bracketed.is_some() != host.contains(':') {
            return fault(&format!("{authority:?} is no address, expected such as http://127.0.0.1:9200/index"));
        }
        let addresses: Vec<SocketAddr> = match (host, port).to_socket_addrs() {
            Ok(addresses) => addresses.map(|one| SocketAddr::new(one.ip().to_canonical(), one.port())).collect(),
            Err(e) => return fault(&format!("{host}: {e}")),
        };
        let is_allowed = allowed.iter().any(|name| name.eq_ignore_ascii_case(host));
        // A name may resolve to several addresses. Without permission, only loopback ones are used.
        let usable = addresses.into_iter().filter(|address| is_allowed || address.ip().is_loopback());
        let addresses: Vec<SocketAddr> = usable.collect();
        let Some(&address) = addresses.first() else {
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
        let (path, authority) = (path.trim_end_matches('/').to_owned(), authority.to_owned());
        Ok(Self { url: url.to_owned(), address, addresses, authority, path, tls, credentials })
    }

    /// Connects to each address of the host until one accepts; requests go there from now on.
    ///
    /// # Errors
    /// If none accepts, with each address and its reason.
    pub fn reach(&mut self, time: Duration) -> Result<(), HttpError> {
        let mut tried = Vec::new();
        for address in &self.addresses {
            match TcpStream::connect_timeout(address, time) {
                Ok(_) => {
                    self.address = *address;
                    return Ok(());
                }
                Err(e) => tried.push(format!("{address}: {e}")),
            }
        }
        Err(HttpError::NoAnswer(format!("{}: no connection ({})", self.url, tried.join("; "))))
    }

    /// The address that requests go to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The hint for a server that does not speak this scheme, for the end of a message.
    pub(crate) fn other_scheme(&self) -> &'static str {
        if self.tls.is_some() {
            " (does this port speak http:// and not TLS?)"
        } else {
            " before an answer (does this port expect https://?)"
        }
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
        assert_eq!(of("HTTP://127.0.0.1:09200/wiki/", &[]).unwrap().address, "127.0.0.1:9200".parse().unwrap());
        assert_eq!(of("http://[::ffff:127.0.0.1]", &[]).unwrap().address, "127.0.0.1:80".parse().unwrap());
        for bad in [
            "127.0.0.1:9200",
            "ftp://127.0.0.1/",
            "http://",
            "http:///x",
            "http://127.0.0.1/?q=1",
            "http://127.0.0.1/#q",
            "",
        ] {
            assert!(of(bad, &[]).is_err(), "{bad}");
        }
        for port in ["99999", "65536", "", "0", "92x0", "+9200", "-1", " 9200", "9200:1", "٣"] {
            let told = of(&format!("http://127.0.0.1:{port}/wiki"), &[]).unwrap_err();
            assert!(told.contains("port") || told.contains("no address"), "{told}");
        }
        assert!(of("http://::1:9200/", &[]).is_err() && of("http://[127.0.0.1]/", &[]).is_err());
        for secret in
            ["http:/me:s3cret@127.0.0.1/", "https:///me:s3cret@x", "http://127.0.0.1/wiki?api_key=s3cret", "s3cret"]
        {
            assert!(!of(secret, &[]).unwrap_err().contains("s3cret"), "{secret}");
        }
        let told = of("http://me:secret@127.0.0.1/", &[]).unwrap_err();
        assert!(told.contains("--credentials") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn the_address_that_accepts_is_driven() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let dialect = Dialect::named("opensearch").unwrap();
        let mut target = Target::new(&format!("http://localhost:{}/", open.port()), &dialect, &[], None).unwrap();
        target.addresses = vec!["127.0.0.1:1".parse().unwrap(), open];
        target.reach(Duration::from_secs(1)).unwrap();
        assert_eq!(target.address(), open);
        target.addresses.pop();
        let told = target.reach(Duration::from_secs(1)).unwrap_err().to_string();
        assert!(told.contains("127.0.0.1:1: Connection refused"), "{told}");
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
