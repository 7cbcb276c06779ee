//! Enums whose values have names in options and files.

/// Defines an enum with the names of its values, their list, and conversions from and to names. Values of options have a
/// meaning as well: `Value = "name": "meaning"`.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    ($(#[$of_enum:meta])* $vis:vis enum $Enum:ident { $($(#[$of_value:meta])* $Value:ident = $name:literal: $help:literal,)+ }) => {
        $crate::named_enum! { $(#[$of_enum])* $vis enum $Enum { $(#[doc = $help] $(#[$of_value])* $Value = $name,)+ } }

        impl $Enum {
            /// The meaning of the value, for options.
            pub fn help(self) -> &'static str {
                match self { $(Self::$Value => $help,)+ }
            }
        }
    };
    ($(#[$of_enum:meta])* $vis:vis enum $Enum:ident { $($(#[$of_value:meta])* $Value:ident = $name:literal,)+ }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $Enum {
            $($(#[$of_value])* $Value,)+
        }

        impl $Enum {
            /// All values, in the order of tables.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// Name in options and files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Value => $name,)+ }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub use named_enum;
