//! Numbers of several runs as one cell of a table.

/// A figure in every run.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|it| it.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        (!figures.is_empty()).then_some(Self(figures))
    }

    pub(crate) fn median(&self) -> f64 {
        sorted(&self.0, 0.5)
    }

    /// `median [least..most]`, or the number alone if it is always the same.
    pub(crate) fn cell(&self) -> String {
        let median = brief(self.median());
        let (least, most) = (brief(sorted(&self.0, 0.0)), brief(sorted(&self.0, 1.0)));
        if least == most {
            return median;
        }
        format!("{median} [{least}..{most}]")
    }
}

/// The number below which this part of them lies.
pub(crate) fn percentile(figures: &mut [f64], part: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    sorted(figures, part)
}

pub(crate) fn middle(figures: &mut [f64]) -> f64 {
    percentile(figures, 0.5)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a place in a list, from its length and a part of one"
)]
fn sorted(figures: &[f64], part: f64) -> f64 {
    let place = (figures.len().saturating_sub(1) as f64 * part).round() as usize;
    figures.get(place).copied().unwrap_or(f64::NAN)
}

/// Three digits that count.
pub(crate) fn brief(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => grouped(figure),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 1.0 => format!("{figure:.2}"),
        size if size >= 0.001 => format!("{figure:.4}"),
        _ => format!("{figure:.6}"),
    }
}

/// A whole number with its thousands apart.
fn grouped(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
