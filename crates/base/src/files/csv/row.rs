//! Conversion of a line's cells to a struct, by serde.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::cells::Cells;

#[derive(Debug)]
pub(super) struct Fault {
    pub(super) field: Option<usize>,
    pub(super) expected: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expected)
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(expected: T) -> Self {
        Self { field: None, expected: expected.to_string() }
    }
}

/// The names of a struct's fields, which are the columns of its file in order.
pub(super) fn columns<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut columns = &[][..];
    // The call only collects the names of the fields, and always fails.
    let _ = T::deserialize(Columns(&mut columns));
    columns
}

struct Columns<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Columns<'_> {
    type Error = Fault;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fault> {
        *self.0 = fields;
        Err(Fault::custom("only the fields were asked for"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Converts a line to the struct whose fields are named in `header`; cells under `None` are skipped.
pub(super) fn row<'de, T: Deserialize<'de>>(header: &[Option<&'static str>], cells: &Cells<'_>) -> Result<T, Fault> {
    T::deserialize(RowCells { header, cells })
}

struct RowCells<'a> {
    header: &'a [Option<&'static str>],
    cells: &'a Cells<'a>,
}

impl<'de> Deserializer<'de> for RowCells<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Fields { line: self, next: 0 })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Fields<'a> {
    line: RowCells<'a>,
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let rest = &self.line.header[self.next..];
        let Some((skipped, name)) = rest.iter().enumerate().find_map(|(i, name)| name.map(|name| (i, name))) else {
            return Ok(None);
        };
        self.next += skipped + 1;
        let name: StrDeserializer<'_, Fault> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let field = self.next - 1;
        seed.deserialize(Value(self.line.cells.value(field))).map_err(|fault| Fault { field: Some(field), ..fault })
    }
}

struct Value<'a>(&'a str);

macro_rules! parsed {
    ($($ask:ident $visit:ident $expected:literal)+) => {
        $(fn $ask<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.$visit(self.0.parse().map_err(|_| Fault::custom($expected))?)
        })+
    };
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Fault;

    parsed! {
        deserialize_bool visit_bool "true or false"
        deserialize_u8 visit_u8 "a whole number from 0"
        deserialize_u16 visit_u16 "a whole number from 0"
        deserialize_u32 visit_u32 "a whole number from 0"
        deserialize_u64 visit_u64 "a whole number from 0"
        deserialize_i64 visit_i64 "a whole number"
        deserialize_f64 visit_f64 "a number"
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if !variants.contains(&self.0) {
            return Err(Fault::custom(variants.join(", ")));
        }
        let name: StrDeserializer<'_, Fault> = self.0.into_deserializer();
        visitor.visit_enum(name)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}
