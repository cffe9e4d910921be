package accounts_test

import (
	"testing"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
)

func TestMay(t *testing.T) {
	all := accounts.Scopes
	only := func(s ...accounts.Scope) []accounts.Scope { return s }
	ann := accounts.Caller{Account: "p-ann", Scopes: all[:3]}
	bob := accounts.Caller{Account: "p-bob", Teams: []string{"t-red"}, Scopes: all[:3]}
	root := accounts.Caller{Account: "p-root", Scopes: all}
	operator := accounts.Caller{Operator: true}
	with := func(id, right string) api.Access {
		return api.Access{Owner: "p-ann", Shares: []api.Share{{With: id, Right: right}}}
	}
	const hidden, yes = "hidden", ""
	for name, tc := range map[string]struct {
		c    accounts.Caller
		need accounts.Scope
		a    api.Access
		want string
	}{
		"the owner reads":                          {ann, accounts.Read, api.Access{Owner: "p-ann"}, yes},
		"the owner deletes":                        {ann, accounts.Own, api.Access{Owner: "p-ann"}, yes},
		"the owner without the scope":              {accounts.Caller{Account: "p-ann", Scopes: only(accounts.Read)}, accounts.Act, api.Access{Owner: "p-ann"}, "the token lacks the scope act"},
		"the owner without the scope does not own": {accounts.Caller{Account: "p-ann", Scopes: only(accounts.Read)}, accounts.Own, api.Access{Owner: "p-ann"}, "the token lacks the scope own"},
		"somebody else":                            {bob, accounts.Read, api.Access{Owner: "p-ann"}, hidden},
		"an administrator is somebody else":        {root, accounts.Read, api.Access{Owner: "p-ann"}, hidden},
		"shared to read":                           {bob, accounts.Read, with("p-bob", "read"), yes},
		"shared to read, and acts":                 {bob, accounts.Act, with("p-bob", "read"), "it is shared with you to read"},
		"shared to read, and approves":             {bob, accounts.Approve, with("p-bob", "read"), "it is shared with you to read"},
		"shared to act":                            {bob, accounts.Act, with("p-bob", "act"), yes},
		"shared to act, and approves":              {bob, accounts.Approve, with("p-bob", "act"), yes},
		"shared to act, and deletes":               {bob, accounts.Own, with("p-bob", "act"), "only its owner may do that"},
		"shared with the team":                     {bob, accounts.Act, with("t-red", "act"), yes},
		"shared with another team":                 {bob, accounts.Read, with("t-blue", "act"), hidden},
		"shared twice, the larger right counts":    {bob, accounts.Act, api.Access{Owner: "p-ann", Shares: []api.Share{{With: "p-bob", Right: "act"}, {With: "t-red", Right: "read"}}}, yes},
		"of a team":                                {bob, accounts.Own, api.Access{Owner: "t-red"}, yes},
		"of nobody":                                {ann, accounts.Read, api.Access{}, hidden},
		"of nobody, for an administrator":          {root, accounts.Own, api.Access{}, yes},
		"of nobody, and the account has no id":     {accounts.Caller{Scopes: all[:3]}, accounts.Read, api.Access{}, hidden},
		"shared with no id":                        {accounts.Caller{Scopes: all[:3]}, accounts.Read, with("", "act"), hidden},
		"the operator":                             {operator, accounts.Own, api.Access{Owner: "p-ann"}, yes},
		"a right that this version does not know":  {bob, accounts.Act, with("p-bob", "dance"), hidden},
		"shared to act, but the token reads":       {accounts.Caller{Account: "p-bob", Scopes: only(accounts.Read)}, accounts.Act, with("p-bob", "act"), "the token lacks the scope act"},
	} {
		got := hidden
		if seen, why := accounts.May(tc.c, tc.need, tc.a); seen {
			got = why
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
