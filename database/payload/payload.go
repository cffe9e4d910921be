// Package payload keeps bytes under their SHA-256 in the tables contents and chunks, each payload once: the blobs of
// journals and the contents of content stores.
//
// A payload is kept in pieces, each compressed by itself, so that a reader of a part reads little else. A piece that
// zstd does not make smaller is stored uncompressed: a stored piece of full length is uncompressed, a shorter one is
// compressed.
//
// A payload stays while a blob of a journal (roost.blobs) or a content of a store (roost.kept) names it. A
// transaction that is about to name a payload first locks its row of contents, as Put and Present do; Sweep removes
// the payloads that no row names and no transaction has locked.
package payload

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-dev/roost/database"
)

// PieceSize is the number of bytes in a piece; the last piece of a payload holds the rest.
const PieceSize = 256 << 10

// ErrDamaged: a piece is missing, or differs from what was stored.
var ErrDamaged = errors.New("a piece is missing or damaged")

// One encoder and one decoder serve all: EncodeAll and DecodeAll may be called from several goroutines.
var codec = sync.OnceValue(func() (c struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}) {
	// Only wrong options are errors.
	c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(PieceSize))
	c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(PieceSize), zstd.WithDecoderLowmem(true))
	return c
})

// Pack appends to out the stored form of a piece.
func Pack(out, piece []byte) []byte {
	start := len(out)
	out = codec().enc.EncodeAll(piece, out)
	if len(out)-start >= len(piece) {
		return append(out[:start], piece...)
	}
	return out
}

// unpack returns piece n of a payload of size bytes from its stored form.
func unpack(stored []byte, n, size int64) ([]byte, error) {
	length := min(PieceSize, size-n*PieceSize)
	if int64(len(stored)) == length {
		return stored, nil
	}
	data, err := codec().dec.DecodeAll(stored, make([]byte, 0, max(length, 0)))
	if err != nil || int64(len(data)) != length {
		return nil, ErrDamaged
	}
	return data, nil
}

// Read calls do for the pieces first to last of a payload of size bytes, in order.
func Read(ctx context.Context, q database.Querier, hash []byte, size, first, last int64, do func(n int64, data []byte) error) error {
	rows := q.Query(ctx, `SELECT n, data FROM roost.chunks WHERE hash = $1 AND n BETWEEN $2 AND $3 ORDER BY n`, hash, first, last)
	next := first
	var n int64
	var stored []byte
	err := rows.Each([]any{&n, &stored}, func() error {
		if n != next {
			return ErrDamaged
		}
		next++
		data, err := unpack(stored, n, size)
		if err != nil {
			return err
		}
		return do(n, data)
	})
	if err == nil && next <= last {
		err = ErrDamaged
	}
	return err
}

// Count returns the number of pieces in a payload of size bytes.
func Count(size int64) int64 { return (size + PieceSize - 1) / PieceSize }

// Size is the size of a payload.
type Size struct {
	Hash   []byte
	Bytes  int64
	Stored int64 // total bytes of its pieces as stored
}

// Piece is one piece in its stored form.
type Piece struct {
	Hash []byte
	N    int64
	Data []byte
}

// Present locks the payloads that exist against removal until the transaction ends, and returns their hashes.
func Present(ctx context.Context, tx *database.Tx, hashes [][]byte) ([][]byte, error) {
	rows := tx.Query(ctx, `SELECT hash FROM roost.contents WHERE hash = ANY($1) ORDER BY hash FOR KEY SHARE`, hashes)
	return database.Column[[]byte](rows)
}

// Put records the sizes of payloads, and locks them against removal until the transaction ends. Their pieces must follow.
// The caller puts payloads in the order of their hashes, in one transaction: otherwise two transactions that put the same
// payloads could wait for each other.
func Put(ctx context.Context, tx *database.Tx, list []Size) error {
	hashes, sizes, stored := make([][]byte, len(list)), make([]int64, len(list)), make([]int64, len(list))
	for i, p := range list {
		hashes[i], sizes[i], stored[i] = p.Hash, p.Bytes, p.Stored
	}
	_, err := tx.Exec(ctx, `
INSERT INTO roost.contents (hash, size, stored) SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[])
ON CONFLICT (hash) DO UPDATE SET size = EXCLUDED.size, stored = EXCLUDED.stored
WHERE (contents.size, contents.stored) <> (EXCLUDED.size, EXCLUDED.stored)`, hashes, sizes, stored)
	return err
}

// PutPieces stores pieces. It replaces an existing piece that differs.
func PutPieces(ctx context.Context, tx *database.Tx, list []Piece) error {
	hashes, numbers, data := make([][]byte, len(list)), make([]int64, len(list)), make([][]byte, len(list))
	for i, p := range list {
		hashes[i], numbers[i], data[i] = p.Hash, p.N, p.Data
	}
	_, err := tx.Exec(ctx, `
INSERT INTO roost.chunks (hash, n, data) SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[])
ON CONFLICT (hash, n) DO UPDATE SET data = EXCLUDED.data WHERE chunks.data <> EXCLUDED.data`, hashes, numbers, data)
	return err
}

// sweepMost bounds the payloads that one transaction of Sweep removes.
const sweepMost = 10_000

// Sweep removes the payloads that no row names.
func Sweep(ctx context.Context, db *database.DB) error {
	for {
		var n int
		err := db.Transaction(ctx, func(tx *database.Tx) (err error) {
			n, err = sweep(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("remove payloads that nothing names: %w", database.Explained(err))
		}
		if n < sweepMost {
			return nil
		}
	}
}

// sweep checks the rows again once they are locked: meanwhile, a transaction that had locked a payload's row may have
// named it.
func sweep(ctx context.Context, tx *database.Tx) (int, error) {
	const unnamed = `NOT EXISTS (SELECT FROM roost.kept k WHERE k.hash = c.hash) AND NOT EXISTS (SELECT FROM roost.blobs b WHERE b.hash = c.hash)`
	rows := tx.Query(ctx, `SELECT hash FROM roost.contents c WHERE `+unnamed+` ORDER BY hash LIMIT $1 FOR UPDATE SKIP LOCKED`, sweepMost)
	hashes, err := database.Column[[]byte](rows)
	if err != nil || len(hashes) == 0 {
		return 0, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM roost.contents c WHERE hash = ANY($1) AND `+unnamed, hashes)
	return len(hashes), err
}
