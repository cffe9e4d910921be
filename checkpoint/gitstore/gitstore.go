// Package gitstore reads the stores in which earlier versions kept what files held: bare git repositories, one for
// each workspace, in the folder that holds the workspace's content store now. It exists to restore, undo and carry
// over their checkpoints; it never adds anything. A later release removes it.
//
// It reads the packs of whole objects that those versions wrote. If a user has run git there, the package lets git
// read the resulting loose objects and differences. It compares every object with its name.
//
// What an earlier version left in the folder:
//
//	objects/pack/            one pack for each batch, merged when there were many
//	refs/                    one ref for each task
//	roost/lock, collect      kernel locks: removing packs; collecting
//	roost/leases/<process>   packs that a process relied on before a ref reached them
//	roost/tmp/               packs without a name
//
// Limits: an object is read into memory; alternates and hashes other than SHA-1 are not read.
package gitstore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's names of objects, not a protection
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/zlib"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/sleep"
)

// ErrInUse: a process of an earlier version works with the store.
var ErrInUse = errors.New("an earlier version of roost works with these checkpoints; end it first")

// Store is one store. It is safe for concurrent use.
type Store struct {
	dir string

	mu    sync.Mutex
	read  bool // the packs were listed
	packs []*pack
}

type objectID [sha1.Size]byte

func (id objectID) String() string { return hex.EncodeToString(id[:]) }

func parseID(text string) (id objectID, ok bool) {
	raw, err := hex.DecodeString(text)
	return objectID(append(raw, make([]byte, sha1.Size)...)[:sha1.Size]), err == nil && len(raw) == sha1.Size
}

// Open opens the store in a folder; nil when the folder holds none.
func Open(dir string) *Store {
	if info, err := os.Stat(filepath.Join(dir, "objects")); err != nil || !info.IsDir() {
		return nil
	}
	return &Store{dir: dir}
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// list reads the indexes of all packs, again when an object was not found the first time.
func (s *Store) list(again bool) ([]*pack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read && !again {
		return s.packs, nil
	}
	names, err := filepath.Glob(filepath.Join(s.path("objects", "pack"), "pack-*.idx"))
	if err != nil {
		return nil, err
	}
	s.packs, s.read = nil, true
	for _, name := range names {
		p, bad := openPack(strings.TrimSuffix(name, ".idx"))
		if bad == nil {
			s.packs = append(s.packs, p)
		} else if !errors.Is(bad, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, bad))
		}
	}
	return s.packs, err
}

func (s *Store) loosePath(id objectID) string {
	return s.path("objects", id.String()[:2], id.String()[2:])
}

// Has reports whether the store has an object. A nil Store has none.
func (s *Store) Has(name string) bool {
	id, ok := parseID(name)
	if s == nil || !ok {
		return false
	}
	packs, _ := s.list(false) // a pack with an unreadable index holds nothing that can be read
	for _, p := range packs {
		if _, ok := p.find(id); ok {
			return true
		}
	}
	_, err := os.Stat(s.loosePath(id))
	return err == nil
}

// Read returns an object's content, compared with its name. Errors are content.ErrMissing, content.ErrDamaged and
// content.ErrTooLarge for more than limit bytes (0 = no limit). A nil Store has no objects.
func (s *Store) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	id, ok := parseID(name)
	if s == nil || !ok {
		return nil, fmt.Errorf("content %s %w", name, content.ErrMissing)
	}
	_, data, err := s.object(ctx, id)
	if err == nil && limit > 0 && int64(len(data)) > limit {
		err = content.ErrTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("content %s %w", name, err)
	}
	return data, nil
}

// object reads an object from the first copy that is good.
func (s *Store) object(ctx context.Context, id objectID) (kind string, data []byte, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	first := content.ErrMissing
	for _, again := range []bool{false, true} {
		packs, bad := s.list(again)
		_, err := os.Stat(s.loosePath(id))
		rewritten := err == nil
		for _, p := range packs {
			i, ok := p.find(id)
			if !ok {
				continue
			}
			if kind, data, err = p.read(i); err == nil && nameOf(kind, data) == id {
				return kind, data, nil
			}
			rewritten = rewritten || errors.Is(err, errDifference)
			if !errors.Is(err, fs.ErrNotExist) {
				first = errors.Join(content.ErrDamaged, err)
			}
		}
		if rewritten {
			if kind, data, err = s.askGit(ctx, id); err == nil && nameOf(kind, data) == id {
				return kind, data, nil
			}
			first = errors.Join(content.ErrDamaged, err)
		}
		if bad != nil && errors.Is(first, content.ErrMissing) {
			first = errors.Join(content.ErrDamaged, bad)
		}
		if !errors.Is(first, content.ErrMissing) {
			break
		}
	}
	return "", nil, first
}

func nameOf(kind string, data []byte) objectID {
	h := sha1.New() //nolint:gosec // as above
	h.Write(append(strconv.AppendInt([]byte(kind+" "), int64(len(data)), 10), 0))
	h.Write(data)
	return objectID(h.Sum(nil))
}

// askGit lets git read an object that a user's git has rewritten in the store.
func (s *Store) askGit(ctx context.Context, id objectID) (kind string, data []byte, err error) {
	cmd := exec.CommandContext(ctx, "git", "--git-dir="+s.dir, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(id.String() + "\n")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", nil, fmt.Errorf("a git rewrote it, and git cat-file failed: %w", err)
	}
	head, data, _ := bytes.Cut(out, []byte{'\n'})
	if fields := strings.Fields(string(head)); len(fields) == 3 { // ID KIND SIZE
		kind = fields[1]
	}
	return kind, bytes.TrimSuffix(data, []byte{'\n'}), nil
}

// Blobs calls use with every file content that the store holds, whether a ref reaches it or not. unread are those that
// are damaged, and a pack whose index is.
func (s *Store) Blobs(ctx context.Context, use func(name string, data []byte) error) (unread int, err error) {
	packs, err := s.list(true)
	if err != nil { // the other packs were listed all the same
		unread++
	}
	seen := map[objectID]bool{}
	one := func(id objectID) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		kind, data, err := s.object(ctx, id)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, content.ErrDamaged), errors.Is(err, content.ErrMissing):
			unread++
			return nil
		case err != nil:
			return err
		case kind != "blob":
			return nil
		}
		return use(id.String(), data)
	}
	for _, p := range packs {
		for i := range p.count {
			if err := one(p.id(i)); err != nil {
				return unread, err
			}
		}
	}
	files, err := filepath.Glob(s.path("objects", "[0-9a-f][0-9a-f]", "*"))
	for _, f := range files {
		if id, ok := parseID(filepath.Base(filepath.Dir(f)) + filepath.Base(f)); ok && err == nil {
			err = one(id)
		}
	}
	return unread, err
}

// refsDir is the folder in which those versions kept the newest commit of each task.
const refsDir = "refs/roost"

// Refs returns the newest commit of each task, by content.OwnerName of the task.
func (s *Store) Refs() (map[string]string, error) {
	out := map[string]string{}
	packed, err := os.ReadFile(s.path("packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if task, ok := strings.CutPrefix(name, refsDir+"/"); ok {
			out[task] = id
		}
	}
	list, err := os.ReadDir(s.path(filepath.FromSlash(refsDir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range list {
		if strings.HasSuffix(d.Name(), ".lock") || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		data, err := os.ReadFile(s.path(filepath.FromSlash(refsDir), d.Name()))
		if err != nil {
			return nil, err
		}
		out[d.Name()] = strings.TrimSpace(string(data))
	}
	return out, nil
}

// Reaches returns the names of the file contents that a commit reaches. It leaves out missing or damaged objects and
// counts them in unread.
func (s *Store) Reaches(ctx context.Context, commit string) (blobs []string, unread int, err error) {
	seen := map[objectID]bool{}
	type step struct {
		id   objectID
		blob bool
	}
	var todo []step
	add := func(name string) {
		if id, ok := parseID(name); ok {
			todo = append(todo, step{id: id})
		} else {
			unread++
		}
	}
	add(commit)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at.id] {
			continue
		}
		seen[at.id] = true
		if at.blob {
			blobs = append(blobs, at.id.String())
			continue
		}
		kind, data, err := s.object(ctx, at.id)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil {
			unread++
			continue
		}
		switch kind {
		case "blob":
			blobs = append(blobs, at.id.String())
		case "commit":
			head, _, _ := bytes.Cut(data, []byte("\n\n"))
			for line := range strings.Lines(string(head)) {
				word, name, _ := strings.Cut(strings.TrimSpace(line), " ")
				if word == "tree" || word == "parent" {
					add(name)
				}
			}
		case "tree":
			for len(data) > 0 {
				head, rest, ok := bytes.Cut(data, []byte{0})
				if !ok || len(rest) < sha1.Size {
					unread++
					break
				}
				mode, _, _ := strings.Cut(string(head), " ")
				todo = append(todo, step{objectID(rest[:sha1.Size]), strings.TrimLeft(mode, "0") != "40000"})
				data = rest[sha1.Size:]
			}
		}
	}
	return blobs, unread, nil
}

// Size returns how many bytes the objects take on disk. A nil Store takes none.
func (s *Store) Size() (n int64) {
	if s == nil {
		return 0
	}
	_ = filepath.WalkDir(s.path("objects"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// ownDir is the folder of those versions' locks and leases. A file in its place makes them refuse the store: they
// report that they cannot make the folder.
const ownDir = "roost"

// FormatMark makes earlier versions refuse to write into a folder. It belongs into every store of the new format.
func FormatMark(dir string) error {
	err := os.WriteFile(filepath.Join(dir, ownDir), []byte("roost content store: a newer version of roost is needed\n"), 0o600)
	if info, e := os.Stat(filepath.Join(dir, ownDir)); e == nil && info.Mode().IsRegular() {
		return nil
	}
	return err
}

// patience bounds the wait for another process that carries the store over, or for an earlier version that has locked
// it for a moment.
const patience = time.Minute

// Lock keeps earlier versions and other carriers out. The error is ErrInUse while a process of an earlier version
// relies on something in the store.
func (s *Store) Lock(ctx context.Context) (free func(), err error) {
	for end := time.Now().Add(patience); ; {
		free, ok, err := s.tryLock()
		if ok || err != nil {
			return free, err
		}
		if time.Now().After(end) {
			return nil, ErrInUse
		}
		if !sleep.For(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

func (s *Store) tryLock() (free func(), ok bool, err error) {
	if info, err := os.Stat(s.path(ownDir)); err != nil || !info.IsDir() {
		return func() {}, true, nil //nolint:nilerr // earlier versions refuse the store already
	}
	var files []*os.File
	free = sync.OnceFunc(func() {
		for _, f := range files {
			_ = filelock.Release(f)
		}
	})
	defer func() {
		if !ok {
			free()
		}
	}()
	for _, name := range []string{"collect", "lock", "refs"} {
		f, err := filelock.TryOpen(s.path(ownDir, name), filelock.Exclusive)
		if err != nil || f == nil {
			return nil, false, ignoreGone(err) // gone: another process carried the store over
		}
		files = append(files, f)
	}
	used, err := s.InUse()
	if used && err == nil {
		err = ErrInUse
	}
	return free, err == nil, err
}

// ignoreGone drops the error of a file that another process removed.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// InUse reports whether a living process of an earlier version relies on something in the store.
func (s *Store) InUse() (bool, error) {
	if s == nil {
		return false, nil
	}
	leases, err := filepath.Glob(s.path(ownDir, "leases", "*"))
	for _, name := range leases {
		f, err := os.Open(name)
		if ignoreGone(err) == nil && err != nil {
			continue
		}
		if err != nil {
			return false, err
		}
		dead, err := filelock.Try(f, filelock.Shared)
		_ = filelock.Release(f)
		if err != nil || !dead {
			return err == nil, err
		}
	}
	return false, err
}

// Refuse makes earlier versions refuse a folder from now on.
func Refuse(dir string) error {
	if info, err := os.Stat(filepath.Join(dir, ownDir)); err == nil && info.IsDir() {
		if err := os.RemoveAll(filepath.Join(dir, ownDir)); err != nil {
			return err
		}
	}
	return FormatMark(dir)
}

// Changed returns when a task's ref was last set.
func (s *Store) Changed(task string) time.Time {
	info, err := os.Stat(s.path(filepath.FromSlash(refsDir), task))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// RemoveRef removes a task from the store.
func (s *Store) RemoveRef(task string) error {
	if _, err := os.Stat(s.path("packed-refs")); err == nil { // of the git that a user ran there
		cmd := exec.Command("git", "--git-dir="+s.dir, "update-ref", "-d", refsDir+"/"+task)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git update-ref: %w: %s", err, out)
		}
		return nil
	}
	return ignoreGone(os.Remove(s.path(filepath.FromSlash(refsDir), task)))
}

// Remove removes the store and leaves the other files of its folder. It removes objects last: until then the store
// counts as present and is carried over again.
func (s *Store) Remove() (err error) {
	for _, name := range []string{"refs", "info", "logs", "hooks", "branches", "packed-refs", "packed-refs.new", "HEAD", "config", "description", "objects"} {
		err = errors.Join(err, os.RemoveAll(s.path(name)))
	}
	return err
}

// pack is one pack file with its index (version 2).
type pack struct {
	path  string
	size  int64
	count int
	ids   []byte // 20 bytes each, in order
	offs  []byte
	big   []byte // offsets that need more than 31 bits
}

const (
	indexMagic = "\xfftOc\x00\x00\x00\x02"
	indexHead  = len(indexMagic) + 256*4
	packHead   = 12
)

func damaged(why string) error { return fmt.Errorf("%w: %s", content.ErrDamaged, why) }

// openPack reads the index of a pack. It allocates nothing because of a number in a damaged index.
func openPack(base string) (*pack, error) {
	data, err := os.ReadFile(base + ".idx")
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(base + ".pack")
	if err != nil {
		return nil, err
	}
	if len(data) < indexHead+2*sha1.Size || string(data[:len(indexMagic)]) != indexMagic {
		return nil, damaged("a pack's index does not begin as one")
	}
	body := data[:len(data)-sha1.Size]
	if h := sha1.Sum(body); !bytes.Equal(h[:], data[len(body):]) { //nolint:gosec // as above
		return nil, damaged("a pack's index has a wrong checksum")
	}
	n := uint64(binary.BigEndian.Uint32(data[indexHead-4:]))
	rest := body[indexHead : len(body)-sha1.Size]
	if uint64(len(rest)) < n*28 {
		return nil, damaged("a pack's index is too short")
	}
	return &pack{
		path: base + ".pack", size: info.Size(), count: int(n),
		ids: rest[:20*n], offs: rest[24*n : 28*n], big: rest[28*n:],
	}, nil
}

func (p *pack) id(i int) (id objectID) {
	copy(id[:], p.ids[20*i:])
	return id
}

func (p *pack) find(id objectID) (int, bool) {
	return sort.Find(p.count, func(i int) int { return bytes.Compare(id[:], p.ids[20*i:20*i+20]) })
}

// offset returns the beginning of an entry; -1 when the index does not have it.
func (p *pack) offset(i int) int64 {
	o := binary.BigEndian.Uint32(p.offs[4*i:])
	if o&(1<<31) == 0 {
		return int64(o)
	}
	at := int(o&^(1<<31)) * 8
	if at+8 > len(p.big) {
		return -1
	}
	return int64(binary.BigEndian.Uint64(p.big[at:]) & (1<<62 - 1))
}

// packKinds are the kinds of whole objects as a pack numbers them; 6 and 7 are differences to another object.
var packKinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// maxObject bounds the bytes of an object that is read into memory. Earlier versions kept files of at most 64 MiB.
const maxObject = 256 << 20

// errDifference: an entry is not a whole object. Earlier versions wrote only whole ones.
var errDifference = errors.New("it is the difference to another object")

// read reads entry i.
func (p *pack) read(i int) (kind string, data []byte, err error) {
	off := p.offset(i)
	if off < packHead || off >= p.size-sha1.Size {
		return "", nil, damaged("an entry is outside of its pack")
	}
	f, err := os.Open(p.path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	in := bufio.NewReader(io.NewSectionReader(f, off, p.size-off))
	c, err := in.ReadByte()
	if err != nil {
		return "", nil, err
	}
	number, size := c>>4&7, int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 53 {
			return "", nil, damaged("an entry is cut off")
		}
		size |= int64(c&0x7f) << shift
	}
	switch {
	case number == 6 || number == 7:
		return "", nil, errDifference
	case packKinds[number] == "":
		return "", nil, damaged("an entry has an unknown kind")
	}
	data, err = inflate(in, size)
	return packKinds[number], data, err
}

// inflate decompresses exactly size bytes.
func inflate(r io.Reader, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%w: an object of %d bytes", content.ErrTooLarge, size)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, damaged(err.Error())
	}
	defer z.Close()
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(z, size+1))
	if err != nil {
		return nil, damaged(err.Error())
	}
	if n != size {
		return nil, damaged("an object does not have the size in its header")
	}
	return out.Bytes(), nil
}
