package filelog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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

// verify reads the payload without keeping it.
func (b *blob) verify() error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(b.File, 0, b.size)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != string(b.hash) {
		return journal.ErrBlobDamaged
	}
	return nil
}
