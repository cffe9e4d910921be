package journal

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"slices"
	"strconv"
	"sync"

	"github.com/roost-dev/roost/esjson"
)

// MaxLine is the longest commit line in bytes, its newline included. A payload becomes a blob long before a line is
// so long; the bound keeps a reader of a damaged log from filling the memory with one "line".
const MaxLine = 128 << 20

// ErrInvalid: the draft cannot become a commit (no events, an event that is not one JSON object, a malformed blob
// name, too long). Nothing was appended.
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
// Events are copied byte for byte, so that bytes that were checked once can be copied unchanged later; only an event
// with raw line breaks between its tokens is compacted. Errors wrap ErrInvalid.
func EncodeCommit(c Commit) ([]byte, error) { return AppendSigned(nil, c, nil) }

// AppendSigned appends the log line of c, as EncodeCommit returns it, to dst, and signs it as the next commit of a
// chain. On an error it returns dst unchanged. With a nil chain, or one that does not sign, the line has no MAC.
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
	by, _ := json.Marshal(c.By) // a string can always be written
	b = append(append(b, `,"by":`...), by...)
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
		if len(e) < 2 || e[0] != '{' || e[len(e)-1] != '}' || !esjson.Valid(e) {
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
	return fmt.Appendf(b, "%s%08x\"}\n", crcMember, sum), nil
}

// CheckCommit verifies a line's frame and checksum and returns its place. It does not look at the JSON between, so it
// runs at the speed of the checksum. The line may end with its newline. The error is a *DamageError with Length and
// Reason set; its Seq is 0, because the number in a bad line cannot be trusted.
func CheckCommit(line []byte) (seq, epoch uint64, err error) {
	line = chomp(line)
	n := len(line) - trailerLen
	if n <= 0 || string(line[n:n+len(crcMember)]) != crcMember || string(line[len(line)-2:]) != `"}` {
		return 0, 0, damaged(line, "not a whole commit line")
	}
	var sum [4]byte
	var text [8]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(line[:n], castagnoli))
	hex.Encode(text[:], sum[:])
	if !bytes.Equal(line[n+len(crcMember):len(line)-2], text[:]) {
		return 0, 0, damaged(line, "checksum does not match")
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		return 0, 0, damaged(line, "more than one line")
	}
	seq, epoch, ok := placeOf(line[:n])
	if !ok {
		return 0, 0, damaged(line, "not a commit")
	}
	return seq, epoch, nil
}

// DecodeCommit reads a log line. It is strict about frame and checksum, and skips members it does not know. The
// commit shares no memory with the line: the line is copied once. Errors are *DamageError as in CheckCommit.
func DecodeCommit(line []byte) (Commit, error) {
	line = chomp(line)
	if _, _, err := CheckCommit(line); err != nil {
		return Commit{}, err
	}
	return DecodeChecked(line)
}

// DecodeChecked is DecodeCommit for a line that passed CheckCommit: it does not compute the checksum again.
func DecodeChecked(line []byte) (Commit, error) {
	line = chomp(line)
	if len(line) <= trailerLen {
		return Commit{}, damaged(line, "not a whole commit line")
	}
	seq, epoch, ok := placeOf(line[:len(line)-trailerLen])
	if !ok {
		return Commit{}, damaged(line, "not a commit")
	}
	c := Commit{Seq: seq, Epoch: epoch}
	body := append(bytes.Clone(line[:len(line)-trailerLen]), '}')
	if err := decodeMembers(&c, body); err != nil {
		d := damaged(line, err.Error())
		d.Seq = seq // the checksum holds, so the number can be believed
		return Commit{}, d
	}
	return c, nil
}

// decodeMembers reads the members of a commit after its number and epoch. It skips unknown members: a later version
// may write more.
func decodeMembers(c *Commit, body []byte) error {
	x := indexes.Get().(*esjson.Index)
	defer func() {
		x.Read(nil, 0) // it lets go of the body
		indexes.Put(x)
	}()
	if !x.Read(body, 2) {
		return errors.New("not JSON")
	}
	var numbers, at, by int // number of occurrences; placeOf has found one seq and one epoch
	for key, i := range x.Parts(0) {
		var err error
		switch val := x.Raw(i); string(key) {
		case "seq", "epoch", "crc":
			if numbers++; numbers > 2 || string(key) == "crc" {
				return errors.New("a member occurs twice")
			}
		case "at":
			at++
			if c.At, err = strconv.ParseInt(string(val), 10, 64); err != nil {
				return errors.New(`"at" is no integer`)
			}
		case "by":
			by++
			if c.By = esjson.Text(val); val[0] != '"' {
				return errors.New(`"by" is no string`)
			}
		case "blobs":
			if c.Blobs, err = decodeBlobs(x, i); err != nil {
				return err
			}
		case "events":
			if c.Events, err = decodeEvents(x, i); err != nil {
				return err
			}
		}
	}
	if at*by == 0 || len(c.Events) == 0 {
		return errors.New("members are missing")
	}
	return nil
}

// indexes keeps the memory of esjson.Index: a commit of a long history has many events.
var indexes = sync.Pool{New: func() any { return new(esjson.Index) }}

func decodeBlobs(x *esjson.Index, list int) (blobs []Hash, err error) {
	if x.Raw(list)[0] != '[' {
		return nil, errors.New("not an array")
	}
	for _, i := range x.Parts(list) {
		e := x.Raw(i)
		if len(e) != 66 || e[0] != '"' || !Hash(e[1:65]).Valid() {
			return nil, errors.New("a blob name is no SHA-256")
		}
		blobs = append(blobs, Hash(e[1:65]))
	}
	return blobs, nil
}

func decodeEvents(x *esjson.Index, list int) (events []Event, err error) {
	if x.Raw(list)[0] != '[' {
		return nil, errors.New("not an array")
	}
	for _, i := range x.Parts(list) {
		e := x.Raw(i)
		if e[0] != '{' {
			return nil, errors.New("an event is no object")
		}
		events = append(events, Event(e))
	}
	return events, nil
}

// placeOf reads the number and the epoch at the beginning of a line.
func placeOf(b []byte) (seq, epoch uint64, ok bool) {
	seq, i, ok1 := uintMember(b, 0, `{"seq":`)
	epoch, i, ok2 := uintMember(b, i, `,"epoch":`)
	return seq, epoch, ok1 && ok2 && seq > 0 && epoch > 0 && (i == len(b) || b[i] == ',')
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
	if !bytes.HasPrefix(b[i:], []byte(prefix)) {
		return 0, i, false
	}
	i += len(prefix)
	end := i
	for end < len(b) && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	if end-i > 1 && b[i] == '0' {
		return 0, i, false
	}
	v, err := strconv.ParseUint(string(b[i:end]), 10, 64)
	return v, end, err == nil
}

// Key is a secret with which a root authenticates the commits of its logs. It is stored outside of the root.
type Key struct {
	ID     string // KeyIDLen lower-case hexadecimal digits
	Secret []byte
}

// KeyIDLen is the length of Key.ID.
const KeyIDLen = 8

// Seal holds the keys with which the commits of one log are signed and verified.
//
// A signed commit carries a MAC (HMAC-SHA-256, cut to 128 bits) over the name of the log, the MAC of the commit
// before it, and its own line. So a reader with the key detects a line that was changed, moved to another log,
// removed, or inserted. A Proof does not show that the end of a log is missing: each backend keeps its own witness of
// that.
type Seal struct {
	Log    string // names the log: its root and its task
	Sign   *Key   // signs new commits; nil = they are not signed
	Verify []Key  // keys whose commits count as this root's own
}

// Proof lists the commits of a log that are not proven to be its root's own. Each number is the newest commit of its
// kind, 0 = there is none.
type Proof struct {
	Unsigned uint64 `json:"unsigned,omitempty"` // without a MAC: an older program wrote it
	Unknown  uint64 `json:"unknown,omitempty"`  // signed with a key that is not known here
	Altered  uint64 `json:"altered,omitempty"`  // its MAC does not match
	Cut      bool   `json:"cut,omitempty"`      // commits are missing from the end of the log
}

// Prover is a Reader of a log whose commits can be verified.
type Prover interface {
	// Proof verifies the log up to its head. An Owner verifies the log as it was when the Owner took it over, its own
	// epoch.opened included.
	Proof(ctx context.Context) (Proof, error)
}

// macLen is the length of a MAC in a line: the key's id, a dot, 128 bits.
const macLen = KeyIDLen + 1 + 32

const macMember = `,"mac":"`

// Chain signs or verifies the commits of a log in their order. It is for one goroutine at a
// time. Copy makes an independent one.
type Chain struct {
	ChainState
	seal  *Seal
	held  bool
	macs  map[string]hash.Hash
	plain hash.Hash
}

// ChainState is the place of a chain in its log, which an index of the log stores, so that a later reader continues the
// chain.
type ChainState struct {
	Proof
	Proven uint64            // the newest commit that is proven, 0 = there is none
	Link   [sha256.Size]byte // a digest of all commits so far
}

// NewChain begins before the first commit of a log. A nil seal gives a nil chain.
func NewChain(s *Seal) *Chain {
	if s == nil {
		return nil
	}
	c := &Chain{seal: s, macs: map[string]hash.Hash{}, plain: sha256.New()}
	for _, k := range s.Verify {
		c.macs[k.ID] = hmac.New(sha256.New, k.Secret)
	}
	if s.Sign != nil && c.macs[s.Sign.ID] == nil {
		c.macs[s.Sign.ID] = hmac.New(sha256.New, s.Sign.Secret)
	}
	return c
}

// Copy returns an independent chain that continues from here; nil for a nil chain.
func (c *Chain) Copy() *Chain {
	if c == nil {
		return nil
	}
	n := NewChain(c.seal)
	n.Resume(c.State())
	return n
}

// State returns the chain's place in the log.
func (c *Chain) State() ChainState {
	if c == nil {
		return ChainState{}
	}
	return c.ChainState
}

// Resume puts the chain to a place that State gave. The caller must have proven that the place comes from this log:
// see Seal.MAC.
func (c *Chain) Resume(at ChainState) {
	if c != nil {
		c.ChainState = at
	}
}

// Signs reports whether the chain signs new commits.
func (c *Chain) Signs() bool { return c != nil && c.seal.Sign != nil && !c.held }

// Hold(true) leaves out the MAC of new commits until Hold(false): a commit after a missing end must not vouch for the
// commits before it.
func (c *Chain) Hold(held bool) {
	if c != nil {
		c.held = held
	}
}

// Take verifies the line of the log's next commit. The caller has checked its frame and checksum.
func (c *Chain) Take(seq uint64, line []byte) {
	if c == nil {
		return
	}
	line = chomp(line)
	if len(line) <= trailerLen {
		return
	}
	body := line[:len(line)-trailerLen]
	at, ok := macAt(body)
	if !ok {
		c.Unsigned = seq
		c.skip(body)
		return
	}
	given := body[at : at+macLen]
	id := string(given[:KeyIDLen])
	mac := c.macs[id]
	if mac == nil || !slices.ContainsFunc(c.seal.Verify, func(k Key) bool { return k.ID == id }) {
		c.Unknown = seq
		c.skip(body)
		return
	}
	sum := c.sum(mac, body, at)
	var want [macLen - KeyIDLen - 1]byte
	hex.Encode(want[:], sum[:16])
	if !hmac.Equal(want[:], given[KeyIDLen+1:]) {
		c.Altered = seq
		c.skip(body)
		return
	}
	c.Link, c.Proven = sum, seq
}

// skip continues after a commit that is not proven: the next MAC covers the line of that commit as it is.
func (c *Chain) skip(body []byte) {
	c.plain.Reset()
	c.plain.Write(c.Link[:])
	c.plain.Write(body)
	c.plain.Sum(c.Link[:0])
}

func (c *Chain) sum(mac hash.Hash, body []byte, at int) (sum [sha256.Size]byte) {
	mac.Reset()
	mac.Write([]byte("commit\x00" + c.seal.Log + "\x00"))
	mac.Write(c.Link[:])
	mac.Write(body[:at])
	mac.Write(body[at+macLen:])
	mac.Sum(sum[:0])
	return sum
}

// sign fills in the MAC of the line that is being written: body is the line without its trailer, and at the position
// of the MAC.
func (c *Chain) sign(seq uint64, body []byte, at int) {
	key := c.seal.Sign
	c.Proven = seq
	copy(body[at:], key.ID)
	body[at+KeyIDLen] = '.'
	c.Link = c.sum(c.macs[key.ID], body, at)
	hex.Encode(body[at+KeyIDLen+1:at+macLen], c.Link[:16])
}

// macAt finds the MAC in a line without its trailer. It precedes the events.
func macAt(body []byte) (at int, ok bool) {
	end := bytes.Index(body, []byte(`,"events":[`)) - 1 // no text in front of the events holds a bare quote
	at = end - macLen
	return at, at >= len(macMember) && body[end] == '"' && string(body[at-len(macMember):at]) == macMember
}

// MAC authenticates derived data of the log, such as its index, with the key that signs. what
// names the kind of data. Without a key it is empty.
func (s *Seal) MAC(what string, data ...[]byte) (id string, mac []byte) {
	if s == nil || s.Sign == nil {
		return "", nil
	}
	return s.Sign.ID, s.mac(*s.Sign, what, data)
}

// Proves reports whether MAC made mac from the same data, with a key in Verify. A mac that was cut to half its length
// counts.
func (s *Seal) Proves(id string, mac []byte, what string, data ...[]byte) bool {
	if s == nil {
		return false
	}
	for _, k := range s.Verify {
		if want := s.mac(k, what, data); k.ID == id && len(mac) >= len(want)/2 && hmac.Equal(mac, want[:min(len(mac), len(want))]) {
			return true
		}
	}
	return false
}

func (s *Seal) mac(k Key, what string, data [][]byte) []byte {
	h := hmac.New(sha256.New, k.Secret)
	h.Write([]byte(what + "\x00" + s.Log + "\x00"))
	for _, d := range data {
		h.Write(d)
	}
	return h.Sum(nil)
}
