//! What a file of measured costs says of all its rows together: a comment line each, `key: {...}`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::Provenance;

/// Takes what the line `key` holds, if there is one, out of a file's comment lines.
///
/// # Errors
/// If the line does not hold such a thing, or `check` finds fault with it: what is wrong.
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

/// The comment lines with `key` for what there is, in the place of what it said before.
pub(crate) fn with<T: Serialize>(provenance: &Provenance, key: &str, what: Option<&T>) -> Provenance {
    let provenance = provenance.without(key);
    match what {
        // Finite numbers always have a JSON form.
        Some(what) => provenance.with(key, serde_json::to_string(what).unwrap_or_default()),
        None => provenance,
    }
}
