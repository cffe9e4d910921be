package script

import (
	"strings"
	"unicode"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// words cuts a text into words with the blanks that follow them; blanks at the
// start go with the first word. Joined they are the text again.
func words(s string) []string {
	var out []string
	begin, inWord, seen := 0, false, false
	for i, r := range s {
		blank := unicode.IsSpace(r)
		if !blank && !inWord && seen {
			out = append(out, s[begin:i])
			begin = i
		}
		if !blank {
			seen = true
		}
		inWord = !blank
	}
	if begin < len(s) {
		out = append(out, s[begin:])
	}
	return out
}

// missing returns the first expected string that the request does not contain. It
// looks at the JSON as it is sent and at every text in it, decoded.
func (t *turn) missing(req llm.Request) (string, bool) {
	for _, want := range t.expect {
		if !contains(req, want) {
			return want, true
		}
	}
	return "", false
}

func contains(req llm.Request, want string) bool {
	if strings.Contains(req.System, want) {
		return true
	}
	for _, m := range req.Messages {
		if strings.Contains(string(m.Content), want) || inStrings(m.Content, want) {
			return true
		}
	}
	for _, s := range req.Tools {
		if strings.Contains(s.Name, want) || strings.Contains(s.Description, want) || strings.Contains(string(s.Schema), want) {
			return true
		}
	}
	return false
}

// inStrings looks into every string of a JSON value, at any depth.
func inStrings(raw []byte, want string) bool {
	switch esjson.TypeOf(raw) {
	case esjson.TypeString:
		s, err := esjson.Unquote(raw)
		return err == nil && strings.Contains(s, want)
	case esjson.TypeArray:
		for v := range esjson.Array(raw) {
			if inStrings(v, want) {
				return true
			}
		}
	case esjson.TypeObject:
		for _, v := range esjson.Members(raw) {
			if inStrings(v, want) {
				return true
			}
		}
	}
	return false
}
