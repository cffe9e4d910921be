package postgres

import (
	"context"
	"time"

	"github.com/roost-dev/roost/database"
)

// Renewal is the statement that renews leases.
var Renewal = renewal(skipLocked)

// Listen receives notifications until ctx ends. After silence it connects again.
func Listen(ctx context.Context, db *database.DB, silence time.Duration, warn func(error)) {
	h := newHub(db, warn)
	h.silence = silence
	h.listen(ctx)
}
