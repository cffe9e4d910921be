package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/payload"
	"github.com/roost-dev/roost/internal/failpoint"
)

// batch implements content.Batch.
type batch struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // content.Batch has none
	spool  spool
	have   map[content.Key]*packed
	relied map[content.Key]bool // contents of the store that manifests of the batch name
	unhold func()               // ends the hold of this batch
	done   bool
}

// Begin implements content.Store.
func (s *Store) Begin(ctx context.Context) (content.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := s.create(ctx); err != nil {
		return nil, fmt.Errorf("write to the content store: %w", database.Explained(err))
	}
	return &batch{s: s, ctx: ctx, have: map[content.Key]*packed{}, relied: map[content.Key]bool{}, unhold: s.Keep()}, nil
}

func (b *batch) open() error {
	if b.done {
		return errors.New("write to the content store: the batch is closed")
	}
	return b.ctx.Err()
}

// Add implements content.Batch.
func (b *batch) Add(data []byte) (content.Hash, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	k := content.Key(sha256.Sum256(data))
	if b.have[k] != nil {
		return k.Hash(), nil
	}
	start := b.spool.end
	p := &packed{key: k, size: int64(len(data))}
	for piece := range slices.Chunk(data, payload.PieceSize) {
		at, err := b.spool.add(piece)
		if err != nil {
			b.spool.cutBack(start)
			return "", fmt.Errorf("write to the content store: %w", err)
		}
		p.pieces, p.stored = append(p.pieces, at), p.stored+int64(at.length)
	}
	b.have[k] = p
	return k.Hash(), nil
}

// AddManifest implements content.Batch.
func (b *batch) AddManifest(m content.Manifest) (content.Hash, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	fail := func(err error) (content.Hash, error) { return "", fmt.Errorf("write a manifest: %w", err) }
	names, err := m.Names()
	if err != nil {
		return fail(err)
	}
	others := api.Some(names, func(k content.Key) (content.Key, bool) { return k, b.have[k] == nil && !b.relied[k] })
	found, err := b.s.rely(b.ctx, others)
	if err != nil {
		return fail(err)
	}
	for _, k := range others {
		if _, there := found[k]; !there {
			return fail(fmt.Errorf("content %s %w", k.Hash(), content.ErrMissing))
		}
		b.relied[k] = true
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fail(err)
	}
	h, err := b.Add(data)
	if err != nil {
		return fail(err)
	}
	p := b.have[content.Key(sha256.Sum256(data))]
	p.manifest, p.names = true, names
	return h, nil
}

// Discard implements content.Batch.
func (b *batch) Discard() {
	if b.done {
		return
	}
	b.done = true
	_ = b.spool.drop() // a temporary file that stays is one of the system's
	b.unhold()
}

// Close implements content.Batch.
func (b *batch) Close() error {
	defer b.Discard()
	if err := b.open(); err != nil {
		return err
	}
	if len(b.have) == 0 {
		return nil
	}
	if err := b.store(); err != nil {
		return fmt.Errorf("write to the content store: %w", database.Explained(err))
	}
	failpoint.Hit("content.postgres.committed")
	return nil
}

// store stores the batch in one transaction, and holds its contents.
func (b *batch) store() error {
	s := b.s
	id, err := s.row(b.ctx)
	if err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(b.have), func(x, y content.Key) int { return bytes.Compare(x[:], y[:]) })
	s.hold.Lock()
	defer s.hold.Unlock()
	err = s.leased(b.ctx, func(lease int64) error {
		return s.in.db.Transaction(b.ctx, func(tx *database.Tx) error {
			if _, err := tx.Exec(b.ctx, lockShared, lockClass, id); err != nil {
				return err
			}
			if err := b.reliedStay(tx, id); err != nil {
				return err
			}
			if err := b.storePayloads(tx, keys); err != nil {
				return err
			}
			if err := b.keep(tx, id, lease, keys); err != nil {
				return err
			}
			failpoint.Hit("content.postgres.written")
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		s.known[k] = true
	}
	s.setDamaged(false, keys...)
	return nil
}

// reliedStay fails when a content that a manifest of the batch names was removed: the lease that held it has ended.
func (b *batch) reliedStay(tx *database.Tx, store int32) error {
	var n int
	relied := slices.Collect(maps.Keys(b.relied))
	err := tx.QueryRow(b.ctx, `SELECT count(*) FROM roost.kept WHERE store = $1 AND hash = ANY($2)`, store, asBytes(relied)).Scan(&n)
	if err == nil && n < len(relied) {
		err = fmt.Errorf("a content that a manifest names %w any more, because this server could not reach the database for long; repeat the operation", content.ErrMissing)
	}
	return err
}

// flushBytes bounds the bytes of pieces in one statement.
const flushBytes = 4 << 20

// storePayloads stores the contents that the database does not have or has with damaged pieces.
func (b *batch) storePayloads(tx *database.Tx, keys []content.Key) error {
	there, err := payload.Present(b.ctx, tx, asBytes(keys))
	if err != nil {
		return err
	}
	present := api.SetOf(api.Each(there, func(hash []byte) content.Key { return content.Key(hash) }))
	var sizes []payload.Size
	var fresh []*packed
	for _, k := range keys {
		if present[k] && !b.s.isDamaged(k) {
			continue
		}
		p := b.have[k]
		fresh = append(fresh, p)
		sizes = append(sizes, payload.Size{Hash: p.key[:], Bytes: p.size, Stored: p.stored})
	}
	if err := payload.Put(b.ctx, tx, sizes); err != nil {
		return err
	}
	var pieces []payload.Piece
	room := flushBytes
	flush := func() error {
		err := payload.PutPieces(b.ctx, tx, pieces)
		pieces, room = pieces[:0], flushBytes
		return err
	}
	for _, p := range fresh {
		for n, at := range p.pieces {
			data, err := b.spool.read(at)
			if err != nil {
				return err
			}
			pieces = append(pieces, payload.Piece{Hash: p.key[:], N: int64(n), Data: data})
			if room -= len(data); room > 0 {
				continue
			}
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// keep adds the contents of the batch to the store, and holds them.
func (b *batch) keep(tx *database.Tx, store int32, lease int64, keys []content.Key) error {
	var manifests, from, to [][]byte
	for _, k := range keys {
		p := b.have[k]
		if !p.manifest {
			continue
		}
		manifests = append(manifests, p.key[:])
		for i := range p.names {
			from, to = append(from, p.key[:]), append(to, p.names[i][:])
		}
	}
	list := asBytes(keys)
	var fresh int64 // bytes that the store did not have
	err := tx.QueryRow(b.ctx, `
WITH fresh AS (
	INSERT INTO roost.kept (store, hash, manifest) SELECT $1, hash, false FROM unnest($2::bytea[]) AS hash ON CONFLICT DO NOTHING RETURNING hash
)
SELECT COALESCE(sum(c.stored), 0)::bigint FROM fresh f JOIN roost.contents c ON c.hash = f.hash`, store, list).Scan(&fresh)
	if err != nil {
		return err
	}
	var q database.Batch
	if len(manifests) > 0 {
		q.Queue(`UPDATE roost.kept SET manifest = true WHERE store = $1 AND hash = ANY($2) AND NOT manifest`, store, manifests)
		q.Queue(`INSERT INTO roost.manifests (manifest, hash) SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT DO NOTHING`, from, to)
	}
	q.Queue(`INSERT INTO roost.held (lease, holder, store, hash) SELECT $1, $2, $3, hash FROM unnest($4::bytea[]) AS hash ON CONFLICT DO NOTHING`,
		lease, b.s.holder, store, list)
	if fresh > 0 {
		q.Queue(`UPDATE roost.content_stores SET bytes = bytes + $2 WHERE id = $1`, store, fresh)
	}
	return tx.SendBatch(b.ctx, &q)
}
