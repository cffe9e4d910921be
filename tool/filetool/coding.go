package filetool

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// coding is how a file keeps its text. It belongs to the file: a model sees and
// writes characters, and what it changes is written as the rest of the file is.
type coding int

const (
	codedUTF8 coding = iota
	codedUTF16LE
	codedUTF16BE
	codedSingle // one byte a character, taken for Windows-1252
)

// singleNote precedes the lines of a file of one byte a character: the bytes do not show which
// set of characters it is.
const singleNote = "Note: this file is not UTF-8; it is shown, and will be written, as Windows-1252.\n\n"

const wideNote = "Note: this file is UTF-16, and stays so when it is changed.\n\n"

// high are the characters of the bytes 0x80 to 0x9F. The five that have none map to
// themselves, so that every byte comes back as it was in any file.
var high = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8D, 'Ž', 0x8F,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9D, 'ž', 'Ÿ',
}

// decodeText gives the text of a file, its byte order mark first if it has one. ok is
// false for what is no text, or is one that would not come back the same: NUL bytes,
// halves of characters, UTF-8 with stray bytes in it.
func decodeText(data []byte) (text string, c coding, ok bool) {
	if c = wideCoding(data); c != codedUTF8 {
		return decodeWide(data, c)
	}
	s := string(data)
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return "", codedUTF8, false
	case utf8.ValidString(s):
		return s, codedUTF8, true
	case single(s):
		return decodeSingle(s), codedSingle, true
	}
	return "", codedUTF8, false
}

// wideCoding goes by the byte order mark. Without one UTF-16 is only likely, and stays what
// it always was here: no text.
func wideCoding(head []byte) coding {
	switch {
	case len(head) < 2 || len(head) >= 4 && head[0] == 0xFF && head[2] == 0 && head[3] == 0:
		return codedUTF8 // the last is UTF-32
	case head[0] == 0xFF && head[1] == 0xFE:
		return codedUTF16LE
	case head[0] == 0xFE && head[1] == 0xFF:
		return codedUTF16BE
	}
	return codedUTF8
}

func (c coding) order() binary.AppendByteOrder {
	if c == codedUTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func decodeWide(data []byte, c coding) (string, coding, bool) {
	if len(data)%2 != 0 {
		return "", c, false
	}
	order := c.order().(binary.ByteOrder)
	var b strings.Builder
	b.Grow(len(data))
	for i := 0; i < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i += 2; i < len(data) {
				low = rune(order.Uint16(data[i:]))
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return "", c, false
			}
		}
		if r == 0 {
			return "", c, false
		}
		b.WriteRune(r)
	}
	return b.String(), c, true
}

// single reports whether bytes look like text of one byte a character: no control
// characters, and nothing that is a character of UTF-8. A file that has those too is
// UTF-8 with an error in it, and reading it otherwise would spoil them.
func single(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if size > 1 || r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) {
			return false
		}
		i += size
	}
	return true
}

func decodeSingle(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := range len(s) {
		if c := s[i]; c >= 0x80 && c < 0xA0 {
			b.WriteRune(high[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}

var errNoText = errors.New("not text")

// decodeBody reads all of a file that begins with the mark of UTF-16 and gives its
// text without the mark; errNoText when it is none.
func decodeBody(body io.Reader, c coding) (io.Reader, error) {
	all, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	text, _, ok := decodeWide(all, c)
	if !ok {
		return nil, errNoText
	}
	return strings.NewReader(strings.TrimPrefix(text, byteOrderMark)), nil
}

// shownText is a part of a file as a model is shown it, with a note for what is not
// UTF-8. Bytes that are neither are replaced.
func shownText(part string) (text, note string) {
	switch {
	case utf8.ValidString(part):
		return part, ""
	case single(part):
		return decodeSingle(part), singleNote
	}
	return strings.ToValidUTF8(part, "\uFFFD"), ""
}

// encode is the way back. A character that the file cannot hold is given back, with
// ok false.
func (c coding) encode(text string) (data []byte, missing rune, ok bool) {
	switch c {
	case codedUTF16LE, codedUTF16BE:
		data = make([]byte, 0, 2*len(text))
		for _, u := range utf16.Encode([]rune(text)) {
			data = c.order().AppendUint16(data, u)
		}
		return data, 0, true
	case codedSingle:
		data = make([]byte, 0, len(text))
		for _, r := range text {
			b, ok := singleByte(r)
			if !ok {
				return nil, r, false
			}
			data = append(data, b)
		}
		return data, 0, true
	}
	return []byte(text), 0, true
}

func singleByte(r rune) (byte, bool) {
	if r < 0x80 || r >= 0xA0 && r <= 0xFF {
		return byte(r), true
	}
	for i, h := range high {
		if h == r {
			return byte(0x80 + i), true
		}
	}
	return 0, false
}

// inexpressible is the answer for a change by lines that the file cannot hold. The
// rest of it is not turned into UTF-8 for that: if it is not what it was taken for, that
// would spoil lines that the model never saw.
func inexpressible(p workspace.Path, missing rune) error {
	return refuse("%s is not UTF-8; it is kept as Windows-1252, which has no %q (%U). Use other characters, or write "+
		"the whole file with write_to_file, which makes it UTF-8.", tool.SafeName(p.Readable), missing, missing)
}

// notText is the answer for a file that cannot be changed by lines.
func notText(p workspace.Path) error {
	return refuse("%s is not text in UTF-8, UTF-16 with a byte order mark, or one byte a character, so it cannot be "+
		"changed by lines.", tool.SafeName(p.Readable))
}
