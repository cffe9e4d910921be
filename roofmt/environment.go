package roofmt

import (
	"bytes"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Environment is what a request records about the place where it was made. Every tool ends the words of a request
// with such details, so they are in both histories, also when no index names the task. The zero value holds nothing.
type Environment struct {
	Workspace string // absolute, as the system of its tool spells it
	Mode      string // its slug
	Model     string
}

const environmentMark = "<environment_details>"

// EnvironmentOf reads a message of either history. Only details that a block of their own
// begins with count, and of those the last: a file that was read may hold the like.
func EnvironmentOf(raw []byte) (e Environment) {
	if !bytes.Contains(raw, []byte(environmentMark[1:len(environmentMark)-1])) { // brackets may be spelled as escapes
		return e
	}
	if text, ok := UIMessage(raw).Text(); ok { // a row about a request holds it as JSON in its text
		request, _ := esjson.GetString([]byte(text), "request")
		return environmentIn(request)
	}
	m := APIMessage(raw)
	if m.Role() != "user" {
		return e
	}
	for b := range m.Blocks() {
		text, _ := esjson.GetString(b, "text")
		if b.Type() == "text" && strings.HasPrefix(strings.TrimSpace(text), environmentMark) {
			e = environmentIn(text)
		}
	}
	return e
}

// environmentIn reads the last details of a text. When a value occurs twice in them, the first one counts: a list of
// files comes last.
func environmentIn(text string) (e Environment) {
	at := strings.LastIndex(text, environmentMark)
	if at < 0 {
		return e
	}
	text, _, _ = strings.Cut(text[at:], "</environment_details>")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case e.Workspace == "" && strings.HasPrefix(line, "# Current Wor"):
			for _, start := range []string{"# Current Workspace Directory (", "# Current Working Directory ("} {
				if dir, ok := strings.CutPrefix(line, start); ok {
					if dir, ok = strings.CutSuffix(dir, ") Files"); ok {
						e.Workspace = nativePath(dir)
					}
				}
			}
		case e.Mode == "":
			e.Mode = tagged(line, "slug")
		case e.Model == "":
			e.Model = tagged(line, "model")
		}
	}
	return e
}

func tagged(line, tag string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(line), "<"+tag+">")
	if inner, closed := strings.CutSuffix(inner, "</"+tag+">"); ok && closed && !strings.ContainsAny(inner, "<>") {
		return inner
	}
	return ""
}

// nativePath spells a path as its system does: details have slashes everywhere, indexes
// the backslashes of Windows. What is not absolute names no folder.
func nativePath(dir string) string {
	drive := len(dir) > 2 && dir[1] == ':' && dir[2] == '/' && (dir[0]|0x20) >= 'a' && (dir[0]|0x20) <= 'z'
	switch {
	case drive, strings.HasPrefix(dir, "//"):
		return strings.ReplaceAll(dir, "/", `\`)
	case strings.HasPrefix(dir, "/"):
		return dir
	}
	return ""
}
