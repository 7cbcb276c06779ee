//! Comment lines of the form `key: {...}`, which apply to all rows of a file of measured costs.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::Provenance;

/// Takes the content of the line `key`, if any, out of a file's comment lines. Fails with a message with the fault, if
/// the line cannot be parsed or `check` rejects its content.
pub(crate) fn take<T: DeserializeOwned>(
    provenance: &mut Provenance,
    key: &str,
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<Option<T>, String> {
    let Some(text) = provenance.get(key) else { return Ok(None) };
    let found: T = serde_json::from_str(text).map_err(|e| format!("`{key}` is no model: {e}"))?;
    check(&found).map_err(|fault| format!("`{key}`: {fault}"))?;
    *provenance = provenance.without(key);
    Ok(Some(found))
}

/// The comment lines with `what` as line `key`, which replaces an older one.
pub(crate) fn with<T: Serialize>(provenance: &Provenance, key: &str, what: Option<&T>) -> Provenance {
    let provenance = provenance.without(key);
    match what {
        // Finite numbers always have a JSON form.
        Some(what) => provenance.with(key, serde_json::to_string(what).unwrap_or_default()),
        None => provenance,
    }
}
