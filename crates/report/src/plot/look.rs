//! Colours and markers, which are the same for a policy in every figure.

use tandem_model::sched::PolicyKind;

/// The stroke of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// An unbroken line, for measurements or the main data.
    #[default]
    Solid,
    /// A dashed line, for predictions or references.
    Dashed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    File,
    /// A page, which has title and note as text around the figure. The figure is narrow enough for a phone.
    Page,
}

impl Medium {
    pub(crate) fn width(self) -> f64 {
        match self {
            Self::File => 760.0,
            Self::Page => 440.0,
        }
    }
}

/// Colours of series on light and on dark paper, beginning with those of Okabe and Ito, darkened where white paper needs
/// it.
const PALETTE: [(u32, u32); 16] = [
    (0x00_72B2, 0x5A_AEE8),
    (0xD5_5E00, 0xF0_8A4B),
    (0x00_8A64, 0x4C_C79B),
    (0xB8_478F, 0xE2_8CC3),
    (0xA8_7900, 0xD9_B84A),
    (0x2B_93C9, 0x8A_D2F5),
    (0x46_4646, 0xD6_D4D0),
    (0x88_2255, 0xE0_7A9F),
    (0x73_7300, 0xB9_BF4A),
    (0x44_3399, 0x96_8CFF),
    (0x96_602F, 0xD8_A878),
    (0x0E_6E6E, 0x63_CFCF),
    (0xD0_1C3A, 0xFF_6E7D),
    (0x7A_4FD0, 0xC7_9BFF),
    (0x68_737B, 0xA3_AEB6),
    (0x4F_7A1C, 0x9F_D05A),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Series(usize),
    Ink,
    Grid,
    Paper,
}

impl Colour {
    /// The colour as SVG writes it. On a page it is a variable of the style sheet, which follows the choice of light or
    /// dark.
    pub(crate) fn css(self, medium: Medium) -> String {
        match (medium, self) {
            (Medium::File, Self::Series(look)) => hex(PALETTE[look % PALETTE.len()].0),
            (Medium::File, Self::Ink) => String::from("#1C1E21"),
            (Medium::File, Self::Grid) => String::from("#E1E1E1"),
            (Medium::File, Self::Paper) => String::from("#FFFFFF"),
            (Medium::Page, Self::Series(look)) => format!("var(--c{})", look % PALETTE.len()),
            (Medium::Page, Self::Ink) => String::from("var(--ink)"),
            (Medium::Page, Self::Grid) => String::from("var(--grid)"),
            (Medium::Page, Self::Paper) => String::from("var(--paper)"),
        }
    }
}

/// Corners of the markers around their point. The first marker is a circle.
pub(crate) const MARKERS: [&[(f64, f64)]; 7] = [
    &[],
    &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
    &[(0.0, -1.25), (1.25, 1.0), (-1.25, 1.0)],
    &[(0.0, -1.5), (1.5, 0.0), (0.0, 1.5), (-1.5, 0.0)],
    &[(-1.25, -1.0), (1.25, -1.0), (0.0, 1.25)],
    &[(-1.25, 0.0), (1.0, -1.25), (1.0, 1.25)],
    &[(1.25, 0.0), (-1.0, -1.25), (-1.0, 1.25)],
];

/// The look of a policy in every figure: a number for [`Series::colour`](super::Series::colour) and the marker. Other
/// policies than the lab's get a look by the letters of their name.
pub fn look_of(policy: &str) -> usize {
    let known = PolicyKind::ALL.iter().position(|kind| kind.name() == policy);
    known.unwrap_or_else(|| policy.bytes().map(usize::from).sum::<usize>() % (PALETTE.len() * MARKERS.len()))
}

/// Colours and markers of lines whose names begin with a policy, followed by a comma or a space and other settings. A
/// policy keeps its colour, and its lines differ in markers. Lines of a single policy differ in both.
pub fn looks_of(names: &[&str]) -> Vec<(usize, usize)> {
    let policy = |name: &str| name.split([' ', ',']).next().unwrap_or_default().to_owned();
    let is_single = names.iter().all(|name| policy(name) == policy(names[0]));
    let look = |(index, name): (usize, &&str)| {
        let own = look_of(&policy(name));
        let before = names[..index].iter().filter(|other| policy(other) == policy(name)).count();
        if is_single && names.len() > 1 { (index, index) } else { (own, own + before) }
    };
    names.iter().enumerate().map(look).collect()
}

fn hex(rgb: u32) -> String {
    format!("#{rgb:06X}")
}

/// Variables of the style sheet for the colours of series: light, and dark if the reader asks for it on a screen.
pub(crate) fn style_sheet() -> String {
    let block = |shade: fn(&(u32, u32)) -> u32| {
        let shades = PALETTE.iter().enumerate().map(|(i, shades)| format!("--c{i}: {};", hex(shade(shades))));
        format!(":root {{ {} }}", shades.collect::<Vec<_>>().join(" "))
    };
    let (light, dark) = (block(|shades| shades.0), block(|shades| shades.1));
    format!("{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn policies_and_colours_differ_from_each_other() {
        let css = |colour: Colour| colour.css(Medium::File);
        let colours: BTreeSet<_> = (0..PALETTE.len()).map(|look| css(Colour::Series(look))).collect();
        assert_eq!(colours.len(), PALETTE.len());
        assert_eq!(PALETTE.iter().map(|shades| shades.1).collect::<BTreeSet<_>>().len(), PALETTE.len());
        assert!([Colour::Ink, Colour::Grid, Colour::Paper].iter().all(|&colour| !colours.contains(&css(colour))));
        let shown =
            PolicyKind::ALL.map(|kind| look_of(kind.name())).map(|look| (look % PALETTE.len(), look % MARKERS.len()));
        assert_eq!(shown.into_iter().collect::<BTreeSet<_>>().len(), PolicyKind::ALL.len());
    }

    #[test]
    fn a_policy_keeps_its_colour_and_its_lines_differ_in_markers() {
        let looks = looks_of(&["mct, deadline 10", "mct, deadline 100", "stealing at 5 q/s"]);
        let (mct, stealing) = (look_of("mct"), look_of("stealing"));
        assert_eq!(looks, [(mct, mct), (mct, mct + 1), (stealing, stealing)]);
        assert_eq!(looks_of(&["mct, cpus 1", "mct, cpus 2"]), [(0, 0), (1, 1)]);
        assert_eq!(looks_of(&["mct"]), [(mct, mct)]);
    }

    #[test]
    fn colours_of_a_page_are_those_of_its_style_sheet() {
        assert_eq!(Colour::Series(19).css(Medium::Page), "var(--c3)");
        assert_eq!(style_sheet().matches("--c3:").count(), 2);
    }
}
