package object

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// loose is an object in a file of its own. We write none; a git that a person runs does.
type loose struct{ path string }

func (s *Store) loose(id sum) loose {
	name := string(id.ID())
	return loose{filepath.Join(s.dir, "objects", name[:2], name[2:])}
}

func (l loose) key() string { return "loose" }

// use hands the content's stream and what its head says to use.
func (l loose) use(use func(kind Kind, size int64, r io.Reader) error) error {
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return inflate(f, func(r io.Reader) error {
		var head []byte
		for b := make([]byte, 1); ; {
			if _, err := io.ReadFull(r, b); err != nil || len(head) > 30 {
				return fmt.Errorf("%w: a loose object does not begin as one", ErrDamaged)
			}
			if b[0] == 0 {
				break
			}
			head = append(head, b[0])
		}
		word, number, _ := strings.Cut(string(head), " ")
		size, err := strconv.ParseInt(number, 10, 64)
		if kind := Kind(word); packKinds[kind] != 0 && err == nil && size >= 0 {
			return use(kind, size, r)
		}
		return fmt.Errorf("%w: a loose object begins with %q", ErrDamaged, head)
	})
}

func (l loose) stat(context.Context) (kind Kind, size int64, err error) {
	err = l.use(func(k Kind, n int64, _ io.Reader) error {
		kind, size = k, n
		return nil
	})
	return kind, size, err
}

func (l loose) content(ctx context.Context, limit int64) (kind Kind, data []byte, err error) {
	err = l.use(func(k Kind, n int64, r io.Reader) error {
		if limit > 0 && n > limit {
			return ErrTooLarge
		}
		kind = k
		data, err = take(ctx, r, n)
		return err
	})
	return kind, data, err
}

func (l loose) copy(ctx context.Context, id ID, w io.Writer) error {
	return l.use(func(k Kind, n int64, r io.Reader) error { return checked(ctx, id, k, n, w, r) })
}

// checked copies an object's content and compares it with its id: what fits in memory
// before any of it is written, so that another copy can take its place.
func checked(ctx context.Context, id ID, kind Kind, size int64, w io.Writer, r io.Reader) error {
	if size <= spill {
		data, err := take(ctx, r, size)
		if err != nil {
			return err
		}
		if hashOf(kind, data).ID() != id {
			return fmt.Errorf("%w: its content does not give its id", ErrDamaged)
		}
		_, err = w.Write(data)
		return err
	}
	h := sha1.New()
	h.Write(prefix(kind, size))
	if err := pour(ctx, io.MultiWriter(w, h), r, size); err != nil {
		return err
	}
	if want, err := id.sum(); err != nil || !bytes.Equal(h.Sum(nil), want[:]) {
		return fmt.Errorf("%w: its content does not give its id", ErrDamaged)
	}
	return nil
}

// looseIDs lists the loose objects.
func (s *Store) looseIDs() (list []sum, err error) {
	folders, err := readDir(s.path("objects"))
	for _, d := range folders {
		if len(d.Name()) != 2 || !d.IsDir() {
			continue
		}
		var files []fs.DirEntry
		if files, err = readDir(s.path("objects", d.Name())); err != nil {
			return nil, err
		}
		for _, f := range files {
			if id, err := ID(d.Name() + f.Name()).sum(); err == nil {
				list = append(list, id)
			}
		}
	}
	return list, err
}
