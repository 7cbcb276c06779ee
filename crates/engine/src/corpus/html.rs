//! The text of a web page, outside of its tags.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Elements whose text is not for readers.
const WITHOUT_TEXT: [&[u8]; 4] = [b"script", b"style", b"noscript", b"template"];

/// Title and text of a page. Tags separate words; scripts, styles and comments are left out.
///
/// Malformed markup, which is frequent, is read as browsers do.
pub(super) fn text_of(page: &str) -> (String, String) {
    let (mut title, mut text) = (String::new(), String::with_capacity(page.len() / 2));
    let mut is_title = false;
    let mut left_out: Option<&[u8]> = None;
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                text.push(' ');
                is_title = name == b"title" && title.is_empty();
                left_out = left_out.or_else(|| WITHOUT_TEXT.into_iter().find(|&other| other == name));
            }
            CallbackEvent::EndTag { name } => {
                text.push(' ');
                is_title = false;
                left_out = left_out.filter(|&other| other != name);
            }
            CallbackEvent::String { value } if left_out.is_none() => {
                let out = if is_title { &mut title } else { &mut text };
                out.push_str(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
        None
    });
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(page, emitter).for_each(drop);
    (title.trim().to_owned(), text)
}

/// The encoding that a page names in its first kilobyte.
pub(super) fn charset(page: &[u8]) -> Option<&[u8]> {
    let head = &page[..page.len().min(1024)];
    let at =
        (0..head.len()).find(|&at| head[at..].get(..8).is_some_and(|word| word.eq_ignore_ascii_case(b"charset=")))?;
    label(&head[at + 8..])
}

/// A name of an encoding, perhaps in quotes.
pub(super) fn label(bytes: &[u8]) -> Option<&[u8]> {
    let start = bytes.iter().position(|byte| !matches!(byte, b'"' | b'\'' | b' '))?;
    let len = bytes[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(byte)).count();
    (len > 0).then(|| &bytes[start..start + len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_scripts_and_comments_are_left_out_and_references_read() {
        let page = "<!DOCTYPE html><html><head><TITLE>Fish &amp; chips</TITLE><style>p{}</style>\
            <script>if (a < b) alert('</p>');</script></head><body><!-- no -->One<br>two&#33; 3 < 4 &bogus; AT&T \
            K&ouml;ln<p class='x'>last";
        let (title, text) = text_of(page);
        assert_eq!(title, "Fish & chips");
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), "One two! 3 < 4 &bogus; AT&T Köln last");
    }

    #[test]
    fn anything_is_read_in_some_way() {
        for page in
            ["<", "<!--", "<a", "</", "&", "&#", "&#xffffffff;", "<title>x", "<script>", "<script></s", "é&é;<é"]
        {
            text_of(page);
        }
        assert_eq!(charset(b"<meta charset=\"koi8-r\">"), Some(&b"koi8-r"[..]));
        assert_eq!(charset(b"<meta content='text/html; CHARSET=utf-8'>"), Some(&b"utf-8"[..]));
        assert_eq!(charset(b"charset="), None);
    }
}
