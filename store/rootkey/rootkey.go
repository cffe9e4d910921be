// Package rootkey keeps the keys with which a root authenticates its logs, outside of that root:
//
//	<root>/root.json                      the root's id
//	<state>/roots/<root id>/<place>.json  the keys of that root in one place, for its user alone
//
// A place is a path and the inode of root.json. A root that was copied, restored or unpacked, or that another user's
// environment names, has no keys file for its place: no commit of its logs is proven there, and new commits are signed
// with a key of their own. Trust gives a place the keys that this user has for the same root in other places.
//
// Servers that share a database have the keys of their group, from a file that each of them has a copy of (Group).
//
// Without a state folder, keys live as long as the process. Reading creates nothing.
//
// Out of scope: other programs of the same user, and a machine that is rolled back as a whole.
package rootkey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

const idName = "root.json"

// Ring holds the keys of one root. It is safe for concurrent use.
type Ring struct {
	state, root string
	group       *place // of a group of servers; nil for a root
}

// Open names a root and the folder for the user's state; "" keeps keys in memory.
func Open(state, root string) *Ring { return &Ring{state: state, root: root} }

// place is the record of a root in one place.
type place struct {
	Root   string `json:"root"`
	Path   string `json:"path"`
	Inode  uint64 `json:"inode,omitempty"`
	Sign   key    `json:"sign"`
	Verify []key  `json:"verify,omitempty"` // further keys whose commits count
	Token  string `json:"token,omitempty"`  // SHA-256 of the server's token that was made here
}

type key struct {
	ID     string `json:"id"`
	Secret string `json:"secret"` // hexadecimal
}

func (k key) journal() (journal.Key, error) {
	secret, err := hex.DecodeString(k.Secret)
	if err != nil || len(secret) < sha256.Size || len(k.ID) != journal.KeyIDLen {
		return journal.Key{}, fmt.Errorf("key %.8s is not whole", k.ID)
	}
	return journal.Key{ID: k.ID, Secret: secret}, nil
}

func newKey() key {
	b := make([]byte, sha256.Size+journal.KeyIDLen/2)
	_, _ = rand.Read(b) // never fails
	return key{ID: hex.EncodeToString(b[sha256.Size:]), Secret: hex.EncodeToString(b[:sha256.Size])}
}

// Seal signs and verifies a log of the root in this place. Without a key it signs nothing and proves no commit. It creates
// nothing.
func (r *Ring) Seal(log string) (*journal.Seal, error) {
	p, _, err := r.find()
	if err != nil || p == nil {
		return &journal.Seal{Log: log}, err
	}
	sign, err := p.Sign.journal()
	if err != nil {
		return &journal.Seal{Log: log}, fmt.Errorf("keys of %s: %w", r.root, err)
	}
	s := &journal.Seal{Log: p.Root + "/" + log, Sign: &sign, Verify: []journal.Key{sign}}
	for _, k := range p.Verify {
		if k, err := k.journal(); err == nil {
			s.Verify = append(s.Verify, k)
		}
	}
	return s, nil
}

// Make gives the root an id, and this place a key, where they have none.
func (r *Ring) Make() error {
	p, at, err := r.find()
	if err != nil || p != nil {
		return err
	}
	if r.state != "" && at.Root == "" {
		id := fmt.Appendf(nil, "{\"id\":%q}\n", uuid.NewString())
		if err := writeOnce(filepath.Join(r.root, idName), id); err != nil {
			return fmt.Errorf("give the root %s an id: %w", r.root, err)
		}
		if _, at, err = r.find(); err != nil {
			return err
		}
	}
	at.Sign = newKey()
	return r.keep(at, false)
}

// Trust makes this place accept commits that are signed with any key that this user has for the root, in any place. It
// returns the number of keys that are new here.
func (r *Ring) Trust() (int, error) {
	if err := r.Make(); err != nil {
		return 0, err
	}
	p, _, err := r.find()
	if err != nil || p == nil || r.state == "" {
		return 0, err
	}
	siblings, err := filepath.Glob(filepath.Join(r.state, "roots", p.Root, "*.json"))
	if err != nil {
		return 0, err
	}
	has := func(k key) bool { return k.ID == p.Sign.ID || slices.Contains(p.Verify, k) }
	before := len(p.Verify)
	for _, file := range siblings {
		other, err := readPlace(file)
		if err != nil {
			return 0, err
		}
		for _, k := range append([]key{other.Sign}, other.Verify...) {
			if other.Root == p.Root && !has(k) {
				p.Verify = append(p.Verify, k)
			}
		}
	}
	if len(p.Verify) == before {
		return 0, nil
	}
	return len(p.Verify) - before, r.keep(*p, true)
}

// ServerID names the server of a root. The name outlasts restarts; a root that was copied, moved or restored gets another
// one. Without a state folder the name lasts as long as the process. ServerID makes the root's id where there is none.
func ServerID(state, root string) (string, error) {
	r := Open(state, root)
	if err := r.Make(); err != nil {
		return "", err
	}
	_, at, err := r.find()
	if err != nil || at.Root == "" {
		return uuid.NewString(), err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", at.Root, at.Inode, at.Path))
	return hex.EncodeToString(sum[:8]), nil
}

// MadeToken reports whether the server's token was made in this place.
func (r *Ring) MadeToken(token string) bool {
	p, _, err := r.find()
	return err == nil && p != nil && p.Token == tokenSum(token)
}

// NoteToken notes that a token was made in this place.
func (r *Ring) NoteToken(token string) error {
	if err := r.Make(); err != nil {
		return err
	}
	p, _, err := r.find()
	if err != nil || p == nil {
		return err
	}
	p.Token = tokenSum(token)
	return r.keep(*p, true)
}

func tokenSum(token string) string {
	sum := sha256.Sum256([]byte("server token " + token))
	return hex.EncodeToString(sum[:])
}

// find reads the keys of this place; p is nil when it has none. at describes the place, without keys.
func (r *Ring) find() (p *place, at place, err error) {
	if r.group != nil {
		return r.group, *r.group, nil
	}
	path, err := filepath.EvalSymlinks(r.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, place{Path: r.root}, nil
	}
	if err != nil {
		return nil, at, fmt.Errorf("look for the root's keys: %w", err)
	}
	at.Path = path
	if r.state == "" {
		if found, ok := memory.Load(path); ok {
			p := found.(place)
			return &p, at, nil
		}
		return nil, at, nil
	}
	file := filepath.Join(path, idName)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, at, nil
	}
	if err != nil {
		return nil, at, fmt.Errorf("look for the root's id: %w", err)
	}
	var id struct {
		ID uuid.UUID `json:"id"`
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<10 {
		return nil, at, fmt.Errorf("%s is no root's id: move it away, and a new one is made", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, at, fmt.Errorf("read the root's id: %w", err)
	}
	if json.Unmarshal(data, &id) != nil || id.ID == uuid.Nil {
		return nil, at, fmt.Errorf("%s is no root's id: move it away, and a new one is made", file)
	}
	at.Root, at.Inode = id.ID.String(), filelog.FileID(info)
	found, err := readPlace(r.file(at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, at, nil
	}
	if err != nil {
		return nil, at, err
	}
	if found.Root != at.Root || found.Path != at.Path || found.Inode != at.Inode {
		return nil, at, nil
	}
	return &found, at, nil
}

// memory holds the keys of places whose user has no state folder.
var memory sync.Map

// file returns the path of the keys file of a place: each place has its own, so that no two processes change one
// file.
func (r *Ring) file(at place) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", at.Inode, at.Path))
	return filepath.Join(r.state, "roots", at.Root, hex.EncodeToString(sum[:8])+".json")
}

func readPlace(file string) (p place, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return p, fmt.Errorf("read the root's keys: %w", err)
	}
	err = json.Unmarshal(data, &p)
	return p, api.Failed(err,
		"the root's keys in %s are damaged: move the file away; Roost then asks once about what its logs left open", file)
}

// keep saves the record of a place. With replace it replaces an earlier record; without, an earlier record stays: of two
// processes that create one, the second uses the file of the first.
func (r *Ring) keep(p place, replace bool) error {
	switch {
	case r.state == "" && replace:
		memory.Store(p.Path, p)
		return nil
	case r.state == "":
		memory.LoadOrStore(p.Path, p)
		return nil
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	write, file := writeOnce, r.file(p)
	if replace {
		write = atomicfile.Write
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		err = write(file, append(data, '\n'))
	}
	return api.Failed(err, "keep the root's keys")
}

// writeOnce makes a file durable under its name, unless a file of that name exists.
func writeOnce(file string, data []byte) error {
	if err := atomicfile.Create(file, data); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
