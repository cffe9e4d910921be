package journal

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
)

// Key is a secret with which a root authenticates the commits of its logs. It is kept
// outside of the root.
type Key struct {
	ID     string // KeyIDLen lower-case hexadecimal digits
	Secret []byte
}

// KeyIDLen is the length of Key.ID.
const KeyIDLen = 8

// Seal holds the keys with which the commits of one log are signed and verified.
//
// A signed commit carries a MAC (HMAC-SHA-256, cut to 128 bits) over the name of the log, the MAC of the commit
// before it, and all of its own line. So a reader with the key detects a line that was changed, moved to another log,
// removed, or inserted. A Proof does not show that the end of a log is missing: each backend keeps its own witness of
// that.
type Seal struct {
	Log    string // names the log: its root and its task
	Sign   *Key   // signs new commits; nil = they are not signed
	Verify []Key  // keys whose commits count as this root's own
}

// Proof names the commits of a log that are not proven to be its root's own. Each number is the newest commit of its
// kind, 0 = there is none.
type Proof struct {
	Unsigned uint64 `json:"unsigned,omitempty"` // it carries no MAC: an older program wrote it
	Unknown  uint64 `json:"unknown,omitempty"`  // a key signed it that is not known here
	Altered  uint64 `json:"altered,omitempty"`  // its MAC does not match
	Cut      bool   `json:"cut,omitempty"`      // commits are missing from the end of the log
}

// Newest is the newest commit that is not proven, 0 when all are.
func (p Proof) Newest() uint64 { return max(p.Unsigned, p.Unknown, p.Altered) }

// Prover is a Reader of a log whose commits can be verified.
type Prover interface {
	// Proof verifies the log up to its head. An Owner answers for the log as it took it over,
	// its own epoch.opened included.
	Proof(ctx context.Context) (Proof, error)
}

// macLen is the length of a MAC in a line: the key's id, a dot, 128 bits.
const macLen = KeyIDLen + 1 + 32

const macMember = `,"mac":"`

// Chain signs or verifies the commits of a log in their order. It is for one goroutine at a
// time. Copy makes an independent one.
type Chain struct {
	Proof
	Proven uint64 // the newest commit that is proven, 0 = there is none

	seal  *Seal
	held  bool
	link  [sha256.Size]byte // stands for all commits so far
	macs  map[string]hash.Hash
	plain hash.Hash
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

// Copy returns a chain that continues from here on its own; of nil, nil.
func (c *Chain) Copy() *Chain {
	if c == nil {
		return nil
	}
	n := NewChain(c.seal)
	n.Resume(c.State())
	return n
}

// ChainState is what an index of the log keeps of a chain, to go on from later.
type ChainState struct {
	Proof  Proof
	Proven uint64
	Link   [sha256.Size]byte
}

// State is the chain's place in the log.
func (c *Chain) State() ChainState {
	if c == nil {
		return ChainState{}
	}
	return ChainState{Proof: c.Proof, Proven: c.Proven, Link: c.link}
}

// Resume puts the chain to a place that State gave. The caller must have proven that it comes
// from this log: see Seal.MAC.
func (c *Chain) Resume(at ChainState) {
	if c != nil {
		c.Proof, c.Proven, c.link = at.Proof, at.Proven, at.Link
	}
}

// Signs reports whether the chain signs new commits.
func (c *Chain) Signs() bool { return c != nil && c.seal.Sign != nil && !c.held }

// Hold leaves out the MAC of new commits until it is called with false: a commit after a missing end must not vouch
// for the commits before it.
func (c *Chain) Hold(held bool) {
	if c != nil {
		c.held = held
	}
}

// Take verifies the line of the log's next commit. Its frame and checksum must be checked.
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
	c.link, c.Proven = sum, seq
}

// skip continues after a commit that is not proven: the next MAC covers that commit's line as it is now.
func (c *Chain) skip(body []byte) {
	c.plain.Reset()
	c.plain.Write(c.link[:])
	c.plain.Write(body)
	c.plain.Sum(c.link[:0])
}

func (c *Chain) sum(mac hash.Hash, body []byte, at int) (sum [sha256.Size]byte) {
	mac.Reset()
	mac.Write([]byte("commit\x00" + c.seal.Log + "\x00"))
	mac.Write(c.link[:])
	mac.Write(body[:at])
	mac.Write(body[at+macLen:])
	mac.Sum(sum[:0])
	return sum
}

// sign fills in the MAC of the line that is being written: body without its trailer; at is the position of the MAC.
func (c *Chain) sign(seq uint64, body []byte, at int) {
	key := c.seal.Sign
	c.Proven = seq
	copy(body[at:], key.ID)
	body[at+KeyIDLen] = '.'
	c.link = c.sum(c.macs[key.ID], body, at)
	hex.Encode(body[at+KeyIDLen+1:at+macLen], c.link[:16])
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

// Proves reports whether MAC made that of the same data, with a key that verifies. A mac that
// was cut to half its length counts.
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
