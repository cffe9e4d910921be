package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/roost-dev/roost/internal/inputfile"
)

// FileState describes a file at one moment. Hash decides whether the file changed; the other fields are a fast path,
// which must not be trusted for changes within two seconds of recording.
type FileState struct {
	Path   string // in the form of Path.Readable
	Hash   string // SHA-256 of the content, lower-case hex; "" when there is no file
	Size   int64
	MTime  int64 // Unix nanoseconds
	CTime  int64 // Unix nanoseconds, 0 where unknown
	Inode  uint64
	Device uint64
}

// Exists reports whether there was a file.
func (s FileState) Exists() bool { return s.Hash != "" }

// SameStat reports whether all fields that are cheap to read are equal.
func (s FileState) SameStat(o FileState) bool {
	o.Hash, o.Path = s.Hash, s.Path
	return s == o
}

// HashOf returns the hash of a content, in the form of FileState.Hash.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Stat records a file by reading it. For a missing file it returns a state with an empty hash and no error. The error
// wraps ErrNotRegular for folders, devices and pipes, which it never opens.
func (w *Workspace) Stat(ctx context.Context, path string) (FileState, error) {
	p, err := w.Resolve(path)
	if err != nil {
		return FileState{}, err
	}
	return w.StatPath(ctx, p)
}

// StatPath is Stat for a path that was checked already.
func (w *Workspace) StatPath(ctx context.Context, p Path) (FileState, error) {
	f, info, err := w.openRegular(p)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return FileState{Path: p.Readable}, nil
	}
	if err != nil {
		return FileState{}, fmt.Errorf("read %s: %w", p.Readable, err)
	}
	defer f.Close()
	hash, err := hashOf(ctx, f)
	if err != nil {
		return FileState{}, fmt.Errorf("read %s: %w", p.Readable, err)
	}
	return stateOf(p.Readable, info, hash), nil
}

// hashOf is HashOf for the bytes of a reader.
func hashOf(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, NewContextReader(ctx, r)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Read returns a regular file's whole content and its state, if it is not larger
// than limit bytes (0 = no limit).
func (w *Workspace) Read(ctx context.Context, p Path, limit int64) ([]byte, FileState, error) {
	f, info, err := w.openRegular(p)
	if err != nil {
		return nil, FileState{}, err
	}
	defer f.Close()
	if limit > 0 && info.Size() > limit {
		return nil, FileState{}, &TooLargeError{Path: p.Readable, Size: info.Size(), Limit: limit}
	}
	// Room for all of it and for the read that finds its end; a size that is not true costs no more than that.
	room := bytes.NewBuffer(make([]byte, 0, min(info.Size(), 1<<20)+bytes.MinRead))
	if _, err := room.ReadFrom(NewContextReader(ctx, f)); err != nil {
		return nil, FileState{}, err
	}
	data := room.Bytes()
	return data, stateOf(p.Readable, info, HashOf(data)), nil
}

// Open opens a regular file for reading. It refuses folders, devices and pipes with ErrNotRegular, before they could
// block.
func (w *Workspace) Open(p Path) (*os.File, FileState, error) {
	f, info, err := w.openRegular(p)
	if err != nil {
		return nil, FileState{}, err
	}
	return f, stateOf(p.Readable, info, ""), nil
}

// TooLargeError: a file is larger than the caller's limit.
type TooLargeError struct {
	Path        string
	Size, Limit int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is too large: %d bytes, the limit is %d", e.Path, e.Size, e.Limit)
}

// openRegular opens a file for reading. Folders, devices and pipes are refused before they could block. A link that
// appears in the path after the check does not lead elsewhere: once the file is open, the path must lead to that file
// and through no link. A file that is replaced meanwhile is opened again.
func (w *Workspace) openRegular(p Path) (*os.File, fs.FileInfo, error) {
	for range 20 {
		info, err := os.Lstat(p.Real)
		if err != nil {
			return nil, nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			break
		}
		if !info.Mode().IsRegular() {
			return nil, nil, ErrNotRegular
		}
		f, err := os.OpenFile(p.Real, os.O_RDONLY|OpenNonblock|openNoLink, 0)
		if errors.Is(err, syscall.ELOOP) {
			continue // a link since the look
		}
		if err != nil {
			return nil, nil, err
		}
		info, err = f.Stat()
		if err == nil && info.Mode().IsRegular() && w.leadsTo(p.Real, info) {
			return f, info, nil
		}
		f.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%w: the path now leads elsewhere", ErrChanged)
}

func stateOf(path string, info fs.FileInfo, hash string) FileState {
	s := FileState{Path: path, Hash: hash, Size: info.Size(), MTime: info.ModTime().UnixNano()}
	s.CTime, s.Inode, s.Device = Identity(info)
	return s
}

// NewContextReader returns a reader that fails with the context's error once the context ends.
var NewContextReader = inputfile.ContextReader

// FileStatus is the result of the comparison of a file with its record.
type FileStatus string

// The values of FileStatus.
const (
	Unchanged FileStatus = "fresh"   // the same content, or still no file
	Changed   FileStatus = "changed" // another content, or no longer a regular file
	Missing   FileStatus = "missing"
)

// statSettleMS is the time in milliseconds that must pass between a file's last change and its recording for its stat
// to be trusted: some file systems keep times in steps of two seconds, and a second change within one step would not
// show.
const statSettleMS = 2000

// Observation is the result of CheckFile. State.Hash is empty when the content was not read,
// or there is no file.
type Observation struct {
	Status FileStatus
	State  FileState
	Data   []byte // the content, if it was read and is not larger than Look.Keep
	Read   bool   // the content was read
}

// CheckOptions are a file's record, and how much CheckFile reads.
type CheckOptions struct {
	Recorded   FileState // the recorded state; zero times and hash mean that there was no file
	RecordedAt int64     // the time of the record, Unix milliseconds
	MaxRead    int64     // a larger file is judged by its size alone; 0 = no limit
	MaxData    int64     // Data is returned for up to this many bytes; 0 = never
	NeedData   bool      // read the file even where its stat is unchanged, to fill Data
	TrustStat  bool      // the content was read after the file's last change and will be read again once its times are settled: trust the stat until then
}

// afterStat is called between the reading of a file's stat and that of its content: tests change the file there.
var afterStat func(path string)

// CheckFile reports whether the file at p still has the recorded content. Stat is the fast path, trusted only for
// "unchanged". A new time, another mode, or another inode with the same bytes is no change. A file recorded without a
// hash is judged by its size, because nothing else is known of its content.
//
// The limits are those of stat: when a program keeps a file mapped and writes to it again before the system has
// noticed the first write, the change is found a little later.
func (w *Workspace) CheckFile(ctx context.Context, p Path, l CheckOptions) (Observation, error) {
	was := l.Recorded
	existed := was.Hash != "" || was.MTime != 0
	info, err := os.Lstat(p.Real)
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return absentFile(p, existed, Missing), nil
	case err != nil:
		return Observation{}, err
	case !info.Mode().IsRegular():
		return absentFile(p, existed, Changed), nil
	}
	now := stateOf(p.Readable, info, "")
	s := Observation{Status: Changed, State: now}
	known := was.Hash != ""
	if l.MaxRead > 0 && now.Size > l.MaxRead || existed && !known {
		if existed && now.Size == was.Size {
			s.Status = Unchanged
		}
		return s, nil
	}
	sure := known && was.SameStat(now) && (l.TrustStat || max(was.MTime, was.CTime)/1e6 <= l.RecordedAt-statSettleMS)
	small := now.Size <= l.MaxData && l.MaxData > 0
	if sure && (!l.NeedData || !small) {
		return Observation{Status: Unchanged, State: was}, nil
	}
	s.Read = true
	if afterStat != nil {
		afterStat(p.Real)
	}
	if small {
		s.Data, s.State, err = w.Read(ctx, p, l.MaxData)
	}
	if _, grown := errors.AsType[*TooLargeError](err); grown || !small {
		s.State, err = w.StatPath(ctx, p)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err), err == nil && !s.State.Exists(): // since the call of Lstat
		return absentFile(p, existed, Missing), nil
	case errors.Is(err, ErrNotRegular):
		return absentFile(p, existed, Changed), nil
	case err != nil:
		return Observation{}, err
	}
	if known && s.State.Hash == was.Hash {
		s.Status = Unchanged
	}
	return s, nil
}

// absentFile returns the observation of a path without a file. It is a change only if there was one.
func absentFile(p Path, existed bool, v FileStatus) Observation {
	if !existed {
		v = Unchanged
	}
	return Observation{Status: v, State: FileState{Path: p.Readable}}
}

// Unsettled reports whether a file's times are so close to now, in Unix milliseconds, that its stat alone does not
// prove it unchanged. past: the times are at least in the past, by the steps of file systems on local disks.
func (s FileState) Unsettled(now int64) (unsettled, past bool) {
	age := now - max(s.MTime, s.CTime)/1e6
	return age < statSettleMS, age >= 50
}

// CheckDate decides about a file of which only a date is known, in Unix milliseconds: it has changed when it was
// written after that date. The check allows two seconds for file systems with coarse times, and for programs that
// recorded the date a little early. It is a guess: a checkout writes the same bytes at a new time, and a copy may
// keep an old one. State.Path is empty when there is no file.
func (w *Workspace) CheckDate(p Path, date int64) (FileStatus, FileState) {
	info, err := os.Lstat(p.Real)
	if err != nil {
		return Missing, FileState{}
	}
	s := stateOf(p.Readable, info, "")
	if !info.Mode().IsRegular() {
		return Changed, FileState{}
	}
	if s.MTime/1e6-statSettleMS > date { // dates of others may be any number
		return Changed, s
	}
	return Unchanged, s
}
