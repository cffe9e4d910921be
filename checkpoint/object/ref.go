package object

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
)

// RefName gives a ref's name for any text, such as a task's id: refs/roost/ and
// the text, with what a ref's name or a file system's case cannot hold written as %xx.
// A very long text is cut, and told apart by its hash.
func RefName(text string) string {
	plain := func(i int) bool {
		if i < 0 || i >= len(text) {
			return false
		}
		c := text[i]
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
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
	name := b.String()
	if name == "" {
		name = "%"
	}
	if len(name) > 200 {
		h := sha1.Sum([]byte(text))
		name = name[:100] + "%%" + hex.EncodeToString(h[:])
	}
	return "refs/roost/" + name
}

// checkRef tells whether git takes a ref's name. The error is ErrName.
func checkRef(name string) error {
	rest, ok := strings.CutPrefix(name, "refs/")
	for part := range strings.SplitSeq(rest, "/") {
		ok = ok && part != "" && part[0] != '.' && !strings.HasSuffix(part, ".lock") && !strings.HasSuffix(part, ".")
	}
	for i := range len(name) {
		ok = ok && name[i] > ' ' && name[i] != 0x7f && !strings.ContainsRune(`~^:?*[\`, rune(name[i]))
	}
	if !ok || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return fmt.Errorf("%q %w for a ref", name, ErrName)
	}
	return nil
}

func (s *Store) refPath(name string) string { return s.path(filepath.FromSlash(name)) }

// Ref gives what a ref names; ErrMissing when there is none.
func (s *Store) Ref(name string) (ID, error) {
	if err := checkRef(name); err != nil {
		return "", err
	}
	id, err := s.resolve(name)
	if err != nil {
		return "", fmt.Errorf("ref %s %w", name, err)
	}
	return id, nil
}

// resolve reads a ref or HEAD, through names that stand for others.
func (s *Store) resolve(name string) (ID, error) {
	for range 5 {
		text, err := readSmall(s.refPath(name))
		if err != nil {
			return "", err
		}
		if text == nil {
			packed, err := s.packedRefs()
			if err != nil {
				return "", err
			}
			if id, ok := packed[name]; ok {
				return id, nil
			}
			return "", ErrMissing
		}
		other, ok := strings.CutPrefix(string(text), "ref:")
		if !ok {
			id := ID(bytes.TrimSpace(text))
			if !id.Valid() {
				return "", fmt.Errorf("%w: it names no object", ErrDamaged)
			}
			return id, nil
		}
		name = strings.TrimSpace(other)
		if err := checkRef(name); err != nil {
			return "", fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return "", fmt.Errorf("%w: it leads in a circle", ErrDamaged)
}

// readSmall reads a ref's file; nil when there is none.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		return nil, nil
	}
	b := make([]byte, 4096)
	n, err := f.Read(b)
	if n == 0 && err != nil {
		return nil, fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	return b[:n], nil
}

// packedRefs reads the table that git makes of refs.
func (s *Store) packedRefs() (map[string]ID, error) {
	text, err := os.ReadFile(s.path("packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	refs := map[string]ID{}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' || line[0] == '^' {
			continue
		}
		id, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if !ok || !ID(id).Valid() {
			return nil, fmt.Errorf("packed-refs %w: a line is no ref", ErrDamaged)
		}
		refs[name] = ID(id)
	}
	return refs, nil
}

// Refs gives all refs by their full names. When some cannot be read, the others
// come with the error.
func (s *Store) Refs() (map[string]ID, error) {
	// First the files, then the table: git moves a ref in the other direction.
	refs := map[string]ID{}
	var bad []error
	err := filepath.WalkDir(s.path("refs"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || d.IsDir():
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		name := filepath.ToSlash(rel)
		if err != nil || checkRef(name) != nil {
			return err // a lock, or somebody's temporary file
		}
		id, err := s.resolve(name)
		switch {
		case err == nil:
			refs[name] = id
		case !errors.Is(err, ErrMissing):
			bad = append(bad, fmt.Errorf("ref %s %w", name, err))
		}
		return nil
	})
	packed, e := s.packedRefs()
	for name, id := range packed {
		if _, ok := refs[name]; !ok {
			refs[name] = id
		}
	}
	return refs, errors.Join(append(bad, err, e)...)
}

// SetRef makes a ref name an object that is in the store, durably. Until Settle
// the object is held as well.
func (s *Store) SetRef(name string, id ID) error {
	fail := func(err error) error { return fmt.Errorf("set ref %s to %s: %w", name, id, err) }
	if err := checkRef(name); err != nil {
		return err
	}
	if _, err := os.Stat(s.dir); err != nil || !id.Valid() {
		return fail(fmt.Errorf("the object %w", ErrMissing))
	}
	if err := s.make(); err != nil {
		return err
	}
	defer s.Keep()() // Has holds it
	if !s.Has(id) {
		return fail(fmt.Errorf("the object %w", ErrMissing))
	}
	return s.changeRef(func() error {
		if old, err := s.resolve(name); err == nil && old == id {
			return nil
		}
		if err := s.replace(name, []byte(string(id)+"\n")); err != nil {
			return fail(err)
		}
		return nil
	})
}

// DeleteRef removes a ref, durably. One that is not there is no error.
func (s *Store) DeleteRef(name string) error {
	if err := checkRef(name); err != nil {
		return err
	}
	if _, err := os.Stat(s.path("roost", "tmp")); errors.Is(err, fs.ErrNotExist) {
		if _, err := s.resolve(name); errors.Is(err, ErrMissing) {
			return nil
		}
		if err := s.make(); err != nil {
			return err
		}
	}
	return s.changeRef(func() error {
		packed, err := s.packedRefs()
		if err == nil && packed[name] != "" {
			err = s.unpack(name)
		}
		if err == nil {
			// Where the table still had it, an older value would come back: the table first.
			if err = os.Remove(s.refPath(name)); err == nil {
				err = syncDir(filepath.Dir(s.refPath(name)))
			} else if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("delete ref %s: %w", name, err)
		}
		return nil
	})
}

// unpack takes a ref out of git's table.
func (s *Store) unpack(name string) error {
	text, err := os.ReadFile(s.path("packed-refs"))
	if err != nil {
		return err
	}
	var out []byte
	dropped := false
	for line := range bytes.Lines(text) {
		if line[0] != '^' { // what a tag leads to stands behind it
			_, rest, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte{' '})
			dropped = line[0] != '#' && string(rest) == name
		}
		if !dropped {
			out = append(out, line...)
		}
	}
	return s.replace("packed-refs", out)
}

// changeRef runs one change of refs at a time.
func (s *Store) changeRef(change func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	free, err := s.lock(ctx, lockRefs, true)
	if err != nil {
		return err
	}
	defer free()
	// A process that was killed in a change left its lock file: it said so before.
	pending := s.path("roost", "pending")
	if name, err := readSmall(pending); err == nil && len(name) > 0 && (string(name) == "packed-refs" || checkRef(string(name)) == nil) {
		_ = os.Remove(s.refPath(string(name)) + ".lock")
	}
	err = change()
	if e := os.Remove(pending); err == nil && e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = e
	}
	return err
}

// replace writes a ref's file as git does: under name.lock, which a git that is at
// work respects.
func (s *Store) replace(name string, data []byte) error {
	path := s.refPath(name)
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for up := filepath.Dir(dir); len(up) >= len(s.dir); up = filepath.Dir(up) {
			if err := syncDir(up); err != nil {
				return err
			}
		}
	}
	f, err := s.lockFile(name)
	if err != nil {
		return err
	}
	failpoint.Hit("object.ref.locked")
	err = s.fault("write")
	if err == nil {
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	failpoint.Hit("object.ref.named")
	return syncDir(dir)
}

// lockFile makes name.lock. One of somebody else's is waited for, and taken away when
// it is old: a git holds it for an instant.
func (s *Store) lockFile(name string) (*os.File, error) {
	path := s.refPath(name) + ".lock"
	if err := os.WriteFile(s.path("roost", "pending"), []byte(name), 0o600); err != nil {
		return nil, err
	}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		fi, e := os.Stat(path)
		if e == nil && time.Since(fi.ModTime()) > time.Minute {
			_ = os.Remove(path)
		} else if time.Now().After(end) {
			return nil, fmt.Errorf("another program changes it; when none does, remove %s: %w", path, err)
		}
	}
}
