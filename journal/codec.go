package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
)

// MaxLine is the longest commit line in bytes, its newline included. Payloads
// belong into blobs long before this; the bound keeps a reader of a damaged log
// from taking all memory for one "line".
const MaxLine = 128 << 20

// ErrInvalid: a draft that cannot become a commit (no events, an event that is
// not one JSON object, a malformed blob name, too long). Nothing was appended.
var ErrInvalid = errors.New("not a valid commit")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	crcMember  = `,"crc":"`
	trailerLen = len(`,"crc":"00000000"}`)
)

// EncodeCommit returns the log line of c, newline included:
//
//	{"seq":7,"epoch":3,"at":1700000000000,"by":"run-1","blobs":["<sha256>"],"mac":"<key>.<mac>","events":[{...}],"crc":"0a1b2c3d"}
//
// "blobs" is left out when there are none, and "mac" when the log is not signed (see Seal). "crc" is always the last member and
// always has the same width. It is the CRC-32C (Castagnoli) of every byte of the
// line from its first `{` up to, and not including, the comma of `,"crc":`; as
// eight lower-case hex digits. So a checker takes the last 18 bytes off the line
// (before its newline) and sums the rest; it needs no JSON parser.
//
// Events are copied byte for byte, so that what was checked once can be spliced
// raw later; only an event with raw line breaks between its tokens is compacted.
// Errors wrap ErrInvalid.
func EncodeCommit(c Commit) ([]byte, error) { return AppendCommit(nil, c) }

// AppendCommit is EncodeCommit into dst. On an error dst is returned unchanged.
func AppendCommit(dst []byte, c Commit) ([]byte, error) { return AppendSigned(dst, c, nil) }

// AppendSigned is AppendCommit of the next commit of a chain, which signs it. A nil chain, and
// one that does not sign, leave out the MAC.
func AppendSigned(dst []byte, c Commit, chain *Chain) ([]byte, error) {
	start := len(dst)
	size := 128 + len(macMember) + macLen + len(c.By) + 70*len(c.Blobs)
	for _, e := range c.Events {
		size += len(e) + 1
	}
	if size > MaxLine {
		return dst, fmt.Errorf("commit %d of %d bytes is over %d; put payloads into blobs: %w", c.Seq, size, MaxLine, ErrInvalid)
	}
	switch {
	case c.Seq == 0 || c.Epoch == 0:
		return dst, fmt.Errorf("commit without sequence or epoch: %w", ErrInvalid)
	case len(c.Events) == 0:
		return dst, fmt.Errorf("commit %d has no events: %w", c.Seq, ErrInvalid)
	}
	b := dst
	if cap(b)-len(b) < size {
		b = append(make([]byte, 0, max(2*len(dst), len(dst)+size)), dst...)
	}
	b = strconv.AppendUint(append(b, `{"seq":`...), c.Seq, 10)
	b = strconv.AppendUint(append(b, `,"epoch":`...), c.Epoch, 10)
	b = strconv.AppendInt(append(b, `,"at":`...), c.At, 10)
	b = appendString(append(b, `,"by":`...), c.By)
	for i, h := range c.Blobs {
		if !h.Valid() {
			return dst, fmt.Errorf("commit %d names blob %q, which is no SHA-256: %w", c.Seq, h, ErrInvalid)
		}
		if i == 0 {
			b = append(b, `,"blobs":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), h...), '"')
	}
	if len(c.Blobs) > 0 {
		b = append(b, ']')
	}
	macAt := 0
	if chain.Signs() {
		b = append(b, macMember...)
		macAt = len(b) - start
		b = append(append(b, make([]byte, macLen)...), '"')
	}
	b = append(b, `,"events":[`...)
	for i, e := range c.Events {
		if i > 0 {
			b = append(b, ',')
		}
		if len(e) == 0 || e[0] != '{' || skipValue(e, 0, 0) != len(e) {
			return dst, fmt.Errorf("event %d of commit %d is not one JSON object: %w", i, c.Seq, ErrInvalid)
		}
		// Valid JSON has raw line breaks only between tokens.
		if bytes.IndexByte(e, '\n') < 0 && bytes.IndexByte(e, '\r') < 0 {
			b = append(b, e...)
			continue
		}
		var flat bytes.Buffer
		if err := json.Compact(&flat, e); err != nil {
			return dst, fmt.Errorf("event %d of commit %d: %v: %w", i, c.Seq, err, ErrInvalid)
		}
		b = append(b, flat.Bytes()...)
	}
	b = append(b, ']')
	switch {
	case macAt > 0:
		chain.sign(c.Seq, b[start:], macAt)
	case chain != nil:
		chain.Unsigned = c.Seq
		chain.skip(b[start:])
	}
	sum := crc32.Checksum(b[start:], castagnoli)
	b = append(b, crcMember...)
	b = appendHex32(b, sum)
	return append(b, '"', '}', '\n'), nil
}

// CheckCommit verifies a line's frame and checksum and returns its place. It
// does not look at the JSON between, so it runs at the speed of the checksum.
// The line may end with its newline. The error is a *DamageError with Length
// and Reason set; its Seq is 0, because a line that fails cannot be trusted to
// know its own number.
func CheckCommit(line []byte) (seq, epoch uint64, err error) {
	seq, epoch, _, err = checkFrame(chomp(line))
	return seq, epoch, err
}

// DecodeCommit reads a log line. It is strict about frame and checksum, and
// skips members it does not know. The commit's events and the line share no
// memory with each other's later changes: the line is copied once. Errors are
// *DamageError as in CheckCommit.
func DecodeCommit(line []byte) (Commit, error) {
	line = chomp(line)
	if _, _, _, err := checkFrame(line); err != nil {
		return Commit{}, err
	}
	return DecodeChecked(line)
}

// DecodeChecked is DecodeCommit of a line that CheckCommit has found good: the checksum is
// not made a second time.
func DecodeChecked(line []byte) (Commit, error) {
	line = chomp(line)
	if len(line) <= trailerLen {
		return Commit{}, damaged(line, "not a whole commit line")
	}
	seq, epoch, i, ok := placeOf(line[:len(line)-trailerLen])
	if !ok {
		return Commit{}, damaged(line, "not a commit")
	}
	c := Commit{Seq: seq, Epoch: epoch}
	body := bytes.Clone(line[:len(line)-trailerLen])
	if err := decodeMembers(&c, body, i); err != nil {
		d := damaged(line, err.Error())
		d.Seq = seq // the checksum holds, so the number can be believed
		return Commit{}, d
	}
	return c, nil
}

// decodeMembers reads the members of body from index i, which follows the epoch.
func decodeMembers(c *Commit, body []byte, i int) error {
	var haveAt, haveBy, haveEvents bool
	for i < len(body) {
		if body[i] != ',' {
			return errors.New("not JSON")
		}
		keyAt := skipSpace(body, i+1)
		if keyAt >= len(body) || body[keyAt] != '"' {
			return errors.New("not JSON")
		}
		keyEnd := skipString(body, keyAt)
		if keyEnd < 0 {
			return errors.New("not JSON")
		}
		colon := skipSpace(body, keyEnd)
		if colon >= len(body) || body[colon] != ':' {
			return errors.New("not JSON")
		}
		valAt := skipSpace(body, colon+1)
		if string(body[keyAt:keyEnd]) == `"events"` { // nearly all of the line: it is scanned once
			events, end, err := decodeEvents(body, valAt)
			if err != nil {
				return err
			}
			c.Events, haveEvents = events, len(events) > 0
			i = skipSpace(body, end)
			continue
		}
		valEnd := skipValue(body, valAt, 0)
		if valEnd < 0 {
			return errors.New("not JSON")
		}
		val := body[valAt:valEnd]
		switch string(body[keyAt:keyEnd]) {
		case `"at"`:
			at, err := strconv.ParseInt(string(val), 10, 64)
			if err != nil {
				return errors.New(`"at" is no integer`)
			}
			c.At, haveAt = at, true
		case `"by"`:
			if val[0] != '"' || json.Unmarshal(val, &c.By) != nil {
				return errors.New(`"by" is no string`)
			}
			haveBy = true
		case `"blobs"`:
			c.Blobs = nil
			if err := decodeArray(val, func(e []byte) error {
				if len(e) != 66 || e[0] != '"' || !Hash(e[1:65]).Valid() {
					return errors.New("a blob name is no SHA-256")
				}
				c.Blobs = append(c.Blobs, Hash(e[1:65]))
				return nil
			}); err != nil {
				return err
			}
		case `"seq"`, `"epoch"`, `"crc"`:
			return errors.New("a member occurs twice")
		}
		i = skipSpace(body, valEnd)
	}
	if !haveAt || !haveBy || !haveEvents {
		return errors.New("members are missing")
	}
	return nil
}

// decodeEvents reads the list of events that begins at b[i], and gives the index behind it.
func decodeEvents(b []byte, i int) (events []Event, end int, err error) {
	if i >= len(b) || b[i] != '[' {
		return nil, i, errors.New("not an array")
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return nil, i + 1, nil
	}
	for {
		end := skipValue(b, i, 1)
		if end < 0 {
			return nil, i, errors.New("not JSON")
		}
		if b[i] != '{' {
			return nil, i, errors.New("an event is no object")
		}
		events = append(events, Event(b[i:end:end]))
		if i = skipSpace(b, end); i >= len(b) {
			return nil, i, errors.New("not JSON")
		}
		switch b[i] {
		case ']':
			return events, i + 1, nil
		case ',':
			i = skipSpace(b, i+1)
		default:
			return nil, i, errors.New("not JSON")
		}
	}
}

// decodeArray calls f with each raw element of a valid JSON value.
func decodeArray(val []byte, f func([]byte) error) error {
	if val[0] != '[' {
		return errors.New("not an array")
	}
	i := skipSpace(val, 1)
	for val[i] != ']' {
		end := skipValue(val, i, 0)
		if err := f(val[i:end]); err != nil {
			return err
		}
		if i = skipSpace(val, end); val[i] == ',' {
			i = skipSpace(val, i+1)
		}
	}
	return nil
}

// checkFrame checks a line without newline; rest is the index behind the epoch.
func checkFrame(line []byte) (seq, epoch uint64, rest int, err error) {
	n := len(line) - trailerLen
	if n <= 0 || string(line[n:n+len(crcMember)]) != crcMember || string(line[len(line)-2:]) != `"}` {
		return 0, 0, 0, damaged(line, "not a whole commit line")
	}
	want, ok := parseHex32(line[n+len(crcMember) : len(line)-2])
	if !ok || crc32.Checksum(line[:n], castagnoli) != want {
		return 0, 0, 0, damaged(line, "checksum does not match")
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		return 0, 0, 0, damaged(line, "more than one line")
	}
	seq, epoch, rest, ok = placeOf(line[:n])
	if !ok {
		return 0, 0, 0, damaged(line, "not a commit")
	}
	return seq, epoch, rest, nil
}

// placeOf reads the two numbers that a line begins with.
func placeOf(b []byte) (seq, epoch uint64, rest int, ok bool) {
	seq, i, ok1 := uintMember(b, 0, `{"seq":`)
	epoch, i, ok2 := uintMember(b, i, `,"epoch":`)
	return seq, epoch, i, ok1 && ok2 && seq > 0 && epoch > 0
}

func damaged(line []byte, reason string) *DamageError {
	return &DamageError{Damage{Length: int64(len(line)), Reason: reason}}
}

func chomp(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return line[:n-1]
	}
	return line
}

// uintMember reads prefix and a canonical unsigned number from b[i:].
func uintMember(b []byte, i int, prefix string) (v uint64, next int, ok bool) {
	if len(b)-i < len(prefix)+1 || string(b[i:i+len(prefix)]) != prefix {
		return 0, i, false
	}
	i += len(prefix)
	end := skipDigits(b, i)
	if end == i || end-i > 1 && b[i] == '0' {
		return 0, i, false
	}
	for _, c := range b[i:end] {
		d := uint64(c - '0')
		if v > (math.MaxUint64-d)/10 {
			return 0, i, false
		}
		v = v*10 + d
	}
	return v, end, true
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil { // cannot happen for a string
		return append(b, `""`...)
	}
	return append(b, q...)
}

const hexDigits = "0123456789abcdef"

func appendHex32(b []byte, v uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return b
}

func parseHex32(b []byte) (v uint32, ok bool) {
	if len(b) != 8 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint32(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
