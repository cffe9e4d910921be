package contextwindow

import (
	"bytes"
	"unicode/utf8"
)

// tidy makes valid JSON acceptable to strict parsers: lone surrogates, which Roo's files may hold as escapes, and bytes
// that are not UTF-8 become U+FFFD. Text without any is returned unchanged.
func tidy(raw []byte) (out []byte, changed bool) {
	if !utf8.Valid(raw) {
		raw, changed = bytes.ToValidUTF8(raw, []byte("\uFFFD")), true
	}
	if i := loneSurrogate(raw, 0); i >= 0 {
		for i >= 0 {
			out = append(append(out, raw[:i]...), `\ufffd`...)
			raw = raw[i+6:]
			i = loneSurrogate(raw, 0)
		}
		return append(out, raw...), true
	}
	return raw, changed
}

// loneSurrogate is the offset of the first escape of a surrogate without its
// partner at or after i, or -1. In valid JSON a backslash is always an escape.
func loneSurrogate(raw []byte, i int) int {
	if !bytes.Contains(raw[i:], []byte(`\ud`)) && !bytes.Contains(raw[i:], []byte(`\uD`)) {
		return -1
	}
	for {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 || i+n+1 >= len(raw) {
			return -1
		}
		i += n
		switch unit := surrogateAt(raw[i:]); {
		case unit == 0:
			i += 2
		case unit < 0xDC00 && surrogateAt(raw[i+6:]) >= 0xDC00:
			i += 12
		default:
			return i
		}
	}
}

// surrogateAt is the surrogate of an escape at the start of b, or 0.
func surrogateAt(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	unit := 0
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			unit = unit<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			unit = unit<<4 | int(c|0x20-'a'+10)
		default:
			return 0
		}
	}
	if unit < 0xD800 || unit > 0xDFFF {
		return 0
	}
	return unit
}
