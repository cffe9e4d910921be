package filetool

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// input reads a call's parameters. null counts as missing; numbers and booleans
// may come as strings, as small models like to send them.
type input struct {
	tool string
	obj  []byte
}

func parseInput(name string, raw json.RawMessage) (input, error) {
	in := input{tool: name, obj: raw}
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return in, in.wrong("the input must be a JSON object")
	}
	return in, nil
}

func (in input) wrong(reason string) error {
	return &tool.InputError{Tool: in.tool, Reason: reason}
}

// raw gives the first of the named parameters that is there and not null.
func (in input) raw(names ...string) ([]byte, bool) {
	for _, n := range names {
		if v, ok := esjson.Get(in.obj, n); ok && esjson.TypeOf(v) != esjson.TypeNull {
			return v, true
		}
	}
	return nil, false
}

func (in input) text(names ...string) (string, bool) {
	v, ok := in.raw(names...)
	if !ok || esjson.TypeOf(v) != esjson.TypeString {
		return "", false
	}
	s, err := esjson.Unquote(v)
	return s, err == nil
}

// need returns a text that must be given; it may be empty only if empty is true.
func (in input) need(empty bool, names ...string) (string, error) {
	s, ok := in.text(names...)
	if !ok {
		return "", in.wrong("the parameter \"" + names[0] + "\" is missing; give it as a string")
	}
	if s == "" && !empty {
		return "", in.wrong("the parameter \"" + names[0] + "\" is empty")
	}
	return s, nil
}

func (in input) number(other int, names ...string) (int, error) {
	v, ok := in.raw(names...)
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
		return 0, in.wrong("the parameter \"" + names[0] + "\" must be a whole number, not " + s)
	}
	return int(f), nil
}

func (in input) boolean(other bool, names ...string) (bool, error) {
	v, ok := in.raw(names...)
	if !ok {
		return other, nil
	}
	switch strings.ToLower(strings.Trim(string(v), `" `)) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, in.wrong("the parameter \"" + names[0] + "\" must be true or false")
}
