package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/roost-dev/roost/api"
)

// UserSettings returns the settings of the server's user.
func (c *Client) UserSettings(ctx context.Context) (api.UserSettings, error) {
	return Get[api.UserSettings](ctx, c, "/v1/settings", nil)
}

// ChangeSettings sets settings in the user's file, and removes others.
func (c *Client) ChangeSettings(ctx context.Context, n api.SettingsPatch) (doc api.UserSettings, err error) {
	err = c.Do(ctx, http.MethodPatch, "/v1/settings", nil, n, &doc)
	return doc, err
}

func providerPath(provider, rest string) string {
	return "/v1/providers/" + url.PathEscape(provider) + rest
}

// SetKey stores the key of a provider on the server's machine.
func (c *Client) SetKey(ctx context.Context, provider string, n api.NewKey) (doc api.KeyState, err error) {
	err = c.Do(ctx, http.MethodPut, providerPath(provider, "/key"), nil, n, &doc)
	return doc, err
}

// RemoveKey removes the key of a provider from the server's machine.
func (c *Client) RemoveKey(ctx context.Context, provider string) (doc api.KeyState, err error) {
	err = c.Do(ctx, http.MethodDelete, providerPath(provider, "/key"), nil, nil, &doc)
	return doc, err
}

// TestProvider makes the server send one short request to a provider, outside any task.
func (c *Client) TestProvider(ctx context.Context, provider string, n api.NewTest) (api.Tested, error) {
	return Post[api.Tested](ctx, c, providerPath(provider, "/test"), n)
}

// AddMCPServer defines an MCP server in the user's own file.
func (c *Client) AddMCPServer(ctx context.Context, n api.NewMCPServer) (api.MCPServer, error) {
	return Post[api.MCPServer](ctx, c, "/v1/mcp-servers", n)
}

// RemoveMCPServer removes an MCP server from the user's own file.
func (c *Client) RemoveMCPServer(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/mcp-servers/"+url.PathEscape(name), nil, nil, nil)
}

// AddSource adds a folder to the sources of tasks.
func (c *Client) AddSource(ctx context.Context, n api.NewSource) (api.AddedSource, error) {
	return Post[api.AddedSource](ctx, c, "/v1/sources", n)
}

// RemoveSource removes a folder from the sources of tasks.
func (c *Client) RemoveSource(ctx context.Context, path string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/sources", url.Values{"path": {path}}, nil, nil)
}
