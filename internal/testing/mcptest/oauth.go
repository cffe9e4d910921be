package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// OAuth is an MCP server over HTTP that wants a log-in, and the authorization server that gives it. It refuses what real
// ones refuse: a client or redirect that is not registered, another verifier or redirect than the log-in began with, a
// code or refresh token a second time, a token for another resource, and a token that has expired.
type OAuth struct {
	*httptest.Server

	mu      sync.Mutex
	clients map[string][]string // redirects, by client id
	codes   map[string]url.Values
	access  map[string]bool   // whether it is still good
	refresh map[string]string // client ids

	Expires   int      // seconds that a token lives, as the server states it; 0 = it states nothing
	NoRefresh bool     // it gives no refresh tokens
	Deny      bool     // the person says no on the page
	Issuer    string   // what metadata and answers call it, if not its address
	Seen      []string // Authorization headers at the MCP endpoint
	Refused   []string // why token requests were refused
	Renewed   int
}

// NewOAuth starts the server; the caller closes it. Its MCP endpoint is /mcp.
func NewOAuth(s *mcp.Server) *OAuth {
	o := &OAuth{clients: map[string][]string{}, codes: map[string]url.Values{}, access: map[string]bool{}, refresh: map[string]string{}}
	mux := http.NewServeMux()
	o.Server = httptest.NewServer(mux)
	handler := Handler(s)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		o.mu.Lock()
		o.Seen = append(o.Seen, r.Header.Get("Authorization"))
		good := o.access[token]
		o.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+o.URL+`/.well-known/oauth-protected-resource/mcp", scope="tools"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"resource": o.URL + "/mcp", "authorization_servers": []string{o.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token",
			"registration_endpoint": o.URL + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("/register", o.register)
	mux.HandleFunc("/authorize", o.authorize)
	mux.HandleFunc("/token", o.token)
	return o
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (o *OAuth) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Redirects) == 0 || in.Method != "none" {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	id := "client-" + rand.Text()
	o.mu.Lock()
	o.clients[id] = in.Redirects
	o.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": in.Redirects, "token_endpoint_auth_method": "none"})
}

// authorize is the page: whoever opens it agrees at once.
func (o *OAuth) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.clients[q.Get("client_id")], q.Get("redirect_uri")) {
		http.Error(w, "an unknown client or redirect", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	switch {
	case o.Deny:
		back.Set("error", "access_denied")
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("resource") != o.URL+"/mcp":
		back.Set("error", "invalid_request")
	default:
		code := rand.Text()
		o.codes[code] = q
		back.Set("code", code)
	}
	if o.Issuer != "" {
		back.Set("iss", o.Issuer)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (o *OAuth) token(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refuse := func(why string) {
		o.Refused = append(o.Refused, why)
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": why})
	}
	if r.ParseForm() != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" {
		refuse("no form")
		return
	}
	form := r.PostForm
	switch form.Get("grant_type") {
	case "authorization_code":
		q, known := o.codes[form.Get("code")]
		delete(o.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		switch {
		case !known:
			refuse("unknown code")
			return
		case q.Get("client_id") != form.Get("client_id"):
			refuse("another client")
			return
		case q.Get("redirect_uri") != form.Get("redirect_uri"):
			refuse("another redirect")
			return
		case q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]):
			refuse("wrong verifier")
			return
		}
	case "refresh_token":
		if client, known := o.refresh[form.Get("refresh_token")]; !known || client != form.Get("client_id") {
			refuse("unknown refresh token")
			return
		}
		delete(o.refresh, form.Get("refresh_token"))
		o.Renewed++
	default:
		refuse("unknown grant")
		return
	}
	if form.Get("resource") != o.URL+"/mcp" {
		refuse("another resource")
		return
	}
	access, again := "access-"+rand.Text(), "refresh-"+rand.Text()
	o.access[access] = true
	out := map[string]any{"access_token": access, "token_type": "Bearer"}
	if o.Expires > 0 {
		out["expires_in"] = o.Expires
	}
	if !o.NoRefresh {
		o.refresh[again] = form.Get("client_id")
		out["refresh_token"] = again
	}
	answer(w, http.StatusOK, out)
}

// Expire ends all access tokens, and with forget also the log-ins that could renew them.
func (o *OAuth) Expire(forget bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.access)
	if forget {
		clear(o.refresh)
	}
}

// With calls f while no request changes the server's fields.
func (o *OAuth) With(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}
