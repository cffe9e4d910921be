package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/payload"
	"github.com/roost-dev/roost/journal"
)

// blob is a payload of a journal.
type blob struct {
	ctx  context.Context //nolint:containedctx // io.ReaderAt has none
	r    *reader
	hash journal.Hash
	key  []byte // hash as the tables have it
	size int64
}

// Blob implements journal.Reader. The payload is read with ctx.
func (r *reader) Blob(ctx context.Context, h journal.Hash) (journal.Blob, error) {
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	missing := fmt.Errorf("blob %q of journal %s: %w", string(h), r.name, journal.ErrBlobMissing)
	if !h.Valid() {
		return nil, missing
	}
	b := &blob{ctx: ctx, r: r, hash: h}
	b.key, _ = hex.DecodeString(string(h)) // it is valid
	found, err := database.Found(r.in.db.QueryRow(ctx, `
SELECT c.size FROM roost.blobs b JOIN roost.contents c ON c.hash = b.hash WHERE b.journal = $1 AND b.hash = $2`, r.id, b.key), &b.size)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open blob %s of journal %s: %w", h, r.name, err)
	case !found:
		return nil, missing
	}
	return b, nil
}

// Size implements journal.Blob.
func (b *blob) Size() int64 { return b.size }

// Close implements journal.Blob.
func (b *blob) Close() error { return nil }

// ReadAt implements io.ReaderAt.
func (b *blob) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, fmt.Errorf("read blob %s: negative offset", b.hash)
	}
	end := min(at+int64(len(p)), b.size)
	if at >= b.size {
		return 0, io.EOF
	}
	err = payload.Read(b.ctx, b.r.in.db, b.key, b.size, at/payload.PieceSize, (end-1)/payload.PieceSize, func(number int64, data []byte) error {
		n += copy(p[n:end-at], data[at+int64(n)-number*payload.PieceSize:])
		return nil
	})
	if errors.Is(err, payload.ErrDamaged) {
		err = fmt.Errorf("%w: %w", err, journal.ErrBlobDamaged)
	}
	switch {
	case err != nil:
		return n, fmt.Errorf("read blob %s: %w", b.hash, err)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// ReadAll implements journal.Blob.
func (b *blob) ReadAll() ([]byte, error) {
	data := make([]byte, b.size)
	if n, err := b.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], b.key) {
		return nil, fmt.Errorf("blob %s: its bytes do not match its name: %w", b.hash, journal.ErrBlobDamaged)
	}
	return data, nil
}

// PutBlob implements journal.Owner.
func (o *owner) PutBlob(ctx context.Context, data []byte) (journal.Hash, error) {
	sum := sha256.Sum256(data)
	h := journal.Hash(hex.EncodeToString(sum[:]))
	return h, o.putBlob(ctx, sum[:], bytes.NewReader(data), int64(len(data)))
}

// PutBlobFrom implements journal.Owner. A payload's name depends on all its bytes, so a temporary file holds them
// until the last one has come.
func (o *owner) PutBlobFrom(ctx context.Context, from io.Reader) (_ journal.Hash, _ int64, err error) {
	if err := o.check(ctx); err != nil {
		return "", 0, err
	}
	spool, err := os.CreateTemp("", "roost-blob-")
	if err != nil {
		return "", 0, fmt.Errorf("put a blob into journal %s: %w", o.name, err)
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(spool, sum), from)
	if err != nil {
		return "", 0, fmt.Errorf("put a blob into journal %s: %w", o.name, err)
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return "", 0, fmt.Errorf("put a blob into journal %s: %w", o.name, err)
	}
	key := sum.Sum(nil)
	return journal.Hash(hex.EncodeToString(key)), size, o.putBlob(ctx, key, spool, size)
}

// putBlob stores the payload in one transaction, and adds it to the payloads that the journal names. It repairs
// stored pieces that differ.
func (o *owner) putBlob(ctx context.Context, key []byte, from io.Reader, size int64) error {
	if err := o.Usable(ctx); err != nil {
		return err
	}
	err := o.in.db.Transaction(ctx, func(tx *database.Tx) error { return putNamed(ctx, tx, o.id, key, from, size) })
	if err != nil {
		return unsaved("put a blob", o.name, err)
	}
	return nil
}

// putNamed stores a payload, and adds it to the payloads that a journal names.
func putNamed(ctx context.Context, tx *database.Tx, id int64, key []byte, from io.Reader, size int64) error {
	whole := payload.Size{Hash: key, Bytes: size}
	if err := payload.Put(ctx, tx, []payload.Size{whole}); err != nil {
		return err
	}
	piece, packed := make([]byte, min(payload.PieceSize, size)), []byte(nil)
	for n := range payload.Count(size) {
		part := piece[:min(payload.PieceSize, size-n*payload.PieceSize)]
		if _, err := io.ReadFull(from, part); err != nil {
			return err
		}
		packed = payload.Pack(packed[:0], part)
		whole.Stored += int64(len(packed))
		if err := payload.PutPieces(ctx, tx, []payload.Piece{{Hash: key, N: n, Data: packed}}); err != nil {
			return err
		}
	}
	if err := payload.Put(ctx, tx, []payload.Size{whole}); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO roost.blobs (journal, hash) VALUES ($1, $2) ON CONFLICT DO NOTHING`, id, key)
	return err
}
