package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Manifest names contents that belong together, and the manifests before it. It is a content itself.
type Manifest struct {
	Title   string `json:"title,omitempty"`
	At      int64  `json:"at,omitempty"` // Unix milliseconds
	Parents []Hash `json:"parents,omitempty"`
	Files   []File `json:"files,omitempty"`
}

// File is one path of a manifest and the content it had. Collect follows Hash only; the other fields are for people
// that read a manifest.
type File struct {
	Path   string `json:"path,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Mode   string `json:"mode,omitempty"` // octal
	Hash   Hash   `json:"hash,omitempty"` // "" = no content was kept
	Before bool   `json:"before,omitempty"`
}

// maxManifest is the largest manifest that is read, in bytes; it bounds memory. A file of a manifest takes about 150
// bytes, so this is more than a million files.
const maxManifest = 256 << 20

// names are the contents and manifests that a manifest names.
func (m *Manifest) names() (list []key, err error) {
	add := func(h Hash) {
		k, bad := h.key()
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

// Manifest reads a manifest.
func (s *Store) Manifest(ctx context.Context, h Hash) (Manifest, error) {
	var m Manifest
	data, err := s.Read(ctx, h, maxManifest)
	if err != nil {
		return m, err
	}
	if err = json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("content %s %w: it is not a manifest: %w", h, ErrDamaged, err)
	}
	return m, nil
}

// walker visits everything that manifests reach.
type walker struct {
	s     *Store
	seen  map[key]bool
	bytes int64 // stored size of what was seen
}

// walk marks what roots reach. With strict, a missing content is ErrDamaged; otherwise it is skipped. An unreadable
// manifest is always an error.
func (w *walker) walk(ctx context.Context, roots []key, strict bool) error {
	fresh := false
	todo := append([]key(nil), roots...)
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.seen[k] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		row, ok := w.s.row(k)
		if !ok && !fresh { // it may have come after the last reading of the folder
			fresh = true
			if _, err := w.s.refresh(true); err != nil {
				return err
			}
			row, ok = w.s.row(k)
		}
		if !ok {
			if !strict {
				continue
			}
			return fmt.Errorf("a content that is still needed is missing, so nothing may be removed: %w: content %s", ErrDamaged, k.hash())
		}
		if row.manifest {
			m, err := w.s.Manifest(ctx, k.hash())
			if err != nil {
				return err
			}
			more, err := m.names()
			if err != nil {
				return fmt.Errorf("manifest %s %w: %w", k.hash(), ErrDamaged, err)
			}
			todo = append(todo, more...)
		}
		w.seen[k] = true
		w.bytes += row.stored
	}
	return nil
}

// Reaches counts the contents that an owner's manifest reaches and the bytes that they take on disk. Contents that
// other owners reach too are counted.
func (s *Store) Reaches(ctx context.Context, owner string) (contents int, bytes int64, err error) {
	h, err := s.Name(owner)
	if err != nil {
		return 0, 0, err
	}
	k, err := h.key()
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.refresh(false); err != nil {
		return 0, 0, err
	}
	w := walker{s: s, seen: map[key]bool{}}
	if err := w.walk(ctx, []key{k}, true); err != nil {
		return 0, 0, fmt.Errorf("what %s reaches: %w", owner, err)
	}
	return len(w.seen), w.bytes, nil
}
