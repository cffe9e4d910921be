package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // git's names of contents, not a protection
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/workspace"
)

// fileContent describes a content: its name in the store, its name in git, and its size.
type fileContent struct {
	named  bool // the names are known; false if the file kept getting shorter
	stable bool // false if the file was being written to: this may be neither its old content nor its new one
	blob   [sha1.Size]byte
	sum    [sha256.Size]byte
	size   int64
	data   []byte // set if it was small enough for memory
	at     stat   // of the file when it was read
	read   int64  // when the reading began; Unix nanoseconds
}

// hash returns the name of the content in the store.
func (c *fileContent) hash() content.Hash { return content.Hash(hex.EncodeToString(c.sum[:])) }

// errVanished: the file disappeared between the stat and the read.
var errVanished = errors.New("it no longer exists, or is not a file")

// reader reads files, one at a time.
type reader struct {
	buf         []byte
	data        bytes.Buffer // valid until the next read
	small       int64        // the size up to which fileContent.data is set
	sha1, sha2  hash.Hash
	interrupted func() // for tests: between two reads of a file
}

func newReader(small int64) *reader {
	return &reader{buf: make([]byte, 32<<10), small: small, sha1: sha1.New(), sha2: sha256.New()} //nolint:gosec // as above
}

// tries bounds how often a file is read again when it changed during the read.
const tries = 3

// read reads a regular file at a recorded path.
func (r *reader) read(ctx context.Context, tree *workspace.Tree, p string) (c fileContent, err error) {
	for range tries {
		if c, err = r.once(ctx, tree, p); err != nil || c.stable {
			return c, err
		}
	}
	return c, nil
}

func (r *reader) once(ctx context.Context, tree *workspace.Tree, p string) (c fileContent, err error) {
	c.read = time.Now().UnixNano()
	f, info, err := tree.OpenRegular(OnDisk(p))
	switch {
	case workspace.CannotExist(err), errors.Is(err, workspace.ErrNotRegular):
		return c, errVanished
	case errors.Is(err, workspace.ErrChanged):
		return c, nil // replaced since the stat: not stable
	case err != nil:
		return c, err
	}
	defer f.Close()
	c.at, c.size = statOf(info), info.Size()
	if err := r.fill(ctx, f, &c); err != nil {
		return c, err
	}
	after, err := f.Stat()
	if err != nil {
		return c, err
	}
	c.stable = statOf(after) == c.at && c.size == c.at.size
	return c, nil
}

// fill reads as many bytes as the file had when it was opened. For a log that grows all the time, that is a content
// it once had.
func (r *reader) fill(ctx context.Context, f io.Reader, c *fileContent) error {
	r.begin(c.size)
	to := io.MultiWriter(r.sha1, r.sha2)
	if c.size <= r.small {
		r.data.Reset()
		r.data.Grow(int(c.size))
		to = io.MultiWriter(&r.data, to)
	}
	n, err := io.CopyBuffer(to, io.LimitReader(workspace.NewContextReader(ctx, f), c.size), r.buf)
	if err != nil {
		return err
	}
	if r.interrupted != nil {
		r.interrupted()
	}
	if n != c.size {
		c.size = n // its names belong to no content; it is not stable, so it is read again
		return nil
	}
	if c.size <= r.small {
		c.data = r.data.Bytes()
	}
	r.end(c)
	return nil
}

func (r *reader) begin(size int64) {
	r.sha1.Reset()
	r.sha2.Reset()
	r.sha1.Write(append(strconv.AppendInt([]byte("blob "), size, 10), 0))
}

func (r *reader) end(c *fileContent) {
	c.named = true
	r.sha1.Sum(c.blob[:0])
	r.sha2.Sum(c.sum[:0])
}

// contentOf describes a content in memory: of a link, its target.
func contentOf(data []byte) fileContent {
	c := fileContent{data: data, size: int64(len(data)), stable: true}
	r := newReader(c.size)
	r.begin(c.size)
	r.sha1.Write(c.data)
	r.sha2.Write(c.data)
	r.end(&c)
	return c
}

// version returns the record of a content of a kind; blob is its name in the store, "" when it is not kept.
func (c *fileContent) version(kind string, mode fs.FileMode, blob string) api.FileVersion {
	v := api.FileVersion{Kind: kind, Mode: uint32(mode.Perm()), Size: c.size, Hash: hex.EncodeToString(c.sum[:])}
	if kind == api.KindLink {
		v.Mode = 0 // links have none, though some systems report 0777
	}
	v.Blob = blob
	return v
}

// stat holds the properties of a file that are cheap to get. If they are unchanged, and had settled when the file was
// read, the content is unchanged.
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

// settling is the least age of a file's times at the read that makes them trustworthy: some file systems keep times
// in steps of two seconds, and a second change within one step would not show. Git calls such entries racy.
const settling = int64(2 * time.Second)

// settled reports whether any later change of a file shows in its times, for times of this stat and a read at a
// moment in Unix nanoseconds. Every write moves the change time, and no program sets it; the modification time can
// have any value, also in the future, which would cause endless rereading.
func (s stat) settled(read int64) bool {
	return cmp.Or(s.ctime, s.mtime) < read-settling
}

// escapeBase is the rune to which bytes of a name that are not UTF-8 are added in a recorded path: the byte 0x80
// becomes escapeBase+0x80. Journals are JSON, which cannot hold such bytes; leaving out such files was rejected,
// because they can be lost like any other.
const escapeBase = 0x10FF00

// Recorded returns a path (or a name) on the disk in its recorded form: "/" between names, and valid UTF-8. OnDisk is
// its inverse.
func Recorded(name string) string {
	name = filepath.ToSlash(name)
	if utf8.ValidString(name) && !strings.ContainsFunc(name, isStrange) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || isStrange(r) {
			for _, c := range []byte(name[i : i+n]) {
				b.WriteRune(escapeBase + rune(c))
			}
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// OnDisk returns a recorded path in the form of the disk.
func OnDisk(recorded string) string {
	if !strings.ContainsFunc(recorded, isStrange) {
		return filepath.FromSlash(recorded)
	}
	b := make([]byte, 0, len(recorded))
	for _, r := range recorded {
		if isStrange(r) {
			b = append(b, byte(r-escapeBase))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return filepath.FromSlash(string(b))
}

func isStrange(r rune) bool { return r >= escapeBase+0x80 && r <= escapeBase+0xFF }

// plain reports whether the program may work on a recorded path: it is relative, clean, not the workspace itself, and
// without names of git's own data.
func plain(p string) bool {
	if p == "" || p == "." || p != path.Clean(p) || strings.HasPrefix(p, "/") || p == ".." || strings.HasPrefix(p, "../") ||
		strings.IndexByte(p, 0) >= 0 {
		return false
	}
	return len(p) <= 4096 && filepath.IsLocal(OnDisk(p)) && !slices.ContainsFunc(strings.Split(p, "/"), gitName)
}

// gitName reports whether a name is ".git" in any letter case, because some disks ignore case.
func gitName(name string) bool { return strings.EqualFold(name, ".git") }
