package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
)

// Verifier reads what is kept in the store of a workspace, which need not exist any more, and compares it with the
// records. Each content is read once. It writes nothing.
type Verifier struct {
	Objects int   // that were read
	Bytes   int64 // of them

	c     *Contents
	known map[string]error
}

// OpenVerifier opens the store of that name in dir, the folder of all stores.
func OpenVerifier(dir, name string) (*Verifier, error) {
	c, err := OpenContents(dir, name)
	if err != nil {
		return nil, fmt.Errorf("verify checkpoints: %w", err)
	}
	return &Verifier{c: c, known: map[string]error{}}, nil
}

// Close closes the store.
func (v *Verifier) Close() error { return v.c.Close() }

// Verify returns nil when the content of a version is kept as recorded, or was never kept. The error wraps ErrUnkept
// when the content is missing, and ErrDamaged when it differs. Any other error is the context's, or a read error.
func (v *Verifier) Verify(ctx context.Context, f api.FileVersion) error {
	if f.Blob == "" {
		return nil
	}
	key := f.Blob + " " + f.Hash
	if err, ok := v.known[key]; ok {
		return err
	}
	n := &counter{}
	err := v.c.store.Copy(ctx, content.Hash(f.Hash), n)
	if errors.Is(err, content.ErrMissing) {
		var data []byte
		data, err = v.c.read(ctx, f, 0)
		n.bytes = int64(len(data))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, content.ErrMissing):
		err = fmt.Errorf("content %.12s: %w", f.Blob, ErrUnkept)
	case err != nil:
		err = fmt.Errorf("content %.12s: %w", f.Blob, err)
	}
	v.Objects++
	v.Bytes += n.bytes
	v.known[key] = err
	return err
}

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// isSound reports whether a content need not be written again: it is in the store, and this keeper read it once and
// found it whole. A damaged one is written again by the next keeper that has the content.
func (k *Keeper) isSound(ctx context.Context, id content.Hash) bool {
	if !k.store.Has(id) {
		return false
	}
	k.mu.Lock()
	sound := k.sound[id]
	k.mu.Unlock()
	if sound {
		return true
	}
	if err := k.store.Copy(ctx, id, io.Discard); err != nil {
		return ctx.Err() != nil // a damaged content is marked from now on, and not found
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sound[id] = true
	return true
}
