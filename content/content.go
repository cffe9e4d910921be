// Package content stores immutable bytes under their SHA-256.
//
// Writing. A Batch collects contents and manifests and becomes durable whole when Close returns. A content that the
// store already has is not written again.
//
// Lifetime. A manifest names contents and earlier manifests; SetName gives a manifest to an owner (a task). Collect
// removes what no owner's manifest reaches. From the first Begin or Keep on, everything that this Store wrote, or found
// to be present (Has, Batch), is held until Settle, Close or the end of the process, whichever process collects. So:
// write, set the name, settle. Settle speaks for the whole Store: a goroutine that shares a Store calls Keep before its
// first content and releases it after SetName.
//
// Reading waits for no batch, and for a collection only when a content is not where it was: nothing counts as missing
// while bundles are being removed. Every content is compared with its hash. Damaged bytes are ErrDamaged, and the next
// batch that has the content writes it again.
//
// A Folder is a store of files, which is the default. Package content/postgres keeps stores in a database that
// several servers share. Package content/contenttest checks the required behaviour of each.
//
// Limits: contents are stored whole, without differences between similar ones (a delta format needs chains, bases and
// repacking; 200 edits of a source file cost less than what they changed without any of it).
package content

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // as below
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Store is one content store. Several goroutines may use it, and several processes may have the same one open.
type Store interface {
	// Begin starts a batch. Close or Discard must follow.
	Begin(ctx context.Context) (Batch, error)

	// Read returns a content, compared with its hash. A content over limit bytes gives ErrTooLarge; limit 0 is no
	// limit. Other errors are ErrMissing and ErrDamaged.
	Read(ctx context.Context, h Hash, limit int64) ([]byte, error)
	// Verify reads a content in little memory and compares it with its hash.
	Verify(ctx context.Context, h Hash) error
	// Manifest reads a manifest.
	Manifest(ctx context.Context, h Hash) (Manifest, error)

	// Contains reports whether the content is present now. It holds nothing and writes nothing: for a caller that only
	// displays, or knows that a name reaches the content.
	Contains(ctx context.Context, h Hash) bool
	// Has reports whether the content is present. While something is held, Has also holds the content that it finds.
	// A content that cannot be held counts as absent, so that the caller writes it again.
	Has(ctx context.Context, h Hash) bool
	// Find is Has for a caller that cannot write the content again. It fails when presence is unknown, or when the
	// content could not be held, as on a full disk.
	Find(ctx context.Context, h Hash) (bool, error)

	// Name returns the hash of an owner's manifest; ErrMissing without one.
	Name(ctx context.Context, owner string) (Hash, error)
	// Names returns the manifests of all owners. If some cannot be read, the others come with the error.
	Names(ctx context.Context) (map[string]Named, error)
	// SetName gives an owner a manifest that is in the store, durably. Until Settle the manifest stays held as well.
	SetName(ctx context.Context, owner string, h Hash) error
	// RemoveName removes the manifest from an owner, durably. An owner without one is no error.
	RemoveName(ctx context.Context, owner string) error

	// Keep makes Settle do nothing until release is called, and makes Has hold what it finds from now on: for work on
	// contents that no name reaches yet.
	Keep() (release func())
	// Settle ends the hold: after it, names must reach all contents of this Store that are still needed. While a Keep
	// or a Batch is open it does nothing.
	Settle()
	// Close ends the hold. Only reading is possible after it.
	Close() error

	// Size returns how many bytes the contents take.
	Size(ctx context.Context) (int64, error)
	// Reaches counts the contents that an owner's manifest reaches and the bytes that they take. Contents that other
	// owners also reach count, too.
	Reaches(ctx context.Context, owner string) (contents int, bytes int64, err error)
	// Collect removes contents that neither a name nor Keep reaches and no Store holds. Readers continue; writers
	// wait only while contents are removed. A kill at any moment loses nothing. If something that a name reaches is
	// missing or unreadable, the error is ErrDamaged and nothing is removed.
	Collect(ctx context.Context, o CollectOptions) (Collected, error)
}

// Batch is a set of contents that become durable together. It belongs to one goroutine.
type Batch interface {
	// Add adds a content.
	Add(data []byte) (Hash, error)
	// AddManifest adds a manifest. Every content that it names must be in this batch or in the store; a missing one
	// gives ErrMissing, so that no collection ever finds a manifest without its contents.
	AddManifest(m Manifest) (Hash, error)
	// Close makes the batch durable and holds it until Settle. When the store had everything already, it writes
	// nothing. After an error the store is as before, without anything of the batch.
	Close() error
	// Discard drops the batch; after Close it does nothing.
	Discard()
}

// Hash names a content: the SHA-256 of its bytes as 64 lower-case hexadecimal digits.
type Hash string

// Valid reports whether the text has the form of a hash.
func (h Hash) Valid() bool {
	_, err := h.Key()
	return err == nil
}

// Errors that callers distinguish.
var (
	// ErrMissing: the store does not have the content or the name.
	ErrMissing = errors.New("is not in the content store")
	// ErrDamaged: the stored bytes differ from what was written.
	ErrDamaged = errors.New("is damaged in the content store")
	// ErrTooLarge: the content is larger than the caller's limit.
	ErrTooLarge = errors.New("is larger than the limit")
)

// Key is a hash as its bytes.
type Key [sha256.Size]byte

// Hash returns the key as text.
func (k Key) Hash() Hash { return Hash(hex.EncodeToString(k[:])) }

// Key returns the hash as bytes; an error when it does not have the form of a hash.
func (h Hash) Key() (k Key, err error) {
	if len(h) != 2*len(k) || strings.Trim(string(h), "0123456789abcdef") != "" {
		return k, fmt.Errorf("%q is not the name of a content", string(h))
	}
	_, err = hex.Decode(k[:], []byte(h))
	return k, err
}

// Manifest names contents that belong together, and the manifests before it. It is a content itself.
type Manifest struct {
	Title   string `json:"title,omitempty"`
	At      int64  `json:"at,omitempty"` // Unix milliseconds
	Parents []Hash `json:"parents,omitempty"`
	Files   []File `json:"files,omitempty"`
}

// File is one path of a manifest and the content that it had. Collect follows Hash only; the other fields are for
// people who read a manifest.
type File struct {
	Path   string `json:"path,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Mode   string `json:"mode,omitempty"` // octal
	Hash   Hash   `json:"hash,omitempty"` // "" = no content was kept
	Before bool   `json:"before,omitempty"`
}

// MaxManifest is the largest size in bytes of a manifest that is read; it bounds memory. A file of a manifest takes
// about 150 bytes, so this is more than a million files.
const MaxManifest = 256 << 20

// Names returns the contents and manifests that a manifest names.
func (m *Manifest) Names() (list []Key, err error) {
	add := func(h Hash) {
		k, bad := h.Key()
		err = errors.Join(err, bad)
		list = append(list, k)
	}
	for _, h := range m.Parents {
		add(h)
	}
	for _, f := range m.Files {
		if f.Hash != "" {
			add(f.Hash)
		}
	}
	return list, err
}

// Named is an owner's manifest, and the time at which it was set.
type Named struct {
	Manifest Hash
	At       time.Time
}

// CollectOptions select what Collect keeps and does.
type CollectOptions struct {
	// Keep returns further contents that stay, with everything that they reach. Collect calls it more than once. A
	// missing content is no error.
	Keep func() ([]Hash, error)
	// DryRun only counts and writes nothing.
	DryRun bool
	// Without are owners whose names a dry run treats as removed.
	Without []string
}

// Collected is the report of Collect: what it removed or, after a dry run, would remove.
type Collected struct {
	Kept, Removed int   // contents
	Before, After int64 // bytes on disk; After of a dry run is an estimate
}

// OwnerName returns the name under which any text, such as a task's id, owns a manifest. A character that a file name
// cannot hold, or that a file system may fold by case, is written as %xx. A very long text is cut, and its hash is
// added.
func OwnerName(text string) string {
	plain := func(i int) bool {
		return i >= 0 && i < len(text) && strings.IndexByte(plainInOwner, text[i]) >= 0
	}
	var b strings.Builder
	for i := range len(text) {
		point := text[i] == '.' && plain(i-1) && plain(i+1) && text[i:] != ".lock"
		if plain(i) || point {
			b.WriteByte(text[i])
		} else {
			fmt.Fprintf(&b, "%%%02x", text[i])
		}
	}
	name := cmp.Or(b.String(), "%")
	if len(name) > 200 {
		h := sha1.Sum([]byte(text)) //nolint:gosec // a short name, not a protection
		name = name[:100] + "%%" + hex.EncodeToString(h[:])
	}
	return name
}

const plainInOwner = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// CheckOwner accepts what OwnerName returns.
func CheckOwner(name string) error {
	if name == "" || len(name) > 200 || name[0] == '.' || strings.Trim(name, plainInOwner+".%") != "" {
		return fmt.Errorf("%q cannot own contents", name)
	}
	return nil
}
