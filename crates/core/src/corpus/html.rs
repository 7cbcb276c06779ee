//! The text of a web page: what stands outside of tags.

/// Title and text of a page. Tags separate words; scripts, styles and comments are left out.
///
/// Whatever is not well-formed is read in some way: pages often are not.
pub(super) fn text_of(page: &str) -> (String, String) {
    let (mut title, mut text) = (String::new(), String::with_capacity(page.len() / 2));
    let mut rest = page;
    let mut is_title = false;
    while let Some(at) = memchr::memchr2(b'<', b'&', rest.as_bytes()) {
        let out = if is_title { &mut title } else { &mut text };
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('&') {
            rest = entity(rest, out);
            continue;
        }
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let name_at = rest[1..].strip_prefix('/').map_or(1, |_| 2);
        let name_len = rest[name_at..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        if name_len == 0 && !rest[1..].starts_with(['!', '?', '/']) {
            // Not a tag: "a < b".
            out.push('<');
            rest = &rest[1..];
            continue;
        }
        out.push(' ');
        let name = rest[name_at..name_at + name_len].to_ascii_lowercase();
        let is_end = name_at == 2;
        rest = memchr::memchr(b'>', rest.as_bytes()).map_or("", |end| &rest[end + 1..]);
        match name.as_str() {
            "title" => is_title = !is_end && title.trim().is_empty(),
            "script" | "style" if !is_end => rest = after_end_of(rest, &name),
            _ => {}
        }
    }
    if is_title {
        title.push_str(rest)
    } else {
        text.push_str(rest)
    }
    (title.trim().to_owned(), text)
}

/// What follows the element's end tag.
fn after_end_of<'a>(mut rest: &'a str, name: &str) -> &'a str {
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        if rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
    }
    ""
}

/// Writes the character that the reference at the beginning of `rest` stands for, and returns what follows.
fn entity<'a>(rest: &'a str, out: &mut String) -> &'a str {
    const LONGEST: usize = 12;
    let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
    let found = end.and_then(|end| {
        let name = &rest[1..end];
        let number = name.strip_prefix('#').and_then(|digits| match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        });
        let character = number.and_then(char::from_u32).or(match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "nbsp" => Some(' '),
            "auml" => Some('ä'),
            "ouml" => Some('ö'),
            "uuml" => Some('ü'),
            "Auml" => Some('Ä'),
            "Ouml" => Some('Ö'),
            "Uuml" => Some('Ü'),
            "szlig" => Some('ß'),
            "eacute" => Some('é'),
            "egrave" => Some('è'),
            "agrave" => Some('à'),
            "ccedil" => Some('ç'),
            "ntilde" => Some('ñ'),
            "ndash" => Some('–'),
            "mdash" => Some('—'),
            "lsquo" => Some('‘'),
            "rsquo" => Some('’'),
            "ldquo" => Some('“'),
            "rdquo" => Some('”'),
            "hellip" => Some('…'),
            "copy" => Some('©'),
            _ => None,
        });
        character.map(|character| (character, end + 1))
    });
    let (character, len) = found.unwrap_or(('&', 1));
    out.push(character);
    &rest[len..]
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
