package server

import (
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// settingsRoutes returns the routes about the user's settings, keys, MCP servers and sources.
func settingsRoutes() []route {
	return []route{
		{on: "GET /v1/settings", answer: api.UserSettings{},
			document: func(s *Server, a *asked) (any, error) { return s.service.UserSettings(a.Context()) }},
		{on: "PATCH /v1/settings", body: api.SettingsPatch{}, answer: api.UserSettings{},
			act: makes((*service.Service).ChangeSettings)},
		{on: "PUT /v1/providers/{provider}/key", body: api.NewKey{}, answer: api.KeyState{},
			act: puts("provider", (*service.Service).SetKey)},
		{on: "DELETE /v1/providers/{provider}/key", answer: api.KeyState{}, act: ends("provider", (*service.Service).RemoveKey)},
		{on: "POST /v1/providers/{provider}/test", body: api.NewTest{}, answer: api.Tested{}, fails: []int{http.StatusBadGateway},
			act: puts("provider", (*service.Service).TestProvider)},
		{on: "GET /v1/models", answer: api.Models{},
			document: func(s *Server, a *asked) (any, error) { return s.service.Models(a.text["provider"]), nil }},
		{on: "GET /v1/modes", answer: api.Page[api.Mode]{}, document: lists("workspace", (*service.Service).Modes)},
		{on: "GET /v1/mcp-servers", answer: api.Page[api.MCPServer]{},
			document: lists("workspace", (*service.Service).MCPServers)},
		{on: "POST /v1/mcp-servers", body: api.NewMCPServer{}, answer: api.MCPServer{}, status: http.StatusCreated,
			act: makes((*service.Service).AddMCPServer)},
		{on: "DELETE /v1/mcp-servers/{server}", act: does(func(s *service.Service, a *asked) (any, error) {
			return nil, s.RemoveMCPServer(a.Context(), a.PathValue("server"))
		})},
		{on: "POST /v1/sources", body: api.NewSource{}, answer: api.AddedSource{}, status: http.StatusCreated,
			act: makes((*service.Service).AddSource)},
		{on: "DELETE /v1/sources", act: does(func(s *service.Service, a *asked) (any, error) {
			return nil, s.RemoveSource(a.Context(), a.text["path"])
		})},
	}
}
