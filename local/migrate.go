package local

import (
	"context"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/migrate"
)

// Migrate copies all tasks of one store into another: from folders into a database, or back. See package migrate.
func Migrate(ctx context.Context, from, to *Roost, o api.NewMigration) (api.Migration, error) {
	return migrate.Run(ctx, from.end(), to.end(), o)
}

func (r *Roost) end() migrate.End {
	e := migrate.End{Store: r.store, Contents: checkpoint.Place{Dir: checkpoints.Dir(r.store)}}
	if r.contents != nil {
		e.Contents.Stores = r.contents
	}
	return e
}
