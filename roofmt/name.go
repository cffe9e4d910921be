package roofmt

import (
	"regexp"
	"strconv"
	"strings"
)

// Names of the files in a task folder, and of the index beside the folders.
const (
	UIName       = "ui_messages.json"
	APIName      = "api_conversation_history.json"
	MetadataName = "task_metadata.json"
	ItemName     = "history_item.json"
	LegacyName   = "claude_messages.json" // 2024: UI list or API list; its shape decides
	ContextName  = "context_history.json" // classic Cline: edits of the context
	IndexName    = "_index.json"
)

// ourPrefix begins every name of ours in a task folder. Roo opens files by exact name and skips names with a dot when it
// lists, so it never sees them.
const ourPrefix = ".roost-"

// leftover is a temporary file of an interrupted write by Roo or classic Cline.
type leftover struct {
	Name   string
	Target string // the file it was to become, or had been
	Backup bool
	MS     int64 // time in its name
}

var (
	rooTemp   = regexp.MustCompile(`^\.([A-Za-z_]+\.json)\.(bak|new)_(\d+)_[A-Za-z0-9]+\.tmp$`)
	clineTemp = regexp.MustCompile(`^([A-Za-z_]+\.json)\.tmp\.(\d+)\.[A-Za-z0-9]+\.json$`)
)

func parseLeftover(name string) (leftover, bool) {
	if m := rooTemp.FindStringSubmatch(name); m != nil {
		ms, _ := strconv.ParseInt(m[3], 10, 64)
		return leftover{name, m[1], m[2] == "bak", ms}, true
	}
	if m := clineTemp.FindStringSubmatch(name); m != nil {
		ms, _ := strconv.ParseInt(m[2], 10, 64)
		return leftover{name, m[1], false, ms}, true
	}
	return leftover{}, false
}

// isTaskFile reports whether a file of this name makes the folder that holds it a task folder.
func isTaskFile(name string) bool {
	switch name {
	case UIName, APIName, MetadataName, ItemName, LegacyName, ContextName:
		return true
	}
	l, ok := parseLeftover(name)
	return ok && l.Target != IndexName && isTaskFile(l.Target)
}

// isLock reports whether a directory of this name is a lock of Roo's.
func isLock(name string) bool { return strings.HasSuffix(name, ".json.lock") }

var ourTemp = regexp.MustCompile(`^\.roost-tmp_([0-9a-f]+)_(\d+)_(\d+)_[0-9a-f]+_`)
