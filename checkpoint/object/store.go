package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Store is one object store. It may be used by several goroutines, and its folder by
// several processes.
type Store struct {
	dir   string
	fault func(op string) error // for tests: what a full disk does

	mu    sync.RWMutex // guards known
	known known

	hold sync.Mutex // guards what follows; taken before any kernel lock
	held held
}

// Open opens the store in a folder. Nothing is made before the first write; a store
// that is not there has no objects and no refs.
func Open(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the object store: %w", err)
	}
	switch fi, err := os.Stat(abs); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("open the object store: %w", err)
	case !fi.IsDir():
		return nil, fmt.Errorf("open the object store: %s is not a folder", abs)
	}
	return &Store{dir: abs, fault: func(string) error { return nil }}, nil
}

// path is a place in the store's folder.
func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

func (s *Store) packDir() string { return s.path("objects", "pack") }

// settings keep a git that a person runs in the store from removing what no ref
// reaches yet, from tables that name what Collect removes, and from differences of
// large files, which take memory to read.
const settings = `[core]
	repositoryformatversion = 0
	bare = true
	logAllRefUpdates = false
	bigFileThreshold = 16m
	commitGraph = false
	multiPackIndex = false
[gc]
	auto = 0
	pruneExpire = never
	writeCommitGraph = false
[maintenance]
	auto = false
`

// make makes the repository, unless it is there. Several processes may do it at
// the same time: each writes the same.
func (s *Store) make() error {
	if _, err := os.Stat(s.path("roost", "tmp")); err == nil {
		return nil // the last thing that is made
	}
	err := os.MkdirAll(s.packDir(), 0o700)
	for _, d := range []string{s.path("refs", "heads"), s.path("objects", "info"), s.path("roost", "leases")} {
		err = errors.Join(err, os.MkdirAll(d, 0o700))
	}
	for name, text := range map[string]string{"config": settings, "HEAD": "ref: refs/heads/main\n"} {
		if _, e := os.Stat(s.path(name)); err == nil && e != nil {
			err = s.writeFile(s.path(name), []byte(text))
		}
	}
	for _, d := range []string{s.path("roost"), s.path("refs"), s.path("objects"), s.dir, filepath.Dir(s.dir)} {
		if err == nil {
			err = syncDir(d)
		}
	}
	if err == nil {
		err = os.MkdirAll(s.path("roost", "tmp"), 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the object store %s: %w", s.dir, err)
	}
	return nil
}

// writeFile puts a small file in its place, whole and synced. The folder is not.
func (s *Store) writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// rename replaces a file. Windows refuses while somebody reads the old one.
func rename(from, to string) error {
	err := os.Rename(from, to)
	for i := 0; err != nil && runtime.GOOS == "windows" && i < 50; i++ {
		time.Sleep(10 * time.Millisecond)
		err = os.Rename(from, to)
	}
	return err
}

// Has reports whether the object is there. While something is held, what it
// finds is held, too; what cannot be held counts as absent, so that it is written again.
func (s *Store) Has(id ID) bool {
	there, err := s.Find(id)
	return there && err == nil
}

// Find is Has for who does not write the object again: the error says that it is not
// known whether it is there, or that it could not be held, as on a full disk.
func (s *Store) Find(id ID) (bool, error) {
	k, err := id.sum()
	if err != nil {
		return false, nil //nolint:nilerr // nothing has such a name
	}
	s.hold.Lock()
	idle := s.held.idle()
	s.hold.Unlock()
	if idle { // what is in memory may be gone
		if _, err := s.refresh(false); err != nil {
			return false, err
		}
	}
	return s.there(k, true)
}

// Contains reports whether the object is there now, and holds nothing: for who only
// tells, or knows that a ref reaches it. It writes nothing.
func (s *Store) Contains(id ID) bool {
	k, err := id.sum()
	if err != nil {
		return false
	}
	if _, err := s.refresh(false); err != nil {
		return false
	}
	s.mu.RLock()
	_, ok := s.known.find(s, k)
	ok = ok && !s.known.spoiled[k]
	fan := s.known.fans[k[0]] && !s.known.spoiled[k]
	s.mu.RUnlock()
	if !ok && fan {
		_, err := os.Stat(s.loose(k).path)
		return err == nil
	}
	return ok
}

// Stat gives an object's kind and size. The error is ErrMissing or ErrDamaged.
func (s *Store) Stat(ctx context.Context, id ID) (kind Kind, size int64, err error) {
	err = s.with(ctx, id, func(p place) error {
		kind, size, err = p.stat(ctx)
		return err
	})
	return kind, size, err
}

// get gives an object whole, checked.
func (s *Store) get(ctx context.Context, id ID, limit int64) (kind Kind, data []byte, err error) {
	err = s.with(ctx, id, func(p place) error {
		kind, data, err = p.content(ctx, limit)
		if err == nil && hashOf(kind, data).ID() != id {
			err = ErrDamaged
		}
		return err
	})
	return kind, data, err
}

// Read gives an object's content, checked against its id. An object of more than limit
// bytes is ErrTooLarge; limit 0 is no limit. Other errors are ErrMissing and ErrDamaged.
func (s *Store) Read(ctx context.Context, id ID, limit int64) ([]byte, error) {
	_, data, err := s.get(ctx, id, limit)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Copy writes an object's content to w, in little memory. The content is known to
// be right only when it returns nil; with ErrDamaged some of it may be written.
func (s *Store) Copy(ctx context.Context, id ID, w io.Writer) error {
	out := &outlet{w: w}
	return s.with(ctx, id, func(p place) error {
		if out.n > 0 {
			return errHalf
		}
		return p.copy(ctx, id, out)
	})
}

// errHalf: a second copy of an object cannot be had behind half of the first.
var errHalf = fmt.Errorf("%w, which was seen when some of it was written", ErrDamaged)

// Tree reads a tree.
func (s *Store) Tree(ctx context.Context, id ID) ([]TreeEntry, error) {
	data, err := s.typed(ctx, id, KindTree)
	if err != nil {
		return nil, err
	}
	return ParseTree(data)
}

// Commit reads a commit.
func (s *Store) Commit(ctx context.Context, id ID) (Commit, error) {
	data, err := s.typed(ctx, id, KindCommit)
	if err != nil {
		return Commit{}, err
	}
	return ParseCommit(data)
}

// largest is the largest tree or commit that is read.
const largest = 256 << 20

func (s *Store) typed(ctx context.Context, id ID, want Kind) ([]byte, error) {
	kind, data, err := s.get(ctx, id, largest)
	if err == nil && kind != want {
		err = fmt.Errorf("object %s is a %s, not a %s", id, kind, want)
	}
	return data, err
}

// place is where one copy of an object lies.
type place interface {
	key() string
	stat(ctx context.Context) (Kind, int64, error)
	content(ctx context.Context, limit int64) (Kind, []byte, error)
	copy(ctx context.Context, id ID, w io.Writer) error
}

// with tries every copy of an object until one is good. A pack that was removed
// meanwhile, because its objects went to another, is looked for anew.
func (s *Store) with(ctx context.Context, id ID, use func(place) error) error {
	k, err := id.sum()
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrMissing)
	}
	tried := map[string]bool{}
	var first error
	for round := range 5 {
		for _, p := range s.places(k, round > 0) {
			if tried[p.key()] {
				continue
			}
			err := use(p)
			var taker writeError
			switch {
			case err == nil:
				return nil
			case errors.Is(err, fs.ErrNotExist):
				continue
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.As(err, &taker):
				return taker.error
			case errors.Is(err, ErrTooLarge):
				return fmt.Errorf("object %s: %w", id, err)
			}
			tried[p.key()] = true
			if first == nil {
				first = err
			}
		}
		if changed, err := s.refresh(true); err != nil {
			return fmt.Errorf("object %s: %w", id, err)
		} else if !changed && (round > 0 || first == nil) {
			break
		}
	}
	s.mu.RLock()
	bad := s.known.damaged()
	s.mu.RUnlock()
	switch {
	case first != nil:
		s.spoiled(k)
		if !errors.Is(first, ErrDamaged) {
			return fmt.Errorf("object %s %w: %w", id, ErrDamaged, first)
		}
		return fmt.Errorf("object %s: %w", id, first)
	case bad != "":
		return fmt.Errorf("object %s %w, or in %s, which %w", id, ErrMissing, bad, ErrDamaged)
	}
	return fmt.Errorf("object %s %w", id, ErrMissing)
}

// packed is a copy in a pack.
type packed struct {
	s *Store
	p *pack
	i int
}

func (c packed) key() string { return c.p.name }

func (c packed) use(ctx context.Context, use func(f *os.File, list []header) error) error {
	f, err := c.p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := c.p.chain(ctx, f, c.p.idx.offset(c.i))
	if err != nil {
		return err
	}
	return use(f, list)
}

// other finds a base that does not lie in the same pack. git leaves none such on
// the disk; one step is followed, not a chain.
func (c packed) other(ctx context.Context) func(sum) (Kind, []byte, error) {
	return func(id sum) (Kind, []byte, error) {
		for _, p := range c.s.places(id, true) {
			if l, ok := p.(loose); ok {
				return l.content(ctx, maxDelta)
			}
			if q, ok := p.(packed); ok && q.p != c.p {
				return q.whole(ctx)
			}
		}
		return "", nil, fmt.Errorf("%w: the base of a difference is missing", ErrDamaged)
	}
}

// whole reads an object whose chain does not leave its pack.
func (c packed) whole(ctx context.Context) (kind Kind, data []byte, err error) {
	err = c.use(ctx, func(f *os.File, list []header) error {
		kind, data, err = c.p.put(ctx, f, list, maxDelta, func(sum) (Kind, []byte, error) {
			return "", nil, fmt.Errorf("%w: the base of a difference is missing", ErrDamaged)
		})
		return err
	})
	return kind, data, err
}

func (c packed) stat(ctx context.Context) (kind Kind, size int64, err error) {
	err = c.use(ctx, func(f *os.File, list []header) error {
		base := list[len(list)-1]
		kind, size = kindOf(base.kind), base.size
		if len(list) == 1 && kind != "" {
			return nil
		}
		var data []byte
		kind, data, err = c.p.put(ctx, f, list, 0, c.other(ctx))
		size = int64(len(data))
		return err
	})
	return kind, size, err
}

func (c packed) content(ctx context.Context, limit int64) (kind Kind, data []byte, err error) {
	err = c.use(ctx, func(f *os.File, list []header) error {
		kind, data, err = c.p.put(ctx, f, list, limit, c.other(ctx))
		return err
	})
	return kind, data, err
}

func (c packed) copy(ctx context.Context, id ID, w io.Writer) error {
	return c.use(ctx, func(f *os.File, list []header) error {
		if k := kindOf(list[0].kind); k != "" {
			h := list[0]
			return inflate(io.NewSectionReader(f, h.data, max(c.p.end()-h.data, 0)), func(r io.Reader) error {
				return checked(ctx, id, k, h.size, w, r)
			})
		}
		kind, data, err := c.p.put(ctx, f, list, 0, c.other(ctx))
		if err != nil {
			return err
		}
		if hashOf(kind, data).ID() != id {
			return ErrDamaged
		}
		_, err = w.Write(data)
		return err
	})
}

// raw gives an entry as it lies in the pack, when it is whole.
func (c packed) raw(f *os.File) (entry io.Reader, crc uint32, whole bool, err error) {
	off := c.p.idx.offset(c.i)
	h, err := c.p.header(f, off)
	return io.NewSectionReader(f, off, c.p.length(off)), c.p.idx.crc(c.i), kindOf(h.kind) != "", err
}
