package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // git's names of contents, not a protection
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/codec"
	"github.com/roost-dev/roost/workspace"
)

// Survey is the state of the workspace before a command.
type Survey struct {
	k       *Keeper
	base    *scan
	unheld  Unheld
	release func() // lets the store remove what no ref reaches

	file  string        // where it is stored; "" = nowhere
	until time.Time     // when the command was last seen running; zero = the owner of the survey runs it
	took  time.Duration // how long the command ran
}

// Unheld is what a command may change and no checkpoint could bring back.
type Unheld struct {
	Files   int
	Bytes   int64
	Names   []string // of the largest, at most five, largest first
	Folders []string // that could not be looked into
	Cut     bool     // there are more files than the limit
	Full    bool     // the store has reached its limit (Options.MaxStore)
	Trouble error    // why nothing more could be kept; nil when only caps kept it out

	// Paths that .gitignore hides and no task knows, at most five and those nearest to the top; folders end in "/". Any
	// and String leave them out: they exist before every command.
	Hidden     []string
	MoreHidden bool
}

// Any reports whether anything could not be brought back.
func (u Unheld) Any() bool { return u.Files > 0 || len(u.Folders) > 0 || u.Cut || u.Trouble != nil }

// String describes it: "3 files (1.2 GB) that could not be brought back: a.bin, ...".
func (u Unheld) String() string {
	var parts []string
	if u.Files > 0 {
		s := fmt.Sprintf("%s (%s) that could not be brought back: %s", counted(u.Files, "file"), byteSize(u.Bytes),
			strings.Join(u.Names, ", "))
		if u.Files > len(u.Names) {
			s += ", ..."
		}
		if u.Full {
			s += " (the store of checkpoints is full: roost checkpoint gc may make room, or a larger checkpoint_store)"
		}
		parts = append(parts, s)
	}
	if n := len(u.Folders); n > 0 {
		s := counted(n, "folder") + " that may not be read: " + strings.Join(u.Folders[:min(n, 5)], ", ")
		if n > 5 {
			s += ", ..."
		}
		parts = append(parts, s)
	}
	if u.Cut {
		parts = append(parts, "more files than are looked at")
	}
	if u.Trouble != nil {
		parts = append(parts, "files whose contents cannot be kept ("+u.Trouble.Error()+")")
	}
	return strings.Join(parts, "; ")
}

// HiddenText names what is hidden: ".env, node_modules/, ..."; "" is nothing.
func (u Unheld) HiddenText() string {
	s := strings.Join(u.Hidden, ", ")
	if u.MoreHidden {
		s += ", ..."
	}
	return s
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func byteSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Survey examines the workspace before a command, and keeps what the command might change, as far as it exists nowhere
// else and the limits allow. Unheld lists what it could not keep; the caller reports that before the command runs.
// Files that .gitignore hides are left out unless they are known (see Know) or in a repository's index.
//
// It belongs to one command: Changes or Close ends it.
func (k *Keeper) Survey(ctx context.Context) (*Survey, error) {
	s := &Survey{k: k, release: sync.OnceFunc(k.store.Keep())}
	err := k.withTurn(ctx, func() error {
		if err := k.carryFirst(ctx); err != nil {
			return err
		}
		k.load()
		sc, trouble, err := k.scan(ctx, nil)
		if err != nil {
			return err
		}
		s.base, s.unheld = sc, sc.unheld(trouble)
		return nil
	})
	if err != nil {
		s.release()
		return nil, fmt.Errorf("look at the files of %s before a command: %w", k.w.Root(), err)
	}
	return s, nil
}

// withTurn runs do when no other survey is under way.
func (k *Keeper) withTurn(ctx context.Context, do func() error) error {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-k.turn }()
	return do()
}

// Unheld is what could not be brought back.
func (s *Survey) Unheld() Unheld { return s.unheld }

// Close ends a survey whose command was not run. After Changes it does nothing.
func (s *Survey) Close() { s.release() }

func (s *scan) unheld(trouble error) Unheld {
	u := Unheld{Cut: s.end != "", Full: s.full, Trouble: trouble}
	for _, dir := range s.closed {
		u.Folders = append(u.Folders, shown(strings.TrimSuffix(dir, "/")))
	}
	var large []*entry
	for i := range s.list {
		e := &s.list[i]
		if e.held != nowhere || e.kind() == api.KindOther {
			continue
		}
		u.Files++
		u.Bytes += e.stat.size
		large = append(large, e)
	}
	slices.SortStableFunc(large, func(a, b *entry) int { return int(min(max(b.stat.size-a.stat.size, -1), 1)) })
	for _, e := range large[:min(5, len(large))] {
		u.Names = append(u.Names, shown(e.path))
	}
	hidden := slices.DeleteFunc(slices.Clone(s.veiled), func(p string) bool { _, ok := s.find(p); return ok }) // an index names it
	slices.SortStableFunc(hidden, func(a, b string) int { return depth(a) - depth(b) })
	for _, p := range hidden[:min(5, len(hidden))] {
		u.Hidden = append(u.Hidden, shown(p))
	}
	u.MoreHidden = len(hidden) > len(u.Hidden)
	return u
}

// depth is how many folders are above a path.
func depth(p string) int { return strings.Count(strings.TrimSuffix(p, "/"), "/") }

// shown is a recorded path as a person may see it in one line.
func shown(p string) string {
	return strings.Map(func(r rune) rune {
		if isStrange(r) || r < ' ' || r == 0x7F {
			return '?'
		}
		return r
	}, p)
}

// Changes is what differs after the command: what was there and what is there now, in the order of paths. Contents that
// are named (Blob) are durable when it returns. With an error that wraps ErrUnkept the list is correct, but some
// contents could not be kept.
//
// It includes changes that others made while the command ran: see Whose. The command has ended when it is called.
func (s *Survey) Changes(ctx context.Context) ([]task.CheckpointFile, error) {
	defer s.release()
	if s.until.IsZero() && !s.base.made.IsZero() {
		s.took = time.Since(s.base.made)
	}
	k := s.k
	var out []task.CheckpointFile
	var trouble error
	err := k.withTurn(ctx, func() error {
		after, t, err := k.scan(ctx, s.base)
		if err != nil {
			return err
		}
		changed := s.compare(after)
		if len(changed) == 0 {
			return nil
		}
		trouble = errors.Join(t, k.fetch(ctx, changed))
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, c := range changed {
			was, now := s.base.gone(c.path), after.gone(c.path)
			if c.was != nil {
				was = c.was.version()
			}
			if c.now != nil {
				now = c.now.version()
			}
			out = append(out, task.CheckpointFile{Path: c.path, Was: &was, Now: now})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the files of %s after a command: %w", k.w.Root(), err)
	}
	for _, f := range out {
		k.Know(f.Path)
		k.noteHeld(*f.Was, f.Now)
	}
	if trouble != nil {
		return out, fmt.Errorf("%w: %w", ErrUnkept, trouble)
	}
	return out, nil
}

// change is one path that differs; nil stands for nothing there.
type change struct {
	path     string
	was, now *entry
}

// compare goes through both lists at once. What one of the walks could not see does not count as added or removed.
func (s *Survey) compare(after *scan) (out []change) {
	a, b := s.base.list, after.list
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].path < b[0].path:
			if !after.blind(a[0].path) {
				out = append(out, change{path: a[0].path, was: copied(a[0])})
			}
			a = a[1:]
		case len(a) == 0 || b[0].path < a[0].path:
			if !s.base.blind(b[0].path) {
				out = append(out, change{path: b[0].path, now: copied(b[0])})
			}
			b = b[1:]
		default:
			if a[0].differs(&b[0]) {
				out = append(out, change{path: a[0].path, was: copied(a[0]), now: copied(b[0])})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

func copied(e entry) *entry { return &e }

// fetch copies what changed, and only the user's git objects have, into the store.
func (k *Keeper) fetch(ctx context.Context, changed []change) error {
	want := map[[20]byte][]*entry{}
	var ids [][20]byte
	for _, c := range changed {
		for _, e := range []*entry{c.was, c.now} {
			if e == nil || e.held != theirs {
				continue
			}
			if k.store.Has(e.hash()) {
				e.held = ours
				continue
			}
			e.held = nowhere // until it is here
			if want[e.blob] == nil {
				ids = append(ids, e.blob)
			}
			want[e.blob] = append(want[e.blob], e)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	room, err := k.room()
	if err != nil {
		return err
	}
	room = min(room, k.o.MaxRead)
	b, err := k.begin(ctx)
	if err != nil {
		return err
	}
	defer b.Discard()
	var got [][20]byte
	err = k.git.copy(ctx, ids, func(id [20]byte, size int64, from io.Reader) error {
		if size > room {
			return nil
		}
		rd := newReader(0)
		rd.begin(size)
		src := &source{r: from}
		name, err := b.AddFrom(io.TeeReader(src, io.MultiWriter(rd.sha1, rd.sha2)), size)
		if errors.Is(err, content.ErrLength) || err != nil && src.err != nil {
			return nil // git ended early
		}
		if err != nil {
			return err
		}
		var c fileContent
		rd.end(&c)
		// What git returned is what the file held, by both names.
		if e := want[id][0]; c.hash() == name && c.blob == id && c.sum == e.sum {
			room -= size
			got = append(got, id)
		}
		return nil
	})
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		return err
	}
	for _, id := range got {
		for _, e := range want[id] {
			e.held = ours
		}
	}
	return nil
}

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
	below := func(dir string) bool { return strings.HasPrefix(p, dir) }
	return s.end != "" && p >= s.end || slices.ContainsFunc(s.closed, below)
}

// The newest survey is stored with the objects, so that the first survey of the next process need not read every file
// again. It is derived and may be deleted; a damaged one, or one of another version, counts as missing. The last one
// written wins: its data on a file is used only while the file looks the same.
const (
	cacheName  = "survey"
	cacheMagic = "roost survey 1\n"
	maxCache   = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// load takes over the survey of an earlier process, once.
func (k *Keeper) load() {
	if k.loaded {
		return
	}
	k.loaded = true
	k.sweep()
	name := filepath.Join(k.dir, cacheName)
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return
	}
	if list, ok := decodeCache(data); ok {
		k.last = &scan{list: list}
		k.stored = cacheSum(data)
	}
}

// sweep removes temporary files that killed processes left.
func (k *Keeper) sweep() {
	names, _ := filepath.Glob(filepath.Join(k.dir, cacheName+"-*.tmp")) // an odd path costs a file
	more, _ := filepath.Glob(filepath.Join(k.dir, "."+beforeName+"*.tmp"))
	for _, name := range append(names, more...) {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(name)
		}
	}
}

// remember stores the newest survey when it differs from the stored one. A failure costs time at the next start, and
// nothing else.
func (k *Keeper) remember() {
	data := encodeCache(k.last.list)
	sum := cacheSum(data)
	if sum == k.stored {
		return
	}
	k.stored = sum
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return
	}
	_ = atomicfile.WriteDerived(filepath.Join(k.dir, cacheName), cacheName+"-*.tmp", data)
}

// surveyed are the contents in the store of a folder that the newest survey relies on.
func surveyed(dir string) []content.Hash {
	data, err := os.ReadFile(filepath.Join(dir, cacheName))
	if err != nil {
		return nil
	}
	list, _ := decodeCache(data)
	return storedHere(list)
}

// storedHere are the contents of a list that are in the store.
func storedHere(list []entry) (hashes []content.Hash) {
	for i := range list {
		if e := &list[i]; e.held == ours {
			hashes = append(hashes, e.hash())
		}
	}
	return hashes
}

// summed adds a checksum at the end.
func summed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unsummed reads what begins with magic, and ends with its checksum.
func unsummed(data []byte, magic string) (u codec.Reader, ok bool) {
	n := len(data) - 4
	if n < len(magic) || string(data[:len(magic)]) != magic || crc32.Checksum(data[:n], castagnoli) != cacheSum(data) {
		return u, false
	}
	return codec.Reader{In: data[len(magic):n]}, true
}

// cacheSum is the checksum at the end of a survey. A checksum of the whole would be the same for every survey: that is
// a property of data followed by its own checksum.
func cacheSum(data []byte) uint32 { return binary.LittleEndian.Uint32(data[len(data)-4:]) }

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
			copy(e.blob[:], take(&u, len(e.blob)))
			copy(e.sum[:], take(&u, len(e.sum)))
		}
		if u.Bad || e.held > theirs || len(list) > 0 && list[len(list)-1].path >= e.path {
			return nil, false
		}
		list = append(list, e)
	}
	return list, len(u.In) == 0
}

// take reads that many bytes.
func take(u *codec.Reader, n int) []byte {
	if n > len(u.In) {
		u.Fail()
		return nil
	}
	b := u.In[:n]
	u.In = u.In[n:]
	return b
}

// stat is what is cheap to see of a file. While it stays the same, and had settled when the file was read, the content
// is unchanged.
type stat struct {
	mode          fs.FileMode
	size          int64
	mtime, ctime  int64 // Unix nanoseconds; ctime 0 where unknown
	inode, device uint64
}

func statOf(info fs.FileInfo) stat {
	s := stat{mode: info.Mode(), size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.ctime, s.inode, s.device = workspace.Identity(info)
	return s
}

// settling is how much older than the read the times of a file must be to be trusted: some file systems keep them in
// steps of two seconds, and a second change within one step would not show. Git calls such entries racy.
const settling = int64(2 * time.Second)

// settled reports whether a file with these times that was read at a moment (Unix nanoseconds) must show any later
// change. The change time moves with every write and no program sets it; the modification time may be anything, also in
// the future, and would then cause endless rereading.
func (s stat) settled(read int64) bool {
	return cmp.Or(s.ctime, s.mtime) < read-settling
}
