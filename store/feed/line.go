package feed

import (
	"bytes"
	"hash/crc32"
	"strconv"
)

// Line announces how far a task's journal is synced.
type Line struct {
	Source, Task string // as store.Ref has them
	Epoch        uint64 // of the newest of the commits
	From, To     uint64 // the commits that its writer has not announced before
	End          bool   // its owner releases it
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sealBytes = len(`,"crc":"00000000"}`)

// seal ends a JSON object that lacks its brace with its checksum.
func seal(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli)
	b = append(b, `,"crc":"`...)
	b = appendSum(b, sum)
	return append(b, '"', '}', '\n')
}

func appendSum(b []byte, sum uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[sum>>shift&15])
	}
	return b
}

// unseal splits a line into its content and its checksum; ok is false when the line is damaged.
func unseal(b []byte) (body []byte, sum uint32, ok bool) {
	at := len(b) - sealBytes
	if at < 0 || !bytes.HasPrefix(b[at:], []byte(`,"crc":"`)) || !bytes.HasSuffix(b, []byte(`"}`)) {
		return nil, 0, false
	}
	sum = crc32.Checksum(b[:at], castagnoli)
	var want [8]byte // not parsed: a capital letter there is damage, too
	return b[:at], sum, bytes.Equal(appendSum(want[:0], sum), b[at+8:at+16])
}

// append adds the line to b.
func (l Line) append(b []byte) []byte {
	at := len(b)
	b = append(append(b, `{"source":"`...), l.Source...)
	b = append(append(b, `","task":"`...), l.Task...)
	b = strconv.AppendUint(append(b, `","epoch":`...), l.Epoch, 10)
	b = strconv.AppendUint(append(b, `,"from":`...), l.From, 10)
	b = strconv.AppendUint(append(b, `,"to":`...), l.To, 10)
	if l.End {
		b = append(b, `,"end":true`...)
	}
	return append(b[:at], seal(b[at:])...)
}

// parse reads a line without its newline. It accepts only the spelling of append: a line with a right checksum is from
// append.
func parse(b []byte) (l Line, sum uint32, ok bool) {
	b, sum, ok = unseal(b)
	if !ok {
		return l, sum, false
	}
	text := func(prefix string) (out string) {
		var found bool
		if b, found = bytes.CutPrefix(b, []byte(prefix)); !found {
			ok = false
			return ""
		}
		end := bytes.IndexByte(b, '"')
		if end < 0 {
			ok = false
			return ""
		}
		out, b = string(b[:end]), b[end+1:]
		return out
	}
	number := func(prefix string) (n uint64) {
		var found bool
		b, found = bytes.CutPrefix(b, []byte(prefix))
		end := 0
		for ; end < len(b) && b[end] >= '0' && b[end] <= '9'; end++ {
			n = n*10 + uint64(b[end]-'0')
		}
		ok = ok && found && end > 0 && end <= 19 && (b[0] != '0' || end == 1)
		b = b[end:]
		return n
	}
	l.Source, l.Task = text(`{"source":"`), text(`,"task":"`)
	l.Epoch, l.From, l.To = number(`,"epoch":`), number(`,"from":`), number(`,"to":`)
	l.End = bytes.Equal(b, []byte(`,"end":true`))
	return l, sum, ok && (l.End || len(b) == 0) && plain(l.Source) && plain(l.Task)
}

// plain reports whether a name may be part of a line and of a path. Readers make no path of any other name.
func plain(name string) bool {
	if name == "" || len(name) > 255 || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		if c < ' ' || c == '"' || c == '\\' || c == '/' || c == ':' || c == 0x7f {
			return false
		}
	}
	return true
}
