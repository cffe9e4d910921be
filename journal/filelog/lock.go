package filelog

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
)

const (
	logName  = "journal.jsonl"
	idxName  = "journal.idx"
	lockName = "journal.lock"
	blobsDir = "blobs"
	tornName = "journal.torn-"
)

// record is the first line of journal.lock: how far the log is synced.
type record struct {
	Synced int64  `json:"synced"` // bytes of the log
	Head   uint64 `json:"head"`   // last sequence in them
	Epoch  uint64 `json:"epoch"`
	Ino    uint64 `json:"ino"`           // the inode of the log; a copied folder has another one
	MAC    string `json:"mac,omitempty"` // "<key>.<mac>"; "" in a log that is not signed
	CRC    string `json:"crc"`
}

// The line always has the same length, so that one pwrite replaces it. A reader that meets a half-written line
// notices that by the checksum and reads again. Programs that did not sign wrote a shorter line, without "mac".
const (
	olderBody  = `{"synced":%-20d,"head":%-20d,"epoch":%-20d,"ino":%-20d`
	recordBody = olderBody + `,"mac":%-*s`
	olderLen   = len(`{"synced":,"head":,"epoch":,"ino":`) + 4*20 + len(`,"crc":"00000000"}`) + 1
	recordLen  = olderLen + len(`,"mac":`) + macWidth
	macWidth   = journal.KeyIDLen + len(`"."`) + 32
	ownerMax   = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the line, signed when there is a key.
func (r record) encode(s *journal.Seal) []byte {
	id, mac := s.MAC("record", r.signed())
	r.MAC = ""
	if id != "" {
		r.MAC = id + "." + hex.EncodeToString(mac[:16])
	}
	return r.line(recordLen)
}

// signed returns the data that the MAC covers.
func (r record) signed() []byte {
	return fmt.Appendf(nil, olderBody, r.Synced, r.Head, r.Epoch, r.Ino)
}

func (r record) line(length int) []byte {
	body := string(r.signed())
	if length == recordLen {
		body = fmt.Sprintf(recordBody, r.Synced, r.Head, r.Epoch, r.Ino, macWidth, `"`+r.MAC+`"`)
	}
	return fmt.Appendf(make([]byte, 0, length), "%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), castagnoli))
}

// proven reports whether this root wrote the record.
func (r record) proven(s *journal.Seal) bool {
	id, cut, ok := strings.Cut(r.MAC, ".")
	if !ok || s == nil {
		return false
	}
	short, err := hex.DecodeString(cut)
	return err == nil && s.Proves(id, short, "record", r.signed())
}

// readRecord reads the record; false when there is none, or it is damaged.
func readRecord(f io.ReaderAt) (record, bool) {
	r, _, ok := readLine(f)
	return r, ok
}

// readLine reads the record, and returns how long its line is.
func readLine(f io.ReaderAt) (record, int, bool) {
	var buf [recordLen]byte
	for range 3 {
		n, _ := f.ReadAt(buf[:], 0)
		for _, length := range []int{recordLen, olderLen} {
			var r record
			if n >= length && json.Unmarshal(buf[:length], &r) == nil && bytes.Equal(r.line(length), buf[:length]) {
				return r, length, true
			}
		}
		if n < olderLen {
			break
		}
	}
	return record{}, recordLen, false
}

// encodeOwner returns the second line of journal.lock.
func encodeOwner(o journal.OwnerInfo) []byte {
	b, _ := json.Marshal(o) // its members can always be written
	return append(b, '\n')
}

// readHolder reads the name of the process that holds the lock; the lock is held. It returns zero also when the named
// process is dead: then another one holds the lock.
func readHolder(f io.ReaderAt) journal.OwnerInfo {
	o := readOwner(f)
	if o.Boot != "" && o.Boot == process.System() && o.PID > 0 && !process.Alive(o.PID) {
		return journal.OwnerInfo{}
	}
	return o
}

// readOwner reads the name of the process that holds the lock, or held it last; zero when unreadable.
func readOwner(f io.ReaderAt) (o journal.OwnerInfo) {
	_, length, _ := readLine(f)
	b, err := io.ReadAll(io.NewSectionReader(f, int64(length), ownerMax))
	if err != nil {
		return o
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	if json.Unmarshal(line, &o) != nil {
		return journal.OwnerInfo{}
	}
	return o
}

// acquire opens and locks journal.lock. With wait 0, a held lock gives a *journal.BusyError at once.
func acquire(ctx context.Context, fsys FS, dir string, wait time.Duration) (File, error) {
	path := filepath.Join(dir, lockName)
	deadline := time.Now().Add(wait)
	for range 100 {
		f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, notSaved(fsys, "open", path, err)
		}
		if err := await(ctx, f, dir, deadline); err != nil {
			f.Close()
			return nil, err
		}
		if stillNamed(fsys, path, f) {
			return f, nil
		}
		_ = filelock.Release(f) // nothing was written
	}
	return nil, fmt.Errorf("lock %s: the path leads to another file at each try: %w", path, journal.ErrUntrustedLocks)
}

// stillNamed reports whether an open file still has its name. Between our opening and locking it, another process may
// have moved the folder away and made another one in its place: the lock of the old file does not protect the new
// log.
func stillNamed(fsys FS, path string, f File) bool {
	now, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	held, herr := f.Stat()
	return err != nil || herr != nil || !now.Mode().IsRegular() || fileID(now) == fileID(held)
}

// await takes the lock of an open file.
func await(ctx context.Context, f File, dir string, deadline time.Time) error {
	nameless := deadline.Add(unsigned)
	for {
		got, held, err := lockOnce(f)
		switch {
		case err != nil:
			return fmt.Errorf("lock %s: %v: %w", filepath.Join(dir, lockName), err, journal.ErrUntrustedLocks)
		case got:
			return nil
		case held && time.Now().After(deadline):
			holder := readHolder(f)
			if holder.PID != 0 || time.Now().After(nameless) {
				return &journal.BusyError{Dir: dir, Holder: holder}
			}
			held = false // it is just coming or going
		}
		pause := 25 * time.Millisecond
		if !held { // a reader is looking; that takes it microseconds
			pause = time.Duration(rand.IntN(2000)) * time.Microsecond
		}
		if !sleep.For(ctx, pause) {
			return ctx.Err()
		}
	}
}

// unsigned limits how long a process without a name may hold a lock: an owner writes its name right after it took the
// lock, and removes it right before it releases the lock. On a busy machine it may sleep between the two steps. A
// killed owner's name stays until the next owner writes its own, and a command that the killed owner was starting
// keeps the lock until its exec.
const unsigned = 5 * time.Second

// lockOnce tries the exclusive lock. If that is refused, a try of a shared lock distinguishes readers, which hold a
// lock for a moment to measure the log, from an owner.
func lockOnce(f File) (got, held bool, err error) {
	if got, err = filelock.Try(f, filelock.Exclusive); got || err != nil {
		return got, false, err
	}
	shared, err := filelock.Try(f, filelock.Shared)
	if shared {
		err = filelock.Unlock(f)
	}
	return false, !shared, err
}

// Trusted refuses, with journal.ErrUntrustedLocks, a folder on a file system that is not known to keep locks.
func Trusted(dir string) error { return trusted(OS, dir) }

// trusted is Trusted on any file system. For a folder that does not exist yet, it checks the nearest folder above it
// that exists.
func trusted(fsys FS, dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		kind, ok, err := fsys.LocksTrusted(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at:
			continue
		case err != nil:
			return fmt.Errorf("look at the file system of %s: %w", dir, err)
		case !ok:
			return fmt.Errorf("use %s: it is on %s, which is not known to keep locks; move it to a local disk, or run where "+
				"the disk is: %w", dir, kind, journal.ErrUntrustedLocks)
		}
		return nil
	}
}

// Holder reports whether an owner in dir is alive, and returns the owner's record. It takes no lock that an owner
// would notice, and creates nothing. An owner without a name, or with the name of a dead process, is just starting or
// ending: Holder then reads the name again, a few times.
func Holder(dir string) (journal.OwnerInfo, bool) {
	f, err := OS.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return journal.OwnerInfo{}, false
	}
	defer f.Close()
	for try := 0; ; try++ {
		shared, err := filelock.Try(f, filelock.Shared)
		if err != nil {
			return journal.OwnerInfo{}, false
		}
		if shared {
			_ = filelock.Unlock(f) // the caller closes it anyway
			return journal.OwnerInfo{}, false
		}
		if who := readHolder(f); who.PID != 0 || try == 50 {
			return who, true
		}
		time.Sleep(time.Millisecond)
	}
}

// Here reports whether a holder's process number is valid here: it is of this boot, and of this process's namespace.
// In a container, or on another machine, the same number means another process.
func Here(o journal.OwnerInfo) bool { return o.Boot == process.System() }

// The files next to a log show how far it went: the record in journal.lock, journal.idx, and payloads, which no
// journal has before its first commit. They count whichever inode they name: a copied or restored folder has another
// one, and may lack the end of its log.

// Exists reports whether dir holds a journal, or the traces of one that was deleted.
// Such a journal is damaged: OpenReader and Own find its commits lost.
func Exists(dir string) bool {
	_, err := OS.Lstat(filepath.Join(dir, logName))
	return err == nil || errors.Is(err, fs.ErrNotExist) && deleted(OS, dir).Head > 0
}

// deleted returns what the files beside a missing log show about it: the lock file, else the index, else payloads.
// Its head is 0 when there never was a log.
func deleted(fsys FS, dir string) (rec record) {
	if f, err := fsys.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY, 0); err == nil {
		rec, _ = readRecord(f)
		_ = f.Close() // read only: nothing to lose
	}
	if rec.Head == 0 {
		rec = indexed(fsys, dir)
	}
	if rec.Head == 0 && holds(fsys, filepath.Join(dir, blobsDir)) {
		rec.Head = 1 // how many commits there were is not known
	}
	return rec
}

// indexed returns the record in journal.idx: it is written only for synced commits.
func indexed(fsys FS, dir string) (rec record) {
	f, err := fsys.OpenFile(filepath.Join(dir, idxName), os.O_RDONLY, 0)
	if err != nil {
		return rec
	}
	defer f.Close()
	x, err := readIdx(f, nil)
	if err != nil {
		return rec
	}
	rec.Head = x.SnapSeq
	if n := len(x.Spots); n > 0 {
		rec.Head, rec.Epoch = max(rec.Head, x.Spots[n-1].Seq), x.Spots[n-1].Epoch
	}
	return rec
}

// holds reports whether a folder has an entry that is written in full.
func holds(fsys FS, dir string) bool {
	list, err := fsys.ReadDir(dir)
	return err == nil && slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), blobTemp) })
}

// absent stands for the file of a log that was deleted: it has no bytes.
type absent struct{ File }

func (absent) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
func (absent) Stat() (fs.FileInfo, error)        { return nothing{}, nil }
func (absent) Datasync() error                   { return nil }
func (absent) Close() error                      { return nil }

type nothing struct{ fs.FileInfo }

func (nothing) Size() int64 { return 0 }
