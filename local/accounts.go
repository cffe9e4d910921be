package local

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

// ErrBegun: there are accounts already, so that no first one can be made.
var ErrBegun = accounts.ErrBegun

// BeginAccounts makes the tables in the database at url if they are missing, and the first account, which may do
// everything, with its token; it fails with ErrBegun if there are accounts.
func BeginAccounts(ctx context.Context, url, name string) (api.IssuedToken, error) {
	if err := database.Migrate(ctx, url); err != nil {
		return api.IssuedToken{}, err
	}
	db, err := database.Open(ctx, url)
	if err != nil {
		return api.IssuedToken{}, fmt.Errorf("make the first account: %w", err)
	}
	defer db.Close()
	return accounts.New(db).Begin(ctx, name)
}
