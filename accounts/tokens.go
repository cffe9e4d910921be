package accounts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

// secretPrefix begins every secret, so that scanners of repositories can recognize one.
const secretPrefix = "roost_"

// Issue makes a token for an account and returns its secret, which cannot be shown again. It revokes the account's
// token of the same name. ErrUnknown, ErrInvalid.
func (a *Accounts) Issue(ctx context.Context, account, name string, n api.NewToken) (out api.IssuedToken, err error) {
	err = a.changing(ctx, "make the token "+name, func(tx *database.Tx) error {
		out, err = issue(ctx, tx, account, name, n)
		return err
	})
	return out, err
}

func issue(ctx context.Context, tx *database.Tx, account, name string, n api.NewToken) (out api.IssuedToken, err error) {
	if err := checkName(name); err != nil {
		return out, err
	}
	if len(n.Scopes) == 0 || slices.ContainsFunc(n.Scopes, func(s string) bool { return !slices.Contains(Scopes, Scope(s)) }) {
		return out, fmt.Errorf("want scopes of %s: %w", strings.Join(names(Scopes), ", "), ErrInvalid)
	}
	var life *time.Duration
	if n.Life != "" {
		d, err := time.ParseDuration(n.Life)
		if err != nil || d <= 0 {
			return out, fmt.Errorf("want a life such as 720h: %w", ErrInvalid)
		}
		life = &d
	}
	if _, err := tx.Exec(ctx, `UPDATE roost.tokens SET revoked_at = clock_timestamp() WHERE account = $1 AND name = $2 AND revoked_at IS NULL`,
		account, name); err != nil {
		return out, err
	}
	out.Secret = secretPrefix + random(32)
	done, err := tx.Exec(ctx, `INSERT INTO roost.tokens (id, account, name, hash, scopes, expires_at)
		SELECT $1, a.id, $3, $4, $5, clock_timestamp() + $6::interval FROM roost.accounts a WHERE a.id = $2 AND a.removed_at IS NULL`,
		"k-"+random(8), account, name, hash(out.Secret), n.Scopes, life)
	if err := affects(done, err); err != nil {
		return api.IssuedToken{}, err
	}
	out.Token, err = scanToken(tx.QueryRow(ctx, tokenColumns+`WHERE hash = $1`, hash(out.Secret)))
	return out, err
}

const tokenColumns = `SELECT id, account, name, scopes, created_at, expires_at, last_used_at, revoked_at FROM roost.tokens ` //nolint:gosec // a statement, and no secret

func scanToken(row database.Scanner) (out api.Token, err error) {
	var created time.Time
	var expires, used, revoked *time.Time
	err = row.Scan(&out.ID, &out.Account, &out.Name, &out.Scopes, &created, &expires, &used, &revoked)
	out.CreatedAt = stamp(created)
	out.ExpiresAt, out.LastUsedAt, out.RevokedAt = stampOf(expires), stampOf(used), stampOf(revoked)
	return out, err
}

func stampOf(at *time.Time) *string {
	if at == nil {
		return nil
	}
	return new(stamp(*at))
}

// Tokens returns the tokens that were not revoked, by account and name; unless id is "", only those of that account.
func (a *Accounts) Tokens(ctx context.Context, id string) ([]api.Token, error) {
	return list(ctx, a, "list the tokens", scanToken,
		tokenColumns+`WHERE revoked_at IS NULL AND ($1 = '' OR account = $1) ORDER BY account, name`, id)
}

// Revoke ends a token, on every server at once. ErrUnknown; ErrInvalid if no other token may change accounts.
func (a *Accounts) Revoke(ctx context.Context, account, name string) error {
	return a.changing(ctx, "revoke the token "+name, func(tx *database.Tx) error {
		return affects(tx.Exec(ctx, `UPDATE roost.tokens SET revoked_at = clock_timestamp()
			WHERE account = $1 AND name = $2 AND revoked_at IS NULL`, account, name))
	})
}

const callerColumns = `SELECT t.id, t.account, a.name, t.scopes,
	ARRAY(SELECT m.team FROM roost.memberships m WHERE m.person = t.account ORDER BY m.team),
	coalesce(t.last_used_at < clock_timestamp() - interval '1 minute', true)
	FROM roost.tokens t JOIN roost.accounts a ON a.id = t.account AND a.removed_at IS NULL WHERE ` + works + ` AND `

// BySecret returns the caller with a token. ErrToken: the token does not work.
func (a *Accounts) BySecret(ctx context.Context, secret string) (Caller, error) {
	if !strings.HasPrefix(secret, secretPrefix) {
		return Caller{}, ErrToken
	}
	return a.caller(ctx, `t.hash = $1`, hash(secret))
}

// ByToken returns the caller that logged in with the token of this id. ErrToken: the token does not work.
func (a *Accounts) ByToken(ctx context.Context, id string) (Caller, error) {
	return a.caller(ctx, `t.id = $1`, id)
}

func (a *Accounts) caller(ctx context.Context, which string, by any) (c Caller, err error) {
	var scopes []string
	var unseen bool // no use of the token was recorded in the last minute
	known, err := database.Found(a.db.QueryRow(ctx, callerColumns+which, by), &c.Token, &c.Account, &c.Name, &scopes, &c.Teams, &unseen)
	if err == nil && !known {
		return Caller{}, ErrToken
	}
	c.Scopes = api.Each(scopes, func(s string) Scope { return Scope(s) })
	if err == nil && unseen { // once a minute: a write for each request would cost more than it is worth
		_, err = a.db.Exec(ctx, `UPDATE roost.tokens SET last_used_at = clock_timestamp() WHERE id = $1`, c.Token)
	}
	if err != nil {
		return Caller{}, fmt.Errorf("look up the token: %w", err)
	}
	return c, nil
}

// openRequests are the requests that the server is answering, by their tokens. While there are any, one goroutine
// checks their tokens.
type openRequests struct {
	mu   sync.Mutex
	by   map[string]map[*openRequest]bool
	stop context.CancelFunc // ends the goroutine; nil: none runs
	done sync.WaitGroup
}

// watchEvery is the interval at which the tokens of open requests are checked.
const watchEvery = time.Second

type openRequest struct {
	caller Caller
	end    context.CancelCauseFunc
}

// Enter returns a context for the request of a caller. The context ends within a second after the token is revoked or
// expires, or the person's teams change, on any server. The caller of Enter must call leave at the end.
func (a *Accounts) Enter(ctx context.Context, c Caller) (in context.Context, leave func()) {
	in, cancel := context.WithCancelCause(ctx)
	o := &a.open
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = map[string]map[*openRequest]bool{}
	}
	if o.by[c.Token] == nil {
		o.by[c.Token] = map[*openRequest]bool{}
	}
	one := &openRequest{c, cancel}
	o.by[c.Token][one] = true
	if o.stop == nil {
		watch, stop := context.WithCancel(context.WithoutCancel(ctx))
		o.stop = stop
		o.done.Go(func() { a.watch(watch) })
	}
	return in, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.by[c.Token], one)
		if len(o.by[c.Token]) == 0 {
			delete(o.by, c.Token)
		}
		cancel(nil)
	}
}

// watch ends the requests whose token no longer works, or whose caller's teams have changed. It returns once no request is
// open.
func (a *Accounts) watch(ctx context.Context) {
	o := &a.open
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		o.mu.Lock()
		ids := slices.Collect(maps.Keys(o.by))
		if len(ids) == 0 {
			o.stop()
			o.stop = nil
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		rows := a.db.Query(ctx, `SELECT t.id, ARRAY(SELECT m.team FROM roost.memberships m WHERE m.person = t.account ORDER BY m.team)
			FROM roost.tokens t WHERE t.id = ANY ($1) AND `+works, ids)
		now := map[string][]string{} // the teams of tokens that work
		var id string
		var teams []string
		if err := rows.Each([]any{&id, &teams}, func() error {
			now[id] = slices.Clone(teams)
			return nil
		}); err != nil {
			continue // without the database the server admits no new request either
		}
		o.mu.Lock()
		for _, id := range ids {
			teams, works := now[id]
			for one := range o.by[id] {
				if !works || !slices.Equal(teams, one.caller.Teams) {
					one.end(ErrToken)
				}
			}
		}
		o.mu.Unlock()
	}
}

func (o *openRequests) close() {
	o.mu.Lock()
	if o.stop != nil {
		o.stop()
	}
	o.mu.Unlock()
	o.done.Wait()
}
