package export

import (
	"bytes"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/redact"
)

// mask masks text and JSON, and counts the secrets.
type mask struct {
	by    *redact.Redactor
	count int
}

func (m *mask) text(s string) string {
	if m.by == nil {
		return s
	}
	s, n := m.by.String(s)
	m.count += n
	return s
}

// nesting bounds how deep JSON in strings of JSON is parsed: the text of a row is JSON, and may hold a tool's input,
// which is JSON again.
const nesting = 4

// json masks the strings and names of a JSON text. It decodes them first, because an escape would hide the line breaks
// of a private key. A string without a secret keeps its bytes, and so does everything between strings. raw must be
// valid.
func (m *mask) json(raw []byte) []byte {
	if m.by == nil {
		return raw
	}
	return m.strings(raw, nesting)
}

func (m *mask) strings(raw []byte, depth int) []byte {
	var out []byte
	done := 0
	for at := bytes.IndexByte(raw, '"'); at >= 0; {
		end := esjson.StringEnd(raw, at)
		if to, changed := m.literal(raw[at:end], depth); changed {
			out = append(append(out, raw[done:at]...), to...)
			done = end
		}
		next := bytes.IndexByte(raw[end:], '"')
		if next < 0 {
			break
		}
		at = end + next
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

func (m *mask) literal(raw []byte, depth int) ([]byte, bool) {
	s, err := esjson.Unquote(raw)
	if err != nil {
		return nil, false
	}
	masked, before := s, m.count
	if inner := []byte(s); depth > 0 && nested(inner) {
		masked = string(m.strings(inner, depth-1))
	}
	masked = m.text(masked)
	if m.count == before {
		return nil, false
	}
	return esjson.Quote(nil, masked), true
}

// nested reports whether a string is itself an object or array.
func nested(s []byte) bool {
	switch esjson.TypeOf(s) {
	case esjson.TypeObject, esjson.TypeArray:
		return esjson.Valid(s)
	}
	return false
}
