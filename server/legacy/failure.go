package legacy

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
)

// The paths of the call. Both do the same.
const (
	ChatPath    = "/chat/stream"
	ExecutePath = "/execute/stream"
)

// IsPath reports whether a path is of the call.
func IsPath(path string) bool {
	return path == ChatPath || path == ExecutePath || strings.HasPrefix(path, "/api/")
}

// Fail answers with a problem in the shape of the call.
func Fail(w http.ResponseWriter, r *http.Request, p *api.Problem, now time.Time) {
	out := api.OlderFailure{Error: p.Title, Message: p.Detail, Code: p.Code, Suggestions: p.Suggestions,
		Timestamp: api.Stamp(now.UnixMilli())}
	if p.Code == "task_not_found" {
		out.Error = "Task not found"
	}
	if p.Task != "" {
		out.Task = &p.Task
	}
	if out.Suggestions == nil {
		out.Suggestions = []string{}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if p.After != "" {
		h.Set("Retry-After", p.After)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out) // it fails when the client has disconnected
	}
}
