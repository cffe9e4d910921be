package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
)

type keyed struct{}

// NewKey makes an idempotency key that nobody else has.
func NewKey() string {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	return hex.EncodeToString(key)
}

// Keyed makes what is asked with the context go under an idempotency key: a POST with a key
// that the server knows, and the same path and body, is done once, however often it is asked
// and by which client. It is for who asks again after an error of which Lost is true. Requests
// that differ must not have one key.
func Keyed(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

// KeyOf is the key that the context was given, "" when it has none.
func KeyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyed{}).(string)
	return key
}

// Lost tells whether an error leaves open if what was asked was done: its answer did not come,
// and asked again under the same key it is done once.
func Lost(err error) bool {
	var un *Unreachable
	var p *Problem
	return errors.As(err, &un) || errors.As(err, &p) && (p.Code == "holder_gone" || p.Code == "idempotency_in_flight")
}
