package pagetest

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// authority is the certificate that a device of the local network installs.
func (h *house) authority() *x509.Certificate {
	h.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as a device does that is new there
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(h.lan.url + "/ca.crt")
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	der, err := io.ReadAll(answer.Body)
	if err != nil {
		h.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		h.Fatalf("/ca.crt: got %s and %d bytes: %v", answer.Status, len(der), err)
	}
	return cert
}

// trusting is a browser that trusts the server's authority.
func (h *house) trusting() *profile {
	h.Helper()
	if browserFile == "" {
		h.Skip("chromium is not installed")
	}
	key := sha256.Sum256(h.authority().RawSubjectPublicKeyInfo)
	ctx, end, err := launch(chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])),
		chromedp.UserDataDir(h.TempDir()))
	h.Cleanup(end)
	if err != nil {
		h.Fatal(err)
	}
	return &profile{house: h, ctx: ctx}
}

// A phone logs in by the link of the QR code, over TLS; the link works once; the page can be installed.
func TestLogInOverTheLocalNetwork(t *testing.T) {
	t.Parallel()
	h := newHouseIn(t, around{flags: []string{"--lan=127.0.0.1:0"}})
	tab := h.trusting().open(phone, "/trust")
	tab.text("main", "Trust this server")
	tab.sees("the certificate is offered", `document.querySelector('a[href="/ca.crt"]')`)
	tab.visit(h.lan.login)
	tab.live()
	tab.sees("the list is open", `document.body.dataset.page === 'history' && location.protocol === 'https:'`)
	tab.visit("/devices")
	tab.live()
	tab.text("[data-device][data-current]", "this one")
	if used := h.trusting().open(phone, h.lan.login); !run[bool](used, `document.body.innerText.includes('This log-in link was used')`) {
		t.Errorf("a used link: got %q, want a page that says so", run[string](used, `document.body.innerText`))
	}
	tab.served()
	tab.installable()
}

// installable fails unless the browser would install the page.
func (t *tab) installable() {
	t.Helper()
	manifest, err := chromedp.Call(t.ctx, page.GetAppManifest, page.GetAppManifestParams{})
	if err != nil || len(manifest.Errors) > 0 || !strings.HasSuffix(manifest.URL, "/static/roost.webmanifest") || !strings.Contains(manifest.Data, `"standalone"`) {
		t.Errorf("the manifest: got %s with %d errors, %v:\n%s", manifest.URL, len(manifest.Errors), err, manifest.Data)
	}
	wrong, err := chromedp.Call(t.ctx, page.GetInstallabilityErrors, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range wrong.InstallabilityErrors {
		if e.ErrorID != "in-incognito" { // every browser of these tests is one
			t.Errorf("the page cannot be installed: %s", e.ErrorID)
		}
	}
}

// A device that is revoked is out at once: its open page stops and says so.
func TestDeviceIsRevoked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "first", nil)
	h.wait(task, "completed")
	lost := h.loggedIn(phone, "/tasks/"+task)
	lost.live()
	var link struct {
		URL string `json:"login_url"`
	}
	h.ask("POST", "/v1/server/logins", nil, &link)
	_, path, _ := strings.Cut(link.URL, h.listen)
	own := h.browser().open(desktop, path)
	own.visit("/devices")
	own.live()
	own.text("[data-device][data-current]", "this one")
	own.press(`[data-device]:not([data-current]) [data-does=rename]`)
	own.press("dialog input")
	run[bool](own, `document.querySelector('dialog input').select(), true`)
	own.types("old phone")
	own.keys(enter)
	own.text("[data-device]", "old phone")
	own.press(`[data-device]:not([data-current]) [data-does=revoke]`)
	own.press("dialog button.danger")
	own.text("#notes", "old phone” is logged out")
	own.gone(`[data-device]:not([data-current])`)
	lost.text("#live-state", "log-in has ended")
	lost.visit("/")
	lost.text("main", "You are not logged in")
	own.visit("/")
	own.live()
}

// A person allows notifications by a button, and chooses what they show.
func TestNotificationsAreAllowedByAButton(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.browser()
	p.open(phone, h.login).live()
	tab := p.openAfter(`self.requests = 0; Notification.requestPermission = async () => { requests++; return 'default' };
		Object.defineProperty(Notification, 'permission', { get: () => self.requests ? 'granted' : 'default' })`, "/")
	tab.live()
	if got := run[int](tab, `requests`); got != 0 {
		t.Errorf("the page asked %d times by itself, want none", got)
	}
	tab.press("#alerts")
	tab.press(`dialog [data-does=allow]`)
	tab.sees("it may show them", `document.querySelector('dialog [name=shown]')?.checked && requests === 1`)
	tab.press(`dialog [name=text]`)
	tab.press(`dialog [name=sound]`)
	tab.press(`dialog .acts .primary`)
	tab.gone("dialog")
	tab.sees("it is kept", `localStorage.getItem('roost-calls') === '{"shown":true,"sound":false,"text":true}'`)
}

// Without its server an installed page says so, and has kept nothing of any task.
func TestServerIsOutOfReach(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(phone, "/tasks/"+task)
	tab.live()
	tab.served()
	tab.visit("/")
	tab.live()
	h.relay.cut()
	tab.visit("/tasks/" + task)
	tab.text("main", "Roost is not reachable")
	kept := run[[]string](tab, `(async () => { const all = []; for (const name of await caches.keys()) for (const r of await (await caches.open(name)).keys()) all.push(new URL(r.url).pathname); return all.sort() })()`)
	if got := strings.Join(kept, " "); got != "/static/offline.html /static/page.css" {
		t.Errorf("the browser has kept %s, want the page that says so and its sheet alone", got)
	}
	h.relay.mend()
	tab.press("main a.button")
	tab.live()
	tab.text("#messages", "done")
}
