package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Input reads a call's parameters. null counts as missing; numbers and booleans
// may come as strings, as small models like to send them.
type Input struct {
	Tool   string // that is called
	Object []byte
}

// ReadInput checks that a call's input is a JSON object.
func ReadInput(name string, raw json.RawMessage) (Input, error) {
	in := Input{Tool: name, Object: raw}
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return in, in.Wrong("the input must be a JSON object")
	}
	return in, nil
}

// Wrong is a mistake of the model in this call.
func (in Input) Wrong(format string, args ...any) error {
	return &InputError{Tool: in.Tool, Reason: fmt.Sprintf(format, args...)}
}

// Raw gives the first of the named parameters that is there and not null.
func (in Input) Raw(names ...string) ([]byte, bool) {
	for _, n := range names {
		if v, ok := esjson.Get(in.Object, n); ok && esjson.TypeOf(v) != esjson.TypeNull {
			return v, true
		}
	}
	return nil, false
}

// Text gives the first of the named parameters that is there, if it is a string.
func (in Input) Text(names ...string) (string, bool) {
	v, ok := in.Raw(names...)
	if !ok || esjson.TypeOf(v) != esjson.TypeString {
		return "", false
	}
	s, err := esjson.Unquote(v)
	return s, err == nil
}

// Need returns a text that must be given; it may be empty only if empty is true.
func (in Input) Need(empty bool, names ...string) (string, error) {
	s, ok := in.Text(names...)
	if !ok {
		return "", in.Wrong("the parameter %q is missing; give it as a string", names[0])
	}
	if s == "" && !empty {
		return "", in.Wrong("the parameter %q is empty", names[0])
	}
	return s, nil
}

// Optional gives a parameter that may be missing; another value than a string is a mistake.
func (in Input) Optional(name string) (string, error) {
	v, ok := in.Raw(name)
	if !ok {
		return "", nil
	}
	if esjson.TypeOf(v) != esjson.TypeString {
		return "", in.Wrong("the parameter %q must be a string", name)
	}
	s, err := esjson.Unquote(v)
	if err != nil {
		return "", in.Wrong("the parameter %q is no text: %v", name, err)
	}
	return s, nil
}

// Number gives a parameter that is a number, without its fraction, or other.
func (in Input) Number(other int, names ...string) (int, error) {
	f, err := in.float(float64(other), names)
	return int(f), err
}

// Whole gives a parameter that is a whole number, or other.
func (in Input) Whole(other int64, names ...string) (int64, error) {
	f, err := in.float(float64(other), names)
	if err == nil && f != math.Trunc(f) {
		err = in.Wrong("the parameter %q must be a whole number", names[0])
	}
	return int64(f), err
}

func (in Input) float(other float64, names []string) (float64, error) {
	v, ok := in.Raw(names...)
	if !ok {
		return other, nil
	}
	s := string(v)
	if esjson.TypeOf(v) == esjson.TypeString {
		s, _ = esjson.Unquote(v)
		if s = strings.TrimSpace(s); s == "" || s == "null" {
			return other, nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e15 {
		return 0, in.Wrong("the parameter %q must be a whole number, not %s", names[0], s)
	}
	return f, nil
}

// Boolean gives a parameter that is true or false, or other.
func (in Input) Boolean(other bool, names ...string) (bool, error) {
	v, ok := in.Raw(names...)
	if !ok {
		return other, nil
	}
	switch strings.ToLower(strings.Trim(string(v), `" `)) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, in.Wrong("the parameter %q must be true or false", names[0])
}
