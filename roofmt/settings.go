package roofmt

import (
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/esjson"
)

// customStorage are the settings that move an extension's tasks, all but
// checkpoints, to another folder. Their names begin with the extension's package
// name.
var customStorage = [...]struct {
	key  string
	tool Tool
}{
	{"roo-cline.customStoragePath", Roo},
	{"roo-code-nightly.customStoragePath", Roo},
	{"kilo-code.customStoragePath", Kilo},
	{"zoo-code.customStoragePath", Zoo},
}

// customPaths reads where the settings of an editor, and those of each of its profiles, put tasks. Profiles have settings of
// their own but share one globalStorage. What cannot be read names nothing: the editor would fall back to its default.
func customPaths(userData string, found func(dir string, tool Tool)) {
	files := []string{filepath.Join(userData, "User", "settings.json"), filepath.Join(userData, "Machine", "settings.json")}
	profiles := filepath.Join(userData, "User", "profiles")
	if entries, err := os.ReadDir(profiles); err == nil {
		for _, e := range entries {
			files = append(files, filepath.Join(profiles, e.Name(), "settings.json"))
		}
	}
	for _, file := range files {
		raw, _, err := readRegular(file)
		if err != nil {
			continue
		}
		raw = plainJSON(raw)
		if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
			continue
		}
		for _, s := range customStorage {
			if dir, ok := esjson.GetString(raw, s.key); ok && filepath.IsAbs(dir) {
				found(filepath.Clean(dir), s.tool)
			}
		}
	}
}

// plainJSON makes JSON of what VS Code takes for it: comments become blanks, and so do commas before a closing bracket.
func plainJSON(src []byte) []byte {
	out := make([]byte, 0, len(src))
	comma := -1 // a comma in out that nothing but blanks followed so far
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			end := esjson.StringEnd(src, i)
			out = append(out, src[i:end]...)
			i, comma = end, -1
			continue
		case c == '/' && i+1 < len(src) && src[i+1] == '/':
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		case c == '/' && i+1 < len(src) && src[i+1] == '*':
			for i += 3; i < len(src) && (src[i-1] != '*' || src[i] != '/'); i++ {
			}
			i++
			continue
		case c == ',':
			comma = len(out)
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c == 0xEF && i+2 < len(src) && src[i+1] == 0xBB && src[i+2] == 0xBF && i == 0:
			i += 3
			continue
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
		out = append(out, src[i])
		i++
	}
	return out
}
