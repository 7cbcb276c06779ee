//! Rows of CSV files, with each column listed once.

/// Defines a row of a CSV file: a struct whose fields are the columns, and its constructor `of`. Each line of the list
/// is a column's name, type and value. Names after `with` are shared by the values.
macro_rules! row {
    (
        $(#[$of_row:meta])*
        $vis:vis struct $Row:ident of ($($argument:ident: $Argument:ty),*) $(with { $($local:pat = $with:expr;)* })? {
            $($(#[$of_column:meta])* $column:ident: $Column:ty = $value:expr,)*
        }
    ) => {
        $(#[$of_row])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        $vis struct $Row {
            $($(#[$of_column])* $column: $Column,)*
        }

        impl $Row {
            /// The row of these results.
            $vis fn of($($argument: $Argument),*) -> Self {
                $($(let $local = $with;)*)?
                Self { $($column: $value,)* }
            }
        }
    };
}
pub(crate) use row;

pub(crate) type Text = std::borrow::Cow<'static, str>;
