package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func fileSize(path string) int64 {
	if fi, err := os.Stat(path); err == nil {
		return fi.Size()
	}
	return 0
}

// remove takes packs and loose objects away; the caller holds the lock that lets him.
// A pack is gone with its index: that goes first. What cannot be removed, because
// somebody reads it where that is in the way, stays until the next time.
func (s *Store) remove(packs []*pack, files []sum) error {
	if len(packs) == 0 && len(files) == 0 {
		return nil
	}
	// Tables that a git may have made name objects that go now.
	for _, name := range []string{"info/commit-graph", "info/commit-graphs", "pack/multi-pack-index"} {
		if err := os.RemoveAll(s.path("objects", filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("remove what git derived: %w", err)
		}
	}
	for _, p := range packs {
		base := strings.TrimSuffix(p.path, ".pack")
		if err := os.Remove(base + ".idx"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, end := range []string{".rev", ".bitmap", ".mtimes", ".pack"} {
			_ = os.Remove(base + end)
		}
	}
	for _, id := range files {
		path := s.loose(id).path
		_ = os.Remove(path)
		_ = os.Remove(filepath.Dir(path)) // fails while something is in it
	}
	if _, err := s.refresh(true); err != nil {
		return err
	}
	return syncDir(s.packDir())
}

// orphans removes files of packs that have no index and that nobody is about to give
// one: their process was killed between two names.
func (s *Store) orphans(list []lease) error {
	files, err := readDir(s.packDir())
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, d := range files {
		has[d.Name()] = true
	}
	for _, d := range files {
		name := strings.TrimSuffix(d.Name(), filepath.Ext(d.Name()))
		lone := strings.HasPrefix(name, "pack-") && !has[name+".idx"] && !has[name+".keep"]
		if lone && ID(strings.TrimPrefix(name, "pack-")).Valid() && !relied(list, name) {
			_ = os.Remove(filepath.Join(s.packDir(), d.Name()))
		}
	}
	return nil
}

func relied(list []lease, name string) bool {
	return slices.ContainsFunc(list, func(l lease) bool { return slices.Contains(l.packs, name) })
}

// guarded reports whether a person asked git to leave a pack alone.
func (p *pack) guarded() bool {
	base := strings.TrimSuffix(p.path, ".pack")
	for _, end := range []string{".keep", ".promisor"} {
		if _, err := os.Lstat(base + end); err == nil {
			return true
		}
	}
	return false
}
