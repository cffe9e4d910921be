package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
)

type keyed struct{}

// NewKey makes a unique idempotency key.
func NewKey() string {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	return hex.EncodeToString(key)
}

// Keyed gives the requests of a context an idempotency key: a server carries out POSTs with one key, path and body
// once, however often clients send them. It is for callers that repeat a request after an error for which Lost is
// true. Different requests must have different keys.
func Keyed(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

// KeyOf is the key of a context, "" when it has none.
func KeyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyed{}).(string)
	return key
}

// Lost reports whether the answer to a request was lost, so that the request may have taken effect. Sent again under
// the same key, it takes effect once.
func Lost(err error) bool {
	var un *Unreachable
	var p *Problem
	return errors.As(err, &un) || errors.As(err, &p) && (p.Code == "holder_gone" || p.Code == "idempotency_in_flight")
}
