package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var staticFS embed.FS

// file is a static file, ready to be sent.
type file struct {
	media, tag string
	body       []byte
}

// medias are the media types of static files, by their endings. No other files are served.
var medias = map[string]string{
	".css":         "text/css; charset=utf-8",
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".webmanifest": "application/manifest+json",
}

func staticFiles() map[string]file {
	all := map[string]file{}
	entries, _ := staticFS.ReadDir("static") // it is embedded
	for _, e := range entries {
		media, known := medias[path.Ext(e.Name())]
		body, err := staticFS.ReadFile("static/" + e.Name())
		if !known || err != nil {
			continue
		}
		sum := sha256.Sum256(body)
		all[e.Name()] = file{media: media, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body}
	}
	return all
}

// static answers with a static file, or 304 if the browser has it. A browser must ask each time, so that no page runs with
// the scripts of another version.
func (w *Web) static(out http.ResponseWriter, r *http.Request) error {
	h := out.Header()
	protect(h)
	f, known := w.files[r.PathValue("name")]
	if !known {
		http.NotFound(out, r)
		return nil
	}
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache")
	if r.PathValue("name") == "sw.js" {
		h.Set("Service-Worker-Allowed", "/") // the worker answers for all pages while the server is out of reach
	}
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		out.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(out, r, http.StatusOK, f.media, f.body)
	return nil
}
