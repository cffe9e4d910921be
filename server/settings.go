package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/service"
)

// settingsRoutes returns the routes about the user's settings, keys, MCP servers and sources.
func settingsRoutes() []route {
	return []route{
		{on: "GET /v1/settings", answer: api.UserSettings{},
			document: func(s *Server, a *asked) (any, error) { return s.service.UserSettings(a.Context()) }},
		{on: "PATCH /v1/settings", body: api.SettingsPatch{}, answer: api.UserSettings{}, act: makes((*service.Service).ChangeSettings)},
		{on: "PUT /v1/providers/{provider}/key", body: api.NewKey{}, answer: api.KeyState{},
			act: puts("provider", (*service.Service).SetKey)},
		{on: "DELETE /v1/providers/{provider}/key", answer: api.KeyState{}, act: ends("provider", (*service.Service).RemoveKey)},
		{on: "POST /v1/providers/{provider}/test", body: api.NewTest{}, answer: api.Tested{}, fails: []int{http.StatusBadGateway},
			act: puts("provider", (*service.Service).TestProvider)},
		{on: "GET /v1/models", answer: api.Models{},
			document: func(s *Server, a *asked) (any, error) { return s.service.Models(a.text["provider"]), nil }},
		{on: "GET /v1/modes", answer: api.Page[api.Mode]{}, document: lists("workspace", (*service.Service).Modes)},
		{on: "GET /v1/mcp-servers", answer: api.Page[api.MCPServer]{}, document: lists("workspace", (*service.Service).MCPServers)},
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

// forwards are the headers in which a proxy names the client whose request it passes on.
var forwards = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", hopHeader}

// fromHere reports whether a request came directly from this machine: from this process, through the socket of its user,
// or from a loopback address to a loopback name, without headers that a proxy would add. The caller has checked the log-in.
// A port that ssh forwards here counts as this machine, because its user can log in here.
func fromHere(r *http.Request) bool {
	if r.RemoteAddr == client.LocalPeer || isPeer(r) {
		return true
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") {
			return false
		}
	}
	if slices.ContainsFunc(forwards, func(name string) bool { return r.Header.Get(name) != "" }) {
		return false
	}
	return Loopback(hostName(r.Host)) && Loopback(addressOf(r))
}

// Loopback reports whether only this machine reaches a host. It accepts no name but localhost: another name may
// resolve to any address.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
