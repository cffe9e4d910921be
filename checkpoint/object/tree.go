package object

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Modes of tree entries. Git knows no others; the other permission bits of a file are
// not its to keep.
const (
	ModeFile       uint32 = 0o100644
	ModeExecutable uint32 = 0o100755
	ModeLink       uint32 = 0o120000
	ModeTree       uint32 = 0o040000
	ModeCommit     uint32 = 0o160000 // a submodule's commit, which lies elsewhere
)

// TreeEntry is one name in a tree.
type TreeEntry struct {
	Name string // one element of a path: see CheckName
	Mode uint32 // one of the modes above
	ID   ID
}

// encodeTree gives a tree's bytes. The order of the entries does not matter.
func encodeTree(entries []TreeEntry) ([]byte, error) {
	list := slices.Clone(entries)
	slices.SortFunc(list, func(a, b TreeEntry) int { return strings.Compare(a.key(), b.key()) })
	seen := make(map[string]bool, len(list))
	var out []byte
	for _, e := range list {
		if err := CheckName(e.Name); err != nil {
			return nil, fmt.Errorf("write a tree: %w", err)
		}
		if seen[e.Name] {
			return nil, fmt.Errorf("write a tree: %q is there twice", e.Name)
		}
		seen[e.Name] = true
		switch e.Mode {
		case ModeFile, ModeExecutable, ModeLink, ModeTree, ModeCommit:
		default:
			return nil, fmt.Errorf("write a tree: %q has mode %o, which git does not know", e.Name, e.Mode)
		}
		id, err := e.ID.sum()
		if err != nil {
			return nil, fmt.Errorf("write a tree: %q: %w", e.Name, err)
		}
		out = strconv.AppendUint(out, uint64(e.Mode), 8)
		out = append(out, ' ')
		out = append(out, e.Name...)
		out = append(out, 0)
		out = append(out, id[:]...)
	}
	return out, nil
}

// key sorts as git does: a folder as if its name ended in a slash.
func (e TreeEntry) key() string {
	if e.Mode == ModeTree {
		return e.Name + "/"
	}
	return e.Name
}

// ParseTree reads a tree's bytes. It takes what git takes, also modes of old
// versions; names are not checked.
func ParseTree(data []byte) ([]TreeEntry, error) {
	var list []TreeEntry
	err := eachEntry(data, func(mode uint32, name []byte, id sum) {
		list = append(list, TreeEntry{Name: string(name), Mode: mode, ID: id.ID()})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// eachEntry goes through a tree's bytes.
func eachEntry(data []byte, use func(mode uint32, name []byte, id sum)) error {
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte{' '})
		if !ok {
			return fmt.Errorf("a tree %w: an entry has no mode", ErrDamaged)
		}
		m, err := strconv.ParseUint(string(mode), 8, 32)
		if err != nil || len(mode) > 7 {
			return fmt.Errorf("a tree %w: %q is no mode", ErrDamaged, clip(mode))
		}
		name, rest, ok := bytes.Cut(rest, []byte{0})
		var id sum
		if !ok || len(name) == 0 || len(rest) < len(id) {
			return fmt.Errorf("a tree %w: an entry is cut off", ErrDamaged)
		}
		copy(id[:], rest)
		use(uint32(m), name, id)
		data = rest[len(id):]
	}
	return nil
}

func clip(b []byte) []byte { return b[:min(len(b), 20)] }
