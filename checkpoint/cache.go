package checkpoint

import (
	"crypto/sha1" //nolint:gosec // git's names of contents, not a protection
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task/codec"
	"github.com/roost-dev/roost/workspace"
)

// scan is the result of a walk.
type scan struct {
	list   []entry  // by path
	end    string   // the first path that was not visited; "" = all were visited
	closed []string // folders that could not be read, as recorded, with "/" at the end
	repos  []string // folders with a .git, as recorded; "." is the workspace itself
	known  []string // sorted: paths that were visited although rules hide them
	rules  map[string]*compiled
	dirs   []string  // folders, each with "/" at the end, in order
	made   time.Time // when a survey for a call was made
	full   bool      // the store has no room for everything that should be kept
	veiled []string  // the first paths that rules hide and no task knows, folders with "/" at the end
}

// gone returns the record that nothing was at a path.
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

// find returns the index of a path in the list, or the index at which it would be inserted.
func (s *scan) find(p string) (int, bool) {
	return slices.BinarySearchFunc(s.list, p, func(e entry, p string) int { return strings.Compare(e.path, p) })
}

// blind reports whether the walk could not examine a path.
func (s *scan) blind(p string) bool {
	below := func(dir string) bool { return strings.HasPrefix(p, dir) }
	return s.end != "" && p >= s.end || slices.ContainsFunc(s.closed, below)
}

// compiled holds the rules of one file, and the state in which the file was read.
type compiled struct {
	stat  stat
	read  int64
	text  string
	rules *workspace.Ignore
}

// entry is one file in a survey.
type entry struct {
	path  string // recorded
	stat  stat
	named bool  // blob, sum and size are known for its content
	read  int64 // when the reading began; Unix nanoseconds
	size  int64 // of the content: a file that grew since has another size
	blob  [sha1.Size]byte
	sum   [sha256.Size]byte
	held  location
}

// location is a place from which a content can be read again.
type location byte

const (
	nowhere location = iota
	ours             // in the store
	theirs           // in the user's own git objects
)

func (e *entry) kind() string {
	switch {
	case e.stat.mode&fs.ModeSymlink != 0:
		return api.KindLink
	case e.stat.mode.IsRegular():
		return api.KindFile
	}
	return api.KindOther
}

// hash returns the name of the content in the store.
func (e *entry) hash() content.Hash { return content.Hash(hex.EncodeToString(e.sum[:])) }

// sure reports whether the entry's stat alone proves that the file has not changed.
func (e *entry) sure() bool { return e.named && e.stat.settled(e.read) }

// take records a content that was read.
func (e *entry) take(c *fileContent) {
	e.named, e.blob, e.sum, e.size, e.read = c.named, c.blob, c.sum, c.size, c.read
	if c.at.mode != 0 {
		e.stat = c.at
	}
	if !c.stable {
		e.read = 0 // never settled: it is read again each time
	}
}

// version returns the entry in the form in which a checkpoint records it.
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

// differs reports whether a file changed. It compares the stats where a content was not read.
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
	a.ctime, b.ctime = 0, 0 // a changed owner is no change of the file
	return a != b
}

// The newest survey is stored with the objects, so that the first survey of the next process need not read every file
// again. It is derived and may be deleted; a damaged one, or one of another version, counts as missing. The last
// written one wins: its data about a file is used only while the file's stat is unchanged.
const (
	cacheName  = "survey"
	cacheMagic = "roost survey 1\n"
	maxCache   = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The survey before a command is also a file with the objects, one for each running command: when the program is
// killed with the command, a comparison with that file finds what the command changed. It is removed when the
// command's outcome is recorded. The newest survey cannot serve for that, because any task of the workspace replaces
// it.
//
// It is synced: the commit that begins the call comes after it, and if a power cut took the survey, the command's
// changes would be unknown. That costs a few milliseconds on top of the survey itself. If the file is lost all the
// same, only files that the task knew are compared, and their changes count as those of another author.
const (
	beforeName  = "before-"
	beforeMagic = "roost survey before a command 2\n"
)

// beforeFile returns the path of the file for one call. Ids of calls may be no valid file names.
func beforeFile(dir, task, call string) string {
	return filepath.Join(dir, beforeOf(OwnerOf(task))+short(call))
}

// beforeOf returns the beginning of the names of an owner's files. The prefix is that of earlier versions.
func beforeOf(owner string) string { return beforeName + short("refs/roost/"+owner) + "-" }

func short(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:10])
}

// befores returns the files in a folder whose names begin with want.
func befores(dir, want string) []string {
	names, _ := fs.Glob(os.DirFS(dir), want+"*") // a folder that cannot be read has none
	return api.Each(names, func(name string) string { return filepath.Join(dir, name) })
}

// SweepCalls removes from a store's folder the surveys of interrupted commands whose tasks are not among the living
// owners. Files younger than young stay: their task may not be created yet.
func SweepCalls(dir string, living map[string]bool, young time.Duration) {
	keep := map[string]bool{}
	for owner := range living {
		keep[strings.TrimSuffix(beforeOf(owner), "-")] = true
	}
	for _, name := range befores(dir, beforeName) {
		base := filepath.Base(name)
		if keep[base[:strings.LastIndexByte(base, '-')]] {
			continue
		}
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > young {
			_ = os.Remove(name) // or the next sweep does
		}
	}
}

// ForgetCalls removes the surveys of an owner's interrupted commands from a store's folder.
func ForgetCalls(dir, owner string) {
	for _, name := range befores(dir, beforeOf(owner)) {
		_ = os.Remove(name) // or a collection does
	}
}

// relied returns the contents in the store of a folder on which its surveys rely: the newest one, and those of running
// or interrupted commands.
func relied(dir string) (hashes []content.Hash) {
	for _, name := range append(befores(dir, beforeName), filepath.Join(dir, cacheName)) {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		list, _ := decodeCache(data)
		if base, ok := decodeBefore(data, ""); ok {
			list = base.list
		}
		for i := range list {
			if e := &list[i]; e.held == ours {
				hashes = append(hashes, e.hash())
			}
		}
	}
	return hashes
}

func encodeBefore(call string, sc *scan) []byte {
	w := codec.NewWriter([]byte(beforeMagic))
	texts := func(list []string) {
		w.Uint(uint64(len(list)))
		for _, s := range list {
			w.Bytes([]byte(s))
		}
	}
	w.Bytes([]byte(call))
	w.Out = binary.LittleEndian.AppendUint64(w.Out, uint64(sc.made.UnixNano()))
	w.Bytes([]byte(sc.end))
	texts(sc.closed)
	texts(sc.known)
	texts(sc.dirs)
	keys := slices.Sorted(maps.Keys(sc.rules))
	texts(keys)
	for _, key := range keys {
		w.Bytes([]byte(sc.rules[key].text))
	}
	return summed(append(w.Out, encodeCache(sc.list)...))
}

// decodeBefore reads what encodeBefore wrote. It returns false for another call's survey, unless call is "".
func decodeBefore(data []byte, call string) (*scan, bool) {
	u, ok := unsummed(data, beforeMagic)
	if !ok {
		return nil, false
	}
	text := func() string { return string(u.Bytes()) }
	texts := func() (list []string) {
		for range u.Count() {
			list = append(list, text())
		}
		return list
	}
	if whose := text(); call != "" && whose != call {
		return nil, false
	}
	made := make([]byte, 8)
	copy(made, u.Take(len(made)))
	sc := &scan{
		made:   time.Unix(0, int64(binary.LittleEndian.Uint64(made))),
		end:    text(),
		closed: texts(),
		known:  texts(),
		dirs:   texts(),
		rules:  map[string]*compiled{},
	}
	for _, key := range texts() {
		rules := text()
		sc.rules[key] = &compiled{text: rules, rules: workspace.ParseIgnore(rules, false)}
	}
	if u.Bad || !slices.IsSorted(sc.known) || !slices.IsSorted(sc.dirs) {
		return nil, false
	}
	sc.list, ok = decodeCache(u.Rest())
	return sc, ok
}

func encodeCache(list []entry) []byte {
	w := codec.NewWriter([]byte(cacheMagic))
	w.Uint(uint64(len(list)))
	for i := range list {
		e := &list[i]
		w.Bytes([]byte(e.path))
		w.Uint(uint64(e.stat.mode))
		w.Int(e.stat.size)
		w.Int(e.stat.mtime)
		w.Int(e.stat.ctime)
		w.Uint(e.stat.inode)
		w.Uint(e.stat.device)
		if !e.named {
			w.Uint(0)
			continue
		}
		w.Uint(1 + uint64(e.held))
		w.Int(e.read)
		w.Int(e.size)
		w.Out = append(append(w.Out, e.blob[:]...), e.sum[:]...)
	}
	return summed(w.Out)
}

func decodeCache(data []byte) ([]entry, bool) {
	u, ok := unsummed(data, cacheMagic)
	if !ok {
		return nil, false
	}
	n := u.Count()
	list := make([]entry, 0, n/8) // an entry takes more than eight bytes
	for range n {
		e := entry{path: string(u.Bytes())}
		e.stat = stat{
			mode:   fs.FileMode(u.Uint()),
			size:   u.Int(),
			mtime:  u.Int(),
			ctime:  u.Int(),
			inode:  u.Uint(),
			device: u.Uint(),
		}
		if held := u.Uint(); held > 0 {
			e.named, e.held, e.read, e.size = true, location(held-1), u.Int(), u.Int()
			copy(e.blob[:], u.Take(len(e.blob)))
			copy(e.sum[:], u.Take(len(e.sum)))
		}
		if u.Bad || e.held > theirs || len(list) > 0 && list[len(list)-1].path >= e.path {
			return nil, false
		}
		list = append(list, e)
	}
	return list, len(u.Rest()) == 0
}

// summed appends a checksum to b.
func summed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unsummed reads data that begins with magic and ends with its checksum.
func unsummed(data []byte, magic string) (u codec.Reader, ok bool) {
	n := len(data) - 4
	if n < len(magic) || string(data[:len(magic)]) != magic || crc32.Checksum(data[:n], castagnoli) != cacheSum(data) {
		return u, false
	}
	return codec.Reader{In: data[len(magic):n]}, true
}

// cacheSum returns the checksum at the end of a survey. A checksum over all bytes would be the same for every survey:
// that is a property of data followed by its own checksum.
func cacheSum(data []byte) uint32 { return binary.LittleEndian.Uint32(data[len(data)-4:]) }
