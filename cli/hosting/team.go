package hosting

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/local"
)

// teamCommand manages the accounts of people who share a server. Only init uses the database directly: it makes the
// first token, and a server makes tokens only for a caller with a token.
func (a *commands) teamCommand() *cobra.Command {
	plain := func(name, what string, f func(context.Context, *client.Client, []string) error) *cobra.Command {
		return help.Command("team "+name, a.onServer(what, f))
	}
	var store, life, task, by string
	var group bool
	var scopes []string
	var limit int
	begin := help.Command("team init", func(cmd *cobra.Command, args []string) error {
		if store == "" {
			return failure.Usage("roost team init", "--store is missing", "roost team init ann --store postgres://HOST/NAME")
		}
		made, err := local.BeginAccounts(cmd.Context(), store, args[0])
		switch {
		case errors.Is(err, local.ErrBegun):
			return err
		case err != nil:
			return refuse(err, explain(err))
		}
		return app.Show(a.App, made, a.tellToken)
	})
	begin.Flags().StringVar(&store, "store", "", "the address of the database: postgres://USER@HOST/NAME")
	add := plain("add", "add an account", func(ctx context.Context, c *client.Client, args []string) error {
		n := api.NewAccount{Kind: api.Person, Name: args[0]}
		if group {
			n.Kind = api.Team
		}
		return app.Exchange(ctx, a.App, c, client.Request{Method: http.MethodPost, Path: "/v1/accounts", Body: n}, func(made api.Account) {
			a.Say("added the %s %s; a token for it: roost team token %s NAME", made.Kind, made.Name, made.Name)
		})
	})
	add.Flags().BoolVar(&group, "group", false, "add a team instead of a person")
	token := plain("token", "make a token", func(ctx context.Context, c *client.Client, args []string) error {
		of, err := account(ctx, c, args[0])
		if err != nil {
			return err
		}
		r := client.Request{Method: http.MethodPut, Path: tokenPath(of, args[1]), Body: api.NewToken{Scopes: scopes, Life: life}}
		return app.Exchange(ctx, a.App, c, r, a.tellToken)
	})
	token.Flags().StringSliceVar(&scopes, "scope", []string{"read", "act", "approve"}, "what it may be used for: read, act, approve, admin")
	token.Flags().StringVar(&life, "life", "", "how long the token is valid, such as 720h; without it, until the token is revoked")
	audit := plain("audit", "read the audit trail", func(ctx context.Context, c *client.Client, _ []string) error {
		all, err := listAccounts(ctx, c)
		if err != nil {
			return err
		}
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		app.SetQuery(query, "task", task)
		if by != "" {
			of, err := all.find(by)
			if err != nil {
				return err
			}
			query.Set("account", of.ID)
		}
		return app.DocumentOf(ctx, a.App, c, "/v1/audit", query, func(p api.Page[api.AuditEntry]) { a.showAudit(p.Items, all) })
	})
	audit.Flags().StringVar(&task, "task", "", "only what was done to this task, by its whole id")
	audit.Flags().StringVar(&by, "by", "", "only what this person or team did")
	audit.Flags().IntVar(&limit, "limit", 50, "at most this many, the newest")
	return help.Group("team",
		begin, add, token, audit,
		help.Command("team list", a.onServer("list the accounts", a.listTeam)),
		plain("remove", "remove an account", func(ctx context.Context, c *client.Client, args []string) error {
			return a.changeTeam(ctx, c, http.MethodDelete, "removed "+args[0], args[:1], func(of []api.Account) string {
				return "/v1/accounts/" + url.PathEscape(of[0].ID)
			})
		}),
		plain("join", "add to a team", func(ctx context.Context, c *client.Client, args []string) error {
			return a.changeTeam(ctx, c, http.MethodPut, args[1]+" is in "+args[0], args, memberPath)
		}),
		plain("leave", "take out of a team", func(ctx context.Context, c *client.Client, args []string) error {
			return a.changeTeam(ctx, c, http.MethodDelete, args[1]+" is not in "+args[0]+" any more", args, memberPath)
		}),
		plain("tokens", "list tokens", a.listTokens),
		plain("revoke", "revoke a token", func(ctx context.Context, c *client.Client, args []string) error {
			return a.changeTeam(ctx, c, http.MethodDelete, "revoked "+args[1]+" of "+args[0], args[:1], func(of []api.Account) string {
				return tokenPath(of[0], args[1])
			})
		}),
		help.Command("team share", a.onServer("share the task", a.shareTask)),
	)
}

// team are the accounts of a server.
type team []api.Account

func listAccounts(ctx context.Context, c *client.Client) (team, error) {
	all, err := client.Get[api.Page[api.Account]](ctx, c, "/v1/accounts", url.Values{"limit": {"1000"}})
	return all.Items, err
}

// find finds the account with a name or an id.
func (all team) find(given string) (api.Account, error) {
	for _, one := range all {
		if one.Name == given || one.ID == given {
			return one, nil
		}
	}
	return api.Account{}, failure.NotFound("no_such_account", "find the account "+given,
		"no person and no team has that name", "roost team list")
}

// account finds the account with a name or an id on a server.
func account(ctx context.Context, c *client.Client, given string) (api.Account, error) {
	all, err := listAccounts(ctx, c)
	if err != nil {
		return api.Account{}, err
	}
	return all.find(given)
}

// name returns the name of an account, or the id of a removed one.
func (all team) name(id string) string {
	if i := slices.IndexFunc(all, func(one api.Account) bool { return one.ID == id }); i >= 0 {
		return all[i].Name
	}
	return id
}

func tokenPath(of api.Account, token string) string {
	return "/v1/accounts/" + url.PathEscape(of.ID) + "/tokens/" + url.PathEscape(token)
}

func memberPath(of []api.Account) string {
	return "/v1/accounts/" + url.PathEscape(of[0].ID) + "/members/" + url.PathEscape(of[1].ID)
}

// changeTeam changes accounts that a person names.
func (a *commands) changeTeam(ctx context.Context, c *client.Client, method, done string, names []string, path func([]api.Account) string) error {
	all, err := listAccounts(ctx, c)
	if err != nil {
		return err
	}
	of, err := api.TryEach(names, all.find)
	if err != nil {
		return err
	}
	if _, err := c.Ask(ctx, client.Request{Method: method, Path: path(of)}, nil); err != nil {
		return err
	}
	a.Say("%s", display.OneLine(done))
	return nil
}

func (a *commands) tellToken(t api.IssuedToken) {
	a.Println(t.Secret)
	a.Say("this is the only time that the token is shown; use it as ROOST_TOKEN, with --server URL")
}

func (a *commands) listTeam(ctx context.Context, c *client.Client, _ []string) error {
	all, err := listAccounts(ctx, c)
	if err != nil {
		return err
	}
	return app.Show(a.App, api.PageOf(all, ""), func(api.Page[api.Account]) {
		rows := [][]string{{"NAME", "KIND", "ID", "MEMBERS"}}
		for _, one := range all {
			rows = append(rows, []string{one.Name, one.Kind, one.ID, strings.Join(api.Each(one.Members, all.name), ", ")})
		}
		a.Grid(rows)
	})
}

func (a *commands) listTokens(ctx context.Context, c *client.Client, args []string) error {
	of, err := account(ctx, c, args[0])
	if err != nil {
		return err
	}
	path, most := "/v1/accounts/"+url.PathEscape(of.ID)+"/tokens", url.Values{"limit": {"1000"}}
	return app.DocumentOf(ctx, a.App, c, path, most, func(p api.Page[api.Token]) {
		rows := [][]string{{"NAME", "SCOPES", "MADE", "LAST USED", "ENDS"}}
		for _, t := range p.Items {
			rows = append(rows, []string{t.Name, strings.Join(t.Scopes, " "), a.When(&t.CreatedAt), a.When(t.LastUsedAt), a.When(t.ExpiresAt)})
		}
		a.Grid(rows)
	})
}

// shareTask changes the right of one account to a task. The rights of other accounts stay.
func (a *commands) shareTask(ctx context.Context, c *client.Client, args []string) error {
	with, err := account(ctx, c, args[1])
	if err != nil {
		return err
	}
	path := client.TaskPath(args[0])
	var row api.Summary
	head, err := c.Ask(ctx, client.Request{Path: path}, &row)
	if err != nil {
		return err
	}
	access := row.Access
	access.Shares = slices.DeleteFunc(access.Shares, func(s api.Share) bool { return s.With == with.ID })
	switch right := args[2]; right {
	case api.ShareRead, api.ShareAct:
		access.Shares = append(access.Shares, api.Share{With: with.ID, Right: right})
	case "none":
	case "own":
		access.Owner = with.ID
	default:
		return failure.Usage("roost team share", fmt.Sprintf("%q is no right: want read, act, none or own", right), "roost team share "+args[0]+" "+args[1]+" read")
	}
	// With the state that was read, so that another share at the same time is not lost.
	put := client.Request{Method: http.MethodPut, Path: client.TaskPath(args[0], "access"), Body: access, Header: http.Header{"If-Match": head["Etag"]}}
	return app.Exchange(ctx, a.App, c, put, func(row api.Summary) {
		a.Say("%s: %s has the right %s", display.OneLine(row.ID), display.OneLine(with.Name), args[2])
	})
}

func (a *commands) showAudit(entries []api.AuditEntry, all team) {
	rows := [][]string{{"WHEN", "WHO", "FROM", "STATUS", "ACT", "TASK"}}
	for _, e := range entries {
		status, by := "?", "operator"
		if e.Status != nil {
			status = strconv.Itoa(*e.Status)
		}
		if e.Account != "" {
			by = all.name(e.Account)
		}
		rows = append(rows, []string{a.When(&e.At), by, e.Address, status, e.Act, e.Task})
	}
	a.Grid(rows)
}
