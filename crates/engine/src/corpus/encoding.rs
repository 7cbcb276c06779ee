//! Text in any encoding.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// Decodes `bytes` by their byte order mark, else as UTF-8 if they are valid, else by `label` (from a web server or a
/// page), else in their most likely encoding.
pub(super) fn decode<'a>(bytes: &'a [u8], label: Option<&[u8]>) -> Cow<'a, str> {
    if Encoding::for_bom(bytes).is_none()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    let said = label.and_then(Encoding::for_label);
    let encoding = said.unwrap_or_else(|| {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(bytes, true);
        detector.guess(None, Utf8Detection::Deny)
    });
    // A byte order mark overrides the label.
    encoding.decode(bytes).0
}

/// Whether `bytes` begin like UTF-16, which has zero bytes in plain text.
pub(super) fn is_utf16(bytes: &[u8]) -> bool {
    Encoding::for_bom(bytes).is_some_and(|(encoding, _)| encoding != encoding_rs::UTF_8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_encoding_is_read() {
        let german = "Die Straße führt über die Brücke nach Köln; dort wäre schöneres Wetter für Ausflüge.";
        let russian = "Скорость света в вакууме является фундаментальной физической постоянной.";
        assert_eq!(decode(german.as_bytes(), None), german);
        for (text, label) in [(german, "windows-1252"), (russian, "windows-1251"), (russian, "koi8-r")] {
            let (bytes, ..) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
            assert_eq!(decode(&bytes, Some(label.as_bytes())), text, "{label} said");
            assert_eq!(decode(&bytes, None), text, "{label} guessed");
        }
        let utf16: Vec<u8> = "\u{feff}Köln".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(is_utf16(&utf16));
        assert_eq!(decode(&utf16, None), "Köln");
        assert_eq!(decode(b"\xef\xbb\xbfK\xc3\xb6ln", None), "Köln");
    }
}
