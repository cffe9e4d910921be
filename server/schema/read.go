package schema

import (
	"bytes"
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
	"github.com/roost-dev/roost/report"
)

const (
	deepest   = 32 // bound of nested objects and arrays
	mostWrong = 20 // bound of reported faults
)

// Read decodes one JSON value into the target of a pointer. Nothing means an empty object. Members without omitempty
// are required. Unknown and repeated members, other types, and null for a field that is not a pointer are faults. The error
// is an *api.Problem that lists every fault by its JSON pointer.
func Read(body []byte, into any) error {
	if len(body) == 0 {
		body = []byte("{}")
	}
	if !utf8.Valid(body) {
		return api.NewProblem(http.StatusBadRequest, "malformed_json", "The body is no JSON", "it is not UTF-8")
	}
	b := &binder{d: json.NewDecoder(bytes.NewReader(body))}
	b.d.UseNumber()
	if err := wellFormed(body); err != nil {
		return err
	}
	if err := b.value(reflect.ValueOf(into).Elem(), "", 0); err != nil {
		return api.NewProblem(http.StatusBadRequest, "malformed_json", "The body is no JSON", err.Error())
	}
	if len(b.wrong) == 0 {
		return nil
	}
	return invalid(b.wrong...)
}

// invalid is the problem of a body with faults.
func invalid(wrong ...api.Wrong) *api.Problem {
	at := wrong[0].Parameter
	if at == "" {
		at = "the body"
	}
	p := api.NewProblem(http.StatusUnprocessableEntity, "validation_failed", "Something in the body is wrong",
		at+": "+wrong[0].Detail)
	p.Errors = wrong
	return p
}

// wellFormed is why a text is not exactly one JSON value.
func wellFormed(body []byte) error {
	if json.Valid(body) {
		return nil
	}
	var one json.RawMessage
	d := json.NewDecoder(bytes.NewReader(body))
	err := d.Decode(&one)
	if err == nil {
		return invalid(api.Wrong{Parameter: "", Detail: "it holds more than one value: there is text behind byte " +
			strconv.FormatInt(d.InputOffset(), 10)})
	}
	why := "it ends too early"
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
		why = fmt.Sprintf("%s, at byte %d", syntax.Error(), syntax.Offset)
	}
	return api.NewProblem(http.StatusBadRequest, "malformed_json", "The body is no JSON", why)
}

// binder puts tokens into values, and collects faults.
type binder struct {
	d     *json.Decoder
	wrong []api.Wrong
}

func (b *binder) bad(at, format string, args ...any) {
	if len(b.wrong) < mostWrong {
		b.wrong = append(b.wrong, api.Wrong{Parameter: report.Clip(at), Detail: fmt.Sprintf(format, args...)})
	}
}

var decoderType = reflect.TypeFor[json.Unmarshaler]()

// value reads the next value into v; an invalid v skips it. Errors are those of the text; other faults are collected.
func (b *binder) value(v reflect.Value, at string, depth int) error {
	if v.IsValid() && v.Kind() != reflect.Pointer && reflect.PointerTo(v.Type()).Implements(decoderType) {
		return b.own(v, at, depth)
	}
	token, err := b.d.Token()
	if err != nil {
		return err
	}
	if token == nil {
		if v.IsValid() && v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			b.bad(at, "want %s, not null", kindText(v.Type()))
		}
		return nil
	}
	return b.token(token, v, at, depth)
}

// token puts a value that begins with a token into v.
func (b *binder) token(token json.Token, v reflect.Value, at string, depth int) error {
	if v.IsValid() && v.Kind() == reflect.Pointer {
		return b.pointed(token, v, at, depth)
	}
	switch token := token.(type) {
	case json.Delim:
		if depth++; depth > deepest {
			return fmt.Errorf("more than %d objects and arrays lie in each other", deepest)
		}
		if token == '{' {
			return b.object(v, at, depth)
		}
		return b.array(v, at, depth)
	case string:
		b.text(token, v, at)
	case bool:
		b.truth(token, v, at)
	case json.Number:
		b.number(token, v, at)
	}
	return nil
}

// pointed makes the target of a pointer. A type that decodes itself needs the whole text of the value, whose first token
// has been read.
func (b *binder) pointed(token json.Token, v reflect.Value, at string, depth int) error {
	fresh := reflect.New(v.Type().Elem())
	before := len(b.wrong)
	if fresh.Type().Implements(decoderType) {
		text, err := b.rest(token, at, depth)
		if err != nil {
			return err
		}
		b.decode(text, fresh, at)
	} else if err := b.token(token, fresh.Elem(), at, depth); err != nil {
		return err
	}
	if len(b.wrong) == before {
		v.Set(fresh)
	}
	return nil
}

// own reads a value of a type that decodes itself.
func (b *binder) own(v reflect.Value, at string, depth int) error {
	token, err := b.d.Token()
	if err != nil {
		return err
	}
	text, err := b.rest(token, at, depth)
	if err == nil {
		b.decode(text, v.Addr(), at)
	}
	return err
}

func (b *binder) decode(text []byte, into reflect.Value, at string) {
	err := json.Unmarshal(text, into.Interface())
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other):
		b.bad(at, "want %s, not %s", kindText(other.Type), other.Value)
	case err != nil:
		b.bad(at, "%s", err.Error())
	}
}

// rest is the text of a value whose first token was read. It is checked as any other.
func (b *binder) rest(token json.Token, at string, depth int) ([]byte, error) {
	var any any
	v := reflect.ValueOf(&any).Elem()
	if token != nil {
		if err := b.token(token, v, at, depth); err != nil {
			return nil, err
		}
	}
	return json.Marshal(any)
}

func (b *binder) object(v reflect.Value, at string, depth int) error {
	fields := map[string]reflect.Value{}
	var required []string
	var entries map[string]any
	isMap := false
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Struct:
		fields, required = fieldsOf(v)
	case v.Kind() == reflect.Interface:
		entries = map[string]any{}
		v.Set(reflect.ValueOf(entries))
	case v.Kind() == reflect.Map:
		isMap = true
		v.Set(reflect.MakeMap(v.Type()))
	default:
		b.bad(at, "want %s, not an object", kindText(v.Type()))
		v = reflect.Value{}
	}
	seen := map[string]bool{}
	for b.d.More() {
		token, err := b.d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		here := at + "/" + pointerPart(name)
		if seen[name] {
			b.bad(here, "it is there twice")
		}
		seen[name] = true
		into := fields[name]
		switch {
		case entries != nil:
			var one any
			into = reflect.ValueOf(&one).Elem()
		case isMap:
			into = reflect.New(v.Type().Elem()).Elem()
		case v.IsValid() && !into.IsValid():
			b.bad(here, "there is no such member%s", membersText(fields))
		}
		if err := b.value(into, here, depth); err != nil {
			return err
		}
		if entries != nil {
			entries[name] = into.Interface()
		} else if isMap {
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), into)
		}
	}
	for _, name := range required {
		if !seen[name] {
			b.bad(at+"/"+pointerPart(name), "it is missing")
		}
	}
	_, err := b.d.Token()
	return err
}

func (b *binder) array(v reflect.Value, at string, depth int) error {
	var many bool
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Slice:
		many = true
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Kind() == reflect.Interface:
		var all []any
		list := reflect.ValueOf(&all).Elem()
		list.Set(reflect.ValueOf([]any{}))
		if err := b.items(list, true, at, depth); err != nil {
			return err
		}
		v.Set(list)
		return nil
	default:
		b.bad(at, "want %s, not an array", kindText(v.Type()))
	}
	return b.items(v, many, at, depth)
}

func (b *binder) items(v reflect.Value, keep bool, at string, depth int) error {
	for i := 0; b.d.More(); i++ {
		var one reflect.Value
		if keep {
			one = reflect.New(v.Type().Elem()).Elem()
		}
		if err := b.value(one, at+"/"+strconv.Itoa(i), depth); err != nil {
			return err
		}
		if keep {
			v.Set(reflect.Append(v, one))
		}
	}
	_, err := b.d.Token()
	return err
}

func (b *binder) text(text string, v reflect.Value, at string) {
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(text))
	default:
		b.bad(at, "want %s, not a text", kindText(v.Type()))
	}
}

func (b *binder) truth(is bool, v reflect.Value, at string) {
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Bool:
		v.SetBool(is)
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(is))
	default:
		b.bad(at, "want %s, not %t", kindText(v.Type()), is)
	}
}

func (b *binder) number(n json.Number, v reflect.Value, at string) {
	if !v.IsValid() {
		return
	}
	if v.Kind() == reflect.Interface {
		v.Set(reflect.ValueOf(n))
		return
	}
	var err error
	switch {
	case v.CanInt():
		var i int64
		if i, err = strconv.ParseInt(n.String(), 10, v.Type().Bits()); err == nil {
			v.SetInt(i)
		}
	case v.CanUint():
		var u uint64
		if u, err = strconv.ParseUint(n.String(), 10, v.Type().Bits()); err == nil {
			v.SetUint(u)
		}
	case v.CanFloat():
		var f float64
		if f, err = n.Float64(); err == nil {
			v.SetFloat(f)
		}
	default:
		err = strconv.ErrSyntax
	}
	if err != nil {
		b.bad(at, "want %s, not %s", kindText(v.Type()), report.Clip(n.String()))
	}
}

// fieldsOf are the members of a struct by name, and the required ones.
func fieldsOf(v reflect.Value) (fields map[string]reflect.Value, required []string) {
	fields = map[string]reflect.Value{}
	for _, m := range membersOf(v.Type()) {
		fields[m.name] = v.FieldByIndex(m.index)
		if m.required {
			required = append(required, m.name)
		}
	}
	return fields, required
}

// kindText is the JSON type of a Go type, for messages.
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

func membersText(fields map[string]reflect.Value) string {
	if len(fields) == 0 {
		return "; nothing is taken"
	}
	return "; there are: " + strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

var pointerQuotes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerPart is the name of a member in a JSON pointer.
func pointerPart(name string) string {
	return pointerQuotes.Replace(name)
}
