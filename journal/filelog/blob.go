package filelog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/roost-dev/roost/journal"
)

// blobPath returns a blob's path. Names come out of log lines: only valid ones
// become paths.
func blobPath(dir string, h journal.Hash) (string, error) {
	if !h.Valid() {
		return "", fmt.Errorf("blob %q is not named by a SHA-256: %w", string(h), journal.ErrBlobMissing)
	}
	return filepath.Join(dir, blobsDir, string(h[:2]), string(h)), nil
}

// Blob implements journal.Reader.
func (r *reader) Blob(ctx context.Context, h journal.Hash) (journal.Blob, error) {
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	path, err := blobPath(r.dir, h)
	if err != nil {
		return nil, err
	}
	fi, err := r.fs.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s of %s: %w", h, r.dir, journal.ErrBlobMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	if !fi.Mode().IsRegular() { // a link could lead anywhere, a FIFO hang
		return nil, fmt.Errorf("blob %s of %s is no regular file: %w", h, r.dir, journal.ErrBlobDamaged)
	}
	f, err := r.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return &blob{File: f, hash: h, size: fi.Size()}, nil
}

type blob struct {
	File
	hash journal.Hash
	size int64
}

// Size implements journal.Blob.
func (b *blob) Size() int64 { return b.size }

// ReadAll implements journal.Blob.
func (b *blob) ReadAll() ([]byte, error) {
	data := make([]byte, b.size)
	if _, err := io.ReadFull(io.NewSectionReader(b.File, 0, b.size), data); err != nil {
		return nil, fmt.Errorf("read blob %s: %v: %w", b.hash, err, journal.ErrBlobDamaged)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != string(b.hash) {
		return nil, fmt.Errorf("blob %s: its bytes do not match its name: %w", b.hash, journal.ErrBlobDamaged)
	}
	return data, nil
}

const blobTemp = "tmp-"

// PutBlob implements journal.Owner.
func (o *owner) PutBlob(ctx context.Context, data []byte) (journal.Hash, error) {
	sum := sha256.Sum256(data)
	h := journal.Hash(hex.EncodeToString(sum[:]))
	if there, err := o.haveBlob(ctx, h, int64(len(data))); there || err != nil {
		return h, err
	}
	got, _, err := o.PutBlobFrom(ctx, bytes.NewReader(data))
	return got, err
}

// haveBlob reports whether the payload is stored, and its name durable. A payload with damaged bytes does not count:
// the caller writes it again, which repairs all events that name it.
func (o *owner) haveBlob(ctx context.Context, h journal.Hash, size int64) (bool, error) {
	if err := o.Usable(ctx); err != nil {
		return false, err
	}
	path, err := blobPath(o.dir, h)
	if err != nil {
		return false, err
	}
	if fi, err := o.fs.Lstat(path); err != nil || fi.Size() != size || journal.CheckBlob(ctx, o, h) != nil {
		return false, nil //nolint:nilerr // on any error the caller writes it again
	}
	return true, o.syncFolder(filepath.Dir(path))
}

func (o *owner) syncFolder(dir string) error {
	return whetherSaved(o.fs, "sync folder", dir, o.fs.SyncDir(dir))
}

// PutBlobFrom implements journal.Owner.
func (o *owner) PutBlobFrom(ctx context.Context, r io.Reader) (h journal.Hash, size int64, err error) {
	if err := o.Usable(ctx); err != nil {
		return "", 0, err
	}
	root := filepath.Join(o.dir, blobsDir)
	if err := ensureDir(o.fs, root); err != nil {
		return "", 0, err
	}
	tmp := filepath.Join(root, blobTemp+strconv.FormatUint(rand.Uint64(), 36))
	f, err := o.fs.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, notSaved(o.fs, "write blob", tmp, err)
	}
	defer func() {
		_ = o.fs.Remove(tmp) // after the rename there is nothing to remove
	}()
	h, size, err = o.fill(ctx, f, tmp, r)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = notSaved(o.fs, "write blob", tmp, cerr)
	}
	if err != nil {
		return "", 0, err
	}
	if there, err := o.haveBlob(ctx, h, size); there || err != nil {
		return h, size, err
	}
	path, err := blobPath(o.dir, h)
	if err != nil {
		return "", 0, err
	}
	if err := ensureDir(o.fs, filepath.Dir(path)); err != nil {
		return "", 0, err
	}
	if err := o.fs.Rename(tmp, path); err != nil {
		return "", 0, notSaved(o.fs, "write blob", path, err)
	}
	return h, size, o.syncFolder(filepath.Dir(path))
}

// fill copies r into f and syncs it.
func (o *owner) fill(ctx context.Context, f File, path string, r io.Reader) (journal.Hash, int64, error) {
	sum, size, buf := sha256.New(), int64(0), make([]byte, chunk)
	for {
		if err := o.check(ctx); err != nil {
			return "", 0, err
		}
		n, rerr := io.ReadFull(r, buf)
		sum.Write(buf[:n])
		if n > 0 {
			if w, err := f.WriteAt(buf[:n], size); err != nil || w < n {
				return "", 0, notSaved(o.fs, "write blob", path, orShort(err))
			}
		}
		size += int64(n)
		if errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF) {
			break
		}
		if rerr != nil {
			return "", 0, fmt.Errorf("read the payload of a blob: %w", rerr)
		}
	}
	if err := f.Datasync(); err != nil {
		return "", 0, notSaved(o.fs, "sync blob", path, err)
	}
	return journal.Hash(hex.EncodeToString(sum.Sum(nil))), size, nil
}

// SaveSnapshot implements journal.Owner. The commit must be synced.
func (o *owner) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := o.Usable(ctx); err != nil {
		return err
	}
	if len(s.Data) > snapMax {
		return fmt.Errorf("save snapshot of %s: %d bytes are too many", o.dir, len(s.Data))
	}
	return o.saveIdx(ctx, s)
}

func (o *owner) saveIdx(ctx context.Context, s journal.Snapshot) error {
	o.saveMu.Lock()
	defer o.saveMu.Unlock()
	limit := o.bytes.Load()
	o.idx.Lock()
	err := o.refresh(ctx, limit)
	known := o.idx.index
	o.idx.Unlock()
	if err != nil {
		return err
	}
	x := idxFile{Ino: o.ino, HeadLen: min(limit, headMax), Spots: known.spots, Chain: known.atSpot}
	if x.HeadCRC, err = headSum(o.log, x.HeadLen); err != nil {
		return o.reader.trouble(err)
	}
	if s.Seq > 0 {
		sum, ok := o.commitSum(known, s.Seq, limit)
		if !ok {
			return fmt.Errorf("save snapshot of %s: there is no synced commit %d", o.dir, s.Seq)
		}
		x.SnapSeq, x.SnapLine, x.SnapLen, x.SnapSum = s.Seq, sum, int64(len(s.Data)), sha256.Sum256(s.Data)
	}
	if err := saveIndex(o.fs, filepath.Join(o.dir, idxName), x, o.opt.Seal, s.Data); err != nil {
		return err
	}
	o.saved = len(x.Spots)
	return nil
}

// saveOnClose brings the offsets in journal.idx up to date if that is worth it. An old index costs only speed, so the
// caller ignores a failure.
func (o *owner) saveOnClose() {
	ctx := context.Background()
	o.idx.Lock()
	err := o.refresh(ctx, o.bytes.Load())
	n := len(o.idx.spots)
	o.idx.Unlock()
	if err != nil || n-o.saved < 4 {
		return
	}
	s, err := o.reader.snapshot(o.bytes.Load())
	if err != nil && !errors.Is(err, errNoIndex) && !errors.Is(err, fs.ErrNotExist) {
		return // it is there, but cannot be read now: leave it
	}
	_ = o.saveIdx(ctx, s)
}
