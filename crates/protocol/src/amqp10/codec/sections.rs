//! Sections of a message (part 3, 3.2): found by their sizes, decoded one by one on request.

use super::composite::Composite;
use super::field::Field;
use super::malformed::{Malformed, Place, malformed};
use super::properties::{Header, Properties};
use super::put;
use super::value::{self, Descriptor, List, Map, Symbol, Value};
use super::wire::{self, Reader};
use super::write::{self, MapWriter};

macro_rules! kinds {
    ($($kind:ident = $code:literal $symbol:literal $name:literal $($format:ident)*;)*) => {
        /// A kind of section. They are in the order in which they follow each other.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum SectionKind { $($kind = $code,)* }

        impl SectionKind {
            pub(super) fn of(descriptor: Descriptor<'_>) -> Option<SectionKind> {
                Some(match descriptor {
                    $(Descriptor::Code($code) | Descriptor::Name(Symbol($symbol)) => {
                        SectionKind::$kind
                    })*
                    _ => return None,
                })
            }
            /// Its name, for error texts.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(SectionKind::$kind => $name,)* }
            }
            fn place(self) -> &'static Place {
                match self { $(SectionKind::$kind => const { &Place::whole($name) },)* }
            }
            /// Whether its value may have this format code.
            #[inline]
            fn takes(self, code: u8) -> bool {
                match self {
                    $(SectionKind::$kind => {
                        let codes: &[u8] = &[$(wire::$format),*];
                        codes.is_empty() || codes.contains(&code)
                    })*
                }
            }
        }
    };
}

kinds! {
    Header = 0x70 "amqp:header:list" "header" LIST8 LIST0 LIST32;
    DeliveryAnnotations = 0x71 "amqp:delivery-annotations:map" "delivery-annotations" MAP8 MAP32;
    MessageAnnotations = 0x72 "amqp:message-annotations:map" "message-annotations" MAP8 MAP32;
    Properties = 0x73 "amqp:properties:list" "properties" LIST8 LIST0 LIST32;
    ApplicationProperties = 0x74 "amqp:application-properties:map" "application-properties"
        MAP8 MAP32;
    Data = 0x75 "amqp:data:binary" "data" BINARY8 BINARY32;
    Sequence = 0x76 "amqp:amqp-sequence:list" "amqp-sequence" LIST8 LIST0 LIST32;
    Value = 0x77 "amqp:amqp-value:*" "amqp-value";
    Footer = 0x78 "amqp:footer:map" "footer" MAP8 MAP32;
}

/// A section's place in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where it begins, with its descriptor.
    pub start: usize,
    /// Where its value begins, with its format code.
    pub value: usize,
    /// Where it ends.
    pub end: usize,
}

/// What the body of a message consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Sections of octets.
    Data,
    /// Sections that are lists.
    Sequence,
    /// One value of any type.
    Value,
}

/// Where the body of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// What it consists of.
    pub kind: BodyKind,
    /// Its first section.
    pub first: Section,
    /// How many sections it has.
    pub count: u32,
    /// Where the last one ends.
    pub end: usize,
}

/// How large parts of a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of all sections but the body, together.
    pub properties_bytes_max: usize,
}

/// A message whose sections were found; none of them was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sections<'a> {
    message: &'a [u8],
    pub header: Option<Section>,
    pub delivery_annotations: Option<Section>,
    pub message_annotations: Option<Section>,
    pub properties: Option<Section>,
    pub application_properties: Option<Section>,
    /// `None`: the message has no body. The specification asks for one; clients send messages without.
    pub body: Option<Body>,
    pub footer: Option<Section>,
}

const UNKNOWN_SECTION: Malformed =
    malformed!(NotImplemented, "has a section of a kind that is not known");
const OUT_OF_ORDER: Malformed = malformed!("is there twice or behind a section that it precedes");
const WRONG_TYPE: Malformed = malformed!("is not of the type that this section has");
const TOO_LARGE: Malformed = malformed!(
    ResourceLimitExceeded,
    "has more octets of header, annotations and properties than are allowed",
);
const NOT_SIMPLE: Malformed = malformed!(
    InvalidField,
    "has an entry whose key is no string or whose value is a list, map, array or described value",
);
const NOT_ANNOTATIONS: Malformed =
    malformed!(InvalidField, "has a key that is neither symbol nor ulong");
const MESSAGE: Place = Place::whole("message");

impl<'a> Sections<'a> {
    /// Finds the sections of a message and checks their order; what is in them is not looked at. The footer
    /// may be before the body too, where rhea writes it.
    pub fn walk(message: &'a [u8], limits: Limits) -> Result<Sections<'a>, Malformed> {
        Sections::find(message, limits, true)
    }

    /// Finds the sections of a request. Its body may come first, as RabbitMQ's client for Python sends it.
    ///
    /// # Errors
    /// A section that is not known, or there twice.
    pub fn walk_request(message: &'a [u8], limits: Limits) -> Result<Sections<'a>, Malformed> {
        Sections::find(message, limits, false)
    }

    fn find(message: &'a [u8], limits: Limits, in_order: bool) -> Result<Sections<'a>, Malformed> {
        let mut sections = Sections {
            message,
            header: None,
            delivery_annotations: None,
            message_annotations: None,
            properties: None,
            application_properties: None,
            body: None,
            footer: None,
        };
        let mut reader = Reader::new(message);
        let (mut previous, mut last_outside) = (None, None);
        let mut properties_bytes = 0;
        while !reader.rest().is_empty() {
            let (kind, section) = read_section(message, &mut reader)?;
            let is_after_body = sections.body.is_some();
            let is_in_order = match sections.place_of(kind) {
                Some(place) => {
                    *place = Some(section);
                    properties_bytes += section.end - section.start;
                    let may_follow = kind == SectionKind::Footer || !in_order;
                    last_outside.replace(kind) < Some(kind) && (may_follow || !is_after_body)
                }
                None => {
                    sections.add_to_body(kind, section);
                    let may_repeat = matches!(kind, SectionKind::Data | SectionKind::Sequence);
                    !is_after_body || (may_repeat && previous == Some(kind))
                }
            };
            previous = Some(kind);
            if !is_in_order {
                return Err(OUT_OF_ORDER.within(kind.place()));
            }
            if properties_bytes > limits.properties_bytes_max {
                return Err(TOO_LARGE.within(&MESSAGE));
            }
        }
        Ok(sections)
    }

    /// Where a section of this kind is kept; `None`: it belongs to the body.
    fn place_of(&mut self, kind: SectionKind) -> Option<&mut Option<Section>> {
        Some(match kind {
            SectionKind::Header => &mut self.header,
            SectionKind::DeliveryAnnotations => &mut self.delivery_annotations,
            SectionKind::MessageAnnotations => &mut self.message_annotations,
            SectionKind::Properties => &mut self.properties,
            SectionKind::ApplicationProperties => &mut self.application_properties,
            SectionKind::Footer => &mut self.footer,
            SectionKind::Data | SectionKind::Sequence | SectionKind::Value => return None,
        })
    }

    fn add_to_body(&mut self, kind: SectionKind, section: Section) {
        let kind = match kind {
            SectionKind::Data => BodyKind::Data,
            SectionKind::Sequence => BodyKind::Sequence,
            _ => BodyKind::Value,
        };
        let new = Body { kind, first: section, count: 0, end: section.end };
        let body = self.body.get_or_insert(new);
        body.count += 1;
        body.end = section.end;
    }

    /// The whole message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }
    /// A section as it is encoded, with its descriptor.
    #[must_use]
    pub fn bytes(&self, section: Section) -> &'a [u8] {
        self.message.get(section.start..section.end).unwrap_or_default()
    }
    /// The value of a section as it is encoded.
    fn value_bytes(&self, section: Section) -> &'a [u8] {
        self.message.get(section.value..section.end).unwrap_or_default()
    }
    /// The header; all defaults: there is none.
    pub fn header(&self) -> Result<Header, Malformed> {
        self.composite(self.header)
    }
    /// The properties; all absent: there are none.
    pub fn properties(&self) -> Result<Properties<'a>, Malformed> {
        self.composite(self.properties)
    }
    fn composite<T: Composite<'a> + Default>(
        &self,
        section: Option<Section>,
    ) -> Result<T, Malformed> {
        let Some(section) = section else { return Ok(T::default()) };
        // What the list contains is checked field by field.
        let value = value::read(&mut Reader::new(self.value_bytes(section)));
        match value.map_err(|malformed| malformed.within(T::PLACE))? {
            Value::List(list) => T::from_list(list),
            _ => Err(WRONG_TYPE.within(T::PLACE)),
        }
    }
    /// The delivery annotations, checked.
    pub fn delivery_annotations(&self) -> Result<Map<'a>, Malformed> {
        self.annotations(self.delivery_annotations, SectionKind::DeliveryAnnotations)
    }
    /// The message annotations, checked.
    pub fn message_annotations(&self) -> Result<Map<'a>, Malformed> {
        self.annotations(self.message_annotations, SectionKind::MessageAnnotations)
    }
    /// The footer, checked except for its keys: rhea writes strings where symbols should be.
    pub fn footer(&self) -> Result<Map<'a>, Malformed> {
        self.map(self.footer, SectionKind::Footer, |_, _| true, NOT_ANNOTATIONS)
    }
    fn annotations(
        &self,
        section: Option<Section>,
        kind: SectionKind,
    ) -> Result<Map<'a>, Malformed> {
        let is_entry = |key, _| matches!(key, Value::Symbol(_) | Value::ULong(_));
        self.map(section, kind, is_entry, NOT_ANNOTATIONS)
    }
    /// The application properties, checked: keys are strings, values are scalars.
    pub fn application_properties(&self) -> Result<Map<'a>, Malformed> {
        let is_entry = |key, value| {
            use Value::{Array, Described, List, Map, String};
            matches!(key, String(_)) && !matches!(value, Array(_) | Described(_) | List(_) | Map(_))
        };
        let kind = SectionKind::ApplicationProperties;
        self.map(self.application_properties, kind, is_entry, NOT_SIMPLE)
    }
    /// The map of a section, checked to its depths, each of whose entries has to be one of `is_entry`.
    fn map(
        &self,
        section: Option<Section>,
        kind: SectionKind,
        is_entry: impl Fn(Value<'a>, Value<'a>) -> bool,
        otherwise: Malformed,
    ) -> Result<Map<'a>, Malformed> {
        let Some(section) = section else { return Ok(Map::default()) };
        let checked = match value::read(&mut Reader::new(self.value_bytes(section))) {
            Ok(Value::Map(map)) => map.check_entries(is_entry, otherwise).map(|()| map),
            Ok(_) => Err(WRONG_TYPE),
            Err(malformed) => Err(malformed),
        };
        checked.map_err(|malformed| malformed.within(kind.place()))
    }
    /// The octets of the body's data sections, one by one; nothing: the body is of another kind.
    pub fn data(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.body_values(BodyKind::Data).filter_map(|value| match value {
            Ok(Value::Binary(octets)) => Some(octets),
            _ => None,
        })
    }
    /// The lists of the body's sequence sections, each checked; nothing: the body is of another kind.
    pub fn sequences(&self) -> impl Iterator<Item = Result<List<'a>, Malformed>> + use<'a> {
        self.body_values(BodyKind::Sequence).map(|value| {
            let checked = value.and_then(|value| match value {
                Value::List(list) => value::check(value, 1).map(|()| list),
                _ => Err(WRONG_TYPE),
            });
            checked.map_err(|malformed| malformed.within(SectionKind::Sequence.place()))
        })
    }
    /// The body's value, checked; `None`: the body is of another kind.
    pub fn amqp_value(&self) -> Result<Option<Value<'a>>, Malformed> {
        match self.body {
            Some(Body { kind: BodyKind::Value, first, .. }) => {
                Value::decode(self.value_bytes(first)).map(Some)
            }
            _ => Ok(None),
        }
        .map_err(|malformed| malformed.within(SectionKind::Value.place()))
    }
    /// The values of the body's sections, not looked into; nothing: the body is not of this kind. Behind one
    /// that cannot be read there are no others.
    fn body_values(
        &self,
        kind: BodyKind,
    ) -> impl Iterator<Item = Result<Value<'a>, Malformed>> + use<'a> {
        let body = self.body.filter(|body| body.kind == kind);
        let bytes = body.and_then(|body| self.message.get(body.first.start..body.end));
        let mut reader = Reader::new(bytes.unwrap_or_default());
        std::iter::from_fn(move || {
            if reader.rest().is_empty() {
                return None;
            }
            let value = value::read_described(&mut reader).and_then(|it| it.read_value());
            if value.is_err() {
                reader = Reader::new(&[]);
            }
            Some(value)
        })
    }
}

/// Reads a section of `message`, where `reader` is.
#[inline]
fn read_section(
    message: &[u8],
    reader: &mut Reader<'_>,
) -> Result<(SectionKind, Section), Malformed> {
    let start = message.len() - reader.rest().len();
    let described =
        value::read_described(reader).map_err(|malformed| malformed.within(&MESSAGE))?;
    let Some(kind) = SectionKind::of(described.descriptor()) else {
        return Err(UNKNOWN_SECTION.within(&MESSAGE));
    };
    let [constructor, body] = described.parts();
    // A section has one descriptor; only the value of an `amqp-value` may have its own.
    if !kind.takes(constructor.first().copied().unwrap_or(wire::NULL)) {
        return Err(WRONG_TYPE.within(kind.place()));
    }
    let end = message.len() - reader.rest().len();
    Ok((kind, Section { start, value: end - body.len() - constructor.len(), end }))
}

/// Appends a section that is a map: annotations, application properties or a footer.
pub fn put_map_section(
    out: &mut Vec<u8>,
    kind: SectionKind,
    fill: impl FnOnce(&mut MapWriter<'_>),
) {
    put::put_described(out, kind as u64, |out| write::put_map(out, fill));
}

/// Appends a section whose value is this: a `&[u8]` for data, a list for a sequence, anything for an
/// `amqp-value`.
pub fn put_section<'a>(out: &mut Vec<u8>, kind: SectionKind, value: &impl Field<'a>) {
    put::put_described(out, kind as u64, |out| value.write(out));
}
