//! Where to listen: an address or a name, and a port.
//!
//! Invariant: a name is resolved once, and only what it resolves to is listened on.

use crate::failure::{Failure, Result};
use std::net::{SocketAddr, ToSocketAddrs};

/// Checks what is asked for on the command line.
///
/// # Errors
/// Says what it should look like.
pub fn listen(text: &str) -> std::result::Result<String, String> {
    let form = "give ADDRESS:PORT, such as 127.0.0.1:19809, localhost:19809, [::1]:19809, or 0.0.0.0:19809 for all addresses";
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("it has no port; {form}"))?;
    if host.is_empty() {
        return Err(format!("it has no address; {form}"));
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) || port.parse::<u16>().is_err() {
        return Err(format!("`{port}` is no port; {form}"));
    }
    Ok(text.to_owned())
}

/// The addresses that a text stands for; those of IPv4 first, as scrapers' configurations name 127.0.0.1.
///
/// # Errors
/// If the name resolves to none.
pub fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let unknown = |why: String| {
        Failure::usage(
            format!("--listen {text}: {why}"),
            "give a name that resolves on this host, or an address such as 127.0.0.1:19809",
        )
    };
    let found = text.to_socket_addrs().map_err(|e| unknown(e.to_string()))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.dedup();
    match found.is_empty() {
        true => Err(unknown("the name has no address".into())),
        false => Ok(found),
    }
}
