package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// known is what was seen of objects/pack. Ids of small packs are in one map, so that
// a thousand of them cost no more to look through than one; a large pack is searched
// in its own index.
type known struct {
	packs   map[string]*pack
	small   map[sum]packed
	large   []*pack
	bad     map[string]string // packs whose index cannot be read, and why
	spoiled map[sum]bool      // objects that were there and were not good
	fans    [256]bool         // which folders of loose objects there are
	stamp   time.Time         // when the folder changed last, as it was looked at
	seen    time.Time         // when that was
}

// smallPack is up to how many objects a pack's ids go to the map.
const smallPack = 1024

// largestIndex is the largest index that is read: 40 million objects.
const largestIndex = 1 << 30

func (k *known) damaged() string {
	for name, why := range k.bad {
		return name + " (" + why + ")"
	}
	return ""
}

// add takes a pack in. The caller holds the lock.
func (k *known) add(s *Store, p *pack) {
	k.packs[p.name] = p
	if p.idx.n > smallPack {
		k.large = append(k.large, p)
		return
	}
	for i := range p.idx.n {
		k.small[p.idx.id(i)] = packed{s, p, i}
	}
}

// find finds a copy in a pack. The caller holds the lock.
func (k *known) find(s *Store, id sum) (packed, bool) {
	if c, ok := k.small[id]; ok {
		return c, true
	}
	for _, p := range k.large {
		if i, ok := p.idx.find(id); ok {
			return packed{s, p, i}, true
		}
	}
	return packed{}, false
}

// places gives where an object lies: the first copy that is found in a pack and the
// loose one, which may not be there; or all.
func (s *Store) places(id sum, all bool) (list []place) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first, ok := s.known.find(s, id)
	if ok {
		list = append(list, first)
	}
	list = append(list, s.loose(id))
	if ok && all {
		for _, p := range s.known.packs {
			if i, ok := p.idx.find(id); ok && p != first.p {
				list = append(list, packed{s, p, i})
			}
		}
	}
	return list
}

// spoiled remembers that an object's copies are damaged: who has it writes it again.
func (s *Store) spoiled(id sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.spoiled == nil {
		s.known.spoiled = map[sum]bool{}
	}
	s.known.spoiled[id] = true
}

// current reports whether the folder is as it was looked at. Times of files are coarse:
// a look that was soon after a change may have missed the next one.
func (k *known) current(dir string) bool {
	fi, err := os.Stat(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && k.packs != nil && len(k.packs) == 0
	}
	coarse := 50 * time.Millisecond
	if k.stamp.Nanosecond() == 0 {
		coarse = 3 * time.Second
	}
	return k.packs != nil && fi.ModTime().Equal(k.stamp) && k.seen.Sub(k.stamp) > coarse
}

// refresh looks at objects/pack, unless it did so since the folder's last change.
func (s *Store) refresh(force bool) (changed bool, err error) {
	s.mu.RLock()
	current := !force && s.known.current(s.packDir())
	s.mu.RUnlock()
	if current {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var stamp time.Time
	if fi, err := os.Stat(s.packDir()); err == nil {
		stamp = fi.ModTime()
	}
	list, err := readDir(s.packDir())
	if err != nil {
		return false, fmt.Errorf("look at the packs: %w", err)
	}
	packs, bad := map[string]int64{}, map[string]string{}
	for _, d := range list {
		if name, ok := strings.CutSuffix(d.Name(), ".pack"); ok && strings.HasPrefix(name, "pack-") {
			if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
				packs[name] = fi.Size()
			}
		}
	}
	k := &s.known
	if k.packs == nil {
		k.packs, k.small, changed = map[string]*pack{}, map[sum]packed{}, true
	}
	var fresh []*pack
	for _, d := range list {
		name, ok := strings.CutSuffix(d.Name(), ".idx")
		size, there := packs[name]
		if !ok || !there || k.packs[name] != nil && k.packs[name].size == size {
			continue
		}
		p, err := s.load(name, size)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			bad[name] = err.Error()
		default:
			fresh = append(fresh, p)
		}
	}
	gone := false
	for name, p := range k.packs {
		if size, ok := packs[name]; !ok || size != p.size {
			delete(k.packs, name)
			gone = true
		}
	}
	if gone {
		k.small, k.large = map[sum]packed{}, nil
		for _, p := range k.packs {
			k.add(s, p)
		}
	}
	for _, p := range fresh {
		k.add(s, p)
	}
	k.bad, k.stamp, k.seen = bad, stamp, now
	k.fans = [256]bool{}
	if list, err := readDir(s.path("objects")); err == nil {
		for _, d := range list {
			if n := strings.IndexByte(hexes, first(d.Name(), 0))<<4 | strings.IndexByte(hexes, first(d.Name(), 1)); len(d.Name()) == 2 && n >= 0 {
				k.fans[n] = true
			}
		}
	}
	return changed || gone || len(fresh) > 0, nil
}

const hexes = "0123456789abcdef"

func first(s string, at int) byte {
	if at < len(s) {
		return s[at]
	}
	return 'x'
}

// load reads a pack's index.
func (s *Store) load(name string, size int64) (*pack, error) {
	path := filepath.Join(s.packDir(), name)
	fi, err := os.Stat(path + ".idx")
	if err != nil {
		return nil, err
	}
	if fi.Size() > largestIndex {
		return nil, fmt.Errorf("%s.idx: %w", name, ErrTooLarge)
	}
	data, err := os.ReadFile(path + ".idx")
	if err != nil {
		return nil, err
	}
	x, err := parseIndex(data)
	if err != nil {
		return nil, err
	}
	return &pack{name: name, path: path + ".pack", size: size, idx: x}, nil
}

// readDir lists a folder; one that is not there is empty.
func readDir(path string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// there reports whether an object can be relied on: what is held is found again
// under its hold. When look is set, packs that came since the last look count. The error
// says that it is not known, or could not be held: then it is not there to rely on.
func (s *Store) there(id sum, look bool) (bool, error) {
	for range 3 {
		s.mu.RLock()
		c, ok := s.known.find(s, id)
		fan := s.known.fans[id[0]]
		spoiled := s.known.spoiled[id]
		s.mu.RUnlock()
		switch {
		case spoiled:
			return false, nil
		case ok:
			err := s.rely(c.p.name)
			if err == nil {
				return true, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
			if _, err := s.refresh(true); err != nil {
				return false, err
			}
			continue
		case fan:
			if _, err := os.Stat(s.loose(id).path); err == nil {
				if err := s.rely(looseName); err != nil {
					return false, err
				}
				if _, err = os.Stat(s.loose(id).path); err == nil {
					return true, nil
				}
			}
		}
		if !look {
			return false, nil
		}
		if changed, err := s.refresh(false); err != nil || !changed {
			return false, err
		}
	}
	return false, nil
}
