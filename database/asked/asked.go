// Package asked remembers in the database what a person was asked once.
package asked

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/database"
)

// Once reports whether this is the first call for a question in this database, and records the call.
func Once(ctx context.Context, db *database.DB, question string) (bool, error) {
	done, err := db.Exec(ctx, `INSERT INTO roost.asked (question) VALUES ($1) ON CONFLICT DO NOTHING`, question)
	if err != nil {
		return false, fmt.Errorf("note that %s was asked: %w", question, database.Explained(err))
	}
	return done.RowsAffected() > 0, nil
}
