package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
)

// Who may not decide approvals changes no setting that decides what asks for one: an empty list of rules would take the
// rules away that deny or ask.
func TestSettingsThatDecideWhatAsksNeedTheScopeApprove(t *testing.T) {
	st, err := store.Open(store.Options{Root: filepath.Join(t.TempDir(), "root"), Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(st, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	defer func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	s := New(st, e, Options{})
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("- text: ok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, err := e.Create(t.Context(), engine.Request{Person: "ann", Choice: setup.Choice{
		Workspace: t.TempDir(), Provider: "script", Model: script, Approve: "all", Deny: []string{"rm *"},
		DenyTools: []string{"web"}, AskTools: []string{"command"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	never := 0
	for name, n := range map[string]api.Settings{
		"approve": {Approve: "all"}, "base_url": {BaseURL: "http://127.0.0.1:1"},
		"allow": {Allow: []string{"rm *"}}, "allow_tools": {AllowTools: []string{"command"}},
		"deny": {Deny: []string{}}, "deny_tools": {DenyTools: []string{}}, "ask_tools": {AskTools: []string{}},
		"ask_after_requests": {Limits: &api.Limits{AskAfterRequests: &never}},
	} {
		for _, scopes := range [][]accounts.Scope{{accounts.Read, accounts.Act}, {accounts.Read, accounts.Act, accounts.Approve}} {
			ctx := As(t.Context(), accounts.Caller{Account: "ann", Scopes: scopes}, accounts.Act)
			_, _, err := s.Patch(ctx, Call{}, ref.ID, api.TaskPatch{Settings: n})
			var p *api.Problem
			if refused := errors.As(err, &p) && p.Code == "scope_missing"; refused != (len(scopes) == 2) {
				t.Errorf("%s with %v: got %v, want it refused only without the scope approve", name, scopes, err)
			}
		}
	}
	if err := mayLoosen(As(t.Context(), accounts.Caller{Account: "ann"}, accounts.Act), api.Settings{Mode: "code"}, false); err != nil {
		t.Errorf("another setting: got %v, want no error", err)
	}
}
