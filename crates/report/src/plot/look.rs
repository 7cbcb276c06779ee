//! Colours and markers.

use plotters::style::RGBColor;

/// Numbers of a colour and of a marker, each modulo the number of them.
pub type Look = (usize, usize);

/// Colours of series on white paper, beginning with those of Okabe and Ito, some of them darkened.
const LIGHT: [u32; 16] = [
    0x00_72B2, 0xD5_5E00, 0x00_8A64, 0xB8_478F, 0xA8_7900, 0x2B_93C9, 0x46_4646, 0x88_2255, 0x73_7300, 0x44_3399,
    0x96_602F, 0x0E_6E6E, 0xD0_1C3A, 0x7A_4FD0, 0x68_737B, 0x4F_7A1C,
];
/// The same on dark paper.
const DARK: [u32; 16] = [
    0x5A_AEE8, 0xF0_8A4B, 0x4C_C79B, 0xE2_8CC3, 0xD9_B84A, 0x8A_D2F5, 0xD6_D4D0, 0xE0_7A9F, 0xB9_BF4A, 0x96_8CFF,
    0xD8_A878, 0x63_CFCF, 0xFF_6E7D, 0xC7_9BFF, 0xA3_AEB6, 0x9F_D05A,
];
pub(crate) const INK: RGBColor = RGBColor(0x1C, 0x1E, 0x21);
pub(crate) const GRID: RGBColor = RGBColor(0xE1, 0xE1, 0xE1);
pub(crate) const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);

/// The number of pairs of a colour and a marker.
pub(crate) const LOOKS: usize = LIGHT.len() * MARKERS.len();

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

pub(crate) fn shade(colour: usize) -> RGBColor {
    let [_, r, g, b] = LIGHT[colour % LIGHT.len()].to_be_bytes();
    RGBColor(r, g, b)
}

/// The style sheet of a page with figures, for readers who ask for dark colours on a screen.
pub(crate) fn style_sheet() -> String {
    let series = (0..LIGHT.len()).map(|colour| (shade(colour), format!("#{:06X}", DARK[colour])));
    let frame = [(INK, "ink"), (GRID, "grid"), (PAPER, "paper")].map(|(shade, name)| (shade, format!("var(--{name})")));
    let rules = |(RGBColor(r, g, b), dark): (RGBColor, String)| {
        ["fill", "stroke"].map(|of| format!(".chart [{of}=\"#{r:02X}{g:02X}{b:02X}\"] {{ {of}: {dark} }}\n")).concat()
    };
    let rules: String = series.chain(frame).map(rules).collect();
    format!("@media screen and (prefers-color-scheme: dark) {{\n{rules}}}\n")
}
