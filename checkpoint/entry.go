package checkpoint

import (
	"crypto/sha1" //nolint:gosec // git's names of contents, not a protection
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
)

// location is where a content can be read again.
type location byte

const (
	nowhere location = iota
	ours             // in the store
	theirs           // in the user's own git objects
)

// entry is one file as a survey saw it.
type entry struct {
	path  string // recorded
	stat  stat
	named bool  // blob, sum and size are those of its content
	read  int64 // when the reading began; Unix nanoseconds
	size  int64 // of the content: a file that grew since has another size
	blob  [sha1.Size]byte
	sum   [sha256.Size]byte
	held  location
}

func (e *entry) kind() string {
	switch {
	case e.stat.mode&fs.ModeSymlink != 0:
		return api.KindLink
	case e.stat.mode.IsRegular():
		return api.KindFile
	}
	return api.KindOther
}

// hash is the name of the content in the store.
func (e *entry) hash() content.Hash { return content.Hash(hex.EncodeToString(e.sum[:])) }

// sure reports that its stat alone proves it unchanged.
func (e *entry) sure() bool { return e.named && e.stat.settled(e.read) }

// take notes a content that was read.
func (e *entry) take(c *fileContent) {
	e.named, e.blob, e.sum, e.size, e.read = c.named, c.blob, c.sum, c.size, c.read
	if c.at.mode != 0 {
		e.stat = c.at
	}
	if !c.stable {
		e.read = 0 // never settled: it is read again each time
	}
}

// version is how the entry is recorded.
func (e *entry) version() api.FileVersion {
	v := api.FileVersion{Kind: e.kind()}
	switch v.Kind {
	case api.KindOther:
		return v
	case api.KindFile:
		v.Mode = uint32(e.stat.mode.Perm())
	}
	v.Size = e.stat.size
	if e.named {
		v.Size, v.Hash = e.size, hex.EncodeToString(e.sum[:])
		if e.held == ours {
			v.Blob = string(e.hash())
		}
	}
	return v
}

// differs reports whether a file is another one than before. Where a content was not
// read, its times must do.
func (e *entry) differs(o *entry) bool {
	if e.kind() != o.kind() {
		return true
	}
	if e.kind() == api.KindOther {
		return e.stat.mode.Type() != o.stat.mode.Type()
	}
	if e.kind() == api.KindFile && e.stat.mode.Perm() != o.stat.mode.Perm() {
		return true
	}
	if e.named && o.named {
		return e.sum != o.sum
	}
	a, b := e.stat, o.stat
	a.ctime, b.ctime = 0, 0 // a changed owner does not concern us
	return a != b
}

// scan is what a walk found.
type scan struct {
	list   []entry  // by path
	end    string   // the first path that was not visited any more; "" = all were
	closed []string // folders that could not be read, as recorded, with "/" at the end
	repos  []string // folders with a .git, as recorded; "." is the workspace itself
	known  []string // sorted: visited although rules hide them
	rules  map[string]*compiled
	dirs   []string  // folders, each with "/" at the end, in order
	made   time.Time // when a survey for a call was done
	full   bool      // the store cannot take everything that should be kept
	veiled []string  // the first paths that rules hide and no task knows, folders with "/" at the end
}

// gone is the record that nothing was at a path.
func (s *scan) gone(p string) api.FileVersion {
	v := api.FileVersion{Kind: api.KindGone}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, ok := slices.BinarySearch(s.dirs, dir+"/"); ok {
			break
		}
		v.Dirs++
	}
	return v
}

// find is where a path is in the list, or would be.
func (s *scan) find(p string) (int, bool) {
	return slices.BinarySearchFunc(s.list, p, func(e entry, p string) int { return strings.Compare(e.path, p) })
}

// has reports whether a path is in the list, or a folder that holds one.
func (s *scan) has(p string, dir bool) bool {
	if !dir {
		_, ok := s.find(p)
		return ok
	}
	i, _ := s.find(p + "/")
	return i < len(s.list) && strings.HasPrefix(s.list[i].path, p+"/")
}

// blind reports whether the walk could not see what was at a path.
func (s *scan) blind(p string) bool {
	if s.end != "" && p >= s.end {
		return true
	}
	for _, dir := range s.closed {
		if strings.HasPrefix(p, dir) {
			return true
		}
	}
	return false
}
