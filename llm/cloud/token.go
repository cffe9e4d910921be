package cloud

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// GoogleCredentials are an access token, or the content of a credentials file of Google's with which to get one.
type GoogleCredentials struct {
	Token string `json:"-"`

	Type         string `json:"type"` // service_account or authorized_user
	ProjectID    string `json:"project_id"`
	QuotaProject string `json:"quota_project_id"` // the project against whose quota requests count
	TokenURI     string `json:"token_uri"`

	// For a service account.
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"` // PEM
	PrivateKeyID string `json:"private_key_id"`
	// For a user.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

// ReadGoogle reads a credentials file. The error does not show the file's content.
func ReadGoogle(data []byte) (c GoogleCredentials, err error) {
	if json.Unmarshal(data, &c) != nil {
		return c, errors.New("it is no JSON object of Google's credentials")
	}
	c.TokenURI = cmp.Or(c.TokenURI, "https://oauth2.googleapis.com/token")
	missing := ""
	switch c.Type {
	case "service_account":
		if c.ClientEmail == "" || c.PrivateKey == "" {
			missing = "client_email or private_key"
		}
	case "authorized_user":
		if c.ClientID == "" || c.RefreshToken == "" {
			missing = "client_id or refresh_token"
		}
	default:
		return c, fmt.Errorf("credentials of the type %q are not read, only service_account and authorized_user", c.Type)
	}
	if missing != "" {
		return c, fmt.Errorf("it is of the type %s and has no %s", c.Type, missing)
	}
	u, err := url.Parse(c.TokenURI)
	if err != nil || u.Scheme != "https" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return c, errors.New("its token_uri is no https address")
	}
	return c, nil
}

const (
	tokenScope = "https://www.googleapis.com/auth/cloud-platform" //nolint:gosec // an address, no secret
	// tokenMargin is the time before a token's end at which it is replaced: requests queue, and clocks differ.
	tokenMargin = 4 * time.Minute
	maxToken    = 64 << 10 // bytes of an answer
)

// tokens keeps one access token.
type tokens struct {
	of     GoogleCredentials
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	token string
	claim string // the claim with which the token was requested
	until time.Time
}

// secrets returns the texts that no error may show.
func (t *tokens) secrets() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return []string{t.token, t.claim, t.of.Token, t.of.RefreshToken, t.of.ClientSecret}
}

// get returns a token that remains valid for some time. Errors are *llm.Error or the context's.
func (t *tokens) get(ctx context.Context) (string, error) {
	if t.of.Token != "" {
		return t.of.Token, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.now().Before(t.until.Add(-tokenMargin)) {
		return t.token, nil
	}
	form := url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {t.of.RefreshToken},
		"client_id": {t.of.ClientID}, "client_secret": {t.of.ClientSecret},
	}
	if t.of.Type == "service_account" {
		assertion, err := t.assertion()
		if err != nil {
			return "", err
		}
		t.claim = assertion
		form = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	}
	status, page, err := t.exchange(ctx, form)
	if err != nil {
		return "", err
	}
	token, _ := esjson.GetString(page, "access_token")
	seconds, _ := esjson.GetInt(page, "expires_in")
	if status != http.StatusOK || token == "" {
		return "", tokenError(status, page)
	}
	t.token, t.until = token, t.now().Add(time.Duration(min(max(seconds, 0), 86400))*time.Second)
	return token, nil
}

// exchange sends a request to the token server.
func (t *tokens) exchange(ctx context.Context, form url.Values) (status int, page []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.of.TokenURI, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, fmt.Errorf("ask for an access token: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := *t.client
	client.CheckRedirect = wire.SameServer
	res, err := client.Do(r)
	if err == nil {
		defer res.Body.Close()
		status = res.StatusCode
		page, err = io.ReadAll(io.LimitReader(res.Body, maxToken))
	}
	if err != nil {
		return 0, nil, &llm.Error{Provider: Vertex, Kind: llm.Network, Message: "ask for an access token: " + err.Error(), Err: err}
	}
	return status, page, nil
}

// tokenError makes the error for a refusal of the token server: {"error":"invalid_grant","error_description":"..."}.
func tokenError(status int, page []byte) *llm.Error {
	code, message := esjson.TextOf(page, "error"), esjson.TextOf(page, "error_description")
	e := &llm.Error{
		Provider: Vertex, Kind: wire.KindOfStatus(status, message), Status: status,
		Message: "Google gives no access token: " + cmp.Or(wire.Shorten(strings.TrimPrefix(code+": "+message, ": "), 300), "no reason is given"),
	}
	switch {
	case e.Retryable():
	case saysOne(message, "iat", "reasonable timeframe", "short-lived"):
		e.Kind, e.Try = llm.Auth, "set this machine's clock; it is off"
	case code == "invalid_grant" && saysOne(message, "signature"):
		e.Kind, e.Try = llm.Auth, "a new key for the service account, in the file that GOOGLE_APPLICATION_CREDENTIALS names"
	default:
		e.Kind, e.Try = llm.Auth, vertexLogin
	}
	return e
}

// assertion returns a service account's signed claim of its identity (RFC 7523).
func (t *tokens) assertion() (string, error) {
	unusable := errors.New("the private_key of the service account cannot be read")
	block, _ := pem.Decode([]byte(t.of.PrivateKey))
	if block == nil {
		return "", unusable
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, is := parsed.(*rsa.PrivateKey)
	if err != nil || !is {
		return "", unusable
	}
	now := t.now().Unix()
	part := base64.RawURLEncoding.EncodeToString
	text := part(esjson.ObjectOf("alg", "RS256", "typ", "JWT", "kid", esjson.Given(t.of.PrivateKeyID))) + "." +
		part(esjson.ObjectOf("iss", t.of.ClientEmail, "scope", tokenScope, "aud", t.of.TokenURI, "iat", now, "exp", now+3600))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign with the service account's key: %w", err)
	}
	return text + "." + part(signature), nil
}
