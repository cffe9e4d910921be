package idempotency

import (
	"testing"

	"github.com/google/uuid"
)

// The id of a new task follows from its key, and has the time of a key that has one.
func TestIdentity(t *testing.T) {
	t.Parallel()
	timed := uuid.Must(uuid.NewV7())
	dashless := uuid.MustParse(timed.String())
	for _, tt := range []struct {
		key     string
		version uuid.Version
	}{{timed.String(), 7}, {"mine", 8}, {uuid.NewString(), 8}} {
		got := uuid.MustParse(Identity(tt.key, nil))
		if got.Version() != tt.version || got.Variant() != uuid.RFC4122 {
			t.Errorf("key %s: got %s of version %d, want %d", tt.key, got, got.Version(), tt.version)
		}
		if again := Identity(tt.key, nil); again != got.String() {
			t.Errorf("key %s: got %s and then %s", tt.key, got, again)
		}
	}
	if got := uuid.MustParse(Identity(timed.String(), nil)); got.Time() != dashless.Time() || got == timed {
		t.Errorf("got %s of a key %s, want its time and another id", got, timed)
	}
	if got := Identity("mine", []byte("{}")); got == Identity("mine", nil) {
		t.Errorf("got %s for two bodies under one key, want two ids", got)
	}
}
