package content

import (
	"crypto/sha1" //nolint:gosec // as below
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
)

// OwnerName returns the name under which any text, such as a task's id, owns a manifest. A character that a file name
// cannot hold, or that a file system may fold by case, is written as %xx. A very long text is cut, and its hash is
// added.
func OwnerName(text string) string {
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
		h := sha1.Sum([]byte(text)) //nolint:gosec // a short name, not a protection
		name = name[:100] + "%%" + hex.EncodeToString(h[:])
	}
	return name
}

// checkOwner accepts what OwnerName returns.
func checkOwner(name string) error {
	ok := name != "" && len(name) <= 200 && name[0] != '.'
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '%')
	}
	if !ok {
		return fmt.Errorf("%q cannot own contents", name)
	}
	return nil
}

// Name returns the hash of an owner's manifest; ErrMissing without one.
func (s *Store) Name(owner string) (Hash, error) {
	if err := checkOwner(owner); err != nil {
		return "", err
	}
	data, err := os.ReadFile(s.path(namesDir, owner))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the name %s %w", owner, ErrMissing)
	}
	if err != nil {
		return "", err
	}
	h := Hash(strings.TrimSuffix(string(data), "\n"))
	if !h.Valid() {
		return "", fmt.Errorf("the name %s %w: it holds no hash", owner, ErrDamaged)
	}
	return h, nil
}

// Named is an owner's manifest and when it was set.
type Named struct {
	Manifest Hash
	At       time.Time
}

// Names returns the manifests of all owners. If some cannot be read, the others come with the error.
func (s *Store) Names() (map[string]Named, error) {
	list, err := readDir(s.path(namesDir))
	names := map[string]Named{}
	for _, d := range list {
		if checkOwner(d.Name()) != nil {
			continue // a temporary file
		}
		h, bad := s.Name(d.Name())
		if errors.Is(bad, ErrMissing) {
			continue // removed since
		}
		info, e := d.Info()
		if bad != nil || e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, bad, e)
			continue
		}
		n := Named{Manifest: h}
		if e == nil {
			n.At = info.ModTime()
		}
		names[d.Name()] = n
	}
	if err != nil {
		return names, fmt.Errorf("read the names of the content store: %w", err)
	}
	return names, nil
}

// SetName gives an owner a manifest that is in the store, durably. Until Settle the manifest stays held as well.
func (s *Store) SetName(owner string, h Hash) error {
	fail := func(err error) error { return fmt.Errorf("give content %s to %s: %w", h, owner, err) }
	k, err := h.key()
	if err = errors.Join(err, checkOwner(owner)); err != nil {
		return fail(err)
	}
	defer s.Keep()() // what relyOn finds is held
	if _, err := s.refresh(false); err != nil {
		return fail(err)
	}
	there, err := s.relyOn(k, true, true)
	if err == nil && !there {
		err = ErrMissing
	}
	if err == nil {
		err = s.writeName(owner, h)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func (s *Store) writeName(owner string, h Hash) error {
	f, err := s.tempFile()
	if err != nil {
		return err
	}
	if err = s.fault("write"); err == nil {
		_, err = f.WriteString(string(h) + "\n")
	}
	if err == nil {
		err = s.fault("sync")
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		failpoint.Hit("content.name.written")
		if err = s.fault("rename"); err == nil {
			err = atomicfile.Rename(f.Name(), s.path(namesDir, owner))
		}
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	failpoint.Hit("content.name.named")
	if err = s.fault("syncdir"); err == nil {
		err = atomicfile.SyncDir(s.path(namesDir))
	}
	return err
}

// RemoveName takes the manifest from an owner, durably. An owner without one is no error.
func (s *Store) RemoveName(owner string) error {
	err := checkOwner(owner)
	if err == nil {
		err = os.Remove(s.path(namesDir, owner))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err == nil {
		err = atomicfile.SyncDir(s.path(namesDir))
	}
	if err != nil {
		return fmt.Errorf("take the contents of %s: %w", owner, err)
	}
	return nil
}
