package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint/gitstore"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/workspace"
)

// ErrInUse: a process of an earlier version works with the contents.
var ErrInUse = gitstore.ErrInUse

// Errors that callers distinguish.
var (
	// ErrRefused: this folder gets no checkpoints. The error that wraps it gives the reason.
	ErrRefused = errors.New("no checkpoints here")
	// ErrUnkept: the content was not kept, or does not exist any more.
	ErrUnkept = errors.New("its content was not kept")
)

// Place is where the contents of all workspaces are kept.
type Place struct {
	// Dir is a folder of this machine, with one folder for each workspace: its surveys, and its contents unless
	// Stores keeps them.
	Dir string
	// Stores keeps the contents for several servers. nil: Dir does.
	Stores Stores
}

// Stores are content stores that several servers share, by the names of workspaces (NameOf). Surveys stay on the
// machine of the workspace: a collection on another machine removes contents that only those surveys name and no
// running command relies on, and the next survey keeps them again.
type Stores interface {
	// Store opens a store. Nothing is created.
	Store(name string) content.Store
	// List returns the names of the stores that hold something.
	List(ctx context.Context) ([]string, error)
}

// List returns the names of the stores of a place.
func (p Place) List(ctx context.Context) ([]string, error) {
	if p.Stores != nil {
		list, err := p.Stores.List(ctx)
		return list, api.Failed(err, "list the stores of checkpoints")
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the stores of checkpoints: %w", err)
	}
	return api.Some(entries, func(e os.DirEntry) (string, bool) {
		return e.Name(), e.IsDir() && !strings.HasPrefix(e.Name(), ".")
	}), nil
}

// plainInName are the characters of a name that NameOf returns. A journal from elsewhere may name anything.
const plainInName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Contents are the contents kept for one workspace, which need not exist any more: a content store and, until
// carryOver has moved it, the store of an earlier version in the same folder.
type Contents struct {
	dir    string
	store  content.Store
	shared bool            // the store is not in dir
	old    *gitstore.Store // nil: none when the folder was opened
}

// Open opens the contents with a name. It creates nothing.
func (p Place) Open(name string) (*Contents, error) {
	if name == "" || strings.Trim(name, plainInName) != "" {
		return nil, fmt.Errorf("open checkpoints: %q names no store", name)
	}
	dir := filepath.Join(p.Dir, name)
	if p.Stores != nil {
		return &Contents{dir: dir, store: p.Stores.Store(name), shared: true}, nil
	}
	s, err := content.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkpoints: %w", err)
	}
	return &Contents{dir: dir, store: s, old: gitstore.Open(dir)}, nil
}

// Close ends the hold on contents. Only reading is possible after it.
func (c *Contents) Close() error { return c.store.Close() }

// Size returns how many bytes the contents of all tasks take on disk.
func (c *Contents) Size(ctx context.Context) (int64, error) {
	n, err := c.store.Size(ctx)
	return n + c.old.Size(), err
}

// Has reports whether the content of a version can be read. It does not hold the content.
func (c *Contents) Has(ctx context.Context, v api.FileVersion) bool {
	return v.Blob != "" && (c.store.Contains(ctx, content.Hash(v.Hash)) || c.old.Has(v.Blob))
}

// Read returns the content of a version. The name of a content is Hash; a Blob that differs from Hash is a name from
// an earlier version.
func (c *Contents) Read(ctx context.Context, v api.FileVersion, limit int64) ([]byte, error) {
	if content.Hash(v.Blob).Valid() && v.Blob != v.Hash {
		return nil, fmt.Errorf("content %s %w: it differs from the recorded content", v.Blob, ErrDamaged)
	}
	data, err := c.store.Read(ctx, content.Hash(v.Hash), limit)
	if err == nil || c.old == nil || !c.old.Has(v.Blob) {
		return data, err
	}
	if data, err = c.old.Read(ctx, v.Blob, limit); err == nil && workspace.HashOf(data) != v.Hash {
		return nil, fmt.Errorf("content %s %w: it differs from the recorded content", v.Blob, ErrDamaged)
	}
	if errors.Is(err, content.ErrMissing) { // it may have been carried over in between
		return c.store.Read(ctx, content.Hash(v.Hash), limit)
	}
	return data, err
}

// markFile shows that a folder has contents in the new format; see gitstore.FormatMark.
const markFile = "roost"

// prepare carries over the store of an earlier version. With write, it also gives a new folder the present format: before
// the first write. The error wraps ErrInUse while a process of an earlier version works with the store.
func (c *Contents) prepare(ctx context.Context, write bool) error {
	if c.shared {
		return nil
	}
	switch info, err := os.Stat(filepath.Join(c.dir, markFile)); {
	case err == nil && info.IsDir():
		return c.carryOver(ctx)
	case !write:
		return nil // the first write reports an error
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(c.dir, 0o700); err != nil {
			return err
		}
		return gitstore.FormatMark(c.dir)
	default:
		return err
	}
}

// begin starts a batch.
func (c *Contents) begin(ctx context.Context) (content.Batch, error) {
	if err := c.prepare(ctx, true); err != nil {
		return nil, err
	}
	return c.store.Begin(ctx)
}

// carryOver copies everything that an earlier version kept, gives the tasks their contents, makes earlier versions
// refuse the folder and removes their store. It can be repeated after a kill at any moment. A store with unreadable
// contents stays beside the new one, for reading, until no task owns any of its contents.
func (c *Contents) carryOver(ctx context.Context) (err error) {
	old := gitstore.Open(c.dir)
	if old == nil {
		return gitstore.Refuse(c.dir)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("carry over the checkpoints of an earlier version: %w", err)
		}
	}()
	free, err := old.Lock(ctx)
	if err != nil {
		return err
	}
	defer free()
	if old = gitstore.Open(c.dir); old == nil {
		return nil // another process carried it over
	}
	s, err := content.Open(c.dir) // a store of its own: what it holds ends with it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	defer s.Keep()()
	hashes, unread, err := copyBlobs(ctx, old, s)
	if err != nil {
		return err
	}
	refs, err := old.Refs()
	if err != nil {
		return err
	}
	for owner, commit := range refs {
		blobs, lost, err := old.Reaches(ctx, commit)
		if err != nil {
			return err
		}
		unread += lost
		failpoint.Hit("checkpoint.carry.copied")
		if err := nameCarried(ctx, s, owner, blobs, hashes); err != nil {
			return err
		}
	}
	failpoint.Hit("checkpoint.carry.named")
	if runtime.GOOS == "windows" {
		free() // it cannot remove open files
	}
	if err := gitstore.Refuse(c.dir); err != nil || unread > 0 && len(refs) > 0 {
		return err
	}
	failpoint.Hit("checkpoint.carry.refused")
	return old.Remove()
}

func copyBlobs(ctx context.Context, old *gitstore.Store, s content.Store) (hashes map[string]content.Hash, unread int, err error) {
	b, err := s.Begin(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer b.Discard()
	hashes = map[string]content.Hash{}
	unread, err = old.Blobs(ctx, func(name string, data []byte) (err error) {
		hashes[name], err = b.Add(data)
		return err
	})
	if err == nil {
		err = b.Close()
	}
	return hashes, unread, err
}

// nameCarried gives a task the contents that its ref reached, in addition to those that it has already.
func nameCarried(ctx context.Context, s content.Store, owner string, blobs []string, hashes map[string]content.Hash) error {
	m := content.Manifest{Title: "checkpoints of an earlier version"}
	for _, name := range blobs {
		if h, ok := hashes[name]; ok {
			m.Files = append(m.Files, content.File{Hash: h})
		}
	}
	b, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer b.Discard()
	return nameAlso(ctx, s, b, owner, m)
}

// nameAlso ends a batch with a manifest, and gives it to an owner in addition to what the owner has already.
func nameAlso(ctx context.Context, s content.Store, b content.Batch, owner string, m content.Manifest) error {
	has, err := s.Name(ctx, owner)
	if err == nil {
		m.Parents = []content.Hash{has}
	} else if !errors.Is(err, content.ErrMissing) {
		return err
	}
	h, err := b.AddManifest(m)
	if err == nil {
		err = b.Close()
	}
	if err == nil {
		err = s.SetName(ctx, owner, h)
	}
	return err
}

// Incoming is a content from elsewhere. Its size is known before it is read.
type Incoming struct {
	Size int64
	Read func() ([]byte, error)
}

// Add gives an owner contents from elsewhere, in addition to those that it has. It leaves out what cannot be read and
// what is above the limits of the options, and returns how many those are, and the reason for the first one.
func (c *Contents) Add(ctx context.Context, owner, title string, list []Incoming, o Options) (left int, why, err error) {
	b, err := c.begin(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer b.Discard()
	size, err := c.Size(ctx)
	if err != nil {
		return 0, nil, err
	}
	o = o.filled()
	m := content.Manifest{Title: title}
	for _, in := range list {
		data, bad := in.readWithin(min(o.MaxHold, o.MaxStore-size))
		if bad != nil {
			left, why = left+1, cmp.Or(why, bad)
			continue
		}
		h, err := b.Add(data)
		if err != nil {
			return 0, nil, err
		}
		size, m.Files = size+in.Size, append(m.Files, content.File{Hash: h})
	}
	if len(m.Files) == 0 {
		return left, why, nil
	}
	return left, why, nameAlso(ctx, c.store, b, owner, m)
}

func (in Incoming) readWithin(most int64) ([]byte, error) {
	if in.Size > most {
		return nil, fmt.Errorf("%d bytes are above the limits of checkpoints", in.Size)
	}
	return in.Read()
}

// OwnerOf returns the name under which a task owns contents.
func OwnerOf(task string) string { return content.OwnerName(task) }

// Owners returns the tasks that own contents, by OwnerOf, with the time at which each saved its newest checkpoint.
func (c *Contents) Owners(ctx context.Context) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	names, err := c.store.Names(ctx)
	if err != nil {
		return nil, err
	}
	for owner, n := range names {
		out[owner] = n.At
	}
	if c.old == nil {
		return out, nil
	}
	refs, err := c.old.Refs()
	for owner := range refs {
		at := c.old.Changed(owner)
		if saved, ok := out[owner]; !ok || at.After(saved) {
			out[owner] = at
		}
	}
	return out, err
}

// Share gives an owner the contents that a saved checkpoint of another one names; commit is the result of Save.
func (c *Contents) Share(ctx context.Context, commit, from, owner string) error {
	if err := c.prepare(ctx, true); err != nil {
		return err
	}
	h, err := content.Hash(commit), content.ErrMissing
	if h.Valid() {
		err = c.store.SetName(ctx, owner, h)
	}
	if errors.Is(err, content.ErrMissing) { // an earlier version saved it, or an archive brought its contents
		if h, err = c.store.Name(ctx, from); err == nil { // everything that the other task has
			err = c.store.SetName(ctx, owner, h)
		}
	}
	if errors.Is(err, content.ErrMissing) {
		return nil // its contents are lost already
	}
	return err
}

// UsedByEarlier reports whether a process of an earlier version works with the contents now.
func (c *Contents) UsedByEarlier() (bool, error) { return c.old.InUse() }

// ErrDamaged: a kept content differs from its record.
var ErrDamaged = content.ErrDamaged

// Verifier reads the kept contents of workspaces, which need not exist any more, and compares them with the records.
// It reads each content once, and writes nothing.
type Verifier struct {
	Objects int   // contents that were read
	Bytes   int64 // bytes of the undamaged ones

	place Place
	open  map[string]*Contents
	known map[string]error
}

// NewVerifier verifies the stores of a place.
func NewVerifier(p Place) *Verifier {
	return &Verifier{place: p, open: map[string]*Contents{}, known: map[string]error{}}
}

// Close closes the stores.
func (v *Verifier) Close() (err error) {
	for _, c := range v.open {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Open opens a store until Close, for reading.
func (v *Verifier) Open(store string) (c *Contents, err error) {
	if c = v.open[store]; c == nil {
		if c, err = v.place.Open(store); err == nil {
			v.open[store] = c
		}
	}
	return c, err
}

// Lost reports whether a store that was verified lacks something that it kept for a task.
func (v *Verifier) Lost(ctx context.Context, store, task string) bool {
	_, _, err := v.open[store].store.Reaches(ctx, OwnerOf(task))
	return errors.Is(err, ErrDamaged)
}

// Verify returns nil when the content of a version is kept in a store as recorded, or was never kept. The error wraps
// ErrUnkept when the content is missing, and ErrDamaged when it differs. Any other error is the context's, or a read
// error.
func (v *Verifier) Verify(ctx context.Context, store string, f api.FileVersion) error {
	if f.Blob == "" {
		return nil
	}
	key := store + " " + f.Blob + " " + f.Hash
	if err, ok := v.known[key]; ok {
		return err
	}
	c, err := v.Open(store)
	if err != nil {
		return fmt.Errorf("verify checkpoints: %w", err)
	}
	err = c.store.Verify(ctx, content.Hash(f.Hash))
	if errors.Is(err, content.ErrMissing) {
		_, err = c.Read(ctx, f, 0)
	}
	switch {
	case err == nil:
		v.Bytes += f.Size
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, content.ErrMissing):
		err = fmt.Errorf("content %.12s: %w", f.Blob, ErrUnkept)
	default:
		err = fmt.Errorf("content %.12s: %w", f.Blob, err)
	}
	v.Objects++
	v.known[key] = err
	return err
}
