package hosting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

// migrateCommand copies the tasks of a root into a database, or back. It opens both stores itself, because no server
// has both.
func (a *commands) migrateCommand() *cobra.Command {
	var from, to, key string
	var n api.NewMigration
	cmd := help.Command("migrate", func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if from == "" || to == "" {
			return failure.Usage("roost migrate", "--from and --to are needed", "roost migrate --from DIR --to postgres://HOST/NAME --store-key FILE")
		}
		if inDatabase(from) == inDatabase(to) {
			return failure.Usage("roost migrate", "of --from and --to, one must be a folder and the other one a database",
				"roost import DIR  # for tasks of another root")
		}
		source, closeSource, err := a.openEnd(ctx, from, key, false)
		if err != nil {
			return err
		}
		defer closeSource()
		target, closeTarget, err := a.openEnd(ctx, to, key, !n.DryRun)
		if err != nil {
			return err
		}
		defer closeTarget()
		watched, shown := a.Watched(ctx)
		r, err := local.Migrate(watched, source, target, n)
		shown()
		r.From, r.To = withoutPassword(from), withoutPassword(to)
		if err != nil {
			return failure.New(failure.ExitFailed, "migration_stopped", "migrate "+r.From, err.Error(), "the same command again: it continues where it stopped")
		}
		err = app.Show(a.App, r, a.showMigration)
		if count := len(r.Problems); err == nil && count > 0 {
			err = failure.New(failure.ExitFailed, "migration_incomplete", "migrate "+r.From,
				fmt.Sprintf("%d of its parts could not be copied", count), "the same command again, when what is named above is mended")
		}
		return err
	})
	fl := cmd.Flags()
	fl.StringVar(&from, "from", "", "the root or the database with the tasks: a `folder`, or postgres://USER@HOST/NAME")
	fl.StringVar(&to, "to", "", "where they are copied to: postgres://USER@HOST/NAME, or a `folder`")
	fl.StringVar(&key, "store-key", "", "`file` with the key of the servers that share the database; made for a new database")
	fl.BoolVar(&n.DryRun, "dry-run", false, "compare both, and change nothing")
	fl.BoolVar(&n.Trust, "trust", false, "let tasks whose journals are proven go on there as they are")
	return cmd
}

// inDatabase reports whether an end of a migration is a database.
func inDatabase(end string) bool { return strings.Contains(end, "://") }

// openEnd opens one end of a migration. closing must be called at the end.
func (a *commands) openEnd(ctx context.Context, end, key string, create bool) (s *local.Roost, closing func(), err error) {
	if inDatabase(end) {
		if create {
			if err := database.Migrate(ctx, end); err != nil {
				return nil, nil, refuse(err, explain(err))
			}
		}
		s, done, err := a.openDatabase(ctx, end, key)
		if errors.Is(err, database.ErrNoSchema) {
			return nil, nil, failure.New(failure.ExitConfig, "database", "open the database", err.Error(),
				"the same without --dry-run: it makes the tables of a new database")
		}
		if err != nil {
			return nil, nil, err
		}
		return s, func() {
			if err := s.Close(context.WithoutCancel(ctx)); err != nil {
				a.Warn(err.Error())
			}
			done()
		}, nil
	}
	dir, err := filepath.Abs(end)
	if err == nil && !create {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil, nil, failure.New(failure.ExitUsage, "no_root", "open the root "+end, err.Error(), "roost sources  # names the root")
	}
	s, err = a.OpenRoot(dir)
	return s, func() {}, err
}

var password = lazyregexp.New(`^([^:]+://[^:@/]*):[^@/]*@`) // in an address, as the driver reads it

// withoutPassword is an end of a migration as it may be shown. A parameter of an address can be a password, too.
func withoutPassword(end string) string {
	if inDatabase(end) {
		end, _, _ = strings.Cut(password().ReplaceAllString(end, "$1@"), "?")
	}
	return end
}

func (a *commands) showMigration(r api.Migration) {
	for _, list := range []struct {
		name  string
		color view.Style
		items []api.MigrationProblem
	}{{"not copied", view.Bad, r.Problems}, {"stays", view.Dim, r.Left}} {
		for _, p := range list.items {
			text := strings.TrimSuffix(list.name+" "+p.Task, " ") + ": " + p.Problem
			a.Styled(list.color, display.OneLineIndented(text))
		}
	}
	a.Flush()
	would := map[bool]string{true: "would be "}[r.DryRun]
	a.Say("%s -> %s: %s %scopied, %d %sextended, %d already there; %d commits, %d contents of checkpoints, %s",
		r.From, r.To, api.Plural(r.Copied, "journal"), would, r.Extended, would, r.Already, r.Commits, r.Contents, api.Plural(r.Drafts, "draft"))
	switch {
	case r.DryRun:
		a.Say("nothing was changed")
	case r.Trusted > 0:
		a.Say("%s may go on there as they are", api.Plural(r.Trusted, "task"))
	}
}
