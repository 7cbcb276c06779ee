//! Classes of processor, and values by class.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A class of processors. Costs are measured and predicted for each class.
///
/// Every lab has CPU workers and GPU streams. Machines that mix two kinds of either (efficiency cores, GPUs of two
/// models) call the second kind `cpu2` and `gpu2`. To a scheduler a class is just a column of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u8);

impl Class {
    /// CPU worker threads.
    pub const CPU: Self = Self(0);
    /// GPU streams.
    pub const GPU: Self = Self(1);
    /// CPU workers of a second kind.
    pub const CPU2: Self = Self(2);
    /// Streams of GPUs of a second kind.
    pub const GPU2: Self = Self(3);

    /// Number of classes.
    pub const COUNT: usize = 4;

    /// All classes, in the order used in files and tables.
    pub const ALL: [Self; Self::COUNT] = [Self::CPU, Self::GPU, Self::CPU2, Self::GPU2];

    const NAMES: [&'static str; Self::COUNT] = ["cpu", "gpu", "cpu2", "gpu2"];

    /// `cpu`, `gpu`, `cpu2` or `gpu2`, as in files and options.
    #[inline]
    pub fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The class of this name.
    #[inline]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Position in an array by class.
    #[inline]
    pub fn index(self) -> usize {
        // The remainder changes nothing, but shows the compiler that the index is in range.
        usize::from(self.0) % Self::COUNT
    }

    /// Whether the class's processors are streams of GPUs.
    #[inline]
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::GPU | Self::GPU2)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Class {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, &Self::NAMES))
    }
}

/// One value for each class of processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerClass<T>([T; Class::COUNT]);

impl<T> PerClass<T> {
    /// Makes each value from its class.
    #[inline]
    pub fn from_fn(mut make: impl FnMut(Class) -> T) -> Self {
        Self(Class::ALL.map(&mut make))
    }

    /// Applies `change` to each value.
    #[inline]
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PerClass<U> {
        PerClass(self.0.map(change))
    }

    /// The values with their classes, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Class, &T)> {
        Class::ALL.into_iter().zip(&self.0)
    }
}

impl<T: Default> PerClass<T> {
    /// Values of CPU and GPU, with defaults for the other classes.
    #[inline]
    pub fn two(cpu: T, gpu: T) -> Self {
        let mut values = Self::from_fn(|_| T::default());
        values[Class::CPU] = cpu;
        values[Class::GPU] = gpu;
        values
    }
}

impl<T> std::ops::Index<Class> for PerClass<T> {
    type Output = T;
    #[inline]
    fn index(&self, class: Class) -> &T {
        &self.0[class.index()]
    }
}

impl<T> std::ops::IndexMut<Class> for PerClass<T> {
    #[inline]
    fn index_mut(&mut self, class: Class) -> &mut T {
        &mut self.0[class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_goes_by_one_name_everywhere() {
        for class in Class::ALL {
            assert_eq!(Class::from_name(class.name()), Some(class));
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{class}\""));
            assert_eq!(serde_json::from_str::<Class>(&json).unwrap(), class);
        }
        assert!(serde_json::from_str::<Class>("\"tpu\"").unwrap_err().to_string().contains("cpu2"));
    }
}
