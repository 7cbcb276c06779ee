//! Rows of CSV files, with each column listed once.

/// Defines a row of a CSV file: a struct whose fields are the columns, its constructor `of`, and what a reader needs to
/// know. Each line of the list is a column's name, type and value. Names after `with` are shared by the values.
///
/// Columns after `optional` are not written if they have no value. Those after `added` are always written, but files of
/// earlier versions lack them.
macro_rules! row {
    (
        $(#[$of_row:meta])*
        $vis:vis struct $Row:ident of ($($argument:ident: $Argument:ty),*) $(with { $($local:pat = $with:expr;)* })? {
            $($column:ident: $Column:ty = $value:expr,)*
        }
        $(optional { $($optional:ident: $Optional:ty = $given:expr,)* })?
        $(added { $($added:ident: $Added:ty = $new:expr,)* })?
    ) => {
        $(#[$of_row])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        $vis struct $Row {
            $($column: $Column,)*
            $($(#[serde(skip_serializing_if = "Option::is_none")] $optional: Option<$Optional>,)*)?
            $($($added: $Added,)*)?
        }

        impl tandem_model::files::Record for $Row {
            const OPTIONAL: &'static [&'static str] =
                &[$($(stringify!($optional),)*)? $($(stringify!($added),)*)?];
        }

        impl $Row {
            /// The row of these results.
            $vis fn of($($argument: $Argument),*) -> Self {
                $($(let $local = $with;)*)?
                Self {
                    $($column: $value,)*
                    $($($optional: $given,)*)?
                    $($($added: $new,)*)?
                }
            }
        }
    };
}
pub(crate) use row;

pub(crate) type Text = std::borrow::Cow<'static, str>;
