package server

import (
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// badName is the problem of a malformed name in the path of a request; nil when there is none.
func badName(rt *route, r *http.Request) *api.Problem {
	if r.RemoteAddr == client.LocalPeer { // the user may name a folder of another tool by any name
		return nil
	}
	for _, name := range placesOf(rt.path) {
		text := r.PathValue(name)
		switch {
		case name == "id" && !validRef(text):
			return problem(http.StatusBadRequest, "bad_id", "That can be no task's id",
				"an id is a letter or digit, then up to 127 of A-Z a-z 0-9 . _ -, and may have a source and a colon before "+
					"it", "GET /v1/tasks")
		case !validName(text):
			return problem(http.StatusBadRequest, "bad_id", "That can be no name", "the path has a name in it that nothing here can have")
		}
	}
	return nil
}

// placesOf are the names of the variable parts of a path.
func placesOf(path string) (names []string) {
	for _, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// validName reports whether a text can be a name: printable ASCII that is not a path.
func validName(text string) bool {
	if len(text) == 0 || len(text) > 300 || text[0] == '.' {
		return false
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || c == '/' || c == '\\' {
			return false
		}
	}
	return true
}

// validRef reports whether a text can name a task: an id, or a source and an id. The server only compares it with listed
// tasks and never makes a path of it; it refuses malformed names before it looks anything up all the same.
func validRef(text string) bool {
	source, id, named := strings.Cut(text, ":")
	if !named {
		source, id = "", text
	}
	return api.ValidTaskID(id) && (!named || api.ValidTaskID(source))
}
