package running

import (
	"context"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/local"
)

// switchBranch makes a branch of a task its head.
func (a *commands) switchBranch(ctx context.Context, s *local.Roost, id, branch string) error {
	c, end, err := a.Local(s)
	if err != nil {
		return err
	}
	defer end()
	_, err = c.Do(ctx, http.MethodPost, app.PathOf(id, "head"), nil, api.NewHead{Branch: branch}, nil)
	return err
}
