//! Colours and markers, the same for a policy in every figure.

use plotters::style::RGBColor;

use tandem_core::sched::PolicyKind;

/// A colour on light paper, and on dark paper.
type Shades = (RGBColor, RGBColor);

/// Colours of series, beginning with those of Okabe and Ito, darkened where white paper needs it.
const PALETTE: [Shades; 16] = [
    (RGBColor(0, 114, 178), RGBColor(90, 174, 232)),
    (RGBColor(213, 94, 0), RGBColor(240, 138, 75)),
    (RGBColor(0, 138, 100), RGBColor(76, 199, 155)),
    (RGBColor(184, 71, 143), RGBColor(226, 140, 195)),
    (RGBColor(168, 121, 0), RGBColor(217, 184, 74)),
    (RGBColor(43, 147, 201), RGBColor(138, 210, 245)),
    (RGBColor(70, 70, 70), RGBColor(214, 212, 208)),
    (RGBColor(136, 34, 85), RGBColor(224, 122, 159)),
    (RGBColor(115, 115, 0), RGBColor(185, 191, 74)),
    (RGBColor(68, 51, 153), RGBColor(150, 140, 255)),
    (RGBColor(150, 96, 47), RGBColor(216, 168, 120)),
    (RGBColor(14, 110, 110), RGBColor(99, 207, 207)),
    (RGBColor(208, 28, 58), RGBColor(255, 110, 125)),
    (RGBColor(122, 79, 208), RGBColor(199, 155, 255)),
    (RGBColor(104, 115, 123), RGBColor(163, 174, 182)),
    (RGBColor(79, 122, 28), RGBColor(159, 208, 90)),
];

/// Text and axes, lines of the grid, and what is behind all; each has the name of a variable of the page's style sheet.
pub(super) const INK: RGBColor = RGBColor(28, 30, 33);
pub(super) const GRID: RGBColor = RGBColor(225, 225, 225);
pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
const NAMED: [(RGBColor, &str); 3] = [(INK, "ink"), (GRID, "grid"), (PAPER, "paper")];

/// Corners of the markers around their point; the first is a circle.
pub(super) const MARKERS: [&[(f64, f64)]; 7] = [
    &[],
    &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
    &[(0.0, -1.25), (1.25, 1.0), (-1.25, 1.0)],
    &[(0.0, -1.5), (1.5, 0.0), (0.0, 1.5), (-1.5, 0.0)],
    &[(-1.25, -1.0), (1.25, -1.0), (0.0, 1.25)],
    &[(-1.25, 0.0), (1.0, -1.25), (1.0, 1.25)],
    &[(1.25, 0.0), (-1.0, -1.25), (-1.0, 1.25)],
];

/// The colour of a look.
pub(super) fn colour(look: usize) -> RGBColor {
    PALETTE[look % PALETTE.len()].0
}

/// The look of a policy in every figure: a number for [`Series::colour`](super::Series::colour) and its marker. Policies that
/// are not the lab's own get theirs by the letters of their name.
#[must_use]
pub fn look_of(policy: &str) -> usize {
    let known = PolicyKind::ALL.iter().position(|kind| kind.name() == policy);
    known.unwrap_or_else(|| policy.bytes().map(usize::from).sum::<usize>() % (PALETTE.len() * MARKERS.len()))
}

/// Colours and markers of lines whose names begin with a policy and go on, after a comma or a space, with what else tells
/// them apart: a policy keeps its colour, its lines differ in markers. Lines of a single policy differ in both.
#[must_use]
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

/// A colour as SVG writes it.
fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// A drawing whose colours are variables of the page's style sheet, so that they follow the choice of light or dark.
pub(super) fn themed(svg: &str) -> String {
    let series = PALETTE.iter().enumerate().map(|(i, (light, _))| (*light, format!("c{i}")));
    let named = NAMED.iter().map(|(colour, name)| (*colour, (*name).to_owned()));
    series.chain(named).fold(svg.to_owned(), |svg, (colour, name)| {
        svg.replace(&format!("\"{}\"", hex(colour)), &format!("\"var(--{name})\""))
    })
}

/// The style sheet's variables of the colours of series: light, dark where the reader asks for it, and light in print.
#[must_use]
pub(crate) fn style_sheet() -> String {
    let block = |of: fn(&Shades) -> RGBColor| {
        let shades = PALETTE.iter().enumerate().map(|(i, shades)| format!("--c{i}: {};", hex(of(shades))));
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
    fn no_two_policies_look_alike_and_colours_differ_from_each_other_and_from_the_frame() {
        let colours: BTreeSet<_> = PALETTE.iter().map(|shades| hex(shades.0)).collect();
        assert_eq!(colours.len(), PALETTE.len());
        assert_eq!(PALETTE.iter().map(|shades| hex(shades.1)).collect::<BTreeSet<_>>().len(), PALETTE.len());
        assert!(NAMED.iter().all(|(colour, _)| !colours.contains(&hex(*colour))));
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
        let svg = format!("<path fill=\"{}\" stroke=\"{}\"/>", hex(colour(3)), hex(PAPER));
        assert_eq!(themed(&svg), "<path fill=\"var(--c3)\" stroke=\"var(--paper)\"/>");
        assert_eq!(style_sheet().matches("--c3:").count(), 2);
    }
}
