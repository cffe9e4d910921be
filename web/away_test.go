package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/web"
)

// pages are the pages of a server for the local network, without its door.
func pages(devices ...api.Device) *web.Web {
	return web.New(web.Options{
		Reader:  newest{},
		Devices: func(context.Context) ([]api.Device, error) { return devices, nil },
		Trust:   "AB:CD",
	})
}

// newest is a Reader for pages that read no task.
type newest struct{ web.Reader }

func (newest) NewestEvent(context.Context) (string, error) { return "0", nil }

func (newest) Administers(context.Context) bool { return true }

func fetch(ctx context.Context, w *web.Web, path string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	for pattern, page := range w.Pages() {
		mux.HandleFunc("GET "+pattern, func(out http.ResponseWriter, r *http.Request) {
			if err := page(out, r); err != nil {
				http.Error(out, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	out := httptest.NewRecorder()
	mux.ServeHTTP(out, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return out
}

// The list of devices shows what a browser told of itself, and obeys none of it. It says how to log one out without scripts.
func TestDevicesAreListed(t *testing.T) {
	t.Parallel()
	var all []api.Device
	for i, s := range hostile {
		all = append(all, api.Device{ID: "d" + strconv.Itoa(i), Name: s, Address: s, FirstSeen: "2026-01-01T00:00:00Z", LastSeen: "2026-01-01T00:00:00Z", Current: i == 0})
	}
	body := fetch(t.Context(), pages(all...), "/devices").Body.String()
	inert(t, "/devices", body)
	if !strings.Contains(body, "roost devices revoke d1<") || strings.Count(body, "this one") != 1 {
		t.Errorf("got\n%s\nwant the command for each device, and one that is this one", body)
	}
}

// The page about the certificate is there for a server of the local network alone.
func TestThePageAboutTheCertificate(t *testing.T) {
	t.Parallel()
	body := fetch(t.Context(), pages(), "/trust").Body.String()
	inert(t, "/trust", body)
	if !strings.Contains(body, "AB CD") || !strings.Contains(body, `href="/ca.crt"`) {
		t.Errorf("got\n%s\nwant the fingerprint and the file", body)
	}
	own := web.New(web.Options{Reader: newest{}})
	for _, path := range []string{"/trust", "/devices"} {
		if _, has := own.Pages()[path]; has {
			t.Errorf("a server for its own machine alone, without devices, has the page %s", path)
		}
	}
}

// What the manifest names is there, of the size that it has.
func TestTheManifestIsTrue(t *testing.T) {
	t.Parallel()
	w := pages()
	got := fetch(t.Context(), w, "/static/roost.webmanifest")
	var m struct {
		StartURL string `json:"start_url"`
		Icons    []struct{ Src, Sizes, Purpose string }
	}
	if err := json.Unmarshal(got.Body.Bytes(), &m); err != nil || got.Header().Get("Content-Type") != "application/manifest+json" || m.StartURL != "/" {
		t.Fatalf("got %s, %+v, %v, want a manifest that begins at /", got.Header().Get("Content-Type"), m, err)
	}
	sizes := map[string]string{"/static/icon-apple-180.png": "180x180"}
	for _, icon := range m.Icons {
		sizes[icon.Src] = icon.Sizes
	}
	for path, size := range sizes {
		file := fetch(t.Context(), w, path)
		if size == "any" && file.Code == http.StatusOK {
			continue
		}
		picture, err := png.Decode(bytes.NewReader(file.Body.Bytes()))
		if err != nil {
			t.Errorf("%s: got %d, %v, want a picture", path, file.Code, err)
			continue
		}
		if b := picture.Bounds(); strconv.Itoa(b.Dx())+"x"+strconv.Itoa(b.Dy()) != size {
			t.Errorf("%s: got %d by %d, want %s", path, b.Dx(), b.Dy(), size)
		}
	}
	if got := fetch(t.Context(), w, "/static/sw.js").Header().Get("Service-Worker-Allowed"); got != "/" {
		t.Errorf("the service worker may answer for %q, want /", got)
	}
	if got := fetch(t.Context(), w, "/static/live.js").Header().Get("Service-Worker-Allowed"); got != "" {
		t.Errorf("another script may answer for %q, want nothing", got)
	}
	if got := fetch(t.Context(), w, "/static/offline.html"); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "not reachable") {
		t.Errorf("the page without a server: got %d", got.Code)
	}
}
