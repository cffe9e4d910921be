package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
)

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestBeginOnce(t *testing.T) {
	a, other, _ := opened(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var made []api.IssuedToken
	for i := range 6 {
		wait.Go(func() {
			one := []*accounts.Accounts{a, other}[i%2]
			got, err := one.Begin(t.Context(), fmt.Sprint("root", i))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made = append(made, got)
			} else if !errors.Is(err, accounts.ErrBegun) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if len(made) != 1 {
		t.Fatalf("got %d first accounts, want 1", len(made))
	}
	c := must[accounts.Caller](t)(other.BySecret(t.Context(), made[0].Secret))
	if !slices.Equal(c.Scopes, accounts.Scopes) || c.Account != made[0].Account {
		t.Errorf("got %+v, want all scopes of %s", c, made[0].Account)
	}
}

func TestTokens(t *testing.T) {
	a, other, db := opened(t)
	ctx := t.Context()
	root := must[api.IssuedToken](t)(a.Begin(ctx, "root"))
	bob := must[api.Account](t)(a.Add(ctx, api.NewAccount{Kind: api.Person, Name: "bob"}))
	made := must[api.IssuedToken](t)(a.Issue(ctx, bob.ID, "laptop", api.NewToken{Scopes: []string{"read", "act"}, Life: "1h"}))
	if made.ExpiresAt == nil || made.LastUsedAt != nil {
		t.Errorf("got %+v, want an end and no use", made.Token)
	}
	works := func(what, secret string, want error) {
		t.Helper()
		for _, one := range []*accounts.Accounts{a, other} {
			_, err := one.BySecret(ctx, secret)
			wants(t, what, err, want)
		}
	}
	works("a new token", made.Secret, nil)
	if got := must[[]api.Token](t)(a.Tokens(ctx, bob.ID)); len(got) != 1 || got[0].LastUsedAt == nil {
		t.Errorf("got %+v, want one token that was used", got)
	}
	var kept int
	if err := db.QueryRow(ctx, `SELECT count(*) FROM roost.tokens t WHERE strpos(t::text, $1) > 0`, made.Secret[6:]).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("got the secret in %d rows, %v; want none", kept, err)
	}
	again := must[api.IssuedToken](t)(a.Issue(ctx, bob.ID, "laptop", api.NewToken{Scopes: []string{"read"}}))
	works("a token that another one replaced", made.Secret, accounts.ErrToken)
	works("the one that replaced it", again.Secret, nil)
	if c := must[accounts.Caller](t)(a.ByToken(ctx, again.ID)); c.Account != bob.ID || c.Can(accounts.Act) {
		t.Errorf("got %+v, want bob, who reads", c)
	}
	if _, err := db.Exec(ctx, `UPDATE roost.tokens SET expires_at = clock_timestamp() WHERE id = $1`, again.ID); err != nil {
		t.Fatal(err)
	}
	works("a token that is over", again.Secret, accounts.ErrToken)
	works("no token", "", accounts.ErrToken)
	works("another text", "roost_x", accounts.ErrToken)
	third := must[api.IssuedToken](t)(a.Issue(ctx, bob.ID, "phone", api.NewToken{Scopes: []string{"read"}}))
	if err := other.Revoke(ctx, bob.ID, "phone"); err != nil {
		t.Fatal(err)
	}
	works("a revoked token", third.Secret, accounts.ErrToken)
	wants(t, "revoke it again", a.Revoke(ctx, bob.ID, "phone"), accounts.ErrUnknown)
	wants(t, "revoke the last administrator", a.Revoke(ctx, root.Account, "first"), accounts.ErrInvalid)
	works("the last administrator", root.Secret, nil)
	for name, n := range map[string]api.NewToken{
		"no scope": {}, "an unknown scope": {Scopes: []string{"own"}}, "a bad life": {Scopes: []string{"read"}, Life: "-1h"},
	} {
		_, err := a.Issue(ctx, bob.ID, "x", n)
		wants(t, name, err, accounts.ErrInvalid)
	}
	_, err := a.Issue(ctx, "p-nobody", "x", api.NewToken{Scopes: []string{"read"}})
	wants(t, "a token for nobody", err, accounts.ErrUnknown)
}

func TestAccountsAndTeams(t *testing.T) {
	a, other, _ := opened(t)
	ctx := t.Context()
	root := must[api.IssuedToken](t)(a.Begin(ctx, "root"))
	add := func(kind, name string) api.Account {
		return must[api.Account](t)(a.Add(ctx, api.NewAccount{Kind: kind, Name: name}))
	}
	bob, red := add(api.Person, "bob"), add(api.Team, "red")
	_, err := a.Add(ctx, api.NewAccount{Kind: api.Team, Name: "bob"})
	wants(t, "a name twice", err, accounts.ErrTaken)
	for _, name := range []string{"", "a b", "a/b", "a,b", "\x00", "\xff"} {
		_, err := a.Add(ctx, api.NewAccount{Kind: api.Person, Name: name})
		wants(t, fmt.Sprintf("the name %q", name), err, accounts.ErrInvalid)
	}
	for range 2 {
		if err := a.Join(ctx, red.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, "join a person", a.Join(ctx, bob.ID, red.ID), accounts.ErrUnknown)
	secret := must[api.IssuedToken](t)(a.Issue(ctx, bob.ID, "x", api.NewToken{Scopes: []string{"read"}})).Secret
	teams := func() []string { return must[accounts.Caller](t)(other.BySecret(ctx, secret)).Teams }
	if got := teams(); !slices.Equal(got, []string{red.ID}) {
		t.Errorf("got teams %v, want %s", got, red.ID)
	}
	if err := a.Leave(ctx, red.ID, bob.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, "leave again", a.Leave(ctx, red.ID, bob.ID), accounts.ErrUnknown)
	if got := teams(); len(got) != 0 {
		t.Errorf("got teams %v after leaving, want none", got)
	}
	if ok := must[bool](t)(a.Known(ctx, api.Access{Owner: bob.ID, Shares: []api.Share{{With: red.ID}, {With: bob.ID}}})); !ok {
		t.Error("accounts are not known")
	}
	if err := a.Remove(ctx, bob.ID); err != nil {
		t.Fatal(err)
	}
	_, err = other.BySecret(ctx, secret)
	wants(t, "the token of a removed person", err, accounts.ErrToken)
	wants(t, "remove the last administrator", a.Remove(ctx, root.Account), accounts.ErrInvalid)
	if ok := must[bool](t)(a.Known(ctx, api.Access{Owner: bob.ID})); ok {
		t.Error("a removed account is known")
	}
	if got := must[[]api.Account](t)(a.List(ctx)); len(got) != 2 {
		t.Errorf("got %+v, want root and red", got)
	}
	add(api.Person, "bob") // the name is free again
}

// A request that is open when its token is revoked on another server ends.
func TestOpenRequestsEnd(t *testing.T) {
	a, other, _ := opened(t)
	ctx := t.Context()
	root := must[api.IssuedToken](t)(a.Begin(ctx, "root"))
	must[api.IssuedToken](t)(a.Issue(ctx, root.Account, "second", api.NewToken{Scopes: []string{"admin"}}))
	c := must[accounts.Caller](t)(a.BySecret(ctx, root.Secret))
	in, leave := a.Enter(ctx, c)
	defer leave()
	if err := other.Revoke(ctx, root.Account, "first"); err != nil {
		t.Fatal(err)
	}
	<-in.Done()
	wants(t, "the request's end", context.Cause(in), accounts.ErrToken)
}

func TestAuditOnlyGrows(t *testing.T) {
	a, other, db := opened(t)
	ctx := t.Context()
	for i, act := range []string{"POST /v1/tasks", "DELETE /v1/tasks/{id}"} {
		n := must[int64](t)(a.Note(ctx, api.AuditEntry{Account: "p-1", Act: act, Task: fmt.Sprint("t", i), Address: "::1"}))
		if i == 0 {
			if err := a.Outcome(ctx, n, 201, "made"); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := must[[]api.AuditEntry](t)(other.Audit(ctx, accounts.AuditFilter{Account: "p-1", Limit: 10}))
	if len(got) != 2 || got[0].Status != nil || got[1].Status == nil || *got[1].Status != 201 || got[1].Act != "POST /v1/tasks" || got[1].Task != "made" {
		t.Errorf("got %+v, want the newest first, with the outcome of the older one", got)
	}
	if got := must[[]api.AuditEntry](t)(a.Audit(ctx, accounts.AuditFilter{Before: got[0].ID, Limit: 10})); len(got) != 1 {
		t.Errorf("got %+v before the newest, want one", got)
	}
	for _, sql := range []string{
		`UPDATE roost.audit SET act = 'x'`, `DELETE FROM roost.audit_outcomes`, `TRUNCATE roost.audit CASCADE`,
	} {
		if _, err := db.Exec(ctx, sql); err == nil {
			t.Errorf("%s: got no error", sql)
		}
	}
}
