// Package historytool holds the tools that look back: read_command_output reads the
// kept output of an earlier command of the task, list_tasks lists other tasks.
//
// Both only read, and where from is not theirs to know: the output comes through
// tool.Env, the tasks through a Lister. Output is shown in pieces of at most MaxPiece
// bytes that end between characters; a search reads all of it, line by line, in
// bounded memory.
package historytool

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// input reads a call's parameters; null counts as missing.
type input struct {
	tool string
	obj  []byte
}

func parse(name string, raw json.RawMessage) (input, error) {
	in := input{name, raw}
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return in, in.wrong("the input must be a JSON object")
	}
	return in, nil
}

func (in input) wrong(reason string) error {
	return &tool.InputError{Tool: in.tool, Reason: reason}
}

// text is a parameter that is a string, or missing.
func (in input) text(name string) (string, error) {
	v, ok := esjson.Get(in.obj, name)
	if !ok || esjson.TypeOf(v) == esjson.TypeNull {
		return "", nil
	}
	if esjson.TypeOf(v) != esjson.TypeString {
		return "", in.wrong("the parameter \"" + name + "\" must be a string")
	}
	s, err := esjson.Unquote(v)
	if err != nil {
		return "", in.wrong("the parameter \"" + name + "\" is no text: " + err.Error())
	}
	return s, nil
}

// number is a parameter that is a whole number, also as a string, or other.
func (in input) number(name string, other int64) (int64, error) {
	v, ok := esjson.Get(in.obj, name)
	if !ok || esjson.TypeOf(v) == esjson.TypeNull {
		return other, nil
	}
	s := strings.Trim(string(v), `" `)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e15 || f != math.Trunc(f) {
		return 0, in.wrong("the parameter \"" + name + "\" must be a whole number")
	}
	return int64(f), nil
}

// flag is a parameter that is true or false, or missing: false.
func (in input) flag(name string) bool {
	v, _ := esjson.Get(in.obj, name)
	return strings.Trim(string(v), `" `) == "true"
}
