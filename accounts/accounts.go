// Package accounts decides who may do what in a store that several people share. It keeps people and teams, their tokens,
// and the audit trail of their acts in the database of the store.
//
// # Who may reach a task
//
// The journal of a task records its owner and the accounts that it is shared with (api.Access). May decides by both
// and by the scopes of the token; no other function does. The store calls it whenever it finds or lists tasks
// (store.Seeing), so that no service can forget the check.
//
// # Tokens
//
// Only the SHA-256 of a token is kept: its 256 random bits need no slow hash. The server looks up the token of each
// request, so a revoked token stops working at once on every server; it checks the tokens of open requests every
// second (Enter).
//
// # The audit trail
//
// An entry is durable before the act begins, and its outcome is a row of its own. An entry without an outcome shows that
// the server was killed, or that the act has not ended. Nothing changes or removes entries.
//
// All times are those of the database.
package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

var (
	// ErrToken: the token is unknown, revoked or expired.
	ErrToken = errors.New("the token does not work")
	// ErrUnknown: no account or token has the id.
	ErrUnknown = errors.New("no account or token has that id")
	// ErrTaken: another account has the name.
	ErrTaken = errors.New("the name is taken")
	// ErrInvalid: the requested name, kind, scopes or life is not allowed, or the change would remove the last
	// administrator.
	ErrInvalid = errors.New("not allowed for an account or token")
	// ErrBegun: the store has accounts already.
	ErrBegun = errors.New("the store has accounts already")
)

// Accounts are the accounts of one store. It is safe for concurrent use.
type Accounts struct {
	db   *database.DB
	open openRequests
}

// New returns the accounts of a database. Close it when no request is open any more.
func New(db *database.DB) *Accounts { return &Accounts{db: db} }

// Close ends the goroutine that watches open requests, and waits for it.
func (a *Accounts) Close() { a.open.close() }

// Begin creates the first account, a person who may do everything, and its token. ErrBegun: there are accounts
// already.
func (a *Accounts) Begin(ctx context.Context, name string) (out api.IssuedToken, err error) {
	err = a.db.Transaction(ctx, func(tx *database.Tx) error {
		// Of two calls at once, the second finds the first one's account.
		if _, err := tx.Exec(ctx, `LOCK TABLE roost.accounts IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM roost.accounts`).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return ErrBegun
		}
		id, err := addAccount(ctx, tx, api.NewAccount{Kind: api.Person, Name: name})
		if err == nil {
			out, err = issue(ctx, tx, id, "first", api.NewToken{Scopes: names(Scopes)})
		}
		return err
	})
	return out, api.Failed(err, "make the first account")
}

func names(scopes []Scope) []string {
	return api.Each(scopes, func(s Scope) string { return string(s) })
}

// Add creates an account. ErrTaken, ErrInvalid.
func (a *Accounts) Add(ctx context.Context, n api.NewAccount) (out api.Account, err error) {
	err = a.db.Transaction(ctx, func(tx *database.Tx) error {
		id, err := addAccount(ctx, tx, n)
		if err == nil {
			out, err = account(ctx, tx, id)
		}
		return err
	})
	return out, api.Failed(err, "add the %s %q", n.Kind, n.Name)
}

// most bounds names, in bytes.
const most = 64

func checkName(name string) error {
	odd := strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) || r == '/' || r == ',' })
	if name == "" || len(name) > most || odd || strings.ToValidUTF8(name, "") != name {
		return fmt.Errorf("want a name of 1 to %d bytes, without blanks, commas and slashes: %w", most, ErrInvalid)
	}
	return nil
}

func addAccount(ctx context.Context, tx *database.Tx, n api.NewAccount) (id string, err error) {
	if n.Kind != api.Person && n.Kind != api.Team {
		return "", fmt.Errorf("want the kind person or team: %w", ErrInvalid)
	}
	if err := checkName(n.Name); err != nil {
		return "", err
	}
	id = n.Kind[:1] + "-" + random(8)
	_, err = tx.Exec(ctx, `INSERT INTO roost.accounts (id, kind, name) VALUES ($1, $2, $3)`, id, n.Kind, n.Name)
	return id, taken(err)
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// taken turns the violation of a unique name into ErrTaken.
func taken(err error) error {
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == "23505" { // unique_violation
		return ErrTaken
	}
	return err
}

const accountColumns = `SELECT a.id, a.kind, a.name, a.created_at,
	ARRAY(SELECT m.person FROM roost.memberships m WHERE m.team = a.id ORDER BY m.person) FROM roost.accounts a `

func scanAccount(row database.Scanner) (out api.Account, err error) {
	var at time.Time
	err = row.Scan(&out.ID, &out.Kind, &out.Name, &at, &out.Members)
	out.CreatedAt = stamp(at)
	return out, err
}

func stamp(at time.Time) string { return api.Stamp(at.UnixMilli()) }

func account(ctx context.Context, tx *database.Tx, id string) (api.Account, error) {
	out, err := scanAccount(tx.QueryRow(ctx, accountColumns+`WHERE a.id = $1 AND a.removed_at IS NULL`, id))
	if errors.Is(err, database.ErrNoRows) {
		err = ErrUnknown
	}
	return out, err
}

// List returns all accounts, by name.
func (a *Accounts) List(ctx context.Context) ([]api.Account, error) {
	return list(ctx, a, "list the accounts", scanAccount, accountColumns+`WHERE a.removed_at IS NULL ORDER BY a.kind, a.name`)
}

// list reads all rows of a query; what names the attempted action in an error.
func list[T any](ctx context.Context, a *Accounts, what string, scan func(database.Scanner) (T, error), sql string, args ...any) (out []T, err error) {
	out, err = database.Collect(a.db.Query(ctx, sql, args...), scan)
	return out, api.Failed(err, "%s", what)
}

// Remove removes an account, revokes its tokens and ends its memberships. Its tasks stay, and the audit trail keeps
// its id. ErrUnknown; ErrInvalid if afterwards no account could change accounts.
func (a *Accounts) Remove(ctx context.Context, id string) error {
	return a.changing(ctx, "remove the account "+id, func(tx *database.Tx) error {
		if err := affects(tx.Exec(ctx, `UPDATE roost.accounts SET removed_at = clock_timestamp() WHERE id = $1 AND removed_at IS NULL`, id)); err != nil {
			return err
		}
		for _, sql := range []string{
			`UPDATE roost.tokens SET revoked_at = clock_timestamp() WHERE account = $1 AND revoked_at IS NULL`,
			`DELETE FROM roost.memberships WHERE team = $1 OR person = $1`,
		} {
			if _, err := tx.Exec(ctx, sql, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// changing makes a change, unless afterwards no token could change accounts.
func (a *Accounts) changing(ctx context.Context, what string, change func(*database.Tx) error) error {
	err := a.db.Transaction(ctx, func(tx *database.Tx) error {
		// Of two changes that each remove one of the last two such tokens, the second must see the first.
		if _, err := tx.Exec(ctx, `LOCK TABLE roost.tokens IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		var left bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM roost.tokens WHERE 'admin' = ANY (scopes) AND `+works+`)`).Scan(&left)
		if err == nil && !left {
			err = fmt.Errorf("no token would be left that may change accounts; make another one first: %w", ErrInvalid)
		}
		return err
	})
	return api.Failed(err, "%s", what)
}

// works is the SQL condition for tokens that work.
const works = `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`

// affects returns ErrUnknown if a change affected no row.
func affects(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrUnknown
	}
	return err
}

// Join makes a person a member of a team. It is no error if the person is one already. ErrUnknown.
func (a *Accounts) Join(ctx context.Context, team, person string) error {
	done, err := a.db.Exec(ctx, `INSERT INTO roost.memberships (team, person)
		SELECT t.id, p.id FROM roost.accounts t, roost.accounts p
		WHERE t.id = $1 AND t.kind = 'team' AND t.removed_at IS NULL AND p.id = $2 AND p.kind = 'person' AND p.removed_at IS NULL
		ON CONFLICT (person, team) DO UPDATE SET team = excluded.team`, team, person)
	return api.Failed(affects(done, err), "add %s to the team %s", person, team)
}

// Leave ends a membership. ErrUnknown.
func (a *Accounts) Leave(ctx context.Context, team, person string) error {
	err := affects(a.db.Exec(ctx, `DELETE FROM roost.memberships WHERE team = $1 AND person = $2`, team, person))
	return api.Failed(err, "take %s out of the team %s", person, team)
}

// Known reports whether the accounts of an access exist. A share may be one of an account that was removed since: whoever
// changes the others sends it again.
func (a *Accounts) Known(ctx context.Context, n api.Access) (bool, error) {
	ids := api.Each(n.Shares, func(share api.Share) string { return share.With })
	if n.Owner != "" {
		ids = append(ids, n.Owner)
	}
	if strings.Contains(strings.Join(ids, ""), "\x00") { // no text of the database holds NUL
		return false, nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var found int
	err := a.db.QueryRow(ctx, `SELECT count(*) FROM roost.accounts WHERE id = ANY ($1) AND (removed_at IS NULL OR id <> $2)`, ids, n.Owner).Scan(&found)
	return found == len(ids), api.Failed(err, "look up accounts")
}

// hash returns the digest under which a secret is stored.
func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
