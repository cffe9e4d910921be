// Package schema compares JSON with the shapes of Go types: Read decodes a document strictly, and Types describes types for
// an OpenAPI 3.1 document. Both derive the members of a type in the same way, so that Read accepts every document that
// follows the description.
//
// Limits. Objects and arrays nest at most 32 deep, and a problem lists at most 20 faults. Read does not rely on
// encoding/json alone, which ignores the case of member names, keeps the last of two members with one name, and stops at the
// first fault without its position.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
)

const (
	deepest   = 32 // bound of nested objects and arrays
	mostWrong = 20 // bound of reported faults
)

// Read decodes one JSON value into the target of a pointer. An empty body means an empty object. Members without omitempty
// are required. Unknown and repeated members, other types, and null for a field that is not a pointer are faults. The error
// is an *api.Problem that lists every fault by its JSON pointer.
func Read(body []byte, into any) error {
	if len(body) == 0 {
		body = []byte("{}")
	}
	if !utf8.Valid(body) {
		return malformed("the body is not UTF-8")
	}
	if err := wellFormed(body); err != nil {
		return err
	}
	var c checker
	c.value(body, reflect.TypeOf(into).Elem(), "", 0)
	switch {
	case c.deep:
		return malformed(fmt.Sprintf("objects and arrays are nested more than %d deep", deepest))
	case len(c.wrong) > 0:
		return api.Invalid(c.wrong...)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return malformed(err.Error())
	}
	return nil
}

func malformed(why string) *api.Problem {
	return api.NewProblem(http.StatusBadRequest, "malformed_json", "The body is not JSON", why)
}

// wellFormed returns why a text is not exactly one JSON value; nil if it is.
func wellFormed(body []byte) error {
	if json.Valid(body) {
		return nil
	}
	var one json.RawMessage
	d := json.NewDecoder(bytes.NewReader(body))
	err := d.Decode(&one)
	if err == nil {
		return api.Invalid(api.Wrong{Parameter: "", Detail: "the body holds more than one value: text follows byte " +
			strconv.FormatInt(d.InputOffset(), 10)})
	}
	why := "the body ends too early"
	if syntax, is := errors.AsType[*json.SyntaxError](err); is && !errors.Is(err, io.ErrUnexpectedEOF) {
		why = fmt.Sprintf("%s, at byte %d", syntax.Error(), syntax.Offset)
	}
	return malformed(why)
}

// checker collects the faults of a body.
type checker struct {
	wrong []api.Wrong
	deep  bool // objects and arrays are nested too deep
}

func (c *checker) bad(at, format string, args ...any) {
	if len(c.wrong) < mostWrong {
		c.wrong = append(c.wrong, api.Wrong{Parameter: report.Clip(at), Detail: fmt.Sprintf(format, args...)})
	}
}

var decoderType = reflect.TypeFor[json.Unmarshaler]()

// value checks a valid JSON value at a JSON pointer; a nil type takes every value.
func (c *checker) value(raw []byte, t reflect.Type, at string, depth int) {
	nullable := t == nil
	for t != nil && t.Kind() == reflect.Pointer {
		t, nullable = t.Elem(), true
	}
	own := t != nil && reflect.PointerTo(t).Implements(decoderType) // the type has a decoder of its own
	shape := t
	if own {
		shape = nil
	}
	is := func(kinds ...reflect.Kind) bool { return shape == nil || slices.Contains(kinds, shape.Kind()) }
	fits := true
	switch kind := esjson.TypeOf(raw); {
	case kind == esjson.TypeNull:
		if fits = nullable || own; nullable {
			return
		}
	case kind == esjson.TypeObject && is(reflect.Struct, reflect.Map):
		c.object(raw, shape, at, depth+1)
	case kind == esjson.TypeArray && is(reflect.Slice):
		c.array(raw, shape, at, depth+1)
	case shape != nil:
		fits = json.Unmarshal(raw, reflect.New(shape).Interface()) == nil
	}
	if !fits {
		c.bad(at, "want %s, not %s", kindText(t), foundText(raw))
	}
	if !own || c.deep {
		return
	}
	var other *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); errors.As(err, &other) {
		c.bad(at, "want %s, not %s", kindText(other.Type), other.Value)
	} else if err != nil {
		c.bad(at, "%s", err.Error())
	}
}

// object checks the members of an object against a struct or a map.
func (c *checker) object(raw []byte, t reflect.Type, at string, depth int) {
	if c.deep = c.deep || depth > deepest; c.deep {
		return
	}
	var list []member
	known := map[string]member{}
	closed := t != nil && t.Kind() == reflect.Struct
	if closed {
		list = membersOf(t)
	}
	for _, m := range list {
		known[m.name] = m
	}
	seen := map[string]bool{}
	for name, value := range esjson.Members(raw) {
		here := at + "/" + pointerQuotes.Replace(name)
		if seen[name] {
			c.bad(here, "the member is given twice")
		}
		seen[name] = true
		var of reflect.Type
		if m, ok := known[name]; ok {
			of = t.FieldByIndex(m.index).Type
		} else if closed {
			c.bad(here, "there is no such member%s", membersText(known))
		} else if t != nil {
			of = t.Elem()
		}
		c.value(value, of, here, depth)
	}
	for _, m := range list {
		if m.required && !seen[m.name] {
			c.bad(at+"/"+pointerQuotes.Replace(m.name), "the member is missing")
		}
	}
}

// array checks the elements of an array against those of a slice.
func (c *checker) array(raw []byte, t reflect.Type, at string, depth int) {
	if c.deep = c.deep || depth > deepest; c.deep {
		return
	}
	var of reflect.Type
	if t != nil {
		of = t.Elem()
	}
	i := 0
	for value := range esjson.Array(raw) {
		c.value(value, of, at+"/"+strconv.Itoa(i), depth)
		i++
	}
}

// kindText returns the JSON type of a Go type, for messages.
func kindText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindText(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// foundText returns a value that does not fit, for messages.
func foundText(raw []byte) string {
	switch esjson.TypeOf(raw) {
	case esjson.TypeObject:
		return "an object"
	case esjson.TypeArray:
		return "an array"
	case esjson.TypeString:
		return "a text"
	}
	return report.Clip(string(raw))
}

func membersText(members map[string]member) string {
	if len(members) == 0 {
		return "; no member is known"
	}
	return "; there are: " + strings.Join(slices.Sorted(maps.Keys(members)), ", ")
}

var pointerQuotes = strings.NewReplacer("~", "~0", "/", "~1")

// Object is a JSON object.
type Object = map[string]any

// Types are the JSON schemas of the structs that were passed to Of, and of the structs in them, by name.
type Types Object

// Of returns the schema of a value's type: of a struct, a reference to it. nil stands for any JSON.
func (b Types) Of(value any) Object {
	if value == nil {
		return Object{}
	}
	return b.of(reflect.TypeOf(value))
}

// Required reports whether a body is required, because its type has a required member.
func Required(body any) bool {
	return slices.ContainsFunc(membersOf(reflect.TypeOf(body)), func(m member) bool { return m.required })
}

// of returns the schema of a type; of a struct, a reference to it. A type that this function does not list has an
// empty schema, so that a test finds a forgotten one.
func (b Types) of(t reflect.Type) Object {
	switch t {
	case reflect.TypeFor[money.USD]():
		return Object{"type": "string", "description": "US dollars, decimal"}
	case reflect.TypeFor[json.RawMessage]():
		return Object{}
	}
	if f, ok := reflect.Zero(t).Interface().(interface{ Form() any }); ok {
		return b.of(reflect.TypeOf(f.Form()))
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := b.of(t.Elem())
		if len(inner) == 0 { // anything, null too
			return inner
		}
		return Object{"anyOf": []Object{inner, {"type": "null"}}}
	case reflect.Slice:
		return Object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32, reflect.Uint32:
		return Object{"type": "integer"}
	case reflect.Struct:
		return b.named(t)
	}
	return Object{}
}

func (b Types) named(t reflect.Type) Object {
	name := schemaName(t)
	ref := Object{"$ref": "#/components/schemas/" + name}
	if _, ok := b[name]; ok {
		return ref
	}
	out := Object{"type": "object", "additionalProperties": false}
	b[name] = out // before the members, because a type may contain itself
	members, required := Object{}, []string{}
	for _, m := range membersOf(t) {
		members[m.name] = b.of(t.FieldByIndex(m.index).Type)
		if m.required {
			required = append(required, m.name)
		}
	}
	out["properties"], out["required"] = members, required
	return ref
}

// member is one member of the JSON Object of a struct.
type member struct {
	name     string
	index    []int // of the field, for reflect
	required bool  // always written, and required when read
}

// membersOf returns the members of a struct, including those of embedded structs; of two with one name the outer one.
func membersOf(t reflect.Type) (out []member) {
	at := map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct || !f.IsExported() || tag == "-" {
			continue
		}
		tag = cmp.Or(tag, f.Name)
		m := member{tag, f.Index, !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")}
		if i, twice := at[tag]; !twice {
			at[tag] = len(out)
			out = append(out, m)
		} else if len(m.index) < len(out[i].index) {
			out[i] = m
		}
	}
	return out
}

// schemaName returns the name of a type: Page[store.Summary] is SummaryPage.
func schemaName(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		of = strings.TrimSuffix(of, "]")
		name = of[strings.LastIndexAny(of, "./")+1:] + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
